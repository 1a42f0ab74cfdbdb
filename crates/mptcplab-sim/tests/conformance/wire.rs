//! Plays a script: a real connection, whose packets are taken off the wire as they are sent, and a peer that only the script
//! moves.

use crate::engine::assemble;
use crate::engine::event_loop::Engine;
use crate::engine::partition;
use crate::net::packet::{Header, Kind, Packet, WINDOW_UNLIMITED, tick};
use crate::net::{SackBlocks, WINDOW_UPDATE};
use crate::tcp::segments::flag;
use crate::tcp::sender::{INFINITE_SSTHRESH, Sender};
use mptcplab_cc::CaState;
use mptcplab_conformance::script::{Action, Arrival, Line, Script, parse};
use mptcplab_conformance::text::{self, Ack};
use mptcplab_scenario::{Overrides, Run};
use mptcplab_trace::EventKind;
use std::fmt::Write;

/// A packet counts as sent at the time of a line if it is as close as this.
const CLOSE_NS: u64 = 50_000;

/// A flow over a wire that takes no time; the script says when packets arrive.
fn scenario(script: &Script) -> String {
    let (top, flow) = (script.top.join("\n"), script.flow.join("\n"));
    let profile = if top.contains("profile") {
        ""
    } else {
        "profile = \"rfc\""
    };
    format!(
        r#"
duration = "600 s"
{profile}
{top}
[links.wire]
from = "S"
to = "D"
rate = "40 Gbit/s"
delay = "1 us"
queue = "unlimited"
reverse = {{ queue = "unlimited" }}
[flows.f]
transport = "tcp"
path = ["wire"]
send_jitter = "0 s"
{cc}
{flow}
"#,
        cc = if flow.contains("cc =") {
            ""
        } else {
            "cc = \"reno\""
        },
    )
}

/// Play a script; an error says where it fails.
pub(super) fn outcome(text: &str) -> Result<(), String> {
    let script = parse(text)?;
    let sweep = mptcplab_scenario::parse(
        &scenario(&script),
        "script.toml",
        None,
        &Overrides::default(),
    )
    .map_err(|e| e.to_string())?;
    let run = &sweep.runs[0];
    let mut wire = Wire::new(run, &script);
    wire.shake_hands(script.handshake_ns);
    for line in &script.lines {
        wire.play(line).map_err(|why| {
            let number = line.number;
            format!("line {number}: {why}\n\nsent so far:\n{}", wire.log)
        })?;
    }
    match wire.take_sent() {
        sent if sent.is_empty() => Ok(()),
        sent => Err(format!("after the last line: unexpected {}", shown(&sent))),
    }
}

/// A packet that was taken off the wire.
#[derive(Debug)]
struct Sent {
    at_ns: u64,
    packet: Packet,
    sack: SackBlocks,
    /// This data segment was sent before.
    again: bool,
}

struct Wire<'a> {
    engine: Engine<'a>,
    is_receiver: bool,
    is_silent: bool,
    sent: Vec<Sent>,
    /// Timestamps of the latest transmission of every data segment.
    stamps: Vec<u32>,
    /// The highest ACK that arrived, and the timestamp that it echoed.
    acked: u32,
    echoed: u32,
    log: String,
}

impl<'a> Wire<'a> {
    fn new(run: &'a Run, script: &Script) -> Self {
        let parts = partition::parts(run);
        Self {
            engine: assemble::engine(run, &parts[0]).unwrap(),
            is_receiver: script.is_receiver,
            is_silent: script.is_silent,
            sent: Vec::new(),
            stamps: Vec::new(),
            acked: 0,
            echoed: 0,
            log: String::new(),
        }
    }

    fn sender(&self) -> &Sender {
        &self.engine.apps[0].conn.subflows[0].sender
    }

    fn shake_hands(&mut self, rtt_ns: u64) {
        self.run_until(0);
        let syn = self.packet(Kind::Syn, 0, Header::default());
        self.deliver(0, &syn);
        self.run_until(rtt_ns - 1);
        let answer = self.packet(Kind::SynAck, 0, Header::default());
        self.deliver(rtt_ns, &answer);
    }

    fn packet(&self, kind: Kind, len: u16, header: Header) -> Packet {
        Packet::new(kind, 0, len, header)
    }

    /// Let the timers fire that are due up to and including this time.
    fn run_until(&mut self, at_ns: u64) {
        while self.engine.world.timers.first() <= at_ns {
            self.engine.world.now = self.engine.world.timers.first();
            self.engine.on_timer();
            self.clear_wire();
        }
    }

    fn deliver(&mut self, at_ns: u64, packet: &Packet) {
        assert!(self.engine.world.now <= at_ns, "time runs backwards");
        self.engine.world.now = at_ns;
        self.engine.deliver(*packet);
        self.clear_wire();
    }

    /// Take off the wire what was sent now.
    fn clear_wire(&mut self) {
        let now = self.engine.world.now;
        loop {
            let (at, link) = self.engine.world.net.first();
            if at >= crate::net::event::HORIZON {
                return;
            }
            if let Some(packet) = self.engine.world.net.step(at, link) {
                self.take(now, packet);
            }
        }
    }

    fn take(&mut self, at_ns: u64, packet: Packet) {
        let wanted = if self.is_receiver {
            Kind::Ack
        } else {
            Kind::Data
        };
        if packet.kind() != wanted {
            self.engine.world.net.release(&packet);
            return;
        }
        let seq = packet.seq() as usize;
        let again = !self.is_receiver && seq < self.stamps.len();
        if !self.is_receiver {
            self.stamps.resize(self.stamps.len().max(seq + 1), 0);
            self.stamps[seq] = packet.ts();
        }
        let sack = match packet.sack() {
            0 => SackBlocks::default(),
            handle => self.engine.world.net.sacks.take(handle),
        };
        let sent = Sent {
            at_ns,
            packet,
            sack,
            again,
        };
        let _ = writeln!(self.log, "{:10.3} {}", at_ns as f64 / 1e6, one(&sent));
        if !self.is_silent {
            self.sent.push(sent);
        }
    }

    fn take_sent(&mut self) -> Vec<Sent> {
        std::mem::take(&mut self.sent)
    }

    fn play(&mut self, line: &Line) -> Result<(), String> {
        match &line.action {
            Action::Sends(expected) => {
                self.run_until(line.at_ns + CLOSE_NS);
                self.compare(line.at_ns, expected)
            }
            Action::Arrives(arrival) => {
                self.run_until(line.at_ns);
                self.nothing_before(line.at_ns)?;
                if self.is_receiver {
                    self.data_arrive(line.at_ns, arrival);
                } else {
                    self.ack_arrives(line.at_ns, arrival);
                }
                Ok(())
            }
            Action::Is(pairs) => {
                self.run_until(line.at_ns);
                self.nothing_before(line.at_ns)?;
                pairs
                    .iter()
                    .try_for_each(|(name, value)| self.check(name, value))
            }
        }
    }

    fn nothing_before(&mut self, at_ns: u64) -> Result<(), String> {
        let early = |sent: &Sent| sent.at_ns + CLOSE_NS < at_ns;
        if self.sent.iter().any(early) {
            return Err(format!("unexpected {}", shown(&self.sent)));
        }
        Ok(())
    }

    fn compare(&mut self, at_ns: u64, expected: &[String]) -> Result<(), String> {
        let sent = self.take_sent();
        let found = if self.is_receiver {
            let acks = sent
                .iter()
                .zip(expected.iter().map(Some).chain(std::iter::repeat(None)));
            acks.map(|(sent, like)| ack_text(sent, like))
                .collect::<Vec<_>>()
        } else {
            data_text(&sent)
        };
        if found != expected {
            let wanted = match expected {
                [] => "nothing".to_owned(),
                some => some.join(", "),
            };
            return Err(format!("expected {wanted}, but sent {}", shown(&sent)));
        }
        match sent
            .iter()
            .find(|sent| sent.at_ns.abs_diff(at_ns) > CLOSE_NS)
        {
            Some(late) => Err(format!("sent at {} ms", late.at_ns as f64 / 1e6)),
            None => Ok(()),
        }
    }

    fn ack_arrives(&mut self, at_ns: u64, ack: &Arrival) {
        let mut blocks = SackBlocks::default();
        for block in ack.dsack.iter().chain(&ack.sack) {
            blocks.push(*block);
        }
        blocks.dsack = ack.dsack.is_some();
        let sack = if blocks.len > 0 {
            let (stored, handle) = self.engine.world.net.sacks.store();
            *stored = blocks;
            handle
        } else if ack.updates_window {
            WINDOW_UPDATE
        } else {
            0
        };
        if ack.first > self.acked {
            // The segment that the receiver waited for brings the timestamp (RFC 7323 section 4.3).
            self.echoed = self.stamps[self.acked as usize];
            self.acked = ack.first;
        }
        let stamp = ack.stamp.map(|ms| tick((ms * 1e6) as u64));
        let header = Header {
            seq: ack.first,
            dsn: ack.first,
            ts: stamp.unwrap_or(self.echoed),
            sack,
            wnd: ack.window.unwrap_or(WINDOW_UNLIMITED),
        };
        let mut packet = self.packet(Kind::Ack, 52, header);
        if ack.marked {
            packet.set_echo();
        }
        self.deliver(at_ns, &packet);
    }

    fn data_arrive(&mut self, at_ns: u64, data: &Arrival) {
        for seq in data.first..data.end {
            let stamp = data.stamp.map_or(at_ns, |ms| (ms * 1e6) as u64);
            let header = Header {
                seq,
                dsn: seq,
                ts: tick(stamp),
                wnd: u16::from(data.pushes && seq + 1 == data.end),
                ..Header::default()
            };
            let mut packet = self.packet(Kind::Data, 1500, header);
            if data.marked {
                mptcplab_model::link::Packet::mark_ce(&mut packet);
            }
            if data.reduced {
                packet.set_echo();
            }
            self.deliver(at_ns, &packet);
        }
    }

    /// Compare a part of the state, rounded as the script writes it.
    fn check(&self, name: &str, expected: &str) -> Result<(), String> {
        let decimals = expected
            .split_once('.')
            .map_or(0, |(_, places)| places.len());
        let ms = |ns: u64| format!("{:.decimals$}", ns as f64 / 1e6);
        let us = |us: u32| format!("{:.decimals$}", f64::from(us) / 1e3);
        let sender = self.sender();
        let (tp, recovery) = (&sender.sock.tp, &sender.recovery);
        let rack = &sender.scoreboard.rack;
        let connection = &self.engine.apps[0].conn;
        let count = |kind: EventKind| {
            let kinds = &self.engine.world.rec.tables.event.kind;
            kinds
                .iter()
                .filter(|k| **k == kind as u8)
                .count()
                .to_string()
        };
        let found = match name {
            "cwnd" => tp.snd_cwnd.to_string(),
            "ssthresh" if tp.snd_ssthresh == INFINITE_SSTHRESH => "infinite".to_owned(),
            "ssthresh" => tp.snd_ssthresh.to_string(),
            "state" => match recovery.state {
                CaState::Open => "open",
                CaState::Disorder => "disorder",
                CaState::Cwr => "cwr",
                CaState::Recovery => "recovery",
                CaState::Loss => "loss",
            }
            .to_owned(),
            "inflight" => sender.inflight().to_string(),
            "lost" => (tp.snd_una..tp.snd_nxt)
                .filter(|seq| sender.segments.get(*seq).flags & flag::LOST != 0)
                .count()
                .to_string(),
            "srtt" => us(tp.srtt_us >> 3),
            "mdev" => us(tp.mdev_us >> 2),
            "rttvar" => us(tp.rttvar_us >> 2),
            "min_rtt" => us(tp.min_rtt_us),
            "rto" => ms(sender.rtt.rto_ns()),
            "backed_off" => ms(sender.rto_backed_off()),
            "reo_wnd" => ms(sender.reordering_window()),
            "reo_wnd_mult" => rack.reo_wnd_mult.to_string(),
            "reordering" => sender.scoreboard.reordering.to_string(),
            "undos" => count(EventKind::Undo),
            "timeouts" => count(EventKind::RtoFired),
            "probes" => count(EventKind::TlpSent),
            "losses" => count(EventKind::LossEvent),
            "pacing" => format!("{:.decimals$}", sender.default_pacing_rate() as f64),
            "room" => connection.rx.room().segments().to_string(),
            _ => return Err(format!("there is no state {name}")),
        };
        if found == expected {
            Ok(())
        } else {
            Err(format!("{name} is {found}, not {expected}"))
        }
    }
}

/// Data segments as ranges; those that were sent before are `again`.
fn data_text(sent: &[Sent]) -> Vec<String> {
    text::data(sent.iter().map(|one| (one.packet.seq(), one.again)))
}

/// An ACK; its timestamp and window only if the script's line has them.
fn ack_text(sent: &Sent, like: Option<&String>) -> String {
    let packet = &sent.packet;
    let (dsack, sack) = sent.sack.as_slice().split_at(usize::from(sent.sack.dsack));
    let ack = Ack {
        first: packet.seq(),
        dsack: dsack.first().copied(),
        sack: sack.to_vec(),
        echoes: packet.echo(),
        stamp_ms: packet.ts().into(),
        window: packet.wnd().into(),
    };
    ack.text(like.map(String::as_str))
}

fn one(sent: &Sent) -> String {
    match sent.packet.kind() {
        Kind::Ack => ack_text(sent, None),
        _ => data_text(std::slice::from_ref(sent)).concat(),
    }
}

fn shown(sent: &[Sent]) -> String {
    match sent {
        [] => "nothing".to_owned(),
        [first, ..] if first.packet.kind() == Kind::Ack => {
            sent.iter().map(one).collect::<Vec<_>>().join(", ")
        }
        _ => data_text(sent).join(", "),
    }
}
