//! In-order delivery to the application, and the receive window that all subflows of a connection share.

use super::DSN_MAX;
use super::messages::{Messages, Place};
use super::reassembly::Reassembly;
use super::receive_window::{MeasuredRtts, ReceiveRoom, SubflowWindow};
use super::reordering::ReorderingStats;
use crate::net::World;
use crate::net::event::NEVER;
use crate::net::packet::WINDOW_UNLIMITED;
use mptcplab_prefetch::prefetch_between;
use mptcplab_scenario::RcvBuffer;
use mptcplab_trace::EventKind;

/// The receiving side: in-order delivery to the application and the shared window.
// In this order: what most data packets need, and the rest; see `prefetch`.
#[repr(C)]
pub(crate) struct ConnectionReceiver {
    order: Reassembly,
    room: ReceiveRoom,
    mss: u16,
    /// Whether the connection's first byte is recorded as an event.
    announces: bool,
    pub(crate) completed: bool,
    pub(crate) window_shift: u32,
    /// Data in order up to here are the first of a transfer, or complete it.
    milestone: u32,
    /// First data sequence number after the transfer, and the payload of its last segment.
    complete_at: Option<(u32, u16)>,
    pub(crate) reordering: ReorderingStats,
    /// Bytes by which the last segments of earlier transfers and messages were short.
    missing_bytes: u64,
    /// When the first byte of the current transfer arrived; [`NEVER`] before.
    pub(crate) first_byte_ns: u64,
    pub(crate) duplicates: u32,
    /// End of the window that was announced, 0 if it has none.
    window_end: u32,
    /// On a connection that carries messages: what its application expects.
    messages: Option<Box<Messages>>,
}

impl ConnectionReceiver {
    /// Have what most data packets need fetched into the cache.
    #[inline(always)]
    pub(crate) fn prefetch(&self) {
        prefetch_between(&self.order, &self.messages);
    }

    /// The same for the segments that wait, once that has arrived.
    #[inline(always)]
    pub(crate) fn prefetch_segments(&self) {
        self.order.prefetch();
        self.reordering.prefetch(self.order.next());
    }

    pub(crate) fn new(buffer: RcvBuffer, mss: u16, announces: bool) -> Self {
        let room = ReceiveRoom::new(buffer, mss);
        // The largest window must fit below the value that means "unlimited".
        let window_shift = (0..31)
            .find(|s| (room.most() >> s) < u32::from(WINDOW_UNLIMITED))
            .unwrap_or(31);
        Self {
            order: Reassembly::default(),
            reordering: ReorderingStats::default(),
            mss,
            room,
            window_shift,
            duplicates: 0,
            first_byte_ns: NEVER,
            announces,
            complete_at: None,
            completed: false,
            messages: None,
            milestone: 1,
            missing_bytes: 0,
            window_end: 0,
        }
    }

    /// Data in order take room until they are read, if the buffer has none to spare.
    pub(crate) fn count_unread(&mut self) {
        self.room.count_unread();
    }

    /// Append the segments out of order to `out`, as half-open ranges in rising order.
    pub(crate) fn blocks(&self, out: &mut Vec<(u32, u32)>) {
        self.order.blocks(out);
    }

    /// End of the window that a subflow announces with its handshake.
    pub(crate) fn window_end(&mut self) -> u32 {
        match self.announce(&mut SubflowWindow::new(self.room.segments(), self.mss)) {
            WINDOW_UNLIMITED => DSN_MAX,
            window => u32::from(window) << self.window_shift,
        }
    }

    /// The next data sequence number expected.
    #[inline]
    pub(crate) fn next(&self) -> u32 {
        self.order.next()
    }

    pub(crate) fn room(&self) -> &ReceiveRoom {
        &self.room
    }

    /// Window field of an ACK that a subflow sends now which has opened the window this far, when the application has read all
    /// that it can.
    #[inline]
    pub(crate) fn announce(&mut self, window: &mut SubflowWindow) -> u16 {
        self.announce_before_reading(self.order.next(), window)
    }

    /// The same for the ACK of a segment that has just arrived, when all before `next` was in order. What it has put in
    /// order may take room until it is read: then only the next ACK announces that.
    ///
    /// What waits behind a gap takes room, but no end that was announced is taken back (`tcp_select_window`, `mptcp_set_rwin`).
    #[inline]
    pub(crate) fn announce_before_reading(&mut self, next: u32, window: &mut SubflowWindow) -> u16 {
        if !self.room.is_limited() {
            return WINDOW_UNLIMITED;
        }
        let unread = if self.room.counts_unread() {
            self.order.next() - next
        } else {
            0
        };
        let promised = self.window_end.saturating_sub(self.order.next());
        let announced = self.openable(unread, *window).max(promised);
        (self.room.announced, window.announced) = (announced, announced);
        // Rounded up, so that a small window is never announced as none.
        let scaled = announced.div_ceil(1 << self.window_shift);
        let field = scaled.min(u32::from(WINDOW_UNLIMITED) - 1);
        let end = self.order.next() + (field << self.window_shift);
        self.window_end = self.window_end.max(end);
        field as u16
    }

    /// The window in segments beside so many in order that the application has not read. At least one if nothing is missing: a
    /// sender without a window would have to probe.
    #[inline]
    fn openable(&self, unread: u32, window: SubflowWindow) -> u32 {
        let held = self.order.held();
        let free = self.room.free(held + unread);
        window.segments().min(free).max(u32::from(held == 0))
    }

    /// Whether a subflow announces its window at once, now that the application has read what it can: if it is at least twice
    /// what this subflow has announced last (`tcp_cleanup_rbuf`), and what any has (`mptcp_cleanup_rbuf`).
    pub(crate) fn has_twice_the_window(&self, window: SubflowWindow) -> bool {
        self.room.is_limited() && {
            let open = self.openable(0, window);
            open > 0 && open >= 2 * self.room.announced.max(window.announced)
        }
    }

    /// Whether [`tune`](Self::tune) has anything to do.
    #[inline]
    pub(crate) fn may_tune(&self, now: u64, srtt_us: u32) -> bool {
        self.room.may_tune(now, srtt_us)
    }

    /// The application has read what it could: adapt the room to the rate.
    pub(crate) fn tune(&mut self, now: u64, rtts: MeasuredRtts, window: &mut SubflowWindow) {
        let (next, held) = (self.order.next(), self.order.held());
        self.room.tune(now, rtts, window, next, held);
    }

    /// Whether the application has read all that came: nothing waits for what is missing.
    #[inline]
    pub(crate) fn is_read(&self) -> bool {
        self.order.held() == 0
    }

    /// What is left of the window that was announced, for the trace; 0 when unlimited.
    pub(crate) fn window_bytes(&self) -> u64 {
        let segments = self.window_end.saturating_sub(self.order.next());
        u64::from(segments) * u64::from(self.mss)
    }

    /// Payload of a full segment.
    pub(crate) fn mss(&self) -> u16 {
        self.mss
    }

    /// Bytes kept out of order.
    pub(crate) fn ooo_bytes(&self) -> u64 {
        u64::from(self.order.held()) * u64::from(self.mss)
    }

    /// A transfer ends before data sequence number `end`; its last segment has `last` bytes of payload.
    pub(crate) fn expect(&mut self, end: u32, last: u16) {
        self.missing_bytes =
            u64::from(self.order.next()) * u64::from(self.mss) - self.delivered_bytes();
        self.complete_at = Some((end, last));
        self.completed = false;
        self.first_byte_ns = NEVER;
        self.milestone = self.order.next() + 1;
    }

    /// A message lies at this place, behind all others.
    pub(crate) fn expect_message(&mut self, place: Place) {
        let messages = self.messages.get_or_insert_default();
        messages.expect(place);
        self.milestone = messages.milestone();
    }

    /// The time of the first byte of the next message that is complete.
    pub(crate) fn take_complete_message(&mut self) -> Option<u64> {
        self.messages.as_mut()?.take_complete()
    }

    /// When the first byte of the `i`-th message that is not complete arrived; [`NEVER`] before.
    pub(crate) fn first_byte_of_message(&self, i: usize) -> u64 {
        let messages = self.messages.as_ref();
        messages.map_or(NEVER, |messages| messages.first_byte_ns(i))
    }

    /// Bytes of a connection's only transfer.
    pub(crate) fn transfer_bytes(&self) -> u64 {
        let mss = u64::from(self.mss);
        let bytes = |(end, last): (u32, u16)| u64::from(end - 1) * mss + u64::from(last);
        self.complete_at.map_or(0, bytes)
    }

    /// Application bytes delivered in order.
    pub(crate) fn delivered_bytes(&self) -> u64 {
        let segments = u64::from(self.order.next());
        let short = match self.complete_at {
            Some((end, last)) if self.order.next() >= end => u64::from(self.mss - last),
            _ => 0,
        };
        segments * u64::from(self.mss) - short - self.missing_bytes
    }

    /// Take in a segment's data. Returns whether that completes the transfer.
    // Forced: with SCTP as a second caller the compiler would not inline it into TCP's fast path.
    #[inline(always)]
    pub(crate) fn on_data(&mut self, cx: &mut World, flow: u32, dsn: u32) -> bool {
        let Some(n) = self.order.take_next(dsn) else {
            self.take_other(cx.now, dsn);
            return false;
        };
        if n > 1 {
            self.reordering.delivered(cx.now, n - 1, self.order.next());
        }
        self.order.next() >= self.milestone && self.pass_milestone(cx, flow)
    }

    /// A segment that is not the next one.
    #[inline(never)]
    fn take_other(&mut self, now: u64, dsn: u32) {
        if !self.order.keep(dsn) {
            self.duplicates += 1;
        } else if self.lies_beyond_window(dsn) {
            self.order.give_back(dsn);
        } else {
            let (next, depth) = (self.order.next(), self.order.held());
            self.reordering.arrived(now, dsn, next, depth);
        }
    }

    /// Whether a segment lies beyond the window that was announced: then Linux drops it, although the subflow acknowledges it
    /// (`mptcp_data_queue_ofo`).
    #[inline]
    fn lies_beyond_window(&self, dsn: u32) -> bool {
        dsn >= self.window_end && self.window_end != 0
    }

    /// The first data of a transfer or of a message are in order, or all. Returns whether it is complete.
    #[inline(never)]
    fn pass_milestone(&mut self, cx: &mut World, flow: u32) -> bool {
        if self.first_byte_ns == NEVER {
            self.first_byte_ns = cx.now;
            if std::mem::take(&mut self.announces) {
                cx.rec.flow_event(cx.now, EventKind::FirstByte, flow, 0);
            }
        }
        if let Some(messages) = &mut self.messages {
            let (missing_bytes, any) = messages.advance(self.order.next(), cx.now);
            self.missing_bytes += missing_bytes;
            self.milestone = messages.milestone();
            return any;
        }
        self.milestone = self.complete_at.map_or(u32::MAX, |(end, _)| end);
        if self.order.next() < self.milestone {
            return false;
        }
        debug_assert_eq!(self.order.next(), self.milestone);
        self.milestone = u32::MAX;
        self.completed = true;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mptcplab_scenario::Growth;

    /// Rounded up, so that the largest window of the last buffer would be the value that means "unlimited".
    #[test]
    fn the_largest_window_is_not_announced_as_unlimited() {
        for (segments, shift, announced) in [
            (65_534, 0, 65_534),
            (65_535, 1, 32_768),
            (200_001, 2, 50_001),
            (131_069, 1, 65_534),
        ] {
            let buffer = RcvBuffer::Fixed(u64::from(segments) * 1000 + 999);
            let mut receiver = ConnectionReceiver::new(buffer, 1000, false);
            let mut window = SubflowWindow::new(segments, 1000);
            while window.segments() < segments {
                window.open(segments);
            }
            assert_eq!(receiver.window_shift, shift, "{segments}");
            assert_eq!(receiver.announce(&mut window), announced, "{segments}");
        }
    }

    fn receiver_of_an_mptcp_connection(buffer: RcvBuffer) -> (ConnectionReceiver, SubflowWindow) {
        let mut receiver = ConnectionReceiver::new(buffer, 1000, false);
        receiver.count_unread();
        let window = SubflowWindow::new(receiver.room.segments(), 1000);
        (receiver, window)
    }

    /// The window in the ACK of a segment that arrives, and in one that follows when the application has read.
    fn windows_after(
        (receiver, window): &mut (ConnectionReceiver, SubflowWindow),
        dsn: u32,
    ) -> (u16, u16) {
        let next = receiver.next();
        receiver.order.insert(dsn);
        let before_reading = receiver.announce_before_reading(next, window);
        (before_reading, receiver.announce(window))
    }

    /// 20 segments. The first ACK keeps the end of the window where it was, at 20, and so does the one that fills a gap.
    #[test]
    fn data_that_were_not_read_take_room_in_a_fixed_buffer() {
        let mut fixed = receiver_of_an_mptcp_connection(RcvBuffer::Fixed(20_000));
        assert_eq!(windows_after(&mut fixed, 0), (19, 20));
        assert_eq!(windows_after(&mut fixed, 2), (20, 20));
        assert_eq!(windows_after(&mut fixed, 3), (20, 20));
        // The end stays at 21, and then moves to 24.
        assert_eq!(windows_after(&mut fixed, 1), (17, 20));
        // A buffer that grows has room to spare.
        let mut growing = receiver_of_an_mptcp_connection(RcvBuffer::Auto {
            max_bytes: 20_000,
            growth: Growth::Linux6_18,
        });
        assert_eq!(windows_after(&mut growing, 0), (20, 20));
    }

    /// Also beyond what was announced before.
    #[test]
    fn what_lies_beyond_the_announced_window_is_not_taken_in() {
        let mut fixed = receiver_of_an_mptcp_connection(RcvBuffer::Fixed(6_000));
        assert_eq!(windows_after(&mut fixed, 0), (5, 6));
        assert!(!fixed.0.lies_beyond_window(6));
        assert!(fixed.0.lies_beyond_window(7));
        assert_eq!(windows_after(&mut fixed, 4), (6, 6));
        assert!(!fixed.0.lies_beyond_window(6));
        let unlimited = receiver_of_an_mptcp_connection(RcvBuffer::Unlimited);
        assert!(!unlimited.0.lies_beyond_window(6_000));
    }

    /// Six segments, of which three wait when the gap before them becomes smaller by one.
    #[test]
    fn the_trace_has_what_is_left_of_the_announced_window() {
        let mut fixed = receiver_of_an_mptcp_connection(RcvBuffer::Fixed(6_000));
        let seen = [0, 4, 5, 6, 1].map(|dsn| {
            windows_after(&mut fixed, dsn);
            fixed.0.window_bytes()
        });
        assert_eq!(seen, [6_000, 6_000, 6_000, 6_000, 5_000]);
        let unlimited = receiver_of_an_mptcp_connection(RcvBuffer::Unlimited);
        assert_eq!(unlimited.0.window_bytes(), 0);
    }

    /// Six segments, of which five wait: one is announced, and then six, but not if it was four before.
    #[test]
    fn a_window_that_doubles_is_announced_when_the_application_has_read() {
        let mut fixed = receiver_of_an_mptcp_connection(RcvBuffer::Fixed(6_000));
        for dsn in [1, 2, 3, 4] {
            windows_after(&mut fixed, dsn);
            assert!(!fixed.0.has_twice_the_window(fixed.1));
        }
        let next = fixed.0.next();
        fixed.0.order.insert(0);
        assert_eq!(fixed.0.announce_before_reading(next, &mut fixed.1), 1);
        assert!(fixed.0.has_twice_the_window(fixed.1));
        fixed.0.announce(&mut fixed.1);
        assert!(!fixed.0.has_twice_the_window(fixed.1));
        let next = fixed.0.next();
        fixed.0.order.insert(6);
        fixed.0.order.insert(5);
        assert_eq!(fixed.0.announce_before_reading(next, &mut fixed.1), 4);
        assert!(!fixed.0.has_twice_the_window(fixed.1));
    }

    /// A sender without a window would have to probe.
    #[test]
    fn a_segment_is_always_announced_if_none_is_missing() {
        let mut smallest = receiver_of_an_mptcp_connection(RcvBuffer::Fixed(2_000));
        assert_eq!(windows_after(&mut smallest, 1), (1, 1));
        assert_eq!(windows_after(&mut smallest, 2), (1, 1));
        assert_eq!(windows_after(&mut smallest, 0), (1, 2));
    }
}
