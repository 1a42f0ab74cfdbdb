//! IPv4 addresses of devices.

use std::net::{IpAddr, Ipv4Addr};

use netlink_packet_core::{NLM_F_CREATE, NLM_F_DUMP, NLM_F_EXCL};
use netlink_packet_route::address::{AddressAttribute, AddressFlags, AddressMessage};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};

use crate::{Namespace, NetError, Result};

/// An IPv4 address of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Address {
    pub ifindex: u32,
    pub ip: Ipv4Addr,
    /// The length of its prefix in bits.
    pub prefix_len: u8,
}

impl Namespace {
    /// Adds an address to a device, without the route to its prefix that the kernel would add.
    ///
    /// # Errors
    ///
    /// [`NetError::Kernel`]: EEXIST for an address that is there, ENODEV without such a device.
    pub fn add_address(&self, ifindex: u32, ip: Ipv4Addr, prefix_len: u8) -> Result<()> {
        let mut message = message(ifindex, ip, prefix_len)?;
        message
            .attributes
            .push(AddressAttribute::Flags(AddressFlags::Noprefixroute));
        let what = format!("add {ip}/{prefix_len} to device {ifindex}");
        self.route_request(
            &what,
            RouteNetlinkMessage::NewAddress(message),
            NLM_F_CREATE | NLM_F_EXCL,
        )?;
        Ok(())
    }

    /// Removes an address from a device.
    ///
    /// # Errors
    ///
    /// [`NetError::Kernel`] with EADDRNOTAVAIL for an address that is not there.
    pub fn delete_address(&self, ifindex: u32, ip: Ipv4Addr, prefix_len: u8) -> Result<()> {
        let what = format!("remove {ip}/{prefix_len} from device {ifindex}");
        let message = message(ifindex, ip, prefix_len)?;
        self.route_request(&what, RouteNetlinkMessage::DelAddress(message), 0)?;
        Ok(())
    }

    /// All IPv4 addresses, sorted by device and address.
    pub fn addresses(&self) -> Result<Vec<Address>> {
        let mut message = AddressMessage::default();
        message.header.family = AddressFamily::Inet;
        let answers = self.route_request(
            "list addresses",
            RouteNetlinkMessage::GetAddress(message),
            NLM_F_DUMP,
        )?;
        let mut addresses: Vec<Address> = answers.iter().filter_map(address_of).collect();
        addresses.sort_unstable();
        Ok(addresses)
    }
}

fn message(ifindex: u32, ip: Ipv4Addr, prefix_len: u8) -> Result<AddressMessage> {
    if prefix_len > 32 {
        return Err(NetError::invalid(
            "prefix of an IPv4 address",
            prefix_len,
            "0 to 32 bits",
        ));
    }
    let mut message = AddressMessage::default();
    message.header.family = AddressFamily::Inet;
    message.header.prefix_len = prefix_len;
    message.header.index = ifindex;
    message
        .attributes
        .push(AddressAttribute::Local(IpAddr::V4(ip)));
    message
        .attributes
        .push(AddressAttribute::Address(IpAddr::V4(ip)));
    Ok(message)
}

fn address_of(answer: &RouteNetlinkMessage) -> Option<Address> {
    let RouteNetlinkMessage::NewAddress(message) = answer else {
        return None;
    };
    let ip = message
        .attributes
        .iter()
        .find_map(|attribute| match attribute {
            AddressAttribute::Local(IpAddr::V4(ip)) => Some(*ip),
            _ => None,
        })?;
    Some(Address {
        ifindex: message.header.index,
        ip,
        prefix_len: message.header.prefix_len,
    })
}
