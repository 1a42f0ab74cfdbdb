//! Messages on a connection that lasts: where each begins and ends in the sequence of segments, and which have arrived.

use crate::net::event::NEVER;
use std::collections::VecDeque;

/// Where a message lies. It may begin in the segment in which the one before it ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    /// Data sequence number of the segment with its first byte.
    pub(crate) first: u32,
    /// The first data sequence number after it.
    pub(crate) end: u32,
    /// By how many bytes its last segment is short.
    pub(crate) missing_bytes: u16,
}

/// The messages that a receiver expects, in order.
#[derive(Debug, Default)]
pub(crate) struct Messages {
    /// With the time at which the first byte arrived; [`NEVER`] before.
    expected: VecDeque<(Place, u64)>,
    /// The times of the first bytes of messages that are complete and that the application has not taken.
    complete: VecDeque<u64>,
}

impl Messages {
    pub(crate) fn expect(&mut self, place: Place) {
        if let Some((before, _)) = self.expected.back_mut() {
            if before.end == place.first + 1 {
                // The segment that both share is short by what the later one leaves.
                before.missing_bytes = 0;
            }
        }
        self.expected.push_back((place, NEVER));
    }

    /// All segments before `next` are in order. Returns the bytes by which segments of messages that are complete now were
    /// short, and whether there are any such messages.
    pub(crate) fn advance(&mut self, next: u32, now: u64) -> (u64, bool) {
        let (mut missing, mut any) = (0, false);
        while let Some((place, first_byte_ns)) = self.expected.front_mut() {
            if *first_byte_ns == NEVER && next > place.first {
                *first_byte_ns = now;
            }
            if next < place.end {
                break;
            }
            missing += u64::from(place.missing_bytes);
            self.complete.push_back(*first_byte_ns);
            self.expected.pop_front();
            any = true;
        }
        (missing, any)
    }

    /// The next data sequence number in order at which something happens: the first byte of a message is there, or the last.
    pub(crate) fn milestone(&self) -> u32 {
        match self.expected.front() {
            Some((place, NEVER)) => place.first + 1,
            Some((place, _)) => place.end,
            None => u32::MAX,
        }
    }

    /// The time of the first byte of the next message that is complete.
    pub(crate) fn take_complete(&mut self) -> Option<u64> {
        self.complete.pop_front()
    }

    /// When the first byte of the `i`-th message that is not complete arrived; [`NEVER`] before.
    pub(crate) fn first_byte_ns(&self, i: usize) -> u64 {
        self.expected.get(i).map_or(NEVER, |(_, at)| *at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(first: u32, end: u32, missing_bytes: u16) -> Place {
        Place {
            first,
            end,
            missing_bytes,
        }
    }

    /// A message of segments 0 to 2, and one that begins in segment 2 and ends in 4.
    #[test]
    fn two_messages_that_share_a_segment_are_told_apart() {
        let mut messages = Messages::default();
        messages.expect(place(0, 3, 700));
        messages.expect(place(2, 5, 90));
        assert_eq!(messages.milestone(), 1);
        assert_eq!(messages.advance(1, 10), (0, false));
        assert_eq!((messages.milestone(), messages.first_byte_ns(0)), (3, 10));
        // Segment 2 is full, because the second message fills it.
        assert_eq!(messages.advance(3, 20), (0, true));
        assert_eq!((messages.milestone(), messages.first_byte_ns(0)), (5, 20));
        assert_eq!(messages.advance(9, 30), (90, true));
        assert_eq!(messages.milestone(), u32::MAX);
        assert_eq!(messages.take_complete(), Some(10));
        assert_eq!(messages.take_complete(), Some(20));
        assert_eq!(messages.take_complete(), None);
    }

    #[test]
    fn messages_in_segments_of_their_own_are_short_by_their_own_bytes() {
        let mut messages = Messages::default();
        messages.expect(place(4, 6, 300));
        messages.expect(place(6, 7, 1_000));
        assert_eq!(messages.advance(7, 5), (1_300, true));
    }
}
