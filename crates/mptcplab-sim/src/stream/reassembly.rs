//! In-order tracking of numbered segments, for a subflow's receiver and for the connection above it.

use mptcplab_prefetch::prefetch;

/// Class of an arriving segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Arrival {
    /// It was the next one expected; this many segments (itself included) are now in order.
    InOrder(u32),
    /// It waits until the ones before it arrive.
    OutOfOrder,
    /// It had arrived before.
    Duplicate,
}

/// A bitmap of the segments beyond `next`, as large as the largest gap needed so far.
#[derive(Debug, Default)]
pub(crate) struct Reassembly {
    next: u32,
    held: u32,
    words: Vec<u64>,
}

impl Reassembly {
    /// The next segment expected.
    #[inline]
    pub(crate) fn next(&self) -> u32 {
        self.next
    }

    /// Segments kept out of order.
    #[inline]
    pub(crate) fn held(&self) -> u32 {
        self.held
    }

    /// Take in the next segment, while none is kept out of order.
    #[inline(always)]
    pub(crate) fn advance(&mut self) {
        debug_assert_eq!(self.held, 0);
        self.next += 1;
    }

    /// Take in one segment.
    #[inline]
    pub(crate) fn insert(&mut self, seq: u32) -> Arrival {
        match self.take_next(seq) {
            Some(n) => Arrival::InOrder(n),
            None if self.keep(seq) => Arrival::OutOfOrder,
            None => Arrival::Duplicate,
        }
    }

    /// Take in a segment if it is the next one expected. Returns how many are in order now, itself included.
    #[inline(always)]
    pub(crate) fn take_next(&mut self, seq: u32) -> Option<u32> {
        if seq != self.next {
            return None;
        }
        self.next += 1;
        Some(if self.held == 0 { 1 } else { 1 + self.drain() })
    }

    /// Keep a segment that is not the next one expected. Returns whether it had not arrived before.
    #[inline]
    pub(crate) fn keep(&mut self, seq: u32) -> bool {
        seq > self.next && self.keep_beyond(seq)
    }

    /// Have the bits of the next segments fetched into the cache.
    #[inline(always)]
    pub(crate) fn prefetch(&self) {
        let index = self.next as usize >> 6 & self.words.len().wrapping_sub(1);
        if let Some(word) = self.words.get(index) {
            prefetch(word);
        }
    }

    #[inline(always)]
    fn keep_beyond(&mut self, seq: u32) -> bool {
        if (seq - self.next) as usize >= self.words.len() * 64 {
            self.grow((seq - self.next) as usize + 1);
        }
        let (word, bit) = self.place(seq);
        if self.words[word] & bit != 0 {
            return false;
        }
        self.words[word] |= bit;
        self.held += 1;
        true
    }

    /// Give back a segment that was taken in out of order.
    pub(crate) fn give_back(&mut self, seq: u32) {
        let (word, bit) = self.place(seq);
        debug_assert!(self.words[word] & bit != 0);
        self.words[word] &= !bit;
        self.held -= 1;
    }

    /// Move `next` over the segments that are in order now; returns how many.
    fn drain(&mut self) -> u32 {
        let start = self.next;
        while self.held > 0 {
            let (word, _) = self.place(self.next);
            let offset = self.next & 63;
            let run = (self.words[word] >> offset).trailing_ones();
            if run == 0 {
                break;
            }
            // run <= 64 - offset, so the mask stays inside the word.
            let mask = if run == 64 {
                u64::MAX
            } else {
                ((1 << run) - 1) << offset
            };
            self.words[word] &= !mask;
            self.next += run;
            self.held -= run;
            if run + offset < 64 {
                break;
            }
        }
        self.next - start
    }

    /// Append the segments out of order to `out`, as half-open ranges in rising order.
    pub(crate) fn blocks(&self, out: &mut Vec<(u32, u32)>) {
        let (mut seq, mut left) = (self.next, self.held);
        while left > 0 {
            let (word, _) = self.place(seq);
            let offset = seq & 63;
            let bits = self.words[word] >> offset;
            let gap = bits.trailing_zeros().min(64 - offset);
            if gap > 0 {
                seq += gap;
                continue;
            }
            let run = bits.trailing_ones();
            match out.last_mut() {
                Some((_, end)) if *end == seq => *end += run,
                _ => out.push((seq, seq + run)),
            }
            seq += run;
            left -= run;
        }
    }

    #[inline]
    fn place(&self, seq: u32) -> (usize, u64) {
        let index = seq as usize & (self.words.len() * 64 - 1);
        (index >> 6, 1 << (index & 63))
    }

    #[cold]
    fn grow(&mut self, span: usize) {
        let bits = span.next_power_of_two().max(256);
        let old = std::mem::replace(
            self,
            Self {
                words: vec![0; bits / 64],
                ..*self
            },
        );
        for distance in 0..(old.words.len() * 64) as u32 {
            let (word, bit) = old.place(old.next + distance);
            if old.words[word] & bit != 0 {
                let (word, bit) = self.place(old.next + distance);
                self.words[word] |= bit;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn agrees_with_a_set_under_random_arrivals() {
        let mut x = 12345u64;
        let mut draw = move |n: u64| {
            x = x
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            (x >> 33) % n
        };
        for span in [3u64, 70, 500, 3000] {
            let (mut r, mut set, mut next) = (Reassembly::default(), BTreeSet::new(), 0u32);
            for _ in 0..20_000 {
                let seq = (next as u64 + draw(span)).saturating_sub(draw(4)) as u32;
                let expected = if seq < next || set.contains(&seq) {
                    Arrival::Duplicate
                } else if seq > next {
                    set.insert(seq);
                    Arrival::OutOfOrder
                } else {
                    let before = next;
                    next += 1;
                    while set.remove(&next) {
                        next += 1;
                    }
                    Arrival::InOrder(next - before)
                };
                assert_eq!(r.insert(seq), expected);
                assert_eq!((r.next(), r.held() as usize), (next, set.len()));
                let mut blocks = Vec::new();
                r.blocks(&mut blocks);
                assert!(blocks.windows(2).all(|pair| pair[0].1 < pair[1].0));
                assert!(blocks.iter().flat_map(|b| b.0..b.1).eq(set.iter().copied()));
            }
        }
    }
}
