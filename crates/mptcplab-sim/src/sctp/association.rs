//! An association with its destinations: their state, and the handling of events.

use super::chunk::{DATA_HEADER_BYTES, kind};
use super::outstanding::{Outstanding, Progress};
use super::receiver::Receiver;
use super::rto::Rto;
use super::rtx_destination::{Candidate, retransmission_destination};
use super::window::Window;
use crate::net::World;
use crate::net::event::{NEVER, Timer, TimerKind};
use crate::net::packet::Packet;
use crate::stream::DSN_MAX;
use mptcplab_scenario::{RcvBuffer, Traffic};
use mptcplab_trace::EventKind;

/// Life of an association, as its sender sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    Closed,
    InitSent,
    CookieSent,
    Established,
}

/// Counters of a destination, cumulative.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Counters {
    pub(super) sent: u64,
    pub(super) retransmitted: u64,
    pub(super) acked: u64,
    pub(super) lost: u64,
    pub(super) loss_events: u64,
    pub(super) rto_count: u64,
    pub(super) rto_wait_ns: u64,
}

/// One address of the receiver: a path of the scenario.
pub(super) struct Destination {
    /// Index of its route.
    pub(super) id: u32,
    pub(super) window: Window,
    pub(super) rto: Rto,
    /// T3-rtx; before the association is established, T1 of the first destination.
    pub(super) timer: Timer,
    /// Timeouts since data sent there were last acknowledged.
    pub(super) timeouts: u32,
    /// Fast recovery lasts until everything sent up to this transmission is acknowledged or sent elsewhere.
    pub(super) recovery_until: Option<u64>,
    /// Latest transmission known to have arrived.
    pub(super) newest_acked: u64,
    /// The next RTT measurement is of a transmission from this one on: one measurement per round trip.
    pub(super) timing_from: u64,
    pub(super) last_sent_ns: u64,
    /// When data sent there were last acknowledged.
    pub(super) progress_ns: u64,
    /// Layer-2 bytes per packet on the last link.
    pub(super) overhead_bytes: u32,
    pub(super) count: Counters,
}

pub(crate) struct Association {
    /// Index of the flow in the run's list.
    pub(crate) flow: u32,
    pub(super) index: u32,
    pub(super) phase: Phase,
    pub(super) destinations: Vec<Destination>,
    pub(super) outstanding: Outstanding,
    /// The destination whose turn it is to carry new data.
    pub(super) turn: usize,
    /// The receiver's window at the latest SACK; `None` is without limit.
    pub(super) peer_window: Option<u64>,
    pub(super) mss: u16,
    /// First TSN that the application has not written yet.
    pub(super) written: u32,
    /// The last chunk of a transfer: (TSN, payload).
    pub(super) last: Option<(u32, u16)>,
    traffic: Traffic,
    start_ns: u64,
    stop_ns: u64,
    /// Start and stop of the application.
    pub(crate) timer: Timer,
    pub(super) handshake_ns: u64,
    /// Retransmissions of the current handshake packet.
    pub(super) handshake_tries: u32,
    pub(super) sent_bytes: u64,
    /// Chunks sent again over another path than before.
    pub(super) moved_pkts: u64,
    pub(super) blocked_since: u64,
    pub(super) blocked_ns: u64,
    pub(super) rx: Receiver,
    /// Room for the SACK being worked on.
    pub(super) blocks: Vec<(u32, u32)>,
    pub(super) progress: Vec<Progress>,
}

/// Configuration of an association.
pub(crate) struct AssociationConfig {
    pub(crate) flow: u32,
    pub(crate) index: u32,
    pub(crate) mss: u16,
    pub(crate) traffic: Traffic,
    pub(crate) start_ns: u64,
    pub(crate) stop_ns: u64,
    pub(crate) buffer: RcvBuffer,
    pub(crate) destinations: Vec<DestinationConfig>,
}

/// Configuration of a destination.
pub(crate) struct DestinationConfig {
    pub(crate) id: u32,
    pub(crate) overhead_bytes: u32,
}

impl Association {
    pub(crate) fn new(c: AssociationConfig) -> Self {
        let mtu = u32::from(c.mss + DATA_HEADER_BYTES);
        let rx = Receiver::new(c.index, c.buffer, c.mss, c.destinations.len());
        let destination = |d: &DestinationConfig| Destination {
            id: d.id,
            window: Window::new(mtu),
            rto: Rto::new(),
            timer: Timer::OFF,
            timeouts: 0,
            recovery_until: None,
            newest_acked: 0,
            timing_from: 0,
            last_sent_ns: 0,
            progress_ns: 0,
            overhead_bytes: d.overhead_bytes,
            count: Counters::default(),
        };
        Self {
            flow: c.flow,
            index: c.index,
            phase: Phase::Closed,
            destinations: c.destinations.iter().map(destination).collect(),
            outstanding: Outstanding::new(c.destinations.len()),
            turn: 0,
            peer_window: rx.window(),
            mss: c.mss,
            written: 0,
            last: None,
            traffic: c.traffic,
            start_ns: c.start_ns,
            stop_ns: c.stop_ns,
            timer: Timer::OFF,
            handshake_ns: 0,
            handshake_tries: 0,
            sent_bytes: 0,
            moved_pkts: 0,
            blocked_since: NEVER,
            blocked_ns: 0,
            rx,
            blocks: Vec::new(),
            progress: Vec::new(),
        }
    }

    /// Arm the timer that starts everything.
    pub(crate) fn start(&mut self, cx: &mut World) {
        let kind = TimerKind::Association;
        cx.timers
            .set(&mut self.timer, self.start_ns, kind, self.index);
    }

    /// When the application starts.
    pub(super) fn start_ns(&self) -> u64 {
        self.start_ns
    }

    /// Number of destinations.
    pub(crate) fn destinations(&self) -> usize {
        self.destinations.len()
    }

    /// The timer T3-rtx of a destination, or its part in the handshake.
    pub(crate) fn destination_timer(&mut self, destination: usize) -> &mut Timer {
        &mut self.destinations[destination].timer
    }

    /// The delayed SACK's timer.
    pub(crate) fn sack_timer(&mut self) -> &mut Timer {
        &mut self.rx.timer
    }

    /// A packet reached one of the two ends. Returns whether it was a SACK that counted.
    pub(crate) fn on_packet(
        &mut self,
        cx: &mut World,
        destination: usize,
        packet: &Packet,
    ) -> bool {
        match packet.wnd() {
            kind::DATA => self.on_data(cx, destination, packet),
            kind::SACK => return self.on_sack(cx, packet),
            _ => self.on_handshake(cx, packet),
        }
        false
    }

    /// A DATA chunk arrived.
    fn on_data(&mut self, cx: &mut World, path: usize, packet: &Packet) {
        let was_complete = self.rx.data.completed;
        if self.rx.receive(cx, self.flow, path, packet) {
            self.send_sack(cx);
        } else {
            self.rx.delay_sack(cx);
        }
        if self.rx.data.completed && !was_complete {
            self.record_transfer(cx);
        }
    }

    /// Acknowledge what is there, over the path of the latest packet.
    pub(crate) fn send_sack(&mut self, cx: &mut World) {
        let id = self.destinations[self.rx.latest].id;
        self.rx.send_sack(cx, id);
    }

    /// The application starts or stops.
    pub(crate) fn on_app_timer(&mut self, cx: &mut World) {
        if cx.now >= self.stop_ns {
            // Nothing new is written; what was written is still delivered.
            self.written = self.written.min(self.outstanding.next());
            cx.rec
                .flow_event(cx.now, EventKind::FlowStopped, self.flow, 0);
            return;
        }
        cx.rec
            .flow_event(cx.now, EventKind::FlowStarted, self.flow, 0);
        match self.traffic {
            Traffic::Size { bytes } => self.write_size(bytes),
            _ => self.written = DSN_MAX,
        }
        if self.stop_ns != NEVER {
            let kind = TimerKind::Association;
            cx.timers
                .set(&mut self.timer, self.stop_ns, kind, self.index);
        }
        self.open(cx);
    }

    fn write_size(&mut self, bytes: u64) {
        let mss = u64::from(self.mss);
        let chunks = bytes.div_ceil(mss);
        self.written = chunks as u32;
        let last = (bytes - (chunks - 1) * mss) as u16;
        self.last = Some((self.written - 1, last));
        self.rx.expect(self.written, last);
    }

    /// A destination's timer fired.
    pub(crate) fn on_destination_timer(&mut self, cx: &mut World, destination: usize) {
        match self.phase {
            Phase::Closed => {}
            Phase::InitSent | Phase::CookieSent => self.retry_handshake(cx),
            Phase::Established => self.on_timeout(cx, destination),
        }
    }

    /// Bytes in flight to a destination, as its window counts them.
    pub(super) fn flight(&self, destination: usize) -> u32 {
        let (packets, payload) = self.outstanding.in_flight(destination);
        (payload + u64::from(packets) * u64::from(DATA_HEADER_BYTES)) as u32
    }

    pub(super) fn has_room(&self, destination: usize) -> bool {
        self.flight(destination) < self.destinations[destination].window.cwnd
    }

    /// Where a retransmission goes now.
    pub(super) fn retransmission_destination(&self, needs_room: bool) -> Option<usize> {
        let candidates = self
            .destinations
            .iter()
            .enumerate()
            .map(|(i, d)| Candidate {
                timeouts: d.timeouts,
                ssthresh: d.window.ssthresh,
                cwnd: d.window.cwnd,
                has_room: self.has_room(i),
            });
        retransmission_destination(candidates, needs_room)
    }

    /// Payload of a TSN.
    pub(super) fn payload(&self, tsn: u32) -> u16 {
        match self.last {
            Some((last, bytes)) if last == tsn => bytes,
            _ => self.mss,
        }
    }
}
