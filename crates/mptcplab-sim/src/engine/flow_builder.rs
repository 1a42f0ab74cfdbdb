//! Builds the connections of a TCP flow of the scenario.

use crate::control::SimError;
use crate::mptcp::DEFAULT_SCHEDULER;
use crate::mptcp::connection::Connection;
use crate::mptcp::sender::ConnectionConfig;
use crate::net::event::NEVER;
use crate::stream::DSN_MAX;
use crate::stream::receive_window::{SubflowWindow, is_fixed};
use crate::stream::receiver::ConnectionReceiver;
use crate::tcp::receiver::{Receiver, ReceiverConfig};
use crate::tcp::sack_compression::wait_ns;
use crate::tcp::sender::{Sender, SenderConfig};
use crate::tcp::subflow;
use mptcplab_cc::Sock;
use mptcplab_model::link::rng::Rng;
use mptcplab_model::sched::{Kind, Scheduler, SchedulerConfig};
use mptcplab_scenario::{
    Flow, LossRecovery, Run, SizeDistribution, Subflow, TcpFlow, Traffic, Transport,
};
use std::collections::VecDeque;

/// Builds the connections of a flow: its only one, or one for every transfer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FlowBuilder<'a> {
    pub(super) run: &'a Run,
    pub(super) index: usize,
    pub(super) tcp: &'a TcpFlow,
    mss: u16,
}

impl<'a> FlowBuilder<'a> {
    pub(super) fn new(run: &'a Run, index: usize, tcp: &'a TcpFlow) -> Result<Self, SimError> {
        let flow = &run.flows[index];
        let mss = segment_bytes(flow, tcp.mss_bytes, &tcp.traffic)?;
        let upstream = tcp.scheduler.is_some_and(|s| s.kind() == Kind::Linger);
        if tcp.mptcp && tcp.options.tso == Some(true) && !upstream {
            return Err(SimError::Unsupported(format!(
                "flows.{}: tso: with MPTCP only with the scheduler linger",
                flow.name
            )));
        }
        Ok(Self {
            run,
            index,
            tcp,
            mss,
        })
    }

    /// Index of the flow.
    pub(crate) fn flow(&self) -> usize {
        self.index
    }

    /// Whether a sender of the flow holds packets back.
    pub(super) fn holds_back(&self) -> bool {
        let mut subflows = self.tcp.subflows.iter();
        subflows.any(|subflow| self.sender_config(subflow).holds_back)
    }

    fn sender_config(&self, subflow: &Subflow) -> SenderConfig {
        sender_config(self.tcp, self.run.send_jitter_ns(self.tcp, subflow))
    }

    /// Name of the flow's algorithm.
    pub(crate) fn algorithm(&self) -> &'a str {
        &self.tcp.cc.name
    }

    /// Subflow `k` with the index of its route. `entries`: the first links of its path and of the way back. Every transfer
    /// has random numbers of its own.
    pub(super) fn subflow(
        &self,
        id: u32,
        k: usize,
        [entry, back]: [u32; 2],
        transfer: Option<u32>,
    ) -> Result<subflow::Subflow, SimError> {
        let (run, t) = (self.run, self.tcp);
        let (flow, subflow) = (&run.flows[self.index], &t.subflows[k]);
        let name = match transfer {
            None => format!("{}/{}", flow.name, subflow.name),
            Some(index) => format!("{}/{}/{index}", flow.name, subflow.name),
        };
        let mut sender = Sender::new(
            make_sock(run, flow, t)?,
            id,
            subflow.backup,
            self.sender_config(subflow),
            Rng::new(run.seed, run.rep, "subflow", &name),
        );
        sender.entry = entry;
        sender.lifecycle.open_ns = subflow.start_ns.unwrap_or(0);
        sender.lifecycle.remove_ns = subflow.stop_ns.unwrap_or(NEVER);
        sender.overhead_bytes = last_overhead_bytes(run, flow, subflow)?;
        let window = SubflowWindow::first(t.rcv_buffer, self.mss);
        let receiver = Receiver::new(id, receiver_config(run, t, subflow, back), window);
        Ok(subflow::Subflow { sender, receiver })
    }

    /// The connection of this index. `announces`: its first byte is an event of its own.
    pub(super) fn connection(
        &self,
        index: u32,
        subflows: Vec<subflow::Subflow>,
        announces: bool,
    ) -> Connection {
        let t = self.tcp;
        // Of the whole flow: the back direction of requests has bulk traffic here.
        let is_dialogue = matches!(
            &self.run.flows[self.index].transport,
            Transport::Tcp(flow) if matches!(flow.traffic, Traffic::Requests(_))
        );
        let scheduler = t
            .scheduler
            .unwrap_or_else(|| SchedulerConfig::new(DEFAULT_SCHEDULER));
        let config = ConnectionConfig {
            index,
            mptcp: t.mptcp,
            // Data of the other direction confirm the connection as well, and usually sooner.
            confirms: !is_dialogue,
            scheduler: Scheduler::new(&scheduler),
            mss: self.mss,
            reinject: t.options.reinject,
            stale_after: t.options.stale_after,
            priorities: priorities(t),
        };
        let mut rx = ConnectionReceiver::new(t.rcv_buffer, self.mss, announces);
        if t.mptcp {
            rx.count_unread();
        }
        let answers_push = t.options.tso.unwrap_or(false);
        Connection::new(self.index as u32, config, rx, subflows, answers_push)
    }

    /// More transfers are under way than there is room for.
    pub(crate) fn overload(&self, now_ns: u64, most: usize) -> SimError {
        SimError::Unsupported(format!(
            "flows.{}: more than {most} transfers are under way after {:.3} s: they begin faster than the links let them \
             end\n\nhint: lower arrivals or size, or raise the rates of the links",
            self.run.flows[self.index].name,
            now_ns as f64 / 1e9
        ))
    }
}

/// The most bytes that one transfer may have.
fn largest_bytes(traffic: &Traffic) -> u64 {
    match traffic {
        Traffic::Size { bytes } => *bytes,
        Traffic::Transfers(transfers) => largest(transfers.size),
        Traffic::Requests(requests) => {
            let answer = requests.answer.map_or(0, largest);
            largest(requests.size).max(answer)
        }
        Traffic::Bulk | Traffic::OnOff { .. } | Traffic::Video(_) => 0,
    }
}

fn largest(size: SizeDistribution) -> u64 {
    match size {
        SizeDistribution::Fixed { bytes } => bytes,
        SizeDistribution::Exponential { max_bytes, .. }
        | SizeDistribution::Pareto { max_bytes, .. } => max_bytes,
    }
}

/// Payload of a full segment, if the traffic can be counted in such segments.
pub(super) fn segment_bytes(
    flow: &Flow,
    mss_bytes: u32,
    traffic: &Traffic,
) -> Result<u16, SimError> {
    let mss = u16::try_from(mss_bytes).map_err(|_| unsupported(flow, "mss", mss_bytes))?;
    match largest_bytes(traffic) {
        bytes if bytes.div_ceil(u64::from(mss)) >= u64::from(DSN_MAX) => {
            Err(unsupported(flow, "size", bytes))
        }
        _ => Ok(mss),
    }
}

/// Layer-2 bytes per packet on the link that ends at the receiver.
pub(super) fn last_overhead_bytes(
    run: &Run,
    flow: &Flow,
    subflow: &Subflow,
) -> Result<u32, SimError> {
    let last = subflow.path.last();
    let last = last.ok_or_else(|| unsupported(flow, "path of no links", &subflow.name))?;
    Ok(run.links[*last].config.overhead_bytes)
}

/// All subflows' changes of priority in time order; those of one time in subflow order.
fn priorities(t: &TcpFlow) -> VecDeque<(u64, usize, bool)> {
    let of_subflow = |(k, subflow): (usize, &Subflow)| {
        let changes = subflow.priorities.clone().into_iter();
        changes.map(move |change| (change.at_ns, k, change.backup))
    };
    let mut all: Vec<_> = t.subflows.iter().enumerate().flat_map(of_subflow).collect();
    all.sort_unstable();
    all.into()
}

pub(super) fn unsupported(flow: &Flow, what: &str, value: impl std::fmt::Display) -> SimError {
    SimError::Unsupported(format!(
        "flows.{}: {what} {value} is beyond what the simulator can represent",
        flow.name
    ))
}

fn sender_config(t: &TcpFlow, send_jitter_ns: u64) -> SenderConfig {
    SenderConfig {
        mptcp: t.mptcp,
        data_header: t.data_header_bytes(),
        ack_header: t.ack_bytes(),
        initial_cwnd: t.options.initial_cwnd_pkts,
        ecn: t.options.ecn,
        recovery: t.options.recovery,
        pacing: t.options.pacing,
        slow_start_after_idle: t.options.slow_start_after_idle,
        host_delay_ns: t.options.host_delay_ns,
        send_jitter_ns,
        holds_back: send_jitter_ns > 0 || t.options.host_delay_ns > 0,
        tso: t.options.tso.unwrap_or(false),
        nagle: holds_small_segments(t),
        linear_syn_timeouts: t.options.linear_syn_timeouts,
    }
}

/// Whether Nagle's algorithm matters: see `tcp/nagle.rs`. In a buffer of fixed size, most segments are small in Linux, and a held
/// one is less of the window than a segment here.
fn holds_small_segments(t: &TcpFlow) -> bool {
    t.mptcp && t.options.tso == Some(true) && t.waits_to_fill_segments() && !is_fixed(t.rcv_buffer)
}

fn receiver_config(run: &Run, t: &TcpFlow, subflow: &Subflow, entry: u32) -> ReceiverConfig {
    let max_blocks = match t.options.recovery {
        LossRecovery::Sack => t.sack_blocks(),
        _ => 0,
    };
    let base_rtt_ns = run.base_rtt_ns(subflow);
    let comp_sack = t.options.comp_sack.filter(|_| max_blocks > 0);
    ReceiverConfig {
        delayed_acks: run.profile.delayed_acks(),
        comp_sack_ns: comp_sack.and_then(|how| wait_ns(how, base_rtt_ns)),
        ack_bytes: t.ack_bytes(),
        data_header: t.data_header_bytes(),
        base_rtt_ns,
        entry,
        max_blocks,
    }
}

pub(super) fn make_sock(run: &Run, flow: &Flow, t: &TcpFlow) -> Result<Sock, SimError> {
    let fail = |why: String| SimError::Unsupported(format!("flows.{}: cc: {why}", flow.name));
    if t.cc.kernel_name().is_some() {
        return Err(fail(format!(
            "{:?} is an algorithm of the kernel's own, which only the kernel engine runs\n\nhint: write --engine kernel, \
             or take an algorithm of `mptcplab algorithms`",
            t.cc.name
        )));
    }
    let algorithm = mptcplab_cc::find(&t.cc.name)
        .ok_or_else(|| fail(format!("there is no algorithm named {:?}", t.cc.name)))?;
    let per_ack = run.profile.growth_per_ack(algorithm.coupled());
    let mut sock = Sock::new(algorithm, &t.cc.params, per_ack).map_err(|e| fail(e.to_string()))?;
    sock.tp.snd_cwnd = t.options.initial_cwnd_pkts;
    sock.tp.mss_cache = t.mss_bytes;
    if let Some(ssthresh) = t.options.initial_ssthresh_pkts {
        sock.tp.snd_ssthresh = ssthresh;
    }
    if let Some(clamp) = t.options.cwnd_clamp_pkts {
        sock.tp.snd_cwnd_clamp = clamp;
        sock.tp.snd_cwnd = sock.tp.snd_cwnd.min(clamp);
    }
    Ok(sock)
}
