//! Simulates all runs of a sweep on several threads and writes them in run order.
//!
//! A worker simulates a run and compresses its trace; the calling thread appends the results in the order of run ids,
//! reports progress and asks whether to go on. A worker does not start a run that is too far ahead of the next one to be
//! written, so that memory does not grow with the sweep.

use crate::{build_facts, panics};
use mptcplab_scenario::{Run, Sweep};
use mptcplab_sim::{Control, Outcome, SimError, simulate_streaming};
use mptcplab_trace::parquet::{EncodedRun, Encoder, TraceError, TraceWriter};
use mptcplab_trace::{EngineInfo, RunRecord};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Condvar, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Time between two reports of progress.
const TICK: Duration = Duration::from_millis(200);

/// Number of finished runs, per worker, that may wait for a slower run before them.
const RUNS_AHEAD: usize = 4;

/// Progress of a sweep.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Progress {
    pub(crate) done_runs: usize,
    pub(crate) total_runs: usize,
    pub(crate) simulated_ns: u64,
    pub(crate) total_ns: u64,
}

/// Totals of a finished sweep.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Totals {
    pub(crate) events: u64,
    pub(crate) packet_hops: u64,
    pub(crate) simulated_ns: u64,
    pub(crate) jobs: usize,
}

/// Why a sweep did not finish.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SweepError {
    #[error("cancelled")]
    Cancelled,
    #[error("run {run} ({label}): {message}")]
    Engine {
        run: u32,
        label: String,
        message: String,
    },
    #[error(
        "run {run} ({label}): the simulator broke: {message}\n\n\
         hint: this is a bug of mptcplab; please report it with the scenario, its seed and this message"
    )]
    Panic {
        run: u32,
        label: String,
        message: String,
    },
    #[error(transparent)]
    Trace(#[from] TraceError),
}

/// Simulates every run of `sweep` on `jobs` threads (0: one per core) and writes the traces to `out`. `tick` is called on
/// the calling thread; if it returns false, the sweep stops and leaves nothing behind.
pub(crate) fn run_sweep(
    sweep: &Sweep,
    out: &Path,
    jobs: usize,
    tick: &mut dyn FnMut(Progress) -> bool,
) -> Result<Totals, SweepError> {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let jobs = if jobs == 0 { cores } else { jobs }
        .min(sweep.runs.len())
        .max(1);
    let mut writer = TraceWriter::create(out)?;
    let workers = Workers {
        sweep,
        encoder: &writer.encoder(),
        control: Control::default(),
        next: AtomicUsize::new(0),
        gate: Gate::new(RUNS_AHEAD * jobs),
    };
    let (sender, results) = channel();
    let totals = thread::scope(|scope| {
        for _ in 0..jobs {
            let (workers, sender) = (&workers, sender.clone());
            scope.spawn(move || workers.work(&sender));
        }
        drop(sender);
        let totals = workers.collect(&results, &mut writer, tick);
        if totals.is_err() {
            workers.stop();
        }
        totals
    })?;
    writer.finish()?;
    Ok(Totals { jobs, ..totals })
}

type RunResult = (usize, Result<Finished, SweepError>);

struct Finished {
    encoded: EncodedRun,
    events: u64,
    packet_hops: u64,
}

struct Workers<'a> {
    sweep: &'a Sweep,
    encoder: &'a Encoder,
    control: Control,
    next: AtomicUsize,
    gate: Gate,
}

impl Workers<'_> {
    fn work(&self, results: &Sender<RunResult>) {
        loop {
            let index = self.next.fetch_add(1, Ordering::Relaxed);
            if index >= self.sweep.runs.len() || !self.gate.wait_for(index) {
                return;
            }
            if results.send((index, self.run(index))).is_err() {
                return;
            }
        }
    }

    fn run(&self, index: usize) -> Result<Finished, SweepError> {
        let run = &self.sweep.runs[index];
        let label = || {
            let axes = run
                .axes
                .iter()
                .map(|(key, value)| format!("{key} = {value}, "));
            format!("{}repetition {}", axes.collect::<String>(), run.rep)
        };
        let mut encoder = self
            .encoder
            .start(record(self.sweep, run, &Outcome::default()));
        let mut failed = None;
        let simulated = panics::catch(|| {
            simulate_streaming(run, &self.control, &mut |tables| {
                failed = encoder.write(tables).err();
                tables.clear();
                failed.is_none()
            })
        });
        if let Some(error) = failed {
            return Err(error.into());
        }
        let outcome = match simulated {
            Ok(Ok(outcome)) => outcome,
            Ok(Err(SimError::Cancelled)) => return Err(SweepError::Cancelled),
            Ok(Err(error)) => {
                return Err(SweepError::Engine {
                    run: run.id,
                    label: label(),
                    message: error.to_string(),
                });
            }
            Err(message) => {
                return Err(SweepError::Panic {
                    run: run.id,
                    label: label(),
                    message,
                });
            }
        };
        encoder.write(&outcome.tables)?;
        let encoded = encoder.finish(record(self.sweep, run, &outcome))?;
        Ok(Finished {
            encoded,
            events: outcome.events,
            packet_hops: outcome.packet_hops,
        })
    }

    /// Appends results in run order until all are there.
    fn collect(
        &self,
        results: &Receiver<RunResult>,
        writer: &mut TraceWriter,
        tick: &mut dyn FnMut(Progress) -> bool,
    ) -> Result<Totals, SweepError> {
        let mut totals = Totals::default();
        let mut waiting = BTreeMap::new();
        let mut done = 0;
        let mut next_tick = Instant::now() + TICK;
        while done < self.sweep.runs.len() {
            match results.recv_timeout(next_tick.saturating_duration_since(Instant::now())) {
                Ok((index, result)) => {
                    waiting.insert(index, result?);
                }
                Err(RecvTimeoutError::Timeout) => {
                    self.report(done, tick)?;
                    next_tick = Instant::now() + TICK;
                }
                // Every worker has ended although runs are missing, which only a panic outside `catch` can cause.
                Err(RecvTimeoutError::Disconnected) => return Err(SweepError::Cancelled),
            }
            while let Some(finished) = waiting.remove(&done) {
                writer.append(finished.encoded)?;
                totals.events += finished.events;
                totals.packet_hops += finished.packet_hops;
                totals.simulated_ns += self.sweep.runs[done].duration_ns;
                done += 1;
                self.gate.advance(done);
            }
        }
        self.report(done, tick)?;
        Ok(totals)
    }

    fn report(
        &self,
        done_runs: usize,
        tick: &mut dyn FnMut(Progress) -> bool,
    ) -> Result<(), SweepError> {
        let progress = Progress {
            done_runs,
            total_runs: self.sweep.runs.len(),
            simulated_ns: self.control.simulated_ns.load(Ordering::Relaxed),
            total_ns: self.sweep.runs.iter().map(|run| run.duration_ns).sum(),
        };
        if tick(progress) {
            Ok(())
        } else {
            Err(SweepError::Cancelled)
        }
    }

    fn stop(&self) {
        self.control.cancel.store(true, Ordering::Relaxed);
        self.gate.close();
    }
}

/// The run's row of the `run` table, from the scenario and the simulator's outcome.
fn record(sweep: &Sweep, run: &Run, outcome: &Outcome) -> RunRecord {
    let engine = EngineInfo {
        name: "sim",
        version: build_facts::VERSION,
        build: build_facts::LINE,
        scheduler: Some(mptcplab_sim::DEFAULT_SCHEDULER),
        subflow_cc: &outcome.subflow_cc,
        events: outcome.events,
        packet_hops: outcome.packet_hops,
    };
    RunRecord::new(sweep, run, &engine)
}

/// Lets a run start when it is less than `ahead` runs after the first run that is not written yet.
struct Gate {
    ahead: usize,
    /// Runs written, or `None` when the sweep is being stopped.
    written: Mutex<Option<usize>>,
    changed: Condvar,
}

impl Gate {
    fn new(ahead: usize) -> Self {
        Self {
            ahead,
            written: Mutex::new(Some(0)),
            changed: Condvar::new(),
        }
    }

    /// Waits until run `index` may start; false when the sweep is being stopped.
    fn wait_for(&self, index: usize) -> bool {
        let too_early = |written: &mut Option<usize>| {
            written.is_some_and(|written| index >= written + self.ahead)
        };
        // The value behind a poisoned lock is still whole, because it is only ever assigned.
        let written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        self.changed
            .wait_while(written, too_early)
            .unwrap_or_else(PoisonError::into_inner)
            .is_some()
    }

    fn advance(&self, written: usize) {
        self.set(Some(written));
    }

    fn close(&self) {
        self.set(None);
    }

    fn set(&self, written: Option<usize>) {
        *self.written.lock().unwrap_or_else(PoisonError::into_inner) = written;
        self.changed.notify_all();
    }
}
