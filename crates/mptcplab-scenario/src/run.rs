//! The resolved scenario: what an engine is given. Every unit is explicit, every default filled in.

use mptcplab_model::link::LinkConfig;
use std::fmt;

pub use mptcplab_model::traffic::{Arrivals, Level, SizeLaw, Span, StartTime, Transfers, Video};

/// A scenario file with its sweep axes expanded.
#[derive(Debug, Clone)]
pub struct Sweep {
    /// The scenario's name (the file's stem unless the file says otherwise).
    pub name: String,
    /// One line for people.
    pub title: String,
    /// Where the scenario comes from.
    pub source: String,
    /// The text of the file, for the record.
    pub text: String,
    /// The runs: every combination of axis values, times repetitions. Index = run id.
    pub runs: Vec<Run>,
    /// The axes in file order: (key, values as written).
    pub axes: Vec<(String, Vec<String>)>,
}

/// One run of one engine.
#[derive(Debug, Clone)]
pub struct Run {
    /// Position in the sweep.
    pub id: u32,
    /// The value of every axis, in axis order: (key, value as written). Empty without a sweep.
    pub axes: Vec<(String, String)>,
    /// Repetition number, from 0.
    pub rep: u32,
    /// The scenario's seed; streams are derived from (seed, rep, name of link or flow), so repetition i of
    /// every algorithm sees the same random numbers.
    pub seed: u64,
    /// End of the simulation.
    pub duration_ns: u64,
    /// Metrics ignore what lies before.
    pub warmup_ns: u64,
    /// Sampling interval of the trace; `None` switches samples off.
    pub sample_ns: Option<u64>,
    /// Also record a subflow row for every ACK.
    pub per_ack: bool,
    /// How ACKs are sent and counted.
    pub profile: Profile,
    /// Node names.
    pub nodes: Vec<String>,
    /// Directed links; a duplex link `X` gives `X` and `X~`.
    pub links: Vec<Link>,
    /// Flows in file order.
    pub flows: Vec<Flow>,
}

impl Run {
    /// Propagation delay of a subflow's path, there and back, before any scheduled change.
    pub fn base_rtt_ns(&self, subflow: &Subflow) -> u64 {
        let links = subflow.path.iter().chain(&subflow.reverse);
        links.map(|&link| self.links[link].config.delay_ns).sum()
    }

    /// For every link the largest base RTT of the subflows that cross it, as a way there or as a way back.
    pub fn largest_base_rtts_ns(&self) -> Vec<Option<u64>> {
        largest_base_rtts_ns(&self.links, &self.flows)
    }
}

/// [`Run::largest_base_rtts_ns`] for a run that is not whole yet.
pub(crate) fn largest_base_rtts_ns(links: &[Link], flows: &[Flow]) -> Vec<Option<u64>> {
    let mut largest = vec![None; links.len()];
    for subflow in flows.iter().flat_map(Flow::subflows) {
        let both_ways = || subflow.path.iter().chain(&subflow.reverse);
        let rtt = both_ways().map(|&link| links[link].config.delay_ns).sum();
        for &link in both_ways() {
            largest[link] = largest[link].max(Some(rtt));
        }
    }
    largest
}

/// How ACKs are sent and counted (docs/reference/scenario-format.md, `profile`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Profile {
    /// One ACK per segment, growth per acked segment.
    Rfc,
    /// Delayed ACKs, growth per acked segment.
    LinuxAcked,
    /// Delayed ACKs, coupled growth once per ACK.
    LinuxLegacy,
    /// Delayed ACKs, all growth once per ACK.
    LinuxPre4,
}

impl Profile {
    /// Every profile, in the order of the reference page.
    pub const ALL: [Self; 4] = [
        Self::Rfc,
        Self::LinuxAcked,
        Self::LinuxLegacy,
        Self::LinuxPre4,
    ];

    /// The profile's name in scenario files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Rfc => "rfc",
            Self::LinuxAcked => "linux-acked",
            Self::LinuxLegacy => "linux-legacy",
            Self::LinuxPre4 => "linux-pre4",
        }
    }

    /// Whether the receiver delays ACKs (every second segment, 40 ms timer).
    pub fn delayed_acks(self) -> bool {
        self != Self::Rfc
    }

    /// Whether congestion avoidance counts one packet per ACK, for a coupled or an uncoupled algorithm.
    pub fn growth_per_ack(self, coupled: bool) -> bool {
        match self {
            Self::Rfc | Self::LinuxAcked => false,
            Self::LinuxLegacy => coupled,
            Self::LinuxPre4 => true,
        }
    }
}

/// A directed link.
#[derive(Debug, Clone)]
pub struct Link {
    /// Name in the file, with `~` appended for the reverse direction.
    pub name: String,
    /// Index into [`Run::nodes`].
    pub from: usize,
    /// Index into [`Run::nodes`].
    pub to: usize,
    /// Everything about it.
    pub config: LinkConfig,
}

/// A flow: one TCP connection, one MPTCP connection, one SCTP association or one UDP stream.
#[derive(Debug, Clone)]
pub struct Flow {
    /// Name in the file.
    pub name: String,
    /// When it starts.
    pub start: StartTime,
    /// When the application stops sending (default: the end of the run).
    pub stop_ns: Option<u64>,
    /// What it carries.
    pub transport: Transport,
}

impl Flow {
    /// The subflows, or an SCTP association's destinations; none for UDP.
    pub fn subflows(&self) -> &[Subflow] {
        match &self.transport {
            Transport::Tcp(tcp) => &tcp.subflows,
            Transport::Sctp(sctp) => &sctp.destinations,
            Transport::Udp(_) => &[],
        }
    }
}

/// Transport of a flow.
#[derive(Debug, Clone)]
pub enum Transport {
    /// TCP or MPTCP.
    Tcp(TcpFlow),
    /// One SCTP association that sends over all its paths at once.
    Sctp(SctpFlow),
    /// Constant-rate (or on/off) UDP, no feedback.
    Udp(UdpFlow),
}

/// TCP or MPTCP flow.
#[derive(Debug, Clone)]
pub struct TcpFlow {
    /// Whether it speaks MPTCP; plain TCP has exactly one subflow.
    pub mptcp: bool,
    /// Congestion control: name in the algorithm registry, and parameters as written (name, value).
    pub cc: CcConfig,
    /// Packet scheduler (MPTCP only); `None`: the file names none, and each engine takes its own default.
    pub scheduler: Option<Scheduler>,
    /// Subflows in opening order; the first one opens the connection.
    pub subflows: Vec<Subflow>,
    /// What the application does.
    pub traffic: Traffic,
    /// Receive buffer shared by all subflows.
    pub rcv_buffer: RcvBuffer,
    /// Payload bytes of a full segment (1448 for TCP, 1428 for MPTCP by default).
    pub mss_bytes: u32,
    /// TCP options of the lab.
    pub options: TcpOptions,
}

/// The transport of [`SctpFlow`] in scenario files, and its congestion control in traces.
pub const CMT_SCTP: &str = "cmt-sctp";

/// SCTP with concurrent multipath transfer (CMT-SCTP).
#[derive(Debug, Clone)]
pub struct SctpFlow {
    /// One destination per path; start, stop and backup are never set. The association is set up over the first.
    pub destinations: Vec<Subflow>,
    /// What the application does: bulk or a fixed size.
    pub traffic: Traffic,
    /// Receive buffer of the association; never auto-tuned.
    pub rcv_buffer: RcvBuffer,
    /// Payload bytes of a full DATA chunk, one per packet (1452 by default).
    pub mss_bytes: u32,
}

/// A congestion control with parameters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CcConfig {
    /// Name of the algorithm (file stem), or [`KERNEL_CC`] and the name of one of the kernel's own.
    pub name: String,
    /// Parameter values, checked against the algorithm's declaration; enumerated values already as integers.
    pub params: Vec<(String, u64)>,
}

/// Before the name of a congestion control that belongs to the kernel, which only the kernel engine can run.
pub const KERNEL_CC: &str = "kernel:";

impl CcConfig {
    /// The name in the kernel if this is one of the kernel's own algorithms.
    pub fn kernel_name(&self) -> Option<&str> {
        self.name.strip_prefix(KERNEL_CC)
    }
}

/// The algorithm as a scenario would write it: `ewtcp(weight=fair)`.
impl fmt::Display for CcConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        let declared = mptcplab_cc::find(&self.name).map_or(&[][..], |a| a.params());
        for (i, (name, raw)) in self.params.iter().enumerate() {
            let spec = declared.iter().find(|p| p.name == name);
            let value = spec.map_or(raw.to_string(), |s| s.format(*raw));
            write!(f, "{}{name}={value}", if i == 0 { "(" } else { ", " })?;
        }
        match self.params.is_empty() {
            true => Ok(()),
            false => f.write_str(")"),
        }
    }
}

/// A packet scheduler with its parameters, and which one by itself.
pub use mptcplab_model::sched::{Choice as Scheduler, Kind as SchedulerKind};

/// One subflow.
#[derive(Debug, Clone)]
pub struct Subflow {
    /// Name (`sf1`, or as given).
    pub name: String,
    /// Forward path: indices into [`Run::links`].
    pub path: Vec<usize>,
    /// Path of the ACKs: indices into [`Run::links`].
    pub reverse: Vec<usize>,
    /// Earliest time at which it opens; the first subflow uses the flow's start, others wait for it to be established.
    pub start_ns: Option<u64>,
    /// When it is removed; its data in flight are sent again on the others.
    pub stop_ns: Option<u64>,
    /// Used only when no regular subflow is usable (B bit).
    pub backup: bool,
    /// Changes of `backup` in time order (MP_PRIO).
    pub priorities: Vec<PriorityChange>,
}

/// A subflow becomes a backup or a regular one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PriorityChange {
    /// When.
    pub at_ns: u64,
    /// What it is from then on.
    pub backup: bool,
}

/// What the sending application does.
#[derive(Debug, Clone, PartialEq)]
pub enum Traffic {
    /// Always has data.
    Bulk,
    /// This many bytes, then close.
    Size {
        /// Application bytes.
        bytes: u64,
    },
    /// Data without limit during `on`, nothing during `off`, alternating, starting with `on`.
    OnOff {
        /// Length of an active period.
        on: Span,
        /// Length of a silent period.
        off: Span,
    },
    /// Transfers, each over a connection of its own.
    Transfers(Transfers),
    /// Video in chunks whose encoding follows the measured throughput, over one connection.
    Video(Video),
}

/// Receive buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RcvBuffer {
    /// The window never limits the sender.
    Unlimited,
    /// This many bytes from the start.
    Fixed(u64),
    /// Starts at 128 KiB and grows with the measured rate up to this many bytes (Linux `tcp_rmem`).
    Auto {
        /// Upper bound.
        max_bytes: u64,
    },
}

/// TCP behaviour that a scenario may change. Defaults follow Linux.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TcpOptions {
    /// Initial window in packets (10).
    pub initial_cwnd_pkts: u32,
    /// Initial ssthresh in packets (infinite).
    pub initial_ssthresh_pkts: Option<u32>,
    /// Negotiate ECN (off).
    pub ecn: bool,
    /// How losses are found and repaired (SACK).
    pub recovery: LossRecovery,
    /// Pace at Linux' default gains even if the algorithm does not ask for it (off).
    pub pacing: bool,
    /// Reduce cwnd after an idle period of an RTO (on, RFC 2861).
    pub slow_start_after_idle: bool,
    /// Send data of a subflow that timed out again on another one (on; MPTCP only).
    pub reinject: bool,
    /// Timeouts in a row after which a subflow is set aside (MPTCP only); `None`: each engine's own number.
    pub stale_after: Option<u32>,
    /// Upper bound of the random delay before each packet sent, order kept; breaks phase locking (0).
    pub send_jitter_ns: u64,
    /// Segments leave in groups as Linux makes them, and receivers answer PSH; `None`: each engine's own way.
    pub tso: Option<bool>,
    /// Receivers put ACKs together while segments are missing, as Linux does; `None`: each engine's own way.
    pub comp_sack: Option<bool>,
    /// Largest window in packets (unbounded).
    pub cwnd_clamp_pkts: Option<u32>,
}

/// How a sender finds and repairs losses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LossRecovery {
    /// As Linux: SACK, RACK, tail loss probes, proportional rate reduction, F-RTO, undo.
    Sack,
    /// Fast retransmit, then slow start from a window of 1 (Jacobson 1988).
    Tahoe,
    /// Fast recovery, which the first new ACK ends (RFC 5681).
    Reno,
    /// Fast recovery until all that was in flight is acknowledged (RFC 6582).
    NewReno,
}

impl LossRecovery {
    /// Every kind.
    pub const ALL: [Self; 4] = [Self::Sack, Self::Tahoe, Self::Reno, Self::NewReno];

    /// Its name in scenario files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sack => "sack",
            Self::Tahoe => "tahoe",
            Self::Reno => "reno",
            Self::NewReno => "newreno",
        }
    }
}

/// UDP stream.
#[derive(Debug, Clone)]
pub struct UdpFlow {
    /// Rate on the wire (IP and layer-2 overhead of the first link included).
    pub rate_bps: u64,
    /// IP packet size, headers included.
    pub packet_bytes: u32,
    /// Forward path: indices into [`Run::links`].
    pub path: Vec<usize>,
    /// Silent periods; `None` sends all the time.
    pub on_off: Option<(Span, Span)>,
}
