//! A TCP or MPTCP connection with its subflows. It passes every event on to its sending half, its receiving half or a subflow.

use super::reinject::Cause;
use super::sender::{ConnectionConfig, ConnectionSender};
use crate::net::World;
use crate::net::event::{NEVER, Timer, TimerKind};
use crate::net::packet::{Kind, Packet, WINDOW_UNLIMITED};
use crate::stream::receive_window::MeasuredRtts;
use crate::stream::receiver::ConnectionReceiver;
use crate::tcp::handshake;
use crate::tcp::receiver::AckPolicy;
use crate::tcp::state::Phase;
use crate::tcp::subflow::Subflow;
use mptcplab_trace::EventKind;

/// Time until a thread that waits for data runs. The emulator's threads took 12 us at the median and 80 us at the 99th percentile
/// on an idle machine with Linux 6.18; a thread without their priority takes longer. Without this delay, and with two and four
/// times of it, the shares in scenarios/shared-bottleneck-fairness.toml were equal within their confidence intervals.
const WAKE_UP_NS: u64 = 50_000;

// In this order: the first line has what packets in both directions need.
#[repr(C)]
pub(crate) struct Connection {
    pub(crate) subflows: Vec<Subflow>,
    /// Index of the flow in the run's list.
    pub(crate) flow: u32,
    /// A segment with PSH is acknowledged when the application reads.
    answers_push: bool,
    /// The application knows that the connection is established.
    is_open: bool,
    pub(crate) rx: ConnectionReceiver,
    pub(crate) read_timer: Timer,
    pub(crate) tx: ConnectionSender,
}

impl Connection {
    /// `answers_push`: acknowledge segments with PSH as Linux does since 6.6; only senders with `tso` set the flag.
    pub(crate) fn new(
        flow: u32,
        config: ConnectionConfig,
        mut rx: ConnectionReceiver,
        subflows: Vec<Subflow>,
        answers_push: bool,
    ) -> Self {
        let window = (rx.window_end(), rx.window_shift);
        Self {
            flow,
            tx: ConnectionSender::new(config, subflows.len(), window),
            rx,
            subflows,
            answers_push,
            read_timer: Timer::OFF,
            is_open: false,
        }
    }

    /// The application writes `bytes`, of which the last segment is short, and no more before they are delivered.
    pub(crate) fn write_size(&mut self, bytes: u64) {
        let (end, last) = self.tx.write_size(bytes);
        self.rx.expect(end, last);
    }

    /// The application writes a message of `bytes` behind what it wrote before.
    pub(crate) fn write_message(&mut self, bytes: u64) {
        let place = self.tx.append(bytes);
        self.rx.expect_message(place);
    }

    /// Segments that were sent again, on the same or on another subflow.
    pub(crate) fn resent_pkts(&self) -> u64 {
        let senders = self.subflows.iter().map(|s| &s.sender);
        self.tx.reinjected + senders.map(|s| s.count.retransmitted).sum::<u64>()
    }

    /// Send what may be sent; the event that makes room happened on subflow `k`.
    #[inline]
    pub(crate) fn push(&mut self, cx: &mut World, k: usize) {
        self.tx.push(cx, &mut self.subflows, k);
    }

    /// A data packet arrived. Returns whether it completes a transfer.
    #[inline(always)]
    pub(crate) fn on_data(&mut self, cx: &mut World, k: usize, packet: Packet) -> bool {
        let receiver = &mut self.subflows[k].receiver;
        if !receiver.expects(packet) {
            return self.on_delayed_data(cx, k, packet);
        }
        if self.rx.room().is_limited() {
            return self.on_expected_in_room(cx, k, packet);
        }
        let is_complete = self.rx.on_data(cx, self.flow, packet.dsn());
        let ack = receiver.take_expected(packet, self.rx.next(), WINDOW_UNLIMITED);
        cx.net.send_on(receiver.config.entry as usize, cx.now, ack);
        is_complete
    }

    /// A data packet that takes the fast path, where the receive buffer limits the sender. Apart, so that connections without a
    /// limit save nothing of its registers.
    #[cold]
    #[inline(never)]
    fn on_expected_in_room(&mut self, cx: &mut World, k: usize, packet: Packet) -> bool {
        let next = self.rx.next();
        let is_complete = self.rx.on_data(cx, self.flow, packet.dsn());
        let room = self.rx.room().segments();
        self.subflows[k].receiver.window.open(room);
        self.tune(cx.now, k);
        let Subflow { receiver, .. } = &mut self.subflows[k];
        let window = self.rx.announce_before_reading(next, &mut receiver.window);
        let ack = receiver.take_expected(packet, self.rx.next(), window);
        cx.net.send_on(receiver.config.entry as usize, cx.now, ack);
        self.announce_soon(cx, k);
        is_complete
    }

    /// Data arrived on a subflow: the receive buffer follows the rate at which the application reads.
    #[inline]
    fn tune(&mut self, now: u64, k: usize) {
        let sender = &self.subflows[k].sender;
        let rtts = sender.measured_rtts();
        let is_counted = sender.phase == Phase::Established;
        if !is_counted || self.rx.may_tune(now, rtts.srtt_us) {
            self.tune_to(now, k, rtts);
        }
    }

    #[inline(never)]
    fn tune_to(&mut self, now: u64, k: usize, mut rtts: MeasuredRtts) {
        if self.rx.room().takes_longest_rtt() {
            let all = self.subflows.iter().map(|s| &s.sender);
            let open = all.filter(|sender| sender.phase == Phase::Established);
            let srtts = open.map(|sender| sender.sock.tp.srtt_us);
            rtts.srtt_us = srtts.max().unwrap_or(rtts.srtt_us);
            if !self.rx.may_tune(now, rtts.srtt_us) {
                return;
            }
        }
        let window = &mut self.subflows[k].receiver.window;
        self.rx.tune(now, rtts, window);
    }

    /// A data packet that takes the fast path of delayed ACKs, or none.
    #[inline(never)]
    fn on_delayed_data(&mut self, cx: &mut World, k: usize, packet: Packet) -> bool {
        let receiver = &mut self.subflows[k].receiver;
        if !receiver.delays(packet) {
            return self.on_other_data(cx, k, packet);
        }
        let policy = receiver.take_delayed(&packet, cx.now, self.rx.room());
        self.pass_on(cx, k, packet, policy)
    }

    /// A data packet that does not take a fast path.
    #[inline(never)]
    fn on_other_data(&mut self, cx: &mut World, k: usize, packet: Packet) -> bool {
        let Subflow { receiver, .. } = &mut self.subflows[k];
        let rx = &mut self.rx;
        if receiver.overflows(packet.seq()) {
            let window = rx.announce(&mut receiver.window);
            let ack = receiver.make_ack(cx, rx.next(), window);
            cx.net.send_on(receiver.config.entry as usize, cx.now, ack);
        }
        let policy = receiver.on_data(&packet, cx.now, rx.room());
        let is_complete = self.pass_on(cx, k, packet, policy);
        self.subflows[k].receiver.find_plain();
        is_complete
    }

    /// The data of a packet that its subflow has taken in go to the connection, and are acknowledged as `policy` says.
    #[inline(always)]
    fn pass_on(&mut self, cx: &mut World, k: usize, packet: Packet, policy: AckPolicy) -> bool {
        let Subflow { receiver, .. } = &mut self.subflows[k];
        let rx = &mut self.rx;
        let next = rx.next();
        let is_complete = rx.on_data(cx, self.flow, packet.dsn());
        if receiver.minds_room(rx.room()) {
            self.tune(cx.now, k);
        }
        let Subflow { receiver, .. } = &mut self.subflows[k];
        let rx = &mut self.rx;
        if policy == AckPolicy::Immediate {
            let window = rx.announce_before_reading(next, &mut receiver.window);
            let ack = receiver.make_ack(cx, rx.next(), window);
            cx.net.send_on(receiver.config.entry as usize, cx.now, ack);
        } else if policy == AckPolicy::Delayed {
            receiver.delay_ack(cx);
        } else {
            receiver.arm_compressed_ack(cx);
        }
        if self.answers_push {
            self.read_soon(cx);
        }
        if self.rx.room().is_limited() {
            self.announce_soon(cx, k);
        }
        is_complete
    }

    /// If the window grows enough when the application reads what has arrived, wake the application up.
    #[inline(never)]
    fn announce_soon(&mut self, cx: &mut World, k: usize) {
        if self
            .rx
            .has_twice_the_window(self.subflows[k].receiver.window)
        {
            self.wake_up(cx);
        }
    }

    /// If the application can read everything that has arrived, and a segment with PSH waits for its ACK, wake the application
    /// up, unless that is under way.
    #[inline(never)]
    fn read_soon(&mut self, cx: &mut World) {
        let is_pushed = self.subflows.iter().any(|s| s.receiver.is_pushed());
        if self.rx.is_read() && is_pushed {
            self.wake_up(cx);
        }
    }

    /// The application reads soon, unless that is under way.
    fn wake_up(&mut self, cx: &mut World) {
        if self.read_timer.deadline == NEVER {
            let at = cx.now + WAKE_UP_NS;
            cx.timers
                .set(&mut self.read_timer, at, TimerKind::Read, self.tx.index);
        }
    }

    /// The application reads. If nothing is left, segments with PSH are acknowledged on all subflows (`tcp_cleanup_rbuf`,
    /// `mptcp_cleanup_rbuf`).
    #[inline(never)]
    pub(crate) fn on_read(&mut self, cx: &mut World) {
        if self.rx.is_read() {
            for k in 0..self.subflows.len() {
                if self.subflows[k].receiver.is_pushed() {
                    self.send_ack(cx, k);
                }
            }
        }
        self.announce_wider(cx);
    }

    /// The application has read: subflows announce their windows that are much larger now.
    fn announce_wider(&mut self, cx: &mut World) {
        let rx = &mut self.rx;
        let widens = |s: &Subflow| {
            s.sender.phase == Phase::Established && rx.has_twice_the_window(s.receiver.window)
        };
        // All of them before the first one changes what was announced last.
        let wider: Vec<usize> = (0..self.subflows.len())
            .filter(|&k| widens(&self.subflows[k]))
            .collect();
        for k in wider {
            let receiver = &mut self.subflows[k].receiver;
            let window = self.rx.announce(&mut receiver.window);
            let ack = if receiver.has_news() {
                receiver.make_ack(cx, self.rx.next(), window)
            } else {
                receiver.make_window_update(self.rx.next(), window)
            };
            cx.net.send(cx.now, ack);
        }
    }

    /// The application has been woken up by a message that is complete. The last segments of a message carry PSH, so that they
    /// are acknowledged once it has read them.
    pub(crate) fn wake_reader(&mut self, cx: &mut World) {
        for Subflow { receiver, .. } in &mut self.subflows {
            receiver.note_push();
        }
        self.read_soon(cx);
    }

    /// Data leave in the other direction and carry the ACKs that wait. Here these are packets of their own, at the same time.
    pub(crate) fn send_waiting_acks(&mut self, cx: &mut World) {
        for k in 0..self.subflows.len() {
            if self.subflows[k].receiver.has_waiting_ack() {
                self.send_ack(cx, k);
            }
        }
    }

    fn send_ack(&mut self, cx: &mut World, k: usize) {
        let receiver = &mut self.subflows[k].receiver;
        let window = self.rx.announce(&mut receiver.window);
        let ack = receiver.make_ack(cx, self.rx.next(), window);
        cx.net.send(cx.now, ack);
    }

    /// The delayed ACK's timer fired.
    pub(crate) fn on_delayed_ack(&mut self, cx: &mut World, k: usize) {
        self.subflows[k].receiver.miss_second();
        self.send_ack(cx, k);
    }

    /// An ACK arrived. Returns whether its subflow is established, so that the ACK counts.
    #[inline(always)]
    pub(crate) fn on_ack(&mut self, cx: &mut World, k: usize, packet: Packet) -> bool {
        let sender = &mut self.subflows[k].sender;
        if !sender.is_plain() {
            return self.on_any_ack(cx, k, packet);
        }
        self.tx.on_data_ack(sender, packet);
        if sender.on_ack::<true>(cx, &mut self.tx.cc, packet) {
            self.tx.push_plain(cx, &mut self.subflows, k);
        } else {
            self.push_after_recovery(cx, k);
        }
        true
    }

    /// As [`on_ack`](Self::on_ack), on any subflow.
    #[inline(never)]
    fn on_any_ack(&mut self, cx: &mut World, k: usize, packet: Packet) -> bool {
        let sender = &mut self.subflows[k].sender;
        if sender.phase != Phase::Established {
            cx.net.sacks.release(packet.sack());
            return false;
        }
        if self.tx.is_unconfirmed {
            self.on_first_acks(cx, k, &packet);
        } else {
            self.tx.on_data_ack(sender, packet);
        }
        let sender = &mut self.subflows[k].sender;
        if sender.on_ack::<false>(cx, &mut self.tx.cc, packet) {
            self.push(cx, k);
        } else {
            self.push_after_recovery(cx, k);
        }
        true
    }

    /// After an ACK that left the fast path: it may have changed what the connection knows of the subflow.
    #[inline(never)]
    fn push_after_recovery(&mut self, cx: &mut World, k: usize) {
        let demoted = self.subflows[k].sender.sock.take_backups_wanted();
        if demoted != 0 {
            self.tx.make_backups(cx, &mut self.subflows, demoted);
        }
        let sender = &mut self.subflows[k].sender;
        if sender.mptcp.failed && sender.rtx.retransmits == 0 {
            sender.set_failed(false);
            sender.log(cx, EventKind::SubflowRecovered, 0_u64);
            self.note_usable(cx);
        }
        let sender = &self.subflows[k].sender;
        let hold = sender.recovery.frto_hold;
        let before = sender.sock.tp.snd_nxt;
        self.push(cx, k);
        if hold {
            let sender = &mut self.subflows[k].sender;
            let sent_new = sender.sock.tp.snd_nxt != before;
            sender.finish_frto_probe(cx, sent_new);
        }
    }

    /// A subflow was established, or works again.
    fn note_usable(&mut self, cx: &mut World) {
        self.tx.update_backups(&mut self.subflows);
        self.tx.take_over(cx, &mut self.subflows);
    }

    /// Data may flow in this direction of a connection whose other direction opened subflow `k`, with a handshake that took
    /// `rtt_ns`.
    pub(crate) fn accept(&mut self, cx: &mut World, k: usize, rtt_ns: u64) {
        let sender = &mut self.subflows[k].sender;
        if sender.phase == Phase::Closed && cx.now < sender.lifecycle.remove_ns {
            sender.accept(cx, &mut self.tx.cc, k as u32, rtt_ns);
            self.note_usable(cx);
            self.push(cx, k);
        }
    }

    fn joins(&self, k: usize) -> bool {
        self.tx.opener != k
    }

    /// A packet of the handshake arrived at the receiver.
    pub(crate) fn on_handshake_request(&mut self, cx: &mut World, k: usize, packet: &Packet) {
        let joins = self.joins(k);
        let Subflow { sender, receiver } = &mut self.subflows[k];
        let (mptcp, ack_header) = (sender.config.mptcp, sender.config.ack_header);
        receiver.on_handshake(packet.kind(), cx.now);
        if let Some(reply) = handshake::answer(packet, mptcp, joins, ack_header) {
            cx.net.send(cx.now, reply);
        }
    }

    /// A packet of the handshake arrived at the sender. Returns whether it opens the connection.
    pub(crate) fn on_handshake_reply(&mut self, cx: &mut World, k: usize, packet: &Packet) -> bool {
        let joins = self.joins(k);
        let sender = &mut self.subflows[k].sender;
        let ready = match packet.kind() {
            Kind::SynAck => sender.on_syn_ack(cx, packet, joins),
            _ => sender.phase == Phase::JoinSent,
        };
        if !ready {
            return false;
        }
        sender.establish(cx, &mut self.tx.cc, k as u32);
        self.note_usable(cx);
        if !joins {
            let is_unconfirmed = self.tx.is_unconfirmed;
            self.subflows[k].sender.set_unconfirmed(is_unconfirmed);
            if !is_unconfirmed {
                self.schedule_joins(cx);
            }
        }
        self.push(cx, k);
        !joins && !std::mem::replace(&mut self.is_open, true)
    }

    /// An ACK arrived before the first segment was acknowledged.
    #[inline(never)]
    fn on_first_acks(&mut self, cx: &mut World, k: usize, packet: &Packet) {
        if self.tx.confirm(&mut self.subflows[k].sender, packet) {
            let opener = self.tx.opener;
            self.subflows[opener].sender.set_unconfirmed(false);
            self.schedule_joins(cx);
        }
    }

    /// The connection is established: its further subflows may open.
    fn schedule_joins(&mut self, cx: &mut World) {
        for Subflow { sender, .. } in &mut self.subflows {
            if sender.phase == Phase::Closed {
                sender.schedule_opening(cx);
            }
        }
    }

    /// Open a subflow, which the scenario may also remove.
    pub(crate) fn open(&mut self, cx: &mut World, k: usize) {
        let joins = self.joins(k);
        self.subflows[k].sender.open(cx, joins);
    }

    /// A subflow opens or is removed.
    pub(crate) fn on_lifecycle(&mut self, cx: &mut World, k: usize) {
        let sender = &mut self.subflows[k].sender;
        if cx.now >= sender.lifecycle.remove_ns {
            let is_open = sender.phase == Phase::Established && !self.tx.is_unconfirmed;
            let never_opened = !is_open && self.tx.opener == k;
            self.tx.reinject_from(&mut self.subflows, k, Cause::Removed);
            self.subflows[k].sender.remove(cx, &mut self.tx.cc);
            self.tx.update_backups(&mut self.subflows);
            if never_opened {
                self.pass_on_opening(cx);
            }
            self.push(cx, k);
        } else if sender.phase == Phase::Closed {
            self.open(cx, k);
        }
    }

    /// The subflow that was to open the connection is gone: the next one opens it instead.
    fn pass_on_opening(&mut self, cx: &mut World) {
        let closed = |s: &Subflow| s.sender.phase == Phase::Closed;
        if let Some(next) = self.subflows.iter().position(closed) {
            self.tx.opener = next;
            self.subflows[next].sender.schedule_opening(cx);
        }
    }

    /// A subflow's retransmission timer fired.
    pub(crate) fn on_retransmit(&mut self, cx: &mut World, k: usize) {
        let joins = self.joins(k);
        let sender = &mut self.subflows[k].sender;
        match sender.phase {
            Phase::SynSent | Phase::JoinSent => sender.retry_handshake(cx, joins),
            Phase::Established => {
                let timed_out = sender.on_timer(cx, &mut self.tx.cc);
                if sender.recovery.probe_due {
                    let sent_new = self.tx.push_probe(cx, sender);
                    sender.finish_probe(cx, sent_new);
                }
                if timed_out {
                    self.tx.note_timeout(cx, &mut self.subflows, k);
                }
                self.push(cx, k);
            }
            Phase::Closed | Phase::Removed => {}
        }
    }

    /// Pacing allows a subflow to send again.
    pub(crate) fn on_pace(&mut self, cx: &mut World, k: usize) {
        let sender = &mut self.subflows[k].sender;
        sender.pacing.blocked = false;
        sender.retransmit_lost(cx);
        self.push(cx, k);
    }

    /// A scheduled change of priority is due.
    pub(crate) fn on_priority(&mut self, cx: &mut World) {
        self.tx.change_priorities(cx, &mut self.subflows);
        self.tx.arm_priority(cx);
        self.push(cx, self.tx.opener);
    }

    /// The connection's own retransmission timer fired.
    pub(crate) fn on_data_rtx(&mut self, cx: &mut World) {
        self.tx.retransmit_data(cx, &mut self.subflows);
        self.push(cx, self.tx.opener);
    }

    /// All data are delivered: the connection's timers stop and nothing of it is sent any more.
    pub(crate) fn close(&mut self, cx: &mut World) {
        for Subflow { sender, receiver } in &mut self.subflows {
            sender.remove(cx, &mut self.tx.cc);
            sender.stop_sending();
            receiver.timer.deadline = NEVER;
        }
        self.read_timer.deadline = NEVER;
    }
}
