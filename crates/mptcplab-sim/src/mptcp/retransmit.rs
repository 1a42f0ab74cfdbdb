//! Upstream Linux' retransmission at connection level, which comes with its scheduler.
//!
//! A timeout of a subflow moves nothing to others there. The connection has a timer of its own: when nothing new was
//! acknowledged at connection level for as long as the subflows' own timers had left, the oldest written chunk is sent
//! again on a subflow that has nothing queued. When a subflow has stayed silent for several such intervals, all that is not
//! acknowledged is sent again on the others.
//! (Facts: Linux 6.18, `mptcp_retransmit_timer`, `mptcp_subflow_get_retrans`, `net.mptcp.stale_loss_cnt`.)

use crate::net::World;
use crate::net::event::{NEVER, Timer, TimerKind};
use crate::tcp::state::Phase;
use crate::tcp::subflow::Subflow;
use mptcplab_model::sched::{MAX_SUBFLOWS, Path};

/// Where no subflow's timer runs: Linux' least retransmission timeout.
const LEAST_INTERVAL_NS: u64 = 200_000_000;
/// Application data are kept, and sent again, in pieces of so much: Linux' page fragments of order 3.
pub(super) const CHUNK_BYTES: u32 = 32_768;
/// Linux' default of `net.mptcp.stale_loss_cnt`.
const STALE_AFTER: u32 = 4;

pub(crate) struct Resend {
    pub(crate) timer: Timer,
    interval_ns: u64,
    /// Data acknowledged at connection level when the timer was last set.
    una: u32,
    /// Silent looks after which a subflow is set aside.
    stale_after: u32,
    silences: [Silence; MAX_SUBFLOWS],
}

/// How long a subflow with data outstanding has said nothing. As in Linux the count stands until the next look: one that
/// was seen once counts as silent for that long.
#[derive(Debug, Clone, Copy, Default)]
struct Silence {
    /// What it had delivered when the count began.
    delivered: u32,
    looks: u32,
}

impl Resend {
    pub(crate) fn new(stale_after: Option<u32>) -> Self {
        Self {
            timer: Timer::OFF,
            interval_ns: LEAST_INTERVAL_NS,
            una: 0,
            stale_after: stale_after.unwrap_or(STALE_AFTER),
            silences: [Silence::default(); MAX_SUBFLOWS],
        }
    }

    /// Wait for as long as the last of the subflows' timers has left; silent ones do not count.
    pub(super) fn measure(&mut self, subflows: &[Subflow], now: u64) {
        let left = |(Subflow { sender, .. }, silence): (&Subflow, &Silence)| {
            let runs = sender.is_usable() && silence.looks == 0;
            let deadline = Some(sender.rtx.timer.deadline).filter(|&at| runs && at != NEVER);
            deadline.map(|at| at.saturating_sub(now))
        };
        let longest = subflows.iter().zip(&self.silences).filter_map(left).max();
        self.interval_ns = longest.filter(|&ns| ns > 0).unwrap_or(LEAST_INTERVAL_NS);
    }

    /// Take note of what is outstanding: the timer starts anew with every acknowledgment of new data.
    #[inline]
    pub(super) fn follow(&mut self, cx: &mut World, conn: u32, una: u32, next: u32) {
        if una == next {
            self.timer.deadline = NEVER;
        } else if una != self.una || self.timer.deadline == NEVER {
            self.start(cx, conn);
        }
        self.una = una;
    }

    fn start(&mut self, cx: &mut World, conn: u32) {
        let at = cx.now + self.interval_ns;
        cx.timers.set(&mut self.timer, at, TimerKind::Resend, conn);
    }

    /// Count the looks at which nothing new was heard of the subflows with data outstanding, one after the other.
    /// Returns the first one that has been silent for too long.
    pub(super) fn listen(&mut self, subflows: &[Subflow]) -> Option<usize> {
        let mut stale = None;
        for i in (0..subflows.len()).filter(|&i| has_queue(&subflows[i])) {
            self.silences[i].look(subflows[i].sender.sock.tp.delivered);
            if stale.is_none() && self.is_stale(subflows, i) {
                stale = Some(i);
            }
        }
        stale
    }

    /// The subflow to send on again: one with empty queues; a backup only where nothing moves anywhere.
    pub(super) fn pick(&self, subflows: &[Subflow]) -> Option<usize> {
        let idle = |backup: bool| {
            let takes =
                move |s: &Subflow| s.is_usable() && s.is_backup() == backup && !has_queue(s);
            subflows.iter().position(takes)
        };
        let queued = subflows
            .iter()
            .zip(&self.silences)
            .filter(|(s, _)| has_queue(s));
        let least = queued.map(|(_, silence)| silence.looks).min();
        let stuck = least.is_none_or(|looks| looks > 1);
        idle(false).or_else(|| idle(true).filter(|_| stuck))
    }

    /// Whether a subflow has been silent for too long while another one is not.
    fn is_stale(&self, subflows: &[Subflow], i: usize) -> bool {
        let most = self.stale_after.saturating_sub(1).max(1);
        let works = |k: usize| subflows[k].is_usable() && self.silences[k].looks < most;
        subflows[i].is_usable()
            && self.silences[i].looks > self.stale_after
            && (0..subflows.len()).any(|k| k != i && works(k))
    }
}

impl Silence {
    fn look(&mut self, delivered: u32) {
        self.looks = match self.looks {
            0 => 1,
            looks if self.delivered == delivered => looks + 1,
            _ => 0,
        };
        self.delivered = delivered;
    }
}

/// Whether a subflow has anything that is not acknowledged, sent or not.
fn has_queue(Subflow { sender, .. }: &Subflow) -> bool {
    sender.phase == Phase::Established
        && (sender.sock.tp.packets_out > 0 || !sender.mptcp.assigned.is_empty())
}
