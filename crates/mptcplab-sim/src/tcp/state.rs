//! The groups of a sender's state. Other files of this folder have the functions that change them.

use crate::net::event::{NEVER, Timer};
use crate::net::packet::{Packet, tick};
use mptcplab_cc::CaState;
use mptcplab_model::link::rng::Rng;
use mptcplab_scenario::LossRecovery;
use std::collections::VecDeque;

/// Life of a subflow as its sender sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Not opened yet.
    Closed,
    /// SYN sent.
    SynSent,
    /// Joined, waiting for the fourth packet of the handshake.
    JoinSent,
    /// Carries data.
    Established,
    /// Removed; late ACKs are ignored.
    Removed,
}

/// When a subflow opens and is removed.
#[derive(Debug)]
pub(crate) struct Lifecycle {
    pub(crate) timer: Timer,
    /// Earliest time to open (subflows but the first).
    pub(crate) open_ns: u64,
    /// Time of removal; [`NEVER`] if it stays.
    pub(crate) remove_ns: u64,
    /// When the current handshake began.
    pub(crate) handshake_ns: u64,
}

impl Default for Lifecycle {
    fn default() -> Self {
        Self {
            timer: Timer::OFF,
            open_ns: 0,
            remove_ns: NEVER,
            handshake_ns: 0,
        }
    }
}

/// The MPTCP part of a subflow's state.
#[derive(Debug, Default)]
pub(crate) struct MptcpState {
    pub(crate) backup: bool,
    /// Timed out and made no progress since (RFC 8684 calls it potentially failed).
    pub(crate) failed: bool,
    /// It opened the connection, whose first segment is not acknowledged yet, and with upstream's scheduler is sent alone.
    pub(crate) unconfirmed: bool,
    /// Data waiting on this subflow (schedulers that assign ahead of the window).
    pub(crate) assigned: VecDeque<u32>,
    /// Data were sent here that were older than what had been sent before.
    pub(crate) out_of_order: bool,
    /// The connection's receive window, in segments, as this subflow knows it; maintained where the connection sends again what
    /// was dropped.
    pub(crate) window: u32,
    /// Loss events whose lost segments were also given to other subflows.
    pub(crate) copied_losses: u64,
}

/// Segments of a subflow that are not full, see `nagle.rs`.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct SmallSegments {
    /// After the last one that was sent (Linux' `snd_sml`); 0 if there was none.
    pub(super) end: u32,
    /// What `end` was before.
    pub(super) earlier_end: u32,
    /// After the data of the latest burst if that ends within a segment.
    pub(super) burst_end: Option<u32>,
}

/// The purpose for which the retransmission timer is set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Pending {
    #[default]
    Rto,
    TailLossProbe,
    Reordering,
}

/// The retransmission timer, which also serves the handshake, and how often it has fired.
#[derive(Debug, Default)]
pub(crate) struct RetransmissionTimer {
    pub(crate) timer: Timer,
    pub(super) pending: Pending,
    /// When it was set last.
    pub(super) armed_ns: u64,
    /// Exponent of the timeout's backoff.
    pub(super) backoff: u32,
    /// Timeouts since the last progress.
    pub(crate) retransmits: u32,
    /// When the last ACK advanced.
    pub(crate) progress_ns: u64,
}

/// How far the congestion window is used (RFC 2861).
#[derive(Debug, Default)]
pub(crate) struct CwndUsage {
    /// `snd_nxt` at the last change of the cwnd-limited verdict.
    pub(super) round_end: u32,
    /// Largest flight while application-limited.
    pub(super) used_pkts: u32,
    /// When cwnd was last seen in full use.
    pub(super) stamp_ns: u64,
}

/// Pacing: when the next packet may be sent.
#[derive(Debug, Default)]
pub(crate) struct Pacing {
    /// The scenario or the algorithm asks for pacing; known once the algorithm has started.
    pub(crate) enabled: bool,
    /// Waiting for the timer.
    pub(crate) blocked: bool,
    pub(crate) timer: Timer,
    pub(super) next_ns: u64,
}

/// Packets held back (`host_delay` and `send_jitter` of a scenario).
#[derive(Debug)]
pub(crate) struct SendJitter {
    pub(crate) timer: Timer,
    /// Release times and packets, in order.
    pub(super) held: VecDeque<(u64, Packet)>,
    /// Release time of the last packet.
    pub(super) last_ns: u64,
    /// Packets are not held, because the first link knows what to do with packets that come later.
    pub(crate) is_sent_ahead: bool,
    /// How many times packets were sent ahead for.
    pub(crate) releases: u64,
    pub(super) rng: Rng,
}

impl SendJitter {
    pub(super) fn new(rng: Rng) -> Self {
        Self {
            timer: Timer::OFF,
            held: VecDeque::new(),
            last_ns: 0,
            is_sent_ahead: false,
            releases: 0,
            rng,
        }
    }
}

/// The group that leaves now.
#[derive(Debug, Default)]
pub(crate) struct TsoGroup {
    /// Segments that are still to leave, and when the group began.
    pub(super) left: u32,
    pub(super) begun_ns: u64,
    /// It has more than one segment.
    pub(super) pushes: bool,
    /// The next one waits for an ACK.
    pub(crate) deferred: bool,
}

/// Recovery state of one sender.
#[derive(Debug)]
pub(crate) struct Recovery {
    pub(crate) state: CaState,
    /// `snd_nxt` when the current episode began.
    pub(crate) high_seq: u32,
    /// `snd_una` when the window was reduced, while that may still be undone.
    pub(crate) undo_marker: Option<u32>,
    /// Retransmissions not yet shown to be needless by D-SACKs; `None` before the first one.
    pub(crate) undo_retrans: Option<u32>,
    pub(crate) prior_ssthresh: u32,
    /// Timestamp clock of the first retransmission of the episode.
    pub(super) retrans_stamp: Option<u32>,
    /// Whether this kind of recovery has tail loss probes.
    pub(super) probes: bool,
    pub(super) prr_delivered: u32,
    pub(crate) prr_out: u32,
    /// F-RTO is probing whether the timeout was spurious.
    pub(crate) frto: bool,
    /// Step 2b of F-RTO: new data goes before retransmissions; the connection tries, then clears this.
    pub(crate) frto_hold: bool,
    pub(crate) tlp_high_seq: Option<u32>,
    pub(crate) tlp_retrans: bool,
    /// The probe timer fired; the connection is to send the probe.
    pub(crate) probe_due: bool,
    /// Some segment in flight was retransmitted, SACKed or lost: ACKs may not take the fast path.
    pub(crate) scoreboard_in_use: bool,
}

impl Recovery {
    pub(crate) fn new(kind: LossRecovery) -> Self {
        Self {
            state: CaState::Open,
            high_seq: 0,
            undo_marker: None,
            undo_retrans: None,
            prior_ssthresh: 0,
            retrans_stamp: None,
            probes: kind == LossRecovery::Sack,
            prr_delivered: 0,
            prr_out: 0,
            frto: false,
            frto_hold: false,
            tlp_high_seq: None,
            tlp_retrans: false,
            probe_due: false,
            scoreboard_in_use: false,
        }
    }

    /// Whether an in-order ACK may take the fast path.
    #[inline]
    pub(crate) fn allows_fast_path(&self) -> bool {
        !self.scoreboard_in_use
    }

    #[inline]
    pub(crate) fn in_reduction(&self) -> bool {
        matches!(self.state, CaState::Cwr | CaState::Recovery)
    }

    /// Whether a tail loss probe may be scheduled in this state.
    #[inline]
    pub(crate) fn may_probe(&self) -> bool {
        self.probes && matches!(self.state, CaState::Open | CaState::Cwr)
    }

    pub(crate) fn note_retransmission(&mut self, now: u64) {
        self.retrans_stamp.get_or_insert(tick(now));
        *self.undo_retrans.get_or_insert(0) += 1;
        self.scoreboard_in_use = true;
    }
}

/// State of Tahoe, Reno and NewReno, in addition to [`Recovery`].
#[derive(Debug, Default)]
pub(crate) struct ClassicRecovery {
    /// Duplicates of the newest ACK.
    pub(super) duplicates: u32,
    /// Segments that duplicates said were delivered and that no ACK covers yet.
    pub(super) delivered: u32,
    /// `snd_nxt` at the last fast retransmit or timeout: NewReno's `recover`.
    pub(super) recover: Option<u32>,
    /// NewReno has met a partial ACK in this recovery.
    pub(super) met_partial: bool,
    /// Next segment to send again while `lost_out` is not 0.
    pub(super) next: u32,
}
