//! The sending half of a TCP or MPTCP connection, above its subflows: data sequence space, what to send next and where.
//!
//! Plain TCP is a connection with one subflow whose data sequence numbers equal its segment numbers. Subflows are arguments:
//! they belong to the [`Connection`](super::connection::Connection), and are counted from 0 here.

use super::data_rtx::DataRtx;
use super::idle_subflows::IdleSubflows;
use crate::net::World;
use crate::net::event::{NEVER, Timer, TimerKind};
use crate::net::packet::{Packet, WINDOW_UNLIMITED};
use crate::stream::DSN_MAX;
use crate::stream::messages::Place;
use crate::tcp::sender::Sender;
use crate::tcp::state::Phase;
use crate::tcp::subflow::Subflow;
use mptcplab_cc::{CaState, Conn as CcTable};
use mptcplab_model::sched::minrtt::minrtt;
use mptcplab_model::sched::{
    Assignment, Path, Scheduler, Segments, SendQueue, only_backups, penalised_window,
};
use mptcplab_prefetch::prefetch_between;
use mptcplab_trace::EventKind;
use std::collections::VecDeque;

/// Consecutive timeouts after which a subflow counts as failed if the scenario does not say: the multipath-tcp.org kernels
/// mark it potentially failed (`pf`) at the first.
const STALE_AFTER: u32 = 1;

/// Short segments that are remembered even if they are acknowledged: a subflow may still have to send its copy of one.
const KEPT_SHORT: usize = 1024;

/// The sending half of a connection.
// In this order: what most ACKs need, and the rest; see `prefetch`. At the beginning of a cache line, so that it lies in as few as it
// fills.
#[repr(C, align(64))]
pub(crate) struct ConnectionSender {
    /// Next data sequence number to assign.
    pub(crate) next: u32,
    /// Lowest data sequence number not acknowledged at connection level.
    pub(super) una: u32,
    /// First data sequence number beyond the receive window.
    window_end: u32,
    /// Scale of the window field (RFC 7323 section 2).
    window_shift: u32,
    /// First data sequence number that the application has not written yet.
    pub(crate) written: u32,
    /// The latest segment that is not full, the last of a transfer or of a message: (data sequence number, payload).
    last: Option<(u32, u16)>,
    pub(super) mss: u16,
    pub(super) mptcp: bool,
    /// The first segment has to be acknowledged before anything else is sent and subflows join.
    pub(super) is_unconfirmed: bool,
    pub(super) reinject_enabled: bool,
    /// An MPTCP connection as upstream Linux has it.
    is_upstream: bool,
    /// When the scheduler was last asked, no subflow had room. Since then only subflows with an ACK or a timer can have got some,
    /// and after each of these it is asked again, unless it [takes any room](Scheduler::takes_any_room).
    all_full: bool,
    /// The coupled algorithms' table.
    pub(crate) cc: CcTable,
    pub(crate) sent_bytes: u64,
    /// Since when only the receive window has prevented sending; [`NEVER`] if it does not.
    blocked_since: u64,
    /// `None` with one subflow, which has nothing to be scheduled. Apart, since it is large.
    scheduler: Option<Box<Scheduler>>,
    /// To be sent again on another subflow: data sequence numbers and the subflow that failed with them.
    pub(super) reinject: VecDeque<(u32, u32)>,
    /// Index of the connection in this part of the topology.
    pub(crate) index: u32,
    /// From the oldest data that are not acknowledged to the end of the latest burst.
    reach: u32,
    /// After the first segment that is not full and was not acknowledged yet; 0 if there is none.
    small_end: u32,
    /// The subflow that opens the connection; the others join.
    pub(super) opener: usize,
    /// On a connection that lasts: earlier ones.
    earlier_short: VecDeque<(u32, u16)>,
    /// Consecutive timeouts after which a subflow counts as failed, unless the connection has a timer of its own.
    pub(super) stale_after: u32,
    pub(crate) data_rtx: Option<Box<DataRtx>>,
    /// With upstream's scheduler: idle subflows leave the coupling set.
    idle_subflows: Option<Box<IdleSubflows>>,
    /// Scheduled changes of priority still to come: time, subflow, whether it becomes a backup.
    priorities: VecDeque<(u64, usize, bool)>,
    pub(crate) priority_timer: Timer,
    pub(crate) reinjected: u64,
    blocked_ns: u64,
}

/// Constants of a connection's sending half, from the scenario.
pub(crate) struct ConnectionConfig {
    pub(crate) index: u32,
    pub(crate) mptcp: bool,
    /// With upstream's scheduler: the first segment is sent alone.
    pub(crate) confirms: bool,
    pub(crate) scheduler: Scheduler,
    pub(crate) mss: u16,
    pub(crate) reinject: bool,
    pub(crate) stale_after: Option<u32>,
    /// In time order.
    pub(crate) priorities: VecDeque<(u64, usize, bool)>,
}

impl ConnectionSender {
    /// `window`: the end of the receiver's window before the first segment, and its scale.
    pub(super) fn new(c: ConnectionConfig, subflows: usize, window: (u32, u32)) -> Self {
        let is_upstream = c.scheduler.is_upstream;
        let upstream = is_upstream && subflows > 1;
        let data_rtx = (upstream && c.mptcp && c.reinject).then(|| DataRtx::new(c.stale_after));
        let is_unconfirmed = c.mptcp && is_upstream && c.confirms;
        Self {
            index: c.index,
            mptcp: c.mptcp,
            opener: 0,
            is_unconfirmed,
            cc: CcTable::new(),
            scheduler: (subflows > 1).then(|| Box::new(c.scheduler)),
            mss: c.mss,
            next: 0,
            una: 0,
            window_end: if is_unconfirmed {
                window.0.min(1)
            } else {
                window.0
            },
            window_shift: window.1,
            written: 0,
            last: None,
            earlier_short: VecDeque::new(),
            reinject: VecDeque::new(),
            reinject_enabled: c.reinject && c.mptcp,
            is_upstream: c.mptcp && is_upstream,
            stale_after: c.stale_after.unwrap_or(STALE_AFTER),
            data_rtx: data_rtx.map(Box::new),
            idle_subflows: upstream.then(Box::default),
            all_full: false,
            reach: 0,
            small_end: 0,
            priorities: c.priorities,
            priority_timer: Timer::OFF,
            reinjected: 0,
            sent_bytes: 0,
            blocked_since: NEVER,
            blocked_ns: 0,
        }
    }

    /// The application writes `bytes` and no more before they are delivered. Returns the end of the transfer and the
    /// payload of its last segment, which may be short.
    pub(super) fn write_size(&mut self, bytes: u64) -> (u32, u16) {
        let mss = u64::from(self.mss);
        let segments = bytes.div_ceil(mss);
        self.written = self.next + segments as u32;
        let last = (bytes - (segments - 1) * mss) as u16;
        self.last = Some((self.written - 1, last));
        (self.written, last)
    }

    /// The application writes `bytes` behind what it wrote before (without Nagle's algorithm). As in `tcp_sendmsg`, they first
    /// fill the last segment if no subflow has it yet.
    pub(super) fn append(&mut self, bytes: u64) -> Place {
        let mss = u64::from(self.mss);
        let (mut left, mut first) = (bytes, self.written);
        let next = self.next;
        let tail = self.last.take_if(|last| last.0 >= next);
        if let Some((tail, filled)) = tail {
            let more = left.min(mss - u64::from(filled));
            left -= more;
            first = tail;
            // At most one segment, which fits.
            self.note_short(tail, filled + more as u16);
        }
        let segments = left.div_ceil(mss);
        self.written += segments as u32;
        if segments > 0 {
            let payload = left - (segments - 1) * mss;
            self.note_short(self.written - 1, payload as u16);
        }
        let end = self.written;
        Place {
            first,
            end,
            missing_bytes: self.mss - self.payload(end - 1),
        }
    }

    /// The segment `dsn`, the last one so far, has this much payload.
    fn note_short(&mut self, dsn: u32, payload: u16) {
        if payload == self.mss {
            // It was the latest short one, or is no short one at all.
            self.last = self.last.or_else(|| self.earlier_short.pop_back());
            return;
        }
        self.earlier_short.extend(self.last.replace((dsn, payload)));
        let una = self.una;
        while self.earlier_short.len() > KEPT_SHORT
            && self.earlier_short.front().is_some_and(|s| s.0 < una)
        {
            self.earlier_short.pop_front();
        }
    }

    /// Have what most ACKs need fetched into the cache.
    #[inline(always)]
    pub(crate) fn prefetch(&self) {
        prefetch_between(&self.next, &self.earlier_short);
    }

    /// The subflow that opens the connection.
    pub(crate) fn opener(&self) -> usize {
        self.opener
    }

    /// Whether all that was written is known to be delivered.
    pub(crate) fn is_delivered(&self) -> bool {
        self.una >= self.written
    }

    /// Payload of a data sequence number.
    #[inline]
    pub(crate) fn payload(&self, dsn: u32) -> u16 {
        match self.last {
            Some((last, bytes)) if last == dsn => bytes,
            Some(_) if !self.earlier_short.is_empty() => self.earlier_payload(dsn),
            _ => self.mss,
        }
    }

    #[inline(never)]
    fn earlier_payload(&self, dsn: u32) -> u16 {
        let found = self.earlier_short.binary_search_by_key(&dsn, |s| s.0);
        found.map_or(self.mss, |i| self.earlier_short[i].1)
    }

    /// An ACK arrived before the first segment was acknowledged: Linux falls back
    /// to TCP if that segment is lost and overtaken. Returns whether it is acknowledged now.
    pub(super) fn confirm(&mut self, sender: &mut Sender, packet: &Packet) -> bool {
        self.is_unconfirmed = packet.dsn() == 0;
        if !self.is_unconfirmed {
            self.on_data_ack(sender, *packet);
        }
        !self.is_unconfirmed
    }

    /// Connection-level part of an ACK that arrived on a subflow: data acknowledged and the window.
    #[inline(always)]
    pub(crate) fn on_data_ack(&mut self, sender: &mut Sender, packet: Packet) {
        self.una = self.una.max(packet.dsn());
        let end = if packet.wnd() == WINDOW_UNLIMITED {
            DSN_MAX
        } else {
            packet.dsn() + self.window_of(sender, packet.seq(), packet.wnd())
        };
        // A window edge never moves back (RFC 8684 section 3.3.4).
        self.window_end = self.window_end.max(end);
    }

    /// The receive window in segments after an ACK. Linux takes the subflow's own, which an ACK that acknowledges nothing there
    /// cannot make smaller (`tcp_may_update_window`). While the subflow recovers, the end of the window that follows from it is
    /// too high. The receiver drops what lies beyond the window that it has announced, and the connection's timer repairs that.
    #[cold]
    #[inline(never)]
    fn window_of(&self, sender: &mut Sender, ack: u32, field: u16) -> u32 {
        let announced = u32::from(field) << self.window_shift;
        if self.data_rtx.is_none() {
            return announced;
        }
        let known = &mut sender.mptcp.window;
        let una = sender.sock.tp.snd_una;
        if ack < una {
            return *known;
        }
        let acknowledges = ack > una;
        if acknowledges || announced > *known || announced == 0 {
            *known = announced;
        }
        *known
    }

    /// Whether new data exists that the window allows to send.
    #[inline]
    pub(crate) fn has_sendable(&self) -> bool {
        self.next < self.written && self.next < self.window_end
    }

    /// Segments of new data that the window allows to send.
    #[inline]
    fn sendable(&self) -> u32 {
        self.written.min(self.window_end) - self.next
    }

    /// The send queue as the scheduler sees it.
    #[inline]
    fn send_queue(&self, now_ns: u64) -> SendQueue {
        SendQueue {
            now_ns,
            una: self.una,
            next: self.next,
            written: self.written,
            window_end: self.window_end,
            mss: self.mss,
        }
    }

    /// Data is there, and the receive window forbids to send it.
    #[inline]
    fn is_window_blocked(&self) -> bool {
        self.next < self.written && self.next >= self.window_end && !self.is_unconfirmed
    }

    #[inline(always)]
    fn take_new(&mut self) -> (u32, u16) {
        let dsn = self.next;
        let payload = self.payload(dsn);
        self.next += 1;
        self.sent_bytes += u64::from(payload);
        (dsn, payload)
    }

    /// Send the next new segment on this subflow.
    #[inline(always)]
    fn send_next<const PLAIN: bool>(&mut self, cx: &mut World, sender: &mut Sender) {
        let (dsn, payload) = self.take_new();
        sender.send_new::<PLAIN>(cx, &mut self.cc, dsn, payload);
    }

    /// Send what may be sent; the event that makes room happened on subflow `acked`.
    #[inline]
    pub(super) fn push(&mut self, cx: &mut World, subflows: &mut [Subflow], acked: usize) {
        match subflows {
            [only] if self.reinject.is_empty() => self.push_single(cx, &mut only.sender),
            _ => self.push_scheduled(cx, subflows, acked),
        }
    }

    #[inline(never)]
    fn push_single(&mut self, cx: &mut World, sender: &mut Sender) {
        if sender.phase == Phase::Established {
            let full = self.fill::<false>(cx, sender, None);
            self.note_filled(cx, sender, full);
        }
    }

    /// As [`push`](Self::push), after an ACK on the fast path of a sender that [is plain](Sender::is_plain).
    #[inline(always)]
    pub(super) fn push_plain(&mut self, cx: &mut World, subflows: &mut [Subflow], acked: usize) {
        let is_single = subflows.len() == 1;
        let sender = &mut subflows[acked].sender;
        if !self.reinject.is_empty() || !is_single && !self.is_only_choice(sender) {
            self.push_scheduled(cx, subflows, acked);
            return;
        }
        let full = self.fill::<true>(cx, sender, (!is_single).then_some(acked));
        if is_single || full {
            self.note_filled(cx, sender, full);
        } else {
            self.push_scheduled(cx, subflows, acked);
        }
    }

    /// Whether the scheduler would choose this subflow, which is plain, as long as it has room: no other one has.
    #[inline(always)]
    fn is_only_choice(&self, sender: &Sender) -> bool {
        self.all_full
            && !sender.mptcp.backup
            && sender.mptcp.assigned.is_empty()
            && sender.state() != CaState::Loss
    }

    /// Send what the window of a subflow allows, which is established. Returns whether it is full: otherwise there is nothing
    /// to send. `PLAIN`: it [is plain](Sender::is_plain). `choice`: its index where the scheduler would have been asked.
    #[inline(always)]
    fn fill<const PLAIN: bool>(
        &mut self,
        cx: &mut World,
        sender: &mut Sender,
        choice: Option<usize>,
    ) -> bool {
        let before = sender.sock.tp.snd_nxt;
        let mut inflight = sender.inflight();
        let full = loop {
            // cwnd is read in every turn, because the first packet after a pause may reduce it.
            if inflight >= sender.sock.tp.snd_cwnd {
                break true;
            }
            let may_send = self.has_sendable()
                && (PLAIN || !sender.is_paced_out(cx) && sender.may_send(cx.now, self.sendable()));
            if !may_send {
                break !PLAIN && sender.tso.deferred;
            }
            if let (Some(subflow), Some(scheduler)) = (choice, &mut self.scheduler) {
                scheduler.note_only_choice(subflow);
            }
            self.send_next::<PLAIN>(cx, sender);
            inflight += 1;
        };
        if full || sender.sock.tp.snd_nxt != before {
            // An application that has more data than may be sent stands for one that waits for room in the send buffer.
            let waits = self.next < self.written;
            sender.validate_cwnd(cx.now, &mut self.cc, full, waits);
        }
        full
    }

    #[inline(always)]
    fn note_filled(&mut self, cx: &mut World, sender: &mut Sender, full: bool) {
        if !full && self.has_sent_all() {
            self.note_app_limited(sender);
        }
        self.note_blocked(cx.now, !full);
    }

    #[inline(never)]
    fn push_scheduled(&mut self, cx: &mut World, subflows: &mut [Subflow], acked: usize) {
        let Some(mut scheduler) = self.scheduler.take() else {
            return;
        };
        self.push_with(&mut scheduler, cx, subflows, acked);
        self.scheduler = Some(scheduler);
    }

    #[inline]
    fn push_with(
        &mut self,
        scheduler: &mut Scheduler,
        cx: &mut World,
        subflows: &mut [Subflow],
        acked: usize,
    ) {
        if let Some(idle) = &mut self.idle_subflows {
            idle.update_coupling_set(subflows, &mut self.cc, acked, cx.now);
        }
        for Subflow { sender, .. } in subflows.iter_mut() {
            if !sender.mptcp.assigned.is_empty() {
                self.send_assigned(cx, sender);
            }
        }
        if scheduler.copies_losses {
            self.copy_losses(&mut subflows[acked].sender, acked);
        }
        if !self.reinject.is_empty() && !scheduler.is_upstream {
            self.push_reinjections(scheduler, cx, subflows);
        }
        let mut queue = self.send_queue(cx.now);
        queue.written = scheduler.buffer_end(subflows, &queue);
        if let Some(data_rtx) = &mut self.data_rtx {
            data_rtx.renew_interval(subflows, &queue);
        }
        self.all_full = false;
        if !self.reinject.is_empty() && scheduler.is_upstream {
            self.send_again(scheduler, cx, subflows, &queue);
        }
        while queue.has_sendable() || scheduler.sends_copies {
            let Some(picked) = scheduler.pick(subflows, &queue) else {
                self.all_full = scheduler.takes_any_room;
                break;
            };
            let Assignment { subflow, segments } = picked;
            let sender = &mut subflows[subflow].sender;
            match segments {
                Segments::New(burst) => self.assign(cx, sender, burst),
                Segments::Copy(dsn) => self.assign_copy(cx, sender, dsn),
            }
            queue.next = self.next;
        }
        scheduler.note_pushed(acked, &subflows[acked], queue.mss);
        if let Some(data_rtx) = &mut self.data_rtx {
            data_rtx.rearm(cx, self.index, self.una, self.next);
        }
        if self.is_window_blocked() && scheduler.rbuf_opt.is_some() {
            self.unblock(scheduler, cx, subflows);
        }
        let waits = if scheduler.is_upstream {
            queue.written < self.written
        } else {
            // As in `fill`.
            self.next < self.written
        };
        for (i, Subflow { sender, .. }) in subflows.iter_mut().enumerate() {
            if sender.last_sent_ns == cx.now || i == acked {
                sender.validate_after_push(cx.now, &mut self.cc, waits);
            }
        }
        let starved = !self.has_sendable();
        let room = starved && self.note_starved(subflows);
        self.note_blocked(cx.now, room);
    }

    /// Nothing that the application has written waits to be sent, whatever the receive window admits.
    fn has_sent_all(&self) -> bool {
        self.next >= self.written
    }

    /// There is nothing that may be sent. Subflows with room are application-limited if nothing waits for the receive window
    /// either. Returns whether there are any with room.
    fn note_starved(&mut self, subflows: &mut [Subflow]) -> bool {
        let backups = only_backups(subflows);
        let app_limited = self.has_sent_all();
        let mut room = false;
        for subflow in subflows.iter_mut() {
            let sender = &subflow.sender;
            let idle = sender.phase == Phase::Established && sender.mptcp.assigned.is_empty();
            if idle && sender.has_room() {
                room |= sender.mptcp.backup == backups && subflow.is_available();
                if app_limited {
                    self.note_app_limited(&mut subflow.sender);
                }
            }
        }
        room
    }

    /// A subflow has no data. Linux' MPTCP does not note that it is application-limited (only `tcp_sendmsg` does), so that its
    /// whole window stays in the coupled sums.
    #[inline]
    fn note_app_limited(&self, sender: &mut Sender) {
        if !self.is_upstream {
            sender.note_app_limited();
        }
    }

    /// Give the next `burst` segments to a subflow and send what its window allows.
    #[inline]
    fn assign(&mut self, cx: &mut World, sender: &mut Sender, burst: u32) {
        let alone = burst == 1 && sender.mptcp.assigned.is_empty() && !sender.config.tso;
        if alone && sender.has_room() && !sender.is_paced_out(cx) {
            self.send_next::<false>(cx, sender);
            return;
        }
        let burst = burst.min(self.sendable());
        if sender.config.nagle {
            let end = self.next + burst;
            let ends_whole = self.ends_whole(end);
            sender.note_burst(cx.now, self.next, end, ends_whole);
        }
        for _ in 0..burst {
            let (dsn, _) = self.take_new();
            sender.mptcp.assigned.push_back(dsn);
        }
        self.send_assigned(cx, sender);
    }

    /// Whether a burst up to here ends with a whole segment: at the end of a window that is as large as what the burst before
    /// filled, and has moved by whole segments since.
    fn ends_whole(&mut self, end: u32) -> bool {
        let window = end - self.una;
        let moved_by_small = self.small_end != 0 && self.small_end <= self.una;
        if moved_by_small {
            self.small_end = 0;
        }
        let is_as_large = std::mem::replace(&mut self.reach, window) == window;
        let ends_whole = end == self.window_end && is_as_large && !moved_by_small;
        if !ends_whole && self.small_end == 0 {
            self.small_end = end;
        }
        ends_whole
    }

    /// Give a subflow a segment that another one already has.
    pub(super) fn assign_copy(&mut self, cx: &mut World, sender: &mut Sender, dsn: u32) {
        self.reinjected += 1;
        sender.mptcp.out_of_order = true;
        sender.mptcp.assigned.push_back(dsn);
        self.send_assigned(cx, sender);
    }

    /// The receive window blocks: the fastest subflow with room sends the segment that everything waits for, and the subflows
    /// that hold it are slowed down.
    #[inline(never)]
    fn unblock(&mut self, scheduler: &mut Scheduler, cx: &mut World, subflows: &mut [Subflow]) {
        let head = self.una;
        while let (Some(rbuf_opt), Some(fast)) = (&mut scheduler.rbuf_opt, minrtt(subflows)) {
            rbuf_opt.find_holders(subflows, head);
            let penalised = rbuf_opt.penalised(subflows, fast, cx.now);
            let retransmits = rbuf_opt.retransmits(subflows, fast);
            for (h, subflow) in subflows.iter_mut().enumerate() {
                if penalised & (1 << h) != 0 {
                    let sock = &mut subflow.sender.sock;
                    let (cwnd, ssthresh) = (sock.tp.snd_cwnd, sock.tp.snd_ssthresh);
                    (sock.tp.snd_cwnd, sock.tp.snd_ssthresh) = penalised_window(cwnd, ssthresh);
                    sock.publish(&mut self.cc);
                }
            }
            let sender = &mut subflows[fast].sender;
            if !retransmits || sender.is_paced_out(cx) {
                return;
            }
            rbuf_opt.note_sent(head, fast);
            scheduler.note_rbuf_retransmission();
            self.assign_copy(cx, sender, head);
        }
    }

    /// Send what the scheduler gave to a subflow, as far as its window allows.
    #[inline]
    fn send_assigned(&mut self, cx: &mut World, sender: &mut Sender) {
        while !sender.mptcp.assigned.is_empty()
            && sender.phase == Phase::Established
            && sender.has_room()
        {
            let waits = sender.is_paced_out(cx) || sender.holds_small();
            if waits || !sender.may_send_assigned(cx.now) || !self.send_one_assigned(cx, sender) {
                return;
            }
        }
    }

    /// Send the next segment that the scheduler gave to a subflow. Returns whether there is one.
    #[inline]
    fn send_one_assigned(&mut self, cx: &mut World, sender: &mut Sender) -> bool {
        let Some(dsn) = sender.mptcp.assigned.pop_front() else {
            return false;
        };
        let payload = self.payload(dsn);
        sender.send_new::<false>(cx, &mut self.cc, dsn, payload);
        sender.note_sent_assigned(dsn);
        true
    }

    /// Send a tail loss probe with new data, if there are any: those of plain TCP, or segments already assigned to the subflow.
    /// Returns whether there were.
    pub(super) fn push_probe(&mut self, cx: &mut World, sender: &mut Sender) -> bool {
        if sender.recovery.tlp_high_seq.is_some() {
            return false;
        }
        if self.send_one_assigned(cx, sender) {
            return true;
        }
        let sends = !self.mptcp && self.has_sendable();
        if sends {
            self.send_next::<false>(cx, sender);
        }
        sends
    }

    #[inline]
    fn note_blocked(&mut self, now: u64, room: bool) {
        let blocked = room && self.is_window_blocked();
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

    /// A subflow becomes a backup or a regular one (MP_PRIO, RFC 8684 section 3.3.8). What it has in flight or assigned
    /// stays with it. The caller pushes afterwards.
    fn set_backup(&mut self, cx: &mut World, subflows: &mut [Subflow], k: usize, backup: bool) {
        let sender = &mut subflows[k].sender;
        if sender.mptcp.backup == backup || sender.phase == Phase::Removed {
            return;
        }
        sender.mptcp.backup = backup;
        sender.log(cx, EventKind::PriorityChanged, backup);
        self.update_backups(subflows);
    }

    /// Arm the timer for the next scheduled change of a priority.
    pub(crate) fn arm_priority(&mut self, cx: &mut World) {
        if let Some(&(at, ..)) = self.priorities.front() {
            cx.timers.set(
                &mut self.priority_timer,
                at,
                TimerKind::Priority,
                self.index,
            );
        }
    }

    /// Make the scheduled changes of priority that are due.
    pub(super) fn change_priorities(&mut self, cx: &mut World, subflows: &mut [Subflow]) {
        while let Some(&(at, k, backup)) = self.priorities.front() {
            if at > cx.now {
                return;
            }
            self.priorities.pop_front();
            self.set_backup(cx, subflows, k, backup);
        }
    }

    /// Backups that carry no data are not in the coupling set: with their small windows they would slow down the subflows that
    /// work. Called when a subflow is added, is removed, fails, recovers or changes its priority.
    pub(super) fn update_backups(&mut self, subflows: &mut [Subflow]) {
        let in_use = only_backups(subflows);
        for Subflow { sender, .. } in subflows.iter_mut() {
            if sender.phase == Phase::Established {
                let carries = in_use || !sender.mptcp.backup;
                sender.sock.set_usable(&mut self.cc, carries);
            }
        }
    }

    /// The algorithm wants the subflows in these slots to become backups (bit k is slot k). At least one regular subflow
    /// always remains.
    #[inline(never)]
    pub(super) fn make_backups(&mut self, cx: &mut World, subflows: &mut [Subflow], slots: u8) {
        for k in 0..subflows.len() {
            let regular = |s: &Subflow| s.is_usable() && !s.is_backup();
            if slots >> k & 1 == 1 && any_other(subflows, k, regular) {
                self.set_backup(cx, subflows, k, true);
            }
        }
    }
}

/// Whether this holds for any subflow but `k`.
pub(super) fn any_other(subflows: &[Subflow], k: usize, holds: impl Fn(&Subflow) -> bool) -> bool {
    let others = subflows.iter().enumerate().filter(|(i, _)| *i != k);
    others.map(|(_, subflow)| subflow).any(holds)
}
