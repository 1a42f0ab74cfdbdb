//! `mptcplab-kernel doctor`: what this machine can do, and what stands in the way.
//!
//! Reads, tries in a child, and judges; changes nothing. Whoever asks about a live connection gets its subflows and the
//! reasons why an expected one is not there.

mod checks;
mod error;
mod facts;
mod finding;
mod live;
mod probe;

pub use error::Error;

use checks::Demand;
use facts::Facts;
use finding::{Finding, Status};
use live::{Answer, Question};
use nix::libc;
use serde_json::{Value, json};
use std::env;
use std::io::IsTerminal;
use std::net::SocketAddr;

/// What this machine can do, and what stands in the way.
///
/// Exit code: 0 if all engines run, 1 if something needed is missing (for a connection also: if it lacks a subflow or fell
/// back to TCP), 2 on an error.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Print JSON instead of a table.
    #[arg(long)]
    json: bool,
    /// Also: all MPTCP connections of this process, seen from its network namespace.
    #[arg(long, value_name = "N", conflicts_with = "connection", value_parser = clap::value_parser!(u32).range(1..))]
    pid: Option<u32>,
    /// Also: the connection with these addresses, such as 10.0.0.1:40000-10.0.0.2:443.
    #[arg(long, value_name = "SRC:PORT-DST:PORT", value_parser = live::addresses)]
    connection: Option<(SocketAddr, SocketAddr)>,
    /// Rate that the buffers should carry, all subflows together, such as "100 Mbit/s".
    #[arg(long, value_name = "RATE", requires = "rtt", value_parser = mptcplab_scenario::rate_bps)]
    rate: Option<u64>,
    /// Round-trip time at which they should carry it, such as "50 ms".
    #[arg(long, value_name = "TIME", requires = "rate", value_parser = mptcplab_scenario::duration_ns)]
    rtt: Option<u64>,
}

impl Args {
    fn demand(&self) -> Option<Demand> {
        Some(Demand {
            rate_bps: self.rate?,
            rtt_ns: self.rtt?,
        })
    }

    fn question(&self) -> Option<Question> {
        let between = self
            .connection
            .map(|(one, other)| Question::Between(one, other));
        self.pid.map(Question::Process).or(between)
    }
}

const MISSING: u8 = 1;
/// Width of the table where no terminal tells its own.
const WIDTH: usize = 100;

/// Run the command; the exit code.
pub fn main(args: &Args) -> Result<u8, Error> {
    if let Some(pid) = args.pid {
        live::enter_namespace_of(pid)?;
    }
    let facts = Facts::collect();
    let findings = checks::all(&facts, args.demand());
    let answer = args
        .question()
        .map(|question| live::look(question, &facts))
        .transpose()?;
    if args.json {
        println!("{:#}", as_json(&findings, answer.as_ref()));
    } else {
        print(&findings, answer.as_ref());
    }
    let about = answer
        .as_ref()
        .map_or(Status::Ok, |answer| finding::worst(&answer.findings));
    let worst = finding::worst(&findings).max(about);
    Ok(if worst == Status::Missing { MISSING } else { 0 })
}

fn print(findings: &[Finding], answer: Option<&Answer>) {
    let width = width();
    print!("{}", finding::table(findings, width));
    println!("\n{}", verdict(finding::worst(findings)));
    if let Some(answer) = answer {
        print!("\n{}", finding::table(&answer.findings, width));
    }
}

/// Columns of the terminal, or those that the environment names.
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

fn as_json(findings: &[Finding], answer: Option<&Answer>) -> Value {
    let mut found = json!({
        "ready": finding::worst(findings) != Status::Missing,
        "findings": findings,
    });
    if let Some(answer) = answer {
        found["connections"] = answer.connections.clone();
        found["connection_findings"] = json!(answer.findings);
    }
    found
}

fn verdict(worst: Status) -> &'static str {
    match worst {
        Status::Ok => "All engines run.",
        Status::Warn => "All engines run; the warnings say what could be better.",
        Status::Missing => {
            "The kernel engine does not run yet: see the lines marked missing. The simulator does."
        }
    }
}
