//! What segments waited for at the receiver because they had overtaken others: for how long, and how many at once.
//!
//! A connection whose data arrive in order never touches this. Counted when a segment is delivered, so that sums and
//! counts speak of the same segments.

/// A segment that waits.
#[derive(Debug, Clone, Copy, Default)]
struct Slot {
    arrived_ns: u64,
    /// Segments that waited when it had arrived, itself included (the buffer occupancy of RFC 5236 section 4).
    depth: u32,
}

/// Counters, and the waiting segments behind them.
#[derive(Debug, Default)]
pub(crate) struct Waiting {
    /// By data sequence number modulo the length, a power of two that spans all waiting segments.
    slots: Vec<Slot>,
    pub(crate) pkts: u64,
    pub(crate) delay_ns: u64,
    pub(crate) depth_pkts: u64,
    delay_max_ns: u64,
    depth_max_pkts: u32,
}

impl Waiting {
    /// A segment arrived beyond `next`, the one expected; now `depth` wait.
    pub(crate) fn arrived(&mut self, now: u64, dsn: u32, next: u32, depth: u32) {
        let span = (dsn - next) as usize + 1;
        if span > self.slots.len() {
            self.grow(next, span);
        }
        let place = self.place(dsn);
        self.slots[place] = Slot {
            arrived_ns: now,
            depth,
        };
    }

    /// The segments of this range, which waited, are in order now.
    pub(crate) fn delivered(&mut self, now: u64, range: std::ops::Range<u32>) {
        for dsn in range {
            let Slot { arrived_ns, depth } = self.slots[self.place(dsn)];
            let delay_ns = now - arrived_ns;
            self.pkts += 1;
            self.delay_ns += delay_ns;
            self.depth_pkts += u64::from(depth);
            self.delay_max_ns = self.delay_max_ns.max(delay_ns);
            self.depth_max_pkts = self.depth_max_pkts.max(depth);
        }
    }

    /// Longest wait and largest depth since this was asked last.
    pub(crate) fn take_largest(&mut self) -> (u64, u64) {
        let delay_ns = std::mem::take(&mut self.delay_max_ns);
        (delay_ns, std::mem::take(&mut self.depth_max_pkts).into())
    }

    fn place(&self, dsn: u32) -> usize {
        dsn as usize & (self.slots.len() - 1)
    }

    fn grow(&mut self, next: u32, span: usize) {
        let slots = vec![Slot::default(); span.next_power_of_two().max(64)];
        let old = std::mem::replace(&mut self.slots, slots);
        for dsn in next..next + old.len() as u32 {
            let place = self.place(dsn);
            self.slots[place] = old[dsn as usize & (old.len() - 1)];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_survive_a_growing_window() {
        let mut w = Waiting::default();
        // 60 and 61 overtake 59; 300 makes the ring grow from 64 to 256 slots.
        w.arrived(1_000, 60, 59, 1);
        w.arrived(1_500, 61, 59, 2);
        w.arrived(2_000, 300, 59, 3);
        w.delivered(4_000, 60..62);
        assert_eq!((w.pkts, w.delay_ns, w.depth_pkts), (2, 3_000 + 2_500, 3));
        assert_eq!(w.take_largest(), (3_000, 2));
        w.delivered(9_000, 300..301);
        assert_eq!((w.pkts, w.delay_ns, w.depth_pkts), (3, 5_500 + 7_000, 6));
        assert_eq!(w.take_largest(), (7_000, 3));
        assert_eq!(w.take_largest(), (0, 0));
    }
}
