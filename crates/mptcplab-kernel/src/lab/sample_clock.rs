//! When samples are due: at regular intervals, and always at the start, at the end of the warm-up, when a flow stops, and at
//! the end of the run. These last four are the edges of the measured intervals.

use mptcplab_scenario::Run;

/// The times of a run's samples.
#[derive(Debug)]
pub(super) struct SampleClock {
    interval_ns: Option<u64>,
    regular_ns: u64,
    /// Edges still to come, latest first.
    edges: Vec<u64>,
    /// Regular samples that were skipped because an earlier one took longer than an interval.
    pub(super) skipped: u64,
}

/// A sample that is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct DueSample {
    pub(super) at_ns: u64,
    /// Whether it is at an edge of a measured interval.
    pub(super) is_edge: bool,
}

impl SampleClock {
    pub(super) fn new(run: &Run) -> Self {
        let stops = run.flows.iter().filter_map(|flow| flow.stop_ns);
        let mut edges: Vec<u64> = [0, run.warmup_ns, run.duration_ns]
            .into_iter()
            .chain(stops)
            .collect();
        edges.retain(|&at| at <= run.duration_ns);
        edges.sort_unstable();
        edges.dedup();
        edges.reverse();
        Self {
            interval_ns: run.sample_ns,
            regular_ns: 0,
            edges,
            skipped: 0,
        }
    }

    /// The next sample; `None` after the last edge, which is the end of the run.
    pub(super) fn next(&self) -> Option<DueSample> {
        let edge = *self.edges.last()?;
        let regular = self.interval_ns.map_or(u64::MAX, |_| self.regular_ns);
        Some(DueSample {
            at_ns: edge.min(regular),
            is_edge: edge <= regular,
        })
    }

    /// The time that the rows of a sample have which begins at `now_ns`: at an edge the scenario's, otherwise the time at which
    /// it is really taken, unless the next edge is before that. Times would go backwards there.
    pub(super) fn time_of(&self, due: DueSample, now_ns: u64) -> u64 {
        match self.edges.last() {
            _ if due.is_edge => due.at_ns,
            Some(&edge) => now_ns.min(edge),
            None => now_ns,
        }
    }

    /// Advances to the next sample after one has been taken; the time is `now_ns`.
    pub(super) fn advance(&mut self, now_ns: u64) {
        let Some(due) = self.next() else { return };
        if due.is_edge {
            self.edges.pop();
        }
        let Some(interval) = self.interval_ns.filter(|_| self.regular_ns <= due.at_ns) else {
            return;
        };
        self.regular_ns += interval;
        while self.regular_ns + interval < now_ns {
            self.regular_ns += interval;
            self.skipped += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clock(interval_ns: Option<u64>, edges: &[u64]) -> SampleClock {
        SampleClock {
            interval_ns,
            regular_ns: 0,
            edges: edges.iter().rev().copied().collect(),
            skipped: 0,
        }
    }

    fn take(clock: &mut SampleClock, late_ns: u64) -> Vec<(u64, bool)> {
        let mut taken = Vec::new();
        while let Some(due) = clock.next() {
            taken.push((due.at_ns, due.is_edge));
            clock.advance(due.at_ns + late_ns);
        }
        taken
    }

    #[test]
    fn edges_come_between_the_regular_ones() {
        let taken = take(&mut clock(Some(10), &[0, 25, 40]), 1);
        assert_eq!(
            taken,
            [
                (0, true),
                (10, false),
                (20, false),
                (25, true),
                (30, false),
                (40, true)
            ]
        );
    }

    #[test]
    fn without_samples_the_edges_are_left() {
        assert_eq!(
            take(&mut clock(None, &[0, 25, 40]), 1),
            [(0, true), (25, true), (40, true)]
        );
    }

    #[test]
    fn no_sample_has_a_time_after_the_edge_that_follows() {
        let mut clock = clock(Some(10), &[0, 35, 60]);
        let mut times = Vec::new();
        while let Some(due) = clock.next() {
            times.push(clock.time_of(due, due.at_ns + 8));
            clock.advance(due.at_ns + 9);
        }
        // Those at 30 and 50 are taken at 38 and 58, after the edge and before.
        assert_eq!(times, [0, 18, 28, 35, 35, 48, 58, 60]);
    }

    #[test]
    fn what_cannot_be_caught_up_is_left_out_and_counted() {
        let mut clock = clock(Some(10), &[0, 100]);
        clock.advance(45);
        assert_eq!(
            (clock.next(), clock.skipped),
            (
                Some(DueSample {
                    at_ns: 40,
                    is_edge: false
                }),
                3
            )
        );
    }
}
