//! Looks up routes in the routing tables, including policy rules.

use std::io;
use std::net::IpAddr;

use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteFlags, RouteMessage, RouteType,
};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};

use crate::{Namespace, NetError, Result};

impl Namespace {
    /// Succeeds if an entry of the routing tables leads from `source` to `destination`, over a device if one is given.
    ///
    /// Connecting a socket is not a replacement for this: a socket that is bound to a device sends even without such an entry,
    /// because the kernel then takes every destination for a neighbour on that device, which only real neighbours answer.
    ///
    /// # Errors
    ///
    /// [`NetError::Kernel`]: ENETUNREACH or EHOSTUNREACH without an entry, ENETUNREACH or EINVAL for
    /// a source that is not an address of this host; EACCES for an entry that prohibits the destination.
    /// [`NetError::Invalid`] for addresses of different versions of IP.
    pub fn lookup_route(
        &self,
        source: IpAddr,
        destination: IpAddr,
        ifindex: Option<u32>,
    ) -> Result<()> {
        let what = format!("look up the route from {source} to {destination}");
        if source.is_ipv4() != destination.is_ipv4() {
            let expected = "both addresses of one version of IP";
            return Err(NetError::invalid(what, source, expected));
        }
        let found = self.entry(&what, Some(source), destination, ifindex)?;
        // With a source, the kernel also answers with a better entry of IPv6 over another device, which a socket that is bound
        // to the device does not use (`ip6_route_output_flags_noref` in net/ipv6/route.c).
        if destination.is_ipv6() && ifindex.is_some() && device_of(&found) != ifindex {
            self.entry(&what, None, destination, ifindex)?;
        }
        Ok(())
    }

    /// The entry of the tables that leads to `destination`.
    fn entry(
        &self,
        what: &str,
        source: Option<IpAddr>,
        destination: IpAddr,
        ifindex: Option<u32>,
    ) -> Result<RouteMessage> {
        let (family, bits) = match destination {
            IpAddr::V4(_) => (AddressFamily::Inet, 32),
            IpAddr::V6(_) => (AddressFamily::Inet6, 128),
        };
        let mut message = RouteMessage::default();
        message.header.address_family = family;
        message.header.source_prefix_length = if source.is_some() { bits } else { 0 };
        message.header.destination_prefix_length = bits;
        message.header.flags = RouteFlags::FibMatch;
        let attributes = &mut message.attributes;
        attributes.push(RouteAttribute::Destination(RouteAddress::from(destination)));
        attributes.extend(source.map(|ip| RouteAttribute::Source(RouteAddress::from(ip))));
        attributes.extend(ifindex.map(RouteAttribute::Oif));
        let request = RouteNetlinkMessage::GetRoute(message);
        match self.route_request(what, request, 0)?.pop() {
            Some(RouteNetlinkMessage::NewRoute(found)) => usable(what, found),
            _ => Err(NetError::malformed(what, "no route in it")),
        }
    }
}

/// An error for an entry that refuses its destination. With IPv4, the kernel answers with that error instead.
fn usable(what: &str, found: RouteMessage) -> Result<RouteMessage> {
    let errno = match found.header.kind {
        RouteType::Prohibit => libc::EACCES,
        RouteType::BlackHole | RouteType::Unreachable => libc::EHOSTUNREACH,
        _ => return Ok(found),
    };
    Err(NetError::kernel(what, io::Error::from_raw_os_error(errno)))
}

/// The device of an entry; `None` for an entry with several.
fn device_of(found: &RouteMessage) -> Option<u32> {
    found
        .attributes
        .iter()
        .find_map(|attribute| match attribute {
            RouteAttribute::Oif(ifindex) => Some(*ifindex),
            _ => None,
        })
}
