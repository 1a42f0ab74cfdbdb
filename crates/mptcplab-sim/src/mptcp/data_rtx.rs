//! Retransmission at connection level, which upstream Linux has together with its scheduler.
//!
//! In upstream Linux a timeout of a subflow does not move its data to other subflows. Instead the connection has a timer: if no
//! new data were acknowledged at connection level for as long as the subflows' own timers had left, the oldest chunk is sent
//! again on a subflow that has nothing queued. If a subflow makes no progress for several such intervals, it is stale, and all
//! data that are not acknowledged are sent again on the others. See `mptcp_retransmit_timer` and `mptcp_subflow_get_retrans` in
//! net/mptcp/protocol.c and the sysctl `net.mptcp.stale_loss_cnt` (Linux 6.18).

use crate::net::World;
use crate::net::event::{NEVER, Timer, TimerKind};
use crate::tcp::state::Phase;
use crate::tcp::subflow::Subflow;
use mptcplab_model::sched::{MAX_SUBFLOWS, Path, SendQueue};

/// The interval if no subflow's timer runs: Linux' `TCP_RTO_MIN`.
const LEAST_INTERVAL_NS: u64 = 200_000_000;
/// Linux' default of `net.mptcp.stale_loss_cnt`.
const STALE_AFTER: u32 = 4;

pub(crate) struct DataRtx {
    pub(crate) timer: Timer,
    interval_ns: u64,
    /// Data acknowledged at connection level when the timer was last set.
    una: u32,
    /// First data sequence number that the application had not written when this was last asked.
    written: u32,
    /// A subflow is stale after this many checks without progress.
    stale_after: u32,
    stale_counts: [StaleCount; MAX_SUBFLOWS],
}

/// For how many checks a subflow with outstanding data has made no progress. As in Linux, the first check sets the count to 1,
/// so that a subflow counts as stuck until the next one.
#[derive(Debug, Clone, Copy, Default)]
struct StaleCount {
    /// Packets delivered at the previous check.
    delivered: u32,
    checks: u32,
}

impl DataRtx {
    pub(crate) fn new(stale_after: Option<u32>) -> Self {
        Self {
            timer: Timer::OFF,
            interval_ns: LEAST_INTERVAL_NS,
            una: 0,
            written: 0,
            stale_after: stale_after.unwrap_or(STALE_AFTER),
            stale_counts: [StaleCount::default(); MAX_SUBFLOWS],
        }
    }

    /// Linux looks for a subflow, and then renews the interval, when the receive window admits data that were not sent
    /// (`ack_update_msk`), and when the application writes, whatever the window.
    #[inline]
    pub(super) fn renew_interval(&mut self, subflows: &[Subflow], queue: &SendQueue) {
        let writes = queue.written != self.written;
        self.written = queue.written;
        if queue.has_sendable() || writes && queue.backlog() > 0 {
            self.set_interval(subflows, queue.now_ns);
        }
    }

    /// Wait for as long as the latest of the subflows' timers has left; stuck subflows do not count.
    fn set_interval(&mut self, subflows: &[Subflow], now: u64) {
        let left = |(Subflow { sender, .. }, stale): (&Subflow, &StaleCount)| {
            let runs = sender.is_usable() && stale.checks == 0;
            let deadline = Some(sender.rtx.timer.deadline).filter(|&at| runs && at != NEVER);
            deadline.map(|at| at.saturating_sub(now))
        };
        let longest = subflows
            .iter()
            .zip(&self.stale_counts)
            .filter_map(left)
            .max();
        self.interval_ns = longest.filter(|&ns| ns > 0).unwrap_or(LEAST_INTERVAL_NS);
    }

    /// Start the timer anew if new data were acknowledged, and stop it if nothing is outstanding.
    #[inline]
    pub(super) fn rearm(&mut self, cx: &mut World, conn: u32, una: u32, next: u32) {
        if una == next {
            self.timer.deadline = NEVER;
        } else if una != self.una || self.timer.deadline == NEVER {
            self.start(cx, conn);
        }
        self.una = una;
    }

    fn start(&mut self, cx: &mut World, conn: u32) {
        let at = cx.now + self.interval_ns;
        cx.timers.set(&mut self.timer, at, TimerKind::DataRtx, conn);
    }

    /// Check all subflows with outstanding data for progress. Returns those that are stale (bit k is subflow k).
    pub(super) fn find_stale(&mut self, subflows: &[Subflow]) -> u8 {
        let mut stale = 0;
        for i in (0..subflows.len()).filter(|&i| has_queue(&subflows[i])) {
            self.stale_counts[i].update(subflows[i].sender.sock.tp.delivered);
            if self.is_stale(subflows, i, stale) {
                stale |= 1 << i;
            }
        }
        stale
    }

    /// The subflow for the retransmission: one with empty queues; a backup only if no subflow makes progress.
    pub(super) fn pick_idle(&self, subflows: &[Subflow]) -> Option<usize> {
        let idle = |backup: bool| {
            let takes =
                move |s: &Subflow| s.is_usable() && s.is_backup() == backup && !has_queue(s);
            subflows.iter().position(takes)
        };
        let queued = subflows
            .iter()
            .zip(&self.stale_counts)
            .filter(|(s, _)| has_queue(s));
        let least = queued.map(|(_, stale)| stale.checks).min();
        let stuck = least.is_none_or(|checks| checks > 1);
        idle(false).or_else(|| idle(true).filter(|_| stuck))
    }

    /// Whether a subflow has made no progress for too long while another one works, which is not among the `stale` ones.
    fn is_stale(&self, subflows: &[Subflow], i: usize, stale: u8) -> bool {
        let most = self.stale_after.saturating_sub(1).max(1);
        let works = |k: usize| {
            stale >> k & 1 == 0 && subflows[k].is_usable() && self.stale_counts[k].checks < most
        };
        subflows[i].is_usable()
            && self.stale_counts[i].checks > self.stale_after
            && (0..subflows.len()).any(|k| k != i && works(k))
    }
}

impl StaleCount {
    fn update(&mut self, delivered: u32) {
        self.checks = match self.checks {
            0 => 1,
            checks if self.delivered == delivered => checks + 1,
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
