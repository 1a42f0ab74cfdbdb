//! The four packets that set up an association (RFC 9260 section 5.1), over the first path.
//!
//! Data wait for COOKIE ACK: beside the cookie no full DATA chunk fits into the packet of COOKIE ECHO. All addresses count
//! as confirmed then.

use super::association::{Association, Phase};
use super::chunk::kind;
use crate::net::World;
use crate::net::event::{NEVER, TimerKind};
use crate::net::packet::{Header, Kind, Packet};
use mptcplab_trace::EventKind;

/// IP and SCTP common header.
const HEADER_BYTES: u16 = 32;
/// INIT and INIT ACK without parameters, and an address parameter for each path (RFC 9260 sections 3.3.2, 3.3.3).
const INIT_BYTES: u16 = 20;
const ADDRESS_BYTES: u16 = 8;
/// The cookie, with its parameter's or chunk's header: what it holds is the implementation's affair; a hundred-odd bytes
/// for two transmission control blocks' worth of tags, TSNs and addresses, and a hash.
const COOKIE_BYTES: u16 = 132;
/// COOKIE ACK.
const EMPTY_CHUNK_BYTES: u16 = 4;

impl Association {
    /// Send INIT.
    pub(super) fn open(&mut self, cx: &mut World) {
        self.phase = Phase::InitSent;
        self.handshake_ns = cx.now;
        self.request(cx);
    }

    /// Send what the phase is waiting for an answer to.
    fn request(&mut self, cx: &mut World) {
        let (kind, bytes) = match self.phase {
            Phase::InitSent => (kind::INIT, self.init_bytes()),
            Phase::CookieSent => (kind::COOKIE_ECHO, COOKIE_BYTES),
            Phase::Closed | Phase::Established => return,
        };
        let first = &mut self.destinations[0];
        let packet = control(Kind::Other, first.id, kind, bytes);
        cx.net.send(cx.now, packet);
        let at = cx.now + first.rto.timeout_ns();
        cx.timers
            .set(&mut first.timer, at, TimerKind::Destination, first.id);
    }

    fn init_bytes(&self) -> u16 {
        INIT_BYTES + ADDRESS_BYTES * self.destinations.len() as u16
    }

    /// No answer: again, twice as late.
    pub(super) fn retry_handshake(&mut self, cx: &mut World) {
        self.handshake_tries += 1;
        self.destinations[0].rto.back_off();
        self.request(cx);
    }

    /// One of the four packets arrived, at either end.
    pub(super) fn on_handshake(&mut self, cx: &mut World, packet: &Packet) {
        match packet.wnd() {
            kind::INIT => self.answer(cx, kind::INIT_ACK, self.init_bytes() + COOKIE_BYTES),
            kind::COOKIE_ECHO => self.answer(cx, kind::COOKIE_ACK, EMPTY_CHUNK_BYTES),
            kind::INIT_ACK if self.phase == Phase::InitSent => {
                // A repeated INIT has no time of its own (Karn).
                if self.handshake_tries == 0 {
                    self.destinations[0].rto.sample(cx.now - self.handshake_ns);
                }
                self.handshake_tries = 0;
                self.phase = Phase::CookieSent;
                self.request(cx);
            }
            kind::COOKIE_ACK if self.phase == Phase::CookieSent => self.establish(cx),
            // An answer that came twice.
            _ => {}
        }
    }

    fn answer(&self, cx: &mut World, kind: u16, bytes: u16) {
        let packet = control(Kind::OtherBack, self.destinations[0].id, kind, bytes);
        cx.net.send(cx.now, packet);
    }

    fn establish(&mut self, cx: &mut World) {
        self.phase = Phase::Established;
        self.destinations[0].timer.deadline = NEVER;
        for destination in &mut self.destinations {
            destination.last_sent_ns = cx.now;
            destination.progress_ns = cx.now;
            let took = cx.now - self.handshake_ns;
            cx.rec
                .event(cx.now, EventKind::SubflowAdded, destination.id, took);
        }
        self.transmit(cx);
    }
}

fn control(kind: Kind, id: u32, chunk: u16, bytes: u16) -> Packet {
    let header = Header {
        wnd: chunk,
        ..Header::default()
    };
    Packet::new(kind, id, HEADER_BYTES + bytes, header)
}
