//! `mptcplab-kernel run`: every run of a scenario, one after another, into one directory of traces.

mod algorithms;
mod child;
mod director;
mod host;
mod rows;
mod skipped;
mod sums;

use crate::failure::{ERROR, Failure, INTERRUPTED};
use crate::lab::wire::Traffic;
use crate::plan;
use director::{Director, Ended};
use mptcplab_scenario::{Overrides, Run, Sweep};
use mptcplab_trace::parquet::TraceWriter;
use mptcplab_trace::{EngineInfo, RunRecord, Status};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use serde_json::json;
use std::path::PathBuf;

/// What `run` is asked for.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Scenario file.
    #[arg(long)]
    scenario: PathBuf,
    /// What to change in it: a JSON object such as {"cc": ["lia"], "set": [["links.B1.rate", "5 Mbit/s"]]}.
    #[arg(long, default_value = "{}")]
    overrides: String,
    /// Directory for the traces; must not exist or be empty.
    #[arg(long)]
    out: PathBuf,
    /// Who makes the traffic.
    #[arg(long, value_enum, default_value_t = Traffic::Own)]
    traffic: Traffic,
    /// Tell progress and result on standard output, one JSON object per line.
    #[arg(long)]
    json_progress: bool,
}

/// A check failed: the traces are there, but not all of them may be used.
const CHECK_FAILED: u8 = 1;

/// Runs a scenario. The exit code tells whether all runs are complete.
pub(crate) fn main(arguments: &Arguments) -> Result<u8, Failure> {
    let overrides = Overrides::from_json(&arguments.overrides).map_err(Failure::new)?;
    let sweep = mptcplab_scenario::load(&arguments.scenario, &overrides)?;
    refuse(arguments, &overrides, &sweep)?;
    let signals = signals()?;
    let mut writer = TraceWriter::create_with_reserve(&arguments.out)?;
    let mut told = Told::new(arguments, &sweep);
    let director = Director {
        arguments,
        sweep: &sweep,
        signals: &signals,
        encoder: writer.encoder(),
    };
    let mut worst = Status::Complete;
    for run in &sweep.runs {
        told.progress(run, 0);
        match director.run(run, &mut |t_ns| told.progress(run, t_ns)) {
            Ok(Ended::Interrupted) => return Ok(INTERRUPTED),
            Ok(Ended::Recorded(run_encoded, status, reason)) => {
                writer.append(*run_encoded)?;
                told.ended(run, status, &reason);
                worst = worse(worst, status);
                if status == Status::Partial {
                    break;
                }
                if writer.is_disk_full() {
                    writer.finish()?;
                    return Err(told.full(run));
                }
            }
            // Earlier runs are whole.
            Err(failure) if run.id > 0 => {
                writer.finish()?;
                return Err(told.stopped(run, failure));
            }
            Err(failure) => return Err(failure),
        }
    }
    writer.finish()?;
    told.done(worst);
    Ok(match worst {
        Status::Complete => 0,
        Status::Invalid => CHECK_FAILED,
        Status::Partial => ERROR,
    })
}

fn worse(one: Status, other: Status) -> Status {
    let rank = |status| match status {
        Status::Complete => 0,
        Status::Invalid => 1,
        Status::Partial => 2,
    };
    if rank(other) > rank(one) { other } else { one }
}

/// Refuses what this engine cannot honour, with the line.
fn refuse(arguments: &Arguments, overrides: &Overrides, sweep: &Sweep) -> Result<(), Failure> {
    let file = arguments.scenario.display().to_string();
    let mut told: Vec<String> = Vec::new();
    let mut found: Vec<plan::Refusal> = sweep.runs.iter().flat_map(plan::refusals).collect();
    found.extend(algorithms::unknown(&sweep.runs)?);
    for refusal in found {
        let place = (file.as_str(), sweep.text.as_str(), overrides);
        let text =
            mptcplab_scenario::refusal(place, &refusal.keys, refusal.message, Some(refusal.hint))
                .to_string();
        if !told.contains(&text) {
            told.push(text);
        }
    }
    match told.as_slice() {
        [] => Ok(()),
        _ => Err(Failure::new(told.join("\n\nerror: "))),
    }
}

/// Ctrl-C and its like, to be waited for like everything else.
fn signals() -> Result<SignalFd, Failure> {
    let mut set = SigSet::empty();
    for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP] {
        set.add(signal);
    }
    let failed = |errno| Failure::new(format!("signals: {errno}"));
    set.thread_block().map_err(failed)?;
    SignalFd::with_flags(&set, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK).map_err(failed)
}

/// The row of the `run` table as far as the scenario decides it.
fn record(
    sweep: &Sweep,
    run: &Run,
    subflow_cc: &[Vec<String>],
    [events, packet_hops]: [u64; 2],
) -> RunRecord {
    let engine = EngineInfo {
        name: "kernel",
        version: crate::build::VERSION,
        build: crate::build::LINE,
        scheduler: Some(plan::SCHEDULER),
        subflow_cc,
        events,
        packet_hops,
    };
    RunRecord::new(sweep, run, &engine)
}

/// What the caller hears.
struct Told {
    json: bool,
    runs: usize,
    total_ns: u64,
    done_ns: u64,
    done_runs: usize,
    out: PathBuf,
}

impl Told {
    fn new(arguments: &Arguments, sweep: &Sweep) -> Self {
        Self {
            json: arguments.json_progress,
            runs: sweep.runs.len(),
            total_ns: sweep.runs.iter().map(|run| run.duration_ns).sum(),
            done_ns: 0,
            done_runs: 0,
            out: arguments.out.clone(),
        }
    }

    fn progress(&self, run: &Run, t_ns: u64) {
        if self.json {
            let seconds = |ns: u64| ns as f64 / 1e9;
            say(&json!({
                "type": "progress",
                "run": run.id,
                "done_runs": self.done_runs,
                "total_runs": self.runs,
                "done_s": seconds(self.done_ns + t_ns.min(run.duration_ns)),
                "total_s": seconds(self.total_ns),
            }));
        }
    }

    fn ended(&mut self, run: &Run, status: Status, reason: &str) {
        self.done_runs += 1;
        self.done_ns += run.duration_ns;
        if self.json {
            say(
                &json!({ "type": "run", "run": run.id, "status": status.name(), "reason": reason }),
            );
        }
        if status != Status::Complete {
            eprintln!(
                "{}: run {} ({}) is {}: {reason}",
                severity(status),
                run.id,
                label(run),
                status.name()
            );
        }
    }

    fn stopped(&self, run: &Run, failure: Failure) -> Failure {
        let kept = format!(
            "the {} runs before it are in {}",
            self.done_runs,
            self.out.display()
        );
        let hint = failure
            .hint
            .map_or_else(|| kept.clone(), |hint| format!("{hint}; {kept}"));
        Failure {
            message: format!("run {} ({}): {}", run.id, label(run), failure.message),
            hint: Some(hint),
            code: failure.code,
        }
    }

    /// The disk had no room for the run that has just ended, but for the space set aside.
    fn full(&self, run: &Run) -> Failure {
        Failure {
            message: format!(
                "run {} ({}): the disk is full: {}",
                run.id,
                label(run),
                self.out.display()
            ),
            hint: Some(format!(
                "make room; the traces of {} of {} runs are there, this one included",
                self.done_runs, self.runs
            )),
            code: ERROR,
        }
    }

    fn done(&self, worst: Status) {
        if self.json {
            say(
                &json!({ "type": "done", "runs": self.done_runs, "total_runs": self.runs, "status": worst.name() }),
            );
        }
    }
}

fn severity(status: Status) -> &'static str {
    if status == Status::Partial {
        "error"
    } else {
        "warning"
    }
}

/// One line on standard output, whose reader may be gone.
fn say(value: &serde_json::Value) {
    use std::io::Write as _;
    let mut out = std::io::stdout().lock();
    let _ = writeln!(out, "{value}").and_then(|()| out.flush());
}

/// What tells a run from the others.
fn label(run: &Run) -> String {
    let axes = run
        .axes
        .iter()
        .map(|(key, value)| format!("{key} = {value}, "));
    format!("{}repetition {}", axes.collect::<String>(), run.rep)
}
