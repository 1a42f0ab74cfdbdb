//! The state of a flow of many transfers: the next one to begin, the free slots, and the sums over those that have ended.

use super::flow_builder::FlowBuilder;
use crate::mptcp::connection::Connection;
use crate::net::Route;
use crate::net::event::Timer;
use crate::tcp::sender::SenderCounters;
use crate::tcp::subflow::Subflow;
use mptcplab_model::link::rng::Rng;
use mptcplab_model::traffic::{Schedule, Transfer};
use std::collections::VecDeque;

/// Transfers of one flow that may be under way at once.
pub(crate) const MAX_AT_ONCE: usize = 4096;
/// The tick of a free slot: every packet is older.
pub(super) const FREE: u32 = u32::MAX;

/// Indices that one transfer after the other uses.
#[derive(Debug, Clone, Copy)]
pub(super) struct Slot {
    pub(super) conn: u32,
    /// Route of its first subflow; those of the others follow.
    pub(super) first_route: u32,
}

/// A flow of many transfers.
pub(crate) struct TransferPool<'a> {
    pub(super) builder: FlowBuilder<'a>,
    pub(super) routes: Vec<Route>,
    pub(super) schedule: Schedule,
    pub(super) start_ns: u64,
    pub(super) stop_ns: u64,
    pub(super) has_started: bool,
    /// The transfer that begins next.
    pub(super) due: Option<Transfer>,
    pub(crate) timer: Timer,
    /// All slots, used or not.
    pub(super) slots: Vec<Slot>,
    /// Those that are free, and the tick since when.
    pub(super) free: VecDeque<(Slot, u32)>,
    /// Sums over the transfers that have ended.
    pub(super) flow: FlowSum,
    pub(super) subflows: Vec<SubflowSum>,
}

/// Counters of connections.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct FlowSum {
    pub(super) delivered_bytes: u64,
    pub(super) sent_bytes: u64,
    pub(super) reinjected: u64,
    pub(super) duplicates: u64,
    pub(super) blocked_ns: u64,
    pub(super) ooo_pkts: u64,
    pub(super) ooo_delay_ns: u64,
    pub(super) depth_pkts: u64,
    /// Largest since the previous sample.
    pub(super) ooo_delay_max_ns: u64,
    pub(super) depth_max_pkts: u64,
}

impl FlowSum {
    pub(super) fn add(&mut self, conn: &mut Connection, now: u64) {
        self.delivered_bytes += conn.rx.delivered_bytes();
        self.sent_bytes += conn.tx.sent_bytes;
        self.reinjected += conn.tx.reinjected;
        self.duplicates += u64::from(conn.rx.duplicates);
        self.blocked_ns += conn.tx.blocked_ns(now);
        let waiting = &mut conn.rx.reordering;
        self.ooo_pkts += waiting.pkts;
        self.ooo_delay_ns += waiting.delay_ns;
        self.depth_pkts += waiting.depth_pkts;
        let (delay_ns, depth_pkts) = waiting.take_largest();
        self.ooo_delay_max_ns = self.ooo_delay_max_ns.max(delay_ns);
        self.depth_max_pkts = self.depth_max_pkts.max(depth_pkts);
    }
}

/// Counters of subflows.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct SubflowSum {
    pub(super) count: SenderCounters,
    pub(super) rtt_sum_us: u64,
    pub(super) rtt_count: u64,
    pub(super) rx_pkts: u64,
    pub(super) rx_wire_bytes: u64,
    pub(super) rx_payload_bytes: u64,
}

impl SubflowSum {
    pub(super) fn add(&mut self, Subflow { sender, receiver }: &Subflow) {
        self.count.add(&sender.count);
        self.rtt_sum_us += sender.rtt.sum_us;
        self.rtt_count += sender.rtt.count;
        self.rx_pkts += receiver.packets;
        self.rx_wire_bytes +=
            receiver.ip_bytes + receiver.packets * u64::from(sender.overhead_bytes);
        self.rx_payload_bytes += receiver.payload_bytes();
    }
}

/// Configuration of a pool.
pub(crate) struct TransferPoolConfig<'a> {
    pub(crate) builder: FlowBuilder<'a>,
    /// The way of each subflow.
    pub(crate) routes: Vec<Route>,
    pub(crate) transfers: mptcplab_scenario::Transfers,
    pub(crate) rng: Rng,
    pub(crate) start_ns: u64,
    pub(crate) stop_ns: u64,
}

impl<'a> TransferPool<'a> {
    pub(crate) fn new(c: TransferPoolConfig<'a>) -> Self {
        Self {
            schedule: Schedule::new(c.transfers, c.rng, c.start_ns, c.stop_ns),
            subflows: vec![SubflowSum::default(); c.routes.len()],
            builder: c.builder,
            routes: c.routes,
            start_ns: c.start_ns,
            stop_ns: c.stop_ns,
            has_started: false,
            due: None,
            timer: Timer::OFF,
            slots: Vec::new(),
            free: VecDeque::new(),
            flow: FlowSum::default(),
        }
    }

    pub(crate) fn start_ns(&self) -> u64 {
        self.start_ns
    }

    pub(crate) fn flow(&self) -> u32 {
        self.builder.flow() as u32
    }

    pub(crate) fn algorithm(&self) -> Vec<String> {
        vec![self.builder.algorithm().to_owned(); self.routes.len()]
    }

    /// A slot that has been free since an earlier tick: packets of its last transfer are older than any of the next.
    pub(super) fn take_free(&mut self, now: u32) -> Option<Slot> {
        let (slot, _) = *self.free.front().filter(|(_, since)| *since < now)?;
        self.free.pop_front();
        Some(slot)
    }
}
