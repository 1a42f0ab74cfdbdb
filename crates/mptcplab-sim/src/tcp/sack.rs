//! SACK processing and RACK loss detection (RFC 2018, RFC 2883, RFC 8985).
//!
//! The work per ACK is proportional to what the ACK newly reports, not to the window.

use super::scoreboard::AckSummary;
use super::segments::flag;
use super::sender::Sender;
use crate::net::packet::tick;
use crate::net::{SackBlocks, World};
use mptcplab_cc::CaState;
use std::cmp::Reverse;

/// Bound of the adapted threshold, Linux' `tcp_max_reordering`.
const MAX_REORDERING: u32 = 300;
impl Sender {
    /// Mark what the SACK blocks of an ACK say is new.
    pub(crate) fn process_sacks(&mut self, sack: &SackBlocks, ack: u32, summary: &mut AckSummary) {
        let una = self.sock.tp.snd_una;
        let mut sack = *sack;
        let mut blocks = &mut sack.blocks[..usize::from(sack.len)];
        if sack.dsack {
            summary.dsack = self.note_dsack(blocks[0], summary);
            blocks = &mut blocks[1..];
        }
        // The latest block comes first and would make lower ones look reordered; Linux sorts them as well.
        blocks.sort_unstable();
        let known = self.scoreboard.known;
        let mut fresh = SackBlocks::default();
        for &mut (start, end) in blocks {
            let (start, end) = (start.max(una).max(ack), end.min(self.sock.tp.snd_nxt));
            if start >= end {
                continue;
            }
            fresh.push((start, end));
            // Like Linux' recv_sack_cache: skip what a block of the previous ACK already covered.
            match known.as_slice().iter().find(|k| k.0 < end && start < k.1) {
                Some(&(ks, ke)) => {
                    self.sack_range(start, ks.max(start), summary);
                    self.sack_range(ke.min(end), end, summary);
                }
                None => self.sack_range(start, end, summary),
            }
        }
        self.scoreboard.known = fresh;
    }

    fn sack_range(&mut self, start: u32, end: u32, summary: &mut AckSummary) {
        for seq in start..end {
            self.sack_one(seq, summary);
        }
    }

    fn sack_one(&mut self, seq: u32, summary: &mut AckSummary) {
        let segment = *self.segments.get(seq);
        if segment.flags & flag::SACKED != 0 {
            return;
        }
        let mut flags = segment.flags;
        let tp = &mut self.sock.tp;
        if flags & flag::RETRANS != 0 {
            // If it was not thought lost, the copy in flight still counts until it is acknowledged.
            if flags & flag::LOST != 0 {
                flags &= !(flag::LOST | flag::RETRANS);
                tp.lost_out -= 1;
                tp.retrans_out -= 1;
            }
        } else {
            if flags & flag::EVER == 0 {
                if seq < self.scoreboard.fack {
                    summary.lowest = Some(summary.lowest.map_or(seq, |l| l.min(seq)));
                }
                if seq < self.recovery.high_seq {
                    summary.original_arrived = true;
                }
                summary.sack_sent_ns.get_or_insert(segment.sent_ns);
                summary.last_sack_sent_ns = Some(segment.sent_ns);
            }
            if flags & flag::LOST != 0 {
                flags &= !flag::LOST;
                tp.lost_out -= 1;
            }
        }
        tp.sacked_out += 1;
        tp.delivered += 1;
        self.count.acked += 1;
        summary.data_sacked = true;
        self.segments.get_mut(seq).flags = flags | flag::SACKED;
        self.scoreboard.fack = self.scoreboard.fack.max(seq + 1);
        self.rack_advance(segment.flags, seq + 1, segment.sent_ns);
        self.note_delivered(seq, segment.sent_ns, segment.flags);
    }

    /// A D-SACK: one retransmission was spurious. Returns whether it counts: a network that duplicates packets causes more of
    /// them than there were retransmissions (`tcp_dsack_seen`).
    fn note_dsack(&mut self, (start, end): (u32, u32), summary: &mut AckSummary) -> bool {
        summary.probe_was_duplicate = self.recovery.tlp_high_seq == Some(end);
        self.scoreboard.dsacks += 1;
        if self.scoreboard.dsacks > self.count.retransmitted {
            return false;
        }
        let (una, nxt) = (self.sock.tp.snd_una, self.sock.tp.snd_nxt);
        let sent_again =
            start < una || start < nxt && self.segments.get(start).flags & flag::EVER != 0;
        // A copy that was not needed is delivered as well.
        self.sock.tp.delivered += 1;
        let r = &mut self.recovery;
        if let (Some(marker), Some(pending)) = (r.undo_marker, r.undo_retrans.as_mut()) {
            if start >= marker && sent_again && *pending > 0 {
                *pending -= 1;
            }
        }
        // A probe is not a retransmission that a wider window would have prevented.
        if self.scoreboard.reordering_seen && !summary.probe_was_duplicate {
            self.scoreboard.rack.widen(una, nxt);
        }
        true
    }

    /// One above the highest segment known to have arrived: an original segment that arrives below it was reordered.
    pub(crate) fn fack(&self) -> u32 {
        if self.sock.tp.sacked_out > 0 {
            self.scoreboard.fack
        } else {
            self.sock.tp.snd_una
        }
    }

    /// Remove everything below the cumulative ACK from the scoreboard. `echo`: the timestamp that the ACK echoes.
    /// `prior_fack`: [`Self::fack`] before this ACK. Its own SACK blocks lie above the cumulative ACK and do not show
    /// reordering.
    pub(crate) fn clean_acked(
        &mut self,
        ack: u32,
        echo: u32,
        prior_fack: u32,
        summary: &mut AckSummary,
    ) {
        let una = self.sock.tp.snd_una;
        if ack == una {
            return;
        }
        for seq in una..ack {
            self.clean_one(seq, echo, summary);
        }
        summary.newly = ack - una;
        self.sock.tp.snd_una = ack;
        self.scoreboard.fack = self.scoreboard.fack.max(ack);
        self.scoreboard.next_original = self.scoreboard.next_original.max(ack);
        if let Some(lowest) = summary.lowest.filter(|&lowest| lowest < prior_fack) {
            self.note_reordering(lowest, self.fack());
        }
        if self.sock.tp.packets_out == 0 {
            self.scoreboard.retransmitted.clear();
            self.scoreboard.suspects.clear();
            self.scoreboard.lost.clear();
        }
    }

    fn clean_one(&mut self, seq: u32, echo: u32, summary: &mut AckSummary) {
        let segment = *self.segments.get(seq);
        let flags = segment.flags;
        let tp = &mut self.sock.tp;
        tp.packets_out -= 1;
        if flags & flag::RETRANS != 0 {
            tp.retrans_out -= 1;
        }
        if flags & flag::LOST != 0 {
            tp.lost_out -= 1;
        }
        if flags & flag::SACKED != 0 {
            tp.sacked_out -= 1;
        } else {
            tp.delivered += 1;
            self.count.acked += 1;
        }
        if flags & flag::EVER != 0 {
            summary.retrans_acked = true;
        } else if flags & flag::SACKED == 0 {
            summary.first_sent_ns.get_or_insert(segment.sent_ns);
            summary.last_sent_ns = Some(segment.sent_ns);
            summary.lowest = Some(summary.lowest.map_or(seq, |l| l.min(seq)));
            if seq < self.recovery.high_seq {
                summary.original_arrived = true;
            }
        }
        if flags & flag::SACKED == 0 {
            // An older timestamp tells that the copy was not needed and says nothing about when what arrived was sent
            // (`tcp_skb_spurious_retrans`).
            let is_original = flags & flag::EVER != 0 && echo < tick(segment.sent_ns);
            if !is_original {
                self.rack_advance(flags, seq + 1, segment.sent_ns);
            }
            self.note_delivered(seq, segment.sent_ns, flags);
        }
    }

    /// What begins at `lowest` arrived after later segments if `fack` lies beyond it (Linux `tcp_check_sack_reordering`).
    pub(crate) fn note_reordering(&mut self, lowest: u32, fack: u32) {
        if lowest >= fack {
            return;
        }
        self.scoreboard.reordering_seen = true;
        self.scoreboard.reordering = self
            .scoreboard
            .reordering
            .max((fack - lowest).min(MAX_REORDERING));
    }

    /// Reordering shown by SACKs alone: a hole filled by its original transmission, after later ones.
    pub(crate) fn check_sack_reordering(&mut self, summary: &AckSummary) {
        let una = self.sock.tp.snd_una;
        if let Some(lowest) = summary.lowest.filter(|&l| summary.data_sacked && l >= una) {
            self.note_reordering(lowest, self.scoreboard.fack);
        }
    }

    fn rack_advance(&mut self, flags: u8, end_seq: u32, sent_ns: u64) {
        let rtt_ns = (self.sock.tp.tcp_mstamp * 1000).saturating_sub(sent_ns);
        if flags & flag::EVER != 0 && rtt_ns < u64::from(self.sock.tp.min_rtt_us) * 1000 {
            // The ACK is for the original: it came back too fast for the retransmission.
            return;
        }
        let rack = &mut self.scoreboard.rack;
        rack.advanced = true;
        rack.rtt_ns = rtt_ns;
        if (sent_ns, end_seq) > (rack.sent_ns, rack.end_seq) {
            rack.sent_ns = sent_ns;
            rack.end_seq = end_seq;
        }
    }

    /// RACK's reordering window, in ns.
    pub(crate) fn reordering_window(&self) -> u64 {
        let tp = &self.sock.tp;
        if !self.scoreboard.reordering_seen
            && (self.recovery.state as u8 >= CaState::Recovery as u8
                || tp.sacked_out >= self.scoreboard.reordering)
        {
            return 0;
        }
        let quarters = u64::from(tp.min_rtt_us.min(u32::MAX >> 1))
            * u64::from(self.scoreboard.rack.reo_wnd_mult)
            / 4;
        quarters.min(u64::from(tp.srtt_us >> 3)) * 1000
    }

    /// RFC 8985 section 6.2 step 5: mark lost what was sent long enough before something that arrived.
    /// Returns the time until the last segment that is suspected would be lost, as `tcp_rack_detect_loss` does: one timer finds
    /// all of them.
    pub(crate) fn detect_loss(&mut self, now: u64) -> Option<u64> {
        self.suspect();
        let wait = self.scoreboard.rack.rtt_ns + self.reordering_window();
        while let Some(&(sent_ns, seq)) = self.scoreboard.suspects.front() {
            if self.is_in_flight(sent_ns, seq) {
                if sent_ns + wait > now {
                    break;
                }
                self.mark_lost(seq);
                self.segments.get_mut(seq).flags |= flag::FOUND;
            }
            self.scoreboard.suspects.pop_front();
        }
        while let Some(&(sent_ns, seq)) = self.scoreboard.suspects.back() {
            if self.is_in_flight(sent_ns, seq) {
                return Some(sent_ns + wait - now);
            }
            self.scoreboard.suspects.pop_back();
        }
        None
    }

    /// Add what was sent before the most recent segment that arrived, original segments and copies in the order of their
    /// transmission. Whatever is added later was sent later.
    fn suspect(&mut self) {
        let rack = self.scoreboard.rack;
        // By time, then by sequence.
        let is_earlier = |sent_ns, seq| (sent_ns, seq + 1) < (rack.sent_ns, rack.end_seq);
        let board = &mut self.scoreboard;
        let mut seq = board.next_original.max(self.sock.tp.snd_una);
        while seq < self.sock.tp.snd_nxt {
            let segment = self.segments.get(seq);
            if segment.flags & (flag::SACKED | flag::LOST | flag::EVER | flag::FOUND) == 0 {
                if !is_earlier(segment.sent_ns, seq) {
                    break;
                }
                board.suspect_copies(|copy| copy < (segment.sent_ns, seq));
                board.suspects.push_back((segment.sent_ns, seq));
            }
            seq += 1;
        }
        board.next_original = seq;
        board.suspect_copies(|(sent_ns, seq)| is_earlier(sent_ns, seq));
    }

    /// Whether this transmission may still arrive: an original, a copy, or the last one after an undo took the loss mark away.
    fn is_in_flight(&self, sent_ns: u64, seq: u32) -> bool {
        seq >= self.sock.tp.snd_una && {
            let s = self.segments.get(seq);
            s.sent_ns == sent_ns
                && s.flags & flag::SACKED == 0
                && s.flags & (flag::RETRANS | flag::LOST) != flag::LOST
        }
    }

    /// After loss marks were taken away, RACK examines the segments in flight again.
    pub(crate) fn examine_again(&mut self) {
        let (una, nxt) = (self.sock.tp.snd_una, self.sock.tp.snd_nxt);
        self.scoreboard.next_original = una;
        self.scoreboard.suspects.clear();
        let segments = &self.segments;
        let mut again: Vec<(u64, u32)> = (una..nxt)
            .filter(|&seq| {
                let flags = segments.get(seq).flags;
                flags & (flag::EVER | flag::SACKED | flag::FOUND) == flag::EVER
            })
            .map(|seq| (segments.get(seq).sent_ns, seq))
            .collect();
        again.sort_unstable();
        self.scoreboard.retransmitted = again.into();
    }

    /// Mark one segment lost (again).
    pub(crate) fn mark_lost(&mut self, seq: u32) {
        let flags = self.segments.get(seq).flags;
        let tp = &mut self.sock.tp;
        if flags & flag::SACKED != 0 || flags & (flag::LOST | flag::RETRANS) == flag::LOST {
            return;
        }
        let mut new = flags | flag::LOST;
        if flags & flag::RETRANS != 0 {
            new &= !flag::RETRANS;
            tp.retrans_out -= 1;
        }
        if flags & flag::LOST == 0 {
            tp.lost_out += 1;
        }
        tp.lost += 1;
        self.count.lost += 1;
        self.segments.get_mut(seq).flags = new;
        self.scoreboard.lost.push(Reverse(seq));
    }

    /// The lowest segment that is lost and not retransmitted.
    pub(crate) fn next_lost(&mut self) -> Option<u32> {
        while let Some(&Reverse(seq)) = self.scoreboard.lost.peek() {
            let is_lost = seq >= self.sock.tp.snd_una
                && self.segments.get(seq).flags & (flag::LOST | flag::RETRANS | flag::SACKED)
                    == flag::LOST;
            if is_lost {
                return Some(seq);
            }
            self.scoreboard.lost.pop();
        }
        None
    }

    /// Retransmit a segment now.
    pub(crate) fn retransmit(&mut self, cx: &mut World, seq: u32) {
        self.sock.tp.retrans_out += 1;
        self.recovery.note_retransmission(cx.now);
        if self.recovery.in_reduction() {
            self.recovery.prr_out += 1;
        }
        self.send_copy(cx, seq, flag::RETRANS | flag::EVER);
    }

    /// Send a segment again as a tail loss probe. The copy does not count as in flight, and prevents an undo only until an ACK
    /// answers it (Linux calls `__tcp_retransmit_skb` for it).
    pub(crate) fn probe_with(&mut self, cx: &mut World, seq: u32) {
        self.send_copy(cx, seq, flag::EVER);
    }

    fn send_copy(&mut self, cx: &mut World, seq: u32, flags: u8) {
        self.scoreboard.retransmitted.push_back((cx.now, seq));
        self.transmit_again(cx, seq, flags);
    }

    /// Put a segment on the path again and flag it.
    pub(crate) fn transmit_again(&mut self, cx: &mut World, seq: u32, flags: u8) {
        let segment = self.segments.get_mut(seq);
        segment.sent_ns = cx.now;
        segment.flags = segment.flags & !flag::FOUND | flags;
        let (dsn, len) = (segment.dsn, segment.len);
        self.count.retransmitted += 1;
        self.note_sent(cx.now, seq, false);
        // RFC 3168 section 6.1.5: retransmissions are not ECN-capable.
        self.transmit::<false>(cx, seq, dsn, len, (false, false));
    }
}
