//! Opening and closing subflows: TCP's three-way handshake, MP_CAPABLE and MP_JOIN (RFC 8684 sections 3.1, 3.2).
//!
//! A joined subflow may carry data only after the fourth packet, one more round trip.

use super::rtt::RTO_INITIAL_US;
use super::sender::Sender;
use super::state::Phase;
use crate::net::World;
use crate::net::event::{NEVER, TimerKind};
use crate::net::packet::{Header, Kind, Packet, tick, ticks_since};
use mptcplab_cc::Conn as CcTable;
use mptcplab_trace::EventKind;

/// Shortest wait of Linux' jiffies timers at its usual 250 ticks per second.
const JIFFY_NS: u64 = 4_000_000;
/// IP and TCP headers with MSS, SACK-permitted, timestamp and window-scale options.
const SYN_BYTES: u16 = 60;
/// Options of the MP_CAPABLE handshake (SYN, SYN/ACK).
const CAPABLE_BYTES: (u16, u16) = (4, 12);
/// Options of the MP_JOIN handshake (SYN, SYN/ACK, ACK).
const JOIN_BYTES: (u16, u16, u16) = (12, 16, 24);

impl Sender {
    /// Open the subflow now or at the time that the scenario gives.
    pub(crate) fn schedule_opening(&mut self, cx: &mut World) {
        let at = self.lifecycle.open_ns.max(cx.now);
        cx.timers
            .set(&mut self.lifecycle.timer, at, TimerKind::Lifecycle, self.id);
    }

    /// Send the SYN, and remember when the subflow is to be removed.
    pub(crate) fn open(&mut self, cx: &mut World, joins: bool) {
        self.phase = Phase::SynSent;
        self.lifecycle.handshake_ns = cx.now;
        self.rtx.progress_ns = cx.now;
        self.rtx.backoff = 0;
        self.send_syn(cx, joins);
        self.schedule_removal(cx);
    }

    fn schedule_removal(&mut self, cx: &mut World) {
        if self.lifecycle.remove_ns != NEVER {
            let (timer, at) = (&mut self.lifecycle.timer, self.lifecycle.remove_ns);
            cx.timers.set(timer, at, TimerKind::Lifecycle, self.id);
        }
    }

    /// The other end has opened the subflow, with a handshake that took `rtt_ns`.
    pub(crate) fn accept(&mut self, cx: &mut World, cc: &mut CcTable, slot: u32, rtt_ns: u64) {
        self.lifecycle.handshake_ns = cx.now;
        self.sock.tp.tcp_mstamp = cx.now / 1000;
        self.rtt.sample(&mut self.sock.tp, rtt_ns, rtt_ns);
        self.establish(cx, cc, slot);
        self.schedule_removal(cx);
    }

    fn send_syn(&mut self, cx: &mut World, joins: bool) {
        let options = match (self.config.mptcp, joins) {
            (false, _) => 0,
            (true, false) => CAPABLE_BYTES.0,
            (true, true) => JOIN_BYTES.0,
        };
        let doublings = self
            .rtx
            .backoff
            .saturating_sub(self.config.linear_syn_timeouts);
        let wait = (u64::from(RTO_INITIAL_US) * 1000) << doublings.min(6);
        self.send_control(cx, Kind::Syn, SYN_BYTES + options, wait);
    }

    fn send_control(&mut self, cx: &mut World, kind: Kind, len: u16, wait: u64) {
        let header = Header {
            ts: tick(cx.now),
            ..Header::default()
        };
        let packet = Packet::new(kind, self.id, len, header);
        self.put_on_path(cx, packet);
        let due = cx.now + wait;
        cx.timers
            .set(&mut self.rtx.timer, due, TimerKind::Retransmit, self.id);
    }

    /// No answer to the handshake: try again.
    pub(crate) fn retry_handshake(&mut self, cx: &mut World, joins: bool) {
        self.rtx.backoff += 1;
        match self.phase {
            Phase::SynSent => self.send_syn(cx, joins),
            Phase::JoinSent => self.send_join_ack(cx),
            _ => {}
        }
    }

    /// The third packet of a join waits two round trips for the fourth, each time (`schedule_3rdack_retransmission`).
    fn send_join_ack(&mut self, cx: &mut World) {
        let wait = (2 * self.srtt_ns()).max(JIFFY_NS);
        let len = self.config.ack_header + JOIN_BYTES.2;
        self.send_control(cx, Kind::JoinAck, len, wait);
    }

    /// The SYN/ACK arrived. Returns whether the subflow may carry data now.
    pub(crate) fn on_syn_ack(&mut self, cx: &mut World, packet: &Packet, joins: bool) -> bool {
        if self.phase != Phase::SynSent {
            return false;
        }
        let rtt_ns = if self.rtx.backoff == 0 {
            cx.now - self.lifecycle.handshake_ns
        } else {
            ticks_since(cx.now, packet.ts())
        };
        self.sock.tp.tcp_mstamp = cx.now / 1000;
        self.rtt.sample(&mut self.sock.tp, rtt_ns, rtt_ns);
        self.rtx.backoff = 0;
        if joins {
            self.phase = Phase::JoinSent;
            self.send_join_ack(cx);
            return false;
        }
        true
    }

    /// The handshake is complete: the algorithm starts.
    pub(crate) fn establish(&mut self, cx: &mut World, cc: &mut CcTable, slot: u32) {
        self.phase = Phase::Established;
        self.rtx.backoff = 0;
        self.rtx.timer.deadline = NEVER;
        self.rtx.progress_ns = cx.now;
        self.usage.stamp_ns = cx.now;
        self.last_sent_ns = cx.now;
        self.sock.tp.tcp_mstamp = cx.now / 1000;
        self.sock.init(cc, slot);
        self.pacing.enabled = self.config.pacing || self.sock.tp.sk_pacing_status != 0;
        self.update_pacing_rate();
        self.find_plain();
        self.log(
            cx,
            EventKind::SubflowAdded,
            cx.now - self.lifecycle.handshake_ns,
        );
    }

    /// Remove the subflow. Its data in flight have been handed to the others.
    pub(crate) fn remove(&mut self, cx: &mut World, cc: &mut CcTable) {
        if self.phase == Phase::Established {
            self.sock.release(cc);
        }
        self.phase = Phase::Removed;
        self.find_plain();
        self.rtx.timer.deadline = NEVER;
        self.pacing.timer.deadline = NEVER;
        self.log(cx, EventKind::SubflowRemoved, 0_u64);
    }
}

/// The receiver's answer to a handshake packet, if it needs one.
pub(crate) fn answer(packet: &Packet, mptcp: bool, joins: bool, ack_header: u16) -> Option<Packet> {
    let (kind, len) = match packet.kind() {
        Kind::Syn => {
            let options = match (mptcp, joins) {
                (false, _) => 0,
                (true, false) => CAPABLE_BYTES.1,
                (true, true) => JOIN_BYTES.1,
            };
            (Kind::SynAck, SYN_BYTES + options)
        }
        Kind::JoinAck => (Kind::JoinDone, ack_header),
        _ => return None,
    };
    let header = Header {
        ts: packet.ts(),
        ..Header::default()
    };
    Some(Packet::new(kind, packet.subflow() as u32, len, header))
}
