//! Test vectors: runs a file of the format of the specification's section 11 against the native algorithms.
//!
//! Every step goes through the same hooks that the simulator calls ([`crate::Sock`]'s methods). What the build does
//! not have (other algorithms, schedulers) is counted as skipped and named, never as passed.

mod bbr;
mod bottlenecks;
mod format;
mod run;

use format::{Bottlenecks, Vector};
use std::collections::BTreeMap;
use std::path::Path;

/// What a vector file showed.
#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    /// One entry per name in the file, algorithms first, each part sorted by name.
    pub algorithms: Vec<AlgorithmReport>,
}

/// What the vectors of one algorithm (or scheduler) showed.
#[derive(Debug, Clone, PartialEq)]
pub struct AlgorithmReport {
    /// Name in the file.
    pub name: String,
    /// Vectors whose every number was within its tolerance.
    pub passed: usize,
    /// Vectors with a number out of its tolerance.
    pub failures: Vec<Failure>,
    /// Vectors not run.
    pub skipped: usize,
    /// Why they were not run; empty when none was skipped.
    pub skip_reason: String,
    /// The number nearest to, or furthest beyond, its tolerance.
    pub worst: Option<Deviation>,
}

/// A vector out of tolerance.
#[derive(Debug, Clone, PartialEq)]
pub struct Failure {
    /// Vector.
    pub id: String,
    /// Every number that was out of tolerance.
    pub deviations: Vec<Deviation>,
}

/// One number against its expected value.
#[derive(Debug, Clone, PartialEq)]
pub struct Deviation {
    /// Vector.
    pub id: String,
    /// Which number, e.g. `cwnd of path 1 after op 3`.
    pub what: String,
    /// Value of the native algorithm (packets, packets per packet, or the state's unit).
    pub got: f64,
    /// Value in the file.
    pub expected: f64,
    /// Largest allowed difference.
    pub tolerance: f64,
}

impl Deviation {
    /// Difference as a part of the tolerance: at most 1 passes.
    pub fn ratio(&self) -> f64 {
        if self.got == self.expected {
            return 0.0;
        }
        (self.got - self.expected).abs() / self.tolerance
    }

    fn passes(&self) -> bool {
        self.ratio() <= 1.0
    }
}

impl Report {
    /// Vectors that passed, failed and were skipped, over the whole file.
    pub fn totals(&self) -> (usize, usize, usize) {
        self.algorithms.iter().fold((0, 0, 0), |(p, f, s), a| {
            (p + a.passed, f + a.failures.len(), s + a.skipped)
        })
    }
}

/// A vector file that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum VectorError {
    /// The file cannot be read.
    #[error("cannot read the vector file: {path}: {source}")]
    Read {
        /// File.
        path: String,
        /// Cause.
        source: std::io::Error,
    },
    /// The file is not JSON, or not of the expected shape.
    #[error("not a vector file: {path}: {what}")]
    Malformed {
        /// File.
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

/// Runs the vectors of a scheduler by name, `None` if it does not know the name. Congestion controls know nothing of
/// schedulers, so who does brings this along.
pub type RunScheduler<'a> =
    dyn Fn(&str, &[serde_json::Value]) -> Option<Result<AlgorithmReport, String>> + 'a;

/// [`run_file`], the schedulers' part with `schedulers`.
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
            Ok(skipped(&scheduler, raw.len(), why))
        });
        reports.push(report.map_err(malformed)?);
    }
    Ok(Report {
        algorithms: reports,
    })
}

fn run_algorithm(name: &str, raw: &[serde_json::Value]) -> Result<AlgorithmReport, String> {
    let Some(algorithm) = crate::find(name) else {
        return Ok(skipped(name, raw.len(), "not in this build".into()));
    };
    let mut report = skipped(name, 0, String::new());
    let mut skipped_kinds = BTreeMap::<String, usize>::new();
    for (index, value) in raw.iter().enumerate() {
        let place = |what: String| format!("algorithms.{name}[{index}]: {what}");
        let kind = format::kind(value).map_err(place)?;
        if kind == bottlenecks::KIND && bottlenecks::apply_to(algorithm) {
            let vector = Bottlenecks::from_value(value).map_err(place)?;
            let deviations = bottlenecks::run(algorithm, &vector).map_err(place)?;
            report.add(&vector.id, deviations);
            continue;
        }
        if bbr::KINDS.contains(&kind) {
            let (id, deviations) = bbr::run(algorithm, value).map_err(place)?;
            report.add(&id, deviations);
            continue;
        }
        if !run::KINDS.contains(&kind) {
            *skipped_kinds.entry(kind.to_owned()).or_default() += 1;
            continue;
        }
        let vector = Vector::from_value(value).map_err(place)?;
        let deviations = run::run(algorithm, &vector).map_err(place)?;
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

fn skipped(name: &str, skipped: usize, skip_reason: String) -> AlgorithmReport {
    AlgorithmReport {
        name: name.to_owned(),
        passed: 0,
        failures: Vec::new(),
        skipped,
        skip_reason,
        worst: None,
    }
}

impl AlgorithmReport {
    /// Nothing run yet.
    pub fn new(name: &str) -> Self {
        skipped(name, 0, String::new())
    }

    /// Count a vector by the numbers that it named.
    pub fn add(&mut self, id: &str, deviations: Vec<Deviation>) {
        for deviation in &deviations {
            if self
                .worst
                .as_ref()
                .is_none_or(|w| deviation.ratio() > w.ratio())
            {
                self.worst = Some(deviation.clone());
            }
        }
        let failed: Vec<Deviation> = deviations.into_iter().filter(|d| !d.passes()).collect();
        if failed.is_empty() {
            self.passed += 1;
        } else {
            self.failures.push(Failure {
                id: id.to_owned(),
                deviations: failed,
            });
        }
    }
}
