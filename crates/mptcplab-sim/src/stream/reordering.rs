//! Statistics of reordering: how long segments wait at the receiver for earlier ones, and how many wait at a time.
//!
//! A connection whose data arrive in order never touches this. A segment is counted when it is delivered, so that sums and
//! counts cover the same segments.

use super::seq_ring::SeqRing;
use mptcplab_prefetch::prefetch;

/// A segment that waits.
#[derive(Debug, Clone, Copy, Default)]
struct Segment {
    arrived_ns: u64,
    /// Segments that waited when it had arrived, itself included (the buffer occupancy of RFC 5236 section 4).
    depth: u32,
}

/// Counters, and the waiting segments behind them.
#[derive(Debug, Default)]
pub(crate) struct ReorderingStats {
    /// Of the segments beyond the one expected, those that have arrived.
    waiting: SeqRing<Segment>,
    pub(crate) pkts: u64,
    pub(crate) delay_ns: u64,
    pub(crate) depth_pkts: u64,
    delay_max_ns: u64,
    depth_max_pkts: u32,
}

impl ReorderingStats {
    /// Have the segments from `next` on fetched into the cache.
    #[inline(always)]
    pub(crate) fn prefetch(&self, next: u32) {
        if let Some(segment) = self.waiting.place_of(next) {
            prefetch(segment);
        }
    }

    /// A segment arrived beyond `next`, the one expected; now `depth` wait.
    #[inline]
    pub(crate) fn arrived(&mut self, now: u64, dsn: u32, next: u32, depth: u32) {
        let segment = Segment {
            arrived_ns: now,
            depth,
        };
        self.waiting.put(next, dsn, segment);
    }

    /// So many segments up to `next`, the one expected now, were waiting and are in order now.
    #[inline(never)]
    pub(crate) fn delivered(&mut self, now: u64, pkts: u32, next: u32) {
        self.pkts += u64::from(pkts);
        for dsn in next - pkts..next {
            let &Segment { arrived_ns, depth } = self.waiting.get(dsn);
            let delay_ns = now - arrived_ns;
            self.delay_ns += delay_ns;
            self.depth_pkts += u64::from(depth);
            self.delay_max_ns = self.delay_max_ns.max(delay_ns);
            self.depth_max_pkts = self.depth_max_pkts.max(depth);
        }
    }

    /// Longest wait and largest depth since the previous call.
    pub(crate) fn take_largest(&mut self) -> (u64, u64) {
        let delay_ns = std::mem::take(&mut self.delay_max_ns);
        (delay_ns, std::mem::take(&mut self.depth_max_pkts).into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mptcplab_model::link::rng::Rng;
    use std::collections::BTreeMap;
    use std::collections::btree_map::Entry;

    #[test]
    fn every_gap_that_closes_delivers_what_waited_behind_it() {
        let mut w = ReorderingStats::default();
        // 60 and 61 overtake 59, and 300 overtakes 62.
        w.arrived(1_000, 60, 59, 1);
        w.arrived(1_500, 61, 59, 2);
        w.arrived(2_000, 300, 59, 3);
        w.delivered(4_000, 2, 62);
        assert_eq!((w.pkts, w.delay_ns, w.depth_pkts), (2, 3_000 + 2_500, 3));
        assert_eq!(w.take_largest(), (3_000, 2));
        w.delivered(9_000, 1, 301);
        assert_eq!((w.pkts, w.delay_ns, w.depth_pkts), (3, 5_500 + 7_000, 6));
        assert_eq!(w.take_largest(), (7_000, 3));
        assert_eq!(w.take_largest(), (0, 0));
    }

    #[test]
    fn segments_that_arrive_in_any_order_are_delivered_in_order() {
        let mut w = ReorderingStats::default();
        // 200, 120, 160 and 121 wait for 11; depths are 1 to 4.
        for (i, dsn) in [200, 120, 160, 121].into_iter().enumerate() {
            w.arrived(100 * i as u64, dsn, 11, i as u32 + 1);
        }
        // 120 waited since 100, 121 since 300, 160 since 200, 200 since 0.
        w.delivered(1_000, 2, 122);
        assert_eq!((w.delay_ns, w.depth_pkts), (900 + 700, 2 + 4));
        assert_eq!(w.take_largest(), (900, 4));
        // All in between have arrived in order, and one more waits behind the others.
        w.arrived(1_500, 330, 150, 3);
        w.delivered(2_000, 1, 161);
        w.delivered(5_000, 1, 201);
        assert_eq!(w.take_largest(), (5_000, 3));
        w.delivered(6_000, 1, 331);
        assert_eq!(w.pkts, 5);
        assert_eq!(w.depth_pkts, 6 + 3 + 1 + 3);
    }

    /// Against a list of the segments that wait; gaps close in any order.
    #[test]
    fn the_counters_are_those_of_a_list_of_the_segments() {
        let mut rng = Rng::new(7, 0, "test", "waiting");
        let mut w = ReorderingStats::default();
        let mut list: BTreeMap<u32, (u64, u32)> = BTreeMap::new();
        let (mut next, mut now) = (0, 0);
        let (mut delay_ns, mut depth_pkts, mut longest, mut deepest) = (0, 0, 0, 0);
        for round in 0..20_000 {
            now += 1 + rng.below(1_000);
            // Windows of up to 20 and later of up to 300 segments, of which the first comes rarely.
            let window = if round < 2_000 { 20 } else { 300 };
            let dsn = next + rng.below(window) as u32;
            if dsn > next {
                let depth = list.len() as u32 + 1;
                if let Entry::Vacant(place) = list.entry(dsn) {
                    place.insert((now, depth));
                    w.arrived(now, dsn, next, depth);
                }
                continue;
            }
            next += 1;
            let before = next;
            while let Some((arrived_ns, depth)) = list.remove(&next) {
                next += 1;
                delay_ns += now - arrived_ns;
                depth_pkts += u64::from(depth);
                longest = longest.max(now - arrived_ns);
                deepest = deepest.max(u64::from(depth));
            }
            if next > before {
                w.delivered(now, next - before, next);
            }
            assert_eq!((w.delay_ns, w.depth_pkts), (delay_ns, depth_pkts));
        }
        assert!(w.pkts > 3_000);
        assert_eq!(w.take_largest(), (longest, deepest));
    }
}
