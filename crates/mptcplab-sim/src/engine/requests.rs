//! Requests and messages on connections that last. A connection in this simulator carries data one way, so that one whose ends
//! answer each other is two of them: one from the flow's sender to its receiver, and its back direction. The handshake of the
//! first opens both.

use super::event_loop::Engine;
use crate::app::requests::{Dialogue, Step};
use crate::app::{App, Kind};
use crate::net::event::NEVER;
use crate::tcp::state::Phase;
use mptcplab_trace::EventKind;

impl Engine<'_> {
    /// The application's timer fired: start, the next request or stop.
    #[inline(never)]
    pub(super) fn on_requests_timer(&mut self, c: usize) {
        let (now, cx) = (self.world.now, &mut self.world);
        let app = &mut self.apps[c];
        let (flow, stop_ns) = (app.conn.flow, app.stop_ns);
        if now >= stop_ns {
            // What was sent is still answered and delivered.
            return cx.rec.flow_event(now, EventKind::FlowStopped, flow, 0);
        }
        if app.conn.subflows[0].sender.phase == Phase::Closed {
            cx.rec.flow_event(now, EventKind::FlowStarted, flow, 0);
            app.conn.open(cx, 0);
        }
        let Some(dialogue) = dialogue(app) else {
            return;
        };
        if dialogue.begin(now, stop_ns) {
            self.open_back(c, self.apps[c].conn.tx.opener());
        }
        self.send_requests(c);
    }

    /// Send what is due, and wait for what comes next.
    fn send_requests(&mut self, c: usize) {
        while let Some(dialogue) = dialogue(&mut self.apps[c]) {
            let Some(request) = dialogue.take_due(self.world.now) else {
                break;
            };
            let (asking, answering) = (dialogue.asking(c), dialogue.answering(c));
            self.write(asking, request.bytes, answering);
        }
        let app = &mut self.apps[c];
        let next = dialogue(app)
            .map_or(NEVER, |d| d.next_ns())
            .min(app.stop_ns);
        if next != NEVER && self.world.now < app.stop_ns {
            app.set_timer(&mut self.world, next);
        }
    }

    /// Write a message in one direction; it carries the ACKs that wait for the data of the other.
    fn write(&mut self, leg: usize, bytes: u64, other: Option<usize>) {
        if let Some(other) = other {
            self.apps[other].conn.send_waiting_acks(&mut self.world);
        }
        let conn = &mut self.apps[leg].conn;
        conn.write_message(bytes);
        conn.push(&mut self.world, 0);
    }

    /// Messages are complete in the direction `leg` of the connection `c`: they are answered, or requests are complete.
    #[inline(never)]
    pub(super) fn on_messages(&mut self, c: usize, leg: usize) {
        while let Some(first_byte_ns) = self.apps[leg].conn.rx.take_complete_message() {
            let Some(dialogue) = dialogue(&mut self.apps[c]) else {
                return;
            };
            match (dialogue.on_message(c, leg), dialogue.answering(c)) {
                (Step::Answer(bytes), Some(answers)) => {
                    self.open_back(c, self.apps[c].conn.tx.opener());
                    self.write(answers, bytes, Some(leg));
                }
                _ => dialogue.complete(&mut self.world, first_byte_ns),
            }
        }
        self.apps[leg].conn.wake_reader(&mut self.world);
        self.send_requests(c);
    }

    /// The receiver of subflow `k` has the last packet of the handshake: data may flow back.
    pub(super) fn open_back(&mut self, c: usize, k: usize) {
        let app = &mut self.apps[c];
        let rtt_us = app.conn.subflows[k].sender.rtt.latest_us;
        if let Some(back) = dialogue(app).and_then(|d| d.back) {
            let back = &mut self.apps[back as usize].conn;
            back.accept(&mut self.world, k, u64::from(rtt_us) * 1000);
        }
    }

    /// The run is over: requests that are not complete are recorded as such.
    pub(super) fn record_open_requests(&mut self, c: usize) {
        let Kind::Requests(dialogue) = &self.apps[c].kind else {
            return;
        };
        let last = dialogue.answering(c).unwrap_or(c);
        let rx = &self.apps[last].conn.rx;
        dialogue.record_unfinished(&mut self.world, |i| rx.first_byte_of_message(i));
    }
}

fn dialogue(app: &mut App) -> Option<&mut Dialogue> {
    match &mut app.kind {
        Kind::Requests(dialogue) => Some(dialogue),
        _ => None,
    }
}
