//! What is sampled, and from where: the kernel's TCP_INFO and MPTCP_INFO at both ends, the emulator's counters, the
//! receiving application.
//!
//! What the kernel does not tell, and what becomes of it (null in the trace where nothing can be said):
//! - `ooo_bytes` is what the emulator delivered less what the receiver has in order. The two also differ by data that
//!   arrived twice, so it is null from the first such packet or reinjection on.
//! - `duplicate_pkts` counts the DSACK blocks that the senders received; null from the first reinjection on, whose
//!   duplicates nobody counts.
//! - `blocked_ns` of MPTCP is null: subflows count only the time in which data waited in their own queue.
//! - `reinjected_pkts` is the bytes that the connection sent again divided by the size of a segment, rounded up; null
//!   before Linux 6.5, where also `sent_bytes` of MPTCP includes reinjections.
//! - `rcv_window_bytes` is null before Linux 6.2.

use super::wire::{FlowSample, LinkSample, Sample, SubflowSample};
use crate::traffic::{Context, Life};
use mptcplab_emulator::{PairStats, Sample as Counters};
use mptcplab_net::mptcp::{self, MptcpInfo, Subflow};
use mptcplab_net::{TcpInfo, TcpState};
use mptcplab_scenario::{TcpFlow, Transport};
use std::collections::BTreeMap;
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::Ordering;

/// Keeps what is needed from one sample to the next.
#[derive(Debug)]
pub(super) struct Sampler {
    contexts: Vec<Context>,
    /// Subflows as they were last seen: their counters outlive them.
    last: BTreeMap<(usize, usize), SubflowSample>,
    last_flows: Vec<FlowSample>,
    /// Index of a flow's first pair among the emulator's.
    first_pair: Vec<usize>,
}

/// One end of a connection; a plain TCP connection is its own only subflow.
struct End {
    mptcp: Option<MptcpInfo>,
    subflows: Vec<Subflow>,
}

impl Sampler {
    pub(super) fn new(contexts: Vec<Context>) -> Self {
        let first_pair = contexts
            .iter()
            .scan(0, |next, context| {
                let first = *next;
                *next += context.plan.subflows.len();
                Some(first)
            })
            .collect();
        let last_flows = vec![FlowSample::default(); contexts.len()];
        Self {
            contexts,
            last: BTreeMap::new(),
            last_flows,
            first_pair,
        }
    }

    /// The state of everything now. `late_ns` is left to the caller.
    pub(super) fn take(&mut self, t_ns: u64, counters: &Counters) -> Sample {
        let mut sample = Sample {
            t_ns,
            ..Sample::default()
        };
        for index in 0..self.contexts.len() {
            let context = self.contexts[index].clone();
            let Transport::Tcp(tcp) = &context.flow.transport else {
                sample.flows.push(udp(&context));
                continue;
            };
            let sender = end(context.state.sender.get(), tcp.mptcp);
            let receiver = end(context.state.receiver.get(), tcp.mptcp);
            let pairs = &counters.pairs[self.first_pair[index]..][..tcp.subflows.len()];
            let last = &mut self.last_flows[index];
            if context.state.counts.load(Ordering::Acquire) {
                last.delivered_bytes = context.state.delivered.load(Ordering::Acquire);
            } else if let Some(receiver) = &receiver {
                last.delivered_bytes = in_order_bytes(receiver);
            }
            if let (Some(sender), Some(receiver)) = (&sender, &receiver) {
                let arrived = pairs.iter().map(|pair| pair.rx_payload_bytes).sum();
                update_flow(last, tcp, [sender, receiver], arrived);
            }
            sample.flows.push(last.clone());
            for (subflow, pair) in pairs.iter().enumerate() {
                sample
                    .subflows
                    .push(self.subflow(&context, subflow, sender.as_ref(), pair));
            }
        }
        sample.links = counters.links.iter().map(LinkSample::from).collect();
        sample
    }

    fn subflow(
        &mut self,
        context: &Context,
        subflow: usize,
        sender: Option<&End>,
        pair: &PairStats,
    ) -> SubflowSample {
        let source = context.plan.subflows[subflow].source;
        let life = context.state.life(subflow);
        let found =
            sender.and_then(|end| end.subflows.iter().find(|one| *one.local.ip() == source));
        let last = self.last.entry((context.index, subflow)).or_default();
        (last.flow, last.subflow) = (context.index as u32, subflow as u32);
        if let Some(one) = found {
            update(last, one);
        }
        last.state = match (life, found) {
            (Life::Closed | Life::Removed, _) => 0,
            (Life::Handshake, _) => 1,
            (Life::Open, Some(one)) if one.tcp.state == TcpState::Established => {
                2 + one.tcp.ca_state
            }
            (Life::Open, _) => 0,
        };
        last.rx_pkts = pair.rx_pkts;
        last.rx_wire_bytes = pair.rx_wire_bytes;
        last.rx_payload_bytes = pair.rx_payload_bytes;
        last.clone()
    }
}

/// What an end of a connection tells; nothing once the connection broke, which the thread that uses it reports.
fn end(stream: Option<&TcpStream>, is_mptcp: bool) -> Option<End> {
    let stream = stream?;
    if is_mptcp {
        let info = mptcp::full_info(stream).ok()?;
        return Some(End {
            mptcp: Some(info.mptcp),
            subflows: info.subflows,
        });
    }
    let tcp = mptcp::tcp_info(stream).ok()?;
    let (SocketAddr::V4(local), SocketAddr::V4(remote)) =
        (stream.local_addr().ok()?, stream.peer_addr().ok()?)
    else {
        return None;
    };
    Some(End {
        mptcp: None,
        subflows: vec![Subflow {
            id: None,
            local,
            remote,
            tcp,
        }],
    })
}

/// Whether a pacing rate is in force cannot be told from TCP_INFO: the tracer's record says so, and the director
/// decides.
fn update(row: &mut SubflowSample, found: &Subflow) {
    let tcp: &TcpInfo = &found.tcp;
    row.port = found.local.port();
    row.cwnd_pkts = tcp.snd_cwnd_pkts;
    row.ssthresh_pkts = tcp.snd_ssthresh_pkts;
    row.inflight_pkts = tcp.inflight_pkts();
    row.srtt_us = tcp.rtt_us;
    // The kernel's "none yet" is the largest number.
    row.min_rtt_us = if tcp.min_rtt_us == u32::MAX {
        0
    } else {
        tcp.min_rtt_us
    };
    row.rto_us = tcp.rto_us >> tcp.backoff.min(31);
    row.pacing_bps = tcp.pacing_rate_bytes_per_s.saturating_mul(8);
    row.sent_pkts = tcp.data_segs_out.into();
    row.retrans_pkts = tcp.total_retrans_pkts.into();
    row.delivered_pkts = tcp.delivered_pkts.into();
}

fn udp(context: &Context) -> FlowSample {
    FlowSample {
        delivered_bytes: context.state.delivered.load(Ordering::Acquire),
        sent_bytes: context.state.sent.load(Ordering::Acquire),
        ooo_bytes: Some(0),
        rcv_window_bytes: Some(0),
        reinjected_pkts: Some(0),
        duplicate_pkts: Some(0),
        blocked_ns: Some(0),
    }
}

/// What the kernel has handed over in order, or would if the application read; without MPTCP's count what the
/// subflows did.
fn in_order_bytes(receiver: &End) -> u64 {
    let of_subflows = || {
        receiver
            .subflows
            .iter()
            .map(|one| one.tcp.bytes_received)
            .sum()
    };
    receiver
        .mptcp
        .as_ref()
        .and_then(|info| info.bytes_received)
        .unwrap_or_else(of_subflows)
}

/// `arrived_bytes` is the payload that the emulator delivered so far.
fn update_flow(
    row: &mut FlowSample,
    tcp: &TcpFlow,
    [sender, receiver]: [&End; 2],
    arrived_bytes: u64,
) {
    let sum = |end: &End, get: fn(&TcpInfo) -> u64| {
        end.subflows.iter().map(|one| get(&one.tcp)).sum::<u64>()
    };
    let first_time = sum(sender, |tcp| {
        tcp.bytes_sent.saturating_sub(tcp.bytes_retrans)
    });
    let told_twice = sum(sender, |tcp| tcp.dsack_dups.into());
    let (in_order, reinjected) = match (&sender.mptcp, &receiver.mptcp) {
        (Some(sender), Some(receiver)) => (receiver.bytes_received, sender.bytes_retrans),
        _ => (Some(sum(receiver, |tcp| tcp.bytes_received)), Some(0)),
    };
    row.sent_bytes = sender
        .mptcp
        .as_ref()
        .and_then(|info| info.bytes_sent)
        .unwrap_or(first_time);
    row.reinjected_pkts = reinjected.map(|bytes| bytes.div_ceil(tcp.mss_bytes.into()));
    row.duplicate_pkts = (reinjected == Some(0)).then_some(told_twice);
    row.ooo_bytes = match (row.duplicate_pkts, in_order) {
        // What is read a moment later may be a packet ahead.
        (Some(0), Some(in_order)) => Some(arrived_bytes.saturating_sub(in_order)),
        _ => None,
    };
    row.rcv_window_bytes = receiver
        .subflows
        .iter()
        .filter_map(|one| one.tcp.rcv_wnd_bytes)
        .max()
        .map(u64::from);
    row.blocked_ns =
        (!tcp.mptcp).then(|| sum(sender, |tcp| tcp.rwnd_limited_us).saturating_mul(1000));
}
