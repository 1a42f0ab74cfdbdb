//! The room of a receive buffer, which may grow with the rate (Linux' `tcp_rcv_space_adjust`), and how much of it a subflow has
//! announced (`tcp_grow_window`). All in segments.

use super::DSN_MAX;
use mptcplab_scenario::RcvBuffer;

/// What Linux announces first at most.
const FIRST_WINDOW_BYTES: u32 = 65_535;
/// Start of a buffer that grows: 128 KiB of memory, of which a full segment can use 160 of 256 parts (`scaling_ratio`).
const FIRST_ROOM_BYTES: u64 = 81_920;
/// What the application counts as having read in the round trip before the first one: Linux' `TCP_INIT_CWND`.
const FIRST_ROUND: u32 = 10;
/// A subflow announces this much more with each segment, as long as the buffer has room.
const OPENING: u32 = 2;

/// Room for the data of a connection.
pub(crate) struct ReceiveRoom {
    segments: u32,
    /// Bound of the growth.
    most: u32,
    is_limited: bool,
    /// The most that the application has read in a round trip.
    busiest_round: u32,
    /// Data in order at the start of the round trip, and when it began.
    round_next: u32,
    round_ns: u64,
}

impl ReceiveRoom {
    pub(crate) fn new(buffer: RcvBuffer, mss: u16) -> Self {
        let segments =
            |bytes: u64| ((bytes / u64::from(mss)).clamp(1, u64::from(DSN_MAX) / 4)) as u32;
        let (first, most) = match buffer {
            // The sender does not care, but the acknowledgements depend on it.
            RcvBuffer::Unlimited => (segments(FIRST_ROOM_BYTES), DSN_MAX / 4),
            RcvBuffer::Fixed(bytes) => (segments(bytes), segments(bytes)),
            RcvBuffer::Auto { max_bytes } => (
                segments(FIRST_ROOM_BYTES.min(max_bytes)),
                segments(max_bytes),
            ),
        };
        Self {
            segments: first,
            most,
            is_limited: buffer != RcvBuffer::Unlimited,
            busiest_round: FIRST_ROUND,
            round_next: 0,
            round_ns: 0,
        }
    }

    /// Whether the room limits the sender.
    #[inline]
    pub(crate) fn is_limited(&self) -> bool {
        self.is_limited
    }

    pub(crate) fn segments(&self) -> u32 {
        self.segments
    }

    pub(super) fn most(&self) -> u32 {
        self.most
    }

    /// Once per round trip: if the application has read more than in any before, room for twice as much, for the growth that is
    /// under way, and for what waits. `next`: the first segment that is missing; `held`: segments behind it.
    #[inline]
    pub(super) fn tune(&mut self, now: u64, srtt_us: u32, next: u32, held: u32) {
        let rtt_ns = u64::from(srtt_us >> 3) * 1000;
        if now - self.round_ns < rtt_ns || rtt_ns == 0 {
            return;
        }
        self.end_round(now, next, held);
    }

    #[inline(never)]
    fn end_round(&mut self, now: u64, next: u32, held: u32) {
        let (read, busiest) = (next - self.round_next, self.busiest_round);
        if read > busiest {
            let twice = 2 * u64::from(read);
            let growth = 2 * twice * u64::from(read - busiest) / u64::from(busiest);
            let wanted = twice + growth + u64::from(held);
            self.segments = self.segments.max(wanted.min(u64::from(self.most)) as u32);
            self.busiest_round = read;
        }
        self.round_next = next;
        self.round_ns = now;
    }
}

/// How far a subflow has opened the window (Linux' `rcv_ssthresh`).
#[derive(Debug, Clone, Copy)]
pub(crate) struct SubflowWindow(u32);

impl SubflowWindow {
    pub(crate) fn new(room: &ReceiveRoom, mss: u16) -> Self {
        Self(
            room.segments
                .min((FIRST_WINDOW_BYTES / u32::from(mss)).max(1)),
        )
    }

    /// A segment arrived and leaves `room`. Returns whether the window is opened further.
    #[inline]
    pub(crate) fn open(&mut self, room: u32) -> bool {
        let opens = self.0 < room;
        if opens {
            self.0 = (self.0 + OPENING).min(room);
        }
        opens
    }

    #[inline]
    pub(super) fn segments(self) -> u32 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 45 segments of 1448 bytes are announced first, of a buffer with room for 56.
    #[test]
    fn a_window_opens_by_two_segments_at_a_time() {
        let room = ReceiveRoom::new(RcvBuffer::Unlimited, 1448);
        let mut window = SubflowWindow::new(&room, 1448);
        let opened: Vec<u32> = (0..7)
            .map(|_| {
                window.open(room.segments());
                window.segments()
            })
            .collect();
        assert_eq!(opened, [47, 49, 51, 53, 55, 56, 56]);
        assert!(!window.open(room.segments()));
        // What waits behind a gap takes room; nothing that was announced is taken back.
        assert!(!window.open(room.segments() - 10));
        assert_eq!(window.segments(), 56);
    }

    #[test]
    fn a_small_buffer_is_announced_as_a_whole_at_once() {
        let room = ReceiveRoom::new(RcvBuffer::Fixed(20_000), 1428);
        let window = SubflowWindow::new(&room, 1428);
        assert_eq!((room.segments(), window.segments()), (14, 14));
    }

    /// 30 ms, then rounds in which 8, 25, 25 and 40 segments were read, 7 of them behind a gap at the end.
    #[test]
    fn a_buffer_grows_when_more_was_read_than_ever_before() {
        let buffer = RcvBuffer::Auto { max_bytes: 400_000 };
        let mut room = ReceiveRoom::new(buffer, 1448);
        let srtt_us = 30_000 << 3;
        let mut after = |ms: u64, next, held| {
            room.tune(ms * 1_000_000, srtt_us, next, held);
            room.segments()
        };
        assert_eq!(after(29, 8, 0), 56);
        assert_eq!(after(30, 8, 0), 56);
        // 50, and 2 * 50 * 15 / 10 for the growth.
        assert_eq!(after(60, 33, 0), 200);
        assert_eq!(after(90, 58, 0), 200);
        // 80, 2 * 80 * 15 / 25 and 7 are less than there is.
        assert_eq!(after(120, 98, 7), 200);
        // 200, 2 * 200 * 60 / 40 and 3 are more than 400,000 bytes.
        assert_eq!(after(150, 198, 3), 276);
    }

    #[test]
    fn a_fixed_buffer_does_not_grow() {
        let mut room = ReceiveRoom::new(RcvBuffer::Fixed(50_000), 1428);
        room.tune(40_000_000, 20_000 << 3, 500, 0);
        assert_eq!(room.segments(), 35);
    }
}
