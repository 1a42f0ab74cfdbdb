//! A TCP or MPTCP connection above its subflows: data sequence space, shared receive window, what to send next.
//!
//! Plain TCP is a connection with one subflow whose data sequence numbers equal its segment numbers.

use super::idle_subflows::Looks;
use super::retransmit::Resend;
use crate::app::App;
use crate::mptcp::scheduler::{Demand, Pick, Scheduler, What, only_backups};
use crate::net::World;
use crate::net::event::{NEVER, Timer, TimerKind};
use crate::net::packet::WINDOW_UNLIMITED;
use crate::stream::DSN_MAX;
use crate::stream::receiver::ConnectionReceiver;
use crate::tcp::sender::{Phase, Sender};
use mptcplab_cc::{CaState, Conn as CcTable};
use mptcplab_model::sched::{Path, minrtt};
use mptcplab_scenario::RcvBuffer;
use mptcplab_trace::EventKind;
use std::collections::VecDeque;
use std::ops::Range;

/// Origin of data in the reinjection queue that no subflow has sent.
const NO_ORIGIN: u32 = u32::MAX;

/// Timeouts in a row after which a subflow is set aside where the scenario does not say: the out-of-tree kernel's
/// "potentially failed" comes with the first (algorithms.md section 7).
const STALE_AFTER: u32 = 1;

/// Why a subflow's data go over others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// It timed out, but may work again: only its oldest segment.
    Doubtful,
    /// It has timed out often enough to be set aside.
    Failed,
    /// The scenario removes it.
    Removed,
}

/// Until a thread that waits for data runs: the emulator's own threads took 12 us at the median and 80 us at the 99th percentile
/// on an idle machine with Linux 6.18, and a thread without their priority takes longer. With none, twice and four times of it
/// the shares on `shared-bottleneck-fairness` were the same within their intervals.
const WAKE_UP_NS: u64 = 50_000;

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
    pub(super) reinject: VecDeque<(u32, u32)>,
    reinject_enabled: bool,
    /// Timeouts in a row that make a subflow failed, unless the connection has a timer of its own.
    stale_after: u32,
    pub(crate) resend: Option<Box<Resend>>,
    /// With upstream's scheduler: silent subflows leave the coupling set.
    pub(crate) looks: Option<Box<Looks>>,
    /// Scheduled changes of priority still to come: time, subflow, whether it becomes a backup.
    priorities: VecDeque<(u64, usize, bool)>,
    pub(crate) priority_timer: Timer,
    pub(crate) reinjected: u64,
    pub(crate) sent_bytes: u64,
    /// The window forbids to send although data and cwnd are there, since then.
    blocked_since: u64,
    blocked_ns: u64,
    pub(crate) app: App,
    /// The application is in an active period.
    pub(crate) active: bool,
    pub(crate) start_ns: u64,
    pub(crate) stop_ns: u64,
    pub(crate) timer: Timer,
    /// What PSH asks for is acknowledged when the application reads.
    pub(crate) answers_push: bool,
    pub(crate) read_timer: Timer,
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
    pub(crate) stale_after: Option<u32>,
    /// In time order.
    pub(crate) priorities: VecDeque<(u64, usize, bool)>,
    pub(crate) app: App,
    pub(crate) start_ns: u64,
    pub(crate) stop_ns: u64,
    pub(crate) buffer: RcvBuffer,
    pub(crate) tso: bool,
}

impl Connection {
    pub(crate) fn new(c: ConnectionConfig) -> Self {
        let announces = !matches!(c.app, App::Transfer { .. });
        let rx = ConnectionReceiver::new(c.buffer, c.mss, announces);
        let resends = c.mptcp && c.reinject && c.subflows.len() > 1 && c.scheduler.is_upstream();
        let looks = c.scheduler.is_upstream() && c.subflows.len() > 1;
        let resend = resends.then(|| Box::new(Resend::new(c.stale_after)));
        Self {
            flow: c.flow,
            mptcp: c.mptcp,
            answers_push: c.tso,
            read_timer: Timer::OFF,
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
            stale_after: c.stale_after.unwrap_or(STALE_AFTER),
            resend,
            looks: looks.then(Box::default),
            priorities: c.priorities,
            priority_timer: Timer::OFF,
            reinjected: 0,
            sent_bytes: 0,
            blocked_since: NEVER,
            blocked_ns: 0,
            app: c.app,
            active: false,
            start_ns: c.start_ns,
            stop_ns: c.stop_ns,
            timer: Timer::OFF,
            rx,
        }
    }

    /// The application writes `bytes`, of which the last segment is short, and no more before they are delivered.
    pub(crate) fn write_size(&mut self, bytes: u64) {
        let mss = u64::from(self.mss);
        let segments = bytes.div_ceil(mss);
        self.written = self.next + segments as u32;
        let last = bytes - (segments - 1) * mss;
        self.last = Some((self.written - 1, last as u16));
        self.rx.expect(self.written, last as u16);
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

    /// Segments of new data that the window allows to send.
    #[inline]
    fn sendable(&self) -> u32 {
        self.written.min(self.window_end) - self.next
    }

    /// What there is to send, for the scheduler.
    #[inline]
    fn demand(&self, now: u64) -> Demand {
        Demand {
            now,
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
        self.next < self.written && self.next >= self.window_end
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
        while inflight < sender.sock.tp.snd_cwnd
            && self.has_sendable()
            && !sender.is_paced_out(cx)
            && sender.may_leave(cx.now, self.sendable())
        {
            self.send_next(cx, sender);
            inflight += 1;
        }
        let full = inflight >= sender.sock.tp.snd_cwnd || sender.group.deferred;
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
        if self.looks.is_some() {
            self.look_around(senders, acked - base, cx.now);
        }
        for sender in senders.iter_mut().filter(|s| !s.assigned.is_empty()) {
            self.send_assigned(cx, sender);
        }
        if self.scheduler.copies_losses {
            self.copy_losses(&mut senders[acked - base]);
        }
        if !self.reinject.is_empty() {
            self.push_reinjections(cx, senders, base as u32);
        }
        let mut demand = self.demand(cx.now);
        demand.written = self.scheduler.buffer_end(senders, &demand);
        if let Some(resend) = self.resend.as_mut().filter(|_| demand.is_any()) {
            resend.measure(senders, cx.now);
        }
        while demand.is_any() || self.scheduler.copies {
            let Some(pick) = self.scheduler.pick(senders, &demand) else {
                break;
            };
            let Pick { subflow, what } = pick;
            match what {
                What::Next(burst) => self.give(cx, &mut senders[subflow], burst),
                What::Copy(dsn) => self.give_copy(cx, &mut senders[subflow], dsn),
            }
            demand.next = self.next;
        }
        if let Some(resend) = &mut self.resend {
            resend.follow(cx, senders[0].conn, self.una, self.next);
        }
        if self.is_window_blocked() && self.scheduler.repair.is_some() {
            self.unblock(cx, senders);
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
                room |= sender.backup == backups && sender.is_available();
                sender.note_app_limited();
            }
        }
        room
    }

    /// Give the next `burst` segments to a subflow and send what its window allows.
    #[inline]
    fn give(&mut self, cx: &mut World, sender: &mut Sender, burst: u32) {
        let alone = burst == 1 && sender.assigned.is_empty() && !sender.config.tso;
        if alone && sender.has_room() && !sender.is_paced_out(cx) {
            self.send_next(cx, sender);
            return;
        }
        for _ in 0..burst.min(self.sendable()) {
            let (dsn, _) = self.take_new();
            sender.assigned.push_back(dsn);
        }
        self.send_assigned(cx, sender);
    }

    /// Give a subflow a segment that another one already has.
    pub(super) fn give_copy(&mut self, cx: &mut World, sender: &mut Sender, dsn: u32) {
        self.reinjected += 1;
        sender.out_of_order = true;
        sender.assigned.push_back(dsn);
        self.send_assigned(cx, sender);
    }

    /// The window blocks: the fastest subflow with room sends what everything waits for, and those that hold it slow down.
    #[inline(never)]
    fn unblock(&mut self, cx: &mut World, senders: &mut [Sender]) {
        let head = self.una;
        while let (Some(repair), Some(fast)) = (&mut self.scheduler.repair, minrtt(senders)) {
            repair.look_at(senders, head);
            let penalised = repair.penalised(senders, fast, cx.now);
            let resends = repair.resends(senders, fast);
            for (h, sender) in senders.iter_mut().enumerate() {
                if penalised & (1 << h) != 0 {
                    sender.slow_down(&mut self.cc);
                }
            }
            if !resends || senders[fast].is_paced_out(cx) {
                return;
            }
            repair.note_sent(head, fast);
            self.scheduler.note_resent();
            self.give_copy(cx, &mut senders[fast], head);
        }
    }

    /// A subflow that has entered fast recovery lets others send what it repairs, too.
    fn copy_losses(&mut self, sender: &mut Sender) {
        if sender.state() != CaState::Recovery || sender.copied_losses == sender.count.loss_events {
            return;
        }
        sender.copied_losses = sender.count.loss_events;
        let id = sender.id;
        let lost = sender.hand_over_lost(self.una);
        self.reinject.extend(lost.into_iter().map(|dsn| (dsn, id)));
        self.reinject.make_contiguous().sort_unstable();
    }

    /// Send what the scheduler gave to a subflow, as far as its window allows.
    #[inline]
    fn send_assigned(&mut self, cx: &mut World, sender: &mut Sender) {
        while !sender.assigned.is_empty() && sender.phase == Phase::Established && sender.has_room()
        {
            let waiting = sender.assigned.len() as u32;
            if sender.is_paced_out(cx) || !sender.may_leave(cx.now, waiting) {
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
            let origin_index = origin.wrapping_sub(base) as usize;
            let picked = self.scheduler.pick_for_reinjection(senders, origin_index);
            let Some(i) = picked else {
                return;
            };
            if senders[i].is_paced_out(cx) {
                return;
            }
            self.reinject.pop_front();
            self.reinjected += u64::from(origin != NO_ORIGIN);
            let payload = self.payload(dsn);
            if let Some(repair) = &mut self.scheduler.repair {
                repair.note_sent(dsn, i);
            }
            senders[i].out_of_order = true;
            senders[i].send_new(cx, &mut self.cc, dsn, payload);
        }
    }

    /// A subflow timed out or was removed: its data are to be sent again elsewhere.
    pub(crate) fn reinject_from(&mut self, sender: &mut Sender, trouble: Trouble) {
        let asked = self.reinject_enabled || trouble == Trouble::Removed;
        if self.subflows.len() == 1 || !asked {
            return;
        }
        let id = sender.id;
        let most = match trouble {
            Trouble::Doubtful => 1,
            Trouble::Failed | Trouble::Removed => usize::MAX,
        };
        let sent = sender.hand_over_sent(self.una, most);
        self.reinject.extend(sent.into_iter().map(|dsn| (dsn, id)));
        if trouble != Trouble::Doubtful {
            // What was assigned but never sent may go anywhere, also to where it was.
            self.reinject
                .extend(sender.assigned.drain(..).map(|dsn| (dsn, NO_ORIGIN)));
        }
        self.reinject.make_contiguous().sort_unstable();
    }

    /// Send a tail loss probe with new data if there is any: TCP's, or what a subflow was given already. Returns whether it did.
    pub(crate) fn push_probe(&mut self, cx: &mut World, sender: &mut Sender) -> bool {
        if sender.recovery.tlp_high_seq.is_some() {
            return false;
        }
        if let Some(dsn) = sender.assigned.pop_front() {
            let payload = self.payload(dsn);
            sender.send_new(cx, &mut self.cc, dsn, payload);
            return true;
        }
        let sends = !self.mptcp && self.has_sendable();
        if sends {
            self.send_next(cx, sender);
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
    pub(crate) fn set_backup(
        &mut self,
        cx: &mut World,
        senders: &mut [Sender],
        i: usize,
        backup: bool,
    ) {
        let sender = &mut senders[i];
        if sender.backup == backup || sender.phase == Phase::Removed {
            return;
        }
        sender.backup = backup;
        sender.log(cx, EventKind::PriorityChanged, backup);
        self.update_backups(senders);
    }

    /// The receiving application is woken up, unless it is on its way.
    pub(crate) fn read_soon(&mut self, cx: &mut World, index: u32) {
        if self.read_timer.deadline == NEVER {
            let at = cx.now + WAKE_UP_NS;
            cx.timers
                .set(&mut self.read_timer, at, TimerKind::Read, index);
        }
    }

    /// Arm the timer for the next scheduled change of a priority.
    pub(crate) fn arm_priority(&mut self, cx: &mut World, index: u32) {
        if let Some(&(at, ..)) = self.priorities.front() {
            cx.timers
                .set(&mut self.priority_timer, at, TimerKind::Priority, index);
        }
    }

    /// Make the scheduled changes of priority that are due.
    pub(crate) fn change_priorities(&mut self, cx: &mut World, senders: &mut [Sender]) {
        while let Some(&(at, i, backup)) = self.priorities.front() {
            if at > cx.now {
                return;
            }
            self.priorities.pop_front();
            self.set_backup(cx, senders, i, backup);
        }
    }

    /// Backups that nothing is sent on are not in the coupling set (algorithms.md 1.1, "may carry data"): with the least
    /// window of 1 they would hold back the subflows that work. Called when a subflow comes, goes, fails, recovers or
    /// changes its priority.
    pub(crate) fn update_backups(&mut self, senders: &mut [Sender]) {
        let senders = &mut senders[self.subflows.clone()];
        let in_use = only_backups(senders);
        for sender in senders.iter_mut().filter(|s| s.phase == Phase::Established) {
            let carries = in_use || !sender.backup;
            sender.sock.set_usable(&mut self.cc, carries);
        }
    }

    /// The algorithm wants the subflows in these slots to become backups (bit i is slot i). One that is not a backup
    /// always stays.
    #[inline(never)]
    pub(crate) fn make_backups(&mut self, cx: &mut World, senders: &mut [Sender], slots: u8) {
        for i in self.subflows.clone() {
            let wanted = slots >> (i - self.subflows.start) & 1 == 1;
            let others = self
                .subflows
                .clone()
                .any(|k| k != i && senders[k].is_usable() && !senders[k].backup);
            if wanted && others {
                self.set_backup(cx, senders, i, true);
            }
        }
    }

    /// A subflow timed out: if another one can take over, mark it as failed once it has done so often enough.
    pub(crate) fn note_timeout(&mut self, cx: &mut World, senders: &mut [Sender], i: usize) {
        if self.resend.is_some() {
            return;
        }
        let others = self
            .subflows
            .clone()
            .any(|k| k != i && senders[k].is_usable());
        let sender = &mut senders[i];
        if !others || sender.recovery.state != CaState::Loss {
            return;
        }
        if sender.retransmits < self.stale_after {
            self.reinject_from(sender, Trouble::Doubtful);
            return;
        }
        if !sender.failed {
            sender.failed = true;
            sender.log(cx, EventKind::SubflowFailed, sender.retransmits);
        }
        self.reinject_from(sender, Trouble::Failed);
        self.update_backups(senders);
    }
}
