//! IPv4 routes of a namespace's main table, with the metrics that TCP reads from them.
//!
//! TCP's use of the metrics follows from its sources (`net/ipv4/tcp_metrics.c`, `tcp_input.c`, `tcp_output.c`) and is tested
//! on connections. MTU, initial windows, ECN and quick acknowledgements take effect at once, the minimum timeout only if it is
//! locked. The clamp of the window and the slow-start threshold take effect through the namespace's table of destinations:
//! since Linux 6.9 only a connection that ends in order puts its destination there, and only if
//! `net.ipv4.tcp_no_metrics_save` is 0, so the first connection to a destination ignores them. The threshold also needs
//! `net.ipv4.tcp_no_ssthresh_metrics_save` to be 0.

use std::net::Ipv4Addr;

use netlink_packet_core::{NLM_F_CREATE, NLM_F_DUMP, NLM_F_EXCL, NLM_F_REPLACE};
use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteHeader, RouteMessage, RouteMetric, RouteProtocol,
    RouteScope, RouteType,
};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};

use crate::{Namespace, NetError, Result};

// include/uapi/linux/rtnetlink.h: the metrics' numbers, which are bits of RTAX_LOCK.
const RTAX_MTU: u32 = 2;
const RTAX_SSTHRESH: u32 = 6;
const RTAX_CWND: u32 = 7;
const RTAX_RTO_MIN: u32 = 13;
/// TCP negotiates ECN over this route regardless of the sysctl.
const RTAX_FEATURE_ECN: u32 = 1;

/// A route of the main table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Route {
    pub destination: Ipv4Addr,
    /// The length of its prefix in bits.
    pub prefix_len: u8,
    /// The device that packets leave by.
    pub ifindex: u32,
    /// The next router, on devices that need one.
    pub gateway: Option<Ipv4Addr>,
    /// The source address of sockets that are not bound to one.
    pub source: Option<Ipv4Addr>,
    /// What TCP reads from the route.
    pub metrics: Metrics,
}

/// What TCP reads from a route; `None` leaves the kernel's default.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Metrics {
    /// The largest IP packet, in bytes.
    pub mtu_bytes: Option<u32>,
    /// Whether path-MTU discovery is off: the MTU stays and packets go without the DF bit.
    pub mtu_is_locked: bool,
    /// The segment size announced to the peer, in bytes.
    pub advmss_bytes: Option<u32>,
    pub initcwnd_pkts: Option<u32>,
    /// The largest congestion window, in packets. It is locked, because TCP ignores it otherwise. The first connection to a
    /// destination ignores it; see the module's documentation.
    pub cwnd_clamp_pkts: Option<u32>,
    /// The initial slow-start threshold, in packets. It is locked. The first connection to a destination ignores it; see the
    /// module's documentation.
    pub ssthresh_pkts: Option<u32>,
    /// The initial receive window, in packets.
    pub initrwnd_pkts: Option<u32>,
    /// Acknowledge every segment at once, during the whole connection.
    pub quickack: bool,
    pub ecn: bool,
    /// The minimum retransmission timeout, in milliseconds. It is locked, because TCP ignores it otherwise.
    pub rto_min_ms: Option<u32>,
}

impl Route {
    /// The route to one address over a device that needs no router.
    #[must_use]
    pub fn host(destination: Ipv4Addr, ifindex: u32) -> Self {
        Self {
            destination,
            prefix_len: 32,
            ifindex,
            gateway: None,
            source: None,
            metrics: Metrics::default(),
        }
    }
}

impl Namespace {
    /// Adds a route.
    ///
    /// # Errors
    ///
    /// [`NetError::Kernel`]: EEXIST where the destination has a route, ENETDOWN while the device is down.
    pub fn add_route(&self, route: &Route) -> Result<()> {
        self.write_route("add", route, NLM_F_CREATE | NLM_F_EXCL)
    }

    /// Adds a route or replaces the one that its destination has. Live connections see new metrics with their next lookup.
    ///
    /// # Errors
    ///
    /// [`NetError::Kernel`]: ENETDOWN while the device is down.
    pub fn replace_route(&self, route: &Route) -> Result<()> {
        self.write_route("replace", route, NLM_F_CREATE | NLM_F_REPLACE)
    }

    fn write_route(&self, verb: &str, route: &Route, flags: u16) -> Result<()> {
        let what = format!(
            "{verb} the route to {}/{} over device {}",
            route.destination, route.prefix_len, route.ifindex
        );
        self.route_request(&what, RouteNetlinkMessage::NewRoute(message(route)?), flags)?;
        Ok(())
    }

    /// Removes the route to a destination.
    ///
    /// # Errors
    ///
    /// [`NetError::Kernel`] with ESRCH if there is none.
    pub fn delete_route(&self, destination: Ipv4Addr, prefix_len: u8) -> Result<()> {
        let mut message = header(prefix_len)?;
        message.header.scope = RouteScope::NoWhere;
        message
            .attributes
            .push(RouteAttribute::Destination(RouteAddress::Inet(destination)));
        let what = format!("remove the route to {destination}/{prefix_len}");
        self.route_request(&what, RouteNetlinkMessage::DelRoute(message), 0)?;
        Ok(())
    }

    /// The routes of the main table, sorted by destination.
    pub fn routes(&self) -> Result<Vec<Route>> {
        let mut message = RouteMessage::default();
        message.header.address_family = AddressFamily::Inet;
        let answers = self.route_request(
            "list routes",
            RouteNetlinkMessage::GetRoute(message),
            NLM_F_DUMP,
        )?;
        let mut routes: Vec<Route> = answers.iter().filter_map(route_of).collect();
        routes.sort_by_key(|route| (route.destination, route.prefix_len));
        Ok(routes)
    }
}

fn header(prefix_len: u8) -> Result<RouteMessage> {
    if prefix_len > 32 {
        return Err(NetError::invalid(
            "prefix of a route",
            prefix_len,
            "0 to 32 bits",
        ));
    }
    let mut message = RouteMessage::default();
    message.header.address_family = AddressFamily::Inet;
    message.header.destination_prefix_length = prefix_len;
    message.header.table = RouteHeader::RT_TABLE_MAIN;
    Ok(message)
}

fn message(route: &Route) -> Result<RouteMessage> {
    let mut message = header(route.prefix_len)?;
    message.header.protocol = RouteProtocol::Static;
    message.header.kind = RouteType::Unicast;
    message.header.scope = if route.gateway.is_some() {
        RouteScope::Universe
    } else {
        RouteScope::Link
    };
    message
        .attributes
        .push(RouteAttribute::Destination(RouteAddress::Inet(
            route.destination,
        )));
    message.attributes.push(RouteAttribute::Oif(route.ifindex));
    if let Some(gateway) = route.gateway {
        message
            .attributes
            .push(RouteAttribute::Gateway(RouteAddress::Inet(gateway)));
    }
    if let Some(source) = route.source {
        message
            .attributes
            .push(RouteAttribute::PrefSource(RouteAddress::Inet(source)));
    }
    let metrics = metrics(&route.metrics);
    if !metrics.is_empty() {
        message.attributes.push(RouteAttribute::Metrics(metrics));
    }
    Ok(message)
}

fn metrics(metrics: &Metrics) -> Vec<RouteMetric> {
    let bit = |is_locked: bool, number: u32| u32::from(is_locked) << number;
    let locked = bit(
        metrics.mtu_is_locked && metrics.mtu_bytes.is_some(),
        RTAX_MTU,
    ) | bit(metrics.cwnd_clamp_pkts.is_some(), RTAX_CWND)
        | bit(metrics.ssthresh_pkts.is_some(), RTAX_SSTHRESH)
        | bit(metrics.rto_min_ms.is_some(), RTAX_RTO_MIN);
    [
        (locked != 0).then_some(RouteMetric::Lock(locked)),
        metrics.mtu_bytes.map(RouteMetric::Mtu),
        metrics.advmss_bytes.map(RouteMetric::Advmss),
        metrics.initcwnd_pkts.map(RouteMetric::InitCwnd),
        metrics.cwnd_clamp_pkts.map(RouteMetric::Cwnd),
        metrics.ssthresh_pkts.map(RouteMetric::SsThresh),
        metrics.initrwnd_pkts.map(RouteMetric::InitRwnd),
        metrics.quickack.then_some(RouteMetric::QuickAck(1)),
        metrics
            .ecn
            .then_some(RouteMetric::Features(RTAX_FEATURE_ECN)),
        metrics.rto_min_ms.map(RouteMetric::RtoMin),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Decodes a unicast route of the main table; `None` for others, such as the kernel's local routes.
fn route_of(answer: &RouteNetlinkMessage) -> Option<Route> {
    let RouteNetlinkMessage::NewRoute(message) = answer else {
        return None;
    };
    let header = &message.header;
    if header.table != RouteHeader::RT_TABLE_MAIN || header.kind != RouteType::Unicast {
        return None;
    }
    let mut route = Route::host(Ipv4Addr::UNSPECIFIED, 0);
    route.prefix_len = header.destination_prefix_length;
    for attribute in &message.attributes {
        match attribute {
            RouteAttribute::Destination(RouteAddress::Inet(ip)) => route.destination = *ip,
            RouteAttribute::Oif(ifindex) => route.ifindex = *ifindex,
            RouteAttribute::Gateway(RouteAddress::Inet(ip)) => route.gateway = Some(*ip),
            RouteAttribute::PrefSource(RouteAddress::Inet(ip)) => route.source = Some(*ip),
            RouteAttribute::Metrics(list) => route.metrics = metrics_of(list),
            _ => {}
        }
    }
    Some(route)
}

fn metrics_of(list: &[RouteMetric]) -> Metrics {
    let mut metrics = Metrics::default();
    for metric in list {
        match metric {
            RouteMetric::Lock(bits) => metrics.mtu_is_locked = bits >> RTAX_MTU & 1 == 1,
            RouteMetric::Mtu(bytes) => metrics.mtu_bytes = Some(*bytes),
            RouteMetric::Advmss(bytes) => metrics.advmss_bytes = Some(*bytes),
            RouteMetric::InitCwnd(packets) => metrics.initcwnd_pkts = Some(*packets),
            RouteMetric::Cwnd(packets) => metrics.cwnd_clamp_pkts = Some(*packets),
            RouteMetric::SsThresh(packets) => metrics.ssthresh_pkts = Some(*packets),
            RouteMetric::InitRwnd(packets) => metrics.initrwnd_pkts = Some(*packets),
            RouteMetric::QuickAck(value) => metrics.quickack = *value != 0,
            RouteMetric::Features(bits) => metrics.ecn = bits & RTAX_FEATURE_ECN != 0,
            RouteMetric::RtoMin(ms) => metrics.rto_min_ms = Some(*ms),
            _ => {}
        }
    }
    metrics
}
