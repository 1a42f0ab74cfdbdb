//! The kernel engine: real MPTCP sockets over emulated links, and the operators' commands.

mod build;
mod cc;
mod cli;
mod compiled;
mod failure;
#[cfg_attr(not(target_arch = "x86_64"), path = "guest/elsewhere.rs")]
mod guest;
mod lab;
mod plan;
mod priority;
mod protocol;
mod run;
mod traffic;
mod wire;

use mptcplab_doctor::errln;
use std::process::ExitCode;

fn main() -> ExitCode {
    match cli::main() {
        Ok(code) => ExitCode::from(code),
        Err(failure) => {
            errln!("error: {failure}");
            ExitCode::from(failure.code)
        }
    }
}
