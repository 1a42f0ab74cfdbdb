//! Loss recovery without SACK: Tahoe, Reno and NewReno (Jacobson 1988, RFC 2001, RFC 5681, RFC 6582).
//!
//! The sender counts duplicate ACKs and sends the oldest segment again at the third. Tahoe then slow-starts as after a timeout.
//! Reno and NewReno inflate the window by a packet for each duplicate ACK, because a packet has left the network: Reno until
//! the first new ACK, NewReno until everything that was in flight is acknowledged. The algorithm decides how far the window falls.
//!
//! Here, unlike in `recovery.rs`, everything sent and not acknowledged is in flight, so `sacked_out` and `retrans_out`
//! stay 0. After a timeout, and in Tahoe, the sender goes back to the oldest segment and sends everything again as the window
//! opens; `lost_out` counts the segments that it has not reached yet. A segment counts as lost when it is sent again.
//!
//! Not implemented here: tail loss probes, F-RTO and undo, as in Linux, and limited transmit (RFC 3042).

use super::scoreboard::AckSummary;
use super::segments::flag;
use super::sender::Sender;
use crate::net::World;
use crate::net::packet::Packet;
use mptcplab_cc::{CaEvent, CaState, Conn as CcTable};
use mptcplab_scenario::LossRecovery;
use mptcplab_trace::EventKind;

/// Duplicate ACKs that mean a loss (RFC 5681 section 3.2).
const DUP_THRESHOLD: u32 = 3;

impl Sender {
    /// An ACK off the fast path: a duplicate, one with an ECN echo, or one during recovery.
    #[inline(never)]
    pub(crate) fn classic_ack(&mut self, cx: &mut World, cc: &mut CcTable, packet: &Packet) {
        if packet.seq() > self.sock.tp.snd_una {
            self.new_ack(cx, cc, packet);
        } else if self.sock.tp.packets_out > 0 {
            // Window updates come here only if they acknowledge something. All other ACKs answer a segment, so one that
            // acknowledges nothing new is a duplicate whatever its window says (MPTCP's window belongs to the connection).
            self.duplicate_ack(cx, cc, packet);
        }
        self.update_pacing_rate();
        self.send_again(cx);
        self.age_app_limited();
        self.sock.publish(cc);
        self.update_fast_path();
    }

    fn new_ack(&mut self, cx: &mut World, cc: &mut CcTable, packet: &Packet) {
        let prior_inflight = self.inflight();
        let prior_delivered = self.sock.tp.delivered;
        let mut summary = AckSummary::default();
        self.clean_acked(packet.seq(), packet.ts(), self.fack(), &mut summary);
        self.skip_acked();
        self.uncount_delivered(summary.newly);
        self.classic.duplicates = 0;
        self.sample_rtt(
            cx.now,
            packet.ts(),
            &summary,
            cc,
            prior_inflight,
            prior_delivered,
        );
        self.note_progress(cx.now);
        if packet.echo() {
            self.reduce_on_mark(cx, cc);
        }
        if self.recovery.state == CaState::Recovery && self.is_partial() {
            self.partial_ack(cx, summary.newly);
            return;
        }
        let delivered = self.sock.tp.delivered.wrapping_sub(prior_delivered);
        self.settle_state(cx, cc, delivered);
        self.rearm_timer(cx);
    }

    /// Update the congestion state on a new ACK, and grow the window unless a reduction is in progress.
    fn settle_state(&mut self, cx: &mut World, cc: &mut CcTable, delivered: u32) {
        let una = self.sock.tp.snd_una;
        match self.recovery.state {
            CaState::Recovery => {
                self.sock.tp.snd_cwnd = self.deflated_window();
                self.finish_reduction(cc);
                self.log(cx, EventKind::RecoveryEnded, self.sock.tp.snd_cwnd);
                return;
            }
            CaState::Cwr => {
                if una > self.recovery.high_seq {
                    self.finish_reduction(cc);
                }
                return;
            }
            CaState::Loss if una >= self.recovery.high_seq => {
                self.set_state(cc, CaState::Open);
                self.log(cx, EventKind::RecoveryEnded, self.sock.tp.snd_cwnd);
            }
            CaState::Disorder => self.set_state(cc, CaState::Open),
            CaState::Loss | CaState::Open => {}
        }
        self.sock.cong_avoid(cc, una, delivered);
    }

    fn finish_reduction(&mut self, cc: &mut CcTable) {
        self.sock.cwnd_event(cc, CaEvent::CompleteCwr);
        self.set_state(cc, CaState::Open);
    }

    /// The window after fast recovery. NewReno avoids a burst when little is in flight (RFC 6582 section 3.2, step 3).
    fn deflated_window(&self) -> u32 {
        let burst = match self.config.recovery {
            LossRecovery::NewReno => self.sock.tp.packets_out.max(1) + 1,
            _ => u32::MAX,
        };
        self.reduced_window().min(burst)
    }

    /// The algorithm's threshold. A least threshold or a bandwidth estimate must not raise the window.
    fn reduced_window(&self) -> u32 {
        let tp = &self.sock.tp;
        tp.snd_ssthresh.min(tp.prior_cwnd).max(1)
    }

    fn is_partial(&self) -> bool {
        self.config.recovery == LossRecovery::NewReno
            && self.sock.tp.snd_una < self.recovery.high_seq
    }

    /// NewReno's partial ACK: the next hole is lost as well. The timer restarts at the first one only, so that a long
    /// recovery ends with a timeout (RFC 6582 section 3.2, step 3).
    fn partial_ack(&mut self, cx: &mut World, newly: u32) {
        self.send_head_again(cx);
        self.sock.tp.snd_cwnd = self.sock.tp.snd_cwnd.saturating_sub(newly) + 1;
        if !std::mem::replace(&mut self.classic.met_partial, true) {
            self.rearm_timer(cx);
        }
    }

    fn duplicate_ack(&mut self, cx: &mut World, cc: &mut CcTable, packet: &Packet) {
        if packet.echo() {
            self.reduce_on_mark(cx, cc);
        }
        self.count_delivered(cc);
        self.classic.duplicates += 1;
        match self.recovery.state {
            CaState::Recovery => self.sock.tp.snd_cwnd += 1,
            _ if self.classic.duplicates == DUP_THRESHOLD && self.may_retransmit() => {
                self.fast_retransmit(cx, cc);
            }
            CaState::Open => self.set_state(cc, CaState::Disorder),
            _ => {}
        }
    }

    /// NewReno takes duplicates of what it sent before it last recovered for echoes of its own retransmissions
    /// (RFC 6582 section 3.2, step 1). The older ones reduce again.
    fn may_retransmit(&self) -> bool {
        self.config.recovery != LossRecovery::NewReno
            || self
                .classic
                .recover
                .is_none_or(|recover| self.sock.tp.snd_una > recover)
    }

    fn fast_retransmit(&mut self, cx: &mut World, cc: &mut CcTable) {
        // An answer to a mark of the same window has reduced it already (RFC 3168 section 6.1.2).
        if self.recovery.state != CaState::Cwr {
            self.begin_reduction(cc);
            self.count.loss_events += 1;
            self.log(cx, EventKind::LossEvent, self.sock.tp.snd_ssthresh);
        }
        self.recovery.high_seq = self.sock.tp.snd_nxt;
        self.classic.recover = Some(self.sock.tp.snd_nxt);
        self.classic.met_partial = false;
        if self.config.recovery == LossRecovery::Tahoe {
            self.go_back(cx, cc);
        } else {
            self.send_head_again(cx);
            self.sock.tp.snd_cwnd = self.reduced_window() + DUP_THRESHOLD;
            self.set_state(cc, CaState::Recovery);
        }
        self.rearm_rto(cx);
    }

    /// Retransmission timeout (RFC 5681 section 3.1); the caller sets the timer.
    pub(crate) fn classic_timeout(&mut self, cx: &mut World, cc: &mut CcTable) {
        if self.rtx.retransmits == 0 {
            let tp = &mut self.sock.tp;
            // An inflated window says nothing about the path: what counts is what is in flight.
            if self.recovery.state == CaState::Recovery {
                tp.snd_cwnd = tp.snd_cwnd.min(tp.packets_out);
            }
            tp.prior_cwnd = tp.snd_cwnd;
            self.sock.tp.snd_ssthresh = self.sock.ssthresh(cc);
            self.announce_cwr = self.config.ecn;
        }
        self.recovery.high_seq = self.sock.tp.snd_nxt;
        self.classic.recover = Some(self.sock.tp.snd_nxt);
        self.classic.duplicates = 0;
        self.classic.delivered = 0;
        self.go_back(cx, cc);
        self.send_again(cx);
        self.sock.publish(cc);
    }

    /// Slow start from a window of one, and everything in flight is to be sent again.
    fn go_back(&mut self, cx: &World, cc: &mut CcTable) {
        self.sock.cwnd_event(cc, CaEvent::Loss);
        let tp = &mut self.sock.tp;
        tp.snd_cwnd = 1;
        tp.snd_cwnd_cnt = 0;
        tp.lost_out = tp.packets_out;
        self.classic.next = tp.snd_una;
        self.usage.stamp_ns = cx.now;
        self.set_state(cc, CaState::Loss);
    }

    /// Go on sending again what was in flight, as far as the window allows.
    pub(crate) fn send_again(&mut self, cx: &mut World) {
        while self.sock.tp.lost_out > 0 && self.has_room() && !self.is_paced_out(cx) {
            let seq = self.classic.next;
            self.classic.next += 1;
            self.sock.tp.lost_out -= 1;
            self.resend(cx, seq);
        }
    }

    /// Fast retransmission of the oldest segment, which going back then need not repeat.
    fn send_head_again(&mut self, cx: &mut World) {
        let head = self.sock.tp.snd_una;
        if self.sock.tp.lost_out > 0 && self.classic.next == head {
            self.classic.next += 1;
            self.sock.tp.lost_out -= 1;
        }
        self.resend(cx, head);
    }

    fn resend(&mut self, cx: &mut World, seq: u32) {
        self.sock.tp.lost += 1;
        self.count.lost += 1;
        self.transmit_again(cx, seq, flag::EVER);
    }

    /// Skip acknowledged segments when going back.
    fn skip_acked(&mut self) {
        let (una, next) = (self.sock.tp.snd_una, self.classic.next);
        if self.sock.tp.lost_out > 0 && una > next {
            self.sock.tp.lost_out = self.sock.tp.lost_out.saturating_sub(una - next);
            self.classic.next = una;
        }
    }

    /// A duplicate ACK says that some segment arrived (Linux `tcp_add_reno_sack`).
    fn count_delivered(&mut self, cc: &mut CcTable) {
        if self.classic.delivered + 1 < self.sock.tp.packets_out {
            self.classic.delivered += 1;
            self.sock.tp.delivered = self.sock.tp.delivered.wrapping_add(1);
            let inflight = self.inflight();
            self.report_acked(cc, 1, None, inflight);
        }
    }

    /// An ACK covers one hole and, as far as they go, segments that were counted when duplicates came for them
    /// (Linux `tcp_remove_reno_sacks`).
    fn uncount_delivered(&mut self, newly: u32) {
        let counted = self.classic.delivered.min(newly - 1);
        let out = self.sock.tp.packets_out;
        self.sock.tp.delivered = self.sock.tp.delivered.wrapping_sub(counted);
        self.classic.delivered = (self.classic.delivered - counted).min(out.saturating_sub(1));
    }

    /// Answer a congestion mark at once, without proportional rate reduction.
    fn reduce_on_mark(&mut self, cx: &mut World, cc: &mut CcTable) {
        if (self.recovery.state as u8) < CaState::Cwr as u8 {
            self.enter_cwr(cx, cc);
            self.sock.tp.snd_cwnd = self.reduced_window();
        }
    }
}
