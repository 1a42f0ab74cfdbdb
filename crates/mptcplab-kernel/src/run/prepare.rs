//! `mptcplab-kernel preparations` and `prepare`: the two steps by which a virtual machine is prepared for a run. The first
//! says on the host what each run of a scenario needs; the second, in the machine, loads that and waits for the run.

use super::preparation::{Preparation, Prepared};
use super::{Arguments, load, refuse, unsupported};
use crate::compiled;
use crate::failure::Failure;
use crate::plan::Plan;
use crate::protocol::Place;
use clap::Parser as _;
use mptcplab_doctor::outln;
use nix::sys::signal::{Signal, raise};
use std::io::Write as _;
use std::path::PathBuf;

/// What `prepare` prints when it waits for a run.
pub(crate) const WAITING: &str = "waiting";
/// The file in which it leaves its exit code before it stops in a virtual machine.
pub(crate) const CODE: &str = "/run/code";

/// Arguments of `preparations`.
#[derive(Debug, clap::Args)]
pub(crate) struct ListArguments {
    /// Scenario file.
    #[arg(long)]
    scenario: PathBuf,
    /// Changes to the scenario.
    #[arg(long, default_value = "{}")]
    overrides: String,
    /// Directory with algorithms that are not in the build, as `compile` has made it.
    #[arg(long, value_name = "DIR")]
    algorithms: Option<PathBuf>,
    /// Only these runs of the scenario, counted from 0 and separated by commas.
    #[arg(long, value_delimiter = ',')]
    run: Vec<u32>,
}

/// Prints what each run needs, as a JSON array of texts for `prepare --preparation`.
pub(crate) fn list(arguments: &ListArguments) -> Result<u8, Failure> {
    if let Some(directory) = &arguments.algorithms {
        compiled::load_declarations_without_capabilities(directory)?;
    }
    let (overrides, sweep) = load(&arguments.scenario, &arguments.overrides, &arguments.run)?;
    // Which algorithms of its own the kernel has is not known here.
    refuse(&arguments.scenario, &overrides, &sweep, unsupported(&sweep))?;
    let texts = sweep
        .runs
        .iter()
        .map(|run| serde_json::to_string(&Preparation::of(run, &Plan::new(run))))
        .collect::<Result<Vec<_>, _>>()
        .and_then(|texts| serde_json::to_string(&texts));
    outln!("{}", texts.map_err(|error| broken(&error))?);
    Ok(0)
}

/// Arguments of `prepare`.
#[derive(Debug, clap::Args)]
pub(crate) struct PrepareArguments {
    /// What to load, as `preparations` has printed it.
    #[arg(long)]
    preparation: String,
    /// Directory with algorithms that are not in the build, as `compile` has made it.
    #[arg(long, value_name = "DIR")]
    algorithms: Option<PathBuf>,
    /// The machine is a virtual one, in which nothing but one run happens.
    #[arg(long)]
    in_machine: bool,
}

/// The command line of the run; its first word is `run`.
#[derive(Debug, clap::Parser)]
struct CommandLine {
    #[command(flatten)]
    run: Arguments,
}

/// Prepares the kernel, says so, waits for the words of a command line on standard input, separated by NUL, and makes that
/// run.
pub(crate) fn main(arguments: &PrepareArguments) -> Result<u8, Failure> {
    if let Some(directory) = &arguments.algorithms {
        compiled::load(directory)?;
    }
    let preparation =
        serde_json::from_str(&arguments.preparation).map_err(|error| broken(&error))?;
    let place = Place::of(arguments.in_machine);
    if place == Place::Thread {
        super::check_machine()?;
    }
    let prepared = Prepared::make(preparation, place)?;
    let words = next_words().map_err(|error| Failure::new(format!("prepare: {error}")))?;
    let CommandLine { mut run } = CommandLine::parse_from(words.split('\0'));
    run.in_machine = arguments.in_machine;
    let code = super::main_prepared(&run, Some(prepared))?;
    if place == Place::Thread {
        stop(code).map_err(|error| Failure::new(format!("prepare: {error}")))?;
    }
    Ok(code)
}

/// Stops this process with all that it has. When a process ends, the kernel removes its devices, its namespaces and its
/// eBPF programs one after another; a machine ends as a whole.
fn stop(code: u8) -> std::io::Result<()> {
    std::fs::write(CODE, code.to_string())?;
    std::io::stdout().flush()?;
    nix::unistd::close(libc::STDOUT_FILENO)?;
    Ok(raise(Signal::SIGSTOP)?)
}

fn next_words() -> std::io::Result<String> {
    let mut out = std::io::stdout();
    writeln!(out, "{WAITING}")?;
    out.flush()?;
    std::io::read_to_string(std::io::stdin())
}

fn broken(error: &serde_json::Error) -> Failure {
    Failure::new(format!("--preparation: {error}"))
}
