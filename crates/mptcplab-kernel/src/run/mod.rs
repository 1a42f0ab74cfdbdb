//! `mptcplab-kernel run`: makes runs of a scenario, one after another, and adds the trace of each to a directory.

mod aggregate;
mod algorithms;
mod ends;
mod host;
mod lab_handle;
mod preparation;
pub(crate) mod prepare;
mod rows;
mod skipped_programs;
mod supervisor;

use crate::compiled;
use crate::failure::{ERROR, Failure};
use crate::plan::{self, UnsupportedSetting};
use crate::protocol::{Programs, Traffic};
use ends::Ends;
use mptcplab_doctor::errln;
use mptcplab_scenario::{Overrides, Run, Sweep};
use mptcplab_trace::parquet::{TraceWriter, next_kept};
use mptcplab_trace::{EngineInfo, RunRecord, Status};
use preparation::Prepared;
use serde_json::json;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use supervisor::{Outcome, Supervisor};

/// Arguments of `run`.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Scenario file.
    #[arg(long)]
    scenario: PathBuf,
    /// Changes to the scenario: a JSON object such as {"cc": ["lia"], "set": [["links.B1.rate", "5 Mbit/s"]]}.
    #[arg(long, default_value = "{}")]
    overrides: String,
    /// Directory to which the trace of each run is added as soon as it has ended.
    #[arg(long)]
    out: PathBuf,
    /// File with the digest of each run of the scenario, one per line, for the run table.
    #[arg(long)]
    digests: Option<PathBuf>,
    /// Directory with algorithms that are not in the build, as `compile` has made it.
    #[arg(long, hide = true, value_name = "DIR")]
    algorithms: Option<PathBuf>,
    /// The application that generates the traffic.
    #[arg(long, value_enum, default_value_t = Traffic::Own)]
    traffic: Traffic,
    /// Print progress and results on standard output, one JSON object per line.
    #[arg(long)]
    json_progress: bool,
    /// Make only these runs of the scenario, counted from 0 and separated by commas.
    #[arg(long, value_delimiter = ',')]
    run: Vec<u32>,
    /// End as after Ctrl-C when this process ends, which started this one.
    #[arg(long, hide = true, value_name = "N")]
    parent: Option<i32>,
    /// The machine is a virtual one, in which nothing but one run happens and every instruction takes time.
    #[arg(long, hide = true)]
    in_machine: bool,
}

/// Time of the run between two progress reports. Each wakes a process, which costs more than many packets.
const REPORT_NS: u64 = 500_000_000;
/// Exit code if the traces were written but not all of them are valid.
const CHECK_FAILED: u8 = 1;

/// Makes all runs of a scenario. The exit code says whether all of them are complete.
pub(crate) fn main(arguments: &Arguments) -> Result<u8, Failure> {
    if let Some(directory) = &arguments.algorithms {
        compiled::load(directory)?;
    }
    main_prepared(arguments, None)
}

/// The same after algorithms that are not in the build were loaded. The kernel may have been prepared for the first run.
fn main_prepared(arguments: &Arguments, prepared: Option<Prepared>) -> Result<u8, Failure> {
    let existed = arguments.out.exists();
    let ended = make_runs(arguments, prepared);
    if !existed {
        // Only if it is empty: without a run, nothing is left behind.
        let _ = std::fs::remove_dir(&arguments.out);
    }
    ended
}

fn make_runs(arguments: &Arguments, mut prepared: Option<Prepared>) -> Result<u8, Failure> {
    let (overrides, sweep) = load(&arguments.scenario, &arguments.overrides, &arguments.run)?;
    let mut unsupported = unsupported(&sweep);
    unsupported.extend(algorithms::unknown(&sweep.runs)?);
    refuse(&arguments.scenario, &overrides, &sweep, unsupported)?;
    if arguments.in_machine {
        check_machine()?;
        check_one(&sweep)?;
    }
    let digests = digests(arguments)?;
    let ends = Ends::watch(arguments.parent)?;
    let programs = match arguments.traffic {
        Traffic::Own => None,
        Traffic::Iperf3 => Some(Programs::find()?),
    };
    std::fs::create_dir_all(&arguments.out)
        .map_err(|error| Failure::new(format!("--out: {}: {error}", arguments.out.display())))?;
    let mut progress = Progress::new(arguments, &sweep);
    let mut worst = Status::Complete;
    for (index, run) in sweep.runs.iter().enumerate() {
        progress.running(run, 0);
        let mut writer = writer(arguments)?;
        let supervisor = Supervisor {
            arguments,
            sweep: &sweep,
            digests: &digests,
            ends: &ends,
            programs: programs.clone(),
            encoder: writer.encoder(),
        };
        let mut reported_ns = 0;
        let mut tick = |t_ns: u64| {
            if t_ns >= reported_ns + REPORT_NS || t_ns >= run.duration_ns {
                reported_ns = t_ns;
                progress.running(run, t_ns);
            }
        };
        match supervisor.run(run, prepared.take(), &mut tick) {
            Ok(Outcome::Interrupted(code)) => return Ok(code),
            Ok(Outcome::Recorded(run_encoded, status, reason)) => {
                writer.append(*run_encoded)?;
                let is_disk_full = writer.finish()?;
                progress.ended(run, status, &reason);
                worst = worse(worst, status);
                let ends = status == Status::Partial || index + 1 == sweep.runs.len();
                if is_disk_full && !ends {
                    return Err(progress.disk_full(run));
                }
                if is_disk_full {
                    errln!("warning: {}", progress.disk_full(run).message);
                }
                if ends {
                    break;
                }
            }
            Err(failure) if progress.done_runs > 0 => {
                return Err(Progress::aborted(run, failure));
            }
            Err(failure) => return Err(failure),
        }
    }
    progress.done(worst);
    Ok(match worst {
        Status::Complete => 0,
        Status::Invalid => CHECK_FAILED,
        Status::Partial => ERROR,
    })
}

/// Refuses to do without the sandbox anywhere but in a virtual machine of the engine, whose first process is this program.
fn check_machine() -> Result<(), Failure> {
    let file = |path| std::fs::metadata(path).map(|file| (file.dev(), file.ino()));
    let is_machine =
        file("/proc/1/exe").is_ok_and(|first| file("/proc/self/exe").is_ok_and(|own| own == first));
    if !is_machine {
        return Err(
            Failure::new("--in-machine: this is no virtual machine of the engine vm")
                .hint("to run a scenario in a virtual machine: mptcplab run X.toml --engine vm"),
        );
    }
    Ok(())
}

fn check_one(sweep: &Sweep) -> Result<(), Failure> {
    match sweep.runs.len() {
        0 | 1 => Ok(()),
        runs => Err(Failure::new(format!(
            "--in-machine: a machine makes one run, not {runs}"
        ))),
    }
}

fn writer(arguments: &Arguments) -> Result<TraceWriter, Failure> {
    let out = next_kept(&arguments.out)?;
    // A run in a virtual machine can be repeated exactly.
    let created = if arguments.in_machine {
        TraceWriter::create(&out)
    } else {
        TraceWriter::create_with_reserve(&out)
    };
    Ok(created?)
}

/// Reads a scenario, with all runs or only some.
fn load(scenario: &Path, overrides: &str, ids: &[u32]) -> Result<(Overrides, Sweep), Failure> {
    let overrides = Overrides::from_json(overrides).map_err(Failure::new)?;
    let mut sweep = mptcplab_scenario::load(scenario, &overrides)?;
    only(&mut sweep, ids)?;
    Ok((overrides, sweep))
}

/// Removes all runs but some, if some are given.
fn only(sweep: &mut Sweep, ids: &[u32]) -> Result<(), Failure> {
    let count = sweep.runs.len();
    if let Some(id) = ids.iter().find(|id| **id as usize >= count) {
        return Err(
            Failure::new(format!("--run: the scenario has no run {id}")).hint(format!(
                "it has {count} runs, which are counted from 0; the last one is {}",
                count.saturating_sub(1)
            )),
        );
    }
    if !ids.is_empty() {
        sweep.runs.retain(|run| ids.contains(&run.id));
    }
    Ok(())
}

/// The digests of all runs of the scenario, by id; none if there is no file with them.
fn digests(arguments: &Arguments) -> Result<Vec<String>, Failure> {
    let Some(path) = &arguments.digests else {
        return Ok(Vec::new());
    };
    let text = std::fs::read_to_string(path)
        .map_err(|error| Failure::new(format!("--digests: {}: {error}", path.display())))?;
    Ok(text.lines().map(str::to_owned).collect())
}

fn worse(one: Status, other: Status) -> Status {
    let rank = |status| match status {
        Status::Complete => 0,
        Status::Invalid => 1,
        Status::Partial => 2,
    };
    if rank(other) > rank(one) { other } else { one }
}

/// What no kernel can do as written.
fn unsupported(sweep: &Sweep) -> Vec<UnsupportedSetting> {
    sweep
        .runs
        .iter()
        .flat_map(plan::unsupported_settings)
        .collect()
}

/// Refuses scenarios with settings that cannot be run as written, naming the line.
fn refuse(
    scenario: &Path,
    overrides: &Overrides,
    sweep: &Sweep,
    unsupported: Vec<UnsupportedSetting>,
) -> Result<(), Failure> {
    let file = scenario.display().to_string();
    let mut messages: Vec<String> = Vec::new();
    for setting in unsupported {
        let place = (file.as_str(), sweep.text.as_str(), overrides);
        let text = mptcplab_scenario::unsupported_setting(
            place,
            &setting.keys,
            setting.message,
            Some(setting.hint),
        )
        .to_string();
        if !messages.contains(&text) {
            messages.push(text);
        }
    }
    match messages.as_slice() {
        [] => Ok(()),
        _ => Err(Failure::new(messages.join("\n\nerror: "))),
    }
}

/// The columns of the `run` table that follow from the scenario.
fn run_record(
    sweep: &Sweep,
    run: &Run,
    subflow_cc: &[Vec<String>],
    [events, packet_hops]: [u64; 2],
    digest: Option<&String>,
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
    RunRecord {
        digest: digest.cloned().unwrap_or_default(),
        ..RunRecord::new(sweep, run, &engine)
    }
}

/// Reports progress on standard output and problems on standard error.
struct Progress {
    json: bool,
    runs: usize,
    total_ns: u64,
    done_ns: u64,
    done_runs: usize,
    out: PathBuf,
}

impl Progress {
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

    fn running(&self, run: &Run, t_ns: u64) {
        if self.json {
            let seconds = |ns: u64| ns as f64 / 1e9;
            print_line(&json!({
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
            print_line(
                &json!({ "type": "run", "run": run.id, "status": status.name(), "reason": reason }),
            );
        }
        if status != Status::Complete {
            errln!(
                "{}: run {} ({}) is {}: {reason}",
                severity(status),
                run.id,
                label(run),
                status.name()
            );
        }
    }

    fn aborted(run: &Run, failure: Failure) -> Failure {
        Failure {
            message: format!("run {} ({}): {}", run.id, label(run), failure.message),
            ..failure
        }
    }

    /// The error after a run whose trace fitted only into the space that had been reserved, unless it was the last one.
    fn disk_full(&self, run: &Run) -> Failure {
        Failure {
            message: format!(
                "run {} ({}): the disk is full: {}",
                run.id,
                label(run),
                self.out.display()
            ),
            hint: Some("free some space; this run was still written".into()),
            code: ERROR,
        }
    }

    fn done(&self, worst: Status) {
        if self.json {
            print_line(
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

/// Prints one line on standard output, whose reader may have ended.
fn print_line(value: &serde_json::Value) {
    use std::io::Write as _;
    let mut out = std::io::stdout().lock();
    let _ = writeln!(out, "{value}").and_then(|()| out.flush());
}

/// The values that distinguish a run from the others of its sweep.
fn label(run: &Run) -> String {
    let axes = run
        .axes
        .iter()
        .map(|(key, value)| format!("{key} = {value}, "));
    format!("{}repetition {}", axes.collect::<String>(), run.rep)
}
