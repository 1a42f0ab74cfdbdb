//! The sender's scoreboard: which segments in flight have arrived, which are lost, and what one ACK reported.

use crate::net::SackBlocks;
use crate::net::packet::ticks_since;
use mptcplab_prefetch::prefetch;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// Segments that must arrive above a hole before it counts as lost without waiting (RFC 6675).
pub(super) const DUP_THRESHOLD: u32 = 3;
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
    /// A D-SACK reports the tail loss probe.
    pub(super) probe_was_duplicate: bool,
    /// It shows that the recovery may not have been needed, while retransmissions are in flight: nothing else is sent
    /// again now.
    pub(super) holds_back: bool,
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
    /// The round-trip times that an ACK tells: that of the first segment, for the timeout, and that of the last one, for the
    /// minimum and for the algorithm (`seq_rtt_us` and `ca_rtt_us` in Linux' `tcp_ack_update_rtt`). `echo`: its timestamp.
    pub(crate) fn rtts_ns(&self, now: u64, echo: u32) -> Option<(u64, u64)> {
        let original = |sent: Option<u64>| sent.filter(|_| !self.retrans_acked);
        let first = original(self.first_sent_ns).or(self.sack_sent_ns);
        let last = self.last_sack_sent_ns.or(original(self.last_sent_ns));
        match (first, last) {
            (Some(first), Some(last)) => Some((now - first, now - last)),
            // Only the timestamp can tell which copy was acknowledged (RFC 7323 section 4).
            _ if self.newly > 0 => Some((ticks_since(now, echo), ticks_since(now, echo))),
            _ => None,
        }
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

    const MS: u64 = 1_000_000;

    /// Of an ACK at 200 ms with a timestamp of 90 ms.
    fn rtts_ms(summary: AckSummary) -> Option<(u64, u64)> {
        let rtts = summary.rtts_ns(200 * MS, 90);
        rtts.map(|(first, last)| (first / MS, last / MS))
    }

    #[test]
    fn the_timeout_goes_by_the_first_segment_and_the_minimum_by_the_last() {
        let acked = AckSummary {
            newly: 3,
            first_sent_ns: Some(100 * MS),
            last_sent_ns: Some(120 * MS),
            ..AckSummary::default()
        };
        assert_eq!(rtts_ms(acked), Some((100, 80)));
        let sacked = AckSummary {
            sack_sent_ns: Some(130 * MS),
            last_sack_sent_ns: Some(150 * MS),
            ..acked
        };
        assert_eq!(rtts_ms(sacked), Some((100, 50)));
        // With a retransmission among them, only the SACKs tell, and without SACKs the timestamp.
        let again = AckSummary {
            retrans_acked: true,
            ..sacked
        };
        assert_eq!(rtts_ms(again), Some((70, 50)));
        let only_again = AckSummary {
            retrans_acked: true,
            ..acked
        };
        assert_eq!(rtts_ms(only_again), Some((110, 110)));
        assert_eq!(rtts_ms(AckSummary::default()), None);
    }

    #[test]
    fn a_timestamp_tells_a_millisecond_at_least() {
        let again = AckSummary {
            newly: 1,
            retrans_acked: true,
            ..AckSummary::default()
        };
        assert_eq!(again.rtts_ns(90_400_000, 90), Some((MS, MS)));
        assert_eq!(again.rtts_ns(91_000_000, 90), Some((MS, MS)));
        assert_eq!(again.rtts_ns(92_999_999, 90), Some((2 * MS, 2 * MS)));
    }

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
