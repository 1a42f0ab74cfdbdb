//! The sending end: the reaction to SACKs and timeouts, and the choice of what to send (RFC 9260 sections 6.1 to
//! 6.3, 7.2).

use super::association::{Association, Phase};
use super::chunk::{DATA_HEADER_BYTES, kind};
use super::missing_reports::{SackInfo, reports};
use super::outstanding::Progress;
use super::receiver::WINDOW_UNLIMITED;
use crate::net::World;
use crate::net::event::{NEVER, TimerKind};
use crate::net::packet::{Header, Kind, Packet};
use mptcplab_model::sched::next_destination;
use mptcplab_trace::EventKind;

/// `Max.Burst` (RFC 9260 section 6.1, rule D): new packets to one destination at one event.
const MAX_BURST: u32 = 4;

impl Association {
    /// A SACK arrived. Returns whether it counted.
    pub(super) fn on_sack(&mut self, cx: &mut World, packet: &Packet) -> bool {
        self.blocks.clear();
        cx.net.gaps.take(packet.sack(), &mut self.blocks);
        // One that another path overtook has nothing to say (section 6.2.1, rule D i).
        if self.phase != Phase::Established || packet.seq() < self.outstanding.first() {
            return false;
        }
        self.note_window(packet);
        let full: Vec<bool> = (0..self.destinations.len())
            .map(|d| !self.has_room(d))
            .collect();
        let mut progress = std::mem::take(&mut self.progress);
        self.outstanding
            .on_sack(packet.seq(), &self.blocks, &mut progress);
        for (d, progress) in progress.iter().enumerate().filter(|(_, p)| p.packets > 0) {
            self.on_progress(cx, d, progress, full[d]);
        }
        let has_losses = self.find_losses(cx, packet.ts(), &progress);
        for (d, progress) in progress.iter().enumerate() {
            self.update_timer(cx, d, progress.lowest);
        }
        self.progress = progress;
        if has_losses {
            self.retransmit_at_once(cx);
        }
        self.transmit(cx);
        true
    }

    /// Between SACKs of one cumulative ACK the window only closes: the larger value is the older one.
    fn note_window(&mut self, packet: &Packet) {
        let window = match packet.dsn() {
            WINDOW_UNLIMITED => None,
            bytes => Some(u64::from(bytes)),
        };
        self.peer_window = match (self.peer_window, window) {
            (Some(before), Some(now)) if packet.seq() == self.outstanding.first() => {
                Some(before.min(now))
            }
            _ => window,
        };
    }

    /// Data sent to a destination were acknowledged.
    fn on_progress(&mut self, cx: &mut World, d: usize, progress: &Progress, was_full: bool) {
        let header = u64::from(DATA_HEADER_BYTES);
        let bytes = (progress.payload + u64::from(progress.packets) * header) as u32;
        let last_order = self.outstanding.last_order();
        let oldest = self.outstanding.oldest_order(d);
        let destination = &mut self.destinations[d];
        destination.count.acked += u64::from(progress.packets);
        destination.timeouts = 0;
        destination.progress_ns = cx.now;
        if let Some(acked) = progress.acked {
            destination.newest_acked = destination.newest_acked.max(acked.newest);
        }
        if let Some((order, sent_ns)) = progress.timed {
            if order >= destination.timing_from {
                destination.rto.sample(cx.now - sent_ns);
                destination.timing_from = last_order + 1;
            }
        }
        let in_recovery = destination.recovery_until.is_some();
        if progress.advanced && !in_recovery {
            destination.window.grow(bytes, was_full);
        }
        if oldest.is_none() {
            destination.window.all_acked();
        }
        self.leave_recovery(cx, d, oldest);
    }

    fn leave_recovery(&mut self, cx: &mut World, d: usize, oldest: Option<u64>) {
        let destination = &mut self.destinations[d];
        let over = |until: u64| oldest.is_none_or(|oldest| oldest > until);
        if destination.recovery_until.is_some_and(over) {
            destination.recovery_until = None;
            let cwnd = destination.window.packets();
            let kind = EventKind::RecoveryEnded;
            cx.rec.event(cx.now, kind, destination.id, u64::from(cwnd));
        }
    }

    /// Count missing reports and react to losses, each destination on its own. Returns whether there are new ones.
    fn find_losses(&mut self, cx: &mut World, packets: u32, progress: &[Progress]) -> bool {
        let info = SackInfo {
            mixed: progress.iter().filter(|p| p.packets > 0).count() > 1,
            packets,
        };
        let mut has_losses = false;
        for (d, progress) in progress.iter().enumerate() {
            let Some(acked) = progress.acked else {
                continue;
            };
            // In fast recovery, a SACK that makes progress reports all that is missing (section 7.2.4).
            let destination = &self.destinations[d];
            let all = destination.recovery_until.is_some() && progress.advanced;
            let until = if all {
                destination.newest_acked
            } else {
                acked.newest
            };
            let count = |order| reports(order, acked, info).max(u32::from(all));
            let lost = self.outstanding.report_missing(d, until, count);
            if lost > 0 {
                has_losses = true;
                self.on_losses(cx, d, lost);
            }
        }
        has_losses
    }

    fn on_losses(&mut self, cx: &mut World, d: usize, lost: u32) {
        let last_order = self.outstanding.last_order();
        let destination = &mut self.destinations[d];
        destination.count.lost += u64::from(lost);
        if destination.recovery_until.is_none() {
            destination.recovery_until = Some(last_order);
            destination.window.on_loss();
            destination.count.loss_events += 1;
            let ssthresh = destination.window.ssthresh_packets();
            let kind = EventKind::LossEvent;
            cx.rec
                .event(cx.now, kind, destination.id, u64::from(ssthresh));
        }
    }

    /// Rules R2 and R3 of section 6.3.2.
    fn update_timer(&mut self, cx: &mut World, d: usize, lowest_acked: bool) {
        let (packets, _) = self.outstanding.in_flight(d);
        if packets == 0 {
            self.destinations[d].timer.deadline = NEVER;
        } else if lowest_acked {
            self.restart_timer(cx, d);
        }
    }

    fn restart_timer(&mut self, cx: &mut World, d: usize) {
        let destination = &mut self.destinations[d];
        let at = cx.now + destination.rto.timeout_ns();
        let (kind, id) = (TimerKind::Destination, destination.id);
        cx.timers.set(&mut destination.timer, at, kind, id);
    }

    /// T3-rtx expired (section 6.3.3).
    pub(super) fn on_timeout(&mut self, cx: &mut World, d: usize) {
        let lost = self.outstanding.mark_all(d);
        let destination = &mut self.destinations[d];
        destination.window.on_timeout();
        destination.rto.back_off();
        destination.timeouts += 1;
        destination.recovery_until = None;
        destination.count.lost += u64::from(lost);
        destination.count.rto_count += 1;
        destination.count.rto_wait_ns += cx.now - destination.progress_ns;
        let (kind, backoff) = (EventKind::RtoFired, u64::from(destination.timeouts - 1));
        cx.rec.event(cx.now, kind, destination.id, backoff);
        self.retransmit_at_once(cx);
        self.transmit(cx);
    }

    /// The first packet to be sent again does not wait for the window (sections 6.3.3 E3, 7.2.4).
    fn retransmit_at_once(&mut self, cx: &mut World) {
        if let Some(d) = self.retransmission_destination(false) {
            self.retransmit_to(cx, d);
        }
    }

    /// Send the lowest TSN that is to be sent again; returns whether there was one.
    fn retransmit_to(&mut self, cx: &mut World, d: usize) -> bool {
        let Some(chunk) = self.outstanding.first_marked() else {
            return false;
        };
        let lowest = self.outstanding.retransmit(chunk.tsn, d, cx.now);
        self.moved_pkts += u64::from(chunk.previous != d);
        self.destinations[d].count.retransmitted += 1;
        self.put_on_path(cx, d, chunk.tsn, chunk.payload);
        if lowest {
            self.restart_timer(cx, d);
        }
        true
    }

    /// Send what may be sent: what was lost goes first (section 6.1, rule C).
    pub(super) fn transmit(&mut self, cx: &mut World) {
        while self.outstanding.first_marked().is_some() {
            let Some(d) = self.retransmission_destination(true) else {
                break;
            };
            self.retransmit_to(cx, d);
        }
        let mut burst = vec![0; self.destinations.len()];
        while self.has_new() {
            let admitted = self.admits(self.payload(self.outstanding.next()));
            let mut turn = self.turn;
            let has_room = |d: usize| burst[d] < MAX_BURST && self.has_room(d);
            let chosen = next_destination(&mut turn, self.destinations.len(), admitted, has_room);
            let Some(d) = chosen else {
                break;
            };
            self.turn = turn;
            burst[d] += 1;
            self.send_new(cx, d);
        }
        self.note_blocked(cx.now);
    }

    fn has_new(&self) -> bool {
        self.outstanding.next() < self.written
    }

    /// Whether the receiver's window admits a new chunk. One may always be under way (section 6.1, rule A). What waits to
    /// be sent again keeps its place in the window, so that the receiver never has to drop what it holds.
    fn admits(&self, payload: u16) -> bool {
        let unacked = self.outstanding.unacked_bytes();
        match self.peer_window {
            None => true,
            Some(_) if unacked == 0 => true,
            Some(window) => window >= unacked + u64::from(payload),
        }
    }

    fn send_new(&mut self, cx: &mut World, d: usize) {
        self.shrink_after_idle(cx.now, d);
        let payload = self.payload(self.outstanding.next());
        let tsn = self.outstanding.send_new(d, payload, cx.now);
        self.sent_bytes += u64::from(payload);
        self.put_on_path(cx, d, tsn, payload);
    }

    /// Section 7.2.1: a window that was not used says nothing of the path.
    fn shrink_after_idle(&mut self, now: u64, d: usize) {
        let idle = self.outstanding.in_flight(d).0 == 0;
        let destination = &mut self.destinations[d];
        if idle {
            let rtos = (now - destination.last_sent_ns) / destination.rto.timeout_ns();
            destination.window.after_idle(rtos);
        }
    }

    fn put_on_path(&mut self, cx: &mut World, d: usize, tsn: u32, payload: u16) {
        let destination = &mut self.destinations[d];
        destination.count.sent += 1;
        destination.last_sent_ns = cx.now;
        let header = Header {
            seq: tsn,
            wnd: kind::DATA,
            ..Header::default()
        };
        let bytes = payload + DATA_HEADER_BYTES;
        let packet = Packet::new(Kind::Other, destination.id, bytes, header);
        cx.net.send(cx.now, packet);
        // Rule R1 of section 6.3.2.
        if destination.timer.deadline == NEVER {
            self.restart_timer(cx, d);
        }
    }

    /// Account for the time in which data and cwnd were there but the receive window forbade to send.
    fn note_blocked(&mut self, now: u64) {
        let blocked = self.has_new()
            && !self.admits(self.payload(self.outstanding.next()))
            && (0..self.destinations.len()).any(|d| self.has_room(d));
        if blocked != (self.blocked_since != NEVER) {
            if blocked {
                self.blocked_since = now;
            } else {
                self.blocked_ns += now - self.blocked_since;
                self.blocked_since = NEVER;
            }
        }
    }

    /// Time blocked by the receive window up to now.
    pub(super) fn blocked_ns(&self, now: u64) -> u64 {
        let open = match self.blocked_since {
            NEVER => 0,
            since => now - since,
        };
        self.blocked_ns + open
    }
}
