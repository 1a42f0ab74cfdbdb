//! Replays recorded arrivals through the link model without a clock; the result must be what the emulator did.

use mptcplab_emulator::LogEntry;
use mptcplab_model::link::rng::Rng;
use mptcplab_model::link::{Link, LinkConfig, LinkStats, Packet, Verdict};

/// What decides about a packet.
#[derive(Debug)]
struct Ghost {
    number: u64,
    ip_bytes: u32,
    flow_hash: u64,
    ecn_capable: bool,
}

impl Packet for Ghost {
    fn ip_bytes(&self) -> u32 {
        self.ip_bytes
    }
    fn is_ecn_capable(&self) -> bool {
        self.ecn_capable
    }
    fn mark_ce(&mut self) {}
    fn flow_hash(&self) -> u64 {
        self.flow_hash
    }
}

/// Verdicts of the arrivals, and (number, time) of the deliveries.
#[derive(Debug, PartialEq, Eq)]
pub struct Outcome {
    pub verdicts: Vec<Verdict>,
    pub releases: Vec<(u64, u64)>,
}

/// What the log says of this link; panics if a packet was handed over before its time.
pub fn logged(log: &[LogEntry], index: usize) -> Outcome {
    let (mut verdicts, mut releases) = (Vec::new(), Vec::new());
    for entry in log {
        match *entry {
            LogEntry::Arrival { link, verdict, .. } if link == index => verdicts.push(verdict),
            LogEntry::Release {
                link,
                number,
                due_ns,
                at_ns,
            } if link == index => {
                assert!(at_ns >= due_ns, "packet {number} came before its time");
                releases.push((number, due_ns));
            }
            _ => {}
        }
    }
    Outcome { verdicts, releases }
}

/// What an idle link of this configuration does with the logged arrivals, and its counters at `until_ns`.
pub fn replayed(
    log: &[LogEntry],
    index: usize,
    config: &LinkConfig,
    rng: Rng,
    until_ns: u64,
) -> (Outcome, LinkStats) {
    let mut link = Link::new(config, rng);
    let (mut verdicts, mut releases) = (Vec::new(), Vec::new());
    for entry in log {
        let LogEntry::Arrival {
            link: of,
            number,
            at_ns,
            ip_bytes,
            flow_hash,
            ecn_capable,
            ..
        } = *entry
        else {
            continue;
        };
        if of != index {
            continue;
        }
        // Strictly before: the link itself orders what happens at one time.
        run_before(&mut link, at_ns, &mut releases);
        let ghost = Ghost {
            number,
            ip_bytes,
            flow_hash,
            ecn_capable,
        };
        verdicts.push(link.enqueue(at_ns, ghost));
    }
    run_before(&mut link, until_ns + 1, &mut releases);
    let stats = link.stats(until_ns);
    (Outcome { verdicts, releases }, stats)
}

fn run_before(link: &mut Link<Ghost>, before_ns: u64, releases: &mut Vec<(u64, u64)>) {
    while link.next_ns() < before_ns {
        let now = link.next_ns();
        releases.extend(link.poll(now).map(|ghost| (ghost.number, now)));
    }
}
