//! Generic netlink: finds the number and the multicast groups of a family, and encodes messages.
//!
//! Source: the kernel's Documentation/userspace-api/netlink/intro.rst and include/uapi/linux/genetlink.h.

use std::collections::BTreeMap;

use netlink_packet_core::DefaultNla;

use crate::netlink::{Netlink, Raw, attributes, emit, text, u16_at, u32_at};
use crate::{NetError, Result};

const GENL_ID_CTRL: u16 = 16;
const CTRL_CMD_GETFAMILY: u8 = 3;
const CTRL_VERSION: u8 = 2;
const CTRL_ATTR_FAMILY_ID: u16 = 1;
const CTRL_ATTR_FAMILY_NAME: u16 = 2;
const CTRL_ATTR_MCAST_GROUPS: u16 = 7;
const CTRL_ATTR_MCAST_GRP_NAME: u16 = 1;
const CTRL_ATTR_MCAST_GRP_ID: u16 = 2;
/// Command, version and two reserved bytes.
pub(crate) const HEADER_BYTES: usize = 4;

/// A family of generic netlink, with the numbers of the running kernel.
#[derive(Debug)]
pub(crate) struct Family {
    pub(crate) id: u16,
    pub(crate) groups: BTreeMap<String, u32>,
}

/// A message of a family.
pub(crate) fn message(family: u16, command: u8, version: u8, attributes: &[DefaultNla]) -> Raw {
    let mut bytes = vec![command, version, 0, 0];
    bytes.extend(emit(attributes));
    Raw {
        kind: family,
        bytes,
    }
}

/// Asks for a family by its name.
pub(crate) fn family(netlink: &mut Netlink, name: &str) -> Result<Family> {
    let what = format!("find the generic netlink family {name}");
    let wanted = DefaultNla::new(CTRL_ATTR_FAMILY_NAME, [name.as_bytes(), &[0]].concat());
    let request = message(GENL_ID_CTRL, CTRL_CMD_GETFAMILY, CTRL_VERSION, &[wanted]);
    let answers = netlink.request(&what, request, 0)?;
    let answer = answers
        .first()
        .ok_or_else(|| NetError::malformed(&what, "it is empty"))?;
    let found = attributes(&what, answer.bytes.get(HEADER_BYTES..).unwrap_or_default())?;
    let id = found
        .get(&CTRL_ATTR_FAMILY_ID)
        .and_then(|bytes| u16_at(bytes, 0));
    let id = id.ok_or_else(|| NetError::malformed(&what, "no number in it"))?;
    let groups = match found.get(&CTRL_ATTR_MCAST_GROUPS) {
        Some(bytes) => groups(&what, bytes)?,
        None => BTreeMap::new(),
    };
    Ok(Family { id, groups })
}

fn groups(what: &str, bytes: &[u8]) -> Result<BTreeMap<String, u32>> {
    let mut groups = BTreeMap::new();
    for group in attributes(what, bytes)?.values() {
        let group = attributes(what, group)?;
        let name = group
            .get(&CTRL_ATTR_MCAST_GRP_NAME)
            .map(|bytes| text(bytes));
        let id = group
            .get(&CTRL_ATTR_MCAST_GRP_ID)
            .and_then(|bytes| u32_at(bytes, 0));
        if let (Some(name), Some(id)) = (name, id) {
            groups.insert(name, id);
        }
    }
    Ok(groups)
}
