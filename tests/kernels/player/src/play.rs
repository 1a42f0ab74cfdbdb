//! Plays a script against the kernel, as `wire.rs` of the simulator's tests plays it against the simulator.
//!
//! The kernel's timers count ticks of up to 10 ms and may be some of them late. What they send is waited for, and the script's
//! clock is set back by as much, so that its later times are still as long after it as they were.

use super::packet::{self, Segment};
use super::peer::{Peer, Result, count, tick_ns};
use super::setup::Setup;
use mptcplab_conformance::script::{Action, Arrival, Line, Script};
use mptcplab_conformance::text::{self, Ack};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Timers may be this many ticks late: TCP adds two to a probe's wait, and the last one rounds.
const LATE_TICKS: u64 = 3;
/// And by this part of their time, because the kernel's timers are the coarser the longer they run (kernel/time/timer.c).
const LATE_PART: u64 = 8;
/// What the processor needs between a packet and the answer.
const CLOSE_NS: u64 = 1_000_000;

/// How a script ended.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// The kernel does what the script says. The names of the state that the kernel does not show.
    Agrees(Vec<String>),
    /// The line, what is wrong, and what was sent.
    Differs(String),
    /// Why the script cannot be played.
    Cannot(String),
}

/// Plays a script; an error is one of the machine, not of the kernel's TCP.
pub(crate) fn play(script: &Script) -> Result<Outcome> {
    let setup = match Setup::of(script) {
        Ok(setup) => setup,
        Err(why) => return Ok(Outcome::Cannot(why)),
    };
    let mut player = Player::new(script, setup)?;
    for line in &script.lines {
        if let Err(why) = player.play(line)? {
            let number = line.number;
            return Ok(Outcome::Differs(format!(
                "line {number}: {why}\n\nsent so far:\n{}",
                player.log
            )));
        }
    }
    player.run_until(player.peer.elapsed_ns())?;
    if player.sent.is_empty() {
        player.not_shown.dedup();
        return Ok(Outcome::Agrees(player.not_shown));
    }
    Ok(Outcome::Differs(format!(
        "after the last line: unexpected {}",
        player.shown()
    )))
}

/// Why a line does not hold, or nothing.
type Verdict = std::result::Result<(), String>;

/// A packet of the kernel.
struct Sent {
    at_ns: u64,
    segment: Segment,
    /// The first segment of data.
    first: u32,
    /// It was sent before.
    again: bool,
}

struct Player {
    peer: Peer,
    is_receiver: bool,
    is_silent: bool,
    tick_ns: u64,
    /// The time of the last line that moved a packet.
    moved_ns: u64,
    /// The script's clock is so much behind.
    behind_ns: u64,
    sent: Vec<Sent>,
    /// Timestamps of the latest transmission of every data segment.
    stamps: Vec<u32>,
    /// Timestamps of what was sent at the time of a line.
    stamps_at: BTreeMap<u64, u32>,
    acked: u32,
    echoed: u32,
    not_shown: Vec<String>,
    log: String,
}

impl Player {
    fn new(script: &Script, setup: Setup) -> Result<Self> {
        let mut player = Self {
            peer: Peer::new(setup, script.is_receiver)?,
            is_receiver: script.is_receiver,
            is_silent: script.is_silent,
            tick_ns: tick_ns()?,
            moved_ns: script.handshake_ns,
            behind_ns: 0,
            sent: Vec::new(),
            stamps: Vec::new(),
            stamps_at: BTreeMap::new(),
            acked: 0,
            echoed: 0,
            not_shown: Vec::new(),
            log: String::new(),
        };
        player.run_until(script.handshake_ns)?;
        player.peer.shake_hands()?;
        Ok(player)
    }

    /// Take what the kernel sends until a time of the clock.
    fn run_until(&mut self, until_ns: u64) -> Result<()> {
        loop {
            if self.is_receiver {
                self.peer.read()?;
            } else {
                self.peer.write()?;
            }
            match self.peer.next(until_ns)? {
                Some((at_ns, segment)) => self.take(at_ns, segment),
                None => return Ok(()),
            }
        }
    }

    fn take(&mut self, at_ns: u64, segment: Segment) {
        if segment.flags & packet::SYN != 0 {
            self.peer.note_handshake(&segment);
            return;
        }
        if (segment.payload_bytes > 0) == self.is_receiver {
            return;
        }
        let first = self.peer.kernel_segment(segment.seq);
        let again = !self.is_receiver && (first as usize) < self.stamps.len();
        if !self.is_receiver {
            let segments = self.stamps.len().max(first as usize + 1);
            self.stamps.resize(segments, 0);
            self.stamps[first as usize] = segment.stamps.0;
        }
        let sent = Sent {
            at_ns,
            segment,
            first,
            again,
        };
        let at_ms = (at_ns - self.behind_ns.min(at_ns)) as f64 / 1e6;
        let _ = writeln!(
            self.log,
            "{at_ms:10.3} {}",
            self.words(&[&sent], &[]).concat()
        );
        if !self.is_silent {
            self.sent.push(sent);
        }
    }

    fn play(&mut self, line: &Line) -> Result<Verdict> {
        let at_ns = line.at_ns + self.behind_ns;
        match &line.action {
            Action::Sends(expected) => self.expect(line.at_ns, expected),
            Action::Arrives(arrival) => {
                self.run_until(at_ns)?;
                let unexpected = self.nothing_before(at_ns);
                if unexpected.is_ok() {
                    self.moved_ns = line.at_ns;
                    self.arrive(arrival)?;
                }
                Ok(unexpected)
            }
            Action::Is(pairs) => {
                self.run_until(at_ns)?;
                if let Err(why) = self.nothing_before(at_ns) {
                    return Ok(Err(why));
                }
                for (name, value) in pairs {
                    if let Err(why) = self.check(name, value)? {
                        return Ok(Err(why));
                    }
                }
                Ok(Ok(()))
            }
        }
    }

    /// What is sent at the time of the line may be said in a later line.
    fn nothing_before(&self, at_ns: u64) -> Verdict {
        if self.sent.iter().all(|sent| sent.at_ns + CLOSE_NS >= at_ns) {
            return Ok(());
        }
        Err(format!("unexpected {}", self.shown()))
    }

    fn expect(&mut self, line_ns: u64, expected: &[String]) -> Result<Verdict> {
        let at_ns = line_ns + self.behind_ns;
        self.run_until(at_ns)?;
        let mut wait_ns = line_ns.saturating_sub(self.moved_ns);
        if wait_ns > 0 && expected.iter().any(|words| words.starts_with("again")) {
            // Not every ACK starts the retransmission timer again.
            wait_ns = wait_ns.max(u64::from(self.peer.info()?.rto_us) * 1000);
        }
        let late_ns = LATE_TICKS * self.tick_ns + wait_ns / LATE_PART + CLOSE_NS;
        let deadline_ns = at_ns.max(self.peer.elapsed_ns()) + late_ns;
        while !expected.is_empty() && self.found(expected) != expected {
            match self.peer.next(deadline_ns)? {
                Some((at_ns, segment)) => self.take(at_ns, segment),
                None => break,
            }
        }
        if self.found(expected) != expected {
            let wanted = match expected {
                [] => "nothing".to_owned(),
                some => some.join(", "),
            };
            return Ok(Err(format!("expected {wanted}, but sent {}", self.shown())));
        }
        let Some(first) = self.sent.first() else {
            return Ok(Ok(()));
        };
        if first.at_ns + CLOSE_NS < at_ns {
            let early_ms = (at_ns - first.at_ns) as f64 / 1e6;
            return Ok(Err(format!("sent {early_ms:.1} ms earlier")));
        }
        let late_ns = first.at_ns.saturating_sub(at_ns);
        if late_ns > CLOSE_NS {
            self.behind_ns += late_ns;
        }
        self.moved_ns = line_ns;
        self.stamps_at
            .insert(line_ns / 1_000_000, first.segment.stamps.0);
        self.sent.clear();
        Ok(Ok(()))
    }

    fn found(&self, expected: &[String]) -> Vec<String> {
        self.words(&self.sent.iter().collect::<Vec<_>>(), expected)
    }

    fn shown(&self) -> String {
        match self.found(&[]).as_slice() {
            [] => "nothing".to_owned(),
            some => some.join(", "),
        }
    }

    /// Packets in the words of a script.
    fn words(&self, sent: &[&Sent], expected: &[String]) -> Vec<String> {
        if !self.is_receiver {
            return text::data(sent.iter().map(|one| (one.first, one.again)));
        }
        let like = expected.iter().map(Some).chain(std::iter::repeat(None));
        let words = sent.iter().zip(like);
        words
            .map(|(one, like)| self.ack(&one.segment, like).text(like.map(String::as_str)))
            .collect()
    }

    fn ack(&self, segment: &Segment, like: Option<&String>) -> Ack {
        let range = |(start, end): &(u32, u32)| {
            (self.peer.own_segment(*start), self.peer.own_segment(*end))
        };
        let mut sack: Vec<_> = segment.sack.iter().map(range).collect();
        let first = self.peer.own_segment(segment.ack);
        // RFC 2883 section 4: below the cumulative ACK, or within the block that follows.
        let is_duplicate = match sack.as_slice() {
            [block, rest @ ..] => {
                block.0 < first
                    || rest
                        .first()
                        .is_some_and(|next| next.0 <= block.0 && block.1 <= next.1)
            }
            [] => false,
        };
        let dsack = is_duplicate.then(|| sack.remove(0));
        let stamp_ms = self.peer.stamp_ms(segment.stamps.1);
        Ack {
            first,
            dsack,
            sack,
            echoes: segment.flags & packet::ECE != 0,
            stamp_ms: stamp_like(stamp_ms, like.and_then(|line| word_after(line, "stamp"))),
            window: self.peer.kernel_window(segment.window),
        }
    }

    fn arrive(&mut self, arrival: &Arrival) -> Result<()> {
        if self.is_receiver {
            return self.data_arrive(arrival);
        }
        if arrival.first > self.acked {
            // The segment that the receiver waited for brings the timestamp (RFC 7323 section 4.3).
            self.echoed = self.stamps[self.acked as usize];
            self.acked = arrival.first;
        }
        let echoed = arrival.stamp.map(|ms| {
            let at = self.stamps_at.get(&(ms as u64)).copied();
            at.unwrap_or_else(|| self.peer.kernel_stamp_at((ms * 1e6) as u64))
        });
        let blocks = arrival.dsack.iter().chain(&arrival.sack);
        let ece = if arrival.marked { packet::ECE } else { 0 };
        let mut segment = self.peer.segment(packet::ACK | ece);
        segment.ack = self.peer.kernel_seq(arrival.first);
        segment.sack = blocks
            .map(|(start, end)| (self.peer.kernel_seq(*start), self.peer.kernel_seq(*end)))
            .collect();
        segment.stamps.1 = echoed.unwrap_or(self.echoed);
        if let Some(window) = arrival.window {
            segment.window = self.peer.window(u32::from(window));
        }
        self.peer.send(&segment)
    }

    fn data_arrive(&mut self, data: &Arrival) -> Result<()> {
        for seq in data.first..data.end {
            let is_last = seq + 1 == data.end;
            let push = if data.pushes && is_last {
                packet::PSH
            } else {
                0
            };
            let cwr = if data.reduced { packet::CWR } else { 0 };
            let mut segment = self.peer.segment(packet::ACK | push | cwr);
            segment.seq = self.peer.own_seq(seq);
            segment.payload_bytes = super::setup::SEGMENT_BYTES as usize;
            segment.ecn = match data.marked {
                true => packet::MARKED,
                false => packet::CAPABLE,
            };
            if let Some(ms) = data.stamp {
                segment.stamps.0 = self.peer.stamp_at((ms * 1e6) as u64);
            }
            self.peer.send(&segment)?;
        }
        Ok(())
    }

    /// Compare a part of the state. Times may differ by what the processor needs, and those of timers by a tick.
    fn check(&mut self, name: &str, expected: &str) -> Result<Verdict> {
        let info = self.peer.info()?;
        let found = match name {
            "cwnd" => info.snd_cwnd_pkts.to_string(),
            "ssthresh" if !info.has_ssthresh() => "infinite".to_owned(),
            "ssthresh" => info.snd_ssthresh_pkts.to_string(),
            "state" => match info.ca_state {
                0 => "open",
                1 => "disorder",
                2 => "cwr",
                3 => "recovery",
                _ => "loss",
            }
            .to_owned(),
            "inflight" => info.inflight_pkts().to_string(),
            "lost" => info.lost_pkts.to_string(),
            "reordering" => info.reordering_pkts.to_string(),
            "srtt" => time_like(info.rtt_us, expected, CLOSE_NS),
            "mdev" => time_like(info.rttvar_us, expected, CLOSE_NS),
            "min_rtt" => time_like(info.min_rtt_us, expected, CLOSE_NS),
            // Rounded up to a tick, which the backoff doubles.
            "rto" | "backed_off" => {
                let ticks = 1 << info.backoff;
                time_like(info.rto_us, expected, ticks * self.tick_ns + CLOSE_NS)
            }
            "undos" => {
                let names = [
                    "TCPFullUndo",
                    "TCPPartialUndo",
                    "TCPDSACKUndo",
                    "TCPLossUndo",
                ];
                count(&names)?.to_string()
            }
            "timeouts" => count(&["TCPTimeouts"])?.to_string(),
            "probes" => count(&["TCPLossProbes"])?.to_string(),
            _ => {
                self.not_shown.push(name.to_owned());
                return Ok(Ok(()));
            }
        };
        if found == expected {
            return Ok(Ok(()));
        }
        Ok(Err(format!("{name} is {found}, not {expected}")))
    }
}

/// A time in ms as the script writes it, if it is close to that.
fn time_like(found_us: u32, expected: &str, tolerance_ns: u64) -> String {
    let found_ms = f64::from(found_us) / 1e3;
    match expected.parse::<f64>() {
        Ok(ms) if (found_ms - ms).abs() * 1e6 <= tolerance_ns as f64 => expected.to_owned(),
        _ => format!("{found_ms:.3}"),
    }
}

/// A timestamp as the script writes it, if it differs by a tick of the timestamps at most.
fn stamp_like(found_ms: u64, expected: Option<u64>) -> u64 {
    expected
        .filter(|ms| ms.abs_diff(found_ms) <= 1)
        .unwrap_or(found_ms)
}

fn word_after(line: &str, name: &str) -> Option<u64> {
    let mut words = line.split_whitespace();
    words.find(|word| *word == name)?;
    words.next()?.parse().ok()
}
