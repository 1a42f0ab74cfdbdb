//! Congestion states and recovery: fast recovery with PRR, loss recovery with F-RTO, undo, ECN
//! (RFC 5681, RFC 6937, RFC 5682, RFC 4015, RFC 3168), in the order of Linux' `tcp_ack`.

use super::rate_sample::AckInfo;
use super::scoreboard::AckSummary;
use super::segments::flag;
use super::sender::{INFINITE_SSTHRESH, Sender};
use super::state::Pending;
use crate::net::packet::Packet;
use crate::net::{SackBlocks, World};
use mptcplab_cc::{CaEvent, CaState, Conn as CcTable};
use mptcplab_scenario::LossRecovery;
use mptcplab_trace::EventKind;

impl Sender {
    /// An ACK while something is out of order, lost, retransmitted, probed or marked.
    #[inline(never)]
    pub(crate) fn ack_with_recovery(&mut self, cx: &mut World, cc: &mut CcTable, packet: &Packet) {
        let prior_inflight = self.inflight();
        let prior_delivered = self.sock.tp.delivered;
        let prior_lost = self.count.lost;
        let mut summary = AckSummary::default();
        self.recovery.scoreboard_in_use = true;
        let sack = if packet.sack() == 0 {
            SackBlocks::default()
        } else {
            cx.net.sacks.take(packet.sack())
        };
        let prior_fack = self.fack();
        self.process_sacks(&sack, packet.seq(), &mut summary);
        self.clean_acked(packet.seq(), packet.ts(), prior_fack, &mut summary);
        self.check_sack_reordering(&summary);
        self.sample_rtt(
            cx.now,
            packet.ts(),
            &summary,
            cc,
            prior_inflight,
            prior_delivered,
        );
        if summary.newly > 0 {
            self.note_progress(cx.now);
        }
        self.process_tlp(packet.seq(), &summary, cx, cc);
        let mut reordering_wait = None;
        if self.is_dubious(&summary, packet.echo()) {
            reordering_wait = self.advance_state(cx, cc, &mut summary, packet);
        }
        if let Some(wait) = reordering_wait {
            self.arm_reordering(cx, wait);
        } else if summary.newly > 0 || self.sacked_before_head(&summary) {
            self.rearm_timer(cx);
        }
        let delivered = self.sock.tp.delivered - prior_delivered;
        let lost = (self.count.lost - prior_lost) as u32;
        if self.rates.is_some() {
            self.control_rate(cc, packet, &summary, prior_inflight, delivered, lost);
        } else {
            self.control_window(cc, delivered, lost > 0, packet.seq(), &summary);
        }
        if !self.recovery.frto_hold && !summary.holds_back {
            self.retransmit_lost(cx);
        }
        self.age_app_limited();
        self.sock.publish(cc);
        self.update_fast_path();
    }

    /// Whether the SACKed segments were sent before the latest transmission of the oldest segment. Only then do they restart the
    /// timer; otherwise SACKs could delay the timeout for ever (Linux `tcp_clean_rtx_queue`).
    fn sacked_before_head(&self, summary: &AckSummary) -> bool {
        self.sock.tp.packets_out > 0
            && summary
                .sack_sent_ns
                .is_some_and(|sent| sent < self.segments.get(self.sock.tp.snd_una).sent_ns)
    }

    /// Called after the connection has tried to send new data. If there were none, F-RTO ends.
    pub(crate) fn finish_frto_probe(&mut self, cx: &mut World, sent_new: bool) {
        self.recovery.frto_hold = false;
        if !sent_new {
            self.recovery.frto = false;
            self.retransmit_lost(cx);
        }
    }

    /// Allow the fast path again if nothing is left of the episode. Segments that were retransmitted lie below `high_seq`.
    pub(crate) fn update_fast_path(&mut self) {
        let (tp, r) = (&self.sock.tp, &mut self.recovery);
        // Rate samples are taken off the fast path only.
        r.scoreboard_in_use = self.rates.is_some()
            || r.state != CaState::Open
            || tp.sacked_out + tp.lost_out + tp.retrans_out > 0
            || r.tlp_high_seq.is_some()
            || tp.snd_una < r.high_seq;
    }

    pub(crate) fn sample_rtt(
        &mut self,
        now: u64,
        echo: u32,
        summary: &AckSummary,
        cc: &mut CcTable,
        prior_inflight: u32,
        prior_delivered: u32,
    ) {
        let rtts = summary.rtts_ns(now, echo);
        if let Some((first_ns, last_ns)) = rtts {
            self.rtt.sample(&mut self.sock.tp, first_ns, last_ns);
            // RFC 6298 section 5: a new measurement ends the backoff, that of a SACK as well (`tcp_ack_update_rtt`).
            self.rtx.backoff = 0;
        }
        let delivered = self.sock.tp.delivered - prior_delivered - u32::from(summary.dsack);
        if delivered > 0 {
            let last_ns = rtts.map(|(_, last_ns)| last_ns);
            self.report_acked(cc, delivered, last_ns, prior_inflight);
        }
    }

    fn is_dubious(&self, summary: &AckSummary, echo: bool) -> bool {
        summary.newly == 0
            || summary.data_sacked
            || summary.dsack
            || echo
            || self.recovery.state != CaState::Open
    }

    /// Outcome of a tail loss probe (RFC 8985 section 7.4).
    fn process_tlp(&mut self, ack: u32, summary: &AckSummary, cx: &mut World, cc: &mut CcTable) {
        let Some(high) = self.recovery.tlp_high_seq else {
            return;
        };
        if ack < high {
            return;
        }
        if !self.recovery.tlp_retrans || summary.probe_was_duplicate {
            self.recovery.tlp_high_seq = None;
        } else if ack > high || summary.newly > 0 {
            // The probe repaired a loss: one reduction, done at once.
            if ack > high {
                self.recovery.tlp_high_seq = None;
                self.begin_reduction(cc);
                self.set_state(cc, CaState::Cwr);
                self.end_reduction(cc);
                self.count.loss_events += 1;
                self.log(cx, EventKind::LossEvent, self.sock.tp.snd_ssthresh);
                self.try_keep_open(cc);
            }
        } else if !summary.data_sacked {
            self.recovery.tlp_high_seq = None;
        }
    }

    /// The state machine (Linux `tcp_fastretrans_alert`). Returns how long until RACK may find another loss.
    fn advance_state(
        &mut self,
        cx: &mut World,
        cc: &mut CcTable,
        summary: &mut AckSummary,
        packet: &Packet,
    ) -> Option<u64> {
        if packet.echo() {
            self.recovery.prior_ssthresh = 0;
        }
        let una = self.sock.tp.snd_una;
        if self.recovery.state == CaState::Open {
            self.recovery.retrans_stamp = None;
        } else if una >= self.recovery.high_seq {
            match self.recovery.state {
                CaState::Cwr if una > self.recovery.high_seq => {
                    self.end_reduction(cc);
                    self.set_state(cc, CaState::Open);
                }
                CaState::Recovery => {
                    if !self.undo_recovery(cx, cc, packet.ts()) {
                        self.end_reduction(cc);
                        self.set_state(cc, CaState::Open);
                    }
                    self.log(cx, EventKind::RecoveryEnded, self.sock.tp.snd_cwnd);
                }
                _ => {}
            }
        }
        match self.recovery.state {
            CaState::Recovery => {
                if summary.newly > 0 && self.undo_partial(cx, cc, summary, packet.ts()) {
                    summary.holds_back = true;
                    return None;
                }
                if self.undo_by_dsack(cx, cc) {
                    self.try_to_open(cx, cc, packet.echo());
                }
                let (wait, _) = self.identify_loss(cx.now);
                // An undo ended the episode; if loss is evident all the same, another begins.
                if self.recovery.state != CaState::Recovery && self.sock.tp.lost_out > 0 {
                    self.enter_recovery(cx, cc, packet.echo());
                }
                wait
            }
            CaState::Loss => {
                self.process_loss(cx, cc, summary, packet.ts());
                let (wait, lost_again) = self.identify_loss(cx.now);
                if self.recovery.state != CaState::Loss || lost_again {
                    self.maybe_enter_recovery(cx, cc, packet.echo());
                }
                wait
            }
            _ => {
                if self.recovery.state as u8 <= CaState::Disorder as u8 {
                    self.undo_by_dsack(cx, cc);
                }
                let (wait, _) = self.identify_loss(cx.now);
                self.maybe_enter_recovery(cx, cc, packet.echo());
                wait
            }
        }
    }

    /// Let RACK look for losses. Returns how long until it may find another one, and whether a retransmission was lost.
    fn identify_loss(&mut self, now: u64) -> (Option<u64>, bool) {
        if !self.scoreboard.rack.advanced || self.sock.tp.packets_out == 0 {
            return (None, false);
        }
        self.scoreboard.rack.advanced = false;
        let in_flight_again = self.sock.tp.retrans_out;
        let wait = self.detect_loss(now);
        (wait, self.sock.tp.retrans_out < in_flight_again)
    }

    fn maybe_enter_recovery(&mut self, cx: &mut World, cc: &mut CcTable, echo: bool) {
        if self.sock.tp.lost_out == 0 {
            self.try_to_open(cx, cc, echo);
        } else if self.recovery.state != CaState::Recovery {
            self.enter_recovery(cx, cc, echo);
        }
    }

    /// Fast recovery begins: one reduction per episode.
    fn enter_recovery(&mut self, cx: &mut World, cc: &mut CcTable, echo: bool) {
        // An earlier episode says nothing about what this one sends again (`tcp_retrans_stamp_cleanup`).
        self.forget_stamp();
        self.recovery.prior_ssthresh = 0;
        self.init_undo();
        if !self.recovery.in_reduction() {
            if !echo {
                self.recovery.prior_ssthresh = self.current_ssthresh();
            }
            self.begin_reduction(cc);
            self.count.loss_events += 1;
            self.log(cx, EventKind::LossEvent, self.sock.tp.snd_ssthresh);
        }
        self.set_state(cc, CaState::Recovery);
    }

    pub(crate) fn init_undo(&mut self) {
        self.recovery.undo_marker = Some(self.sock.tp.snd_una);
        let r = &self.recovery;
        let probe = u32::from(r.tlp_high_seq.is_some() && r.tlp_retrans);
        self.recovery.undo_retrans = Some(self.sock.tp.retrans_out + probe).filter(|n| *n > 0);
        self.recovery.scoreboard_in_use = true;
    }

    pub(crate) fn begin_reduction(&mut self, cc: &mut CcTable) {
        self.recovery.high_seq = self.sock.tp.snd_nxt;
        self.recovery.tlp_high_seq = None;
        self.recovery.prr_delivered = 0;
        self.recovery.prr_out = 0;
        self.recovery.scoreboard_in_use = true;
        self.sock.tp.snd_cwnd_cnt = 0;
        self.sock.tp.prior_cwnd = self.sock.tp.snd_cwnd;
        self.sock.tp.snd_ssthresh = self.sock.ssthresh(cc);
        self.announce_cwr = self.config.ecn;
    }

    fn end_reduction(&mut self, cc: &mut CcTable) {
        if self.rates.is_some() {
            return;
        }
        let tp = &mut self.sock.tp;
        let still_reduced =
            self.recovery.state == CaState::Cwr || self.recovery.undo_marker.is_some();
        if tp.snd_ssthresh < INFINITE_SSTHRESH && still_reduced {
            tp.snd_cwnd = tp.snd_ssthresh.max(1);
        }
        self.sock.cwnd_event(cc, CaEvent::CompleteCwr);
    }

    /// Enter `state` and tell the algorithm.
    pub(crate) fn set_state(&mut self, cc: &mut CcTable, state: CaState) {
        self.recovery.state = state;
        self.sock.set_state(cc, state);
        if state != CaState::Open {
            self.recovery.scoreboard_in_use = true;
        }
    }

    /// Forget when the first retransmission was sent, unless one of them may still be on the way.
    fn forget_stamp(&mut self) {
        if !self.any_retransmitted() {
            self.recovery.retrans_stamp = None;
        }
    }

    fn try_to_open(&mut self, cx: &mut World, cc: &mut CcTable, echo: bool) {
        self.forget_stamp();
        if echo {
            self.enter_cwr(cx, cc);
        }
        if self.recovery.state != CaState::Cwr {
            self.try_keep_open(cc);
        }
    }

    fn try_keep_open(&mut self, cc: &mut CcTable) {
        let tp = &self.sock.tp;
        let unsettled = tp.sacked_out + tp.lost_out > 0 || self.any_retransmitted();
        let state = if unsettled {
            CaState::Disorder
        } else {
            CaState::Open
        };
        if self.recovery.state != state {
            self.set_state(cc, state);
            self.recovery.high_seq = self.sock.tp.snd_nxt;
        }
    }

    /// Whether a retransmission is in flight, or the oldest segment has been retransmitted (Linux `tcp_any_retrans_done`).
    fn any_retransmitted(&self) -> bool {
        let tp = &self.sock.tp;
        let head_again = || self.segments.get(tp.snd_una).flags & flag::EVER != 0;
        tp.retrans_out > 0 || tp.packets_out > 0 && head_again()
    }

    /// Reduce because of an ECN echo, once per window (RFC 3168 section 6.1.2).
    pub(crate) fn enter_cwr(&mut self, cx: &mut World, cc: &mut CcTable) {
        self.recovery.prior_ssthresh = 0;
        if self.recovery.state as u8 >= CaState::Cwr as u8 {
            return;
        }
        self.recovery.undo_marker = None;
        self.begin_reduction(cc);
        self.set_state(cc, CaState::Cwr);
        self.count.ecn_events += 1;
        self.log(cx, EventKind::EcnEvent, self.sock.tp.snd_ssthresh);
    }

    /// Loss recovery after a timeout, with F-RTO (RFC 5682 section 3.1).
    fn process_loss(&mut self, cx: &mut World, cc: &mut CcTable, summary: &AckSummary, echo: u32) {
        let una = self.sock.tp.snd_una;
        let recovered = una >= self.recovery.high_seq;
        if summary.newly > 0 && self.undo_loss(cx, cc, echo, false) {
            return;
        }
        if self.recovery.frto {
            if summary.original_arrived && self.undo_loss(cx, cc, echo, true) {
                return;
            }
            if self.sock.tp.snd_nxt > self.recovery.high_seq {
                // The D-SACK of the retransmission is not a duplicate of an ACK.
                if summary.data_sacked || summary.newly == 0 && !summary.dsack {
                    self.recovery.frto = false;
                }
            } else if summary.newly > 0 && !recovered {
                // New data will tell whether the original flight is still arriving.
                self.recovery.high_seq = self.sock.tp.snd_nxt;
                self.recovery.frto_hold = true;
                return;
            }
        }
        if recovered {
            if !self.undo_recovery(cx, cc, echo) {
                self.set_state(cc, CaState::Open);
            }
            self.log(cx, EventKind::RecoveryEnded, self.sock.tp.snd_cwnd);
        }
    }

    /// Whether the reduction was spurious: all retransmissions were duplicates (RFC 3708), or what was missing was only late.
    fn may_undo(&self, echo: u32) -> bool {
        let r = &self.recovery;
        r.undo_marker.is_some() && (r.undo_retrans == Some(0) || self.was_only_late(echo))
    }

    /// Whether what an ACK acknowledges is the original: it echoes a timestamp from before the first retransmission (RFC 4015), or
    /// nothing has been sent again yet, because the window or pacing held it back (Linux `tcp_packet_delayed`).
    fn was_only_late(&self, echo: u32) -> bool {
        self.recovery.retrans_stamp.is_none_or(|stamp| echo < stamp)
    }

    fn undo_recovery(&mut self, cx: &mut World, cc: &mut CcTable, echo: u32) -> bool {
        let undone = self.may_undo(echo);
        if undone {
            self.undo_reduction(cx, cc);
            self.set_state(cc, CaState::Open);
        } else {
            self.scoreboard.rack.recovered();
        }
        undone
    }

    /// A partial ACK in recovery that shows that the first retransmission was not needed. Returns whether nothing else is to be
    /// done, because retransmissions are still in flight (Linux `tcp_try_undo_partial`).
    fn undo_partial(
        &mut self,
        cx: &mut World,
        cc: &mut CcTable,
        summary: &AckSummary,
        echo: u32,
    ) -> bool {
        if self.recovery.undo_marker.is_none() || !self.was_only_late(echo) {
            return false;
        }
        self.note_reordering(self.sock.tp.snd_una - summary.newly, self.scoreboard.fack);
        if self.sock.tp.retrans_out > 0 {
            return true;
        }
        self.forget_stamp();
        self.unmark_lost();
        self.undo_reduction(cx, cc);
        self.try_keep_open(cc);
        false
    }

    fn undo_by_dsack(&mut self, cx: &mut World, cc: &mut CcTable) -> bool {
        let r = &self.recovery;
        if r.undo_marker.is_none() || r.undo_retrans != Some(0) {
            return false;
        }
        self.scoreboard.rack.undone();
        self.unmark_lost();
        self.undo_reduction(cx, cc);
        true
    }

    fn undo_loss(&mut self, cx: &mut World, cc: &mut CcTable, echo: u32, by_frto: bool) -> bool {
        if !by_frto && !self.may_undo(echo) {
            return false;
        }
        self.unmark_lost();
        self.undo_reduction(cx, cc);
        self.recovery.frto = false;
        self.set_state(cc, CaState::Open);
        // By this the connection sees that the subflow works again.
        self.rtx.retransmits = 0;
        true
    }

    /// Take all loss marks away.
    fn unmark_lost(&mut self) {
        for seq in self.sock.tp.snd_una..self.sock.tp.snd_nxt {
            self.segments.get_mut(seq).flags &= !flag::LOST;
        }
        self.sock.tp.lost_out = 0;
        self.scoreboard.lost.clear();
        self.examine_again();
    }

    fn undo_reduction(&mut self, cx: &mut World, cc: &mut CcTable) {
        if self.recovery.prior_ssthresh > 0 {
            self.sock.tp.snd_cwnd = self.sock.undo_cwnd(cc);
            if self.recovery.prior_ssthresh > self.sock.tp.snd_ssthresh {
                self.sock.tp.snd_ssthresh = self.recovery.prior_ssthresh;
                self.announce_cwr = false;
            }
            self.count.undo_count += 1;
            self.log(cx, EventKind::Undo, self.sock.tp.snd_cwnd);
        }
        self.recovery.undo_marker = None;
        self.scoreboard.rack.advanced = true;
        self.usage.stamp_ns = cx.now;
    }

    /// Linux `tcp_cong_control` of an algorithm that controls its own rate: in every state, instead of growth and of
    /// proportional rate reduction. `prior_in_flight` and `losses` are packets before, and lost by, this ACK.
    pub(crate) fn control_rate(
        &mut self,
        cc: &mut CcTable,
        packet: &Packet,
        summary: &AckSummary,
        prior_in_flight: u32,
        delivered: u32,
        losses: u32,
    ) {
        let single_short_segment = summary.newly == 1
            && !(summary.data_sacked || summary.dsack || packet.echo())
            && self.is_short(packet.seq() - 1);
        // Linux' clock of microseconds: both times are cut off.
        let rtts = summary.rtts_ns(1000 * self.sock.tp.tcp_mstamp, packet.ts());
        let info = AckInfo {
            delivered,
            losses,
            prior_in_flight,
            rtt_us: rtts.map(|(_, last_ns)| last_ns.div_ceil(1000)),
            single_short_segment,
        };
        let Some(rates) = &mut self.rates else { return };
        let sample = rates.sample(&self.sock.tp, info);
        self.sock.cong_control(cc, packet.seq(), 0, &sample);
    }

    fn is_short(&self, seq: u32) -> bool {
        let full = u32::from(self.config.data_header) + self.sock.tp.mss_cache;
        u32::from(self.segments.get(seq).len) < full
    }

    /// Linux `tcp_cong_control`: proportional rate reduction, or growth.
    fn control_window(
        &mut self,
        cc: &mut CcTable,
        delivered: u32,
        newly_lost: bool,
        ack: u32,
        summary: &AckSummary,
    ) {
        if self.recovery.in_reduction() {
            self.reduce_window(delivered, newly_lost, summary);
        } else if self.may_raise_window(summary) {
            self.sock.cong_avoid(cc, ack, delivered);
        }
        self.update_pacing_rate();
    }

    fn may_raise_window(&self, summary: &AckSummary) -> bool {
        if self.scoreboard.reordering > 3 {
            summary.newly > 0 || summary.data_sacked
        } else {
            summary.newly > 0
        }
    }

    /// PRR (RFC 6937) as Linux runs it.
    fn reduce_window(&mut self, delivered: u32, newly_lost: bool, summary: &AckSummary) {
        if delivered == 0 || self.sock.tp.prior_cwnd == 0 || self.rates.is_some() {
            return;
        }
        let inflight = self.inflight();
        let r = &mut self.recovery;
        r.prr_delivered += delivered;
        let ssthresh = self.sock.tp.snd_ssthresh;
        let send = if inflight > ssthresh {
            // Both factors are windows, < 2^32 each.
            let target = u64::from(ssthresh) * u64::from(r.prr_delivered);
            (target.div_ceil(u64::from(self.sock.tp.prior_cwnd)) as u32).saturating_sub(r.prr_out)
        } else {
            let mut n = r.prr_delivered.saturating_sub(r.prr_out).max(delivered);
            if summary.newly > 0 && !newly_lost {
                n += 1;
            }
            n.min(ssthresh - inflight)
        };
        // The first retransmission always goes out.
        let send = if r.prr_out == 0 { send.max(1) } else { send };
        self.sock.tp.snd_cwnd = (inflight + send).max(1);
    }

    /// Retransmit lost segments while the window has room.
    pub(crate) fn retransmit_lost(&mut self, cx: &mut World) {
        if self.sock.tp.lost_out <= self.sock.tp.retrans_out && self.scoreboard.lost.is_empty() {
            return;
        }
        if self.config.recovery != LossRecovery::Sack {
            return self.send_again(cx);
        }
        let mut head_again = false;
        while self.has_room() {
            let Some(seq) = self.next_lost() else { break };
            if self.is_paced_out(cx) {
                break;
            }
            head_again |= seq == self.sock.tp.snd_una;
            self.retransmit(cx, seq);
        }
        // Not a tail loss probe either: what is in flight again has a timeout of its own (`tcp_xmit_retransmit_queue`).
        if head_again && self.rtx.pending != Pending::Reordering {
            self.rearm_rto(cx);
        }
    }

    /// The reordering timer fired: what RACK waited for is lost (RFC 8985 section 6.3).
    pub(crate) fn reordering_timeout(&mut self, cx: &mut World, cc: &mut CcTable) {
        let before = self.inflight();
        let wait = self.detect_loss(cx.now);
        if self.inflight() != before {
            if self.recovery.state != CaState::Recovery {
                self.enter_recovery(cx, cc, false);
                self.reduce_window(1, true, &AckSummary::default());
            }
            self.rtx.pending = Pending::Rto;
            self.retransmit_lost(cx);
        }
        match wait {
            Some(wait) => self.arm_reordering(cx, wait),
            None => self.rearm_rto(cx),
        }
        self.update_fast_path();
    }
}
