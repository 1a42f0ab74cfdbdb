//! The addresses, devices and routes of this host that decide from where subflows can be opened.

use super::counters::Counters;
use crate::facts::{Endpoint, PathManagement};
use mptcplab_net::Namespace;
use nix::ifaddrs::getifaddrs;
use nix::net::if_::{InterfaceFlags, if_nametoindex};
use std::collections::BTreeMap;
use std::io;
use std::net::IpAddr;

/// An address of a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Address {
    pub(super) ip: IpAddr,
    pub(super) device: String,
    pub(super) is_up: bool,
}

/// The facts about the host that the explanations need.
#[derive(Debug, Clone, Default)]
pub(super) struct Host {
    /// Addresses that peers can reach, which excludes loopback and link-local addresses.
    pub(super) addresses: Vec<Address>,
    pub(super) paths: PathManagement,
    /// Whether the path manager is in user space.
    pub(super) userspace: bool,
    pub(super) counters: Counters,
    /// Algorithms that more sockets of this network namespace run than use what is loaded under the name.
    pub(super) older_loads: Vec<String>,
    /// Subflows that ran uncoupled since the algorithm of this name was loaded, where there are any.
    pub(super) uncoupled: BTreeMap<String, u64>,
    /// The error number for each (endpoint's address, peer's address) without a route.
    pub(super) no_route: BTreeMap<(IpAddr, IpAddr), i32>,
}

/// The addresses of the network namespace of this process.
pub(super) fn addresses() -> io::Result<Vec<Address>> {
    let mut found = Vec::new();
    for entry in getifaddrs()? {
        let up = entry
            .flags
            .contains(InterfaceFlags::IFF_UP | InterfaceFlags::IFF_RUNNING);
        let Some(ip) = entry.address.and_then(|address| {
            let v4 = address.as_sockaddr_in().map(|a| IpAddr::from(a.ip()));
            v4.or_else(|| address.as_sockaddr_in6().map(|a| IpAddr::from(a.ip())))
        }) else {
            continue;
        };
        if is_reachable(ip) {
            found.push(Address {
                ip,
                device: entry.interface_name,
                is_up: up,
            });
        }
    }
    Ok(found)
}

/// Whether peers can reach an address, if a device has it.
pub(super) fn is_reachable(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => !ip.is_loopback() && !ip.is_link_local(),
        IpAddr::V6(ip) => !ip.is_loopback() && !ip.is_unicast_link_local(),
    }
}

/// Looks up the route from an endpoint's address to the peer, over the endpoint's device if it has one. The error is the
/// kernel's error number. There is no route to another version of IP, and nothing is looked up.
pub(super) fn route(namespace: &Namespace, endpoint: &Endpoint, peer: IpAddr) -> Result<(), i32> {
    let device = endpoint
        .device
        .as_ref()
        .map(|name| if_nametoindex(name.as_str()))
        .transpose()
        .map_err(|errno| errno as i32)?;
    if endpoint.address.is_ipv4() != peer.is_ipv4() {
        return Ok(());
    }
    namespace
        .lookup_route(endpoint.address, peer, device)
        .map_err(|error| error.errno().unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_way_is_looked_up_from_an_address_of_this_host_only() {
        let here = Namespace::current().unwrap();
        let peer: IpAddr = [127, 0, 0, 1].into();
        let mut endpoint = Endpoint {
            address: [127, 0, 0, 3].into(),
            id: 1,
            flags: vec![],
            device: None,
        };
        assert_eq!(route(&here, &endpoint, peer), Ok(()));
        // An address for documentation, which no host has.
        endpoint.address = [192, 0, 2, 1].into();
        assert!(route(&here, &endpoint, peer).is_err());
        endpoint.device = Some("no-such-device".into());
        assert_eq!(route(&here, &endpoint, peer), Err(libc::ENODEV));
    }

    #[test]
    fn loopback_is_no_place_to_start_from() {
        let addresses = addresses().unwrap();
        assert!(
            addresses.iter().all(|address| !address.ip.is_loopback()),
            "{addresses:?}"
        );
    }
}
