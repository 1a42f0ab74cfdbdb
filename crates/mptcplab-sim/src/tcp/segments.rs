//! The sender's record of every segment in flight: a power-of-two ring indexed by segment number.

/// Scoreboard flags of a segment, as in Linux' `sacked` byte.
pub(crate) mod flag {
    /// Selectively acknowledged.
    pub(crate) const SACKED: u8 = 1;
    /// Considered lost.
    pub(crate) const LOST: u8 = 2;
    /// A retransmission of it is in flight.
    pub(crate) const RETRANS: u8 = 4;
    /// Was retransmitted at least once (its RTT is ambiguous).
    pub(crate) const EVER: u8 = 8;
    /// Its data were handed to another subflow.
    pub(crate) const REINJECTED: u8 = 16;
    /// RACK found it lost, and looks at it no more until it is sent again, not even after an undo (Linux takes it off
    /// `tsorted_sent_queue`).
    pub(crate) const FOUND: u8 = 32;
}

/// One segment in flight.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Segment {
    /// Time of its latest transmission.
    pub(crate) sent_ns: u64,
    /// Data sequence number it carries.
    pub(crate) dsn: u32,
    /// Bytes of its IP packet.
    pub(crate) len: u16,
    /// See [`flag`].
    pub(crate) flags: u8,
}

/// Ring of what is kept of the segments `snd_una..snd_nxt`; grows, never shrinks.
#[derive(Debug)]
pub(crate) struct Ring<T> {
    /// A power of two of entries, so that the compiler sees that every index is valid.
    ring: Vec<T>,
}

/// The segments in flight.
pub(crate) type Segments = Ring<Segment>;

impl<T: Copy + Default> Ring<T> {
    pub(crate) fn new() -> Self {
        Self {
            ring: vec![T::default(); 16],
        }
    }

    #[inline]
    pub(crate) fn get(&self, seq: u32) -> &T {
        &self.ring[seq as usize & (self.ring.len() - 1)]
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, seq: u32) -> &mut T {
        let index = seq as usize & (self.ring.len() - 1);
        &mut self.ring[index]
    }

    /// Set the entry of segment `seq`, the next one or one in flight, given that `una` is the oldest one in flight.
    #[inline]
    pub(crate) fn push(&mut self, una: u32, seq: u32, value: T) {
        if (seq - una) as usize >= self.ring.len() {
            self.grow(una, seq);
        }
        *self.get_mut(seq) = value;
    }

    #[cold]
    fn grow(&mut self, una: u32, next: u32) {
        let mut larger = Self {
            ring: vec![T::default(); self.ring.len() * 2],
        };
        for seq in una..next {
            *larger.get_mut(seq) = *self.get(seq);
        }
        *self = larger;
    }
}
