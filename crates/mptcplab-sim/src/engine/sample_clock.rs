//! When samples are taken.

use crate::net::event::NEVER;
use mptcplab_scenario::Run;

/// Sample times: every interval, and always the start, the end of the warm-up and the end of the run.
pub(crate) struct SampleClock {
    interval: Option<u64>,
    /// Next regular sample.
    regular: u64,
    /// Fixed times still to come, latest first.
    fixed: Vec<u64>,
}

impl SampleClock {
    pub(crate) fn new(run: &Run, interval: Option<u64>) -> Self {
        let mut fixed = vec![run.duration_ns, run.warmup_ns.min(run.duration_ns), 0];
        fixed.dedup();
        Self {
            interval,
            regular: if interval.is_some() { 0 } else { NEVER },
            fixed,
        }
    }

    /// Time of the next sample.
    #[inline]
    pub(crate) fn next(&self) -> u64 {
        self.regular
            .min(self.fixed.last().copied().unwrap_or(NEVER))
    }

    pub(super) fn advance(&mut self) {
        let now = self.next();
        if self.regular == now {
            self.regular = self.interval.map_or(NEVER, |i| now + i);
        }
        while self.fixed.last() == Some(&now) {
            self.fixed.pop();
        }
    }
}
