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
use mptcplab_doctor::bpffs;

/// Load, list and unload algorithms in this machine's kernel.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    Load(load::Arguments),
    List(list::Arguments),
    Unload(unload::Arguments),
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

/// Every named algorithm once, in the order given. The kernel can tell their names apart.
fn algorithms(names: &[String]) -> Result<Vec<&'static Algorithm>, Failure> {
    let mut chosen: Vec<&'static Algorithm> = Vec::new();
    for name in names {
        let found = algorithm(name)?;
        if chosen.iter().any(|known| known.name() == found.name()) {
            continue;
        }
        let in_kernel = kernel_name(found);
        if let Some(other) = chosen.iter().find(|one| kernel_name(one) == in_kernel) {
            return Err(Failure::new(format!(
                "{} and {} have the same name in the kernel: {in_kernel}",
                other.name(),
                found.name()
            ))
            .hint("the kernel allows 15 characters: give one of the files a shorter name"));
        }
        chosen.push(found);
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

/// Fails where pins can be neither made nor removed, nor even recognised.
fn require_writable_pins() -> Result<(), Failure> {
    match bpffs::state() {
        bpffs::State::ReadOnly => Err(Failure::new(format!(
            "the BPF file system at {} is mounted read-only",
            bpffs::MOUNT
        ))
        .hint(bpffs::remount())),
        bpffs::State::Absent | bpffs::State::Ready => Ok(()),
    }
}

fn plural(count: u64, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Debug, clap::Parser)]
    struct Line {
        #[command(subcommand)]
        _command: Command,
    }

    /// A summary in the list of commands took the place of the whole text, also in the help of each command.
    #[test]
    fn the_help_of_a_command_says_what_happens_to_sockets_that_use_an_algorithm() {
        for command in ["load", "unload"] {
            let help = Line::try_parse_from(["cc", command, "--help"]).unwrap_err();
            let help = help.to_string();
            assert!(
                help.contains("Sockets that use one keep it until they"),
                "{help}"
            );
        }
    }

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
