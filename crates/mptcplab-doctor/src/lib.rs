//! The command `mptcplab-kernel doctor`: checks whether this machine can run the engines, and explains live connections.
//!
//! The doctor reads settings, tries privileged operations in a child process, and judges the results; it changes nothing.
//! For a live MPTCP connection it lists the subflows and the reasons why an expected one is missing.

pub mod bpffs;
mod checks;
pub mod command;
pub mod defaults;
mod error;
pub mod escape;
mod facts;
mod finding;
mod limits;
mod live;
pub mod output;
mod probe;
pub mod programs;
pub mod trust;

pub use error::Error;

use checks::TargetBdp;
use facts::Facts;
use finding::{Finding, Status};
use live::{LiveReport, Target};
use nix::libc;
use serde_json::{Value, json};
use std::env;
use std::io::IsTerminal;
use std::net::SocketAddr;

/// Check what this machine can do, and what it lacks.
///
/// The exit code is 0 if the kernel engine and `cc` run, 1 if something that they need is missing (or, for a connection, if it
/// lacks a subflow or fell back to TCP), and 2 on an error.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Print JSON instead of a table.
    #[arg(long)]
    json: bool,
    /// Also show all MPTCP connections of this process, in its network namespace.
    #[arg(long, value_name = "N", conflicts_with = "connection", value_parser = clap::value_parser!(u32).range(1..))]
    pid: Option<u32>,
    /// Also show the connection with these addresses, such as 10.0.0.1:40000-10.0.0.2:443.
    #[arg(long, value_name = "SRC:PORT-DST:PORT", value_parser = live::addresses)]
    connection: Option<(SocketAddr, SocketAddr)>,
    /// Check whether the buffers support this rate of all subflows together, such as "100 Mbit/s".
    #[arg(long, value_name = "RATE", requires = "rtt", value_parser = mptcplab_scenario::rate_bps)]
    rate: Option<u64>,
    /// Round-trip time for the check of the buffers, such as "50 ms".
    #[arg(long, value_name = "TIME", requires = "rate", value_parser = mptcplab_scenario::duration_ns)]
    rtt: Option<u64>,
}

impl Args {
    fn target_bdp(&self) -> Option<TargetBdp> {
        Some(TargetBdp {
            rate_bps: self.rate?,
            rtt_ns: self.rtt?,
        })
    }

    fn target(&self) -> Option<Target> {
        let between = self
            .connection
            .map(|(one, other)| Target::Connection(one, other));
        self.pid.map(Target::Process).or(between)
    }
}

const MISSING: u8 = 1;
/// Width of the table if it cannot be determined.
const WIDTH: usize = 100;

/// Runs the command; returns the exit code.
pub fn main(args: &Args) -> Result<u8, Error> {
    if let Some(pid) = args.pid {
        live::enter_namespace_of(pid)?;
    }
    let facts = Facts::collect();
    let findings = checks::all(&facts, args.target_bdp());
    let report = args
        .target()
        .map(|target| live::examine(target, &facts))
        .transpose()?;
    if args.json {
        outln!("{:#}", as_json(&findings, report.as_ref()));
    } else {
        print(&findings, report.as_ref());
    }
    let worst_of_connections = report
        .as_ref()
        .map_or(Status::Ok, |report| finding::worst(&report.findings));
    let worst = finding::worst(&findings).max(worst_of_connections);
    Ok(if worst == Status::Missing { MISSING } else { 0 })
}

fn print(findings: &[Finding], report: Option<&LiveReport>) {
    let width = width();
    out!("{}", finding::table(findings, width));
    let has_simulator = command::name() == command::PACKAGE;
    outln!("\n{}", verdict(finding::worst(findings), has_simulator));
    if let Some(report) = report {
        out!("\n{}", finding::table(&report.findings, width));
    }
}

/// The width of the terminal, unless the environment variable COLUMNS sets it.
fn width() -> usize {
    let named = env::var("COLUMNS")
        .ok()
        .and_then(|columns| columns.parse().ok());
    named.or_else(terminal_width).unwrap_or(WIDTH)
}

fn terminal_width() -> Option<usize> {
    if !std::io::stdout().is_terminal() {
        return None;
    }
    let mut size = libc::winsize {
        ws_row: 0,
        ws_col: 0,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    // SAFETY: the kernel writes one `struct winsize`, which is what the pointer is to.
    let result = unsafe { libc::ioctl(libc::STDOUT_FILENO, libc::TIOCGWINSZ, &raw mut size) };
    (result == 0 && size.ws_col > 0).then_some(usize::from(size.ws_col))
}

fn as_json(findings: &[Finding], report: Option<&LiveReport>) -> Value {
    let mut found = json!({
        "ready": finding::worst(findings) != Status::Missing,
        "findings": findings,
    });
    if let Some(report) = report {
        found["connections"] = report.connections.clone();
        found["connection_findings"] = json!(report.findings);
    }
    found
}

/// The program by itself has no simulator.
fn verdict(worst: Status, has_simulator: bool) -> String {
    let (both, simulator) = match has_simulator {
        true => (
            "The simulator and the kernel engine run",
            "The simulator runs. ",
        ),
        false => ("The kernel engine runs", ""),
    };
    match worst {
        Status::Ok => format!("{both}."),
        Status::Warn => format!("{both}; the warnings say what could be improved."),
        Status::Missing => {
            format!("{simulator}The kernel engine does not run yet: see the lines marked missing.")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The Debian package has the program alone, which said that the simulator runs.
    #[test]
    fn only_the_package_that_has_a_simulator_says_that_it_runs() {
        for status in [Status::Ok, Status::Warn, Status::Missing] {
            assert!(verdict(status, true).starts_with("The simulator "));
            assert!(verdict(status, false).starts_with("The kernel engine "));
        }
    }
}
