//! What director and lab tell each other: one JSON object per line over a socket pair.

use mptcplab_emulator::Report;
use mptcplab_model::link::LinkStats;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// From the director.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum ToLab {
    /// What to run; the first message.
    Run(Box<Order>),
    /// Time 0 of the run, on CLOCK_MONOTONIC.
    Go { zero_ns: u64 },
}

/// A run to make.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Order {
    pub(crate) scenario: PathBuf,
    /// As on the command line.
    pub(crate) overrides: String,
    /// Which run of the sweep.
    pub(crate) run: u32,
    /// The run as the director resolved it: the lab must come to the same.
    pub(crate) resolved: String,
    /// Kernel-visible names of the plan's algorithms.
    pub(crate) algorithms: Vec<String>,
    pub(crate) traffic: Traffic,
}

/// Who makes the traffic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
pub(crate) enum Traffic {
    /// Our own sender and receiver.
    Own,
    /// iperf3 for bulk TCP and MPTCP flows.
    Iperf3,
}

/// From the lab.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum FromLab {
    /// Everything is set up; the cookies of the namespaces by node.
    Ready { cookies: Vec<u64> },
    /// Something happened.
    Event(Happening),
    /// The state of everything.
    Sample(Box<Sample>),
    /// The run is over and this is the lab's account of it.
    Done(Box<Account>),
    /// The run cannot begin.
    Failed {
        message: String,
        hint: Option<String>,
    },
}

/// A row of the event table that the lab knows of; indices of the run, -1 for none.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct Happening {
    pub(crate) t_ns: u64,
    pub(crate) kind: u8,
    pub(crate) flow: i32,
    pub(crate) subflow: i32,
    pub(crate) link: i32,
    pub(crate) value: u64,
}

/// One sample.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Sample {
    /// Time that the rows get.
    pub(crate) t_ns: u64,
    /// How much later the last of its values was read.
    pub(crate) late_ns: u64,
    pub(crate) flows: Vec<FlowSample>,
    pub(crate) subflows: Vec<SubflowSample>,
    pub(crate) links: Vec<LinkSample>,
    /// Transfers that were complete since the one before.
    pub(crate) transfers: Vec<TransferSample>,
}

/// A row of the table of transfers; `None` for what has not happened or cannot be told.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct TransferSample {
    pub(crate) t_ns: u64,
    pub(crate) flow: u32,
    pub(crate) transfer: u32,
    pub(crate) bytes: u64,
    pub(crate) media_bps: u64,
    pub(crate) first_byte_ns: Option<u64>,
    pub(crate) completion_ns: Option<u64>,
    pub(crate) resent_pkts: Option<u64>,
    pub(crate) stall_ns: Option<u64>,
}

/// A flow; `None` where this kernel does not tell.
#[derive(Debug, Default, Clone, Serialize, Deserialize)]
pub(crate) struct FlowSample {
    pub(crate) delivered_bytes: u64,
    pub(crate) sent_bytes: u64,
    pub(crate) ooo_bytes: Option<u64>,
    pub(crate) rcv_window_bytes: Option<u64>,
    pub(crate) reinjected_pkts: Option<u64>,
    pub(crate) duplicate_pkts: Option<u64>,
    pub(crate) blocked_ns: Option<u64>,
}

/// A subflow as TCP_INFO and the emulator know it; the tracer's counters are the director's. Of flows whose transfers
/// have a connection each it has what arrived: the director adds up the rest.
#[derive(Debug, Default, Clone, Serialize, Deserialize)]
pub(crate) struct SubflowSample {
    pub(crate) flow: u32,
    pub(crate) subflow: u32,
    /// Port of the sender; 0 before there is one.
    pub(crate) port: u16,
    /// As in the trace.
    pub(crate) state: u8,
    pub(crate) cwnd_pkts: u32,
    pub(crate) ssthresh_pkts: u32,
    pub(crate) inflight_pkts: u32,
    pub(crate) srtt_us: u32,
    pub(crate) min_rtt_us: u32,
    pub(crate) rto_us: u32,
    pub(crate) pacing_bps: u64,
    pub(crate) sent_pkts: u64,
    /// With the SYN's.
    pub(crate) retrans_pkts: u64,
    /// With the SYN.
    pub(crate) delivered_pkts: u64,
    pub(crate) rx_pkts: u64,
    pub(crate) rx_wire_bytes: u64,
    pub(crate) rx_payload_bytes: u64,
}

/// A link, as the table has it.
#[derive(Debug, Default, Clone, Serialize, Deserialize)]
pub(crate) struct LinkSample {
    pub(crate) queue_pkts: u32,
    pub(crate) queue_bytes: u64,
    pub(crate) arrived_pkts: u64,
    pub(crate) dropped_random_pkts: u64,
    pub(crate) dropped_queue_pkts: u64,
    pub(crate) marked_pkts: u64,
    pub(crate) departed_pkts: u64,
    pub(crate) departed_bytes: u64,
    pub(crate) queue_delay_sum_ns: u64,
    pub(crate) queue_delay_max_ns: u64,
}

impl From<&LinkStats> for LinkSample {
    fn from(s: &LinkStats) -> Self {
        Self {
            queue_pkts: s.queue_pkts,
            queue_bytes: s.queue_bytes,
            arrived_pkts: s.arrived_pkts,
            dropped_random_pkts: s.dropped_random_pkts,
            dropped_queue_pkts: s.dropped_queue_pkts,
            marked_pkts: s.marked_pkts,
            departed_pkts: s.departed_pkts,
            departed_bytes: s.departed_bytes,
            queue_delay_sum_ns: s.queue_delay_sum_ns,
            queue_delay_max_ns: s.queue_delay_max_ns,
        }
    }
}

/// What the lab says at the end.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Account {
    /// What went otherwise than the scenario says, the first first; empty in a good run.
    pub(crate) troubles: Vec<Trouble>,
    /// Algorithm that each subflow really ran, `[flow][subflow]`, as the kernel calls it; empty where it never
    /// opened.
    pub(crate) algorithms: Vec<Vec<String>>,
    /// The emulator's report.
    pub(crate) emulator: Option<Report>,
    /// Transfers that were complete since the last sample, and those that never were.
    pub(crate) transfers: Vec<TransferSample>,
    /// Settings of the namespaces that decide results: (key, value).
    pub(crate) sysctls: Vec<(String, String)>,
    /// Largest lateness of a sample, and of those at the edges of the measurement.
    pub(crate) sample_late_ns: u64,
    pub(crate) edge_late_ns: u64,
    /// Regular samples that were left out because the one before took too long.
    pub(crate) samples_skipped: u64,
    /// Longest delay of a UDP packet against its time.
    pub(crate) udp_late_ns: u64,
    /// Longest delay of the beginning of one of many transfers against its time.
    pub(crate) transfer_late_ns: u64,
    /// End of the run, earlier than planned after some troubles.
    pub(crate) ended_ns: u64,
}

/// Something that went wrong in a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Trouble {
    pub(crate) kind: TroubleKind,
    pub(crate) reason: String,
}

/// What it does to the trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum TroubleKind {
    /// What was recorded before is right.
    EndsEarly,
    /// Nothing may be concluded from the run.
    Spoils,
}
