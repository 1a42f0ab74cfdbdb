//! The memory of the receive buffer of an MPTCP connection, and the share of it that is announced, since Linux 7.1.

use super::DSN_MAX;

/// The share before the first segment, in 256ths (`TCP_DEFAULT_SCALING_RATIO`).
const FIRST_SHARE: u32 = 128;
const SHARES: u64 = 256;
/// More than any window, so that no product overflows.
const MOST_BYTES: u64 = 1 << 52;

/// The share moves by an eighth towards that of the data in a full segment's memory, each time that a subflow notes its
/// round-trip time (`mptcp_rcv_rtt_update`). In whole 256ths, rounded down, as in the kernel.
#[derive(Debug, Clone, Copy)]
pub(super) struct Memory {
    bytes: u64,
    /// Bound of its growth.
    most_bytes: u64,
    mss: u16,
    share: u32,
    /// What full segments have of the memory that they take.
    full_share: u32,
}

impl Memory {
    /// So many bytes, which may become `most_bytes`. A full segment takes `segment_bytes`.
    pub(super) fn new(bytes: u64, most_bytes: u64, mss: u16, segment_bytes: u32) -> Self {
        let full_share = (SHARES * u64::from(mss) / u64::from(segment_bytes)).max(1) as u32;
        Self {
            bytes: bytes.min(MOST_BYTES),
            most_bytes: most_bytes.min(MOST_BYTES),
            mss,
            share: FIRST_SHARE,
            full_share,
        }
    }

    /// So many that there is room for `payload_bytes` in full segments.
    pub(super) fn that_holds(payload_bytes: u64, mss: u16, segment_bytes: u32) -> Self {
        let none = Self::new(0, 0, mss, segment_bytes);
        let bytes = payload_bytes
            .saturating_mul(SHARES)
            .div_ceil(u64::from(none.full_share));
        Self::new(bytes, bytes, mss, segment_bytes)
    }

    /// A subflow has noted its round-trip time.
    pub(super) fn note_segment(&mut self) {
        self.share = (7 * self.share + self.full_share) >> 3;
    }

    /// What is announced of an empty buffer.
    pub(super) fn segments(&self) -> u32 {
        self.with(self.share)
    }

    /// The most that [`segments`](Self::segments) will ever be.
    pub(super) fn most(&self) -> u32 {
        let largest = Self {
            bytes: self.most_bytes.max(self.bytes),
            ..*self
        };
        largest.with(self.share.max(self.full_share))
    }

    /// Grow, if necessary and as far as it may, so that so many segments are announced.
    pub(super) fn make_room(&mut self, segments: u32) {
        let payload = u64::from(segments) * u64::from(self.mss);
        let wanted = (payload * SHARES).div_ceil(u64::from(self.share));
        self.bytes = self.bytes.max(wanted.min(self.most_bytes));
    }

    /// What is announced less because of full segments in the buffer.
    pub(super) fn announced_of(&self, full_segments: u32) -> u32 {
        (u64::from(full_segments) * u64::from(self.share)).div_ceil(u64::from(self.full_share))
            as u32
    }

    fn with(&self, share: u32) -> u32 {
        let segments = self.bytes * u64::from(share) / SHARES / u64::from(self.mss);
        segments.clamp(1, u64::from(DSN_MAX) / 4) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// In a machine with Linux 7.3, shares of 128, 131, 134 and 137 were announced to a sender with segments of 1428 bytes.
    #[test]
    fn the_share_follows_the_segments_by_an_eighth() {
        let mut memory = Memory::new(131_072, 131_072, 1428, 2304);
        let mut seen = Vec::new();
        for _ in 0..14 {
            seen.push((memory.share, memory.segments()));
            memory.note_segment();
        }
        assert_eq!(memory.full_share, 158);
        assert_eq!(
            seen[..5],
            [(128, 45), (131, 46), (134, 48), (137, 49), (139, 49)]
        );
        assert_eq!(seen[13], (150, 53));
        for _ in 0..20 {
            memory.note_segment();
        }
        // Rounded down, it stays seven 256ths below.
        assert_eq!(memory.share, 151);
    }

    /// 512 bytes of each segment's 1056 are data: more than half of the memory is announced first.
    #[test]
    fn a_buffer_of_fixed_size_announces_more_at_first_if_segments_are_small() {
        let mut memory = Memory::that_holds(30_000, 512, 1280);
        assert_eq!((memory.full_share, memory.bytes), (102, 75_295));
        assert_eq!((memory.segments(), memory.most()), (73, 73));
        for _ in 0..40 {
            memory.note_segment();
        }
        assert_eq!((memory.share, memory.segments()), (102, 58));
    }

    #[test]
    fn a_buffer_grows_to_what_is_wanted_at_its_share() {
        let mut memory = Memory::new(131_072, 900_000, 1000, 2304);
        assert_eq!(memory.most(), 450);
        memory.make_room(60);
        assert_eq!(memory.bytes, 131_072);
        memory.make_room(200);
        assert_eq!((memory.bytes, memory.segments()), (400_000, 200));
        memory.note_segment();
        assert_eq!((memory.share, memory.segments()), (125, 195));
        // Three segments take the memory of 3.4 announced ones.
        assert_eq!(memory.announced_of(3), 4);
        assert_eq!(memory.announced_of(0), 0);
        memory.make_room(500);
        assert_eq!((memory.bytes, memory.segments()), (900_000, 439));
    }

    #[test]
    fn the_largest_sizes_are_no_problem() {
        for (mss, packet) in [(64, 768), (8900, 16_640)] {
            let memory = Memory::that_holds(u64::MAX, mss, packet);
            assert!(memory.segments() > 1 << 20, "{mss}");
        }
    }
}
