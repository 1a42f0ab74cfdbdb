//! The report on a vector file: what passed, what failed by how much, what was skipped.

/// The result of running a vector file.
#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    /// One entry per name in the file, algorithms first, each part sorted by name.
    pub algorithms: Vec<AlgorithmReport>,
}

/// The result of running the vectors of one algorithm or scheduler.
#[derive(Debug, Clone, PartialEq)]
pub struct AlgorithmReport {
    pub name: String,
    /// Vectors with every number within its tolerance.
    pub passed: usize,
    /// Vectors with a number outside its tolerance.
    pub failures: Vec<Failure>,
    /// Vectors not run.
    pub skipped: usize,
    /// Why vectors were skipped; empty if none was.
    pub skip_reason: String,
    /// The number that used up, or exceeded, its tolerance most.
    pub worst: Option<Deviation>,
}

/// A vector that failed.
#[derive(Debug, Clone, PartialEq)]
pub struct Failure {
    pub id: String,
    /// Every number outside its tolerance.
    pub deviations: Vec<Deviation>,
}

/// One number, compared with its expected value.
#[derive(Debug, Clone, PartialEq)]
pub struct Deviation {
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
    /// The difference divided by the tolerance; up to 1 passes.
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

impl AlgorithmReport {
    /// An empty report.
    pub fn new(name: &str) -> Self {
        Self::skipped(name, 0, String::new())
    }

    /// A report on vectors that were not run.
    pub(super) fn skipped(name: &str, skipped: usize, skip_reason: String) -> Self {
        Self {
            name: name.to_owned(),
            passed: 0,
            failures: Vec::new(),
            skipped,
            skip_reason,
            worst: None,
        }
    }

    /// Counts a vector as passed or failed by the numbers that it names.
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
