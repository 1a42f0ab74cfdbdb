//! SACK scoreboard and RACK (RFC 2018, RFC 2883, RFC 8985): which segments arrived, which are lost.
//!
//! Work per ACK is proportional to what the ACK says that is new, never to the window.

use crate::net::{SackBlocks, World};
use crate::tcp::segments::flag;
use crate::tcp::sender::Sender;
use mptcplab_cc::CaState;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// Segments that must arrive above a hole before it counts as lost without waiting (RFC 6675).
const DUP_THRESHOLD: u32 = 3;
/// Bound of the adapted threshold, Linux' `tcp_max_reordering`.
const MAX_REORDERING: u32 = 300;
/// Recoveries for which a widened reordering window persists (RFC 8985 section 6.2).
const REO_PERSIST: u8 = 16;

/// The most recently sent segment known to have arrived.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Rack {
    pub(crate) sent_ns: u64,
    pub(crate) end_seq: u32,
    pub(crate) rtt_ns: u64,
    /// Advanced since loss was last looked for.
    pub(crate) advanced: bool,
    /// Reordering window in quarters of the minimum RTT.
    pub(crate) reo_steps: u8,
    reo_persist: u8,
    /// At most one widening per round: it ends when this is acknowledged.
    dsack_round: Option<u32>,
}

#[derive(Debug)]
pub(crate) struct Scoreboard {
    pub(crate) rack: Rack,
    pub(crate) reordering: u32,
    pub(crate) reordering_seen: bool,
    /// One above the highest segment known to have arrived.
    pub(crate) fack: u32,
    /// First original transmission not yet examined by RACK.
    next_original: u32,
    /// Retransmissions in the order sent: (segment, time).
    retransmitted: VecDeque<(u64, u32)>,
    /// Segments marked lost and not retransmitted since; entries may be stale.
    pub(crate) lost: BinaryHeap<Reverse<u32>>,
    /// Blocks of the previous ACK: what they cover was processed.
    known: SackBlocks,
}

/// What an ACK brought, in the terms of Linux' `FLAG_*`.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct AckNews {
    /// `snd_una` advanced by this many segments.
    pub(crate) newly: u32,
    pub(crate) data_sacked: bool,
    /// An original transmission from before the recovery point arrived.
    pub(crate) original_arrived: bool,
    pub(crate) dsack: bool,
    pub(crate) retrans_acked: bool,
    /// RTT of the first and the last newly acknowledged original segment.
    pub(crate) first_sent_ns: Option<u64>,
    pub(crate) last_sent_ns: Option<u64>,
    /// Send time of the first and the last newly SACKed original segment.
    pub(crate) sack_sent_ns: Option<u64>,
    last_sack_sent_ns: Option<u64>,
    /// Lowest original that arrived late; below `fack` it proves reordering.
    lowest: Option<u32>,
}

impl AckNews {
    /// Send time of the latest original segment that tells the round-trip time (Linux' `ca_rtt_us`).
    pub(crate) fn latest_sent_ns(&self) -> Option<u64> {
        let acked = self.last_sent_ns.filter(|_| !self.retrans_acked);
        self.last_sack_sent_ns.or(acked)
    }
}

impl Scoreboard {
    pub(crate) fn new() -> Self {
        Self {
            rack: Rack {
                reo_steps: 1,
                ..Rack::default()
            },
            reordering: DUP_THRESHOLD,
            reordering_seen: false,
            fack: 0,
            next_original: 0,
            retransmitted: VecDeque::new(),
            lost: BinaryHeap::new(),
            known: SackBlocks::default(),
        }
    }

    /// RACK's state after an in-order ACK of originals.
    #[inline]
    pub(crate) fn rack_advance_in_order(&mut self, sent_ns: u64, end_seq: u32, now: u64) {
        self.rack.sent_ns = sent_ns;
        self.rack.end_seq = end_seq;
        self.rack.rtt_ns = now - sent_ns;
        self.rack.advanced = true;
    }
}

/// Total order of transmissions: by time, then by sequence (RFC 8985 section 6.2).
#[inline]
fn sent_after(a: (u64, u32), b: (u64, u32)) -> bool {
    a > b
}

impl Sender {
    /// Mark what the SACK blocks of an ACK say is new.
    pub(crate) fn process_sacks(&mut self, sack: &SackBlocks, ack: u32, news: &mut AckNews) {
        let una = self.sock.tp.snd_una;
        let mut sack = *sack;
        let mut blocks = &mut sack.blocks[..usize::from(sack.len)];
        if sack.dsack {
            news.dsack = true;
            self.note_dsack(blocks[0]);
            blocks = &mut blocks[1..];
        }
        // The latest comes first, and would make those below it look overtaken (Linux sorts them, too).
        blocks.sort_unstable();
        let known = self.board.known;
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
                    self.sack_range(start, ks.max(start), news);
                    self.sack_range(ke.min(end), end, news);
                }
                None => self.sack_range(start, end, news),
            }
        }
        self.board.known = fresh;
    }

    fn sack_range(&mut self, start: u32, end: u32, news: &mut AckNews) {
        for seq in start..end {
            self.sack_one(seq, news);
        }
    }

    fn sack_one(&mut self, seq: u32, news: &mut AckNews) {
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
                if seq < self.board.fack {
                    news.lowest = Some(news.lowest.map_or(seq, |l| l.min(seq)));
                }
                if seq < self.recovery.high_seq {
                    news.original_arrived = true;
                }
                news.sack_sent_ns.get_or_insert(segment.sent_ns);
                news.last_sack_sent_ns = Some(segment.sent_ns);
            }
            if flags & flag::LOST != 0 {
                flags &= !flag::LOST;
                tp.lost_out -= 1;
            }
        }
        tp.sacked_out += 1;
        tp.delivered += 1;
        self.count.acked += 1;
        news.data_sacked = true;
        self.segments.get_mut(seq).flags = flags | flag::SACKED;
        self.board.fack = self.board.fack.max(seq + 1);
        self.rack_advance(segment.flags, seq + 1, segment.sent_ns);
        self.note_delivered(seq, segment.sent_ns, segment.flags);
    }

    /// A duplicate arrived: one retransmission was for nothing, and the reordering window was too small.
    fn note_dsack(&mut self, block: (u32, u32)) {
        let r = &mut self.recovery;
        if let (Some(marker), Some(pending)) = (r.undo_marker, r.undo_retrans.as_mut()) {
            if block.0 >= marker && *pending > 0 {
                *pending -= 1;
            }
        }
        let (una, nxt) = (self.sock.tp.snd_una, self.sock.tp.snd_nxt);
        let rack = &mut self.board.rack;
        if rack.dsack_round.is_none_or(|end| una >= end) {
            rack.dsack_round = Some(nxt);
            rack.reo_steps = rack.reo_steps.saturating_add(1);
            rack.reo_persist = REO_PERSIST;
        }
    }

    /// A recovery ended without a new D-SACK; after some of them the window narrows again.
    pub(crate) fn age_reordering_window(&mut self) {
        let rack = &mut self.board.rack;
        if rack.reo_persist > 0 {
            rack.reo_persist -= 1;
        } else {
            rack.reo_steps = 1;
        }
    }

    /// End of what is known to have arrived: a segment below it that arrives by its first transmission was overtaken.
    pub(crate) fn fack(&self) -> u32 {
        if self.sock.tp.sacked_out > 0 {
            self.board.fack
        } else {
            self.sock.tp.snd_una
        }
    }

    /// Remove everything below the cumulative ACK from the scoreboard. `prior_fack`: [`Self::fack`] before this ACK, whose
    /// SACK blocks lie beyond what it acknowledges without proving that anything was overtaken.
    pub(crate) fn clean_acked(&mut self, ack: u32, prior_fack: u32, news: &mut AckNews) {
        let una = self.sock.tp.snd_una;
        if ack == una {
            return;
        }
        for seq in una..ack {
            self.clean_one(seq, news);
        }
        news.newly = ack - una;
        self.sock.tp.snd_una = ack;
        self.board.fack = self.board.fack.max(ack);
        self.board.next_original = self.board.next_original.max(ack);
        if let Some(lowest) = news.lowest.filter(|l| *l < prior_fack) {
            self.note_reordering(lowest, prior_fack);
        }
        if self.sock.tp.packets_out == 0 {
            self.board.retransmitted.clear();
            self.board.lost.clear();
        }
    }

    fn clean_one(&mut self, seq: u32, news: &mut AckNews) {
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
            news.retrans_acked = true;
        } else if flags & flag::SACKED == 0 {
            news.first_sent_ns.get_or_insert(segment.sent_ns);
            news.last_sent_ns = Some(segment.sent_ns);
            news.lowest = Some(news.lowest.map_or(seq, |l| l.min(seq)));
            if seq < self.recovery.high_seq {
                news.original_arrived = true;
            }
        }
        if flags & flag::SACKED == 0 {
            self.rack_advance(flags, seq + 1, segment.sent_ns);
            self.note_delivered(seq, segment.sent_ns, flags);
        }
    }

    fn note_reordering(&mut self, lowest: u32, fack: u32) {
        self.board.reordering_seen = true;
        self.board.reordering = self
            .board
            .reordering
            .max((fack - lowest).min(MAX_REORDERING));
    }

    /// Reordering shown by SACKs alone.
    pub(crate) fn check_sack_reordering(&mut self, news: &AckNews) {
        if let Some(lowest) = news
            .lowest
            .filter(|l| news.data_sacked && *l < self.board.fack)
        {
            // A hole filled by its original transmission, after later ones.
            if lowest >= self.sock.tp.snd_una {
                self.note_reordering(lowest, self.board.fack);
            }
        }
    }

    fn rack_advance(&mut self, flags: u8, end_seq: u32, sent_ns: u64) {
        let rtt_ns = (self.sock.tp.tcp_mstamp * 1000).saturating_sub(sent_ns);
        if flags & flag::EVER != 0 && rtt_ns < u64::from(self.sock.tp.min_rtt_us) * 1000 {
            // The ACK is for the original: it came back too fast for the retransmission.
            return;
        }
        let rack = &mut self.board.rack;
        rack.advanced = true;
        rack.rtt_ns = rtt_ns;
        if sent_after((sent_ns, end_seq), (rack.sent_ns, rack.end_seq)) {
            rack.sent_ns = sent_ns;
            rack.end_seq = end_seq;
        }
    }

    /// How long a segment may be late before it counts as lost.
    pub(crate) fn reordering_window(&self) -> u64 {
        let tp = &self.sock.tp;
        if !self.board.reordering_seen
            && (self.recovery.state as u8 >= CaState::Recovery as u8
                || tp.sacked_out >= self.board.reordering)
        {
            return 0;
        }
        let quarters =
            u64::from(tp.min_rtt_us.min(u32::MAX >> 1)) * u64::from(self.board.rack.reo_steps) / 4;
        quarters.min(u64::from(tp.srtt_us >> 3)) * 1000
    }

    /// RFC 8985 section 6.2 step 5: mark lost what was sent long enough before something that arrived.
    /// Returns the time until the next segment would be lost.
    pub(crate) fn detect_loss(&mut self, now: u64) -> Option<u64> {
        let window = self.reordering_window();
        let originals = self.detect_lost_originals(now, window);
        let again = self.detect_lost_retransmissions(now, window);
        match (originals, again) {
            (Some(a), Some(b)) => Some(a.max(b)),
            (a, b) => a.or(b),
        }
    }

    fn detect_lost_originals(&mut self, now: u64, window: u64) -> Option<u64> {
        let rack = self.board.rack;
        let mut seq = self.board.next_original.max(self.sock.tp.snd_una);
        let mut wait = None;
        while seq < self.sock.tp.snd_nxt {
            let segment = self.segments.get(seq);
            if segment.flags & (flag::SACKED | flag::LOST | flag::EVER) == 0 {
                if !sent_after((rack.sent_ns, rack.end_seq), (segment.sent_ns, seq + 1)) {
                    break;
                }
                let due = segment.sent_ns + rack.rtt_ns + window;
                if due > now {
                    wait = Some(due - now);
                    break;
                }
                self.mark_lost(seq);
            }
            seq += 1;
        }
        self.board.next_original = seq;
        wait
    }

    fn detect_lost_retransmissions(&mut self, now: u64, window: u64) -> Option<u64> {
        let rack = self.board.rack;
        while let Some(&(sent_ns, seq)) = self.board.retransmitted.front() {
            let live = seq >= self.sock.tp.snd_una && {
                let s = self.segments.get(seq);
                // In flight: a copy, or the last transmission after an undo took the loss mark away.
                s.sent_ns == sent_ns
                    && s.flags & flag::SACKED == 0
                    && s.flags & (flag::RETRANS | flag::LOST) != flag::LOST
            };
            if live {
                if !sent_after((rack.sent_ns, rack.end_seq), (sent_ns, seq + 1)) {
                    return None;
                }
                let due = sent_ns + rack.rtt_ns + window;
                if due > now {
                    return Some(due - now);
                }
                self.mark_lost(seq);
            }
            self.board.retransmitted.pop_front();
        }
        None
    }

    /// Loss marks were taken away: what is in flight may turn out lost after all, so RACK looks at all of it again.
    pub(crate) fn examine_again(&mut self) {
        let (una, nxt) = (self.sock.tp.snd_una, self.sock.tp.snd_nxt);
        self.board.next_original = una;
        let segments = &self.segments;
        let mut again: Vec<(u64, u32)> = (una..nxt)
            .filter(|&seq| {
                let flags = segments.get(seq).flags;
                flags & flag::EVER != 0 && flags & flag::SACKED == 0
            })
            .map(|seq| (segments.get(seq).sent_ns, seq))
            .collect();
        again.sort_unstable();
        self.board.retransmitted = again.into();
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
        self.board.lost.push(Reverse(seq));
    }

    /// The lowest segment that is lost and not retransmitted.
    pub(crate) fn next_lost(&mut self) -> Option<u32> {
        while let Some(&Reverse(seq)) = self.board.lost.peek() {
            let is_lost = seq >= self.sock.tp.snd_una
                && self.segments.get(seq).flags & (flag::LOST | flag::RETRANS | flag::SACKED)
                    == flag::LOST;
            if is_lost {
                return Some(seq);
            }
            self.board.lost.pop();
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

    /// Send a segment again as a tail loss probe: its copy is not in flight, and counts for an undo only while no ACK
    /// has answered it (Linux calls `__tcp_retransmit_skb` for it).
    pub(crate) fn probe_with(&mut self, cx: &mut World, seq: u32) {
        self.send_copy(cx, seq, flag::EVER);
    }

    fn send_copy(&mut self, cx: &mut World, seq: u32, flags: u8) {
        self.board.retransmitted.push_back((cx.now, seq));
        self.transmit_again(cx, seq, flags);
    }

    /// Put a segment on the path again and flag it.
    pub(crate) fn transmit_again(&mut self, cx: &mut World, seq: u32, flags: u8) {
        let segment = self.segments.get_mut(seq);
        segment.sent_ns = cx.now;
        segment.flags |= flags;
        let (dsn, len) = (segment.dsn, segment.len);
        self.count.retransmitted += 1;
        self.note_sent(cx.now, seq, false);
        // RFC 3168 section 6.1.5: retransmissions are not ECN-capable.
        self.transmit(cx, seq, dsn, len, (false, false));
    }
}
