//! Flows of many transfers. Every transfer is a connection of its own, in a slot that is reused.
//!
//! A slot is the index of a connection with the routes of its subflows. It becomes free when all data are acknowledged. A packet
//! of an earlier transfer that is still on its way is recognised by its timestamp and dropped on arrival.

use super::event_loop::{Engine, Owner};
use super::transfer_pool::{FREE, MAX_AT_ONCE, Slot};
use crate::app::{App, Kind};
use crate::control::SimError;
use crate::net::event::{NEVER, TimerKind};
use crate::net::packet::{Packet, tick};
use crate::tcp::sender::INFINITE_SSTHRESH;
use crate::tcp::state::Phase;
use crate::tcp::subflow::Subflow;
use mptcplab_model::traffic::Transfer;
use mptcplab_trace::{EventKind, FlowRow, SubflowRow};

impl Engine<'_> {
    /// The pool's timer fired: start, next transfer or stop.
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
        let Some(slot) = self.take_slot(p) else {
            return;
        };
        let app = match self.build_transfer(p, slot, transfer) {
            Ok(app) => app,
            Err(error) => {
                self.failure = Some(error);
                return;
            }
        };
        for Subflow { sender, .. } in &app.conn.subflows {
            self.slot_ticks[sender.id as usize - self.fixed_routes] = tick(now);
        }
        let c = slot.conn as usize;
        if c == self.apps.len() {
            self.apps.push(app);
        } else {
            self.apps[c] = app;
        }
        let conn = &mut self.apps[c].conn;
        conn.write_size(transfer.bytes);
        conn.open(&mut self.world, 0);
    }

    /// The application and connection of a transfer.
    fn build_transfer(&self, p: usize, slot: Slot, transfer: Transfer) -> Result<App, SimError> {
        let now = self.world.now;
        let builder = self.pools[p].builder;
        let mut subflows = Vec::new();
        for k in 0..self.pools[p].routes.len() {
            let route = slot.first_route + k as u32;
            let entry = self.world.net.entry(route);
            let mut subflow = builder.subflow(route, k, entry, Some(transfer.index))?;
            subflow.receiver.expect_timestamps_from(tick(now));
            subflows.push(subflow);
        }
        let conn = builder.connection(slot.conn, subflows, false);
        let kind = Kind::Transfer {
            pool: p as u32,
            index: transfer.index,
        };
        Ok(App::new(conn, kind, now, NEVER))
    }

    /// A free slot, or one more; none when there are too many.
    fn take_slot(&mut self, p: usize) -> Option<Slot> {
        let now = self.world.now;
        let pool = &mut self.pools[p];
        if let Some(slot) = pool.take_free(tick(now)) {
            return Some(slot);
        }
        if pool.slots.len() == MAX_AT_ONCE {
            self.failure = Some(pool.builder.overload(now, MAX_AT_ONCE));
            return None;
        }
        let slot = Slot {
            conn: self.apps.len() as u32,
            first_route: self.owners.len() as u32,
        };
        pool.slots.push(slot);
        for (k, &route) in pool.routes.iter().enumerate() {
            self.world.net.set_route(self.owners.len(), route);
            self.slot_ticks.push(FREE);
            self.owners.push(Owner {
                conn: slot.conn,
                subflow: k as u32,
            });
        }
        Some(slot)
    }

    /// Whether a packet belongs to a transfer that is over, or to none.
    #[inline]
    pub(crate) fn is_stale(&self, packet: &Packet) -> bool {
        let slot = packet.subflow().wrapping_sub(self.fixed_routes);
        // UDP streams have the indices after the room for slots.
        self.slot_ticks
            .get(slot)
            .is_some_and(|&slot_ticks| packet.ts() < slot_ticks)
    }

    /// The sender of a transfer knows that all is delivered: the slot is free.
    #[inline(never)]
    pub(super) fn end_transfer(&mut self, c: usize) {
        let now = self.world.now;
        let app = &mut self.apps[c];
        let Kind::Transfer { pool, .. } = app.kind else {
            return;
        };
        let pool = &mut self.pools[pool as usize];
        app.conn.close(&mut self.world);
        for (sum, subflow) in pool.subflows.iter_mut().zip(&app.conn.subflows) {
            sum.add(subflow);
            self.slot_ticks[subflow.sender.id as usize - self.fixed_routes] = FREE;
        }
        pool.flow.add(&mut app.conn, now);
        let slot = Slot {
            conn: c as u32,
            first_route: app.conn.subflows[0].sender.id,
        };
        pool.free.push_back((slot, tick(now)));
    }

    /// A transfer is complete at its receiver: where one waits for the other, the next one follows.
    pub(super) fn repeat_transfer(&mut self, c: usize) {
        let Kind::Transfer { pool, .. } = self.apps[c].kind else {
            return;
        };
        let p = pool as usize;
        if self.pools[p].schedule.is_closed_loop() {
            self.pools[p].due = self.pools[p].schedule.after(self.world.now);
            self.arm_pool(p);
        }
    }

    /// Whether a connection is a slot that no transfer uses.
    pub(super) fn is_free(&self, c: usize) -> bool {
        let route = self.apps[c].conn.subflows[0].sender.id as usize;
        let slot = route.wrapping_sub(self.fixed_routes);
        self.slot_ticks.get(slot) == Some(&FREE)
    }

    /// One row per flow of transfers and per subflow: sums over all of them, those under way included.
    pub(crate) fn sample_pools(&mut self) {
        for p in 0..self.pools.len() {
            let slots = self.pools[p].slots.iter().map(|slot| slot.conn as usize);
            let live: Vec<usize> = slots.filter(|&c| !self.is_free(c)).collect();
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
            let conn = &mut self.apps[c].conn;
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
        for subflow in live.iter().map(|&c| &self.apps[c].conn.subflows[k]) {
            sum.add(subflow);
            let sender = &subflow.sender;
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
            ssthresh_pkts: INFINITE_SSTHRESH,
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
