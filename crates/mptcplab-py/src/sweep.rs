//! Simulates the runs of a sweep on several threads.
//!
//! A worker simulates a run and encodes its trace; the calling thread writes the results as they come, reports progress and
//! asks whether to go on.

use crate::{build_facts, panics};
use mptcplab_cc::EndlessLoopWatch;
use mptcplab_scenario::{Run, Sweep};
use mptcplab_sim::{Control, Outcome, SimError, Threads, simulate_on_threads};
use mptcplab_trace::parquet::{EncodedRun, Encoder, KeptRuns, ScratchRuns, TraceError};
use mptcplab_trace::{EngineInfo, RunRecord};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

/// The highest nice value.
const LOWEST_PRIORITY: i32 = 19;
/// Time between two reports of progress.
const TICK: Duration = Duration::from_millis(200);

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

/// Where finished runs go.
pub(crate) enum Place {
    /// To a directory from which nothing is lost, whether or not the sweep ends well.
    Kept(KeptRuns),
    /// To a trace that is there only if the sweep ends well.
    Scratch(ScratchRuns),
}

impl Place {
    fn encoder(&self) -> Arc<Encoder> {
        match self {
            Self::Kept(runs) => runs.encoder(),
            Self::Scratch(runs) => runs.encoder(),
        }
    }

    fn push(&mut self, run: EncodedRun) -> Result<(), TraceError> {
        match self {
            Self::Kept(runs) => runs.push(run),
            Self::Scratch(runs) => runs.push(run),
        }
    }

    fn write_if_due(&mut self) -> Result<(), TraceError> {
        match self {
            Self::Kept(runs) => runs.write_if_due(),
            Self::Scratch(_) => Ok(()),
        }
    }

    fn finish(self, complete: bool) -> Result<(), TraceError> {
        match self {
            Self::Kept(mut runs) => runs.write(),
            Self::Scratch(runs) if complete => runs.finish(),
            Self::Scratch(_) => Ok(()),
        }
    }
}

/// The threads that simulate.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pool {
    /// How many; 0 is one per core.
    pub(crate) jobs: usize,
    /// Other processes go first.
    pub(crate) low_priority: bool,
}

/// Simulates every run of `sweep` on the threads of `pool`; the traces go to `place`. If there are fewer runs than threads, each
/// of them is simulated on several, where its topology has parts that share no link. `digests` are those of the runs, by id.
/// `tick` is called on the calling thread; if it returns false, the sweep stops.
pub(crate) fn run_sweep(
    sweep: &Sweep,
    digests: &[String],
    mut place: Place,
    pool: Pool,
    tick: &mut dyn FnMut(Progress) -> bool,
) -> Result<Totals, SweepError> {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let threads = if pool.jobs == 0 { cores } else { pool.jobs };
    let jobs = threads.min(sweep.runs.len()).max(1);
    let workers = Workers {
        sweep,
        digests,
        encoder: &place.encoder(),
        control: Control::default(),
        next: AtomicUsize::new(0),
        threads_per_run: threads / jobs,
    };
    let (sender, results) = channel();
    // Until the threads have ended.
    let mut watch = None;
    let totals = thread::scope(|scope| {
        for _ in 0..jobs {
            let (workers, sender) = (&workers, sender.clone());
            scope.spawn(move || {
                if pool.low_priority {
                    give_way();
                }
                workers.work(&sender);
            });
        }
        drop(sender);
        let totals = workers.collect(&results, &mut place, tick);
        if totals.is_err() {
            workers.control.cancel.store(true, Ordering::Relaxed);
            watch = Some(EndlessLoopWatch::new());
        }
        totals
    });
    drop(watch);
    // What other workers had finished when the sweep stopped.
    for (_, result) in results.try_iter() {
        if let Ok(finished) = result {
            place.push(finished.encoded)?;
        }
    }
    place.finish(totals.is_ok())?;
    Ok(Totals { jobs, ..totals? })
}

/// Other processes go before this thread, and before those that it starts. Nothing takes that back, since a thread without
/// privileges may not raise its priority.
fn give_way() {
    // A thread that goes on as before is only less polite.
    let _ = rustix::process::setpriority_process(None, LOWEST_PRIORITY);
}

type RunResult = (usize, Result<Finished, SweepError>);

struct Finished {
    encoded: EncodedRun,
    events: u64,
    packet_hops: u64,
}

struct Workers<'a> {
    sweep: &'a Sweep,
    digests: &'a [String],
    encoder: &'a Encoder,
    control: Control,
    next: AtomicUsize,
    threads_per_run: usize,
}

impl Workers<'_> {
    fn work(&self, results: &Sender<RunResult>) {
        loop {
            let index = self.next.fetch_add(1, Ordering::Relaxed);
            let stopped = self.control.cancel.load(Ordering::Relaxed);
            if stopped || index >= self.sweep.runs.len() {
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
        let mut encoder = self.encoder.start(&self.record(run, &Outcome::default()));
        let mut failed = None;
        let simulated = panics::catch(|| {
            let threads = Threads {
                count: self.threads_per_run,
                catch: |work| panics::catch(work),
            };
            simulate_on_threads(run, &self.control, threads, &mut |tables| {
                failed = encoder.write(tables).err();
                failed.is_none()
            })
        });
        if let Some(error) = failed {
            return Err(error.into());
        }
        let outcome = match simulated {
            Ok(Ok(outcome)) => outcome,
            Ok(Err(SimError::Cancelled)) => return Err(SweepError::Cancelled),
            Ok(Err(SimError::Panicked(message))) | Err(message) => {
                return Err(SweepError::Panic {
                    run: run.id,
                    label: label(),
                    message,
                });
            }
            Ok(Err(error)) => {
                return Err(SweepError::Engine {
                    run: run.id,
                    label: label(),
                    message: error.to_string(),
                });
            }
        };
        let encoded = encoder.finish(&self.record(run, &outcome), &outcome.tables)?;
        Ok(Finished {
            encoded,
            events: outcome.events,
            packet_hops: outcome.packet_hops,
        })
    }

    /// Takes results as they come until all are there.
    fn collect(
        &self,
        results: &Receiver<RunResult>,
        place: &mut Place,
        tick: &mut dyn FnMut(Progress) -> bool,
    ) -> Result<Totals, SweepError> {
        let mut totals = Totals::default();
        let mut done = 0;
        let mut next_tick = Instant::now() + TICK;
        while done < self.sweep.runs.len() {
            match results.recv_timeout(next_tick.saturating_duration_since(Instant::now())) {
                Ok((index, result)) => {
                    let finished = result?;
                    totals.events += finished.events;
                    totals.packet_hops += finished.packet_hops;
                    totals.simulated_ns += self.sweep.runs[index].duration_ns;
                    done += 1;
                    place.push(finished.encoded)?;
                }
                Err(RecvTimeoutError::Timeout) => {
                    place.write_if_due()?;
                    self.report(done, tick)?;
                    next_tick = Instant::now() + TICK;
                }
                // Every worker has ended although runs are missing, which only a panic outside `catch` can cause.
                Err(RecvTimeoutError::Disconnected) => return Err(SweepError::Cancelled),
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

    /// The run's row of the `run` table, from the scenario and the simulator's outcome.
    fn record(&self, run: &Run, outcome: &Outcome) -> RunRecord {
        let engine = EngineInfo {
            name: "sim",
            version: build_facts::VERSION,
            build: build_facts::LINE,
            scheduler: Some(mptcplab_sim::DEFAULT_SCHEDULER),
            subflow_cc: &outcome.subflow_cc,
            events: outcome.events,
            packet_hops: outcome.packet_hops,
        };
        let digest = self.digests.get(run.id as usize).cloned();
        RunRecord {
            digest: digest.unwrap_or_default(),
            ..RunRecord::new(self.sweep, run, &engine)
        }
    }
}
