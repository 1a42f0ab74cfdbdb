//! Whether a packet would find a way: a lookup in the routing tables, rules included.

use std::net::{IpAddr, Ipv4Addr};

use netlink_packet_route::route::{RouteAddress, RouteAttribute, RouteFlags, RouteMessage};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};

use crate::{Namespace, Result};

impl Namespace {
    /// Succeeds if an entry of the routing tables leads from `source` to `destination`, over a device if one is given.
    ///
    /// A socket that is bound to a device sends without such an entry, too: the kernel then takes every destination for a
    /// neighbour on that device, which none but real neighbours answers. So connecting a socket does not tell.
    ///
    /// # Errors
    ///
    /// [`NetError::Kernel`](crate::NetError::Kernel): ENETUNREACH or EHOSTUNREACH without an entry, ENETUNREACH or EINVAL for
    /// a source that is no address of this host; EACCES for an entry that forbids the way.
    pub fn lookup_route(
        &self,
        source: Ipv4Addr,
        destination: Ipv4Addr,
        ifindex: Option<u32>,
    ) -> Result<()> {
        let mut message = RouteMessage::default();
        message.header.address_family = AddressFamily::Inet;
        message.header.source_prefix_length = 32;
        message.header.destination_prefix_length = 32;
        message.header.flags = RouteFlags::FibMatch;
        message.attributes = vec![
            RouteAttribute::Destination(RouteAddress::from(IpAddr::V4(destination))),
            RouteAttribute::Source(RouteAddress::from(IpAddr::V4(source))),
        ];
        message.attributes.extend(ifindex.map(RouteAttribute::Oif));
        let what = format!("look up the route from {source} to {destination}");
        self.route_request(&what, RouteNetlinkMessage::GetRoute(message), 0)?;
        Ok(())
    }
}
