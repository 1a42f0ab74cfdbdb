//! The sender's scoreboard: which segments in flight have arrived, which are lost, and what one ACK reported.

use crate::net::SackBlocks;
use mptcplab_prefetch::prefetch;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// Segments that must arrive above a hole before it counts as lost without waiting (RFC 6675).
const DUP_THRESHOLD: u32 = 3;
/// Recoveries for which a widened reordering window persists (RFC 8985 section 6.2).
const REO_WND_PERSIST: u8 = 16;

/// The most recently sent segment known to have arrived.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Rack {
    pub(crate) sent_ns: u64,
    pub(crate) end_seq: u32,
    pub(crate) rtt_ns: u64,
    /// Advanced since loss was last looked for.
    pub(crate) advanced: bool,
    /// Reordering window in quarters of the minimum RTT.
    pub(crate) reo_wnd_mult: u8,
    reo_wnd_persist: u8,
    /// At most one widening per round: it ends when this is acknowledged.
    dsack_round: Option<u32>,
}

impl Rack {
    /// A retransmission was spurious: widen the reordering window, unless that was done in the round that ends at `una`.
    pub(super) fn widen(&mut self, una: u32, nxt: u32) {
        if self.dsack_round.is_none_or(|end| una >= end) {
            self.dsack_round = Some(nxt);
            self.reo_wnd_mult = self.reo_wnd_mult.saturating_add(1);
            self.reo_wnd_persist = REO_WND_PERSIST;
        }
    }

    /// A recovery ended that was necessary; after some of them the window narrows again (`tcp_try_undo_recovery`).
    pub(super) fn recovered(&mut self) {
        self.reo_wnd_persist = self.reo_wnd_persist.saturating_sub(1);
        if self.reo_wnd_persist == 0 {
            self.reo_wnd_mult = 1;
        }
    }

    /// D-SACKs showed that a whole recovery was not necessary (`tcp_try_undo_dsack`).
    pub(super) fn undone(&mut self) {
        self.reo_wnd_persist = (self.reo_wnd_persist + 1).min(REO_WND_PERSIST);
    }
}

#[derive(Debug, Default)]
// In this order: what ACKs in order need, and what is in use while segments are missing; see `prefetch` of the sender.
#[repr(C)]
pub(crate) struct Scoreboard {
    pub(crate) rack: Rack,
    pub(crate) reordering: u32,
    pub(crate) reordering_seen: bool,
    /// One above the highest segment known to have arrived.
    pub(crate) fack: u32,
    /// First original transmission not yet suspected by RACK.
    pub(super) next_original: u32,
    /// D-SACKs of all time.
    pub(super) dsacks: u64,
    /// Retransmissions not yet suspected, in the order sent: (time, segment).
    pub(super) retransmitted: VecDeque<(u64, u32)>,
    /// Transmissions from before the most recent one that arrived, in the order sent; entries may be stale.
    pub(super) suspects: VecDeque<(u64, u32)>,
    /// Segments marked lost and not retransmitted since then; entries may be stale.
    pub(crate) lost: BinaryHeap<Reverse<u32>>,
    /// Blocks of the previous ACK, which have been processed.
    pub(super) known: SackBlocks,
}

/// What one ACK reported, as Linux' `FLAG_*` and `struct tcp_sacktag_state`.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct AckSummary {
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
    pub(super) last_sack_sent_ns: Option<u64>,
    /// Lowest original that arrived late; below `fack` it proves reordering.
    pub(super) lowest: Option<u32>,
}

impl AckSummary {
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
                reo_wnd_mult: 1,
                ..Rack::default()
            },
            reordering: DUP_THRESHOLD,
            ..Self::default()
        }
    }

    /// Suspect the retransmissions for which `is_earlier` holds.
    #[inline]
    pub(super) fn suspect_copies(&mut self, is_earlier: impl Fn((u64, u32)) -> bool) {
        while let Some(&copy) = self.retransmitted.front() {
            if !is_earlier(copy) {
                break;
            }
            self.suspects.push_back(copy);
            self.retransmitted.pop_front();
        }
    }

    /// Have the next suspects fetched into the cache.
    #[inline(always)]
    pub(crate) fn prefetch(&self) {
        let nexts = [self.retransmitted.front(), self.suspects.front()];
        nexts.into_iter().flatten().for_each(prefetch);
        if let Some(lost) = self.lost.peek() {
            prefetch(lost);
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

#[cfg(test)]
mod tests {
    use super::*;

    /// In one round, acknowledged up to 5 of 20; then three recoveries and an undone one, in the next round another D-SACK.
    #[test]
    fn the_reordering_window_narrows_after_sixteen_recoveries() {
        let mut rack = Scoreboard::new().rack;
        rack.widen(5, 20);
        rack.widen(12, 31);
        assert_eq!(rack.reo_wnd_mult, 2);
        for _ in 0..3 {
            rack.recovered();
        }
        rack.undone();
        for left in (1..=14).rev() {
            assert_eq!(rack.reo_wnd_mult, 2, "{left} left");
            rack.recovered();
        }
        assert_eq!(rack.reo_wnd_mult, 1);
        rack.widen(20, 44);
        rack.widen(44, 60);
        assert_eq!(rack.reo_wnd_mult, 3);
    }
}
