//! The ways of packets: along each subflow's path, and back along its return path. The node where a way begins has a host
//! route to the address where it ends.

use super::FlowPlan;
use mptcplab_scenario::{Dss, Run, TCP_HEADER_BYTES, TcpFlow, Transport};
use std::net::Ipv4Addr;

/// The way of the packets from one address to another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Way {
    /// The node where it begins, as an index into [`Plan::nodes`](super::Plan::nodes).
    pub(crate) node: usize,
    pub(crate) source: Ipv4Addr,
    pub(crate) destination: Ipv4Addr,
    /// The links that the packets pass.
    pub(crate) links: Vec<usize>,
    /// Settings of the route to the destination.
    pub(crate) metrics: Metrics,
}

/// Settings of the connections that use a route.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Metrics {
    /// Largest IP packet, such that segments have the size of the scenario.
    pub(crate) mtu: Option<u32>,
    pub(crate) initial_cwnd: Option<u32>,
    /// Whether every segment is acknowledged at once.
    pub(crate) quick_ack: bool,
    pub(crate) ecn: bool,
}

/// The ways of all flows: first the paths, one for each subflow in the order of the flows, then the return paths.
pub(super) fn ways(run: &Run, flows: &[FlowPlan]) -> Vec<Way> {
    let planned = || run.flows.iter().zip(flows);
    let there = planned().flat_map(|(flow, plan)| {
        let metrics = super::tcp(flow).map(forward).unwrap_or_default();
        let paths = super::paths(flow).into_iter().zip(&plan.subflows);
        paths.map(move |(path, ends)| Way {
            node: plan.from,
            source: ends.source,
            destination: ends.destination,
            links: path.to_vec(),
            metrics,
        })
    });
    let back = planned().filter_map(|(flow, plan)| match &flow.transport {
        Transport::Udp(_) => None,
        Transport::Sctp(_) => unreachable!("refused by unsupported.rs"),
        Transport::Tcp(tcp) => Some((tcp, plan)),
    });
    let back = back.flat_map(|(tcp, plan)| {
        let metrics = backward(run, tcp);
        let subflows = tcp.subflows.iter().zip(&plan.subflows);
        subflows.map(move |(subflow, ends)| Way {
            node: plan.to,
            source: ends.destination,
            destination: ends.source,
            links: subflow.reverse.clone(),
            metrics,
        })
    });
    there.chain(back).collect()
}

/// Bytes of the headers of a data segment, whatever the scenario makes of the options.
pub(super) fn header_bytes(mptcp: bool) -> u32 {
    u32::from(TCP_HEADER_BYTES)
        + if mptcp {
            u32::from(Dss::Linux.data_bytes())
        } else {
            0
        }
}

/// Size of the IP packet of a full segment.
pub(super) fn mtu(tcp: &TcpFlow) -> u32 {
    tcp.mss_bytes + header_bytes(tcp.mptcp)
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
