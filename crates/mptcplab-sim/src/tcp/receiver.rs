//! One subflow's receiver: in-order tracking, SACK and D-SACK blocks, delayed ACKs, ECN echo.

use super::sack_compression::SackCompression;
use crate::net::event::{NEVER, Timer, TimerKind};
use crate::net::packet::{Header, Kind, Packet};
use crate::net::{MAX_BLOCKS, WINDOW_UPDATE, World};
use crate::stream::reassembly::{Arrival, Reassembly};
use crate::stream::receive_window::{ReceiveRoom, SubflowWindow};

/// Shortest and longest delay of an ACK, Linux' `TCP_DELACK_MIN` (also `TCP_ATO_MIN`) and `TCP_DELACK_MAX`.
const DELACK_MIN_NS: u64 = 40_000_000;
const DELACK_MAX_NS: u64 = 200_000_000;
/// Segments acknowledged at once at the start of a connection, after a pause and after a duplicate: Linux'
/// `TCP_MAX_QUICKACKS`.
const QUICK_ACKS: u32 = 16;
/// Segments that are acknowledged at once from the first congestion mark on (`tcp_ecn_check_ce`).
const ACKS_OF_MARK: u32 = 2;
/// Linux' `TCP_RTO_MIN`. A receiver has no RTT samples except that of the handshake, so its timeout is this much above it.
const RTO_MIN_NS: u64 = 200_000_000;

/// Constants of a receiver.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ReceiverConfig {
    /// Every second segment and a timer, instead of every segment.
    pub(crate) delayed_acks: bool,
    /// How long an ACK of a segment beyond a gap may wait, so that it is combined with later ones, see `sack_compression.rs`.
    pub(crate) comp_sack_ns: Option<u64>,
    /// IP bytes of an ACK without SACK blocks.
    pub(crate) ack_bytes: u16,
    /// SACK blocks that fit beside the other options; 0 without SACK.
    pub(crate) max_blocks: u8,
    /// Bytes of a data packet that are not payload.
    pub(crate) data_header: u16,
    /// Round-trip time of the path without queues.
    pub(crate) base_rtt_ns: u64,
    /// First link of the reverse path.
    pub(crate) entry: u32,
}

pub(crate) struct Receiver {
    /// The next segment takes a fast path, see [`expects`](Self::expects) and [`delays`](Self::delays).
    is_plain: bool,
    is_steady: bool,
    pub(crate) order: Reassembly,
    /// How far this subflow has opened the connection's receive window.
    pub(crate) window: SubflowWindow,
    pub(crate) config: ReceiverConfig,
    id: u32,
    /// Blocks above `order.next()`, most recently changed first.
    blocks: [(u32, u32); MAX_BLOCKS],
    n_blocks: usize,
    duplicate: Option<u32>,
    /// Timestamp to echo (RFC 7323 section 4.3).
    ts_recent: u32,
    last_ack_sent: u32,
    /// Segments since the last ACK, segments to acknowledge at once, and the arrival of the latest data packet. Maintained with
    /// delayed ACKs only, the second one also with `comp_sack`.
    unacked: u32,
    quick_acks: u32,
    arrived_ns: u64,
    /// Longest wait of an ACK, which follows the time between segments (Linux' `icsk_ack.ato`).
    ato_ns: u64,
    /// One of the segments since the last ACK carried PSH. Maintained with delayed ACKs only.
    pushed: bool,
    compression: SackCompression,
    /// Round-trip time measured by the handshake, that of the path without queues before; and when the SYN/ACK left that starts
    /// the measurement.
    rtt_ns: u64,
    answered_ns: u64,
    pub(crate) timer: Timer,
    /// Echo congestion until the sender reports its reduction (CWR).
    echo: bool,
    /// Data packets, and their bytes.
    pub(crate) packets: u64,
    pub(crate) ip_bytes: u64,
}

/// When an ACK is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AckPolicy {
    Immediate,
    /// With the next segment, or when the delayed ACK's timer fires.
    Delayed,
    /// Combined with later ones (SACK compression).
    Compressed,
}

impl Receiver {
    pub(crate) fn new(id: u32, config: ReceiverConfig, window: SubflowWindow) -> Self {
        Self {
            is_plain: false,
            is_steady: false,
            order: Reassembly::default(),
            window,
            config,
            id,
            blocks: [(0, 0); MAX_BLOCKS],
            n_blocks: 0,
            duplicate: None,
            ts_recent: 0,
            last_ack_sent: 0,
            unacked: 0,
            pushed: false,
            compression: SackCompression::default(),
            quick_acks: QUICK_ACKS,
            arrived_ns: 0,
            ato_ns: DELACK_MIN_NS,
            rtt_ns: config.base_rtt_ns,
            answered_ns: NEVER,
            timer: Timer::OFF,
            echo: false,
            packets: 0,
            ip_bytes: 0,
        }
    }

    /// The peer's SYN, whose timestamp is echoed until data arrive in order.
    pub(crate) fn expect_timestamps_from(&mut self, tick: u32) {
        self.ts_recent = tick;
    }

    /// A packet of the handshake: a SYN, which is answered, or the third packet of a join.
    ///
    /// A receiver sends only ACKs, so this is the only round-trip time that it measures. If the third packet is lost and sent
    /// again, the measured time is three times as long.
    pub(crate) fn on_handshake(&mut self, kind: Kind, now: u64) {
        if kind == Kind::Syn {
            self.answered_ns = now;
        } else {
            self.measure_rtt(now);
        }
    }

    fn measure_rtt(&mut self, now: u64) {
        if self.answered_ns != NEVER {
            self.rtt_ns = now - self.answered_ns;
            self.answered_ns = NEVER;
        }
    }

    /// Whether a compressed ACK has to leave before this segment, which starts a third block (`tcp_sack_new_ofo_skb`).
    #[inline]
    pub(crate) fn overflows(&self, seq: u32) -> bool {
        self.n_blocks >= 2 && self.compression.has_deferred() && seq > self.order.next() && {
            let extends = |&(start, end): &(u32, u32)| start <= seq + 1 && seq <= end;
            !self.blocks[..2].iter().any(extends)
        }
    }

    /// Whether a packet takes the fast path: it is the next one, and all that has to be said is that it arrived.
    #[inline(always)]
    pub(crate) fn expects(&self, packet: Packet) -> bool {
        self.is_plain && self.is_next(packet)
    }

    /// Process a packet that takes the fast path. Returns the ACK.
    #[inline(always)]
    pub(crate) fn take_expected(&mut self, packet: Packet, data_ack: u32, window: u16) -> Packet {
        self.packets += 1;
        self.ip_bytes += u64::from(packet.len());
        self.ts_recent = packet.ts();
        self.order.advance();
        self.last_ack_sent = self.order.next();
        let header = Header {
            seq: self.last_ack_sent,
            dsn: data_ack,
            ts: packet.ts(),
            sack: 0,
            wnd: window,
        };
        Packet::new(Kind::Ack, self.id, self.config.ack_bytes, header)
    }

    /// The same with delayed ACKs, of which one may wait.
    #[inline(always)]
    pub(crate) fn delays(&self, packet: Packet) -> bool {
        self.is_steady && self.is_next(packet)
    }

    /// Whether a packet is the next one in order and says nothing of congestion.
    #[inline(always)]
    fn is_next(&self, packet: Packet) -> bool {
        packet.seq() == self.order.next() && !packet.has_ecn_news()
    }

    /// Find out whether the next packet may take a fast path.
    pub(crate) fn find_plain(&mut self) {
        let has_only_next = !self.echo
            && self.n_blocks == 0
            && self.duplicate.is_none()
            && self.order.held() == 0
            && !self.compression.has_deferred();
        self.is_steady = has_only_next && self.config.delayed_acks;
        self.is_plain = has_only_next
            && !self.config.delayed_acks
            && self.last_ack_sent == self.order.next()
            && self.timer.deadline == NEVER;
    }

    /// Payload of all data packets.
    pub(crate) fn payload_bytes(&self) -> u64 {
        self.ip_bytes - self.packets * u64::from(self.config.data_header)
    }

    /// Process a packet that takes the fast path of delayed ACKs.
    #[inline(always)]
    pub(crate) fn take_delayed(
        &mut self,
        packet: &Packet,
        now: u64,
        room: &ReceiveRoom,
    ) -> AckPolicy {
        self.count(packet);
        self.order.advance();
        self.note_arrival(now);
        self.open_window(room);
        self.pushed |= packet.pushes();
        self.delay_policy(false)
    }

    #[inline(always)]
    fn count(&mut self, packet: &Packet) {
        self.packets += 1;
        self.ip_bytes += u64::from(packet.len());
        if packet.seq() <= self.last_ack_sent {
            self.ts_recent = packet.ts();
        }
    }

    /// Process a data packet at subflow level. `room`: of the connection's receive buffer.
    #[inline]
    pub(crate) fn on_data(&mut self, packet: &Packet, now: u64, room: &ReceiveRoom) -> AckPolicy {
        let at_once = packet.has_ecn_news() && self.note_ecn(packet);
        self.count(packet);
        if self.packets == 1 {
            self.measure_rtt(now);
        }
        let had_gap = self.order.held() > 0;
        match self.order.insert(packet.seq()) {
            Arrival::InOrder(segments) => {
                if self.config.delayed_acks {
                    self.note_arrival(now);
                }
                self.open_window(room);
                if had_gap {
                    self.forget_blocks_in_order();
                    self.note_filled(segments);
                    return AckPolicy::Immediate;
                }
                if self.config.delayed_acks {
                    self.pushed |= packet.pushes();
                    self.delay_policy(at_once)
                } else {
                    AckPolicy::Immediate
                }
            }
            Arrival::OutOfOrder => {
                self.open_window(room);
                self.answer_beyond_gap(packet.seq())
            }
            Arrival::Duplicate if packet.seq() > self.order.next() => {
                self.duplicate = Some(packet.seq()).filter(|_| self.config.max_blocks > 0);
                self.answer_beyond_gap(packet.seq())
            }
            Arrival::Duplicate => {
                self.duplicate = Some(packet.seq()).filter(|_| self.config.max_blocks > 0);
                self.quick_acks = QUICK_ACKS;
                AckPolicy::Immediate
            }
        }
    }

    /// So many segments filled a part of a gap. The ACK of a single one is the first that leaves at once for what is missing now.
    fn note_filled(&mut self, segments: u32) {
        let is_asked = self.config.comp_sack_ns.is_some() && self.quick_acks == 0;
        if is_asked && segments == 1 && self.order.held() > 0 {
            self.compression.defers(self.order.next());
        }
    }

    /// A segment arrived, or arrived again, while an earlier one is missing: the block that it lies in is reported first.
    fn answer_beyond_gap(&mut self, seq: u32) -> AckPolicy {
        if self.config.max_blocks > 0 {
            self.note_block(seq);
        }
        if self.config.comp_sack_ns.is_some() {
            self.compress_ack()
        } else {
            AckPolicy::Immediate
        }
    }

    /// Announce more of the buffer. As long as there is more, every segment is acknowledged at once (`tcp_grow_window`).
    #[inline]
    fn open_window(&mut self, room: &ReceiveRoom) {
        if self.minds_room(room) && self.window.open(room.free(self.order.held())) {
            self.quick_acks |= 1;
        }
    }

    /// Whether the room of the receive buffer matters: it limits the sender, or an ACK may be delayed.
    #[inline]
    pub(crate) fn minds_room(&self, room: &ReceiveRoom) -> bool {
        self.config.delayed_acks || room.is_limited()
    }

    /// A segment arrived in order (`tcp_event_data_recv`).
    #[inline]
    fn note_arrival(&mut self, now: u64) {
        let since_ns = now - self.arrived_ns;
        if since_ns > DELACK_MIN_NS / 2 || self.ato_ns != DELACK_MIN_NS {
            self.adapt_delay(since_ns, now);
        }
        self.arrived_ns = now;
    }

    /// Adapt the delay to the time between segments. After a pause of a timeout the sender may have to open its window again.
    #[inline(never)]
    fn adapt_delay(&mut self, since_ns: u64, now: u64) {
        if self.packets == 1 {
            self.measure_rtt(now);
            return;
        }
        let rto_ns = self.rto_ns();
        if since_ns <= DELACK_MIN_NS / 2 {
            self.ato_ns = self.ato_ns / 2 + DELACK_MIN_NS / 2;
        } else if since_ns < self.ato_ns {
            self.ato_ns = (self.ato_ns / 2 + since_ns).min(rto_ns);
        } else if since_ns > rto_ns {
            self.quick_acks = QUICK_ACKS;
        }
    }

    /// No second segment came in time: the next ACK waits longer (`tcp_delack_timer_handler`).
    pub(crate) fn miss_second(&mut self) {
        if self.unacked > 0 {
            self.ato_ns = (2 * self.ato_ns).min(self.rto_ns());
        }
    }

    /// Timeout after the only round-trip time (RFC 6298 2.2 with Linux' lower bound of the variance).
    fn rto_ns(&self) -> u64 {
        self.rtt_ns + (2 * self.rtt_ns).max(RTO_MIN_NS)
    }

    /// How long an ACK waits: not longer than the round-trip time, unless that is very short (`tcp_send_delayed_ack`).
    #[inline]
    fn ack_delay_ns(&self) -> u64 {
        let most = self.rtt_ns.clamp(DELACK_MIN_NS, DELACK_MAX_NS);
        self.ato_ns.min(most)
    }

    /// Whether the ACK of a segment in order waits for a second one.
    #[inline]
    fn delay_policy(&mut self, at_once: bool) -> AckPolicy {
        self.unacked += 1;
        if self.quick_acks > 0 {
            self.quick_acks -= 1;
            return AckPolicy::Immediate;
        }
        if self.unacked >= 2 || at_once {
            return AckPolicy::Immediate;
        }
        AckPolicy::Delayed
    }

    /// Whether the ACK of a segment beyond a gap is combined with those of the next segments.
    #[inline(never)]
    fn compress_ack(&mut self) -> AckPolicy {
        if self.quick_acks > 0 {
            self.quick_acks -= 1;
            return AckPolicy::Immediate;
        }
        if self.compression.defers(self.order.next()) {
            AckPolicy::Compressed
        } else {
            AckPolicy::Immediate
        }
    }

    /// Congestion marks and the sender's answer to them (RFC 3168 section 6.1.3). Returns whether to acknowledge the segment at
    /// once: a sender that has reduced may have a window of one (`tcp_ecn_accept_cwr`).
    fn note_ecn(&mut self, packet: &Packet) -> bool {
        let has_reduced = packet.echo();
        if has_reduced {
            self.echo = false;
        }
        if packet.is_ce() && !self.echo {
            self.echo = true;
            self.quick_acks = self.quick_acks.max(ACKS_OF_MARK);
        }
        has_reduced
    }

    /// Whether an ACK waits that is due once the application has read everything.
    #[inline]
    pub(crate) fn is_pushed(&self) -> bool {
        self.pushed && self.unacked > 0
    }

    /// The segments that came last carried PSH.
    pub(crate) fn note_push(&mut self) {
        self.pushed = self.unacked > 0;
    }

    /// Whether an ACK waits for a second segment.
    pub(crate) fn has_waiting_ack(&self) -> bool {
        self.unacked > 0
    }

    /// Whether an ACK sent now would tell the sender more than the last one, apart from the window.
    pub(crate) fn has_news(&self) -> bool {
        self.has_waiting_ack()
            || self.n_blocks > 0
            || self.duplicate.is_some()
            || self.compression.has_deferred()
    }

    /// Start the delayed ACK timer unless it runs.
    #[inline]
    pub(crate) fn delay_ack(&mut self, cx: &mut World) {
        if self.timer.deadline == NEVER {
            let at = cx.now + self.ack_delay_ns();
            cx.timers
                .set(&mut self.timer, at, TimerKind::DelayedAck, self.id);
        }
    }

    /// Start the timer of compressed ACKs unless it runs.
    #[inline(never)]
    pub(crate) fn arm_compressed_ack(&mut self, cx: &mut World) {
        if let Some(wait_ns) = self
            .config
            .comp_sack_ns
            .filter(|_| self.compression.is_first())
        {
            let at = cx.now + wait_ns;
            cx.timers
                .set(&mut self.timer, at, TimerKind::DelayedAck, self.id);
        }
    }

    /// Build the ACK for the current state.
    // Inlined, so that the ACK stays in registers.
    #[inline(always)]
    pub(crate) fn make_ack(&mut self, cx: &mut World, data_ack: u32, window: u16) -> Packet {
        let next = self.order.next();
        let (sack, sack_bytes) = if self.n_blocks > 0 || self.duplicate.is_some() {
            self.store_blocks(cx)
        } else {
            (0, 0)
        };
        let ack = self.ack(next, data_ack, window, (sack, sack_bytes));
        self.last_ack_sent = next;
        self.unacked = 0;
        self.pushed = false;
        self.compression.clear();
        self.timer.deadline = NEVER;
        ack
    }

    /// Build an ACK that answers no segment: the application has read, and the window is larger.
    pub(crate) fn make_window_update(&self, data_ack: u32, window: u16) -> Packet {
        self.ack(self.last_ack_sent, data_ack, window, (WINDOW_UPDATE, 0))
    }

    /// An ACK up to `seq`; `sack` is a handle of the side table and the bytes of the option.
    #[inline(always)]
    fn ack(&self, seq: u32, dsn: u32, wnd: u16, (sack, sack_bytes): (u32, u16)) -> Packet {
        let ts = self.ts_recent;
        let header = Header {
            seq,
            dsn,
            ts,
            sack,
            wnd,
        };
        let bytes = self.config.ack_bytes + sack_bytes;
        let mut ack = Packet::new(Kind::Ack, self.id, bytes, header);
        if self.echo {
            ack.set_echo();
        }
        ack
    }

    /// Put the SACK option into the side table; returns its handle and its length.
    #[inline(never)]
    fn store_blocks(&mut self, cx: &mut World) -> (u32, u16) {
        let (sack, handle) = cx.net.sacks.store();
        if let Some(seq) = self.duplicate.take() {
            sack.push((seq, seq + 1));
            sack.dsack = true;
        }
        for &block in &self.blocks[..self.n_blocks] {
            if sack.len < self.config.max_blocks {
                sack.push(block);
            }
        }
        // RFC 2018: kind, length and two no-ops, then 8 bytes a block.
        let bytes = 4 + 8 * u16::from(sack.len);
        (handle, bytes)
    }

    /// A segment arrived beyond a gap: its block comes first (RFC 2018 section 4).
    fn note_block(&mut self, seq: u32) {
        let mut merged = (seq, seq + 1);
        let mut kept = [(0, 0); MAX_BLOCKS];
        let mut n = 0;
        for &(start, end) in &self.blocks[..self.n_blocks] {
            if start <= merged.1 && merged.0 <= end {
                merged = (merged.0.min(start), merged.1.max(end));
            } else {
                kept[n] = (start, end);
                n += 1;
            }
        }
        self.blocks[0] = merged;
        let room = n.min(MAX_BLOCKS - 1);
        self.blocks[1..=room].copy_from_slice(&kept[..room]);
        self.n_blocks = 1 + room;
    }

    /// Blocks now below the cumulative ACK are not reported any more.
    fn forget_blocks_in_order(&mut self) {
        let next = self.order.next();
        let mut n = 0;
        for i in 0..self.n_blocks {
            if self.blocks[i].1 > next {
                self.blocks[n] = self.blocks[i];
                n += 1;
            }
        }
        self.n_blocks = n;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mptcplab_scenario::RcvBuffer;

    const MS: u64 = 1_000_000;

    /// As much as is announced at once.
    fn room() -> ReceiveRoom {
        ReceiveRoom::new(RcvBuffer::Fixed(45 * 1448), 1448)
    }

    fn receiver() -> Receiver {
        Receiver::new(
            0,
            ReceiverConfig {
                delayed_acks: true,
                comp_sack_ns: None,
                ack_bytes: 52,
                max_blocks: 3,
                data_header: 52,
                base_rtt_ns: 30 * MS,
                entry: 0,
            },
            SubflowWindow::new(room().segments(), 1448),
        )
    }

    /// Whether the segment is acknowledged at once. Afterwards it counts as acknowledged in any case.
    fn is_quick(receiver: &mut Receiver, seq: u32, now: u64) -> bool {
        let header = Header {
            seq,
            ..Header::default()
        };
        let policy = receiver.on_data(&Packet::new(Kind::Data, 0, 1500, header), now, &room());
        receiver.unacked = 0;
        policy == AckPolicy::Immediate
    }

    fn quick_ones(receiver: &mut Receiver, from: u32, now: u64) -> usize {
        (from..from + 20)
            .filter(|&seq| is_quick(receiver, seq, now))
            .count()
    }

    #[test]
    fn sixteen_segments_are_acknowledged_at_once_after_a_pause_of_a_timeout() {
        let mut receiver = receiver();
        assert_eq!(quick_ones(&mut receiver, 0, 0), 16);
        // 200 ms and the round trip are not yet a timeout.
        assert_eq!(quick_ones(&mut receiver, 20, 230 * MS), 0);
        assert_eq!(quick_ones(&mut receiver, 40, 460 * MS + 1), 16);
    }

    /// Segments 150 ms apart on paths of 30 and 100 ms, each alone; then close together.
    #[test]
    fn the_wait_for_a_second_segment_grows_to_the_round_trip_time_and_back() {
        for (rtt_ms, waits_ms) in [(30, [40, 40, 40]), (100, [40, 80, 100])] {
            let mut receiver = receiver();
            receiver.on_handshake(Kind::Syn, 7 * MS);
            receiver.on_handshake(Kind::JoinAck, (7 + rtt_ms) * MS);
            receiver.packets = 1;
            receiver.quick_acks = 0;
            for (i, wait_ms) in waits_ms.into_iter().enumerate() {
                assert!(!is_quick(
                    &mut receiver,
                    i as u32,
                    150 * MS * (1 + i as u64)
                ));
                assert_eq!(receiver.ack_delay_ns(), wait_ms * MS, "{rtt_ms}: {i}");
                receiver.unacked = 1;
                receiver.miss_second();
                receiver.unacked = 0;
            }
            for seq in 3..40 {
                is_quick(&mut receiver, seq, 450 * MS + u64::from(seq) * MS);
            }
            assert_eq!(receiver.ack_delay_ns(), 40 * MS, "{rtt_ms}");
        }
    }

    /// The first data answer the SYN/ACK of the opening subflow; a joining one is answered before, and once.
    #[test]
    fn the_handshake_measures_the_round_trip_time_once() {
        let mut receiver = receiver();
        assert_eq!(receiver.rto_ns(), 230 * MS);
        receiver.on_handshake(Kind::Syn, 5 * MS);
        receiver.on_handshake(Kind::Syn, 1005 * MS);
        is_quick(&mut receiver, 0, 1125 * MS);
        is_quick(&mut receiver, 1, 1300 * MS);
        assert_eq!(receiver.rtt_ns, 120 * MS);
        assert_eq!(receiver.rto_ns(), 360 * MS);
        let mut joins = self::receiver();
        joins.on_handshake(Kind::Syn, 5 * MS);
        joins.on_handshake(Kind::JoinAck, 65 * MS);
        joins.on_handshake(Kind::JoinAck, 165 * MS);
        is_quick(&mut joins, 0, 500 * MS);
        assert_eq!(joins.rtt_ns, 60 * MS);
    }

    /// The first segment was lost; the one after it answers the SYN/ACK.
    #[test]
    fn whatever_segment_comes_first_measures_the_round_trip_time() {
        let mut receiver = receiver();
        receiver.on_handshake(Kind::Syn, 5 * MS);
        is_quick(&mut receiver, 1, 130 * MS);
        is_quick(&mut receiver, 0, 400 * MS);
        assert_eq!(receiver.rtt_ns, 125 * MS);
    }

    /// Segments 0 and 1 are missing and arrive last. The ACK of 0 is the first of three that leave at once while 1 is missing,
    /// unless segments behind the gap come into order with it.
    #[test]
    fn the_ack_of_a_segment_that_fills_a_part_of_a_gap_leaves_at_once_and_counts() {
        let mut receiver = receiver();
        receiver.config.comp_sack_ns = Some(MS);
        let mut quick = |seq| {
            receiver.quick_acks = 0;
            is_quick(&mut receiver, seq, 0)
        };
        let later = [2, 3, 4, 6, 7].map(&mut quick);
        assert_eq!(later, [true, true, true, false, false]);
        assert_eq!([0, 8, 9, 10].map(&mut quick), [true, true, true, false]);
        // Up to 4 in order now; 5 is missing.
        assert_eq!(
            [1, 11, 12, 13, 14].map(&mut quick),
            [true, true, true, true, false]
        );
    }

    #[test]
    fn push_asks_for_an_ack_until_one_is_sent() {
        let mut receiver = receiver();
        receiver.quick_acks = 0;
        let packet = |seq, wnd| {
            let header = Header {
                seq,
                wnd,
                ..Header::default()
            };
            Packet::new(Kind::Data, 0, 1500, header)
        };
        assert_eq!(
            receiver.on_data(&packet(0, 0), 0, &room()),
            AckPolicy::Delayed
        );
        assert!(!receiver.is_pushed());
        assert_eq!(
            receiver.on_data(&packet(1, 1), 0, &room()),
            AckPolicy::Immediate
        );
        receiver.unacked = 0;
        receiver.pushed = false;
        assert_eq!(
            receiver.on_data(&packet(2, 1), 0, &room()),
            AckPolicy::Delayed
        );
        assert!(receiver.is_pushed());
    }

    #[test]
    fn a_duplicate_makes_the_receiver_answer_sixteen_segments_at_once() {
        let mut receiver = receiver();
        assert_eq!(quick_ones(&mut receiver, 0, 0), 16);
        assert!(is_quick(&mut receiver, 7, MS));
        assert_eq!(quick_ones(&mut receiver, 20, 2 * MS), 16);
    }
}
