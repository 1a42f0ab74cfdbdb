//! The emulator's final report, and whether the emulation was accurate enough.

use crate::histogram::Summary;
use crate::sample::PairStats;
use serde::{Deserialize, Serialize};

/// What the emulator did until it ended. Links, ports and pairs are in the order of the set-up.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// How the thread was scheduled.
    pub scheduling: Scheduling,
    /// How long before a release the thread spun on the clock instead of sleeping, in ns; 0 if it only slept.
    pub spin_ns: u64,
    /// Whether the process is locked in memory.
    pub memory_locked: bool,
    /// The kernel's error if locking the memory was asked for and refused.
    pub memory_refused: Option<String>,
    /// When the thread began, on the run's clock.
    pub from_ns: u64,
    /// When the thread ended, on the run's clock.
    pub to_ns: u64,
    /// Processor time of the thread, including spinning and the protocol processing of the receiving hosts.
    pub cpu_ns: u64,
    /// Time spent spinning.
    pub spun_ns: u64,
    /// How late the thread woke from sleeps with a timeout; it wakes as late for packets.
    pub wakeups: Summary,
    /// Longest time in which the thread did not poll its ports because it was busy or not running.
    pub worst_busy_ns: u64,
    /// Longest time that writing one packet to its destination took.
    pub worst_write_ns: u64,
    /// Longest time that taking a sample took.
    pub worst_sample_ns: u64,
    pub links: Vec<LinkReport>,
    pub ports: Vec<PortReport>,
    pub pairs: Vec<PairStats>,
    /// Arrivals and releases of the first packets, if [`Options`](crate::Options) ask for them.
    #[serde(skip)]
    pub log: Vec<LogEntry>,
}

/// How the emulator's thread was scheduled.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scheduling {
    /// `SCHED_FIFO` with this priority.
    RealTime {
        /// 1 to 99.
        priority: u8,
    },
    /// An ordinary thread: releases are late by milliseconds where others want the processor.
    Normal {
        /// The kernel's answer if real-time priority was asked for.
        refused: Option<String>,
    },
}

/// One link at the end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkReport {
    pub name: String,
    /// Its shortest propagation delay: that of its configuration or of a change that took effect.
    pub delay_ns: u64,
    pub arrived_pkts: u64,
    /// Random losses, outages included.
    pub dropped_random_pkts: u64,
    /// Drops by a full queue or an AQM.
    pub dropped_queue_pkts: u64,
    /// ECN marks.
    pub marked_pkts: u64,
    /// Packets that the link released, those in `write_failed_pkts` included.
    pub released_pkts: u64,
    /// Packets on the link when the emulator ended.
    pub in_transit_pkts: u64,
    /// Released packets that the destination's device did not take: not part of the model, so 0 in a good run.
    pub write_failed_pkts: u64,
    /// Changes of the schedule that took effect.
    pub changes_applied: usize,
    /// Lateness of its releases into ports. Releases into other links are never late.
    pub lateness: Summary,
    /// From when a packet was due at a port until the host behind it has answered, if it answers at once: the lateness and
    /// the time that the host's protocols take.
    pub answers: Summary,
}

/// One port at the end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PortReport {
    pub name: String,
    /// Packets read from it.
    pub read_pkts: u64,
    /// Packets written to it.
    pub written_pkts: u64,
    /// Packets read that are not whole IP packets; they were dropped.
    pub malformed_pkts: u64,
    /// Packets read that no link or way leads on; they were dropped.
    pub unrouted_pkts: u64,
}

/// An arrival or a release of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogEntry {
    /// A packet arrived at a link.
    Arrival {
        link: usize,
        /// Its place among the arrivals at this link, from 0.
        number: u64,
        at_ns: u64,
        ip_bytes: u32,
        /// Hash of its flow, as used by flow queueing.
        flow_hash: u64,
        /// Whether its ECN field says ECT or CE.
        ecn_capable: bool,
        /// What the link did with it.
        verdict: mptcplab_model::link::Verdict,
    },
    /// A link released a packet.
    Release {
        link: usize,
        /// Its place among the arrivals at this link, from 0.
        number: u64,
        /// When it was due, on the run's clock.
        due_ns: u64,
        /// When it was handed to the destination.
        at_ns: u64,
    },
}

/// How late releases may be: the larger of a fixed time and a share of the path's one-way propagation delay.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bound {
    /// Always allowed for the 99th percentile, in ns.
    pub floor_ns: u64,
    /// Allowed share of the path's propagation delay.
    pub share: f64,
}

impl Default for Bound {
    /// 1 ms, or 5 % of the path's delay where that is more.
    fn default() -> Self {
        Self {
            floor_ns: 1_000_000,
            share: 0.05,
        }
    }
}

/// Whether a run's emulation was accurate enough to be used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verdict {
    /// Each problem as one sentence with its figures; empty if there was none.
    pub problems: Vec<String>,
}

impl Verdict {
    /// Whether there was no problem.
    pub fn is_valid(&self) -> bool {
        self.problems.is_empty()
    }
}

impl Report {
    /// Compares the lateness of each path with the bound. `paths` are the indices of the links of each path, in order.
    ///
    /// A path's lateness is the 99th percentile of the lateness of releases of its last link plus the 99th percentile of
    /// the lateness of wake-ups, which stands for packets that were read late. A sum of percentiles overestimates. Any packet that was lost without being dropped by the model is a problem too.
    pub fn judge(&self, bound: &Bound, paths: &[Vec<usize>]) -> Verdict {
        let mut problems: Vec<String> = paths
            .iter()
            .filter_map(|path| self.late_path(bound, path))
            .collect();
        problems.extend(self.links.iter().filter_map(LinkReport::failed_writes));
        problems.extend(self.ports.iter().filter_map(PortReport::unexpected));
        problems.dedup();
        Verdict { problems }
    }

    fn late_path(&self, bound: &Bound, path: &[usize]) -> Option<String> {
        let links: Vec<&LinkReport> = path
            .iter()
            .filter_map(|&link| self.links.get(link))
            .collect();
        let last = links.last().filter(|link| link.lateness.count > 0)?;
        let delay_ns: u64 = links.iter().map(|link| link.delay_ns).sum();
        let allowed_ns = bound.floor_ns.max((delay_ns as f64 * bound.share) as u64);
        let late_ns = last.lateness.p99_ns.saturating_add(self.wakeups.p99_ns);
        if late_ns <= allowed_ns {
            return None;
        }
        let names: Vec<&str> = links.iter().map(|link| link.name.as_str()).collect();
        Some(format!(
            "path {}: emulation was late by up to {} at the 99th percentile (releases {}, waking {}), allowed \
             are {} for a propagation delay of {} (the larger of {} and {} %); thread scheduling {}",
            names.join(" > "),
            us(late_ns),
            us(last.lateness.p99_ns),
            us(self.wakeups.p99_ns),
            us(allowed_ns),
            us(delay_ns),
            us(bound.floor_ns),
            bound.share * 100.0,
            self.scheduling,
        ))
    }
}

impl LinkReport {
    fn failed_writes(&self) -> Option<String> {
        (self.write_failed_pkts > 0).then(|| {
            format!(
                "link {}: its destination refused {} of {} packets, a loss that the link model did not cause",
                self.name, self.write_failed_pkts, self.released_pkts
            )
        })
    }
}

impl PortReport {
    fn unexpected(&self) -> Option<String> {
        let (malformed, unrouted) = (self.malformed_pkts, self.unrouted_pkts);
        (malformed + unrouted > 0).then(|| {
            format!(
                "port {}: {malformed} packets were not whole IP packets and {unrouted} had no way to go; they \
                 were dropped, a loss that the link model did not cause",
                self.name
            )
        })
    }
}

impl Scheduling {
    /// Whether the thread has real-time priority.
    pub fn is_real_time(&self) -> bool {
        matches!(self, Self::RealTime { .. })
    }
}

impl std::fmt::Display for Scheduling {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::RealTime { priority } => write!(f, "real-time (FIFO {priority})"),
            Self::Normal { refused: None } => write!(f, "normal"),
            Self::Normal { refused: Some(why) } => write!(f, "normal (real-time refused: {why})"),
        }
    }
}

/// A duration for messages.
fn us(ns: u64) -> String {
    format!("{:.1} us", ns as f64 / 1e3)
}

#[cfg(test)]
mod tests;
