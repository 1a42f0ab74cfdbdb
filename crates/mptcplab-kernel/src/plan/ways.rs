//! Host routes: every node on a subflow's path has a route to its destination along the path and one to its source along the
//! return path.

use super::{FlowPlan, tcp};
use mptcplab_scenario::{Run, TcpFlow, Transport};
use std::net::Ipv4Addr;

/// A route to one address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Route {
    /// The node that has the route.
    pub(crate) node: usize,
    pub(crate) to: Ipv4Addr,
    /// The link on which packets leave; its device has the same index.
    pub(crate) link: usize,
    pub(crate) metrics: Metrics,
}

/// Settings of the connections that use a route. Routes between the ends have none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Metrics {
    /// Largest IP packet, such that segments have the size of the scenario.
    pub(crate) mtu: Option<u32>,
    pub(crate) initial_cwnd: Option<u32>,
    /// Whether every segment is acknowledged at once.
    pub(crate) quick_ack: bool,
    pub(crate) ecn: bool,
}

/// IP (20), TCP (20) and timestamp (12) bytes of a data segment.
pub(super) const TCP_HEADER_BYTES: u32 = 52;
/// Size of the DSS option of a data segment (RFC 8684 section 3.3) as Linux sends it: 4 bytes of header, a 32-bit DATA_ACK, a
/// 64-bit data sequence number, 6 bytes of mapping, padded.
pub(super) const DSS_BYTES: u32 = 24;

pub(super) fn routes(run: &Run, flows: &[FlowPlan]) -> Vec<Route> {
    let mut routes = Vec::new();
    for (flow, plan) in run.flows.iter().zip(flows) {
        match &flow.transport {
            Transport::Udp(udp) => along(
                run,
                &udp.path,
                plan.subflows[0].destination,
                Metrics::default(),
                &mut routes,
            ),
            Transport::Sctp(_) => unreachable!("refused by unsupported.rs"),
            Transport::Tcp(tcp) => {
                for (subflow, ends) in tcp.subflows.iter().zip(&plan.subflows) {
                    along(
                        run,
                        &subflow.path,
                        ends.destination,
                        forward(tcp),
                        &mut routes,
                    );
                    along(
                        run,
                        &subflow.reverse,
                        ends.source,
                        backward(run, tcp),
                        &mut routes,
                    );
                }
            }
        }
    }
    debug_assert!(
        flows.len() == run.flows.len()
            && run
                .flows
                .iter()
                .all(|f| tcp(f).is_none_or(|t| !t.subflows.is_empty()))
    );
    routes
}

/// Adds routes to an address along a path. Only the first one has metrics, because only end hosts use them.
fn along(run: &Run, path: &[usize], to: Ipv4Addr, metrics: Metrics, routes: &mut Vec<Route>) {
    for (hop, &link) in path.iter().enumerate() {
        let metrics = if hop == 0 {
            metrics
        } else {
            Metrics::default()
        };
        routes.push(Route {
            node: run.links[link].from,
            to,
            link,
            metrics,
        });
    }
}

/// Size of the IP packet of a full segment.
pub(super) fn mtu(tcp: &TcpFlow) -> u32 {
    tcp.mss_bytes + TCP_HEADER_BYTES + if tcp.mptcp { DSS_BYTES } else { 0 }
}

/// Linux's default initial window, which needs no metric.
const DEFAULT_INITIAL_CWND: u32 = 10;

fn forward(tcp: &TcpFlow) -> Metrics {
    let initial_cwnd = tcp.options.initial_cwnd_pkts;
    Metrics {
        mtu: Some(mtu(tcp)),
        initial_cwnd: (initial_cwnd != DEFAULT_INITIAL_CWND).then_some(initial_cwnd),
        quick_ack: false,
        ecn: tcp.options.ecn,
    }
}

fn backward(run: &Run, tcp: &TcpFlow) -> Metrics {
    Metrics {
        mtu: Some(mtu(tcp)),
        initial_cwnd: None,
        quick_ack: !run.profile.delayed_acks(),
        ecn: tcp.options.ecn,
    }
}
