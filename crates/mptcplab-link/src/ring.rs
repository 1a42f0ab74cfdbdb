//! A growing ring buffer of packets with due times, for the fused machine.
//!
//! Unlike `VecDeque` its capacity is a power of two, positions count up for ever and are masked, and an empty slot is
//! recognised by its due time, so that the time of the next delivery is one load without a test for an empty ring.

use std::num::NonZeroU64;

/// Slots at the start; a simulator's packet makes a slot of 32 bytes.
const INITIAL_SLOTS: usize = 4;

#[derive(Debug)]
struct Slot<P> {
    /// Due time plus one: the niche that lets `Option<Slot>` be as large as `Slot`.
    due_plus_one: NonZeroU64,
    packet: P,
}

/// First in, first out; due times must not decrease.
#[derive(Debug)]
pub(crate) struct Ring<P> {
    /// A power of two; the slots at positions `head..tail` (masked) are filled, the others are not.
    slots: Vec<Option<Slot<P>>>,
    head: usize,
    tail: usize,
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
    pub(crate) fn len(&self) -> usize {
        self.tail.wrapping_sub(self.head)
    }

    /// Position of the oldest packet, or of the next one to come; positions count up for ever.
    #[inline]
    pub(crate) fn head(&self) -> usize {
        self.head
    }

    /// Position of the next packet to come.
    #[inline]
    pub(crate) fn tail(&self) -> usize {
        self.tail
    }

    /// Append a packet that is due at this time.
    #[inline]
    pub(crate) fn push(&mut self, due_ns: u64, packet: P) {
        if self.len() == self.slots.len() {
            self.grow();
        }
        let index = self.index(self.tail);
        self.slots[index] = Some(Slot {
            due_plus_one: NonZeroU64::MIN.saturating_add(due_ns),
            packet,
        });
        self.tail = self.tail.wrapping_add(1);
    }

    /// Take the oldest packet.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<P> {
        let index = self.index(self.head);
        let slot = self.slots[index].take()?;
        self.head = self.head.wrapping_add(1);
        Some(slot.packet)
    }

    /// Due time of the oldest packet, `u64::MAX` if there is none.
    #[inline]
    pub(crate) fn next_ns(&self) -> u64 {
        let slot = &self.slots[self.index(self.head)];
        slot.as_ref()
            .map_or(0, |slot| slot.due_plus_one.get())
            .wrapping_sub(1)
    }

    /// Due time and packet at a position, if there is one.
    #[inline]
    pub(crate) fn get(&self, position: usize) -> Option<(u64, &P)> {
        let slot = self.slots[self.index(position)].as_ref()?;
        Some((slot.due_plus_one.get() - 1, &slot.packet))
    }

    #[inline]
    fn index(&self, position: usize) -> usize {
        position & (self.slots.len() - 1)
    }

    #[cold]
    fn grow(&mut self) {
        let mut larger = Self {
            slots: empty(2 * self.slots.len()),
            ..*self
        };
        for position in 0..self.slots.len() {
            let position = self.head.wrapping_add(position);
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
                ring.push(due, Box::new(round));
                model.push_back((due, round));
            }
            let takes = if round % 40 == 0 {
                model.len() + 1
            } else {
                (round * 5) as usize % 21
            };
            for _ in 0..takes {
                assert_eq!(
                    ring.next_ns(),
                    model.front().map_or(u64::MAX, |(due, _)| *due)
                );
                assert_eq!(ring.pop().map(|b| *b), model.pop_front().map(|(_, r)| r));
            }
            assert_eq!(ring.len(), model.len());
            for (i, expected) in model.iter().enumerate() {
                let (due, packet) = ring.get(ring.head() + i).expect("filled");
                assert_eq!((due, **packet), *expected);
            }
            assert_eq!(ring.tail(), ring.head() + ring.len());
        }
        assert!(ring.slots.len() >= 128 && ring.slots.len().is_power_of_two());
    }

    #[test]
    fn positions_may_wrap() {
        let mut ring = Ring::new();
        (ring.head, ring.tail) = (usize::MAX - 1, usize::MAX - 1);
        (1..=9).for_each(|i| ring.push(i, i));
        assert_eq!(
            (1..=9).map_while(|_| ring.pop()).collect::<Vec<_>>(),
            (1..=9).collect::<Vec<_>>()
        );
        assert_eq!((ring.len(), ring.next_ns()), (0, u64::MAX));
    }

    #[test]
    fn slots_are_no_larger_than_their_contents() {
        assert_eq!(size_of::<Option<Slot<[u64; 3]>>>(), 32);
    }
}
