//! Test vectors: compares the native algorithms with the numbers in a file of the format `mptcplab-vectors-1`.
//!
//! A vector is the state of the subflows, an event or a sequence of events, and the windows after it, in real numbers from
//! a reference implementation. Every event goes through the hooks that the simulator calls ([`crate::Sock`]'s methods).
//! Algorithms and schedulers that this build does not have are counted as skipped, never as passed.

mod bottlenecks;
mod cmpbbr;
mod events;
mod format;
mod report;

pub use report::{AlgorithmReport, Deviation, Failure, Report};

use format::{Bottlenecks, Vector};
use std::collections::BTreeMap;
use std::path::Path;

/// A vector file that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum VectorError {
    /// The file cannot be read.
    #[error("cannot read the vector file: {path}: {source}")]
    Read {
        path: String,
        source: std::io::Error,
    },
    /// The file is not JSON, or not of the expected shape.
    #[error("not a vector file: {path}: {what}")]
    Malformed {
        path: String,
        /// What is wrong, and where.
        what: String,
    },
}

/// Runs the vectors of a file.
///
/// # Errors
/// [`VectorError`] when the file cannot be read or understood; a vector that fails is no error.
pub fn run_file(path: &Path) -> Result<Report, VectorError> {
    run_file_with(path, &|_, _| None)
}

/// Runs the vectors of a scheduler by name; `None` if the name is unknown. This crate knows no schedulers, so a caller
/// that does passes this function.
pub type RunScheduler<'a> =
    dyn Fn(&str, &[serde_json::Value]) -> Option<Result<AlgorithmReport, String>> + 'a;

/// [`run_file`], with the vectors of schedulers run by `schedulers`.
///
/// # Errors
/// As [`run_file`].
pub fn run_file_with(path: &Path, schedulers: &RunScheduler<'_>) -> Result<Report, VectorError> {
    let name = path.display().to_string();
    let text = std::fs::read_to_string(path).map_err(|source| VectorError::Read {
        path: name.clone(),
        source,
    })?;
    run_text_with(&name, &text, schedulers)
}

/// Runs the vectors of a file's text; `name` is used in errors.
///
/// # Errors
/// [`VectorError::Malformed`].
pub fn run_text(name: &str, text: &str) -> Result<Report, VectorError> {
    run_text_with(name, text, &|_, _| None)
}

fn run_text_with(
    name: &str,
    text: &str,
    schedulers: &RunScheduler<'_>,
) -> Result<Report, VectorError> {
    let malformed = |what: String| VectorError::Malformed {
        path: name.to_owned(),
        what,
    };
    let file = format::parse(text).map_err(malformed)?;
    let mut reports = Vec::new();
    for (algorithm, raw) in file.algorithms {
        reports.push(run_algorithm(&algorithm, &raw).map_err(malformed)?);
    }
    for (scheduler, raw) in file.schedulers {
        let report = schedulers(&scheduler, &raw).unwrap_or_else(|| {
            let why = "not in this build".into();
            Ok(AlgorithmReport::skipped(&scheduler, raw.len(), why))
        });
        reports.push(report.map_err(malformed)?);
    }
    Ok(Report {
        algorithms: reports,
    })
}

fn run_algorithm(name: &str, raw: &[serde_json::Value]) -> Result<AlgorithmReport, String> {
    let Some(algorithm) = crate::find(name) else {
        return Ok(AlgorithmReport::skipped(
            name,
            raw.len(),
            "not in this build".into(),
        ));
    };
    let mut report = AlgorithmReport::new(name);
    let mut skipped_kinds = BTreeMap::<String, usize>::new();
    for (index, value) in raw.iter().enumerate() {
        let place = |what: String| format!("algorithms.{name}[{index}]: {what}");
        let kind = format::kind(value).map_err(place)?;
        if kind == bottlenecks::KIND && bottlenecks::applies_to(algorithm) {
            let vector = Bottlenecks::from_value(value).map_err(place)?;
            let deviations = bottlenecks::run(algorithm, &vector).map_err(place)?;
            report.add(&vector.id, deviations);
            continue;
        }
        if cmpbbr::KINDS.contains(&kind) {
            let (id, deviations) = cmpbbr::run(algorithm, value).map_err(place)?;
            report.add(&id, deviations);
            continue;
        }
        if !events::KINDS.contains(&kind) {
            *skipped_kinds.entry(kind.to_owned()).or_default() += 1;
            continue;
        }
        let vector = Vector::from_value(value).map_err(place)?;
        let deviations = events::run(algorithm, &vector).map_err(place)?;
        report.add(&vector.id, deviations);
    }
    report.skipped = skipped_kinds.values().sum();
    let kinds: Vec<String> = skipped_kinds
        .iter()
        .map(|(kind, n)| format!("{n} of kind {kind}"))
        .collect();
    report.skip_reason = kinds.join(", ");
    Ok(report)
}
