//! The total order of events: by time, then links before timers, then by index.
//!
//! Links are the most frequent sources. Each has at most one pending time, in a winner tree whose update touches at most
//! log2(links) nodes. Timers are re-armed far more often than they fire, so that moving a deadline changes only the timer; its
//! entry is compared with the deadline when it comes up.

use super::timer_queue::TimerQueue;
pub(crate) use super::timer_queue::{TimerEntry, TimerKind};

/// No event pending.
pub(crate) const NEVER: u64 = u64::MAX;

/// Bits of a tree key that hold the source.
const SOURCE_BITS: u32 = 17;
/// Most sources of a [`WinnerTree`].
pub(crate) const MAX_SOURCES: usize = 1 << SOURCE_BITS;
/// Most links: one source more is for packets that are merged.
pub(crate) const MAX_LINKS: usize = MAX_SOURCES - 1;
/// [`WinnerTree::first`] returns this when nothing is pending: 39 hours, longer than any run.
pub(crate) const HORIZON: u64 = u64::MAX >> SOURCE_BITS;

/// Earliest pending time over a fixed set of sources; equal times go to the lowest index.
///
/// A tree of pairwise winners below four top nodes, which `first` compares on each call: with up to four links,
/// which is most topologies, a change is one store.
#[derive(Debug)]
pub(crate) struct WinnerTree {
    /// Nodes 4 to 7. Not in `nodes`, so that they are read without following a pointer.
    top: [u64; TOP],
    /// `time << SOURCE_BITS | index`: leaves at `base..`, a node holds the smaller of its children. The indices up to 7
    /// are not used.
    nodes: Vec<u64>,
    base: usize,
}

/// Number of top nodes, and index of the first one.
const TOP: usize = 4;

impl WinnerTree {
    pub(crate) fn new(sources: usize) -> Self {
        assert!(sources <= MAX_SOURCES, "{sources} sources");
        let base = sources.next_power_of_two().max(TOP);
        Self {
            top: [u64::MAX; TOP],
            nodes: vec![u64::MAX; 2 * base],
            base,
        }
    }

    /// Time and index of the earliest source; the index means nothing when the time is [`HORIZON`].
    #[inline(always)]
    pub(crate) fn first(&self) -> (u64, usize) {
        let [a, b, c, d] = self.top;
        let first = a.min(b).min(c.min(d));
        (first >> SOURCE_BITS, first as usize & (MAX_SOURCES - 1))
    }

    /// Set the pending time of one source.
    #[inline(always)]
    pub(crate) fn set(&mut self, source: usize, at: u64) {
        let entry = at.min(HORIZON) << SOURCE_BITS | source as u64;
        if self.base == TOP {
            self.top[source % TOP] = entry;
        } else {
            self.set_leaf(source, entry);
        }
    }

    /// Set a leaf below the top, and the nodes above it as far as they change.
    fn set_leaf(&mut self, source: usize, entry: u64) {
        let mut p = self.base + source;
        let mut winner = entry;
        let nodes = self.nodes.as_mut_slice();
        nodes[p] = winner;
        loop {
            winner = winner.min(nodes[p ^ 1]);
            p >>= 1;
            if p < 2 * TOP {
                self.top[p % TOP] = winner;
                return;
            }
            if nodes[p] == winner {
                return;
            }
            nodes[p] = winner;
        }
    }
}

/// A deadline whose entry is allowed to be early.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Timer {
    /// When it should fire; [`NEVER`] when off.
    pub(crate) deadline: u64,
    /// Time of its live entry; [`NEVER`] when there is none.
    armed: u64,
}

impl Default for Timer {
    fn default() -> Self {
        Self::OFF
    }
}

impl Timer {
    pub(crate) const OFF: Self = Self {
        deadline: NEVER,
        armed: NEVER,
    };
}

/// The entries of all timers.
#[derive(Debug)]
pub(crate) struct Timers {
    queue: TimerQueue,
    /// The timers of kind [`TimerKind::SendJitter`], which fire for every packet, by subflow.
    jitter: WinnerTree,
    /// Time of the earliest entry.
    first: u64,
    /// See [`hold_after`](Self::hold_after).
    limit: u64,
    /// The smaller of both, which every event reads.
    bound: u64,
}

impl Timers {
    pub(crate) fn new() -> Self {
        Self {
            queue: TimerQueue::new(),
            jitter: WinnerTree::new(0),
            first: NEVER,
            limit: NEVER,
            bound: NEVER,
        }
    }

    /// The number of subflows; nothing is armed yet. If there are more than a tree has sources, none of them holds packets back.
    pub(crate) fn reserve(&mut self, subflows: usize) {
        let sources = if subflows <= MAX_SOURCES { subflows } else { 0 };
        self.jitter = WinnerTree::new(sources);
    }

    /// Time of the earliest entry, which may turn out to be stale.
    #[inline]
    pub(crate) fn first(&self) -> u64 {
        self.first
    }

    /// Events of links after this time have to wait for something other than a timer.
    pub(crate) fn hold_after(&mut self, limit: u64) {
        self.limit = limit;
        self.bound = self.first.min(limit);
    }

    /// Events of links come first up to and including this time.
    #[inline(always)]
    pub(crate) fn bound(&self) -> u64 {
        self.bound
    }

    /// The subflow of the earliest entry, if that is of kind [`TimerKind::SendJitter`]: then
    /// [`rearm_jitter`](Self::rearm_jitter) replaces it.
    #[inline]
    pub(crate) fn first_jitter(&mut self) -> Option<u32> {
        let (at, subflow) = self.jitter.first();
        let jitter = (at, TimerKind::SendJitter, subflow as u32);
        let is_first = self.queue.first().is_none_or(|&entry| jitter < entry);
        (at < HORIZON && is_first).then_some(subflow as u32)
    }

    /// The timer of the earliest entry, which is of kind [`TimerKind::SendJitter`], is to fire again at `deadline`.
    #[inline]
    pub(crate) fn rearm_jitter(&mut self, timer: &mut Timer, subflow: u32, deadline: u64) {
        *timer = Timer {
            deadline,
            armed: deadline,
        };
        self.jitter.set(subflow as usize, deadline);
        self.find_first();
    }

    /// The first of the near entries of another kind, and two others of which one is the second.
    #[inline]
    pub(crate) fn coming(&self) -> [Option<&TimerEntry>; 3] {
        self.queue.coming()
    }

    /// Remove the earliest entry of another kind.
    pub(crate) fn pop(&mut self) -> Option<TimerEntry> {
        let entry = self.queue.pop()?;
        self.find_first();
        Some(entry)
    }

    #[inline]
    fn find_first(&mut self) {
        let in_queue = self.queue.first().map_or(NEVER, |entry| entry.0);
        self.first = in_queue.min(self.jitter.first().0);
        self.bound = self.first.min(self.limit);
    }

    /// Move a deadline; costs an operation of the queue only when it moves before the live entry.
    #[inline(always)]
    pub(crate) fn set(&mut self, timer: &mut Timer, deadline: u64, kind: TimerKind, index: u32) {
        timer.deadline = deadline;
        if deadline < timer.armed {
            timer.armed = deadline;
            self.add((deadline, kind, index));
        }
    }

    #[inline(never)]
    fn add(&mut self, entry: TimerEntry) {
        let (at, kind, index) = entry;
        self.first = self.first.min(at);
        self.bound = self.bound.min(at);
        if kind == TimerKind::SendJitter {
            self.jitter.set(index as usize, at);
        } else {
            self.queue.push(entry);
        }
    }

    /// Whether the popped entry means that `timer` fires now. Re-inserts an entry that was early.
    pub(crate) fn fires(&mut self, timer: &mut Timer, entry: TimerEntry) -> bool {
        let (at, kind, index) = entry;
        if timer.armed != at {
            return false;
        }
        timer.armed = NEVER;
        if timer.deadline > at {
            let deadline = timer.deadline;
            if deadline != NEVER {
                self.set(timer, deadline, kind, index);
            }
            return false;
        }
        timer.deadline = NEVER;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tree_gives_earliest_then_lowest_index() {
        for n in [1, 2, 3, 5, 8, 100] {
            let mut t = WinnerTree::new(n);
            assert_eq!(t.first().0, HORIZON);
            for i in (0..n).rev() {
                t.set(i, 50 + (i as u64 % 3));
            }
            assert_eq!(t.first(), (50, 0));
            t.set(0, NEVER);
            let expected = (1..n).min_by_key(|i| (50 + (*i as u64 % 3), *i));
            if let Some(e) = expected {
                assert_eq!(t.first(), (50 + (e as u64 % 3), e));
            }
        }
    }

    #[test]
    fn a_jitter_timer_is_first_unless_another_kind_comes_before_it() {
        let mut h = Timers::new();
        h.reserve(3);
        let (mut a, mut b, mut other) = (Timer::OFF, Timer::OFF, Timer::OFF);
        assert_eq!(h.first_jitter(), None);
        h.set(&mut a, 40, TimerKind::SendJitter, 1);
        h.set(&mut b, 30, TimerKind::SendJitter, 2);
        assert_eq!((h.first(), h.first_jitter()), (30, Some(2)));
        h.rearm_jitter(&mut b, 2, 50);
        assert_eq!((b.deadline, h.first(), h.first_jitter()), (50, 40, Some(1)));
        // At the same time, a retransmission comes before it and a delayed ACK after it.
        h.set(&mut other, 40, TimerKind::DelayedAck, 0);
        assert_eq!(h.first_jitter(), Some(1));
        h.set(&mut other, 39, TimerKind::Retransmit, 0);
        assert_eq!((h.first(), h.first_jitter()), (39, None));
        assert_eq!(h.pop(), Some((39, TimerKind::Retransmit, 0)));
        assert_eq!((h.first(), h.first_jitter()), (40, Some(1)));
        h.rearm_jitter(&mut a, 1, NEVER);
        assert_eq!((h.first(), h.first_jitter()), (40, None));
        assert_eq!(h.pop(), Some((40, TimerKind::DelayedAck, 0)));
        assert_eq!((h.first(), h.first_jitter()), (50, Some(2)));
        h.rearm_jitter(&mut b, 2, NEVER);
        assert_eq!((h.first_jitter(), h.pop()), (None, None));
    }

    #[test]
    fn a_moved_deadline_fires_once_at_the_new_time() {
        let mut h = Timers::new();
        let mut t = Timer::OFF;
        h.set(&mut t, 10, TimerKind::Retransmit, 3);
        h.set(&mut t, 30, TimerKind::Retransmit, 3);
        let (at, k, i) = h.pop().unwrap();
        assert_eq!((at, i), (10, 3));
        assert!(!h.fires(&mut t, (at, k, i)));
        h.set(&mut t, 20, TimerKind::Retransmit, 3);
        let fired: Vec<u64> = std::iter::from_fn(|| h.pop())
            .filter_map(|(at, k, i)| h_fires(&mut t, at, k, i).then_some(at))
            .collect();
        assert_eq!(fired, [20]);
        fn h_fires(t: &mut Timer, at: u64, k: TimerKind, i: u32) -> bool {
            Timers::new().fires(t, (at, k, i))
        }
    }
}
