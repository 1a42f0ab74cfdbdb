//! Durations in log-linear buckets: a relative error of at most 1/64 over twelve orders of magnitude.

use serde::{Deserialize, Serialize};

/// Values below `2^SUB_BITS` have a bucket each; every octave above has as many buckets.
const SUB_BITS: u32 = 6;
const SUB: u64 = 1 << SUB_BITS;
/// Values from 2^40 ns (18 minutes) on share the last bucket.
const TOP_BITS: u32 = 40;
const BUCKETS: usize = ((TOP_BITS - SUB_BITS + 1) << SUB_BITS) as usize;

/// Counts of durations in ns.
#[derive(Debug, Clone)]
pub(crate) struct Histogram {
    counts: Box<[u64]>,
    count: u64,
    sum_ns: u64,
    max_ns: u64,
}

/// The distribution of a set of durations; a quantile is the top of its bucket, at most 1.6 % too long, never too
/// short.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Summary {
    /// How many there were; the rest is 0 if there were none.
    pub count: u64,
    /// Mean.
    pub mean_ns: u64,
    /// Median.
    pub p50_ns: u64,
    /// 90th percentile.
    pub p90_ns: u64,
    /// 99th percentile.
    pub p99_ns: u64,
    /// 99.9th percentile.
    pub p999_ns: u64,
    /// Longest; exact.
    pub max_ns: u64,
}

impl Histogram {
    pub(crate) fn new() -> Self {
        Self {
            counts: vec![0; BUCKETS].into_boxed_slice(),
            count: 0,
            sum_ns: 0,
            max_ns: 0,
        }
    }

    #[inline]
    pub(crate) fn record(&mut self, ns: u64) {
        self.counts[bucket(ns)] += 1;
        self.count += 1;
        self.sum_ns = self.sum_ns.saturating_add(ns);
        self.max_ns = self.max_ns.max(ns);
    }

    pub(crate) fn summary(&self) -> Summary {
        let quantile = |per_mille| self.quantile(per_mille);
        Summary {
            count: self.count,
            mean_ns: self.sum_ns.checked_div(self.count).unwrap_or(0),
            p50_ns: quantile(500),
            p90_ns: quantile(900),
            p99_ns: quantile(990),
            p999_ns: quantile(999),
            max_ns: self.max_ns,
        }
    }

    /// A value that at least `per_mille` of a thousand do not exceed.
    fn quantile(&self, per_mille: u64) -> u64 {
        let rank = (self.count * per_mille).div_ceil(1000).max(1);
        let mut seen = 0;
        let found = self.counts.iter().position(|count| {
            seen += count;
            seen >= rank
        });
        found.map_or(0, top).min(self.max_ns)
    }
}

#[inline]
fn bucket(ns: u64) -> usize {
    let ns = ns.min((1 << TOP_BITS) - 1);
    if ns < SUB {
        return ns as usize;
    }
    let shift = ns.ilog2() - SUB_BITS;
    ((u64::from(shift) << SUB_BITS) + (ns >> shift)) as usize
}

/// The largest value of a bucket.
fn top(bucket: usize) -> u64 {
    let bucket = bucket as u64;
    if bucket == BUCKETS as u64 - 1 {
        return u64::MAX;
    }
    let shift = (bucket >> SUB_BITS).saturating_sub(1);
    let mantissa = bucket - (shift << SUB_BITS);
    ((mantissa + 1) << shift) - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_lies_in_a_bucket_of_its_own_size() {
        let mut values: Vec<u64> = (0..100_000).collect();
        values.extend((10..39).flat_map(|bits| {
            [
                (1_u64 << bits) - 1,
                1 << bits,
                (1 << bits) + 1,
                3 << (bits - 1),
            ]
        }));
        for value in values {
            let bucket = bucket(value);
            assert!(top(bucket) >= value, "{value}");
            assert!(bucket == 0 || top(bucket - 1) < value, "{value}");
            assert!(
                top(bucket) - value <= value / SUB,
                "{value}: {}",
                top(bucket)
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
            (summary.p50_ns, 5_000_000),
            (summary.p90_ns, 9_000_000),
            (summary.p99_ns, 9_900_000),
            (summary.p999_ns, 9_990_000),
        ] {
            assert!(got >= exact && got <= exact + exact / SUB, "{got} {exact}");
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
