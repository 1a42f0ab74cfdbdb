//! What the fluid engine, which is Python, needs: resolved runs, refusals with their place in the file, and a trace
//! written like everyone's.

use crate::build;
use crate::errors::EngineError;
use mptcplab_model::link::rng::Rng;
use mptcplab_scenario::{Overrides, Run, Sweep, Transport};
use mptcplab_trace::parquet::TraceWriter;
use mptcplab_trace::{Engine, RunRecord, Tables};
use pyo3::{PyErr, PyResult};
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;

/// One thing that the engine cannot honour.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Refusal {
    /// Where it may be written, the most particular key first.
    keys: Vec<String>,
    message: String,
    hint: String,
}

/// What became of a run: columns of little-endian numbers by table and name, what the engine found out (JSON), and how
/// often it evaluated its equations.
pub(crate) type Solved = (BTreeMap<String, BTreeMap<String, Vec<u8>>>, String, u64);

/// The runs as `to_json` has them, each with `starts_ns`: the times that the simulator's flows draw.
pub(crate) fn runs(sweep: &Sweep) -> Value {
    let runs = sweep.runs.iter().map(|run| {
        let mut resolved = mptcplab_scenario::to_json(run, None);
        resolved["starts_ns"] = starts(run);
        resolved
    });
    runs.collect()
}

fn starts(run: &Run) -> Value {
    let starts = run.flows.iter().map(|flow| {
        let mut rng = Rng::new(run.seed, run.rep, "flow", &flow.name);
        json!(mptcplab_model::traffic::start(flow.start, &mut rng))
    });
    starts.collect()
}

/// All refusals as one text, each told once; none if there is none.
pub(crate) fn refusal(
    place: (&str, &str, &Overrides),
    refusals: &str,
) -> Result<Option<String>, serde_json::Error> {
    let mut told: Vec<String> = Vec::new();
    for refusal in serde_json::from_str::<Vec<Refusal>>(refusals)? {
        let hint = Some(refusal.hint);
        let text = mptcplab_scenario::refusal(place, &refusal.keys, refusal.message, hint);
        let text = text.to_string();
        if !told.contains(&text) {
            told.push(text);
        }
    }
    Ok((!told.is_empty()).then(|| told.join("\n\nerror: ")))
}

/// Write a trace; `solve` is asked for every run, in run order.
pub(crate) fn write(
    sweep: &Sweep,
    out: &Path,
    libraries: &str,
    solve: &mut dyn FnMut(u32) -> PyResult<Solved>,
) -> PyResult<()> {
    let mut writer = TraceWriter::create(out).map_err(failed)?;
    let encoder = writer.encoder();
    for run in &sweep.runs {
        let (columns, host, evaluations) = solve(run.id)?;
        let tables = tables(&columns)?;
        let record = RunRecord {
            host,
            ..record(sweep, run, libraries, evaluations)
        };
        let mut started = encoder.start(record.clone());
        started.write(&tables).map_err(failed)?;
        writer
            .append(started.finish(record).map_err(failed)?)
            .map_err(failed)?;
    }
    writer.finish().map_err(failed)
}

fn failed(error: mptcplab_trace::parquet::TraceError) -> PyErr {
    crate::sweep::SweepError::Trace(error).into()
}

fn record(sweep: &Sweep, run: &Run, libraries: &str, evaluations: u64) -> RunRecord {
    let algorithms: Vec<Vec<String>> = run.flows.iter().map(algorithms).collect();
    let build = format!("{}, {libraries}", build::LINE);
    let engine = Engine {
        name: "fluid",
        version: build::VERSION,
        build: &build,
        scheduler: None,
        subflow_cc: &algorithms,
        events: evaluations,
        packet_hops: 0,
    };
    RunRecord::new(sweep, run, &engine)
}

fn algorithms(flow: &mptcplab_scenario::Flow) -> Vec<String> {
    match &flow.transport {
        Transport::Tcp(tcp) => vec![tcp.cc.name.clone(); tcp.subflows.len()],
        Transport::Sctp(_) | Transport::Udp(_) => Vec::new(),
    }
}

fn tables(columns: &BTreeMap<String, BTreeMap<String, Vec<u8>>>) -> PyResult<Tables> {
    let mut tables = Tables::default();
    for (table, columns) in columns {
        for (column, bytes) in columns {
            let filled = match table.as_str() {
                "flow" => tables.flow.fill(column, bytes),
                "subflow" => tables.subflow.fill(column, bytes),
                "link" => tables.link.fill(column, bytes),
                "event" => tables.event.fill(column, bytes),
                _ => false,
            };
            if !filled {
                let message = format!("a trace has no column {table}.{column}");
                return Err(EngineError::new_err(message));
            }
        }
    }
    let whole = [
        tables.flow.is_whole(),
        tables.subflow.is_whole(),
        tables.link.is_whole(),
        tables.event.is_whole(),
    ];
    match whole.iter().all(|whole| *whole) {
        true => Ok(tables),
        false => Err(EngineError::new_err("columns of unequal length")),
    }
}
