//! The messages between supervisor and lab.

use mptcplab_emulator::Report;
use mptcplab_trace::{EventRow, LinkRow, RequestRow, TransferRow};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// A message from the supervisor to the lab.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum ToLab {
    /// The run to make; the first message.
    Run(Box<RunRequest>),
    /// Start at time 0 of the run, which is this reading of CLOCK_MONOTONIC.
    Go { zero_ns: u64 },
}

/// The run that the lab is to make.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct RunRequest {
    pub(crate) scenario: PathBuf,
    /// The overrides as on the command line.
    pub(crate) overrides: String,
    /// Which run of the sweep.
    pub(crate) run: u32,
    /// The run as the supervisor resolved it; the lab must resolve it to the same.
    pub(crate) resolved: String,
    /// Kernel-visible names of the plan's algorithms.
    pub(crate) algorithms: Vec<String>,
    /// Directory with algorithms that are not in the build.
    pub(crate) compiled: Option<PathBuf>,
    /// The files that the scenario consists of, by the paths with which they are opened.
    pub(crate) files: Vec<PathBuf>,
    /// The programs that generate the traffic of bulk flows; `None` for the engine's own sender and receiver.
    pub(crate) programs: Option<Programs>,
    pub(crate) place: Place,
}

/// Where the lab is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Place {
    /// In a process of its own, from which nothing of the host can be reached.
    Process,
    /// In a thread of the supervisor, in a virtual machine that holds nothing but this run. There every instruction takes
    /// time, and when the processor changes from one process to another, QEMU forgets all addresses that it has
    /// translated.
    Thread,
}

impl Place {
    pub(crate) fn of(in_machine: bool) -> Self {
        if in_machine {
            Self::Thread
        } else {
            Self::Process
        }
    }
}

/// Absolute paths of the programs that generate the traffic. Only root and the user of the engine can change them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Programs {
    pub(crate) iperf3: PathBuf,
    pub(crate) mptcpize: Option<PathBuf>,
}

/// The application that generates the traffic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Traffic {
    /// The engine's own sender and receiver.
    Own,
    /// iperf3 for bulk TCP and MPTCP flows.
    Iperf3,
}

/// A message from the lab to the supervisor.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum FromLab {
    /// Everything is set up. Contains the cookies of the namespaces, by node.
    Ready { cookies: Vec<u64> },
    /// An event that only the lab can observe.
    Event(EventRow),
    /// A sample of all flows, subflows and links.
    Sample(Box<Sample>),
    /// The run has ended.
    Done(Box<RunReport>),
    /// The run cannot begin.
    Failed {
        message: String,
        hint: Option<String>,
    },
}

/// The state of all flows, subflows and links at one time.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Sample {
    /// The time of the rows.
    pub(crate) t_ns: u64,
    pub(crate) flows: Vec<FlowSample>,
    pub(crate) subflows: Vec<SubflowSample>,
    pub(crate) links: Vec<LinkRow>,
    /// What the sockets of connections show now, where it is not what they showed before.
    pub(crate) events: Vec<EventRow>,
    /// Transfers completed since the previous sample.
    pub(crate) transfers: Vec<TransferRow>,
    /// The same for requests and messages.
    pub(crate) requests: Vec<RequestRow>,
}

/// A sample of a flow; `None` for what this kernel does not report.
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

/// A sample of a subflow from TCP_INFO and the emulator; the supervisor adds the tracer's counters. For flows in which
/// every transfer has a connection, only what arrived is filled in: the supervisor aggregates the rest.
#[derive(Debug, Default, Clone, Serialize, Deserialize)]
pub(crate) struct SubflowSample {
    pub(crate) flow: u32,
    pub(crate) subflow: u32,
    /// Port of the sender; 0 before there is one.
    pub(crate) port: u16,
    /// The state as in the trace.
    pub(crate) state: u8,
    pub(crate) cwnd_pkts: u32,
    pub(crate) ssthresh_pkts: u32,
    pub(crate) inflight_pkts: u32,
    pub(crate) srtt_us: u32,
    pub(crate) min_rtt_us: u32,
    pub(crate) rto_us: u32,
    pub(crate) pacing_bps: u64,
    pub(crate) sent_pkts: u64,
    /// Including those of the SYN.
    pub(crate) retrans_pkts: u64,
    /// Including the SYN.
    pub(crate) delivered_pkts: u64,
    pub(crate) rx_pkts: u64,
    pub(crate) rx_wire_bytes: u64,
    pub(crate) rx_payload_bytes: u64,
}

/// The lab's report of the whole run.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct RunReport {
    /// Deviations from the scenario, in the order in which they were found; empty in a good run.
    pub(crate) problems: Vec<Problem>,
    /// The kernel-visible name of the algorithm that each subflow really ran, `[flow][subflow]`; empty where it never
    /// opened.
    pub(crate) algorithms: Vec<Vec<String>>,
    /// The emulator's report.
    pub(crate) emulator: Option<Report>,
    /// Events since the last sample.
    pub(crate) events: Vec<EventRow>,
    /// Transfers completed since the last sample, and those that were never completed.
    pub(crate) transfers: Vec<TransferRow>,
    /// The same for requests and messages.
    pub(crate) requests: Vec<RequestRow>,
    /// Sysctls of the namespaces that influence results: (key, value).
    pub(crate) sysctls: Vec<(String, String)>,
    /// Largest lateness of a sample.
    pub(crate) sample_late_ns: u64,
    /// Largest lateness of a sample at an edge of the measured interval.
    pub(crate) edge_late_ns: u64,
    /// Regular samples that were skipped because the previous one took too long.
    pub(crate) samples_skipped: u64,
    /// Largest delay of a UDP packet after its scheduled time.
    pub(crate) udp_late_ns: u64,
    /// Largest delay of a request or of the beginning of a transfer after its scheduled time.
    pub(crate) transfer_late_ns: u64,
    /// When the run ended; some problems end it earlier than planned.
    pub(crate) ended_ns: u64,
}

/// A deviation of a run from its scenario.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Problem {
    pub(crate) kind: ProblemKind,
    pub(crate) reason: String,
}

/// The effect of a problem on the trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum ProblemKind {
    /// The run ends early, but what was recorded before is valid.
    EndsRun,
    /// The run is invalid as a whole.
    InvalidatesRun,
}
