//! Time of the run on the kernel's monotonic clock.

use mptcplab_model::link::MAX_TIME_NS;
use nix::time::{ClockId, clock_gettime};

/// Nanoseconds since a chosen zero on `CLOCK_MONOTONIC`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Clock {
    zero_ns: u64,
}

impl Clock {
    /// Zero is now.
    pub fn starting_now() -> Self {
        Self::with_zero(Self::monotonic_ns())
    }

    /// Zero is this reading of `CLOCK_MONOTONIC` in ns, past or future.
    pub const fn with_zero(monotonic_ns: u64) -> Self {
        Self {
            zero_ns: monotonic_ns,
        }
    }

    /// The reading of `CLOCK_MONOTONIC` at zero, in ns.
    pub const fn zero_ns(&self) -> u64 {
        self.zero_ns
    }

    /// Time since zero in ns; 0 before it.
    pub fn now_ns(&self) -> u64 {
        self.at(Self::monotonic_ns())
    }

    /// The reading of `CLOCK_MONOTONIC` now, in ns.
    pub fn monotonic_ns() -> u64 {
        reading(ClockId::CLOCK_MONOTONIC)
    }

    /// Converts a reading of `CLOCK_MONOTONIC` to time since zero, clamped to the range that a link accepts: 0 to 78 hours.
    pub(crate) fn at(&self, monotonic_ns: u64) -> u64 {
        monotonic_ns
            .saturating_sub(self.zero_ns)
            .min(MAX_TIME_NS - 1)
    }
}

/// Processor time of the calling thread in ns.
pub(crate) fn thread_cpu_ns() -> u64 {
    reading(ClockId::CLOCK_THREAD_CPUTIME_ID)
}

/// Reads a clock. Both clocks exist on every Linux and are not negative, so the error cannot happen.
fn reading(clock: ClockId) -> u64 {
    clock_gettime(clock).map_or(0, |time| {
        time.tv_sec() as u64 * 1_000_000_000 + time.tv_nsec() as u64
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_is_counted_from_zero_and_clamped() {
        let clock = Clock::with_zero(5_000);
        assert_eq!(
            (clock.at(4_999), clock.at(5_000), clock.at(7_001)),
            (0, 0, 2_001)
        );
        assert_eq!(clock.at(u64::MAX), MAX_TIME_NS - 1);
        assert_eq!(clock.zero_ns(), 5_000);
    }

    #[test]
    fn it_runs_forwards() {
        let before = Clock::monotonic_ns();
        let clock = Clock::starting_now();
        let (first, second) = (clock.now_ns(), clock.now_ns());
        assert!(clock.zero_ns() >= before && second >= first);
        assert_eq!(Clock::with_zero(u64::MAX).now_ns(), 0);
    }
}
