//! BLEST: leave a slow subflow alone if the shared window would block the fast one meanwhile (Ferlin et al., IFIP Networking
//! 2016, in the form of `mptcp_blest` of the multipath-tcp.org kernels).

use super::declare::{Declaration, SchedulerConfig, number};
use super::minrtt::minrtt;
use super::path::{INFINITE_SSTHRESH, MAX_SUBFLOWS, Path, fastest};
use super::rbuf_opt::{self, RbufOpt};
use super::schedule::{Assignment, DSN_MAX, Schedule, SendQueue};

/// Rounds of doubling that are counted in slow start at most.
const MAX_DOUBLINGS: u128 = 16;

/// Lowest and highest smoothed RTT of a subflow so far, in eighths of a microsecond.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SrttRange {
    pub min_us8: u32,
    pub max_us8: u32,
}

impl SrttRange {
    /// No sample yet.
    pub const NONE: Self = Self {
        min_us8: u32::MAX,
        max_us8: 0,
    };

    /// Take in the current smoothed RTT.
    #[must_use]
    pub fn with(self, srtt_us8: u32) -> Self {
        Self {
            min_us8: self.min_us8.min(srtt_us8),
            max_us8: self.max_us8.max(srtt_us8),
        }
    }
}

/// The connection's send window, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// Bytes that may be unacknowledged at connection level.
    pub bytes: u64,
    /// Payload of a full segment.
    pub mss: u32,
    /// Payload of the segment to send.
    pub segment: u32,
}

/// The scaling factor of what the fast subflow will need, in thousandths.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lambda {
    pub milli: u32,
    pub min_milli: u32,
    pub max_milli: u32,
}

impl Lambda {
    /// Added after a round in which the blocking segment had to be sent again.
    const STEP_UP_MILLI: u32 = 40;
    /// Taken away after any other.
    const STEP_DOWN_MILLI: u32 = 10;

    /// A round of the slow subflow is over.
    pub fn adapt(&mut self, resent: bool) {
        let moved = if resent {
            self.milli + Self::STEP_UP_MILLI
        } else {
            self.milli.saturating_sub(Self::STEP_DOWN_MILLI)
        };
        self.milli = moved.clamp(self.min_milli, self.max_milli);
    }

    /// As a new connection begins.
    pub fn new(config: &SchedulerConfig) -> Self {
        Self {
            milli: config.raw("lambda"),
            min_milli: config.raw("min_lambda"),
            max_milli: config.raw("max_lambda"),
        }
    }
}

/// Measurements of the subflows, and the factor.
pub struct Blest {
    ranges: [SrttRange; MAX_SUBFLOWS],
    lambda: Lambda,
    adapted_ns: u64,
    /// The blocking segment was sent again since then.
    retransmitted: bool,
}

impl Blest {
    /// Once per least RTT of the subflow that is about to be used instead of the fastest one.
    fn adapt(&mut self, slow: usize, now_ns: u64) {
        let round_ns = u64::from(self.ranges[slow].min_us8 >> 3) * 1000;
        if now_ns - self.adapted_ns >= round_ns {
            self.lambda.adapt(std::mem::take(&mut self.retransmitted));
            self.adapted_ns = now_ns;
        }
    }
}

impl Schedule for Blest {
    fn declaration() -> Declaration {
        let mut params = rbuf_opt::params(false);
        params.push(number(
            "lambda",
            (1200, 0, 10_000),
            1000,
            "Initial factor by which the expected data of the fast subflow are multiplied.",
        ));
        params.push(number(
            "min_lambda",
            (1000, 0, 10_000),
            1000,
            "Lower bound of the factor.",
        ));
        params.push(number(
            "max_lambda",
            (1300, 0, 10_000),
            1000,
            "Upper bound of the factor; at least min_lambda.",
        ));
        Declaration {
            name: "blest",
            title: "does not use a slow subflow if that would block the shared window for the fast one",
            sections: vec![
                (
                    "Idea",
                    "Before a slower subflow gets a segment, BLEST estimates how much the fastest subflow will send \
                     until that segment is acknowledged. If this does not fit into the shared window beside the data \
                     of the slow subflow, BLEST waits for the fastest subflow.",
                ),
                (
                    "Rules",
                    "Let s be the slow and f the fast subflow. T is the time until the segment is acknowledged on s: \
                     max(srtt_s, interpolation between the least and the largest srtt of s by (inflight_s+1)/cwnd_s). \
                     In this time f has k = floor(T/rtt_f) + 1 rounds and sends this many packets: cwnd_f (2^k - 1) \
                     in initial slow start, else (max(cwnd_f, ssthresh_f+1) + (k-1)/2) k. Wait if packets mss lambda \
                     > window - segment - (inflight_s + queued_s) mss. lambda changes by +0.04 after an opportunistic \
                     retransmission and by -0.01 otherwise, at most once per least srtt of s.",
                ),
                (
                    "Deviations",
                    "The rules are those of the kernel, in exact integers. A backup subflow that is not in use never \
                     counts as the fastest subflow, because waiting for it would be in vain.",
                ),
                (
                    "Reference",
                    "Ferlin et al., BLEST: Blocking Estimation-Based MPTCP Scheduler for Heterogeneous Networks, IFIP \
                     Networking 2016; mptcp_blest of the multipath-tcp.org kernels (which retransmits but does not \
                     penalise).",
                ),
            ],
            params,
            ordered: Some(("min_lambda", "max_lambda")),
        }
    }

    fn new(config: &SchedulerConfig) -> Self {
        Self {
            ranges: [SrttRange::NONE; MAX_SUBFLOWS],
            lambda: Lambda::new(config),
            adapted_ns: 0,
            retransmitted: false,
        }
    }

    fn pick<P: Path>(&mut self, subflows: &[P], queue: &SendQueue) -> Option<Assignment> {
        for (range, subflow) in self.ranges.iter_mut().zip(subflows) {
            if subflow.srtt_us8() > 0 {
                *range = range.with(subflow.srtt_us8());
            }
        }
        let slow = minrtt(subflows)?;
        if fastest(subflows) != Some(slow) {
            self.adapt(slow, queue.now_ns);
        }
        let mss = u32::from(queue.mss);
        let window = Window {
            bytes: match queue.window_end {
                DSN_MAX => u64::MAX,
                end => u64::from(end - queue.una) * u64::from(mss),
            },
            mss,
            segment: mss,
        };
        blest(subflows, &self.ranges, &window, self.lambda.milli).map(Assignment::one)
    }

    fn rbuf_opt(config: &SchedulerConfig) -> Option<RbufOpt> {
        RbufOpt::new(config)
    }

    /// The fast subflow needs more of the window than was expected.
    fn note_rbuf_retransmission(&mut self) {
        self.retransmitted = true;
    }
}

/// minRTT's pick, or `None` where that is a slower subflow whose segment would fill the window that the fastest one needs
/// until the slow one is acknowledged. The fastest is one of the class in use: an idle backup is not waited for.
pub fn blest<P: Path>(
    paths: &[P],
    ranges: &[SrttRange],
    window: &Window,
    lambda_milli: u32,
) -> Option<usize> {
    let slow = minrtt(paths)?;
    let fast = fastest(paths)?;
    if slow == fast {
        return Some(slow);
    }
    let packets_twice =
        packets_meanwhile_twice(&paths[fast], ranges[fast], &paths[slow], ranges[slow]);
    let occupied = u64::from(window.segment)
        + (u64::from(paths[slow].inflight()) + u64::from(paths[slow].queued()))
            * u64::from(window.mss);
    let space = window.bytes.saturating_sub(occupied);
    // Packets stay below 2^48 * 2, the segment below 2^16, lambda below 2^20: 2^85.
    let need = packets_twice * u128::from(window.mss) * u128::from(lambda_milli);
    (need <= u128::from(space) * 2000).then_some(slow)
}

/// Twice the packets that `fast` sends while `slow` holds its next segment.
fn packets_meanwhile_twice<P: Path>(
    fast: &P,
    fast_range: SrttRange,
    slow: &P,
    slow_range: SrttRange,
) -> u128 {
    let (hold, cwnd) = hold_time(slow, slow_range);
    // The middle of the fast subflow's range is a half of this sum.
    let rtt_twice = u128::from(fast_range.min_us8) + u128::from(fast_range.max_us8);
    let rounds = 2 * hold / (cwnd * rtt_twice).max(1) + 1;
    if fast.ssthresh() == INFINITE_SSTHRESH {
        return 2 * u128::from(fast.cwnd()) * ((1 << rounds.min(MAX_DOUBLINGS)) - 1);
    }
    let start = u128::from(fast.cwnd().max(fast.ssthresh().saturating_add(1)));
    // An RTT is below 2^32 eighths of a microsecond, so there are fewer than 2^33 rounds.
    (2 * start + rounds - 1) * rounds
}

/// How long the slow subflow holds a segment, as a fraction (eighths of a microsecond times the divisor, divisor): its
/// RTT, or what it becomes as its window fills.
fn hold_time<P: Path>(slow: &P, range: SrttRange) -> (u128, u128) {
    let cwnd = u128::from(slow.cwnd().max(1));
    let filled = u128::from(slow.inflight()) + 1;
    let (min, max) = (u128::from(range.min_us8), u128::from(range.max_us8));
    let estimate = if filled >= cwnd {
        max * cwnd
    } else {
        min * cwnd + max.saturating_sub(min) * filled
    };
    (estimate.max(u128::from(slow.srtt_us8()) * cwnd), cwnd)
}
