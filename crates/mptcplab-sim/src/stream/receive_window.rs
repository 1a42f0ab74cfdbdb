//! The room of a receive buffer, which may grow with the rate (Linux' `tcp_rcv_space_adjust`), and how much of it a subflow has
//! announced (`tcp_grow_window`). All in segments.

use super::DSN_MAX;
use mptcplab_scenario::{Growth, RcvBuffer};

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
    /// What counts as a round trip since Linux 7.1; before, it is that of the subflow whose data arrive.
    latest: Option<LatestRtts>,
}

/// Round-trip times that subflows had lately.
struct LatestRtts {
    us: [u32; Self::COUNT],
    oldest: usize,
}

impl LatestRtts {
    /// Linux' `MPTCP_RTT_SAMPLES`.
    const COUNT: usize = 5;

    fn new() -> Self {
        Self {
            us: [u32::MAX; Self::COUNT],
            oldest: 0,
        }
    }

    fn note(&mut self, rtt_us: u32) {
        self.us[self.oldest] = rtt_us;
        self.oldest = (self.oldest + 1) % Self::COUNT;
    }

    fn shortest(&self) -> u32 {
        self.us.into_iter().fold(u32::MAX, u32::min)
    }
}

impl ReceiveRoom {
    pub(crate) fn new(buffer: RcvBuffer, mss: u16) -> Self {
        let segments =
            |bytes: u64| ((bytes / u64::from(mss)).clamp(1, u64::from(DSN_MAX) / 4)) as u32;
        let (first, most) = match buffer {
            // The sender does not care, but the acknowledgements depend on it.
            RcvBuffer::Unlimited => (segments(FIRST_ROOM_BYTES), DSN_MAX / 4),
            RcvBuffer::Fixed(bytes) => (segments(bytes), segments(bytes)),
            RcvBuffer::Auto { max_bytes, .. } => (
                segments(FIRST_ROOM_BYTES.min(max_bytes)),
                segments(max_bytes),
            ),
        };
        let keeps_rtts = matches!(
            buffer,
            RcvBuffer::Auto {
                growth: Growth::Linux7_3,
                ..
            }
        );
        Self {
            segments: first,
            most,
            is_limited: buffer != RcvBuffer::Unlimited,
            busiest_round: FIRST_ROUND,
            round_next: 0,
            round_ns: 0,
            latest: keeps_rtts.then(LatestRtts::new),
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
    /// under way, and, until Linux 7.0, for what waits. `srtt_us` is that of the subflow whose `window` data arrived in. `next`:
    /// the first segment that is missing; `held`: segments behind it.
    #[inline]
    pub(super) fn tune(
        &mut self,
        now: u64,
        srtt_us: u32,
        window: &mut SubflowWindow,
        next: u32,
        held: u32,
    ) {
        let (rtt_us, held) = match &mut self.latest {
            None => (srtt_us >> 3, held),
            Some(latest) => {
                if srtt_us != 0 && window.has_passed() {
                    latest.note(srtt_us >> 3);
                }
                (latest.shortest(), 0)
            }
        };
        let rtt_ns = u64::from(rtt_us) * 1000;
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
pub(crate) struct SubflowWindow {
    segments: u32,
    /// Segments that are still to arrive before the round-trip time is noted again.
    left: u32,
}

impl SubflowWindow {
    pub(crate) fn new(room: &ReceiveRoom, mss: u16) -> Self {
        let most = (FIRST_WINDOW_BYTES / u32::from(mss)).max(1);
        Self {
            segments: room.segments.min(most),
            left: 0,
        }
    }

    /// A segment arrived and leaves `room`. Returns whether the window is opened further.
    #[inline]
    pub(crate) fn open(&mut self, room: u32) -> bool {
        self.left = self.left.saturating_sub(1);
        let opens = self.segments < room;
        if opens {
            self.segments = (self.segments + OPENING).min(room);
        }
        opens
    }

    /// Whether a whole window has arrived since this was last so.
    fn has_passed(&mut self) -> bool {
        let passed = self.left == 0;
        if passed {
            self.left = self.segments;
        }
        passed
    }

    #[inline]
    pub(super) fn segments(self) -> u32 {
        self.segments
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
        let buffer = RcvBuffer::Auto {
            max_bytes: 400_000,
            growth: Growth::Linux6_18,
        };
        let mut room = ReceiveRoom::new(buffer, 1448);
        let mut window = SubflowWindow::new(&room, 1448);
        let srtt_us = 30_000 << 3;
        let mut after = |ms: u64, next, held| {
            room.tune(ms * 1_000_000, srtt_us, &mut window, next, held);
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

    /// Two subflows, with 20 and 90 ms, of which each notes its time once per window.
    #[test]
    fn on_linux_7_3_the_shortest_of_five_round_trips_decides() {
        let mut room = ReceiveRoom::new(
            RcvBuffer::Auto {
                max_bytes: 400_000,
                growth: Growth::Linux7_3,
            },
            1448,
        );
        let (mut fast, mut slow) = (
            SubflowWindow::new(&room, 1448),
            SubflowWindow::new(&room, 1448),
        );
        let ms = 1_000_000;
        // A subflow without a round-trip time notes none, and keeps its turn.
        room.tune(10 * ms, 0, &mut fast, 40, 0);
        room.tune(19 * ms, 90_000 << 3, &mut slow, 60, 0);
        room.tune(19 * ms, 20_000 << 3, &mut fast, 60, 0);
        assert_eq!(room.segments(), 56);
        // 40, and 2 * 40 * 10 / 10 for the growth. What waits adds nothing.
        room.tune(20 * ms, 90_000 << 3, &mut slow, 20, 300);
        assert_eq!(room.segments(), 120);
        // With three more of the slow one, that of the fast one is still among the last five.
        let mut note_slow = |room: &mut ReceiveRoom, now, count| {
            for _ in 0..count {
                slow.left = 0;
                room.tune(now, 90_000 << 3, &mut slow, 20, 0);
            }
        };
        note_slow(&mut room, 21 * ms, 3);
        room.tune(40 * ms, 20_000 << 3, &mut fast, 50, 0);
        // 60, and 2 * 60 * 10 / 20.
        assert_eq!(room.segments(), 120);
        assert_eq!((room.busiest_round, room.round_ns), (30, 40 * ms));
        // Two more leave none of it.
        note_slow(&mut room, 41 * ms, 2);
        room.tune(129 * ms, 20_000 << 3, &mut fast, 95, 0);
        assert_eq!(room.round_ns, 40 * ms);
        // 90, and 2 * 90 * 15 / 30.
        room.tune(130 * ms, 20_000 << 3, &mut fast, 95, 0);
        assert_eq!((room.segments(), room.round_ns), (180, 130 * ms));
    }

    /// The first segment, and the one after each whole window.
    #[test]
    fn a_round_trip_is_noted_once_per_window() {
        let room = ReceiveRoom::new(RcvBuffer::Fixed(5 * 1428), 1428);
        let mut window = SubflowWindow::new(&room, 1428);
        let noted = (0..12).map(|_| {
            window.open(room.segments());
            window.has_passed()
        });
        let noted: Vec<usize> = noted
            .enumerate()
            .filter_map(|(at, noted)| noted.then_some(at))
            .collect();
        assert_eq!(noted, [0, 5, 10]);
    }

    #[test]
    fn a_fixed_buffer_does_not_grow() {
        let mut room = ReceiveRoom::new(RcvBuffer::Fixed(50_000), 1428);
        let mut window = SubflowWindow::new(&room, 1428);
        room.tune(40_000_000, 20_000 << 3, &mut window, 500, 0);
        assert_eq!(room.segments(), 35);
    }
}
