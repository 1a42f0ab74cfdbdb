//! `cc list`.

use super::{is_loaded_by_operator, kernel_name, plural};
use crate::failure::Failure;
use mptcplab_bpf::registered::{Holder, Registered, registered};
use mptcplab_cc::{Algorithm, MAX_SUBFLOWS};
use mptcplab_doctor::defaults::Defaults;
use mptcplab_doctor::output::in_one_line;
use mptcplab_doctor::{bpffs, outln};
use serde_json::{Map, Value, json};

/// List the eBPF congestion controls in this machine's kernel, what holds them, and how many sockets use them.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

pub(super) fn main(arguments: &Arguments) -> Result<u8, Failure> {
    let mut found = registered()?;
    if let Ok(defaults) = Defaults::read() {
        for one in &mut found {
            one.sockets = defaults.sockets(&one.name, one.sockets);
        }
    }
    if arguments.json {
        let rows: Vec<Value> = found.iter().map(row).collect();
        outln!("{}", Value::Array(rows));
    } else if found.is_empty() {
        outln!("no eBPF congestion control is loaded");
    } else {
        print(&found);
    }
    Ok(0)
}

fn print(found: &[Registered]) {
    outln!(
        "{:<16} {:<10} {:>7}  {:<7}  held by",
        "name",
        "kind",
        "sockets",
        "counts"
    );
    for one in found {
        outln!(
            "{:<16} {:<10} {:>7}  {:<7}  {}",
            one.name,
            kind(one),
            one.sockets,
            counts(one).unwrap_or("?"),
            holder(one)
        );
        if let Some(what) = uncoupled(one.uncoupled.unwrap_or(0)) {
            outln!("{:<16} {what}", "");
        }
        let params = params(one);
        if !params.is_empty() {
            let params: Vec<String> = params.iter().map(|(k, v)| format!("{k}={v}")).collect();
            outln!("{:<16} {}", "", params.join(", "));
        }
    }
}

/// What congestion avoidance counts: ACKs or packets.
fn counts(one: &Registered) -> Option<&'static str> {
    let setting = one.setting.as_ref()?;
    Some(if setting.growth_per_ack {
        "ACKs"
    } else {
        "packets"
    })
}

/// The parameters that do not have their default values.
fn params(one: &Registered) -> Vec<(&'static str, String)> {
    let (Some(algorithm), Some(setting)) = (algorithm_of(&one.name), &one.setting) else {
        return Vec::new();
    };
    let values = algorithm.params().iter().zip(setting.params);
    values
        .filter(|(spec, raw)| spec.default != u64::from(*raw))
        .map(|(spec, raw)| (spec.name, spec.format(raw.into())))
        .collect()
}

/// The algorithm that `cc load` loads under this kernel-visible name.
fn algorithm_of(name: &str) -> Option<&'static Algorithm> {
    mptcplab_cc::algorithms()
        .iter()
        .find(|algorithm| kernel_name(algorithm) == name)
}

fn kind(one: &Registered) -> &'static str {
    match (is_loaded_by_operator(one), one.ours) {
        (true, _) => "operator's",
        (false, true) => "a run's",
        (false, false) => "foreign",
    }
}

fn row(one: &Registered) -> Value {
    json!({
        "name": one.name,
        "kind": kind(one),
        "sockets": one.sockets,
        "counts": counts(one),
        "uncoupled": one.uncoupled,
        "params": params(one).into_iter().map(|(key, value)| (key.to_owned(), value.into())).collect::<Map<_, _>>(),
        "pin": match &one.holder {
            Holder::Pin(path) => Some(path.display().to_string()),
            _ => None,
        },
        "processes": match &one.holder {
            Holder::Processes(who) => who.iter().map(|(pid, command)| json!({"pid": pid, "command": command})).collect(),
            _ => Vec::new(),
        },
    })
}

/// Describes what keeps an algorithm registered.
pub(super) fn holder(one: &Registered) -> String {
    match &one.holder {
        Holder::Pin(path) => path.display().to_string(),
        Holder::Processes(who) => {
            let named: Vec<String> = who
                .iter()
                .map(|(pid, command)| format!("process {pid} ({})", shortened(command)))
                .collect();
            named.join(", ")
        }
        Holder::Nobody => "nothing; registered until it is unloaded".to_owned(),
        Holder::Unknown if bpffs::state() == bpffs::State::ReadOnly => format!(
            "a pin that cannot be examined, because {} is mounted read-only, or an unseen process",
            bpffs::MOUNT
        ),
        Holder::Unknown => "an unseen process, or a pin in another mount namespace".to_owned(),
    }
}

/// Characters of a command line that a table or an error shows; JSON has all.
const COMMAND_CHARACTERS: usize = 60;

fn shortened(command: &str) -> String {
    let command = in_one_line(command);
    match command.char_indices().nth(COMMAND_CHARACTERS) {
        Some((end, _)) => format!("{}…", &command[..end]),
        None => command,
    }
}

/// How many subflows ran uncoupled because they found no place in the table; `None` if there were none.
pub(super) fn uncoupled(count: u64) -> Option<String> {
    (count > 0).then(|| {
        format!(
            "{} found no place in its table and ran uncoupled; use a larger --connections, and at most {MAX_SUBFLOWS} \
             subflows per connection",
            plural(count, "subflow")
        )
    })
}

/// For example `3 sockets keep it until they close`; `None` if there are none.
pub(super) fn users(one: &Registered) -> Option<String> {
    match one.sockets {
        0 => None,
        1 => Some("1 socket keeps it until it closes".to_owned()),
        many => Some(format!("{many} sockets keep it until they close")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The command line of a run, with its whole scenario's settings, took several lines of the table.
    #[test]
    fn a_long_command_line_is_cut() {
        assert_eq!(
            shortened("mptcplab cc load\nolia"),
            "mptcplab cc load\\nolia"
        );
        let long = "ü".repeat(500);
        assert_eq!(
            shortened(&long),
            format!("{}…", "ü".repeat(COMMAND_CHARACTERS))
        );
    }
}
