//! What is kept of the segments in a window of sequence numbers: a power-of-two ring indexed by segment number.

/// An entry for each segment of a window; grows with the window, never shrinks.
#[derive(Debug, Default)]
pub(crate) struct SeqRing<T> {
    /// A power of two of entries, so that the compiler sees that every index is valid, or none.
    ring: Vec<T>,
}

impl<T: Copy + Default> SeqRing<T> {
    /// The fewest entries of a ring that is in use.
    const FEWEST: usize = 16;

    /// With room for the smallest window.
    pub(crate) fn new() -> Self {
        Self {
            ring: vec![T::default(); Self::FEWEST],
        }
    }

    /// The entry of a segment for which there is room.
    #[inline]
    pub(crate) fn get(&self, seq: u32) -> &T {
        &self.ring[seq as usize & (self.ring.len().wrapping_sub(1))]
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, seq: u32) -> &mut T {
        let index = seq as usize & (self.ring.len().wrapping_sub(1));
        &mut self.ring[index]
    }

    /// The entry of a segment, if there is any entry.
    #[inline]
    pub(crate) fn place_of(&self, seq: u32) -> Option<&T> {
        self.ring
            .get(seq as usize & (self.ring.len().wrapping_sub(1)))
    }

    /// Set the entry of segment `seq` in the window that begins at `first`.
    #[inline]
    pub(crate) fn put(&mut self, first: u32, seq: u32, value: T) {
        if (seq - first) as usize >= self.ring.len() {
            self.grow(first, seq);
        }
        *self.get_mut(seq) = value;
    }

    /// Make room for segment `seq`; the entries of the window so far stay.
    #[cold]
    fn grow(&mut self, first: u32, seq: u32) {
        let entries = ((seq - first) as usize + 1).next_power_of_two();
        let mut larger = Self {
            ring: vec![T::default(); entries.max(Self::FEWEST)],
        };
        for old in 0..self.ring.len() as u32 {
            *larger.get_mut(first + old) = *self.get(first + old);
        }
        *self = larger;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_stay_when_the_window_grows_to_any_size() {
        let mut ring = SeqRing::default();
        assert!(ring.place_of(7).is_none());
        ring.put(7, 9, 90);
        ring.put(7, 22, 220);
        assert_eq!(ring.place_of(9), Some(&90));
        // 16 entries hold 7 to 22 only; far beyond them, several doublings at once.
        ring.put(8, 24, 240);
        ring.put(9, 9 + 1_000, 10_090);
        for (seq, value) in [(9, 90), (22, 220), (24, 240), (1_009, 10_090)] {
            assert_eq!(*ring.get(seq), value);
        }
        // The window moves on, and its new end takes the entry of what it has left.
        ring.put(10, 9 + 1_024, 5);
        assert_eq!((*ring.get(9 + 1_024), *ring.get(1_009)), (5, 10_090));
    }
}
