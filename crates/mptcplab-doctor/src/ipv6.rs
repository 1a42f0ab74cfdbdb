//! What the explanations need of IPv6: the endpoints of the kernel's path manager, and routes. The networks of
//! `mptcplab-net` are of IPv4, so that it has neither. Everything is of the network namespace of this thread, and is only
//! read.
//!
//! Source: the kernel's include/uapi/linux/netlink.h, genetlink.h, mptcp_pm.h and rtnetlink.h.

use nix::libc;
use nix::sys::socket::{AddressFamily, SockFlag, SockProtocol, SockType, socket};
use nix::unistd::{read, write};
use std::collections::BTreeMap;
use std::io;
use std::net::Ipv6Addr;

/// `struct nlmsghdr`.
const MESSAGE_HEADER_BYTES: usize = 16;
/// Length and kind, before the value.
const ATTRIBUTE_HEADER_BYTES: usize = 4;
/// Command, version and two reserved bytes.
const GENERIC_HEADER_BYTES: usize = 4;
/// The kernel puts at most 32 KiB into one datagram of a list.
const BUFFER_BYTES: usize = 1 << 16;
/// The upper bits say how the value is encoded.
const KIND_MASK: u16 = 0x3fff;

const CONTROLLER: u16 = libc::GENL_ID_CTRL as u16;
const GET_FAMILY: [u8; GENERIC_HEADER_BYTES] = [3, 2, 0, 0];
const FAMILY_ID: u16 = 1;
const FAMILY_NAME: u16 = 2;

const PATH_MANAGER: &[u8] = b"mptcp_pm\0";
const GET_ENDPOINTS: [u8; GENERIC_HEADER_BYTES] = [3, 1, 0, 0];
const ENDPOINT: u16 = 1;
// Attributes of an endpoint (MPTCP_PM_ADDR_ATTR_...).
const ID: u16 = 2;
const ADDRESS6: u16 = 4;
const FLAGS: u16 = 6;
const IFINDEX: u16 = 7;

/// `struct rtmsg`, and the place of the type in it.
const ROUTE_HEADER_BYTES: usize = 12;
const ROUTE_TYPE: usize = 7;
const ADDRESS_BITS: u8 = 128;
/// Report the entry of the tables (`RTM_F_FIB_MATCH`), and an error where there is none.
const FIB_MATCH: u32 = 0x2000;

/// An endpoint with an IPv6 address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Endpoint {
    pub(super) address: Ipv6Addr,
    pub(super) id: u8,
    /// Bits, from the lowest: signal, subflow, backup, fullmesh (`MPTCP_PM_ADDR_FLAG_...`).
    pub(super) flags: u32,
    pub(super) ifindex: Option<u32>,
}

/// All endpoints with an IPv6 address, in the order of their ids.
pub(super) fn endpoints() -> io::Result<Vec<Endpoint>> {
    let protocol = SockProtocol::NetlinkGeneric;
    let name = attribute(FAMILY_NAME, PATH_MANAGER);
    let asked = [GET_FAMILY.as_slice(), &name].concat();
    let answers = ask(protocol, CONTROLLER, 0, &asked)?;
    let number = answers.first().and_then(|answer| {
        let found = attributes(answer.get(GENERIC_HEADER_BYTES..)?);
        Some(u16::from_ne_bytes(*found.get(&FAMILY_ID)?.first_chunk()?))
    });
    let number = number.ok_or_else(|| io::Error::other("the family mptcp_pm has no number"))?;
    let answers = ask(protocol, number, libc::NLM_F_DUMP, &GET_ENDPOINTS)?;
    let mut found: Vec<Endpoint> = answers.iter().filter_map(|one| endpoint(one)).collect();
    found.sort_by_key(|endpoint| endpoint.id);
    Ok(found)
}

/// Decodes an answer; `None` where it has no IPv6 address.
fn endpoint(answer: &[u8]) -> Option<Endpoint> {
    let outer = attributes(answer.get(GENERIC_HEADER_BYTES..)?);
    let found = attributes(outer.get(&ENDPOINT)?);
    let number = |kind| Some(u32::from_ne_bytes(*found.get(&kind)?.first_chunk()?));
    Some(Endpoint {
        address: Ipv6Addr::from(*found.get(&ADDRESS6)?.first_chunk::<16>()?),
        id: found.get(&ID)?.first().copied()?,
        flags: number(FLAGS).unwrap_or(0),
        ifindex: number(IFINDEX).filter(|&ifindex| ifindex != 0),
    })
}

/// Succeeds if an entry of the routing tables leads from `source` to `destination`, over a device if one is given. The error
/// is the kernel's error number.
pub(super) fn route(
    source: Ipv6Addr,
    destination: Ipv6Addr,
    ifindex: Option<u32>,
) -> Result<(), i32> {
    let first = lookup(Some(source), destination, ifindex)?;
    let Some(ifindex) = ifindex else {
        return Ok(());
    };
    if first == Some(ifindex) {
        return Ok(());
    }
    // With a source, the kernel also answers with a better entry over another device, which a socket that is bound to the
    // device does not use (`ip6_route_output_flags_noref` in net/ipv6/route.c).
    lookup(None, destination, Some(ifindex)).map(drop)
}

/// The index of the device of the entry that leads to `destination`, or `None` for an entry with several.
fn lookup(
    source: Option<Ipv6Addr>,
    destination: Ipv6Addr,
    ifindex: Option<u32>,
) -> Result<Option<u32>, i32> {
    let from = source.map_or(0, |_| ADDRESS_BITS);
    // struct rtmsg: family, lengths of both prefixes, TOS, table, protocol, scope, type, flags.
    let mut asked = vec![libc::AF_INET6 as u8, ADDRESS_BITS, from, 0, 0, 0, 0, 0];
    asked.extend(FIB_MATCH.to_ne_bytes());
    asked.extend(attribute(libc::RTA_DST, &destination.octets()));
    if let Some(source) = source {
        asked.extend(attribute(libc::RTA_SRC, &source.octets()));
    }
    if let Some(ifindex) = ifindex {
        asked.extend(attribute(libc::RTA_OIF, &ifindex.to_ne_bytes()));
    }
    let answers = ask(SockProtocol::NetlinkRoute, libc::RTM_GETROUTE, 0, &asked)
        .map_err(|error| error.raw_os_error().unwrap_or(0))?;
    answers
        .first()
        .map_or(Err(libc::ENETUNREACH), |answer| device_of(answer))
}

/// The index of the device of a route; the error is that of a route that refuses its destination.
fn device_of(answer: &[u8]) -> Result<Option<u32>, i32> {
    match answer.get(ROUTE_TYPE) {
        Some(&libc::RTN_PROHIBIT) => return Err(libc::EACCES),
        Some(&(libc::RTN_BLACKHOLE | libc::RTN_UNREACHABLE)) => return Err(libc::EHOSTUNREACH),
        _ => {}
    }
    let found = attributes(answer.get(ROUTE_HEADER_BYTES..).unwrap_or_default());
    let index = found
        .get(&libc::RTA_OIF)
        .and_then(|value| value.first_chunk());
    Ok(index.map(|bytes| u32::from_ne_bytes(*bytes)))
}

/// Sends one request to the kernel; returns what follows the header of each answer.
fn ask(protocol: SockProtocol, kind: u16, flags: i32, body: &[u8]) -> io::Result<Vec<Vec<u8>>> {
    let flags = (libc::NLM_F_REQUEST | flags) as u16;
    let length = (MESSAGE_HEADER_BYTES + body.len()) as u32;
    let mut message = length.to_ne_bytes().to_vec();
    message.extend(kind.to_ne_bytes());
    message.extend(flags.to_ne_bytes());
    // Number of the request and port: there is one request per socket, and the kernel knows the port.
    message.extend([0; 8]);
    message.extend(body);
    let netlink = socket(
        AddressFamily::Netlink,
        SockType::Raw,
        SockFlag::SOCK_CLOEXEC,
        protocol,
    )?;
    write(&netlink, &message)?;
    let mut answers = Vec::new();
    let mut buffer = vec![0; BUFFER_BYTES];
    loop {
        let received = read(&netlink, &mut buffer)?;
        if add_answers(&buffer[..received], &mut answers)? {
            return Ok(answers);
        }
    }
}

/// Adds the answers of one datagram; says whether the last of all is among them.
fn add_answers(mut datagram: &[u8], answers: &mut Vec<Vec<u8>>) -> io::Result<bool> {
    let malformed = || io::Error::other("an answer of netlink is malformed");
    while let Some(header) = datagram.first_chunk::<MESSAGE_HEADER_BYTES>() {
        let length = u32::from_ne_bytes([header[0], header[1], header[2], header[3]]) as usize;
        let kind = i32::from(u16::from_ne_bytes([header[4], header[5]]));
        let flags = i32::from(u16::from_ne_bytes([header[6], header[7]]));
        let body = datagram.get(MESSAGE_HEADER_BYTES..length);
        let body = body.ok_or_else(malformed)?;
        match kind {
            libc::NLMSG_DONE => return Ok(true),
            libc::NLMSG_ERROR => {
                let code = body.first_chunk().ok_or_else(malformed)?;
                return match i32::from_ne_bytes(*code) {
                    0 => Ok(true),
                    code => Err(io::Error::from_raw_os_error(code.saturating_neg())),
                };
            }
            _ => answers.push(body.to_vec()),
        }
        if flags & libc::NLM_F_MULTI == 0 {
            return Ok(true);
        }
        datagram = datagram
            .get(length.next_multiple_of(4)..)
            .unwrap_or_default();
    }
    Ok(false)
}

/// An attribute with its padding.
fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
    let length = ATTRIBUTE_HEADER_BYTES + value.len();
    let mut bytes = (length as u16).to_ne_bytes().to_vec();
    bytes.extend(kind.to_ne_bytes());
    bytes.extend(value);
    bytes.resize(length.next_multiple_of(4), 0);
    bytes
}

/// The values by their kinds, up to the first that is malformed.
fn attributes(mut bytes: &[u8]) -> BTreeMap<u16, &[u8]> {
    let mut found = BTreeMap::new();
    while let Some(header) = bytes.first_chunk::<ATTRIBUTE_HEADER_BYTES>() {
        let length = usize::from(u16::from_ne_bytes([header[0], header[1]]));
        let kind = u16::from_ne_bytes([header[2], header[3]]) & KIND_MASK;
        let Some(value) = bytes.get(ATTRIBUTE_HEADER_BYTES..length) else {
            break;
        };
        found.insert(kind, value);
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_is_decoded_with_its_flags_and_device() {
        let address = Ipv6Addr::new(0x2001, 0xdb8, 2, 0, 0, 0, 0, 1);
        let mut fields = [
            attribute(1, &10_u16.to_ne_bytes()),
            attribute(ID, &[7]),
            attribute(ADDRESS6, &address.octets()),
            attribute(FLAGS, &6_u32.to_ne_bytes()),
            attribute(IFINDEX, &3_u32.to_ne_bytes()),
        ];
        let answer = |fields: &[Vec<u8>]| {
            // As the kernel marks an attribute that has attributes inside.
            let outer = attribute(ENDPOINT | 0x8000, &fields.concat());
            endpoint(&[&[3, 1, 0, 0], outer.as_slice()].concat())
        };
        let mut expected = Endpoint {
            address,
            id: 7,
            flags: 6,
            ifindex: Some(3),
        };
        assert_eq!(answer(&fields), Some(expected));
        fields[4] = attribute(IFINDEX, &0_u32.to_ne_bytes());
        expected.ifindex = None;
        assert_eq!(answer(&fields), Some(expected));
        // One of IPv4 has the attribute 3 instead.
        fields[2] = attribute(3, &[192, 0, 2, 7]);
        assert_eq!(answer(&fields), None);
        assert_eq!(endpoint(&[3, 1, 0, 0, 9, 0, 1]), None);
    }

    #[test]
    fn the_end_and_errors_of_answers_are_told_apart() {
        let message = |kind: i32, flags: i32, body: &[u8]| {
            let length = (MESSAGE_HEADER_BYTES + body.len()) as u32;
            let mut bytes = length.to_ne_bytes().to_vec();
            bytes.extend((kind as u16).to_ne_bytes());
            bytes.extend((flags as u16).to_ne_bytes());
            bytes.extend([0; 8]);
            bytes.extend(body);
            bytes.resize(bytes.len().next_multiple_of(4), 0);
            bytes
        };
        let mut answers = Vec::new();
        let first = message(30, libc::NLM_F_MULTI, &[1, 2, 3]);
        let both = [first, message(30, libc::NLM_F_MULTI, &[4])].concat();
        assert!(!add_answers(&both, &mut answers).unwrap());
        assert!(add_answers(&message(libc::NLMSG_DONE, 0, &[0; 4]), &mut answers).unwrap());
        assert_eq!(answers, [vec![1, 2, 3], vec![4]]);
        let refused = message(libc::NLMSG_ERROR, 0, &(-libc::ENETUNREACH).to_ne_bytes());
        let error = add_answers(&refused, &mut answers).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::ENETUNREACH));
        assert!(add_answers(&[255; 16], &mut answers).is_err());
    }

    #[test]
    fn a_route_that_refuses_its_destination_is_none() {
        let route = |kind| {
            let mut answer = vec![libc::AF_INET6 as u8, 64, 0, 0, 254, 2, 0, kind, 0, 0, 0, 0];
            answer.extend(attribute(libc::RTA_OIF, &5_u32.to_ne_bytes()));
            device_of(&answer)
        };
        assert_eq!(route(libc::RTN_UNICAST), Ok(Some(5)));
        assert_eq!(route(libc::RTN_UNREACHABLE), Err(libc::EHOSTUNREACH));
        assert_eq!(route(libc::RTN_PROHIBIT), Err(libc::EACCES));
        assert_eq!(
            device_of(&[10, 64, 0, 0, 254, 2, 0, 1, 0, 0, 0, 0]),
            Ok(None)
        );
    }

    #[test]
    fn a_route_of_ipv6_is_looked_up_from_an_address() {
        if !std::path::Path::new("/proc/net/if_inet6").exists() {
            return;
        }
        assert_eq!(
            route(Ipv6Addr::LOCALHOST, Ipv6Addr::LOCALHOST, None),
            Ok(())
        );
        let no_device = Some(u32::MAX >> 1);
        assert!(route(Ipv6Addr::LOCALHOST, Ipv6Addr::LOCALHOST, no_device).is_err());
    }
}
