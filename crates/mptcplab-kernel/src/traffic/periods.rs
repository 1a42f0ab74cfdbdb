//! The periods in which an application sends, from its start to its stop.

use mptcplab_model::link::rng::Rng;
use mptcplab_model::traffic::duration;
use mptcplab_scenario::DurationDistribution;

/// The active periods of a flow. Random lengths are drawn from the flow's stream in the same order as in the simulator.
#[derive(Debug)]
pub(crate) struct Periods {
    on_off: Option<(DurationDistribution, DurationDistribution)>,
    rng: Rng,
    stop_ns: u64,
    next_ns: u64,
}

impl Periods {
    /// `on_off` are the lengths of active and idle periods; without them the flow is active all the time.
    pub(crate) fn new(
        on_off: Option<(DurationDistribution, DurationDistribution)>,
        rng: Rng,
        start_ns: u64,
        stop_ns: u64,
    ) -> Self {
        Self {
            on_off,
            rng,
            stop_ns,
            next_ns: start_ns,
        }
    }
}

impl Iterator for Periods {
    /// Start and end of an active period.
    type Item = (u64, u64);

    fn next(&mut self) -> Option<(u64, u64)> {
        let begin = self.next_ns;
        if begin >= self.stop_ns {
            return None;
        }
        let Some((on, off)) = self.on_off else {
            self.next_ns = self.stop_ns;
            return Some((begin, self.stop_ns));
        };
        let end = begin.saturating_add(duration(on, &mut self.rng).max(1));
        self.next_ns = end.saturating_add(duration(off, &mut self.rng).max(1));
        Some((begin, end.min(self.stop_ns)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rng() -> Rng {
        Rng::new(3, 1, "flow", "web")
    }

    #[test]
    fn a_bulk_flow_has_one_period() {
        assert_eq!(
            Periods::new(None, rng(), 5, 90).collect::<Vec<_>>(),
            [(5, 90)]
        );
        assert_eq!(Periods::new(None, rng(), 90, 90).count(), 0);
    }

    #[test]
    fn periods_alternate_until_the_stop() {
        let spans = (
            DurationDistribution::Fixed(30),
            DurationDistribution::Fixed(12),
        );
        let periods: Vec<_> = Periods::new(Some(spans), rng(), 7, 100).collect();
        assert_eq!(periods, [(7, 37), (49, 79), (91, 100)]);
    }

    #[test]
    fn random_periods_follow_the_flow_s_stream() {
        let spans = (
            DurationDistribution::Uniform {
                lo_ns: 10,
                hi_ns: 20,
            },
            DurationDistribution::Uniform {
                lo_ns: 100,
                hi_ns: 300,
            },
        );
        let mut expected = rng();
        let on = 10 + expected.below(10);
        let off = 100 + expected.below(200);
        let second = 10 + expected.below(10);
        let mut periods = Periods::new(Some(spans), rng(), 0, 1_000_000);
        assert_eq!(periods.next(), Some((0, on)));
        assert_eq!(periods.next(), Some((on + off, on + off + second)));
    }
}
