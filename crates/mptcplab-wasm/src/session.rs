//! A scenario that is open in a page, and its runs.

use crate::chunk;
use mptcplab_scenario::{FileSource, Overrides, Run, Sweep, parse_with, sweep_json};
use mptcplab_sim::{Control, SimError, simulate_streaming};
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// What a page asks for.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Request {
    /// The name of the file in messages.
    name: String,
    /// The scenario.
    text: String,
    /// The files that the scenario names, as texts.
    #[serde(default)]
    files: BTreeMap<String, String>,
}

/// Parses a scenario. The request is a JSON object with `name`, `text` and, where the scenario names files, `files`.
///
/// # Errors
/// The message of the command line, with the place in the text and a hint.
pub fn open(request: &str) -> Result<Sweep, String> {
    let request: Request =
        serde_json::from_str(request).map_err(|e| format!("the page's request: {e}"))?;
    let files = FileSource::Texts(&request.files);
    parse_with(&request.text, &request.name, files, &Overrides::default())
        .map_err(|e| e.to_string())
}

/// The resolved sweep, as `mptcplab check --json` prints it.
#[must_use]
pub fn plan(sweep: &Sweep) -> Value {
    sweep_json(sweep)
}

/// The run of this number.
///
/// # Errors
/// A message if the sweep has no such run.
pub fn run_of(sweep: &Sweep, number: u32) -> Result<&Run, String> {
    sweep
        .runs
        .get(number as usize)
        .ok_or_else(|| format!("run {number}: the scenario has {} runs", sweep.runs.len()))
}

/// Simulates a run and hands its samples over as bytes while it goes on; `deliver` returns false to stop it. The result has the
/// totals and the algorithm of every subflow.
///
/// # Errors
/// What the scenario asks for and the simulator cannot do, or that the run was stopped.
pub fn simulate(run: &Run, deliver: &mut dyn FnMut(&[u8]) -> bool) -> Result<Value, String> {
    let mut bytes = Vec::new();
    let outcome = simulate_streaming(run, &Control::default(), &mut |tables| {
        chunk::encode(tables, &mut bytes);
        tables.clear();
        deliver(&bytes)
    })
    .map_err(|error| message(&error))?;
    chunk::encode(&outcome.tables, &mut bytes);
    if !deliver(&bytes) {
        return Err(message(&SimError::Cancelled));
    }
    Ok(json!({
        "events": outcome.events,
        "packet_hops": outcome.packet_hops,
        "subflow_cc": outcome.subflow_cc,
    }))
}

fn message(error: &SimError) -> String {
    error.to_string()
}
