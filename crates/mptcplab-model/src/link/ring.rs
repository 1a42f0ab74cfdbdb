//! A growing ring buffer of packets with due times, for the fused machine.
//!
//! Unlike `VecDeque` its capacity is a power of two, positions count up and are masked, an empty slot is
//! recognised by its due time, so that the time of the next delivery is one load without a test for an empty ring, and it
//! grows only on request, so that its owner can check for room together with other conditions.

use mptcplab_prefetch::prefetch;
use std::num::NonZeroU64;
use std::ops::Range;

/// Slots at the start; a simulator's packet makes a slot of 32 bytes.
const INITIAL_SLOTS: usize = 4;

/// With fewer slots, a ring that is emptied only when it is full would be emptied often.
const MANY_SLOTS: u64 = 64;

/// A packet and when it is due.
#[derive(Debug)]
struct Slot<P> {
    due: Due,
    packet: P,
}

/// A due time below 2^62 ns, with the niche that lets `Option<Slot>` be as large as `Slot`: twice the time plus one.
#[derive(Debug, Clone, Copy)]
struct Due(NonZeroU64);

impl Due {
    #[inline]
    fn new(ns: u64) -> Self {
        debug_assert!(ns < 1 << 62, "due at {ns} ns");
        Self(NonZeroU64::MIN | ns << 1)
    }

    #[inline]
    fn ns(self) -> u64 {
        self.0.get() >> 1
    }

    /// Of the slot at the head: `u64::MAX` if it is empty. Without a branch: 0 stands for `None`, and 0 - 1 stays -1
    /// when it is halved.
    #[inline]
    fn next_ns(due: Option<Self>) -> u64 {
        let twice = due.map_or(0, |due| due.0.get()).wrapping_sub(1);
        ((twice as i64) >> 1) as u64
    }
}

/// First in, first out; due times must not decrease.
#[derive(Debug)]
pub(crate) struct Ring<P> {
    /// A power of two; the slots at positions `head..tail` (masked) are filled, the others are not.
    slots: Vec<Option<Slot<P>>>,
    head: u64,
    tail: u64,
}

impl<P> Ring<P> {
    pub(crate) fn new() -> Self {
        Self {
            slots: empty(INITIAL_SLOTS),
            head: 0,
            tail: 0,
        }
    }

    #[inline]
    pub(crate) fn len(&self) -> u64 {
        self.tail - self.head
    }

    /// Position of the oldest packet, or of the next one to come; positions count up for ever.
    #[inline]
    pub(crate) fn head(&self) -> u64 {
        self.head
    }

    /// Position of the next packet to come.
    #[inline]
    pub(crate) fn tail(&self) -> u64 {
        self.tail
    }

    /// Whether [`grow`](Self::grow) must come before the next [`push`](Self::push).
    pub(crate) fn is_full(&self) -> bool {
        self.len() == self.slots.len() as u64
    }

    /// Whether there is room for many packets, and most of it is free.
    pub(crate) fn is_mostly_free(&self) -> bool {
        let slots = self.slots.len() as u64;
        slots >= MANY_SLOTS && 2 * self.len() <= slots
    }

    /// Position of the first packet that would not fit, if none were taken.
    pub(crate) fn end(&self) -> u64 {
        self.head + self.slots.len() as u64
    }

    /// Append a packet that is due at this time; there must be room.
    // A packet that is passed in memory would be read from there before it has been written.
    #[inline(always)]
    pub(crate) fn push(&mut self, due_ns: u64, packet: P) {
        debug_assert!(!self.is_full(), "no room");
        let index = self.index(self.tail);
        self.slots[index] = Some(Slot {
            due: Due::new(due_ns),
            packet,
        });
        self.tail += 1;
    }

    /// Take the oldest packet, if there is one. With it comes the due time of the next one, `u64::MAX` if there is none.
    // By value: the packet stays in registers, and only the due time of the slot is written.
    #[inline(always)]
    pub(crate) fn pop(&mut self) -> Option<(P, u64)> {
        let slots = self.slots.as_mut_slice();
        let mask = slots.len() - 1;
        let slot = slots[self.head as usize & mask].take()?;
        self.head += 1;
        let next = &slots[self.head as usize & mask];
        let next_ns = Due::next_ns(next.as_ref().map(|slot| slot.due));
        Some((slot.packet, next_ns))
    }

    /// Due time and packet at a position, if there is one.
    #[inline]
    pub(crate) fn get(&self, position: u64) -> Option<(u64, &P)> {
        let slot = self.slots[self.index(position)].as_ref()?;
        Some((slot.due.ns(), &slot.packet))
    }

    /// Have the slot of a position fetched into the processor's cache.
    #[inline]
    pub(crate) fn prefetch(&self, position: u64) {
        if let Some(slot) = self.slots.get(self.index(position)) {
            prefetch(slot);
        }
    }

    /// The first position of a range of filled ones whose due time and packet do not fulfil a condition that holds for all
    /// before; its end if there is none.
    #[inline]
    pub(crate) fn partition_point(
        &self,
        range: Range<u64>,
        holds: impl Fn(u64, &P) -> bool,
    ) -> u64 {
        debug_assert!(self.head <= range.start && range.end <= self.tail);
        let (mut first, mut left) = (range.start, range.end - range.start);
        while left > 0 {
            // As conditional moves: which half it is cannot be predicted.
            let half = left.div_ceil(2);
            let last = self.get(first + half - 1);
            let holds = last.is_some_and(|(due_ns, packet)| holds(due_ns, packet));
            let mask = u64::from(holds).wrapping_neg();
            first += half & mask;
            left = (left - half) & mask | (half - 1) & !mask;
        }
        first
    }

    /// Drop the packets before a position, up to the tail. Their slots are not cleared: from then on, packets must not be
    /// taken by [`pop`](Self::pop).
    pub(crate) fn skip_to(&mut self, position: u64)
    where
        P: Copy,
    {
        debug_assert!((self.head..=self.tail).contains(&position));
        self.head = position;
    }

    #[inline]
    fn index(&self, position: u64) -> usize {
        position as usize & (self.slots.len() - 1)
    }

    /// Make room for as many packets again.
    #[cold]
    pub(crate) fn grow(&mut self) {
        let mut larger = Self {
            slots: empty(2 * self.slots.len()),
            ..*self
        };
        for position in self.head..self.tail {
            let (from, to) = (self.index(position), larger.index(position));
            larger.slots[to] = self.slots[from].take();
        }
        *self = larger;
    }
}

fn empty<P>(slots: usize) -> Vec<Option<Slot<P>>> {
    std::iter::repeat_with(|| None).take(slots).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::VecDeque;

    #[test]
    fn behaves_as_a_queue_of_any_length() {
        let mut ring = Ring::new();
        let mut model = VecDeque::new();
        let mut due = 0;
        for round in 0..200_u64 {
            // Grows and shrinks, through several doublings, and is empty now and then.
            for _ in 0..(round * 7) % 23 {
                due += round % 3;
                if ring.is_full() {
                    ring.grow();
                }
                ring.push(due, Box::new(round));
                model.push_back((due, round));
            }
            let takes = if round % 40 == 0 {
                model.len() + 1
            } else {
                (round * 5) as usize % 21
            };
            for _ in 0..takes {
                let expected = model
                    .pop_front()
                    .map(|(_, round)| (round, model.front().map_or(u64::MAX, |(due, _)| *due)));
                let popped = ring.pop().map(|(round, next_ns)| (*round, next_ns));
                assert_eq!(popped, expected);
            }
            assert_eq!(ring.len(), model.len() as u64);
            for (i, expected) in model.iter().enumerate() {
                let (due, packet) = ring.get(ring.head() + i as u64).expect("filled");
                assert_eq!((due, **packet), *expected);
            }
            assert_eq!(ring.tail(), ring.head() + ring.len());
        }
        assert!(ring.slots.len() >= 128 && ring.slots.len().is_power_of_two());
    }

    #[test]
    fn slots_are_no_larger_than_their_contents() {
        assert_eq!(size_of::<Option<Slot<[u64; 3]>>>(), 32);
    }
}
