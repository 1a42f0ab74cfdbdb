//! The `run` table: one row per run with enough about it to explain the result and to repeat it years later.

use crate::schema::Column;

macro_rules! run_table {
    ($($col:ident: $ty:ty, $unit:literal, $doc:literal;)*) => {
        /// One row of the `run` table, and the names that the indices of the sampled tables stand for.
        #[derive(Debug, Clone, Default, PartialEq, Eq)]
        pub struct RunRecord {
            $(#[doc = concat!($doc, ".")] pub $col: $ty,)*
            /// Names behind the `flow` index.
            pub flow_names: Vec<String>,
            /// Names behind the `subflow` index: `subflow_names[flow][subflow]`.
            pub subflow_names: Vec<Vec<String>>,
            /// Names behind the `link` index.
            pub link_names: Vec<String>,
        }

        impl RunRecord {
            /// Columns of the `run` table, in order.
            pub const COLUMNS: &'static [Column] =
                &[$(Column { name: stringify!($col), unit: $unit, doc: $doc, null: None },)*];

            /// The values of the columns, in order.
            #[must_use]
            pub fn values(&self) -> Vec<RunValue<'_>> {
                vec![$(RunValue::from(&self.$col),)*]
            }
        }
    };
}

run_table! {
    run: u32, "", "position of the run in the sweep";
    engine: String, "", "engine that made the trace";
    engine_version: String, "", "version of the engine";
    build: String, "", "source revision, compiler and target of the build";
    scenario: String, "", "name of the scenario";
    title: String, "", "one line about the scenario";
    cc: String, "", "value of the axis cc, or the flows' algorithms joined by +";
    profile: String, "", "how ACKs are sent and counted";
    axes: String, "", "values of all sweep axes, a JSON object";
    rep: u32, "", "repetition number, from 0";
    seed: u64, "", "seed of the scenario";
    duration_ns: u64, "ns", "end of the run";
    warmup_ns: u64, "ns", "metrics ignore what lies before";
    sample_ns: Option<u64>, "ns", "sampling interval; null when samples were off";
    scenario_toml: String, "", "the scenario file as it was read";
    resolved: String, "", "the run with every default filled in, JSON";
    subflow_cc: String, "", "algorithm and parameters that each subflow really ran, a JSON list";
    scheduler: String, "", "packet scheduler that every MPTCP flow really had, a JSON object; null for the fluid engine, which has no packets";
    status: Status, "", "complete; partial: the run ended early; invalid: nothing may be concluded from it";
    status_reason: String, "", "why the status is not complete";
    digest: String, "", "digest of all that decides the run: resolved scenario, algorithms, engine; empty if it is not known";
    host: String, "", "what else the run depended on and what the engine found out, a JSON object; empty for the simulator";
    events: u64, "", "events that the engine processed";
    packet_hops: u64, "packets", "packets (data, ACK, UDP) times links crossed";
}

/// A value of the `run` table.
#[derive(Debug, Clone, Copy)]
pub enum RunValue<'a> {
    U32(u32),
    U64(u64),
    OptionalU64(Option<u64>),
    Text(&'a str),
}

macro_rules! run_value_from {
    ($($ty:ty, $value:ident => $variant:expr;)*) => {
        $(impl<'a> From<&'a $ty> for RunValue<'a> {
            fn from($value: &'a $ty) -> Self { $variant }
        })*
    };
}
run_value_from! {
    u32, value => Self::U32(*value);
    u64, value => Self::U64(*value);
    Option<u64>, value => Self::OptionalU64(*value);
    String, value => Self::Text(value);
    Status, value => Self::Text(value.name());
}

/// Whether conclusions may be drawn from a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Status {
    /// The run went as the scenario says, up to its end.
    #[default]
    Complete,
    /// The run ended early. What was recorded is right, but the rest is missing.
    Partial,
    /// The run did not go as the scenario says, whether or not it reached its end: nothing may be concluded from it.
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
