//! The sender's scoreboard: which segments in flight have arrived, which are lost, and what one ACK reported.

use crate::net::SackBlocks;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// Segments that must arrive above a hole before it counts as lost without waiting (RFC 6675).
const DUP_THRESHOLD: u32 = 3;
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
    pub(super) reo_wnd_persist: u8,
    /// At most one widening per round: it ends when this is acknowledged.
    pub(super) dsack_round: Option<u32>,
}

#[derive(Debug, Default)]
pub(crate) struct Scoreboard {
    pub(crate) rack: Rack,
    pub(crate) reordering: u32,
    pub(crate) reordering_seen: bool,
    /// One above the highest segment known to have arrived.
    pub(crate) fack: u32,
    /// First original transmission not yet examined by RACK.
    pub(super) next_original: u32,
    /// Retransmissions in the order sent: (segment, time).
    pub(super) retransmitted: VecDeque<(u64, u32)>,
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

    /// RACK's state after an in-order ACK of originals.
    #[inline]
    pub(crate) fn rack_advance_in_order(&mut self, sent_ns: u64, end_seq: u32, now: u64) {
        self.rack.sent_ns = sent_ns;
        self.rack.end_seq = end_seq;
        self.rack.rtt_ns = now - sent_ns;
        self.rack.advanced = true;
    }
}
