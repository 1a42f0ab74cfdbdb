//! What the emulator did, and whether it was good enough.

use crate::handle::PairStats;
use crate::histogram::Summary;
use serde::{Deserialize, Serialize};

/// The emulator's account of itself when it has ended. Order of links, ports and pairs as in the set-up.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// How the thread was scheduled.
    pub scheduling: Scheduling,
    /// For how long before a release the thread looked at the clock instead of sleeping, in ns; 0: it only slept.
    pub spin_ns: u64,
    /// Whether the kernel keeps the process in memory.
    pub memory_locked: bool,
    /// The kernel's answer if that was asked for and refused.
    pub memory_refused: Option<String>,
    /// When the thread began and ended, on the run's clock.
    pub from_ns: u64,
    /// See `from_ns`.
    pub to_ns: u64,
    /// Processor time of the thread, spinning included, and with it the protocol processing of the receiving hosts.
    pub cpu_ns: u64,
    /// Time spent spinning.
    pub spun_ns: u64,
    /// How late the thread woke when it had asked to wake at a time: how late it also wakes for packets.
    pub wakeups: Summary,
    /// Longest time in which the thread did not look at its ports because it was busy, or not running.
    pub worst_busy_ns: u64,
    /// Longest time that handing one packet to the destination's kernel took.
    pub worst_write_ns: u64,
    /// Longest time that taking a sample took.
    pub worst_sample_ns: u64,
    /// Each link.
    pub links: Vec<LinkReport>,
    /// Each port.
    pub ports: Vec<PortReport>,
    /// Each address pair.
    pub pairs: Vec<PairStats>,
    /// The first packets in the order of what happened to them, if [`Options`](crate::Options) ask for it.
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
    /// As any other thread: releases are late by milliseconds where others want the processor.
    Normal {
        /// The kernel's answer if real-time priority was asked for.
        refused: Option<String>,
    },
}

/// One link at the end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkReport {
    /// Its name.
    pub name: String,
    /// Its shortest propagation delay: that of its configuration or of a change that took effect.
    pub delay_ns: u64,
    /// Packets that arrived.
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
    /// Lateness of its releases.
    pub lateness: Summary,
}

/// One port at the end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PortReport {
    /// Its name.
    pub name: String,
    /// Packets read from it.
    pub read_pkts: u64,
    /// Packets written to it.
    pub written_pkts: u64,
    /// What was read and is not a whole IP packet; it was dropped.
    pub malformed_pkts: u64,
    /// Packets read from a port that feeds no link; they were dropped.
    pub unrouted_pkts: u64,
}

/// One thing that happened to a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogEntry {
    /// A packet arrived at a link.
    Arrival {
        /// Index of the link.
        link: usize,
        /// Its place among the arrivals at this link, from 0.
        number: u64,
        /// When, on the run's clock.
        at_ns: u64,
        /// Its length.
        ip_bytes: u32,
        /// Its flow, as flow queueing tells flows apart.
        flow_hash: u64,
        /// Whether its ECN field says ECT or CE.
        ecn_capable: bool,
        /// What the link did with it.
        verdict: mptcplab_model::link::Verdict,
    },
    /// A link released a packet.
    Release {
        /// Index of the link.
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

/// Whether a run's emulation can be trusted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verdict {
    /// What was wrong, one sentence with its figures each; empty if nothing was.
    pub problems: Vec<String>,
}

impl Verdict {
    /// Whether nothing was wrong.
    pub fn is_valid(&self) -> bool {
        self.problems.is_empty()
    }
}

impl Report {
    /// Compare with what may be. `paths` are the indices of the links of each path, in order.
    ///
    /// A path's lateness is the sum over its links of the 99th percentile of releases and the 99th percentile of
    /// wake-ups, which stands for arrivals that were read late; a sum of percentiles errs on the late side. Any packet
    /// that was lost without the model saying so is a problem, however late or early the others were.
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
        let used: Vec<&&LinkReport> = links
            .iter()
            .filter(|link| link.lateness.count > 0)
            .collect();
        let delay_ns: u64 = links.iter().map(|link| link.delay_ns).sum();
        let allowed_ns = bound.floor_ns.max((delay_ns as f64 * bound.share) as u64);
        let late_ns: u64 = used
            .iter()
            .map(|link| link.lateness.p99_ns.saturating_add(self.wakeups.p99_ns))
            .fold(0, u64::saturating_add);
        if late_ns <= allowed_ns {
            return None;
        }
        let names: Vec<&str> = links.iter().map(|link| link.name.as_str()).collect();
        let parts: Vec<String> = used.iter().map(|link| us(link.lateness.p99_ns)).collect();
        Some(format!(
            "path {}: emulation was late by up to {} at the 99th percentile (releases {}, waking {} per link), allowed \
             are {} for a propagation delay of {} (the larger of {} and {} %); thread scheduling {}",
            names.join(" > "),
            us(late_ns),
            parts.join(" + "),
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
                "link {}: its destination did not take {} of {} packets, which is no loss of the model",
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
                "port {}: {malformed} packets were no whole IP packets and {unrouted} came where no link begins; they \
                 were dropped, which is no loss of the model",
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

/// For messages.
fn us(ns: u64) -> String {
    format!("{:.1} us", ns as f64 / 1e3)
}

#[cfg(test)]
mod tests;
