//! Packet-delivery opportunities in the Mahimahi format (Netravali et al. 2015, mm-link), repeated for ever.

use crate::link::DeliveryTrace;
use std::sync::Arc;

/// Bytes that may leave at one opportunity: mm-link's MTU, an IP packet of 1500 bytes and the 4-byte TUN header.
pub(crate) const OPPORTUNITY_BYTES: u32 = 1504;

/// A position in the endless sequence of opportunities.
#[derive(Debug, Clone)]
pub(crate) struct Opportunities {
    times_ns: Arc<[u64]>,
    period_ns: u64,
    /// Start of the current repetition.
    base_ns: u64,
    index: usize,
}

impl Opportunities {
    /// Positioned at the first opportunity. Without opportunities, or with a period of 0, none ever comes.
    pub(crate) fn new(trace: &DeliveryTrace) -> Self {
        let empty = trace.period_ns == 0;
        Self {
            times_ns: if empty {
                Arc::from([])
            } else {
                trace.opportunities_ns.clone()
            },
            period_ns: trace.period_ns,
            base_ns: 0,
            index: 0,
        }
    }

    /// Time of the current opportunity.
    pub(crate) fn current_ns(&self) -> u64 {
        self.times_ns
            .get(self.index)
            .map_or(u64::MAX, |t| self.base_ns.saturating_add(*t))
    }

    /// On to the next one.
    pub(crate) fn step(&mut self) {
        self.index += 1;
        if self.index >= self.times_ns.len() {
            self.index = 0;
            self.base_ns += self.period_ns;
        }
    }

    /// Let all opportunities up to `now` pass unused.
    pub(crate) fn skip_to_after(&mut self, now: u64) {
        if self.current_ns() > now || self.times_ns.is_empty() {
            return;
        }
        // All opportunities of the repetitions that have ended by now are in the past.
        let repetitions = (now - self.base_ns) / self.period_ns;
        if repetitions > 0 {
            self.base_ns += repetitions * self.period_ns;
            self.index = 0;
        }
        while self.current_ns() <= now {
            let rest = &self.times_ns[self.index..];
            let passed = rest.partition_point(|t| self.base_ns + t <= now);
            self.index += passed.max(1) - 1;
            self.step();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trace(times: &[u64], period_ns: u64) -> Opportunities {
        Opportunities::new(&DeliveryTrace {
            name: "test".into(),
            opportunities_ns: times.into(),
            period_ns,
        })
    }

    #[test]
    fn repeats_after_the_period() {
        let mut opportunities = trace(&[2, 2, 7], 7);
        let times: Vec<u64> = (0..7)
            .map(|_| {
                let t = opportunities.current_ns();
                opportunities.step();
                t
            })
            .collect();
        assert_eq!(times, [2, 2, 7, 9, 9, 14, 16]);
    }

    #[test]
    fn skipping_equals_stepping() {
        for times in [&[2, 2, 7][..], &[0, 7], &[7], &[3, 4, 5]] {
            for from in 0..20 {
                for now in from..60 {
                    let mut stepped = trace(times, 7);
                    stepped.skip_to_after(from);
                    let mut skipped = stepped.clone();
                    while stepped.current_ns() <= now {
                        stepped.step();
                    }
                    skipped.skip_to_after(now);
                    assert_eq!(
                        (skipped.base_ns, skipped.index),
                        (stepped.base_ns, stepped.index),
                        "{times:?} from {from} to {now}"
                    );
                }
            }
        }
    }

    #[test]
    fn nothing_ever_comes_out_of_an_empty_trace() {
        for mut opportunities in [trace(&[], 5), trace(&[0, 0], 0)] {
            opportunities.skip_to_after(1000);
            assert_eq!(opportunities.current_ns(), u64::MAX);
        }
    }
}
