//! BLEST (algorithms.md 7.5): what it remembers of the subflows, and its factor.

use super::{Demand, MAX_SUBFLOWS, Pick, Schedule};
use crate::stream::DSN_MAX;
use crate::tcp::subflow::Subflow;
use mptcplab_model::sched::{Choice, Lambda, Path, SrttRange, Window, blest, fastest, minrtt};

pub(crate) struct Blest {
    ranges: [SrttRange; MAX_SUBFLOWS],
    lambda: Lambda,
    adapted_ns: u64,
    /// The blocking segment was sent again since.
    pub(super) resent: bool,
}

impl Blest {
    pub(super) fn new(choice: &Choice) -> Self {
        Self {
            ranges: [SrttRange::NONE; MAX_SUBFLOWS],
            lambda: Lambda::of(choice),
            adapted_ns: 0,
            resent: false,
        }
    }

    /// Once per least RTT of the subflow that is about to be used instead of the fastest one.
    fn adapt(&mut self, slow: usize, now: u64) {
        let round_ns = u64::from(self.ranges[slow].min_us8 >> 3) * 1000;
        if now - self.adapted_ns >= round_ns {
            self.lambda.adapt(std::mem::take(&mut self.resent));
            self.adapted_ns = now;
        }
    }
}

impl Schedule for Blest {
    fn pick(&mut self, subflows: &[Subflow], demand: &Demand) -> Option<Pick> {
        for (range, subflow) in self.ranges.iter_mut().zip(subflows) {
            if subflow.srtt_us8() > 0 {
                *range = range.with(subflow.srtt_us8());
            }
        }
        let slow = minrtt(subflows)?;
        if fastest(subflows) != Some(slow) {
            self.adapt(slow, demand.now);
        }
        let mss = u32::from(demand.mss);
        let window = Window {
            bytes: match demand.window_end {
                DSN_MAX => u64::MAX,
                end => u64::from(end - demand.una) * u64::from(mss),
            },
            mss,
            segment: mss,
        };
        blest(subflows, &self.ranges, &window, self.lambda.milli).map(Pick::next)
    }
}
