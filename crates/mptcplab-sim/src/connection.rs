//! A TCP or MPTCP connection above its subflows: data sequence space, shared receive window, what to send next.
//!
//! Plain TCP is a connection with one subflow whose data sequence numbers equal its segment numbers.

use crate::event::{NEVER, Timer};
use crate::net::World;
use crate::packet::WINDOW_UNLIMITED;
use crate::reassembly::{Arrival, Reassembly};
use crate::scheduler::{Scheduler, is_available, only_backups, pick_for_reinjection};
use crate::sender::{Phase, Sender};
use mptcplab_cc::{CaState, Conn as CcTable};
use mptcplab_scenario::{RcvBuffer, Traffic};
use mptcplab_trace::EventKind;
use std::collections::VecDeque;
use std::ops::Range;

/// No data sequence number is ever this large.
pub(crate) const DSN_MAX: u32 = u32::MAX >> 1;

/// Origin of data in the reinjection queue that no subflow has sent.
const NO_ORIGIN: u32 = u32::MAX;

/// The sending side.
pub(crate) struct Connection {
    /// Index of the flow in the run's list.
    pub(crate) flow: u32,
    pub(crate) mptcp: bool,
    /// Subflows, as indices of this part of the topology.
    pub(crate) subflows: Range<usize>,
    /// The subflow that opens the connection; the others join.
    pub(crate) opener: usize,
    /// The coupled algorithms' table.
    pub(crate) cc: CcTable,
    pub(crate) scheduler: Scheduler,
    pub(crate) mss: u16,
    /// Next data sequence number to assign.
    pub(crate) next: u32,
    /// Lowest data sequence number not acknowledged at connection level.
    pub(crate) una: u32,
    /// First data sequence number beyond the receive window.
    window_end: u32,
    /// First data sequence number that the application has not written yet.
    pub(crate) written: u32,
    /// The last segment of a fixed-size transfer: (data sequence number, payload).
    last: Option<(u32, u16)>,
    /// To be sent again on another subflow: data sequence numbers and the subflow that failed with them.
    reinject: VecDeque<(u32, u32)>,
    reinject_enabled: bool,
    pub(crate) reinjected: u64,
    pub(crate) sent_bytes: u64,
    /// The window forbids to send although data and cwnd are there, since then.
    blocked_since: u64,
    blocked_ns: u64,
    pub(crate) traffic: Traffic,
    /// The application is in an active period.
    pub(crate) active: bool,
    pub(crate) start_ns: u64,
    pub(crate) stop_ns: u64,
    pub(crate) timer: Timer,
    pub(crate) rx: ConnectionReceiver,
}

/// What a connection is made from.
pub(crate) struct ConnectionConfig {
    pub(crate) flow: u32,
    pub(crate) mptcp: bool,
    pub(crate) subflows: Range<usize>,
    pub(crate) scheduler: Scheduler,
    pub(crate) mss: u16,
    pub(crate) reinject: bool,
    pub(crate) traffic: Traffic,
    pub(crate) start_ns: u64,
    pub(crate) stop_ns: u64,
    pub(crate) buffer: RcvBuffer,
}

impl Connection {
    pub(crate) fn new(c: ConnectionConfig) -> Self {
        let rx = ConnectionReceiver::new(c.buffer, c.mss);
        Self {
            flow: c.flow,
            mptcp: c.mptcp,
            opener: c.subflows.start,
            subflows: c.subflows,
            cc: CcTable::new(),
            scheduler: c.scheduler,
            mss: c.mss,
            next: 0,
            una: 0,
            window_end: rx.window_end(),
            written: 0,
            last: None,
            reinject: VecDeque::new(),
            reinject_enabled: c.reinject && c.mptcp,
            reinjected: 0,
            sent_bytes: 0,
            blocked_since: NEVER,
            blocked_ns: 0,
            traffic: c.traffic,
            active: false,
            start_ns: c.start_ns,
            stop_ns: c.stop_ns,
            timer: Timer::OFF,
            rx,
        }
    }

    /// The application writes `bytes` and closes.
    pub(crate) fn write_size(&mut self, bytes: u64) {
        let mss = u64::from(self.mss);
        let segments = bytes.div_ceil(mss);
        self.written = self.next + segments as u32;
        let last = bytes - (segments - 1) * mss;
        self.last = Some((self.written - 1, last as u16));
        self.rx.complete_at = Some((self.written, last as u16));
    }

    /// Payload of a data sequence number.
    #[inline]
    pub(crate) fn payload(&self, dsn: u32) -> u16 {
        match self.last {
            Some((last, bytes)) if last == dsn => bytes,
            _ => self.mss,
        }
    }

    /// Connection-level part of an ACK: data acknowledged and the window.
    #[inline]
    pub(crate) fn on_data_ack(&mut self, data_ack: u32, window: u16) {
        self.una = self.una.max(data_ack);
        let end = if window == WINDOW_UNLIMITED {
            DSN_MAX
        } else {
            data_ack + (u32::from(window) << self.rx.window_shift)
        };
        // A window edge never moves back (RFC 8684 section 3.3.4).
        self.window_end = self.window_end.max(end);
    }

    /// Whether new data exists that the window allows to send.
    #[inline]
    pub(crate) fn has_sendable(&self) -> bool {
        self.next < self.written && self.next < self.window_end
    }

    /// Segments not yet assigned to a subflow.
    pub(crate) fn backlog(&self) -> u32 {
        self.written - self.next
    }

    /// Segments that the receive window still admits.
    pub(crate) fn window_room(&self) -> u32 {
        self.window_end.saturating_sub(self.next)
    }

    #[inline]
    fn take_new(&mut self) -> (u32, u16) {
        let dsn = self.next;
        let payload = self.payload(dsn);
        self.next += 1;
        self.sent_bytes += u64::from(payload);
        (dsn, payload)
    }

    /// Send the next new segment on this subflow.
    #[inline]
    fn send_next(&mut self, cx: &mut World, sender: &mut Sender) {
        let (dsn, payload) = self.take_new();
        sender.send_new(cx, &mut self.cc, dsn, payload);
    }

    /// Send what may be sent. `senders` are all subflows of this part of the topology; the event that makes room
    /// happened on number `acked`.
    #[inline]
    pub(crate) fn push(&mut self, cx: &mut World, senders: &mut [Sender], acked: usize) {
        if self.subflows.len() == 1 && self.reinject.is_empty() {
            let sender = &mut senders[self.subflows.start];
            self.push_single(cx, sender);
        } else {
            let range = self.subflows.clone();
            self.push_scheduled(cx, &mut senders[range], acked);
        }
    }

    #[inline]
    fn push_single(&mut self, cx: &mut World, sender: &mut Sender) {
        if sender.phase != Phase::Established {
            return;
        }
        let before = sender.sock.tp.snd_nxt;
        let mut inflight = sender.inflight();
        // The window is read anew: the first packet after a pause may shrink it.
        while inflight < sender.sock.tp.snd_cwnd && self.has_sendable() && !sender.is_paced_out(cx)
        {
            self.send_next(cx, sender);
            inflight += 1;
        }
        let full = inflight >= sender.sock.tp.snd_cwnd;
        if full || sender.sock.tp.snd_nxt != before {
            sender.validate_cwnd(cx.now, &mut self.cc);
        }
        if !full && !self.has_sendable() {
            sender.note_app_limited();
        }
        self.note_blocked(cx.now, !full);
    }

    fn push_scheduled(&mut self, cx: &mut World, senders: &mut [Sender], acked: usize) {
        let base = self.subflows.start;
        for sender in senders.iter_mut().filter(|s| !s.assigned.is_empty()) {
            self.send_assigned(cx, sender);
        }
        if !self.reinject.is_empty() {
            self.push_reinjections(cx, senders, base as u32);
        }
        while self.has_sendable() {
            let (backlog, room) = (self.backlog(), self.window_room());
            let Some((i, burst)) = self.scheduler.pick(senders, backlog, room, self.mss) else {
                break;
            };
            self.give(cx, &mut senders[i], burst);
        }
        for (i, sender) in senders.iter_mut().enumerate() {
            if sender.last_sent_ns == cx.now || base + i == acked {
                sender.validate_after_push(cx.now, &mut self.cc);
            }
        }
        let starved = !self.has_sendable();
        let room = starved && self.note_starved(senders);
        self.note_blocked(cx.now, room);
    }

    /// There is nothing to send: subflows with room are application-limited. Returns whether there are any.
    fn note_starved(&mut self, senders: &mut [Sender]) -> bool {
        let backups = only_backups(senders);
        let mut room = false;
        for sender in senders.iter_mut() {
            let idle = sender.phase == Phase::Established && sender.assigned.is_empty();
            if idle && sender.has_room() {
                room |= sender.backup == backups && is_available(sender);
                sender.note_app_limited();
            }
        }
        room
    }

    /// Give the next `burst` segments to a subflow and send what its window allows.
    #[inline]
    fn give(&mut self, cx: &mut World, sender: &mut Sender, burst: u32) {
        if burst == 1 && sender.has_room() && sender.assigned.is_empty() && !sender.is_paced_out(cx)
        {
            self.send_next(cx, sender);
            return;
        }
        for _ in 0..burst.min(self.backlog()).min(self.window_room()) {
            let (dsn, _) = self.take_new();
            sender.assigned.push_back(dsn);
        }
        self.send_assigned(cx, sender);
    }

    /// Send what the scheduler gave to a subflow, as far as its window allows.
    #[inline]
    fn send_assigned(&mut self, cx: &mut World, sender: &mut Sender) {
        while !sender.assigned.is_empty() && sender.phase == Phase::Established && sender.has_room()
        {
            if sender.is_paced_out(cx) {
                return;
            }
            let Some(dsn) = sender.assigned.pop_front() else {
                return;
            };
            let payload = self.payload(dsn);
            sender.send_new(cx, &mut self.cc, dsn, payload);
        }
    }

    /// Data of failed subflows go first, each on a subflow other than the one that failed with them.
    #[inline(never)]
    fn push_reinjections(&mut self, cx: &mut World, senders: &mut [Sender], base: u32) {
        while let Some(&(dsn, origin)) = self.reinject.front() {
            if dsn < self.una {
                self.reinject.pop_front();
                continue;
            }
            let Some(i) = pick_for_reinjection(senders, origin.wrapping_sub(base) as usize) else {
                return;
            };
            if senders[i].is_paced_out(cx) {
                return;
            }
            self.reinject.pop_front();
            self.reinjected += u64::from(origin != NO_ORIGIN);
            let payload = self.payload(dsn);
            senders[i].send_new(cx, &mut self.cc, dsn, payload);
        }
    }

    /// A subflow timed out or was removed: its data are to be sent again elsewhere.
    pub(crate) fn reinject_from(&mut self, sender: &mut Sender, removed: bool) {
        if self.subflows.len() == 1 || !(self.reinject_enabled || removed) {
            return;
        }
        let id = sender.id;
        let sent = sender.hand_over_sent(self.una);
        self.reinject.extend(sent.into_iter().map(|dsn| (dsn, id)));
        // What was assigned but never sent may go anywhere, also to where it was.
        self.reinject
            .extend(sender.assigned.drain(..).map(|dsn| (dsn, NO_ORIGIN)));
        self.reinject.make_contiguous().sort_unstable();
    }

    /// Send a tail loss probe with new data if there is any. Returns whether it did.
    pub(crate) fn push_probe(&mut self, cx: &mut World, sender: &mut Sender) -> bool {
        if self.mptcp || !self.has_sendable() || sender.recovery.tlp_high_seq.is_some() {
            return false;
        }
        self.send_next(cx, sender);
        true
    }

    #[inline]
    fn note_blocked(&mut self, now: u64, room: bool) {
        let blocked = room && self.next < self.written && self.next >= self.window_end;
        if blocked != (self.blocked_since != NEVER) {
            if blocked {
                self.blocked_since = now;
            } else {
                self.blocked_ns += now - self.blocked_since;
                self.blocked_since = NEVER;
            }
        }
    }

    /// Time blocked by the receive window up to now.
    pub(crate) fn blocked_ns(&self, now: u64) -> u64 {
        self.blocked_ns
            + if self.blocked_since == NEVER {
                0
            } else {
                now - self.blocked_since
            }
    }

    /// Backups that nothing is sent on are not in the coupling set (algorithms.md 1.1, "may carry data"): with the least
    /// window of 1 they would hold back the subflows that work. Called when a subflow comes, goes, fails or recovers.
    pub(crate) fn update_backups(&mut self, senders: &mut [Sender]) {
        let senders = &mut senders[self.subflows.clone()];
        let in_use = only_backups(senders);
        for sender in senders
            .iter_mut()
            .filter(|s| s.backup && s.phase == Phase::Established)
        {
            sender.sock.set_usable(&mut self.cc, in_use);
        }
    }

    /// Mark a subflow that timed out as failed if another one can take over.
    pub(crate) fn note_timeout(&mut self, cx: &mut World, senders: &mut [Sender], i: usize) {
        let others = self
            .subflows
            .clone()
            .any(|k| k != i && senders[k].is_usable());
        let sender = &mut senders[i];
        if !others || sender.recovery.state != CaState::Loss {
            return;
        }
        if !sender.failed {
            sender.failed = true;
            sender.log(cx, EventKind::SubflowFailed, sender.retransmits);
        }
        self.reinject_from(&mut senders[i], false);
        self.update_backups(senders);
    }
}

/// The receiving side: in-order delivery to the application and the shared window.
pub(crate) struct ConnectionReceiver {
    order: Reassembly,
    mss: u16,
    buffer: RcvBuffer,
    /// Window in segments beyond the next one expected.
    window: u32,
    pub(crate) window_shift: u32,
    pub(crate) duplicates: u64,
    pub(crate) first_byte: bool,
    /// First data sequence number after the transfer, and the payload of its last segment.
    complete_at: Option<(u32, u16)>,
    pub(crate) completed: bool,
    /// Auto-tuning (Linux `tcp_rcv_space_adjust`): data in order at the start of the round, and when it began.
    round_next: u32,
    round_ns: u64,
}

/// Start of an auto-tuned window: half of Linux' default buffer of 128 KiB.
const AUTO_WINDOW_START_BYTES: u64 = 65_536;

impl ConnectionReceiver {
    fn new(buffer: RcvBuffer, mss: u16) -> Self {
        let segments =
            |bytes: u64| ((bytes / u64::from(mss)).clamp(1, u64::from(DSN_MAX) / 4)) as u32;
        let (window, largest) = match buffer {
            RcvBuffer::Unlimited => (DSN_MAX, 0),
            RcvBuffer::Fixed(bytes) => (segments(bytes), segments(bytes)),
            RcvBuffer::Auto { max_bytes } => (
                segments(AUTO_WINDOW_START_BYTES.min(max_bytes)),
                segments(max_bytes),
            ),
        };
        // The largest window must fit below the value that means "unlimited".
        let window_shift = (0..31)
            .find(|s| (largest >> s) < u32::from(WINDOW_UNLIMITED))
            .unwrap_or(31);
        Self {
            order: Reassembly::default(),
            mss,
            buffer,
            window,
            window_shift,
            duplicates: 0,
            first_byte: false,
            complete_at: None,
            completed: false,
            round_next: 0,
            round_ns: 0,
        }
    }

    fn window_end(&self) -> u32 {
        match self.advertised() {
            WINDOW_UNLIMITED => DSN_MAX,
            window => u32::from(window) << self.window_shift,
        }
    }

    /// The next data sequence number expected.
    #[inline]
    pub(crate) fn next(&self) -> u32 {
        self.order.next()
    }

    /// Window field of an ACK sent now; rounded up, so that a small window is never advertised as none.
    #[inline]
    pub(crate) fn advertised(&self) -> u16 {
        if self.window == DSN_MAX {
            return WINDOW_UNLIMITED;
        }
        let scaled = self.window.div_ceil(1 << self.window_shift);
        scaled.min(u32::from(WINDOW_UNLIMITED) - 1) as u16
    }

    /// Window in bytes, for the trace; 0 when unlimited.
    pub(crate) fn window_bytes(&self) -> u64 {
        if self.window == DSN_MAX {
            0
        } else {
            u64::from(self.window) * u64::from(self.mss)
        }
    }

    /// Bytes kept out of order.
    pub(crate) fn ooo_bytes(&self) -> u64 {
        u64::from(self.order.held()) * u64::from(self.mss)
    }

    /// Application bytes delivered in order.
    pub(crate) fn delivered_bytes(&self) -> u64 {
        let segments = u64::from(self.order.next());
        let short = match self.complete_at {
            Some((end, last)) if self.order.next() >= end => u64::from(self.mss - last),
            _ => 0,
        };
        segments * u64::from(self.mss) - short
    }

    /// Take in a segment's data.
    #[inline]
    pub(crate) fn on_data(&mut self, cx: &mut World, flow: u32, dsn: u32) {
        match self.order.insert(dsn) {
            Arrival::InOrder(_) => {
                if !self.first_byte {
                    self.first_byte = true;
                    cx.rec.flow_event(cx.now, EventKind::FirstByte, flow, 0);
                }
                if let Some((end, _)) = self
                    .complete_at
                    .filter(|c| self.order.next() >= c.0 && !self.completed)
                {
                    debug_assert_eq!(self.order.next(), end);
                    self.completed = true;
                    cx.rec.flow_event(
                        cx.now,
                        EventKind::FlowCompleted,
                        flow,
                        self.delivered_bytes(),
                    );
                }
            }
            Arrival::OutOfOrder => {}
            Arrival::Duplicate => self.duplicates += 1,
        }
    }

    /// Whether the window follows the measured rate.
    #[inline]
    pub(crate) fn tunes(&self) -> bool {
        matches!(self.buffer, RcvBuffer::Auto { .. })
    }

    /// Once per RTT: room for twice what the application read in the last one, and for its growth.
    pub(crate) fn tune(&mut self, now: u64, srtt_us: u32) {
        let RcvBuffer::Auto { max_bytes } = self.buffer else {
            return;
        };
        let rtt_ns = u64::from(srtt_us >> 3) * 1000;
        if now - self.round_ns < rtt_ns || rtt_ns == 0 {
            return;
        }
        let copied = self.order.next() - self.round_next;
        let largest = (max_bytes / u64::from(self.mss)).clamp(1, u64::from(DSN_MAX) / 4) as u32;
        let wanted = (2 * copied + 16).saturating_mul(2).min(largest);
        self.window = self.window.max(wanted);
        self.round_next = self.order.next();
        self.round_ns = now;
    }
}
