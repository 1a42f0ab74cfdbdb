//! Flows of many transfers: every transfer is a connection of its own, in a slot that is used again.
//!
//! A slot is connection, senders and receivers with indices that stay. When all data are acknowledged it is free; a
//! packet of an earlier transfer that is still on its way shows by its timestamp, and is dropped where it arrives.

use crate::app::App;
use crate::engine::Engine;
use crate::engine::assemble::Maker;
use crate::mptcp::connection::Connection;
use crate::net::Route;
use crate::net::event::{NEVER, Timer, TimerKind};
use crate::net::packet::{Packet, tick};
use crate::net::record::since;
use crate::tcp::receiver::Receiver;
use crate::tcp::sender::{Phase, Sender, SenderCounters};
use mptcplab_model::link::rng::Rng;
use mptcplab_model::traffic::{Schedule, Transfer};
use mptcplab_trace::{EventKind, FlowRow, NOT_MEASURED, SubflowRow, TransferRow};
use std::collections::VecDeque;

/// Transfers of one flow that may be under way at once.
pub(crate) const MAX_AT_ONCE: usize = 4096;
/// A slot that nobody uses: every packet is older.
const FREE: u32 = u32::MAX;
/// The trace's infinite slow start threshold.
const NO_THRESHOLD: u32 = crate::tcp::sender::INFINITE_SSTHRESH;

/// A flow of many transfers.
pub(crate) struct Pool<'a> {
    maker: Maker<'a>,
    routes: Vec<Route>,
    schedule: Schedule,
    start_ns: u64,
    stop_ns: u64,
    has_started: bool,
    /// The transfer that begins next.
    due: Option<Transfer>,
    pub(crate) timer: Timer,
    /// Connections, used or not.
    slots: Vec<u32>,
    /// Those that are free, and the tick since when.
    free: VecDeque<(u32, u32)>,
    /// What the transfers that are over have come to.
    flow: FlowSum,
    subflows: Vec<SubflowSum>,
}

/// Counters of connections.
#[derive(Debug, Clone, Copy, Default)]
struct FlowSum {
    delivered_bytes: u64,
    sent_bytes: u64,
    reinjected: u64,
    duplicates: u64,
    blocked_ns: u64,
    ooo_pkts: u64,
    ooo_delay_ns: u64,
    depth_pkts: u64,
    /// Largest since the previous sample.
    ooo_delay_max_ns: u64,
    depth_max_pkts: u64,
}

impl FlowSum {
    fn add(&mut self, conn: &mut Connection, now: u64) {
        self.delivered_bytes += conn.rx.delivered_bytes();
        self.sent_bytes += conn.sent_bytes;
        self.reinjected += conn.reinjected;
        self.duplicates += conn.rx.duplicates;
        self.blocked_ns += conn.blocked_ns(now);
        let waiting = &mut conn.rx.waiting;
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
struct SubflowSum {
    count: SenderCounters,
    rtt_sum_us: u64,
    rtt_count: u64,
    rx_pkts: u64,
    rx_wire_bytes: u64,
    rx_payload_bytes: u64,
}

impl SubflowSum {
    fn add(&mut self, sender: &Sender, receiver: &Receiver) {
        self.count.add(&sender.count);
        self.rtt_sum_us += sender.rtt.sum_us;
        self.rtt_count += sender.rtt.count;
        self.rx_pkts += receiver.packets;
        self.rx_wire_bytes +=
            receiver.ip_bytes + receiver.packets * u64::from(sender.overhead_bytes);
        self.rx_payload_bytes += receiver.payload_bytes;
    }
}

/// What a pool is made from.
pub(crate) struct PoolConfig<'a> {
    pub(crate) maker: Maker<'a>,
    /// The way of each subflow.
    pub(crate) routes: Vec<Route>,
    pub(crate) law: mptcplab_scenario::Transfers,
    pub(crate) rng: Rng,
    pub(crate) start_ns: u64,
    pub(crate) stop_ns: u64,
}

impl<'a> Pool<'a> {
    pub(crate) fn new(c: PoolConfig<'a>) -> Self {
        Self {
            schedule: Schedule::new(c.law, c.rng, c.start_ns, c.stop_ns),
            subflows: vec![SubflowSum::default(); c.routes.len()],
            maker: c.maker,
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
        self.maker.flow() as u32
    }

    pub(crate) fn algorithm(&self) -> Vec<String> {
        vec![self.maker.algorithm().to_owned(); self.routes.len()]
    }

    /// A slot that has been free since an earlier tick: packets of its last transfer are older than any of the next.
    fn take_free(&mut self, now: u32) -> Option<usize> {
        let (conn, _) = *self.free.front().filter(|(_, since)| *since < now)?;
        self.free.pop_front();
        Some(conn as usize)
    }
}

impl Engine<'_> {
    /// The pool's time has come: its start, a transfer, or its stop.
    #[inline(never)]
    pub(crate) fn on_pool(&mut self, p: usize) {
        let now = self.world.now;
        let pool = &mut self.pools[p];
        let flow = pool.flow();
        let rec = &mut self.world.rec;
        if now >= pool.stop_ns {
            return rec.flow_event(now, EventKind::FlowStopped, flow, 0);
        }
        if !std::mem::replace(&mut pool.has_started, true) {
            rec.flow_event(now, EventKind::FlowStarted, flow, 0);
            pool.due = pool.schedule.first();
        }
        if let Some(transfer) = pool.due.take_if(|due| due.at_ns <= now) {
            if !pool.schedule.is_closed_loop() {
                pool.due = pool.schedule.after(now);
            }
            self.begin_transfer(p, transfer);
        }
        self.arm_pool(p);
    }

    fn arm_pool(&mut self, p: usize) {
        let pool = &mut self.pools[p];
        if self.world.now >= pool.stop_ns {
            return;
        }
        let next = pool.due.map_or(NEVER, |due| due.at_ns).min(pool.stop_ns);
        if next != NEVER {
            self.world
                .timers
                .set(&mut pool.timer, next, TimerKind::Transfer, p as u32);
        }
    }

    fn begin_transfer(&mut self, p: usize, transfer: Transfer) {
        let now = self.world.now;
        let Some(c) = self.take_slot(p) else {
            return;
        };
        let maker = self.pools[p].maker;
        let subflows = self.conns[c].subflows.clone();
        for (k, i) in subflows.clone().enumerate() {
            let entry = self.world.net.entry(i as u32);
            let made = maker.subflow([i as u32, c as u32], k, entry, Some(transfer.index));
            match made {
                Ok((sender, receiver)) => {
                    self.senders[i] = sender;
                    self.receivers[i] = receiver;
                    self.receivers[i].expect_timestamps_from(tick(now));
                }
                Err(error) => self.failure = Some(error),
            }
            self.born[i - self.fixed_senders] = tick(now);
        }
        let app = App::Transfer {
            pool: p as u32,
            index: transfer.index,
        };
        let first = subflows.start;
        self.conns[c] = maker.connection(subflows, app, now, NEVER);
        self.conns[c].write_size(transfer.bytes);
        self.open(first);
    }

    /// A free slot, or one more; none when there are too many.
    fn take_slot(&mut self, p: usize) -> Option<usize> {
        let now = self.world.now;
        let pool = &mut self.pools[p];
        if let Some(c) = pool.take_free(tick(now)) {
            return Some(c);
        }
        if pool.slots.len() == MAX_AT_ONCE {
            self.failure = Some(pool.maker.overload(now, MAX_AT_ONCE));
            return None;
        }
        let c = self.conns.len();
        pool.slots.push(c as u32);
        let first = self.senders.len();
        let last = first + pool.routes.len();
        for (k, i) in (first..last).enumerate() {
            self.world.net.set_route(i, pool.routes[k]);
            let entry = self.world.net.entry(i as u32);
            self.born.push(FREE);
            match pool.maker.subflow([i as u32, c as u32], k, entry, None) {
                Ok((sender, receiver)) => {
                    self.senders.push(sender);
                    self.receivers.push(receiver);
                }
                Err(error) => {
                    self.failure = Some(error);
                    return None;
                }
            }
        }
        let app = App::Transfer {
            pool: p as u32,
            index: 0,
        };
        self.conns
            .push(pool.maker.connection(first..last, app, now, NEVER));
        Some(c)
    }

    /// Whether a packet belongs to a transfer that is over, or to none.
    #[inline]
    pub(crate) fn is_stale(&self, packet: &Packet) -> bool {
        let slot = packet.subflow().wrapping_sub(self.fixed_senders);
        // UDP streams have the indices after the room for slots.
        self.born.get(slot).is_some_and(|&born| packet.ts() < born)
    }

    /// The sender of a transfer knows that all is delivered: the slot is free.
    #[inline(never)]
    pub(crate) fn end_transfer(&mut self, c: usize) {
        let now = self.world.now;
        let conn = &mut self.conns[c];
        let App::Transfer { pool, .. } = conn.app else {
            return;
        };
        let pool = &mut self.pools[pool as usize];
        for (k, i) in conn.subflows.clone().enumerate() {
            self.senders[i].remove(&mut self.world, conn);
            self.senders[i].fall_silent();
            self.receivers[i].timer.deadline = NEVER;
            pool.subflows[k].add(&self.senders[i], &self.receivers[i]);
            self.born[i - self.fixed_senders] = FREE;
        }
        conn.read_timer.deadline = NEVER;
        pool.flow.add(conn, now);
        pool.free.push_back((c as u32, tick(now)));
    }

    /// A transfer is complete at its receiver.
    #[inline(never)]
    pub(crate) fn on_complete(&mut self, c: usize) {
        let now = self.world.now;
        let conn = &self.conns[c];
        match conn.app {
            App::Size { .. } => {
                let (flow, bytes) = (conn.flow, conn.rx.delivered_bytes());
                self.world
                    .rec
                    .flow_event(now, EventKind::FlowCompleted, flow, bytes);
                self.record_transfer(c, Some(now));
            }
            App::Transfer { pool, .. } => {
                self.record_transfer(c, Some(now));
                let p = pool as usize;
                if self.pools[p].schedule.is_closed_loop() {
                    self.pools[p].due = self.pools[p].schedule.after(now);
                    self.arm_pool(p);
                }
            }
            App::Video { video } => self.on_chunk(video as usize),
            App::Bulk | App::OnOff { .. } => {}
        }
    }

    /// The row of a transfer over a connection of its own; `done` unless the run ends before.
    pub(crate) fn record_transfer(&mut self, c: usize, done: Option<u64>) {
        let conn = &self.conns[c];
        let (transfer, begun) = match conn.app {
            App::Transfer { index, .. } => (index, conn.start_ns),
            _ => (0, conn.start_ns),
        };
        let row = TransferRow {
            t_ns: begun,
            flow: conn.flow,
            transfer,
            bytes: conn.rx.transfer_bytes(),
            media_bps: 0,
            first_byte_ns: since(conn.rx.first_byte_ns, begun),
            completion_ns: since(done.unwrap_or(NEVER), begun),
            resent_pkts: self.resent(c),
            stall_ns: NOT_MEASURED,
        };
        self.world.rec.tables.transfer.push(row);
    }

    /// Segments that a connection sent again.
    pub(crate) fn resent(&self, c: usize) -> u64 {
        let conn = &self.conns[c];
        let senders = &self.senders[conn.subflows.clone()];
        conn.reinjected + senders.iter().map(|s| s.count.retransmitted).sum::<u64>()
    }

    /// The run is over: what was not complete is recorded as such.
    pub(crate) fn record_unfinished(&mut self) {
        for c in 0..self.conns.len() {
            let conn = &self.conns[c];
            let first = conn.subflows.start;
            let is_open = self.senders[first].phase != Phase::Closed && !self.is_free(c);
            match conn.app {
                App::Size { .. } | App::Transfer { .. } if is_open && !conn.rx.completed => {
                    self.record_transfer(c, None);
                }
                App::Video { video } => self.record_unfinished_chunk(video as usize),
                _ => {}
            }
        }
        for association in &self.sctp {
            association.record_unfinished(&mut self.world);
        }
    }

    fn is_free(&self, c: usize) -> bool {
        let slot = self.conns[c]
            .subflows
            .start
            .wrapping_sub(self.fixed_senders);
        self.born.get(slot) == Some(&FREE)
    }

    /// One row per flow of transfers and per subflow: sums over all of them, those under way included.
    pub(crate) fn sample_pools(&mut self) {
        for p in 0..self.pools.len() {
            let live: Vec<usize> = self.pools[p].slots.iter().map(|&c| c as usize).collect();
            let live: Vec<usize> = live.into_iter().filter(|&c| !self.is_free(c)).collect();
            self.sample_pool(p, &live);
            for k in 0..self.pools[p].routes.len() {
                self.sample_pool_subflow(p, k, &live);
            }
        }
    }

    fn sample_pool(&mut self, p: usize, live: &[usize]) {
        let t_ns = self.world.now;
        let over = &mut self.pools[p].flow;
        let mut sum = *over;
        (over.ooo_delay_max_ns, over.depth_max_pkts) = (0, 0);
        let (mut ooo_bytes, mut window_bytes) = (0, 0);
        for &c in live {
            let conn = &mut self.conns[c];
            sum.add(conn, t_ns);
            ooo_bytes += conn.rx.ooo_bytes();
            window_bytes += conn.rx.window_bytes();
        }
        self.world.rec.tables.flow.push(FlowRow {
            t_ns,
            flow: self.pools[p].flow(),
            delivered_bytes: sum.delivered_bytes,
            sent_bytes: sum.sent_bytes,
            ooo_bytes,
            rcv_window_bytes: window_bytes,
            reinjected_pkts: sum.reinjected,
            duplicate_pkts: sum.duplicates,
            blocked_ns: sum.blocked_ns,
            ooo_pkts: sum.ooo_pkts,
            ooo_delay_sum_ns: sum.ooo_delay_ns,
            ooo_delay_max_ns: sum.ooo_delay_max_ns,
            reorder_depth_sum_pkts: sum.depth_pkts,
            reorder_depth_max_pkts: sum.depth_max_pkts,
        });
    }

    fn sample_pool_subflow(&mut self, p: usize, k: usize, live: &[usize]) {
        let mut sum = self.pools[p].subflows[k];
        let (mut open, mut cwnd, mut inflight) = (0, 0, 0);
        for i in live.iter().map(|&c| self.conns[c].subflows.start + k) {
            let sender = &self.senders[i];
            sum.add(sender, &self.receivers[i]);
            if sender.phase == Phase::Established {
                open += 1;
                cwnd += sender.sock.tp.snd_cwnd;
                inflight += sender.inflight();
            }
        }
        let count = sum.count;
        self.world.rec.tables.subflow.push(SubflowRow {
            t_ns: self.world.now,
            flow: self.pools[p].flow(),
            subflow: k as u32,
            // Open, or closed.
            state: if open > 0 { 2 } else { 0 },
            cwnd_pkts: cwnd,
            ssthresh_pkts: NO_THRESHOLD,
            inflight_pkts: inflight,
            srtt_us: 0,
            rtt_us: 0,
            min_rtt_us: 0,
            rto_us: 0,
            pacing_bps: 0,
            rtt_sum_us: sum.rtt_sum_us,
            rtt_count: sum.rtt_count,
            sent_pkts: count.sent,
            retx_pkts: count.retransmitted,
            acked_pkts: count.acked,
            lost_pkts: count.lost,
            loss_events: count.loss_events,
            ecn_events: count.ecn_events,
            rto_count: count.rto_count,
            rto_wait_ns: count.rto_wait_ns,
            undo_count: count.undo_count,
            rx_pkts: sum.rx_pkts,
            rx_wire_bytes: sum.rx_wire_bytes,
            rx_payload_bytes: sum.rx_payload_bytes,
        });
    }
}
