//! The entries of all timers, of which the earliest comes next.
//!
//! Thousands of flows have more entries than fit into a processor's nearest cache, and a heap of them would be read from top to
//! bottom for each one that comes up. So only those of the next few milliseconds are in the heap; later ones wait in slots by time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The purpose of a timer. The discriminant orders timers of the same instant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(crate) enum TimerKind {
    /// Start, stop and on/off changes of a flow's application (index: connection).
    App,
    /// Opening and removal of a subflow (index: subflow).
    Lifecycle,
    /// Retransmission, tail loss probe or reordering timer of a sender (index: subflow).
    Retransmit,
    /// Pacing release (index: subflow).
    Pace,
    /// Release of a packet held back by send jitter (index: subflow).
    SendJitter,
    /// Delayed ACK of a receiver (index: subflow).
    DelayedAck,
    /// Next datagram or on/off change of a UDP source (index: UDP source).
    Udp,
    /// Start and stop of an SCTP association's application (index: association).
    Association,
    /// Retransmission timer of an SCTP destination (index: its route).
    Destination,
    /// Delayed SACK of an SCTP receiver (index: association).
    DelayedSack,
    /// Next change of a subflow's priority (index: connection).
    Priority,
    /// Start of the next transfer of a flow of many (index: pool).
    Transfer,
    /// Retransmission at connection level (index: connection).
    DataRtx,
    /// The application at the receiver reads (index: connection).
    Read,
}

/// Time, kind and index of a timer.
pub(crate) type TimerEntry = (u64, TimerKind, u32);

/// Number of slots.
const SLOTS: usize = 256;
/// Time that one slot covers, and all of them together.
const SLOT_NS: u64 = 1 << 22;
const SPAN_NS: u64 = SLOT_NS * SLOTS as u64;
/// An empty slot keeps the memory of so many entries.
const KEPT_ENTRIES: usize = 16;

#[derive(Debug)]
pub(super) struct TimerQueue {
    /// Entries before `near_ns`.
    near: BinaryHeap<Reverse<TimerEntry>>,
    /// A multiple of [`SLOT_NS`].
    near_ns: u64,
    /// Entries from `near_ns` on, before the next multiple of [`SPAN_NS`].
    slots: Vec<Vec<TimerEntry>>,
    /// One bit for each slot that is not empty.
    filled: [u64; SLOTS / 64],
    /// Entries from that multiple on.
    beyond: Vec<TimerEntry>,
}

impl TimerQueue {
    pub(super) fn new() -> Self {
        Self {
            near: BinaryHeap::new(),
            near_ns: 0,
            slots: vec![Vec::new(); SLOTS],
            filled: [0; SLOTS / 64],
            beyond: Vec::new(),
        }
    }

    /// The earliest entry.
    #[inline]
    pub(super) fn first(&mut self) -> Option<&TimerEntry> {
        self.refill();
        self.near.peek().map(|Reverse(entry)| entry)
    }

    /// The first of the entries that are near, and two others of which one is the second.
    #[inline]
    pub(super) fn coming(&self) -> [Option<&TimerEntry>; 3] {
        let near = self.near.as_slice();
        [0, 1, 2].map(|i| near.get(i).map(|Reverse(entry)| entry))
    }

    pub(super) fn push(&mut self, entry: TimerEntry) {
        if entry.0 < self.near_ns {
            self.near.push(Reverse(entry));
        } else {
            self.put(entry);
        }
    }

    /// Remove the earliest entry.
    pub(super) fn pop(&mut self) -> Option<TimerEntry> {
        self.refill();
        self.near.pop().map(|Reverse(entry)| entry)
    }

    /// Keep an entry that is not near.
    fn put(&mut self, entry: TimerEntry) {
        if entry.0 / SPAN_NS > self.near_ns / SPAN_NS {
            self.beyond.push(entry);
        } else {
            let slot = slot(entry.0);
            self.slots[slot].push(entry);
            self.filled[slot / 64] |= 1 << (slot % 64);
        }
    }

    /// Make later entries near, if no other one is.
    #[inline]
    fn refill(&mut self) {
        if self.near.is_empty() {
            self.go_on();
        }
    }

    #[inline(never)]
    fn go_on(&mut self) {
        while self.near.is_empty() {
            let Some(first) = self.first_filled() else {
                if self.go_to_beyond() {
                    continue;
                }
                return;
            };
            self.filled[first / 64] &= !(1 << (first % 64));
            let due = &mut self.slots[first];
            self.near.extend(due.drain(..).map(Reverse));
            if due.capacity() > KEPT_ENTRIES {
                *due = Vec::new();
            }
            self.near_ns += (first + 1 - slot(self.near_ns)) as u64 * SLOT_NS;
            if self.near_ns % SPAN_NS == 0 {
                self.fill_slots();
            }
        }
    }

    /// The first slot that is not empty.
    fn first_filled(&self) -> Option<usize> {
        let word = self.filled.iter().position(|&bits| bits != 0)?;
        Some(64 * word + self.filled[word].trailing_zeros() as usize)
    }

    /// There is nothing in the slots: go to the time of the earliest entry beyond them. Returns whether there is one.
    fn go_to_beyond(&mut self) -> bool {
        let Some(first) = self.beyond.iter().map(|entry| entry.0).min() else {
            return false;
        };
        self.near_ns = first - first % SLOT_NS;
        self.fill_slots();
        true
    }

    /// The slots stand for other times now.
    fn fill_slots(&mut self) {
        for entry in std::mem::take(&mut self.beyond) {
            self.put(entry);
        }
    }
}

fn slot(at: u64) -> usize {
    (at / SLOT_NS) as usize % SLOTS
}

#[cfg(test)]
mod tests {
    use super::*;
    use mptcplab_model::link::rng::Rng;
    use std::collections::BTreeSet;

    /// Times from nanoseconds to minutes ahead, pushed and popped in turn, so that there are few entries and sometimes none.
    #[test]
    fn entries_come_in_order() {
        let mut rng = Rng::new(7, 0, "timers", "queue");
        let (mut queue, mut expected) = (TimerQueue::new(), BTreeSet::new());
        let (mut now, mut times_empty) = (0, 0);
        for index in 0..50_000 {
            let ahead = rng.next_u64() >> (27 + rng.below(30));
            let entry = (now + ahead, TimerKind::Pace, index);
            queue.push(entry);
            expected.insert(entry);
            for _ in 0..rng.below(3) {
                assert_eq!(queue.first(), expected.first());
                let popped = queue.pop();
                assert_eq!(popped, expected.pop_first());
                now = popped.map_or(now, |(at, ..)| at);
                times_empty += u32::from(popped.is_none());
            }
        }
        assert!(times_empty > 10 && now > 100 * SPAN_NS);
        let rest: Vec<TimerEntry> = std::iter::from_fn(|| queue.pop()).collect();
        assert!(rest.iter().eq(&expected));
    }
}
