//! Histograms of durations, and their summaries.

use serde::{Deserialize, Serialize};

/// Buckets are at most 1/128 of their values wide.
const SIGNIFICANT_DIGITS: u8 = 2;
/// Durations from this on (18 minutes) share the last bucket.
const LONGEST_NS: u64 = (1 << 40) - 1;

/// Counts of durations in ns. Recording allocates nothing.
#[derive(Debug, Clone)]
pub(crate) struct Histogram {
    buckets: hdrhistogram::Histogram<u64>,
    sum_ns: u64,
    max_ns: u64,
}

/// The distribution of a set of durations. A percentile is the upper end of its bucket, at most 1.6 % too long and never
/// too short.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Summary {
    /// Number of durations; all other fields are 0 if there were none.
    pub count: u64,
    /// Mean; exact.
    pub mean_ns: u64,
    pub p1_ns: u64,
    pub p50_ns: u64,
    pub p90_ns: u64,
    pub p99_ns: u64,
    pub p999_ns: u64,
    /// Longest; exact.
    pub max_ns: u64,
}

impl Histogram {
    pub(crate) fn new() -> Self {
        let buckets = hdrhistogram::Histogram::new_with_max(LONGEST_NS, SIGNIFICANT_DIGITS);
        Self {
            buckets: buckets.unwrap_or_else(|_| unreachable!("the range and the digits are valid")),
            sum_ns: 0,
            max_ns: 0,
        }
    }

    #[inline]
    pub(crate) fn record(&mut self, ns: u64) {
        self.buckets.saturating_record(ns);
        self.sum_ns = self.sum_ns.saturating_add(ns);
        self.max_ns = self.max_ns.max(ns);
    }

    pub(crate) fn summary(&self) -> Summary {
        let count = self.buckets.len();
        let percentile = |percent| match self.buckets.value_at_percentile(percent) {
            LONGEST_NS.. => self.max_ns,
            ns => ns.min(self.max_ns),
        };
        Summary {
            count,
            mean_ns: self.sum_ns.checked_div(count).unwrap_or(0),
            p1_ns: percentile(1.0),
            p50_ns: percentile(50.0),
            p90_ns: percentile(90.0),
            p99_ns: percentile(99.0),
            p999_ns: percentile(99.9),
            max_ns: self.max_ns,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Percentiles are at most this share too long.
    const PRECISION: u64 = 64;

    #[test]
    fn a_percentile_is_never_too_short_and_at_most_a_64th_too_long() {
        let mut values: Vec<u64> = (0..3_000).collect();
        values.extend((10..39).flat_map(|bits| {
            [
                (1_u64 << bits) - 1,
                1 << bits,
                (1 << bits) + 1,
                3 << (bits - 1),
            ]
        }));
        for value in values {
            let mut histogram = Histogram::new();
            histogram.record(value);
            // Otherwise the largest value bounds the percentile.
            histogram.record(u64::MAX);
            let found = histogram.summary().p50_ns;
            assert!(
                found >= value && found - value <= value / PRECISION,
                "{value}: {found}"
            );
        }
    }

    #[test]
    fn quantiles_are_those_of_the_sorted_values() {
        let mut histogram = Histogram::new();
        // 1 to 10,000 us in a scrambled order: 7919 is prime to 10,000.
        (0..10_000_u64).for_each(|i| histogram.record((i * 7919 % 10_000 + 1) * 1000));
        let summary = histogram.summary();
        assert_eq!((summary.count, summary.max_ns), (10_000, 10_000_000));
        assert_eq!(summary.mean_ns, 5_000_500);
        for (got, exact) in [
            (summary.p1_ns, 100_000),
            (summary.p50_ns, 5_000_000),
            (summary.p90_ns, 9_000_000),
            (summary.p99_ns, 9_900_000),
            (summary.p999_ns, 9_990_000),
        ] {
            assert!(
                got >= exact && got <= exact + exact / PRECISION,
                "{got} {exact}"
            );
        }
    }

    #[test]
    fn extremes_are_counted() {
        let mut histogram = Histogram::new();
        assert_eq!(histogram.summary(), Summary::default());
        histogram.record(0);
        assert_eq!(histogram.summary().p999_ns, 0);
        histogram.record(u64::MAX);
        let summary = histogram.summary();
        assert_eq!(
            (summary.count, summary.p50_ns, summary.max_ns),
            (2, 0, u64::MAX)
        );
        assert_eq!(summary.p99_ns, u64::MAX);
    }
}
