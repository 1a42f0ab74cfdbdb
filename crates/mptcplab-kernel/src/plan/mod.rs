//! Plans what a run needs in the kernel: namespaces, devices, addresses, routes, algorithms, ports. The plan is a pure
//! function of the resolved scenario, so supervisor and lab compute the same one independently.
//!
//! Only nodes where flows begin or end are namespaces; between them packets go from link to link in the emulator. Every
//! subflow has a source and a destination address of its own, which tell the emulator the way of a packet. This separates
//! two subflows of a connection over the same links, and a path from a different return path.

mod address;
mod capacity;
mod unsupported;
mod ways;

pub(crate) use address::Endpoints;
pub(crate) use unsupported::{UnsupportedSetting, unsupported_settings};
pub(crate) use ways::{Metrics, Way};

use mptcplab_scenario::{
    CcConfig, Flow, RcvBuffer, Run, SchedulerKind, TcpFlow, Traffic, Transport,
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::net::Ipv4Addr;

/// The scheduler of every MPTCP connection; the kernel has no other.
pub(crate) const SCHEDULER: SchedulerKind = SchedulerKind::Linger;

/// Flow i listens on this port plus i.
const FIRST_PORT: u16 = 10_000;

/// MTU of the devices: enough for any segment; routes limit the size of packets.
pub(crate) const DEVICE_MTU: u32 = 9_216;

/// The plan of a run. The supervisor adds the kernel-visible names of the algorithms.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Plan {
    /// A namespace for each node where flows begin or end.
    pub(crate) nodes: Vec<NodePlan>,
    /// TUN devices.
    pub(crate) ports: Vec<PortPlan>,
    /// For each directed link the port whose packets enter it, if a way begins there.
    pub(crate) entries: Vec<Option<usize>>,
    /// For each directed link the port into which it delivers, if a way ends there.
    pub(crate) exits: Vec<Option<usize>>,
    pub(crate) flows: Vec<FlowPlan>,
    pub(crate) ways: Vec<Way>,
    /// The distinct algorithms, to which flows refer by index.
    pub(crate) algorithms: Vec<AlgorithmPlan>,
}

/// A namespace.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct NodePlan {
    pub(crate) name: String,
    /// Addresses of the subflows that begin or end here.
    pub(crate) addresses: Vec<Ipv4Addr>,
    /// Whether MPTCP connections are opened here; the engine itself opens their subflows.
    pub(crate) opens_mptcp: bool,
    /// Whether MPTCP connections are accepted here.
    pub(crate) accepts_mptcp: bool,
    /// `tcp_rmem` (default and maximum) if connections end here.
    pub(crate) receive_buffer: Option<Buffer>,
    /// Whether windows shrink while idle, if connections begin here.
    pub(crate) slow_start_after_idle: Option<bool>,
    /// Timeouts after which a subflow is stale, if MPTCP connections begin here and a flow sets it.
    pub(crate) stale_after: Option<u32>,
}

/// Default and maximum of `tcp_rmem` in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Buffer {
    pub(crate) default: u64,
    pub(crate) max: u64,
}

/// A TUN device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PortPlan {
    pub(crate) name: String,
    /// Index into [`Plan::nodes`].
    pub(crate) node: usize,
}

/// The plan of a flow.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct FlowPlan {
    /// Where it begins and ends, as indices into [`Plan::nodes`].
    pub(crate) from: usize,
    pub(crate) to: usize,
    pub(crate) port: u16,
    /// Addresses of each subflow; one pair for UDP.
    pub(crate) subflows: Vec<Endpoints>,
    /// Index into [`Plan::algorithms`]; none for UDP.
    pub(crate) algorithm: Option<usize>,
    /// Sum of the bottleneck rates of the paths, in bit/s.
    pub(crate) rate_bps: u64,
    /// Layer-2 overhead of a packet on the first link.
    pub(crate) overhead_bytes: u32,
    /// Whether every transfer has a connection of its own.
    pub(crate) connection_per_transfer: bool,
    /// Connections that the flow may have at a time.
    pub(crate) max_connections: u32,
}

/// An algorithm with all settings for which it must be loaded separately.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct AlgorithmPlan {
    pub(crate) choice: CcConfig,
    /// Whether congestion avoidance counts ACKs instead of packets.
    pub(crate) growth_per_ack: bool,
    /// Whether to pace at Linux's default gains.
    pub(crate) pacing: bool,
    /// How many connections may use it at a time.
    pub(crate) connections: u32,
}

impl Plan {
    /// The plan of a run. [`unsupported_settings`] must have found nothing to refuse.
    pub(crate) fn new(run: &Run) -> Self {
        let subflows = address::assign(run);
        let hosts = hosts(run);
        let mut algorithms = Vec::new();
        let max_transfers_per_flow = max_transfers_per_flow(run);
        let flows: Vec<FlowPlan> = run
            .flows
            .iter()
            .zip(subflows)
            .enumerate()
            .map(|(index, (flow, subflows))| {
                let [from, to] = ends(run, flow).map(|node| index_of(&hosts, node));
                let connection_per_transfer = connection_per_transfer(flow);
                let max_connections = if connection_per_transfer {
                    max_transfers_per_flow
                } else {
                    1
                };
                FlowPlan {
                    from,
                    to,
                    connection_per_transfer,
                    max_connections,
                    // There are fewer flows than ports: `unsupported_settings` bounds them.
                    port: FIRST_PORT + u16::try_from(index).unwrap_or(0),
                    subflows,
                    algorithm: tcp(flow)
                        .map(|tcp| algorithm(&mut algorithms, run, tcp, max_connections)),
                    overhead_bytes: run.links[paths(flow)[0][0]].config.overhead_bytes,
                    rate_bps: paths(flow)
                        .iter()
                        .map(|path| bottleneck_bps(run, path))
                        .sum(),
                }
            })
            .collect();
        let ways = ways::ways(run, &flows);
        let (ports, entries, exits) = ports(run, &hosts, &ways);
        Self {
            nodes: nodes(run, &hosts, &flows),
            ports,
            entries,
            exits,
            ways,
            flows,
            algorithms,
        }
    }
}

/// The TCP or MPTCP settings of a flow; `None` for other transports.
pub(crate) fn tcp(flow: &Flow) -> Option<&TcpFlow> {
    match &flow.transport {
        Transport::Tcp(tcp) => Some(tcp),
        Transport::Sctp(_) | Transport::Udp(_) => None,
    }
}

/// Forward paths of a flow.
pub(crate) fn paths(flow: &Flow) -> Vec<&[usize]> {
    match &flow.transport {
        Transport::Tcp(_) | Transport::Sctp(_) => {
            flow.subflows().iter().map(|s| s.path.as_slice()).collect()
        }
        Transport::Udp(udp) => vec![&udp.path],
    }
}

/// Nodes of the run where a flow begins and ends. The scenario crate leaves no path empty.
fn ends(run: &Run, flow: &Flow) -> [usize; 2] {
    let path = paths(flow)[0];
    [run.links[path[0]].from, run.links[path[path.len() - 1]].to]
}

/// The nodes of the run where flows begin or end, in ascending order.
fn hosts(run: &Run) -> Vec<usize> {
    let ends: BTreeSet<usize> = run.flows.iter().flat_map(|flow| ends(run, flow)).collect();
    ends.into_iter().collect()
}

/// The index of a node among the hosts, of which it is one.
fn index_of(hosts: &[usize], node: usize) -> usize {
    let found = hosts.binary_search(&node);
    found.unwrap_or_else(|_| unreachable!("every end of a flow is a host"))
}

/// Largest rate that a path ever has, in bit/s: of each link the largest of its schedule or the mean of its trace.
fn bottleneck_bps(run: &Run, path: &[usize]) -> u64 {
    path.iter()
        .map(|&link| capacity::peak_bps(&run.links[link].config))
        .min()
        .unwrap_or(0)
}

/// The devices, the entries of links with which ways begin, and the exits of links with which ways end: the entry of the
/// same link's other direction, or another one at that node, or a device of its own.
fn ports(
    run: &Run,
    hosts: &[usize],
    ways: &[Way],
) -> (Vec<PortPlan>, Vec<Option<usize>>, Vec<Option<usize>>) {
    let mut ports: Vec<PortPlan> = Vec::new();
    let mut entries = vec![None; run.links.len()];
    for (index, link) in run.links.iter().enumerate() {
        if ways.iter().any(|way| way.links.first() == Some(&index)) {
            entries[index] = Some(ports.len());
            ports.push(PortPlan {
                name: format!("link{index}"),
                node: index_of(hosts, link.from),
            });
        }
    }
    let mut exits = vec![None; run.links.len()];
    for (index, link) in run.links.iter().enumerate() {
        if ways.iter().any(|way| way.links.last() == Some(&index)) {
            let node = index_of(hosts, link.to);
            let same_pair = || other_direction(run, index).and_then(|other| entries[other]);
            let any = || ports.iter().position(|port| port.node == node);
            exits[index] = Some(same_pair().or_else(any).unwrap_or_else(|| {
                ports.push(PortPlan {
                    name: format!("exit{index}"),
                    node,
                });
                ports.len() - 1
            }));
        }
    }
    (ports, entries, exits)
}

/// The other direction of a duplex link.
fn other_direction(run: &Run, index: usize) -> Option<usize> {
    let link = &run.links[index];
    run.links.iter().position(|other| {
        (other.from, other.to) == (link.to, link.from)
            && (other.name == format!("{}~", link.name) || link.name == format!("{}~", other.name))
    })
}

/// Most transfers in progress of one flow, and of all flows together: each needs two sockets and room in the tables of
/// algorithm and tracer.
const MAX_TRANSFERS_PER_FLOW: u32 = 1_024;
const MAX_TRANSFERS: u32 = 8_192;

/// Most transfers of one flow that may be in progress in this run.
fn max_transfers_per_flow(run: &Run) -> u32 {
    let flows = run
        .flows
        .iter()
        .filter(|flow| connection_per_transfer(flow))
        .count();
    // A run has at most 256 flows.
    (MAX_TRANSFERS / u32::try_from(flows.max(1)).unwrap_or(u32::MAX))
        .clamp(1, MAX_TRANSFERS_PER_FLOW)
}

/// Whether every transfer of a flow has a connection of its own.
fn connection_per_transfer(flow: &Flow) -> bool {
    tcp(flow).is_some_and(|tcp| matches!(tcp.traffic, Traffic::Transfers(_)))
}

fn algorithm(
    all: &mut Vec<AlgorithmPlan>,
    run: &Run,
    tcp: &TcpFlow,
    max_connections: u32,
) -> usize {
    let coupled = mptcplab_cc::find(&tcp.cc.name).is_some_and(mptcplab_cc::Algorithm::coupled);
    let wanted = AlgorithmPlan {
        choice: tcp.cc.clone(),
        growth_per_ack: run.profile.growth_per_ack(coupled),
        pacing: tcp.options.pacing,
        connections: 0,
    };
    let index = all.iter().position(|one| {
        AlgorithmPlan {
            connections: 0,
            ..one.clone()
        } == wanted
    });
    let index = index.unwrap_or_else(|| {
        all.push(wanted);
        all.len() - 1
    });
    all[index].connections += max_connections;
    index
}

fn nodes(run: &Run, hosts: &[usize], flows: &[FlowPlan]) -> Vec<NodePlan> {
    let mut nodes: Vec<NodePlan> = hosts
        .iter()
        .map(|&node| NodePlan {
            name: run.nodes[node].clone(),
            addresses: Vec::new(),
            opens_mptcp: false,
            accepts_mptcp: false,
            receive_buffer: None,
            slow_start_after_idle: None,
            stale_after: None,
        })
        .collect();
    for (flow, plan) in run.flows.iter().zip(flows) {
        nodes[plan.from]
            .addresses
            .extend(plan.subflows.iter().map(|s| s.source));
        nodes[plan.to]
            .addresses
            .extend(plan.subflows.iter().map(|s| s.destination));
        if let Some(tcp) = tcp(flow) {
            nodes[plan.from].opens_mptcp |= tcp.mptcp;
            nodes[plan.to].accepts_mptcp |= tcp.mptcp;
            nodes[plan.from].slow_start_after_idle = Some(tcp.options.slow_start_after_idle);
            if tcp.mptcp {
                nodes[plan.from].stale_after = tcp.options.stale_after;
            }
            // Buffers for segments with and without a DSS option differ by 1 %; unsupported.rs refuses larger differences.
            let buffer = receive_buffer(tcp);
            let larger = |other: Buffer| {
                if other.max > buffer.max {
                    other
                } else {
                    buffer
                }
            };
            nodes[plan.to].receive_buffer =
                Some(nodes[plan.to].receive_buffer.map_or(buffer, larger));
        }
    }
    nodes
}

/// Maximum receive buffer that never limits a flow: half of it becomes window, and TCP can announce at most 2^30 bytes. It
/// starts at the usual size, because Linux acknowledges every segment at once while the window grows (`tcp_grow_window`),
/// which would last for 58,000 segments with an initial buffer of this size.
const UNLIMITED_BYTES: u64 = 1 << 28;
/// Linux's default of `tcp_rmem[1]`, the initial size of an automatic buffer.
const AUTO_START_BYTES: u64 = 131_072;
/// Memory that Linux adds to a packet from a TUN device: headroom and shared information, in one allocation with the packet
/// whose size is a power of two, and the structure of the packet. A packet of 1500 bytes takes 2304 bytes in all.
const PACKET_EXTRA_BYTES: u64 = 64 + 320;
const PACKET_STRUCTURE_BYTES: u64 = 256;

/// The buffer that holds `payload_bytes` in full segments. The kernel announces the share of a buffer that can hold payload,
/// rounded down to a 256th (`scaling_ratio`).
fn receive_memory(tcp: &TcpFlow, payload_bytes: u64) -> u64 {
    let packet = u64::from(ways::mtu(tcp)) + PACKET_EXTRA_BYTES;
    let truesize = packet.next_power_of_two() + PACKET_STRUCTURE_BYTES;
    let part = (256 * u64::from(tcp.mss_bytes) / truesize).max(1);
    payload_bytes.saturating_mul(256).div_ceil(part)
}

/// The buffer that makes the scenario's window.
fn receive_buffer(tcp: &TcpFlow) -> Buffer {
    match tcp.rcv_buffer {
        RcvBuffer::Unlimited => Buffer {
            default: AUTO_START_BYTES,
            max: UNLIMITED_BYTES,
        },
        RcvBuffer::Fixed(bytes) | RcvBuffer::FixedMemory(bytes) => {
            let memory = receive_memory(tcp, bytes);
            Buffer {
                default: memory,
                max: memory,
            }
        }
        RcvBuffer::Auto { max_bytes, .. } => Buffer {
            default: AUTO_START_BYTES.min(max_bytes),
            max: max_bytes,
        },
    }
}

#[cfg(test)]
mod tests;
