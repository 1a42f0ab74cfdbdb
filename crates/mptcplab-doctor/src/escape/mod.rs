//! Tries to get out of the sandbox in which a run's processes are, because only an attempt shows what holds on this machine.
//!
//! The doctor starts this program again with the hidden command `escape`, which shuts itself in exactly as the lab of a run
//! does, makes the attempts, and prints what came of them. Outside of the sandbox, no attempt changes anything.

mod attempts;

use attempts::Outside;
use mptcplab_net::sandbox::{self, Needs};
use serde::{Deserialize, Serialize};
use std::env;
use std::net::TcpListener;
use std::process::{Command, Stdio};

/// Attempts of one kind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Group {
    /// What somebody who got out could use.
    pub name: String,
    /// Number of attempts.
    pub attempts: usize,
    /// The attempts that were not refused.
    pub reached: Vec<String>,
}

/// Arguments of the hidden command.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// A process outside.
    #[arg(long)]
    process: i32,
    /// A TCP port of the host on which something listens.
    #[arg(long)]
    port: u16,
    /// Make the attempts without the sandbox, to see that they would be noticed.
    #[arg(long)]
    outside: bool,
}

/// Shuts the process in, makes all attempts and prints them as JSON.
///
/// # Errors
/// The sandbox could not be set up.
pub fn main(args: &Args) -> mptcplab_net::Result<()> {
    if !args.outside {
        sandbox::enter(Needs {
            files: &[],
            programs: false,
        })?;
    }
    let groups = attempts::all(Outside {
        process: args.process,
        port: args.port,
    });
    crate::outln!("{}", serde_json::json!(groups));
    Ok(())
}

/// What came of the attempts of this program's sandbox, or why they could not be made.
pub(super) fn attempt() -> Result<Vec<Group>, String> {
    let listener = TcpListener::bind("127.0.0.1:0").map_err(|error| error.to_string())?;
    let port = listener.local_addr().map_err(|error| error.to_string())?;
    let program = env::current_exe().map_err(|error| error.to_string())?;
    let output = Command::new(program)
        .args(["escape", "--process", &std::process::id().to_string()])
        .args(["--port", &port.port().to_string()])
        .stdin(Stdio::null())
        .output()
        .map_err(|error| error.to_string())?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        let line = said.lines().next().unwrap_or("it ended without a word");
        return Err(line.trim_start_matches("error: ").to_owned());
    }
    serde_json::from_slice(&output.stdout).map_err(|error| error.to_string())
}
