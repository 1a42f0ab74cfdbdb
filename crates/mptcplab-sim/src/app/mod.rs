//! Applications: bulk data, a transfer of fixed size, on-off traffic, one of many transfers, video, requests and messages; and UDP
//! sources. An application owns the connection that it writes to.

pub(crate) mod requests;
pub(crate) mod udp;
pub(crate) mod video;

use crate::mptcp::connection::Connection;
use crate::net::World;
use crate::net::event::{NEVER, Timer, TimerKind};
use crate::net::record::since;
use crate::stream::DSN_MAX;
use crate::tcp::state::Phase;
use mptcplab_model::link::rng::Rng;
use mptcplab_model::traffic::duration;
use mptcplab_scenario::DurationDistribution;
use mptcplab_trace::{EventKind, NOT_MEASURED, TransferRow};
use requests::Dialogue;
use video::VideoServer;

/// An application and its connection.
// At the beginning of a cache line, as `Subflow`, so that its parts lie in as few lines as they fill.
#[repr(C, align(64))]
pub(crate) struct App {
    pub(crate) conn: Connection,
    pub(crate) kind: Kind,
    pub(crate) start_ns: u64,
    pub(crate) stop_ns: u64,
    /// Start, stop, and events of the kind in between.
    pub(crate) timer: Timer,
}

/// Kinds of applications.
pub(crate) enum Kind {
    /// Always has data.
    Bulk,
    /// This many bytes, then close.
    Size { bytes: u64 },
    /// Data without limit during `on`, nothing during `off`.
    OnOff {
        on: DurationDistribution,
        off: DurationDistribution,
        active: bool,
        rng: Rng,
    },
    /// One of many transfers: index of its pool, and its number there.
    Transfer { pool: u32, index: u32 },
    /// Chunks of a video, as its player asks for them.
    Video(Box<VideoServer>),
    /// Requests and responses, or messages. Its connection is the direction from the flow's sender to its receiver; the engine
    /// moves both.
    Requests(Box<Dialogue>),
    /// The other direction of the connection that this application owns.
    Back { of: u32 },
}

impl App {
    pub(crate) fn new(conn: Connection, kind: Kind, start_ns: u64, stop_ns: u64) -> Self {
        Self {
            conn,
            kind,
            start_ns,
            stop_ns,
            timer: Timer::OFF,
        }
    }

    /// Set a timer for when the application first acts.
    pub(crate) fn start(&mut self, cx: &mut World) {
        if !matches!(self.kind, Kind::Back { .. }) {
            self.set_timer(cx, self.start_ns);
        }
        self.conn.tx.arm_priority(cx);
    }

    pub(crate) fn set_timer(&mut self, cx: &mut World, at: u64) {
        cx.timers
            .set(&mut self.timer, at, TimerKind::App, self.conn.tx.index);
    }

    /// The timer fired: start, switch or stop.
    pub(crate) fn on_timer(&mut self, cx: &mut World) {
        let is_closed = self.conn.subflows[0].sender.phase == Phase::Closed;
        if cx.now >= self.stop_ns {
            // Nothing new is written; what was written is still delivered.
            self.conn.tx.written = self.conn.tx.written.min(self.conn.tx.next);
            cx.rec
                .flow_event(cx.now, EventKind::FlowStopped, self.conn.flow, 0);
        } else {
            self.write(cx);
            if is_closed {
                cx.rec
                    .flow_event(cx.now, EventKind::FlowStarted, self.conn.flow, 0);
                self.conn.open(cx, 0);
            }
        }
        self.conn.push(cx, 0);
    }

    fn write(&mut self, cx: &mut World) {
        let tx = &mut self.conn.tx;
        let mut next = self.stop_ns;
        match &mut self.kind {
            Kind::Bulk => tx.written = DSN_MAX,
            Kind::Size { bytes } => self.conn.write_size(*bytes),
            Kind::OnOff {
                on,
                off,
                active,
                rng,
            } => {
                *active = !*active;
                tx.written = if *active { DSN_MAX } else { tx.next };
                let distribution = if *active { *on } else { *off };
                next = next.min(cx.now + duration(distribution, rng).max(1));
            }
            // The pool of transfers writes, and so does the engine for requests.
            Kind::Transfer { .. } | Kind::Requests(_) | Kind::Back { .. } => {}
            Kind::Video(video) => {
                if next != NEVER {
                    cx.timers
                        .set(&mut self.timer, next, TimerKind::App, tx.index);
                }
                return video.on_request(cx.now, &mut self.conn);
            }
        }
        if next != NEVER {
            self.set_timer(cx, next);
        }
    }

    /// The connection is established.
    pub(crate) fn on_open(&mut self, cx: &mut World) {
        let at = match &mut self.kind {
            Kind::Video(video) => video.on_open(cx.now),
            Kind::Requests(dialogue) => dialogue.on_open(cx.now),
            _ => return,
        };
        self.expect_request(cx, at);
    }

    /// The next request arrives or is sent then, unless the application has stopped.
    fn expect_request(&mut self, cx: &mut World, at: u64) {
        if cx.now < self.stop_ns {
            self.set_timer(cx, at.min(self.stop_ns));
        }
    }

    /// All that was written is at the receiver.
    pub(crate) fn on_complete(&mut self, cx: &mut World) {
        match &mut self.kind {
            Kind::Size { .. } => {
                let (flow, bytes) = (self.conn.flow, self.conn.rx.delivered_bytes());
                cx.rec
                    .flow_event(cx.now, EventKind::FlowCompleted, flow, bytes);
                self.record_transfer(cx, cx.now);
            }
            Kind::Transfer { .. } => self.record_transfer(cx, cx.now),
            Kind::Video(video) => {
                let at = video.on_complete(cx, &self.conn);
                self.expect_request(cx, at);
            }
            Kind::Bulk | Kind::OnOff { .. } | Kind::Requests(_) | Kind::Back { .. } => {}
        }
    }

    /// The run is over: a transfer that is not complete is recorded as such.
    pub(crate) fn record_unfinished(&self, cx: &mut World) {
        let is_closed = self.conn.subflows[0].sender.phase == Phase::Closed;
        match &self.kind {
            Kind::Size { .. } | Kind::Transfer { .. } if !is_closed && !self.conn.rx.completed => {
                self.record_transfer(cx, NEVER);
            }
            Kind::Video(video) => video.record_unfinished(cx, &self.conn),
            _ => {}
        }
    }

    /// The row of a transfer over a connection of its own, complete at `done_ns`.
    fn record_transfer(&self, cx: &mut World, done_ns: u64) {
        let transfer = match self.kind {
            Kind::Transfer { index, .. } => index,
            _ => 0,
        };
        let rx = &self.conn.rx;
        cx.rec.tables.transfer.push(TransferRow {
            t_ns: self.start_ns,
            flow: self.conn.flow,
            transfer,
            bytes: rx.transfer_bytes(),
            media_bps: 0,
            first_byte_ns: since(rx.first_byte_ns, self.start_ns),
            completion_ns: since(done_ns, self.start_ns),
            resent_pkts: self.conn.resent_pkts(),
            stall_ns: NOT_MEASURED,
        });
    }
}
