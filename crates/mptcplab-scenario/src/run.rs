//! The resolved scenario, which engines run. Every unit is explicit, and every default is filled in.

use crate::headers::Dss;
use mptcplab_model::link::LinkConfig;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;

pub use mptcplab_model::traffic::{
    ArrivalRate, Arrivals, DurationDistribution, RequestKind, RequestTimes, Requests,
    SizeDistribution, StartTime, Transfers, Video,
};

/// A scenario file with its sweep axes expanded.
#[derive(Debug, Clone)]
pub struct Sweep {
    /// The stem of the file's name, unless the file sets a name.
    pub name: String,
    /// A description of one line.
    pub title: String,
    /// The source of the scenario, such as a paper and a section.
    pub source: String,
    /// The text of the file; traces store it.
    pub text: String,
    /// Every combination of axis values, times repetitions. The index is the run's id.
    pub runs: Vec<Run>,
    /// The axes in file order: key, and values as written.
    pub axes: Vec<(String, Vec<String>)>,
    /// The files that the scenario names and its runs use, as paths relative to the scenario file, sorted.
    pub files: Vec<String>,
}

/// One run of one engine. Repetitions share what they have in common.
#[derive(Debug, Clone)]
pub struct Run {
    /// Position in the sweep.
    pub id: u32,
    /// The value of each axis, in axis order: key, and value as written. Empty without a sweep.
    pub axes: Vec<(String, String)>,
    /// Repetition number, from 0.
    pub rep: u32,
    /// Random streams are derived from (seed, rep, name of the link or flow), so that repetition i of every algorithm sees
    /// the same random numbers.
    pub seed: u64,
    /// End of the run.
    pub duration_ns: u64,
    /// Metrics ignore everything before this time.
    pub warmup_ns: u64,
    /// Sampling interval of the trace; `None` for no samples.
    pub sample_ns: Option<u64>,
    /// Whether the trace also has a subflow row for every ACK.
    pub per_ack: bool,
    pub profile: Profile,
    /// Names of the nodes.
    pub nodes: Arc<[String]>,
    /// Directed links. A duplex link `X` becomes `X` and `X~`.
    pub links: Arc<[Link]>,
    /// Flows in file order.
    pub flows: Arc<[Flow]>,
}

impl Run {
    /// Propagation delay of a subflow's path in both directions, before any scheduled change.
    pub fn base_rtt_ns(&self, subflow: &Subflow) -> u64 {
        let links = subflow.path.iter().chain(&subflow.reverse);
        links.map(|&link| self.links[link].config.delay_ns).sum()
    }

    /// For each link, the largest base RTT of the subflows whose data or ACKs cross it.
    pub fn largest_base_rtts_ns(&self) -> Vec<Option<u64>> {
        largest_base_rtts_ns(&self.links, &self.flows)
    }
}

/// [`Run::largest_base_rtts_ns`] for a run that is not complete yet.
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
    /// One ACK per segment; growth per acknowledged segment.
    Rfc,
    /// Delayed ACKs; growth per acknowledged segment.
    LinuxAcked,
    /// Delayed ACKs; coupled algorithms grow once per ACK.
    LinuxLegacy,
    /// Delayed ACKs; every algorithm grows once per ACK.
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

    /// The name in scenario files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Rfc => "rfc",
            Self::LinuxAcked => "linux-acked",
            Self::LinuxLegacy => "linux-legacy",
            Self::LinuxPre4 => "linux-pre4",
        }
    }

    /// Whether the receiver delays ACKs: it acknowledges every second segment, or after 40 ms.
    pub fn delayed_acks(self) -> bool {
        self != Self::Rfc
    }

    /// Whether congestion avoidance of a coupled or an uncoupled algorithm counts one packet per ACK.
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
    /// The name in the file, with `~` appended for the reverse direction.
    pub name: String,
    /// Index into [`Run::nodes`].
    pub from: usize,
    /// Index into [`Run::nodes`].
    pub to: usize,
    pub config: LinkConfig,
}

/// A flow: one TCP connection, one MPTCP connection, one SCTP association or one UDP stream.
#[derive(Debug, Clone)]
pub struct Flow {
    pub name: String,
    pub start: StartTime,
    /// When the application stops sending; `None` for the end of the run.
    pub stop_ns: Option<u64>,
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

/// The transport protocol of a flow.
#[derive(Debug, Clone)]
pub enum Transport {
    Tcp(TcpFlow),
    /// An SCTP association that sends on all its paths at once.
    Sctp(SctpFlow),
    /// UDP at a constant rate, or on and off, without feedback.
    Udp(UdpFlow),
}

/// A TCP or MPTCP flow.
#[derive(Debug, Clone)]
pub struct TcpFlow {
    /// Whether the flow uses MPTCP. Plain TCP has exactly one subflow.
    pub mptcp: bool,
    pub cc: CcConfig,
    /// Packet scheduler (MPTCP only); `None` if the file names none, and each engine uses its own default.
    pub scheduler: Option<Scheduler>,
    /// In opening order; the first one opens the connection.
    pub subflows: Vec<Subflow>,
    pub traffic: Traffic,
    /// Shared by all subflows.
    pub rcv_buffer: RcvBuffer,
    /// Payload bytes of a full segment (1448 for TCP, 1428 for MPTCP by default).
    pub mss_bytes: u32,
    pub options: TcpOptions,
}

impl TcpFlow {
    /// Whether Nagle's algorithm is on: the sockets of requests always have `TCP_NODELAY`.
    pub fn waits_to_fill_segments(&self) -> bool {
        self.options.nagle && !matches!(self.traffic, Traffic::Requests(_))
    }
}

/// Name of the transport of [`SctpFlow`] in scenario files, and of its congestion control in traces.
pub const CMT_SCTP: &str = "cmt-sctp";

/// SCTP with concurrent multipath transfer (CMT-SCTP).
#[derive(Debug, Clone)]
pub struct SctpFlow {
    /// One destination per path; start, stop and backup are never set. The association is set up over the first one.
    pub destinations: Vec<Subflow>,
    /// Bulk or a fixed size.
    pub traffic: Traffic,
    /// Never auto-tuned.
    pub rcv_buffer: RcvBuffer,
    /// Payload bytes of a full DATA chunk, one per packet (1452 by default).
    pub mss_bytes: u32,
}

/// A congestion control with parameters.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CcConfig {
    /// The stem of the algorithm's file, or [`KERNEL_CC`] and the name of one of the kernel's own algorithms.
    pub name: String,
    /// Names and raw values, checked against the algorithm's declaration; enumerated values are integers.
    pub params: Vec<(String, u64)>,
}

/// Prefix of the name of one of the kernel's own congestion controls, which only the kernel engine can run.
pub const KERNEL_CC: &str = "kernel:";

impl CcConfig {
    /// The kernel's name of the algorithm, if it is one of the kernel's own.
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

pub use mptcplab_model::sched::{Kind as SchedulerKind, SchedulerConfig as Scheduler};

/// One subflow.
#[derive(Debug, Clone)]
pub struct Subflow {
    /// `sf1`, `sf2`, ... unless the file sets a name.
    pub name: String,
    /// Path of the data: indices into [`Run::links`].
    pub path: Vec<usize>,
    /// Path of the ACKs: indices into [`Run::links`].
    pub reverse: Vec<usize>,
    /// The earliest time at which it opens. The first subflow opens at the flow's start; the others also wait until the
    /// first is established.
    pub start_ns: Option<u64>,
    /// When it is removed. Its data in flight is sent again on the other subflows.
    pub stop_ns: Option<u64>,
    /// Whether it is used only while no regular subflow is usable (flag B of MP_JOIN, RFC 8684 section 3.2).
    pub backup: bool,
    /// Changes of `backup` in time order (MP_PRIO, RFC 8684 section 3.3.8).
    pub priorities: Vec<PriorityChange>,
}

/// A subflow becomes a backup or a regular subflow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PriorityChange {
    pub at_ns: u64,
    pub backup: bool,
}

/// The traffic of the sending application.
#[derive(Debug, Clone, PartialEq)]
pub enum Traffic {
    /// Always has data.
    Bulk,
    /// This many application bytes; then the connection closes.
    Size { bytes: u64 },
    /// Unlimited data for `on`, then nothing for `off`, and so on.
    OnOff {
        on: DurationDistribution,
        off: DurationDistribution,
    },
    /// Transfers, each on a connection of its own.
    Transfers(Transfers),
    /// Video in chunks whose encoding follows the measured throughput, on one connection.
    Video(Video),
    /// Requests and their responses, or messages, on one connection.
    Requests(Requests),
}

/// The receive buffer of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RcvBuffer {
    /// The window never limits the sender.
    Unlimited,
    /// This many bytes from the start.
    Fixed(u64),
    /// Memory of an MPTCP connection in Linux 7.3 that takes this many bytes in full segments. What is announced of it
    /// follows the segments that arrive, and begins with half of the memory (Linux d2000361e4dd).
    FixedMemory(u64),
    /// Starts at 128 KiB and grows with the measured rate up to `max_bytes` (Linux `tcp_rmem`).
    Auto { max_bytes: u64, growth: Growth },
}

/// How the automatic receive buffer of an MPTCP connection grows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Growth {
    /// With what is read in the longest round-trip time of the subflows, and with what waits out of order.
    #[default]
    Linux6_18,
    /// With what is read in the shortest round-trip time that subflows had lately (Linux d2000361e4dd and 6b329393502e).
    Linux7_3,
}

/// TCP settings of a flow. The defaults, in brackets, follow Linux.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TcpOptions {
    /// Initial window in packets (10).
    pub initial_cwnd_pkts: u32,
    /// Initial ssthresh in packets (infinite).
    pub initial_ssthresh_pkts: Option<u32>,
    /// Whether ECN is negotiated (off).
    pub ecn: bool,
    /// How losses are detected and repaired (SACK).
    pub recovery: LossRecovery,
    /// Whether packets are paced with Linux' default gains even if the algorithm does not ask for pacing (off).
    pub pacing: bool,
    /// Whether cwnd is reduced after an idle period of an RTO (on; RFC 2861).
    pub slow_start_after_idle: bool,
    /// Whether the data of a subflow that timed out is sent again on another one (on; MPTCP only).
    pub reinject: bool,
    /// Number of timeouts in a row after which a subflow counts as stale (MPTCP only); `None` for the engine's default.
    pub stale_after: Option<u32>,
    /// Upper bound of the random delay before each packet is sent, which keeps the order; `None` for what avoids phase
    /// effects on the subflow's path. [`Run::send_jitter_ns`] has the value for a subflow.
    pub send_jitter_ns: Option<u64>,
    /// Constant delay before each data packet is sent: the time that the hosts at both ends take to process a packet (0).
    pub host_delay_ns: u64,
    /// Whether segments leave in bursts as with Linux' TSO, and receivers answer PSH; `None` for the engine's default.
    pub tso: Option<bool>,
    /// Whether a segment that is not full waits for earlier ones to be acknowledged (on); without `TCP_NODELAY`.
    pub nagle: bool,
    /// Whether and how receivers compress ACKs while segments are missing, as Linux does; `None` for the engine's default.
    pub comp_sack: Option<CompSack>,
    /// How often the first timeout of an unanswered SYN repeats before it doubles (0: it doubles at once; RFC 6298).
    /// Linux since 6.5: 4 (`net.ipv4.tcp_syn_linear_timeouts`).
    pub linear_syn_timeouts: u32,
    /// Widths of the numbers in MPTCP's options (32 bits; MPTCP only).
    pub dss: Dss,
    /// Upper bound of the window in packets (none).
    pub cwnd_clamp_pkts: Option<u32>,
}

/// How a receiver compresses ACKs while segments are missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CompSack {
    Off,
    /// An ACK waits for 5 % of the round-trip time, and its timer may be late by 100 us.
    Linux4_18,
    /// 33 % (`net.ipv4.tcp_comp_sack_rtt_percent`) and 10 us.
    Linux6_19,
}

impl CompSack {
    /// The kernel that began to do so.
    pub fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Linux4_18 => "linux-4.18",
            Self::Linux6_19 => "linux-6.19",
        }
    }
}

/// How a sender detects and repairs losses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LossRecovery {
    /// As in Linux: SACK, RACK, tail loss probes, proportional rate reduction, F-RTO, undo.
    Sack,
    /// Fast retransmit, then slow start from a window of 1 (Jacobson 1988).
    Tahoe,
    /// Fast recovery until the first new ACK (RFC 5681).
    Reno,
    /// Fast recovery until everything that was in flight is acknowledged (RFC 6582).
    NewReno,
}

impl LossRecovery {
    pub const ALL: [Self; 4] = [Self::Sack, Self::Tahoe, Self::Reno, Self::NewReno];

    /// The name in scenario files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sack => "sack",
            Self::Tahoe => "tahoe",
            Self::Reno => "reno",
            Self::NewReno => "newreno",
        }
    }
}

/// A UDP stream.
#[derive(Debug, Clone)]
pub struct UdpFlow {
    /// Rate on the wire, with IP headers and the layer-2 overhead of the first link.
    pub rate_bps: u64,
    /// Size of an IP packet with its headers.
    pub packet_bytes: u32,
    /// Forward path: indices into [`Run::links`].
    pub path: Vec<usize>,
    /// Lengths of active and silent periods; `None` if the stream never pauses.
    pub on_off: Option<(DurationDistribution, DurationDistribution)>,
}
