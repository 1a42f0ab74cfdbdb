//! Takes samples from the kernel's TCP_INFO and MPTCP_INFO at both ends, the emulator's counters, and the receiving
//! applications.

use super::shown::Shown;
use crate::protocol::{FlowSample, Sample, SubflowSample};
use crate::traffic::{Context, End, FlowTotals, SubflowState};
use mptcplab_emulator::{PairStats, Sample as Counters};
use mptcplab_net::mptcp::Subflow;
use mptcplab_net::{TcpInfo, TcpState};
use mptcplab_scenario::{TcpFlow, Transport};
use mptcplab_trace::LinkRow;
use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

/// Takes samples of all flows.
#[derive(Debug)]
pub(super) struct Sampler {
    contexts: Vec<Context>,
    /// The last sample of each subflow, whose counters outlive the subflow.
    last: BTreeMap<(usize, usize), SubflowSample>,
    last_flows: Vec<FlowSample>,
    /// Index of each flow's first pair among the emulator's pairs.
    first_pair: Vec<usize>,
    shown: Shown,
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
            shown: Shown::default(),
        }
    }

    /// Takes a sample now, whose rows have the time `t_ns`.
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
            let pairs = &counters.pairs[self.first_pair[index]..][..tcp.subflows.len()];
            let sender = match context.plan.connection_per_transfer {
                true => None,
                false => End::of(context.state.connection.sender.get(), tcp.mptcp),
            };
            let row = self.flow(&context, tcp, sender.as_ref(), pairs);
            sample.flows.push(row);
            for (subflow, pair) in pairs.iter().enumerate() {
                sample
                    .subflows
                    .push(self.subflow(&context, subflow, sender.as_ref(), pair));
            }
        }
        sample.events = self.shown.changes(t_ns, &self.contexts);
        let links = (0..).zip(&counters.links);
        sample.links = links
            .map(|(link, stats)| LinkRow::new(t_ns, link, stats))
            .collect();
        sample
    }

    fn flow(
        &mut self,
        context: &Context,
        tcp: &TcpFlow,
        sender: Option<&End>,
        pairs: &[PairStats],
    ) -> FlowSample {
        let state = &context.state;
        let last = &mut self.last_flows[context.index];
        let receiver = End::of(state.receiver.get(), tcp.mptcp);
        if state.counts.load(Ordering::Acquire) {
            last.delivered_bytes = state.delivered.load(Ordering::Acquire);
        } else if let Some(receiver) = &receiver {
            last.delivered_bytes = receiver.in_order_bytes();
        }
        let totals = match (sender, &receiver) {
            _ if context.plan.connection_per_transfer => Some(state.transfers.totals(tcp)),
            (Some(sender), Some(receiver)) => Some(FlowTotals::of(tcp, [sender, receiver])),
            _ => None,
        };
        if let Some(totals) = totals {
            let arrived = pairs.iter().map(|pair| pair.rx_payload_bytes).sum();
            totals.write_to(last, arrived);
        }
        last.clone()
    }

    fn subflow(
        &mut self,
        context: &Context,
        subflow: usize,
        sender: Option<&End>,
        pair: &PairStats,
    ) -> SubflowSample {
        let source = context.plan.subflows[subflow].source;
        let state = context.state.connection.state(subflow);
        let found =
            sender.and_then(|end| end.subflows.iter().find(|one| *one.local.ip() == source));
        let last = self.last.entry((context.index, subflow)).or_default();
        (last.flow, last.subflow) = (context.index as u32, subflow as u32);
        if let Some(one) = found {
            update(last, one);
        }
        last.state = match (state, found) {
            (SubflowState::Closed | SubflowState::Removed, _) => 0,
            (SubflowState::Handshake, _) => 1,
            (SubflowState::Open, Some(one)) if one.tcp.state == TcpState::Established => {
                2 + one.tcp.ca_state
            }
            (SubflowState::Open, _) => 0,
        };
        last.rx_pkts = pair.rx_pkts;
        last.rx_wire_bytes = pair.rx_wire_bytes;
        last.rx_payload_bytes = pair.rx_payload_bytes;
        last.clone()
    }
}

/// Copies the columns that TCP_INFO provides. It does not say whether the pacing rate is in force: the supervisor finds that
/// in the tracer's record.
fn update(row: &mut SubflowSample, found: &Subflow) {
    let tcp: &TcpInfo = &found.tcp;
    row.port = found.local.port();
    row.cwnd_pkts = tcp.snd_cwnd_pkts;
    row.ssthresh_pkts = tcp.snd_ssthresh_pkts;
    row.inflight_pkts = tcp.inflight_pkts();
    row.srtt_us = tcp.rtt_us;
    // The largest number is the kernel's value for "no sample yet".
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
