//! What the `run` table says about one run: enough to explain the result and to repeat it years later.

use crate::Column;

/// One row of the `run` table, plus the names that the sampled tables' indices stand for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunRecord {
    /// Position in the sweep; the `run` column of every table.
    pub run: u32,
    /// Engine that made the trace ("sim", "kernel", "fluid").
    pub engine: String,
    /// Version of the engine.
    pub engine_version: String,
    /// Source revision, compiler and target of the build.
    pub build: String,
    /// Name of the scenario.
    pub scenario: String,
    /// One line about the scenario for people.
    pub title: String,
    /// What the run is compared by: the value of the axis `cc`, or the flows' algorithms joined by "+".
    pub cc: String,
    /// How ACKs are sent and counted.
    pub profile: String,
    /// Values of all sweep axes, a JSON object.
    pub axes: String,
    /// Repetition number, from 0.
    pub rep: u32,
    /// The scenario's seed.
    pub seed: u64,
    /// End of the run.
    pub duration_ns: u64,
    /// Metrics ignore what lies before.
    pub warmup_ns: u64,
    /// Sampling interval; `None` when samples were off.
    pub sample_ns: Option<u64>,
    /// The scenario file as it was read.
    pub scenario_toml: String,
    /// The run with every default filled in, JSON.
    pub resolved: String,
    /// Algorithm and parameters that each subflow really ran, a JSON list of {flow, subflow, cc, params}.
    pub subflow_cc: String,
    /// Packet scheduler that every MPTCP flow really had, a JSON object by flow; null without packets.
    pub scheduler: String,
    /// What the trace is worth.
    pub status: Status,
    /// Why the status is not "complete", for people; empty otherwise.
    pub status_reason: String,
    /// What else the run depended on (the machine, libraries) and what the engine found out, a JSON object; `{}` for the
    /// simulator, whose results depend on nothing else.
    pub host: String,
    /// Events that the engine processed.
    pub events: u64,
    /// Packets (data, ACK, UDP) times links crossed.
    pub packet_hops: u64,
    /// Names behind the `flow` index.
    pub flow_names: Vec<String>,
    /// Names behind the `subflow` index: `subflow_names[flow][subflow]`.
    pub subflow_names: Vec<Vec<String>>,
    /// Names behind the `link` index.
    pub link_names: Vec<String>,
}

/// What a run's trace is worth.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Status {
    /// The run went as the scenario says, up to its end.
    #[default]
    Complete,
    /// It ended early; what is there is right, but the rest is missing.
    Partial,
    /// It went on to its end or not, but not as the scenario says: nothing may be concluded from it.
    Invalid,
}

impl Status {
    /// The word in the `run` table.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Complete => "complete",
            Self::Partial => "partial",
            Self::Invalid => "invalid",
        }
    }
}

/// Columns of the `run` table, in order.
pub const RUN_COLUMNS: &[Column] = &[
    column("run", "", "position of the run in the sweep"),
    column("engine", "", "engine that made the trace"),
    column("engine_version", "", "version of the engine"),
    column(
        "build",
        "",
        "source revision, compiler and target of the build",
    ),
    column("scenario", "", "name of the scenario"),
    column("title", "", "one line about the scenario"),
    column(
        "cc",
        "",
        "value of the axis cc, or the flows' algorithms joined by +",
    ),
    column("profile", "", "how ACKs are sent and counted"),
    column("axes", "", "values of all sweep axes, a JSON object"),
    column("rep", "", "repetition number, from 0"),
    column("seed", "", "seed of the scenario"),
    column("duration_ns", "ns", "end of the run"),
    column("warmup_ns", "ns", "metrics ignore what lies before"),
    column(
        "sample_ns",
        "ns",
        "sampling interval; null when samples were off",
    ),
    column("scenario_toml", "", "the scenario file as it was read"),
    column("resolved", "", "the run with every default filled in, JSON"),
    column(
        "subflow_cc",
        "",
        "algorithm and parameters that each subflow really ran, a JSON list",
    ),
    column(
        "scheduler",
        "",
        "packet scheduler that every MPTCP flow really had, a JSON object; null in a fluid, which has no packets",
    ),
    column(
        "status",
        "",
        "complete; partial: the run ended early; invalid: nothing may be concluded from it",
    ),
    column("status_reason", "", "why the status is not complete"),
    column(
        "host",
        "",
        "what else the run depended on and what the engine found out, a JSON object; empty for the simulator",
    ),
    column("events", "", "events that the engine processed"),
    column(
        "packet_hops",
        "packets",
        "packets (data, ACK, UDP) times links crossed",
    ),
];

const fn column(name: &'static str, unit: &'static str, doc: &'static str) -> Column {
    Column { name, unit, doc }
}
