//! The retransmission timer: timeout, tail loss probe and reordering timer (RFC 6298, RFC 8985).

use super::rtt::{RTO_MAX_US, RTO_MIN_US};
use super::scoreboard::DUP_THRESHOLD;
use super::segments::flag;
use super::sender::Sender;
use super::state::Pending;
use crate::net::World;
use crate::net::event::{NEVER, TimerKind};
use mptcplab_cc::{CaEvent, CaState, Conn as CcTable};
use mptcplab_scenario::LossRecovery;
use mptcplab_trace::EventKind;

/// Slack of probe and reordering timers: Linux' `TCP_TIMEOUT_MIN_US`.
const TIMER_SLACK_US: u32 = 2_000;

impl Sender {
    /// Timeout with backoff.
    #[inline(always)]
    fn rto_backed_off_us(&self) -> u32 {
        // Nearly always; the estimator has bounded it.
        if self.rtx.backoff == 0 {
            return self.rtt.rto_us;
        }
        let longer = u64::from(self.rtt.rto_us) << self.rtx.backoff.min(16);
        longer.min(u64::from(RTO_MAX_US)) as u32
    }

    /// Timeout with backoff.
    #[inline(always)]
    pub(crate) fn rto_backed_off(&self) -> u64 {
        u64::from(self.rto_backed_off_us()) * 1000
    }

    /// Set the timer after progress or a first transmission: a tail loss probe if allowed, else the timeout.
    #[inline(always)]
    pub(crate) fn rearm_timer(&mut self, cx: &mut World) {
        let tp = &self.sock.tp;
        if tp.packets_out == 0 {
            self.rtx.timer.deadline = NEVER;
            return;
        }
        if self.probes() {
            // RFC 8985 section 7.2: a timeout due earlier becomes the probe's time.
            let wait_us = self.probe_wait_us().min(self.rto_backed_off_us());
            self.arm(
                cx,
                Pending::TailLossProbe,
                cx.now + u64::from(wait_us) * 1000,
            );
        } else {
            self.arm(cx, Pending::Rto, cx.now + self.rto_backed_off());
        }
    }

    /// Set the timer after a new segment: the probe counts from the last one (Linux `tcp_schedule_loss_probe` at the end of
    /// `tcp_write_xmit`), the timeout from the oldest.
    #[inline(never)]
    pub(crate) fn rearm_after_send(&mut self, cx: &mut World) {
        if self.sock.tp.packets_out == 1 || self.rtx.timer.deadline == NEVER {
            self.rearm_timer(cx);
        } else if self.probes() {
            let wait = cx.now + u64::from(self.probe_wait_us()) * 1000;
            let timeout = self.head_timeout();
            let at = if timeout > cx.now {
                timeout.min(wait)
            } else {
                wait
            };
            self.arm(cx, Pending::TailLossProbe, at);
        }
    }

    #[inline(always)]
    fn probes(&self) -> bool {
        let tp = &self.sock.tp;
        self.recovery.may_probe() && tp.sacked_out == 0 && tp.srtt_us != 0
    }

    /// 2 srtt; the receiver may delay its ACK of a single packet.
    #[inline(always)]
    fn probe_wait_us(&self) -> u32 {
        let tp = &self.sock.tp;
        let slack = if tp.packets_out == 1 {
            RTO_MIN_US
        } else {
            TIMER_SLACK_US
        };
        (tp.srtt_us >> 2) + slack
    }

    /// When the timeout of the oldest segment is (Linux `tcp_rto_delta_us`).
    fn head_timeout(&self) -> u64 {
        self.segments.get(self.sock.tp.snd_una).sent_ns + self.rto_backed_off()
    }

    /// Set the timer.
    #[inline(always)]
    fn arm(&mut self, cx: &mut World, pending: Pending, at: u64) {
        self.rtx.pending = pending;
        self.rtx.armed_ns = cx.now;
        cx.timers
            .set(&mut self.rtx.timer, at, TimerKind::Retransmit, self.id);
    }

    /// Set the reordering timer for when RACK may find the next loss, `wait` from now, but no later than the timeout.
    pub(crate) fn arm_reordering(&mut self, cx: &mut World, wait: u64) {
        let wait = (wait + u64::from(TIMER_SLACK_US) * 1000).min(self.rto_backed_off());
        self.arm(cx, Pending::Reordering, cx.now + wait);
    }

    /// Set the plain timeout.
    pub(crate) fn rearm_rto(&mut self, cx: &mut World) {
        if self.sock.tp.packets_out == 0 {
            self.rtx.timer.deadline = NEVER;
            return;
        }
        self.arm(cx, Pending::Rto, cx.now + self.rto_backed_off());
    }

    /// The timer fired on an established subflow. Returns true if it was a timeout.
    pub(crate) fn on_timer(&mut self, cx: &mut World, cc: &mut CcTable) -> bool {
        self.sock.tp.tcp_mstamp = cx.now / 1000;
        if self.sock.tp.packets_out == 0 {
            return false;
        }
        match self.rtx.pending {
            Pending::Reordering => {
                self.reordering_timeout(cx, cc);
                false
            }
            Pending::TailLossProbe => {
                self.recovery.probe_due = true;
                false
            }
            Pending::Rto => {
                self.timeout(cx, cc);
                true
            }
        }
    }

    /// Send the probe: new data if `sent_new` says that the connection could, else the last segment again.
    pub(crate) fn finish_probe(&mut self, cx: &mut World, sent_new: bool) {
        self.recovery.probe_due = false;
        if self.sock.tp.packets_out == 0 {
            return;
        }
        let mut timeout = self.head_timeout();
        if self.recovery.tlp_high_seq.is_none() {
            timeout = cx.now + self.rto_backed_off();
            self.recovery.tlp_retrans = !sent_new;
            if !sent_new {
                self.probe_with(cx, self.sock.tp.snd_nxt - 1);
            }
            self.recovery.tlp_high_seq = Some(self.sock.tp.snd_nxt);
            self.recovery.scoreboard_in_use = true;
            self.log(cx, EventKind::TlpSent, 0_u64);
        }
        // One probe at a time: without a new one the timeout counts from the oldest segment (Linux `tcp_rearm_rto`).
        self.arm(cx, Pending::Rto, timeout.max(cx.now + 1000));
    }

    /// Retransmission timeout (RFC 6298 section 5, Linux `tcp_enter_loss`).
    fn timeout(&mut self, cx: &mut World, cc: &mut CcTable) {
        self.count.rto_count += 1;
        self.count.rto_wait_ns += cx.now - self.rtx.progress_ns;
        self.log(cx, EventKind::RtoFired, self.rtx.backoff);
        match self.config.recovery {
            LossRecovery::Sack => self.lose_all(cx, cc),
            _ => self.classic_timeout(cx, cc),
        }
        self.rtx.retransmits += 1;
        self.rtx.backoff = (self.rtx.backoff + 1).min(16);
        self.rearm_rto(cx);
    }

    /// Loss recovery begins: everything in flight except what was sent last counts as lost, and the oldest segment is sent again.
    fn lose_all(&mut self, cx: &mut World, cc: &mut CcTable) {
        self.enter_loss(cx, cc);
        let head = self.sock.tp.snd_una;
        if self.segments.get(head).flags & flag::RETRANS == 0 {
            self.retransmit(cx, head);
        }
    }

    fn enter_loss(&mut self, cx: &mut World, cc: &mut CcTable) {
        self.mark_lost_on_timeout(cx.now);
        let new_recovery = (self.recovery.state as u8) < CaState::Recovery as u8;
        // So much was SACKed, and yet a timeout: the degree of reordering was overestimated.
        if self.recovery.state as u8 <= CaState::Disorder as u8
            && self.sock.tp.sacked_out >= DUP_THRESHOLD
        {
            self.scoreboard.reordering = self.scoreboard.reordering.min(DUP_THRESHOLD);
        }
        let r = &self.recovery;
        if r.state as u8 <= CaState::Disorder as u8
            || r.high_seq <= self.sock.tp.snd_una
            || (r.state == CaState::Loss && self.rtx.retransmits == 0)
        {
            self.recovery.prior_ssthresh = self.current_ssthresh();
            self.sock.tp.prior_cwnd = self.sock.tp.snd_cwnd;
            self.sock.tp.snd_ssthresh = self.sock.ssthresh(cc);
            self.sock.cwnd_event(cc, CaEvent::Loss);
            self.init_undo();
        }
        self.sock.tp.snd_cwnd = self.inflight() + 1;
        self.sock.tp.snd_cwnd_cnt = 0;
        self.usage.stamp_ns = cx.now;
        self.announce_cwr = self.config.ecn;
        self.recovery.frto = new_recovery || self.rtx.retransmits > 0;
        self.set_state(cc, CaState::Loss);
        self.recovery.high_seq = self.sock.tp.snd_nxt;
        self.recovery.tlp_high_seq = None;
    }

    /// Mark everything lost that is not acknowledged, except what was sent too recently (RFC 8985 section 6.3).
    fn mark_lost_on_timeout(&mut self, now: u64) {
        let (una, nxt) = (self.sock.tp.snd_una, self.sock.tp.snd_nxt);
        for seq in una..nxt {
            let sent = self.segments.get(seq).sent_ns;
            if seq == una || sent + self.scoreboard.rack.rtt_ns <= now {
                self.mark_lost(seq);
            }
        }
    }
}
