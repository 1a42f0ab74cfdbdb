//! The packet-level simulator: one resolved run in, trace tables out. It has no I/O, no wall clock and no global state.
//!
//! Its folders lie in layers; an import runs downwards only, and a test checks that (`tests/layers.rs`). From the top:
//!
//! - `engine`: partition of the topology, assembly, the event loop, sampling, flows of many transfers;
//! - `app`: applications, each with its connection, and UDP sources;
//! - `sctp`: CMT-SCTP, an association with a destination per path;
//! - `mptcp`: connections above their subflows: scheduling, reinjection, retransmission at connection level;
//! - `tcp`: senders and receivers of subflows;
//! - `stream`: reassembly and delivery in order;
//! - `net`: packets, links, routes, timers and the recorder of the trace.
//!
//! An engine owns applications, an application its connection, a connection its subflows, a subflow its sender and receiver.
//! `control.rs`, which all may use, is how a caller stops a run and takes its rows. `parallel.rs` simulates the parts of a
//! topology on several threads.

#![forbid(unsafe_code)]

mod app;
#[cfg(test)]
#[path = "../tests/conformance/mod.rs"]
mod conformance;
mod control;
mod engine;
#[cfg(test)]
#[path = "../tests/golden/mod.rs"]
mod golden;
mod mptcp;
mod net;
mod parallel;
mod sctp;
mod stream;
mod tcp;

pub use control::{Control, SimError};
use engine::sample_clock::SampleClock;
pub use mptcp::DEFAULT_SCHEDULER;
pub use parallel::Threads;

use control::{Caller, Receiver, SINK_ROWS, Sink};
use engine::partition::{self, Part};
use mptcplab_scenario::Run;
use mptcplab_trace::{MOST_ROWS_PER_GROUP, Tables};

/// The outcome of a run.
#[derive(Debug, Clone, Default)]
pub struct Outcome {
    /// Samples and events.
    pub tables: Tables,
    /// Algorithm of every subflow: `subflow_cc[flow][subflow]`, empty for UDP.
    pub subflow_cc: Vec<Vec<String>>,
    /// Events processed by the engine.
    pub events: u64,
    /// Links crossed by packets of any kind.
    pub packet_hops: u64,
}

/// Simulate one run and keep all its samples in memory.
///
/// # Errors
/// [`SimError::Cancelled`] when `control.cancel` is set, [`SimError::Unsupported`] for a scenario beyond the engine's limits.
pub fn simulate(run: &Run, control: &Control) -> Result<Outcome, SimError> {
    simulate_parts(
        run,
        &partition::parts(run),
        with_room(run, MAX_RESERVED_ROWS),
        control,
        Receiver::Nobody,
    )
}

/// Simulate one run and hand its samples over as they come, some thousand rows at a time, so that a long run
/// of many flows needs no more memory than a short one. `sink` removes the rows that it takes and leaves those that it wants to
/// see again with later ones; false stops the run. The outcome holds the rows that were left at the end.
///
/// # Errors
/// As [`simulate`]; [`SimError::Cancelled`] also when `sink` says stop.
pub fn simulate_streaming(
    run: &Run,
    control: &Control,
    sink: &mut dyn FnMut(&mut Tables) -> bool,
) -> Result<Outcome, SimError> {
    let parts = partition::parts(run);
    stream_parts(run, &parts, Tables::default(), control, sink)
}

/// As [`simulate_streaming`], for a sink that waits until a table fills a row group of its file: with the same rows in the same
/// order, on several threads if the run has several parts that share no link. Half a million rows may wait for those of other parts.
///
/// # Errors
/// As [`simulate_streaming`]; [`SimError::Panicked`] if one of the threads panics.
pub fn simulate_on_threads(
    run: &Run,
    control: &Control,
    threads: Threads,
    sink: &mut dyn FnMut(&mut Tables) -> bool,
) -> Result<Outcome, SimError> {
    let parts = partition::parts(run);
    if threads.count < 2 || parts.len() < 2 {
        let tables = with_room(run, GATHERED_ROWS);
        return stream_parts(run, &parts, tables, control, sink);
    }
    parallel::simulate(run, &parts, control, threads, sink)
}

fn stream_parts(
    run: &Run,
    parts: &[Part],
    tables: Tables,
    control: &Control,
    sink: &mut dyn FnMut(&mut Tables) -> bool,
) -> Result<Outcome, SimError> {
    let receiver = Receiver::Sink(Sink::new(sink));
    simulate_parts(run, parts, tables, control, receiver)
}

fn simulate_parts<'a>(
    run: &Run,
    parts: &[Part],
    tables: Tables,
    control: &'a Control,
    receiver: Receiver<'a>,
) -> Result<Outcome, SimError> {
    let mut caller = Caller {
        control,
        share: parts.len().max(1) as u64,
        receiver,
        abandoned: None,
    };
    let mut outcome = Outcome::of(run, tables);
    for part in parts {
        // One set of tables for all parts: rows are written once and never moved.
        let tables = std::mem::take(&mut outcome.tables);
        let mut part = simulate_part(run, part, tables, &mut caller)?;
        outcome.tables = std::mem::take(&mut part.tables);
        outcome.add(part);
    }
    Ok(outcome)
}

/// The outcome of a part of the topology.
struct PartOutcome {
    tables: Tables,
    /// Flows, and the algorithms of their subflows.
    subflow_cc: Vec<(u32, Vec<String>)>,
    events: u64,
    packet_hops: u64,
}

impl Outcome {
    /// Before the run.
    fn of(run: &Run, tables: Tables) -> Self {
        Self {
            tables,
            subflow_cc: vec![Vec::new(); run.flows.len()],
            ..Self::default()
        }
    }

    /// Add a part, without its rows.
    fn add(&mut self, part: PartOutcome) {
        for (flow, names) in part.subflow_cc {
            self.subflow_cc[flow as usize] = names;
        }
        self.events += part.events;
        self.packet_hops += part.packet_hops;
    }
}

fn simulate_part(
    run: &Run,
    part: &Part,
    tables: Tables,
    caller: &mut Caller<'_>,
) -> Result<PartOutcome, SimError> {
    let mut engine = engine::assemble::engine(run, part)?;
    engine.world.rec.tables = tables;
    // Links without flows are sampled at the fixed times only.
    let interval = run.sample_ns.filter(|_| !part.flows.is_empty());
    let mut clock = SampleClock::new(run, interval);
    engine.run(run.duration_ns, &mut clock, caller)?;
    let apps = engine.apps[..engine.reported_conns].iter().map(|app| {
        let subflows = app.conn.subflows.iter();
        let names = subflows.map(|s| s.sender.sock.algorithm().name().to_owned());
        (app.conn.flow, names.collect())
    });
    let sctp = engine.sctp.iter().map(|association| {
        let names = vec![sctp::ALGORITHM.to_owned(); association.destinations()];
        (association.flow, names)
    });
    let pools = engine
        .pools
        .iter()
        .map(|pool| (pool.flow(), pool.algorithm()));
    Ok(PartOutcome {
        subflow_cc: apps.chain(sctp).chain(pools).collect(),
        events: engine.events(),
        packet_hops: engine.world.net.crossed,
        tables: engine.world.rec.tables,
    })
}

/// Room for the periodic samples; more than this many rows grow as they come.
const MAX_RESERVED_ROWS: u64 = 1 << 22;

/// The same for a sink that waits for a row group; meanwhile a table grows by no more than the rows of two calls.
const GATHERED_ROWS: u64 = (MOST_ROWS_PER_GROUP + 2 * SINK_ROWS) as u64;

/// Tables with room for the samples of a run, `most` rows each.
fn with_room(run: &Run, most: u64) -> Tables {
    let mut tables = Tables::default();
    let Some(interval) = run.sample_ns else {
        return tables;
    };
    let samples = run.duration_ns / interval + 3;
    let rows = |each: usize| (samples * each as u64).min(most) as usize;
    let subflows = run.flows.iter().map(|f| f.subflows().len());
    tables.flow.reserve(rows(run.flows.len()));
    tables.subflow.reserve(rows(subflows.sum()));
    tables.link.reserve(rows(run.links.len()));
    tables
}
