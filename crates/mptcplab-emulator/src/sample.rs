//! The counters that the emulator reports while it runs.

use mptcplab_model::link::LinkStats;
use serde::{Deserialize, Serialize};

/// Counters at one moment, all cumulative but for `changes` and the links' gauges and maxima.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Sample {
    pub t_ns: u64,
    pub links: Vec<LinkStats>,
    pub pairs: Vec<PairStats>,
    /// Changes of links since the previous sample, in the order in which they took effect.
    pub changes: Vec<LinkChange>,
    /// Released packets so far that their destination's device did not take.
    pub write_failed_pkts: u64,
    /// Largest lateness of a release since the previous sample.
    pub lateness_max_ns: u64,
}

/// Data packets of one address pair so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct PairStats {
    /// Data packets that arrived at the pair's first link, before its losses.
    pub sent_pkts: u64,
    /// Data packets that its last link delivered.
    pub rx_pkts: u64,
    /// Their bytes with the last link's layer-2 overhead.
    pub rx_wire_bytes: u64,
    /// Their TCP or UDP payload.
    pub rx_payload_bytes: u64,
}

/// A link changed by its schedule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkChange {
    pub link: usize,
    /// Index of the change in the link's schedule.
    pub change: usize,
    /// When it took effect: the schedule's time.
    pub at_ns: u64,
}
