//! The command line.

use crate::failure::Failure;
use crate::run::prepare;
use crate::{cc, compiled, guest, lab, run};
use clap::{Parser, Subcommand};
use mptcplab_doctor as doctor;

/// The kernel engine of mptcplab: real MPTCP sockets over emulated links.
#[derive(Debug, Parser)]
#[command(version, about)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run a scenario on this machine's kernel.
    Run(run::Arguments),
    Doctor(doctor::Args),
    #[command(subcommand)]
    Cc(cc::Command),
    /// Compile a C file for `run --algorithms`.
    #[command(hide = true)]
    Compile(compiled::Arguments),
    /// What each run of a scenario needs of the kernel, for `prepare`.
    #[command(hide = true)]
    Preparations(prepare::ListArguments),
    /// Load what a run needs, and wait for the command line of the run on standard input; started by `guest`.
    #[command(hide = true)]
    Prepare(prepare::PrepareArguments),
    /// The unprivileged half of a run; started by `run`.
    #[command(hide = true)]
    Lab {
        /// Process id of the supervisor.
        #[arg(long)]
        supervisor: i32,
    },
    /// Attempts to get out of the sandbox of a run; started by `doctor`.
    #[command(hide = true)]
    Escape(doctor::escape::Args),
    /// The first process of a virtual machine; started by its kernel.
    #[command(hide = true)]
    Guest,
}

/// Executes the command line; returns the exit code.
pub(crate) fn main() -> Result<u8, Failure> {
    match Arguments::parse().command {
        Command::Run(arguments) => run::main(&arguments),
        Command::Doctor(args) => Ok(doctor::main(&args)?),
        Command::Cc(command) => cc::main(&command),
        Command::Compile(arguments) => compiled::main(&arguments),
        Command::Preparations(arguments) => prepare::list(&arguments),
        Command::Prepare(arguments) => prepare::main(&arguments),
        Command::Lab { supervisor } => lab::main(supervisor).map(|()| 0),
        Command::Escape(args) => Ok(doctor::escape::main(&args).map(|()| 0)?),
        Command::Guest => guest::main(),
    }
}
