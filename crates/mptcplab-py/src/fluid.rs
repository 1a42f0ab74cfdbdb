//! Services for the fluid engine, which is written in Python: resolved runs, unsupported settings with their place in the file,
//! and the trace writer that every engine uses.

use crate::build_facts;
use crate::errors::EngineError;
use mptcplab_model::link::rng::Rng;
use mptcplab_scenario::{Overrides, Run, Sweep, Transport};
use mptcplab_trace::parquet::KeptRuns;
use mptcplab_trace::{EngineInfo, RunRecord, Tables};
use pyo3::{PyErr, PyResult};
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;

/// A setting that the engine does not support.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct UnsupportedSetting {
    /// The keys that may set it, the most specific one first.
    keys: Vec<String>,
    message: String,
    hint: String,
}

/// The solution of a run: columns of little-endian numbers by table and name, the engine's findings (JSON, for the
/// column `host`), and the number of evaluations of its equations.
pub(crate) type Solved = (BTreeMap<String, BTreeMap<String, Vec<u8>>>, String, u64);

/// The runs as JSON, each with `starts_ns`: the start times that the flows draw in the simulator.
pub(crate) fn runs(sweep: &Sweep) -> Value {
    let runs = sweep.runs.iter().map(|run| {
        let mut resolved = mptcplab_scenario::run_json(run, None);
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

/// The errors for all unsupported settings as one text, without repetitions; `None` if there are none.
pub(crate) fn unsupported_settings(
    place: (&str, &str, &Overrides),
    settings_json: &str,
) -> Result<Option<String>, serde_json::Error> {
    let mut texts: Vec<String> = Vec::new();
    for setting in serde_json::from_str::<Vec<UnsupportedSetting>>(settings_json)? {
        let hint = Some(setting.hint);
        let text =
            mptcplab_scenario::unsupported_setting(place, &setting.keys, setting.message, hint);
        let text = text.to_string();
        if !texts.contains(&text) {
            texts.push(text);
        }
    }
    Ok((!texts.is_empty()).then(|| texts.join("\n\nerror: ")))
}

/// Keeps the traces of runs in `kept`; `solve` is called for each, in run order. `digests` are those of the runs, by id. Runs
/// that are finished are kept whether or not all of them are solved.
pub(crate) fn write(
    sweep: &Sweep,
    digests: &[String],
    kept: &Path,
    libraries: &str,
    solve: &mut dyn FnMut(u32) -> PyResult<Solved>,
) -> PyResult<()> {
    let mut kept = KeptRuns::open(kept).map_err(failed)?;
    let solved = sweep.runs.iter().try_for_each(|run| {
        let (columns, host, evaluations) = solve(run.id)?;
        let tables = tables(&columns)?;
        let record = RunRecord {
            host,
            digest: digests.get(run.id as usize).cloned().unwrap_or_default(),
            ..record(sweep, run, libraries, evaluations)
        };
        let encoded = kept.encoder().encode(&record, &tables).map_err(failed)?;
        kept.push(encoded).map_err(failed)
    });
    kept.write().map_err(failed)?;
    solved
}

fn failed(error: mptcplab_trace::parquet::TraceError) -> PyErr {
    crate::sweep::SweepError::Trace(error).into()
}

fn record(sweep: &Sweep, run: &Run, libraries: &str, evaluations: u64) -> RunRecord {
    let algorithms: Vec<Vec<String>> = run.flows.iter().map(algorithms).collect();
    let build = format!("{}, {libraries}", build_facts::LINE);
    let engine = EngineInfo {
        name: "fluid",
        version: build_facts::VERSION,
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
            let filled = tables.fill(table, column, bytes);
            if !filled {
                let message = format!("a trace has no column {table}.{column}");
                return Err(EngineError::new_err(message));
            }
        }
    }
    tables.fill_missing();
    match tables.is_whole() {
        true => Ok(tables),
        false => Err(EngineError::new_err("columns of unequal length")),
    }
}
