//! Transfers: when they begin and how large they are.

use super::config::{ArrivalRate, Arrivals, Transfers};
use crate::link::rng::Rng;
use crate::traffic::draw;

/// A transfer to come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Transfer {
    /// Number in its flow, from 0.
    pub index: u32,
    /// When it begins.
    pub at_ns: u64,
    /// Application bytes.
    pub bytes: u64,
}

/// The transfers of a flow, in order: of each the time is drawn, then the size.
#[derive(Debug, Clone)]
pub struct Schedule {
    transfers: Transfers,
    rng: Rng,
    start_ns: u64,
    stop_ns: u64,
    next: u32,
}

impl Schedule {
    /// From `start_ns`, and no more from `stop_ns` on. `rng`: the flow's stream after its start was drawn.
    pub fn new(transfers: Transfers, rng: Rng, start_ns: u64, stop_ns: u64) -> Self {
        Self {
            transfers,
            rng,
            start_ns,
            stop_ns,
            next: 0,
        }
    }

    /// Whether a transfer waits for the one before.
    pub fn is_closed_loop(&self) -> bool {
        matches!(self.transfers.arrivals, Arrivals::Repeat { .. })
    }

    /// The first transfer.
    pub fn first(&mut self) -> Option<Transfer> {
        match &self.transfers.arrivals {
            Arrivals::Poisson { .. } => self.after(self.start_ns),
            Arrivals::Repeat { .. } => self.make(self.start_ns),
        }
    }

    /// The transfer after this time: that of an arrival, or of a completion where one waits for the other.
    pub fn after(&mut self, from_ns: u64) -> Option<Transfer> {
        let at_ns = match &self.transfers.arrivals {
            Arrivals::Poisson { levels } => {
                let work = draw::exponential(&mut self.rng);
                arrival(levels, self.start_ns, from_ns, work)
            }
            Arrivals::Repeat { count, .. } if count.is_some_and(|n| u64::from(self.next) >= n) => {
                return None;
            }
            Arrivals::Repeat { gap, .. } => {
                from_ns.saturating_add(draw::duration(*gap, &mut self.rng))
            }
        };
        self.make(at_ns)
    }

    fn make(&mut self, at_ns: u64) -> Option<Transfer> {
        if at_ns >= self.stop_ns {
            return None;
        }
        let index = self.next;
        self.next += 1;
        Some(Transfer {
            index,
            at_ns,
            bytes: draw::size(self.transfers.size, &mut self.rng),
        })
    }
}

/// Nanoseconds in 1000 minutes.
const NS_PER_1000_MIN: f64 = 60e12;

/// When a process whose rate goes through `levels` from `start_ns` on has brought `work` more expected arrivals.
pub(super) fn arrival(levels: &[ArrivalRate], start_ns: u64, from_ns: u64, mut work: f64) -> u64 {
    let cycle = levels
        .iter()
        .fold(0_u64, |sum, level| sum.saturating_add(level.lasts_ns));
    let mut position = (from_ns - start_ns) % cycle.max(1);
    let mut at_ns = from_ns;
    // Ends: the scenario has a level above 0, so that every cycle does some of the work.
    for level in levels.iter().cycle() {
        if position >= level.lasts_ns {
            position -= level.lasts_ns;
            continue;
        }
        let left_ns = level.lasts_ns - position;
        position = 0;
        let per_ns = level.per_1000_min as f64 / NS_PER_1000_MIN;
        if per_ns * left_ns as f64 >= work {
            return at_ns.saturating_add((work / per_ns) as u64);
        }
        work -= per_ns * left_ns as f64;
        at_ns = at_ns.saturating_add(left_ns);
    }
    at_ns
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::traffic::config::{DurationDistribution, SizeDistribution};

    const S: u64 = 1_000_000_000;

    fn schedule(arrivals: Arrivals, stop_ns: u64) -> Schedule {
        let transfers = Transfers {
            size: SizeDistribution::Fixed { bytes: 1 },
            arrivals,
        };
        Schedule::new(transfers, Rng::new(3, 1, "flow", "web"), 5 * S, stop_ns)
    }

    fn all(mut schedule: Schedule) -> Vec<u64> {
        let mut times = Vec::new();
        let mut next = schedule.first();
        while let Some(transfer) = next {
            assert_eq!(transfer.index as usize, times.len());
            times.push(transfer.at_ns);
            next = schedule.after(transfer.at_ns);
        }
        times
    }

    fn level(per_s: u64, lasts_ns: u64) -> ArrivalRate {
        ArrivalRate {
            per_1000_min: per_s * 60_000,
            lasts_ns,
        }
    }

    #[test]
    fn poisson_arrivals_have_their_rate_and_variance() {
        let levels = vec![level(40, u64::MAX)];
        let times = all(schedule(Arrivals::Poisson { levels }, 1005 * S));
        // 40,000 expected, standard deviation 200.
        assert!((39_200..40_800).contains(&times.len()), "{}", times.len());
        assert!(times.is_sorted() && times[0] > 5 * S);
        // Counts of seconds: variance equals mean.
        let mut counts = vec![0_f64; 1000];
        for t in &times {
            counts[((t - 5 * S) / S) as usize] += 1.0;
        }
        let mean = counts.iter().sum::<f64>() / 1000.0;
        let variance = counts.iter().map(|c| (c - mean) * (c - mean)).sum::<f64>() / 999.0;
        assert!((variance / mean - 1.0).abs() < 0.18, "{variance} {mean}");
    }

    #[test]
    fn levels_alternate_from_the_flow_s_start() {
        let levels = vec![level(10, 60 * S), level(60, 40 * S), level(0, 20 * S)];
        let times = all(schedule(Arrivals::Poisson { levels }, 245 * S));
        let count = |from: u64, to: u64| {
            let inside = times.iter().filter(|t| (from * S..to * S).contains(t));
            inside.count() as f64
        };
        for (from, to, expected) in [
            (5, 65, 600.0),
            (65, 105, 2400.0),
            (125, 185, 600.0),
            (185, 225, 2400.0),
        ] {
            let found = count(from, to);
            assert!(
                (found - expected).abs() < 4.5 * f64::sqrt(expected),
                "{from}: {found}"
            );
        }
        assert_eq!(count(105, 125) + count(225, 245), 0.0);
    }

    #[test]
    fn repeated_transfers_wait_for_the_one_before() {
        let arrivals = Arrivals::Repeat {
            gap: DurationDistribution::Fixed(2 * S),
            count: Some(3),
        };
        let mut one = schedule(arrivals, 100 * S);
        assert!(one.is_closed_loop());
        assert_eq!(one.first().map(|t| (t.index, t.at_ns)), Some((0, 5 * S)));
        assert_eq!(
            one.after(9 * S).map(|t| (t.index, t.at_ns)),
            Some((1, 11 * S))
        );
        assert_eq!(one.clone().after(98 * S), None);
        assert_eq!(one.after(20 * S).map(|t| t.index), Some(2));
        assert_eq!(one.after(30 * S), None);
    }
}
