//! Looks up routes in the routing tables, including policy rules.

use std::net::{IpAddr, Ipv4Addr};

use netlink_packet_route::route::{RouteAddress, RouteAttribute, RouteFlags, RouteMessage};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};

use crate::{Namespace, Result};

impl Namespace {
    /// Succeeds if an entry of the routing tables leads from `source` to `destination`, over a device if one is given.
    ///
    /// Connecting a socket is not a replacement for this: a socket that is bound to a device sends even without such an entry,
    /// because the kernel then takes every destination for a neighbour on that device, which only real neighbours answer.
    ///
    /// # Errors
    ///
    /// [`NetError::Kernel`](crate::NetError::Kernel): ENETUNREACH or EHOSTUNREACH without an entry, ENETUNREACH or EINVAL for
    /// a source that is not an address of this host; EACCES for an entry that prohibits the destination.
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
