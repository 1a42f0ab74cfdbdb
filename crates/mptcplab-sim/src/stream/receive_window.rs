//! The room of a receive buffer, which may grow with the rate (Linux' `tcp_rcv_space_adjust`), what segments behind a gap take of
//! it, and how much of it is announced (`tcp_grow_window`). All in segments.

use super::DSN_MAX;
use super::receive_memory::Memory;
use mptcplab_scenario::{Growth, RcvBuffer};
use std::num::NonZeroU32;

/// What Linux announces first at most.
const FIRST_WINDOW_BYTES: u32 = 65_535;
/// Start of a buffer that grows: 128 KiB of memory, of which a full segment can use 160 of 256 parts (`scaling_ratio`).
const FIRST_ROOM_BYTES: u64 = 81_920;
/// The memory of such a buffer, for an MPTCP connection since Linux 7.1.
const FIRST_MEMORY_BYTES: u64 = 131_072;
/// What the application counts as having read in the round trip before the first one: Linux' `TCP_INIT_CWND`.
const FIRST_ROUND: u32 = 10;
/// What the receiving program reads at a time: the buffer of the kernel engine's (`BUFFER_BYTES`).
const READ_BYTES: u32 = 256 << 10;
/// Memory that Linux adds to a packet: headers with their options, headroom and shared information, in an allocation with the data
/// whose size is a power of two; and the packet's structure, which is freed when a segment joins the one before it
/// (`tcp_try_coalesce`, `mptcp_try_coalesce`).
const PACKET_EXTRA_BYTES: u32 = 72 + 64 + 320;
const PACKET_STRUCTURE_BYTES: u32 = 256;
/// A subflow announces this much more with each segment, as long as the buffer has room.
const OPENING: u32 = 2;

/// Room for the data of a connection.
pub(crate) struct ReceiveRoom {
    segments: u32,
    /// Memory of a full segment without its packet's structure, if what waits behind a gap counts with its memory: in a buffer
    /// of fixed size. One that grows has room to spare.
    packet_bytes: Option<NonZeroU32>,
    /// Bound of the growth.
    most: u32,
    /// Whether its size is not fixed.
    grows: bool,
    /// The window that was announced last; maintained where the room is limited.
    pub(super) announced: u32,
    is_limited: bool,
    /// Data in order take room until they are read, as in a buffer of fixed size on an MPTCP connection. Plain TCP announces less
    /// than its memory holds.
    counts_unread: bool,
    /// The most that the application has read in a round trip.
    busiest_round: u32,
    /// Data in order at the start of the round trip, and when it began.
    round_next: u32,
    round_ns: u64,
    /// What Linux does since 7.1; before, a round trip is the longest of the subflows', and what a call reads counts however
    /// much it leaves behind.
    since_7_1: Option<Box<Since7_1>>,
}

struct Since7_1 {
    memory: Memory,
    latest: LatestRtts,
    /// Segments that one call of the application reads.
    read: u32,
    /// Data in order when a segment arrived last.
    seen: u32,
    /// End of the window that the connection has announced on any subflow.
    edge: u32,
}

impl Since7_1 {
    /// A segment arrived in the `window` of a subflow that announces `own`. Returns what counts as a round trip, in microseconds,
    /// and the same as `first_call`.
    #[inline(never)]
    fn take_in(
        &mut self,
        rtts: MeasuredRtts,
        window: &mut SubflowWindow,
        own: u32,
        next: u32,
    ) -> (u32, u32, u32) {
        let rtt_us = window.rtt.follow(rtts);
        let whole = self.window(next, own);
        if rtt_us != 0 && window.has_passed(whole) {
            self.latest.note(rtt_us);
            self.memory.note_segment();
        }
        let (read_to, unread) = self.first_call(next);
        (self.latest.shortest(), read_to, unread)
    }

    /// The connection's window, of which a subflow announces `own`; every subflow gets the largest (`mptcp_set_rwin`).
    fn window(&mut self, next: u32, own: u32) -> u32 {
        self.edge = self.edge.max(next + own);
        self.edge - next
    }

    /// The data in order up to which the first call reads, and the segments that wait then. What waits does not count as read.
    fn first_call(&mut self, next: u32) -> (u32, u32) {
        let read_to = next.min(self.seen + self.read);
        self.seen = next;
        (read_to, next - read_to)
    }
}

/// What a subflow's sender measures of its round trips.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct MeasuredRtts {
    /// Smoothed, in eighths of a microsecond.
    pub(crate) srtt_us: u32,
    pub(crate) latest_us: u32,
    /// How many there were.
    pub(crate) count: u32,
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
        let memory = memory(buffer, mss);
        let (first, most) = bounds(buffer, mss);
        let is_fixed = is_fixed(buffer);
        Self {
            segments: first,
            packet_bytes: NonZeroU32::new(packet_bytes(mss)).filter(|_| is_fixed),
            grows: !is_fixed,
            most,
            announced: 0,
            is_limited: buffer != RcvBuffer::Unlimited,
            counts_unread: false,
            busiest_round: FIRST_ROUND,
            round_next: 0,
            round_ns: 0,
            since_7_1: memory.map(|memory| {
                Box::new(Since7_1 {
                    memory,
                    latest: LatestRtts::new(),
                    read: READ_BYTES / u32::from(mss),
                    seen: 0,
                    edge: 0,
                })
            }),
        }
    }

    /// Whether the room limits the sender.
    #[inline]
    pub(crate) fn is_limited(&self) -> bool {
        self.is_limited
    }

    /// Whether the longest smoothed RTT of all subflows counts as a round trip (`mptcp_rcv_space_adjust` until Linux 7.0).
    #[inline]
    pub(crate) fn takes_longest_rtt(&self) -> bool {
        self.grows && self.since_7_1.is_none()
    }

    pub(crate) fn segments(&self) -> u32 {
        self.segments
    }

    /// Data in order take room until they are read, unless the buffer grows: then it has room to spare.
    pub(super) fn count_unread(&mut self) {
        self.counts_unread = self.packet_bytes.is_some();
    }

    pub(super) fn counts_unread(&self) -> bool {
        self.counts_unread
    }

    /// Segments that there is room for beside `held` ones, which wait behind a gap or have not been read.
    #[inline]
    pub(crate) fn free(&self, held: u32) -> u32 {
        let taken = if self.grows { held } else { self.taken(held) };
        self.segments.saturating_sub(taken)
    }

    /// What so many segments take of a buffer of fixed size.
    #[inline]
    fn taken(&self, held: u32) -> u32 {
        let taken = match self.packet_bytes {
            Some(packet_bytes) if held > 1 => joined(held, packet_bytes.get()),
            _ => held,
        };
        match &self.since_7_1 {
            Some(new) => new.memory.announced_of(taken),
            None => taken,
        }
    }

    pub(super) fn most(&self) -> u32 {
        self.most
    }

    /// Whether [`tune`](Self::tune) has anything to do when data arrive on an established subflow with this smoothed round-trip
    /// time, in eighths of a microsecond: what counts as a round trip is no shorter, except since Linux 7.1.
    #[inline]
    pub(super) fn may_tune(&self, now: u64, srtt_us: u32) -> bool {
        now - self.round_ns >= u64::from(srtt_us >> 3) * 1000 || self.since_7_1.is_some()
    }

    /// Once per round trip: if the application has read more than in any before, room for twice as much, for the growth that is
    /// under way, and, until Linux 7.0, for what waits. `rtts` are those of the subflow whose `window` data arrived in;
    /// see also [`takes_longest_rtt`](Self::takes_longest_rtt).
    /// `next`: the first segment that is missing; `held`: segments behind it.
    pub(super) fn tune(
        &mut self,
        now: u64,
        rtts: MeasuredRtts,
        window: &mut SubflowWindow,
        next: u32,
        held: u32,
    ) {
        let free = self.free(held);
        let (rtt_us, read_to, unread, held) = match &mut self.since_7_1 {
            None => (rtts.srtt_us >> 3, next, 0, held),
            Some(new) => {
                let own = window.segments.min(free);
                let (rtt_us, read_to, unread) = new.take_in(rtts, window, own, next);
                self.segments = new.memory.segments().min(self.most);
                (rtt_us, read_to, unread, 0)
            }
        };
        let rtt_ns = u64::from(rtt_us) * 1000;
        if now - self.round_ns >= rtt_ns && rtt_ns != 0 {
            self.end_round(now, read_to, unread, held);
        }
    }

    #[inline(never)]
    fn end_round(&mut self, now: u64, read_to: u32, unread: u32, held: u32) {
        let read = (read_to - self.round_next).saturating_sub(unread);
        let busiest = self.busiest_round;
        if read > busiest && self.grows {
            let twice = 2 * u64::from(read);
            let growth = 2 * twice * u64::from(read - busiest) / u64::from(busiest);
            let wanted = (twice + growth + u64::from(held)).min(u64::from(self.most)) as u32;
            self.segments = self.segments.max(wanted);
            if let Some(new) = &mut self.since_7_1 {
                new.memory.make_room(self.segments);
                self.segments = new.memory.segments();
            }
            self.busiest_round = read;
        }
        self.round_next = read_to;
        self.round_ns = now;
    }
}

/// Whether a buffer has a size that does not change.
pub(crate) fn is_fixed(buffer: RcvBuffer) -> bool {
    matches!(buffer, RcvBuffer::Fixed(_) | RcvBuffer::FixedMemory(_))
}

/// The room, in full segments, of `held` ones of which all but one have joined others; no more than `held`.
#[inline(never)]
fn joined(held: u32, packet_bytes: u32) -> u32 {
    let whole = u64::from(packet_bytes + PACKET_STRUCTURE_BYTES);
    let bytes = u64::from(held) * u64::from(packet_bytes) + u64::from(PACKET_STRUCTURE_BYTES);
    bytes.div_ceil(whole) as u32
}

/// Memory of a full segment without its packet's structure.
fn packet_bytes(mss: u16) -> u32 {
    (u32::from(mss) + PACKET_EXTRA_BYTES).next_power_of_two()
}

/// The memory of a buffer at first, if what is announced follows the segments that arrive.
fn memory(buffer: RcvBuffer, mss: u16) -> Option<Memory> {
    let segment = packet_bytes(mss) + PACKET_STRUCTURE_BYTES;
    match buffer {
        RcvBuffer::FixedMemory(bytes) => Some(Memory::that_holds(bytes, mss, segment)),
        RcvBuffer::Auto {
            max_bytes,
            growth: Growth::Linux7_3,
        } => {
            let first = FIRST_MEMORY_BYTES.min(max_bytes);
            Some(Memory::new(first, max_bytes, mss, segment))
        }
        _ => None,
    }
}

/// The segments that a buffer has room for at first and at most.
fn bounds(buffer: RcvBuffer, mss: u16) -> (u32, u32) {
    let segments = |bytes: u64| ((bytes / u64::from(mss)).clamp(1, u64::from(DSN_MAX) / 4)) as u32;
    if let Some(memory) = memory(buffer, mss) {
        return (memory.segments(), memory.most());
    }
    match buffer {
        // The sender does not care, but the acknowledgements depend on it.
        RcvBuffer::Unlimited => (segments(FIRST_ROOM_BYTES), DSN_MAX / 4),
        RcvBuffer::Fixed(bytes) | RcvBuffer::FixedMemory(bytes) => {
            (segments(bytes), segments(bytes))
        }
        RcvBuffer::Auto { max_bytes, .. } => {
            let first = FIRST_ROOM_BYTES.min(max_bytes);
            (segments(first), segments(max_bytes))
        }
    }
}

/// How far a subflow has opened the window (Linux' `rcv_ssthresh`).
#[derive(Debug, Clone, Copy)]
pub(crate) struct SubflowWindow {
    segments: u32,
    /// The window, in segments, in the subflow's last ACK; maintained where the room is limited.
    pub(super) announced: u32,
    /// Segments that are still to arrive before the round-trip time is noted again.
    left: u32,
    /// Maintained only where the room depends on the latest round trips.
    rtt: ReceiverRtt,
}

/// The round-trip time as a receiver estimates it, from the timestamps of its ACKs that data segments echo: a shorter one
/// counts at once, and a longer one for an eighth (Linux' `tcp_rcv_rtt_update`).
///
/// The sender's samples stand for the receiver's. Both span the same ways, half a round trip apart.
#[derive(Debug, Clone, Copy, Default)]
struct ReceiverRtt {
    /// In eighths of a microsecond; 0 before the first sample.
    us: u32,
    /// Samples of the sender that have been seen.
    count: u32,
}

impl ReceiverRtt {
    /// Takes in the sender's latest sample if it is new, and returns the estimate in microseconds.
    fn follow(&mut self, rtts: MeasuredRtts) -> u32 {
        if self.count != rtts.count {
            self.count = rtts.count;
            let latest = rtts.latest_us << 3;
            self.us = if self.us == 0 || latest < self.us {
                latest
            } else {
                self.us - (self.us >> 3) + rtts.latest_us
            };
        }
        self.us >> 3
    }
}

impl SubflowWindow {
    /// What is announced first of a buffer.
    pub(crate) fn first(buffer: RcvBuffer, mss: u16) -> Self {
        Self::new(bounds(buffer, mss).0, mss)
    }

    pub(crate) fn new(room: u32, mss: u16) -> Self {
        let most = (FIRST_WINDOW_BYTES / u32::from(mss)).max(1);
        Self {
            segments: room.min(most),
            announced: 0,
            left: 0,
            rtt: ReceiverRtt::default(),
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

    /// Whether as much as the connection's `window` was then has arrived since this was last so.
    fn has_passed(&mut self, window: u32) -> bool {
        let passed = self.left == 0;
        if passed {
            self.left = window;
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

    /// A first sample, which is also the smoothed time.
    fn smooth(rtt_us: u32) -> MeasuredRtts {
        MeasuredRtts {
            srtt_us: rtt_us << 3,
            latest_us: rtt_us,
            count: u32::from(rtt_us != 0),
        }
    }

    /// 45 segments of 1448 bytes are announced first, of a buffer with room for 56.
    #[test]
    fn a_window_opens_by_two_segments_at_a_time() {
        let room = ReceiveRoom::new(RcvBuffer::Unlimited, 1448);
        let mut window = SubflowWindow::new(room.segments(), 1448);
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

    /// A full segment takes 2304 bytes of memory, and 2048 once it has joined another one.
    #[test]
    fn segments_behind_a_gap_take_less_room_than_single_ones() {
        let room = ReceiveRoom::new(RcvBuffer::Fixed(50 * 1428), 1428);
        let taken: Vec<u32> = [0, 1, 2, 9, 10, 27, 50]
            .map(|held| 50 - room.free(held))
            .to_vec();
        assert_eq!(taken, [0, 1, 2, 9, 9, 25, 45]);
        assert_eq!(room.free(60), 0);
        // 512 and 768 bytes.
        let small = ReceiveRoom::new(RcvBuffer::Fixed(30 * 50), 50);
        assert_eq!(small.free(12), 30 - 9);
    }

    /// 64 kB in full segments, each of which has 111 256ths of its 2304 bytes. Half of the memory is announced first. It does
    /// not grow, however much is read.
    #[test]
    fn the_room_of_a_fixed_buffer_follows_its_segments_on_linux_7_3() {
        let mut room = ReceiveRoom::new(RcvBuffer::FixedMemory(64_000), 1000);
        let mut window = SubflowWindow::new(room.segments(), 1000);
        assert_eq!((room.segments(), window.segments()), (73, 65));
        // What waits takes more of it than it is worth later.
        assert_eq!(room.free(1), 73 - 2);
        let mut seen = Vec::new();
        for round in 1..=14 {
            window.left = 0;
            room.tune(
                round * 30_000_000,
                smooth(30_000),
                &mut window,
                70 * round as u32,
                0,
            );
            seen.push(room.segments());
        }
        assert_eq!(
            seen,
            [72, 70, 69, 68, 68, 67, 66, 66, 65, 65, 64, 64, 64, 64]
        );
        assert_eq!(room.free(1), 63);
    }

    #[test]
    fn a_small_buffer_is_announced_as_a_whole_at_once() {
        let room = ReceiveRoom::new(RcvBuffer::Fixed(20_000), 1428);
        let window = SubflowWindow::new(room.segments(), 1428);
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
        let mut window = SubflowWindow::new(room.segments(), 1448);
        let rtts = smooth(30_000);
        let mut after = |ms: u64, next, held| {
            room.tune(ms * 1_000_000, rtts, &mut window, next, held);
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
                max_bytes: 700_000,
                growth: Growth::Linux7_3,
            },
            1448,
        );
        let (mut fast, mut slow) = (
            SubflowWindow::new(room.segments(), 1448),
            SubflowWindow::new(room.segments(), 1448),
        );
        let ms = 1_000_000;
        // A subflow without a round-trip time notes none, and keeps its turn.
        room.tune(10 * ms, smooth(0), &mut fast, 40, 0);
        room.tune(19 * ms, smooth(90_000), &mut slow, 60, 0);
        room.tune(19 * ms, smooth(20_000), &mut fast, 60, 0);
        // 135 instead of 128 parts of the memory are announced, after two that were noted.
        assert_eq!(room.segments(), 47);
        // 40, and 2 * 40 * 10 / 10 for the growth. What waits adds nothing.
        room.tune(20 * ms, smooth(90_000), &mut slow, 20, 300);
        assert_eq!(room.segments(), 120);
        // With three more of the slow one, that of the fast one is still among the last five.
        let mut note_slow = |room: &mut ReceiveRoom, now, count| {
            for _ in 0..count {
                slow.left = 0;
                room.tune(now, smooth(90_000), &mut slow, 20, 0);
            }
        };
        note_slow(&mut room, 21 * ms, 3);
        room.tune(40 * ms, smooth(20_000), &mut fast, 50, 0);
        // 60, and 2 * 60 * 10 / 20: not more than before, of which 142 parts are announced now.
        assert_eq!(room.segments(), 126);
        assert_eq!((room.busiest_round, room.round_ns), (30, 40 * ms));
        // Two more leave none of it.
        note_slow(&mut room, 41 * ms, 2);
        room.tune(129 * ms, smooth(20_000), &mut fast, 95, 0);
        assert_eq!(room.round_ns, 40 * ms);
        // 90, and 2 * 90 * 15 / 30.
        room.tune(130 * ms, smooth(20_000), &mut fast, 95, 0);
        assert_eq!((room.segments(), room.round_ns), (180, 130 * ms));
    }

    /// 40, 16, 40, 40 and 24 ms, each of which is seen by two segments: down at once, up by an eighth.
    #[test]
    fn a_receiver_takes_shorter_round_trips_at_once() {
        let mut rtt = ReceiverRtt::default();
        let mut seen = Vec::new();
        for (count, latest_us) in [40_000, 16_000, 40_000, 40_000, 24_000]
            .into_iter()
            .enumerate()
        {
            for _ in 0..2 {
                seen.push(rtt.follow(MeasuredRtts {
                    srtt_us: 7,
                    latest_us,
                    count: count as u32 + 1,
                }));
            }
        }
        let each: Vec<u32> = seen.chunks(2).map(|two| two[1]).collect();
        assert!(seen.chunks(2).all(|two| two[0] == two[1]));
        assert_eq!(each, [40_000, 16_000, 19_000, 21_625, 21_921]);
    }

    /// Calls that read 40 segments each: of 10, 35 and 120 that a segment makes readable, they leave 0, 0 and 80.
    #[test]
    fn on_linux_7_3_what_a_call_leaves_does_not_count_as_read() {
        let mut room = ReceiveRoom::new(
            RcvBuffer::Auto {
                max_bytes: 700_000,
                growth: Growth::Linux7_3,
            },
            1448,
        );
        room.since_7_1.as_mut().unwrap().read = 40;
        let mut window = SubflowWindow::new(room.segments(), 1448);
        let mut after = |ms: u64, next| {
            room.tune(ms * 1_000_000, smooth(20_000), &mut window, next, 0);
            (room.segments(), room.busiest_round)
        };
        assert_eq!(after(20, 10), (46, 10));
        // 35 and, half a round later, all but 45 of 125.
        assert_eq!(after(30, 45), (46, 10));
        assert_eq!(after(40, 170), (46, 10));
        // The rest belongs to the next round: 85 and 3, of which all are read. Of 700,000 bytes, 132 parts are announced.
        assert_eq!(after(61, 173), (249, 88));
    }

    /// A subflow that announces 5 segments of 12 that the other one has announced counts twelve, less what was read since.
    #[test]
    fn on_linux_7_3_all_subflows_announce_the_same_window() {
        let mut new = Since7_1 {
            memory: Memory::new(131_072, 131_072, 1428, 2304),
            latest: LatestRtts::new(),
            read: 7,
            seen: 0,
            edge: 0,
        };
        assert_eq!(new.window(30, 12), 12);
        assert_eq!(new.window(33, 5), 9);
        assert_eq!(new.window(41, 5), 5);
    }

    /// The first segment, and the one after each whole window.
    #[test]
    fn a_round_trip_is_noted_once_per_window() {
        let room = ReceiveRoom::new(RcvBuffer::Fixed(5 * 1428), 1428);
        let mut window = SubflowWindow::new(room.segments(), 1428);
        let noted = (0..12).map(|_| {
            window.open(room.segments());
            window.has_passed(5)
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
        let mut window = SubflowWindow::new(room.segments(), 1428);
        room.tune(40_000_000, smooth(20_000), &mut window, 500, 0);
        assert_eq!(room.segments(), 35);
    }
}
