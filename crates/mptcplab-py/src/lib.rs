//! The Python module `mptcplab._core`. Structured data is passed as JSON text; `python/mptcplab/_core.pyi` documents every
//! function.

mod assemble;
mod build_facts;
mod digest;
mod errors;
mod fluid;
mod panics;
mod reference;
mod sweep;

use errors::{EngineError, MptcplabError, OutputError, ScenarioError};
use mptcplab_scenario::{Overrides, Run, Sweep};
use mptcplab_trace::parquet::{KeptRuns, Part, ScratchRuns, TraceError};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use sweep::{Place, Pool, Progress, SweepError, run_sweep};

/// Compiled part of mptcplab.
#[pymodule]
mod _core {
    #[pymodule_export]
    use super::{
        EngineError, MptcplabError, OutputError, ScenarioError, added_algorithms, algorithms_json,
        assemble_trace, build_info, check, format_doc, load_algorithm, merge_traces,
        reject_settings, run, run_digests, run_scratch, runs_json, scenario_files, schedulers_json,
        schema_json, trace_schema_json, unknown_name, vectors_json, version, write_fluid,
    };

    #[pymodule_init]
    fn init(_module: &super::Bound<'_, super::PyModule>) -> super::PyResult<()> {
        super::panics::install();
        Ok(())
    }
}

/// Version of the package.
#[pyfunction]
fn version() -> &'static str {
    build_facts::VERSION
}

/// What the extension was built from.
#[pyfunction]
fn build_info() -> BTreeMap<&'static str, &'static str> {
    build_facts::FACTS.into_iter().collect()
}

/// All algorithms with parameters and documentation.
#[pyfunction]
fn algorithms_json() -> String {
    reference::algorithms().to_string()
}

/// Compiles the text of an algorithm's C file and registers it under `name`; `place` is the file in messages.
#[pyfunction]
fn load_algorithm(py: Python<'_>, name: &str, text: &str, place: &str) -> PyResult<()> {
    py.detach(|| mptcplab_cc::load(name, text, place))
        .map(|_| ())
        .map_err(|error| errors::algorithm(&error))
}

/// All schedulers with parameters and documentation.
#[pyfunction]
fn schedulers_json() -> String {
    reference::schedulers().to_string()
}

/// Tables and columns of a trace.
#[pyfunction]
fn trace_schema_json() -> String {
    reference::trace_schema().to_string()
}

/// JSON Schema of scenario files.
#[pyfunction]
fn schema_json() -> String {
    mptcplab_scenario::json_schema().to_string()
}

/// The scenario format as Markdown.
#[pyfunction]
fn format_doc() -> String {
    mptcplab_scenario::reference_page()
}

/// The error text about a name that is not among the known ones.
#[pyfunction]
fn unknown_name(kind: &str, name: &str, known: Vec<String>) -> String {
    let known = known.iter().map(String::as_str);
    match mptcplab_scenario::unknown_name(kind, name, known) {
        (message, None) => message,
        (message, Some(hint)) => format!("{message}\n\nhint: {hint}"),
    }
}

/// Checks a scenario; its meaning as text and as resolved JSON.
#[pyfunction]
fn check(py: Python<'_>, path: PathBuf, overrides_json: &str) -> PyResult<String> {
    let overrides = parse_overrides(overrides_json)?;
    let checked = py.detach(|| {
        let sweep = mptcplab_scenario::load(&path, &overrides)?;
        let text = mptcplab_scenario::describe(&sweep);
        Ok(json!({"text": text, "resolved": mptcplab_scenario::sweep_json(&sweep)}).to_string())
    });
    checked.map_err(|error: mptcplab_scenario::Error| errors::scenario(error))
}

/// Runs a file of test vectors on the native algorithms.
#[pyfunction]
fn vectors_json(py: Python<'_>, path: PathBuf) -> PyResult<String> {
    let report = py.detach(|| mptcplab_model::sched::vectors::run_file(&path));
    report
        .map(|report| reference::vectors(&report).to_string())
        .map_err(errors::scenario)
}

/// Simulates runs of a scenario and keeps their traces.
#[pyfunction]
#[pyo3(signature = (
    path,
    kept_dir,
    overrides_json = "{}",
    jobs = 0,
    progress = None,
    only = None,
    digests = None,
    low_priority = false
))]
#[expect(
    clippy::too_many_arguments,
    reason = "they are Python's keyword arguments"
)]
fn run(
    py: Python<'_>,
    path: PathBuf,
    kept_dir: PathBuf,
    overrides_json: &str,
    jobs: usize,
    progress: Option<Py<PyAny>>,
    only: Option<Vec<u32>>,
    digests: Option<Vec<String>>,
    low_priority: bool,
) -> PyResult<String> {
    let sweep = load_runs(py, &path, overrides_json, only)?;
    let place = || KeptRuns::open(&kept_dir).map(Place::Kept);
    let pool = Pool { jobs, low_priority };
    simulate_runs(
        py,
        &sweep,
        &digests.unwrap_or_default(),
        place,
        pool,
        progress,
    )
}

/// Simulates every run of a scenario, with one set of overrides after the other, and writes a trace that is read once.
#[pyfunction]
#[pyo3(signature = (path, trace, overrides_json, jobs = 0))]
fn run_scratch(
    py: Python<'_>,
    path: PathBuf,
    trace: PathBuf,
    overrides_json: Vec<String>,
    jobs: usize,
) -> PyResult<String> {
    let (first, others) = overrides_json
        .split_first()
        .ok_or_else(|| PyValueError::new_err("no overrides"))?;
    let mut sweep = load_runs(py, &path, first, None)?;
    for json in others {
        sweep = appended(sweep, load_runs(py, &path, json, None)?);
    }
    let place = || ScratchRuns::create(&trace).map(Place::Scratch);
    let pool = Pool {
        jobs,
        low_priority: false,
    };
    simulate_runs(py, &sweep, &[], place, pool, None)
}

/// The runs of both sweeps of one scenario, numbered through.
fn appended(mut sweep: Sweep, more: Sweep) -> Sweep {
    let first = sweep.runs.len() as u32;
    let renumbered = more.runs.into_iter().map(|run| Run {
        id: first + run.id,
        ..run
    });
    sweep.runs.extend(renumbered);
    sweep
}

fn simulate_runs(
    py: Python<'_>,
    sweep: &Sweep,
    digests: &[String],
    place: impl FnOnce() -> Result<Place, TraceError> + Send,
    pool: Pool,
    progress: Option<Py<PyAny>>,
) -> PyResult<String> {
    // The exception of a signal handler or of `progress`, which ends the sweep.
    let mut interrupted: Option<PyErr> = None;
    let totals = py.detach(|| {
        run_sweep(sweep, digests, place()?, pool, &mut |now| {
            let ticked = Python::attach(|py| tick(py, progress.as_ref(), now));
            interrupted = ticked.err();
            interrupted.is_none()
        })
    });
    match totals {
        Ok(totals) => Ok(json!({
            "scenario": sweep.name,
            "runs": sweep.runs.len(),
            "jobs": totals.jobs,
            "simulated_s": seconds(totals.simulated_ns),
            "events": totals.events,
            "packet_hops": totals.packet_hops,
        })
        .to_string()),
        Err(SweepError::Cancelled) => {
            Err(interrupted.unwrap_or_else(|| SweepError::Cancelled.into()))
        }
        Err(error) => Err(error.into()),
    }
}

/// The resolved runs of a scenario, with the start times that the flows draw.
#[pyfunction]
fn runs_json(py: Python<'_>, path: PathBuf, overrides_json: &str) -> PyResult<String> {
    let overrides = parse_overrides(overrides_json)?;
    let sweep = py.detach(|| mptcplab_scenario::load(&path, &overrides));
    let sweep = sweep.map_err(errors::scenario)?;
    Ok(fluid::runs(&sweep).to_string())
}

/// The files that a scenario's runs use, relative to the scenario file.
#[pyfunction]
fn scenario_files(py: Python<'_>, path: PathBuf, overrides_json: &str) -> PyResult<Vec<String>> {
    let overrides = parse_overrides(overrides_json)?;
    let sweep = py.detach(|| mptcplab_scenario::load(&path, &overrides));
    Ok(sweep.map_err(errors::scenario)?.files)
}

/// The algorithms of a scenario's runs that are not in the build: name, place and text of each, by name.
#[pyfunction]
fn added_algorithms(
    py: Python<'_>,
    path: PathBuf,
    overrides_json: &str,
) -> PyResult<Vec<(&'static str, &'static str, &'static str)>> {
    let sweep = load_runs(py, &path, overrides_json, None)?;
    Ok(py.detach(|| added(&sweep)))
}

fn added(sweep: &Sweep) -> Vec<(&'static str, &'static str, &'static str)> {
    let flows = sweep.runs.iter().flat_map(|run| run.flows.iter());
    let used: BTreeSet<&str> = flows.filter_map(digest::algorithm).collect();
    let added = mptcplab_cc::added().into_iter();
    added
        .filter(|algorithm| used.contains(algorithm.name()))
        .filter_map(|algorithm| {
            let (place, text) = algorithm.file()?;
            Some((algorithm.name(), place, text))
        })
        .collect()
}

/// The digest of all that decides each run of a scenario on an engine.
#[pyfunction]
fn run_digests(
    py: Python<'_>,
    path: PathBuf,
    overrides_json: &str,
    engine: &str,
) -> PyResult<Vec<String>> {
    let sweep = load_runs(py, &path, overrides_json, None)?;
    Ok(py.detach(|| digest::of_runs(&sweep, engine)))
}

/// Makes one trace from runs of others, numbered from 0.
#[pyfunction]
#[pyo3(signature = (runs, out_dir, texts = None))]
fn merge_traces(
    py: Python<'_>,
    runs: Vec<(PathBuf, u32)>,
    out_dir: PathBuf,
    texts: Option<Vec<BTreeMap<String, String>>>,
) -> PyResult<()> {
    let texts = texts.unwrap_or_else(|| vec![BTreeMap::new(); runs.len()]);
    if texts.len() != runs.len() {
        let message = format!("{} runs and texts for {}", runs.len(), texts.len());
        return Err(EngineError::new_err(message));
    }
    let parts = std::iter::zip(runs, texts).map(|((dir, run), texts)| Part { dir, run, texts });
    let merged = py.detach(|| mptcplab_trace::parquet::merge(parts, &out_dir));
    merged.map_err(|error| SweepError::Trace(error).into())
}

/// Makes the trace of a scenario from runs that are kept in other traces.
#[pyfunction]
fn assemble_trace(
    py: Python<'_>,
    path: PathBuf,
    overrides_json: &str,
    runs: BTreeMap<u32, (PathBuf, u32)>,
    out_dir: PathBuf,
) -> PyResult<()> {
    let sweep = load_runs(
        py,
        &path,
        overrides_json,
        Some(runs.keys().copied().collect()),
    )?;
    let assembled = py.detach(|| assemble::assemble(&sweep, &runs, &out_dir));
    assembled.map_err(|error| SweepError::Trace(error).into())
}

/// Raises an error for settings that an engine does not support, with their places in the file.
#[pyfunction]
fn reject_settings(path: PathBuf, overrides_json: &str, settings_json: &str) -> PyResult<()> {
    let overrides = parse_overrides(overrides_json)?;
    let sweep = mptcplab_scenario::load(&path, &overrides).map_err(errors::scenario)?;
    let file = path.display().to_string();
    let place = (file.as_str(), sweep.text.as_str(), &overrides);
    match fluid::unsupported_settings(place, settings_json).map_err(errors::scenario)? {
        Some(text) => Err(errors::scenario(text)),
        None => Ok(()),
    }
}

/// Keeps the traces of the fluid engine; `solve` returns the tables of a run.
#[pyfunction]
#[pyo3(signature = (path, kept_dir, overrides_json, libraries, solve, only = None, digests = None))]
#[expect(
    clippy::too_many_arguments,
    reason = "they are Python's keyword arguments"
)]
fn write_fluid(
    py: Python<'_>,
    path: PathBuf,
    kept_dir: PathBuf,
    overrides_json: &str,
    libraries: &str,
    solve: &Bound<'_, PyAny>,
    only: Option<Vec<u32>>,
    digests: Option<Vec<String>>,
) -> PyResult<()> {
    let sweep = load_runs(py, &path, overrides_json, only)?;
    let digests = digests.unwrap_or_default();
    fluid::write(&sweep, &digests, &kept_dir, libraries, &mut |run| {
        py.check_signals()?;
        solve.call1((run,))?.extract()
    })
}

/// The runs of a scenario, all of them or those of some numbers.
fn load_runs(
    py: Python<'_>,
    path: &Path,
    overrides_json: &str,
    only: Option<Vec<u32>>,
) -> PyResult<Sweep> {
    let overrides = parse_overrides(overrides_json)?;
    let mut sweep = py
        .detach(|| mptcplab_scenario::load(path, &overrides))
        .map_err(errors::scenario)?;
    if let Some(only) = only {
        let only: BTreeSet<u32> = only.into_iter().collect();
        sweep.runs.retain(|run| only.contains(&run.id));
    }
    Ok(sweep)
}

fn parse_overrides(json: &str) -> PyResult<Overrides> {
    Overrides::from_json(json).map_err(errors::scenario)
}

fn tick(py: Python<'_>, progress: Option<&Py<PyAny>>, now: Progress) -> PyResult<()> {
    py.check_signals()?;
    if let Some(progress) = progress {
        let arguments = (
            now.done_runs,
            now.total_runs,
            seconds(now.simulated_ns),
            seconds(now.total_ns),
        );
        progress.call1(py, arguments)?;
    }
    Ok(())
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}
