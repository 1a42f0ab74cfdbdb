//! One run's row of the `run` table, from the scenario and what the simulator says it did.

use crate::build;
use mptcplab_scenario::{Run, Sweep};
use mptcplab_sim::Outcome;
use mptcplab_trace::{Engine, RunRecord};

pub(crate) fn record(sweep: &Sweep, run: &Run, outcome: &Outcome) -> RunRecord {
    let engine = Engine {
        name: "sim",
        version: build::VERSION,
        build: build::LINE,
        scheduler: Some(mptcplab_sim::DEFAULT_SCHEDULER),
        subflow_cc: &outcome.subflow_cc,
        events: outcome.events,
        packet_hops: outcome.packet_hops,
    };
    RunRecord::new(sweep, run, &engine)
}
