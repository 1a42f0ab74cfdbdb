//! `mptcplab-kernel cc`: loads algorithms for an operator's own traffic.
//!
//! This is the only command that changes the host: it registers congestion controls named `lab_<algorithm>`.

mod list;
mod load;
mod options;
mod persist;
mod unload;

use crate::failure::Failure;
use mptcplab_bpf::registered::{OPERATOR_PREFIX, Registered, operator_name};
use mptcplab_cc::Algorithm;

/// Load, list and unload algorithms in this machine's kernel.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    /// Load algorithms as `lab_<name>`.
    Load(load::Arguments),
    /// List the loaded algorithms, what holds them, and how many sockets use them.
    List(list::Arguments),
    /// Unload pinned algorithms.
    Unload(unload::Arguments),
    /// Load algorithms at every boot, by a systemd unit.
    Persist(persist::Arguments),
}

/// Executes the command; returns the exit code.
pub(crate) fn main(command: &Command) -> Result<u8, Failure> {
    match command {
        Command::Load(arguments) => load::main(arguments),
        Command::List(arguments) => list::main(arguments),
        Command::Unload(arguments) => unload::main(arguments),
        Command::Persist(arguments) => persist::main(arguments),
    }
}

/// The algorithm with this name, with or without the prefix.
fn algorithm(name: &str) -> Result<&'static Algorithm, Failure> {
    let bare = name
        .strip_prefix(OPERATOR_PREFIX)
        .unwrap_or(name)
        .replace('_', "-");
    mptcplab_cc::find(&bare).ok_or_else(|| {
        let known = mptcplab_cc::algorithms().iter().map(Algorithm::name);
        let (message, hint) = mptcplab_scenario::unknown_name("algorithm", &bare, known);
        Failure {
            hint,
            ..Failure::new(message)
        }
    })
}

/// Every named algorithm once, in the order given.
fn algorithms(names: &[String]) -> Result<Vec<&'static Algorithm>, Failure> {
    let mut chosen: Vec<&'static Algorithm> = Vec::new();
    for name in names {
        let found = algorithm(name)?;
        if !chosen.iter().any(|known| known.name() == found.name()) {
            chosen.push(found);
        }
    }
    Ok(chosen)
}

fn kernel_name(algorithm: &Algorithm) -> String {
    operator_name(algorithm.name())
}

/// Whether an algorithm was loaded with `cc load`, instead of by a run or another program.
fn is_loaded_by_operator(registered: &Registered) -> bool {
    registered.ours && registered.name.starts_with(OPERATOR_PREFIX)
}

fn plural(count: u64, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_fit_the_kernel_and_stay_different() {
        let mut names: Vec<String> = mptcplab_cc::algorithms().iter().map(kernel_name).collect();
        assert!(
            names
                .iter()
                .all(|name| name.len() <= 15 && name.starts_with("lab_"))
        );
        names.sort();
        let before = names.len();
        names.dedup();
        assert_eq!(names.len(), before);
    }

    #[test]
    fn an_algorithm_is_found_under_both_names_and_loaded_once() {
        let names = ["olia", "lab_olia", "lia"].map(str::to_owned);
        let found: Vec<&str> = algorithms(&names)
            .unwrap()
            .iter()
            .map(|a| a.name())
            .collect();
        assert_eq!(found, ["olia", "lia"]);
        let error = algorithms(&["oila".to_owned()]).unwrap_err();
        assert!(
            error.to_string().contains("oila") && error.to_string().contains("olia"),
            "{error}"
        );
    }
}
