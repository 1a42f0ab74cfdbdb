//! `cc unload`: unloads all of the named algorithms or none.

use super::list::{holder, uncoupled, users};
use super::{algorithm, is_loaded_by_operator, kernel_name, plural};
use crate::failure::Failure;
use mptcplab_bpf::registered::{
    Holder, OPERATOR_PREFIX, Registered, detached_pins, operator_name, registered, remove_pin,
};
use mptcplab_doctor::defaults::{self, Defaults};
use mptcplab_doctor::{bpffs, command, errln, outln};
use serde_json::json;
use std::ffi::OsStr;
use std::path::Path;

/// Unload algorithms that were loaded with --pin.
///
/// Sockets that use one keep it until they close; new ones cannot use it.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Names of algorithms, with or without `lab_`, or paths of C files that were loaded.
    #[arg(
        value_name = "NAME",
        required_unless_present = "all",
        conflicts_with = "all"
    )]
    names: Vec<String>,
    /// Unload all algorithms that operators loaded, but not those of runs and of other programs.
    #[arg(long)]
    all: bool,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

pub(super) fn main(arguments: &Arguments) -> Result<u8, Failure> {
    let ours: Vec<Registered> = registered()?
        .into_iter()
        .filter(is_loaded_by_operator)
        .collect();
    let mut detached = detached_pins();
    let mut stays = false;
    let chosen = if arguments.all {
        let (held, removable): (Vec<_>, Vec<_>) = ours
            .into_iter()
            .partition(|one| matches!(one.holder, Holder::Processes(_) | Holder::Unknown));
        stays = !held.is_empty();
        for one in held {
            errln!(
                "warning: {} stays: it is held by {}",
                one.name,
                holder(&one)
            );
        }
        removable
    } else {
        let (chosen, named) = choose(&ours, &detached, &arguments.names)?;
        detached = named;
        chosen
    };
    // Check all before the first one is unloaded.
    let defaults = match chosen.as_slice() {
        [] => Defaults::default(),
        _ => defaults()?,
    };
    for one in &chosen {
        removable(one, &defaults)?;
    }
    for name in &detached {
        remove_pin(name).map_err(|error| {
            Failure::new(format!("cannot remove the pin of {name}: {error}"))
                .hint("this needs root")
        })?;
    }
    let (mut unloaded, mut kept) = (Vec::new(), Vec::new());
    for mut one in chosen {
        one.sockets = defaults.sockets(&one.name, one.sockets);
        if !one.unregister()? {
            kept.push(one.name);
            continue;
        }
        if let Some(what) = uncoupled(one.uncoupled.unwrap_or(0)) {
            errln!("warning: {}: {what}", one.name);
        }
        unloaded.push(one);
    }
    if arguments.json {
        let names: Vec<&str> = unloaded.iter().map(|one| one.name.as_str()).collect();
        if !names.is_empty() || kept.is_empty() {
            outln!("{}", json!({ "unloaded": names }));
        }
    } else {
        print(&unloaded, &detached);
        if kept.is_empty() && unloaded.is_empty() && detached.is_empty() {
            outln!(
                "no algorithm was {}",
                if stays { "unloaded" } else { "loaded" }
            );
        }
    }
    match kept.first() {
        Some(name) => Err(still_registered(name)),
        None => Ok(0),
    }
}

fn print(unloaded: &[Registered], detached: &[String]) {
    for name in detached {
        outln!("removed the pin of {name}, which had been detached");
    }
    for one in unloaded {
        match users(one) {
            Some(users) => outln!("unloaded {}; {users}", one.name),
            None => outln!("unloaded {}", one.name),
        }
    }
}

/// Its pin is removed, and it has stayed: new sockets can go on choosing it.
fn still_registered(name: &str) -> Failure {
    let all = registered().unwrap_or_default();
    let by = match all.iter().find(|one| one.name == name) {
        Some(one) => format!("it is held by {}", holder(one)),
        None => "something else held it, and has let it go by now".to_owned(),
    };
    Failure::new(format!(
        "{name} is still registered, although its pin is removed: {by}"
    ))
    .hint(format!(
        "it is unloaded when that process ends, or that pin is removed; `{} cc list` shows it until then",
        command::name()
    ))
}

/// The named ones among those that are loaded, and among the pins that were detached.
fn choose(
    ours: &[Registered],
    detached: &[String],
    names: &[String],
) -> Result<(Vec<Registered>, Vec<String>), Failure> {
    let mut chosen: Vec<Registered> = Vec::new();
    let mut pins: Vec<String> = Vec::new();
    let there: Vec<&str> = ours.iter().map(|one| one.name.as_str()).collect();
    let there = match there.as_slice() {
        [] => "loaded by operators: nothing".to_owned(),
        _ => format!("loaded by operators: {}", there.join(", ")),
    };
    for name in names {
        let name = name_of(name);
        // The name of what was compiled from a file is known to the kernel alone.
        let in_kernel = operator_name(name.strip_prefix(OPERATOR_PREFIX).unwrap_or(name));
        let is_known =
            ours.iter().any(|one| one.name == in_kernel) || detached.contains(&in_kernel);
        let wanted = match is_known {
            true => in_kernel,
            false => {
                let found = algorithm(name).map_err(|unknown| with_loaded(unknown, &there))?;
                kernel_name(found)
            }
        };
        if detached.contains(&wanted) {
            if !pins.contains(&wanted) {
                pins.push(wanted.clone());
            }
            if ours.iter().all(|one| one.name != wanted) {
                continue;
            }
        }
        let found = ours
            .iter()
            .find(|one| one.name == wanted)
            .ok_or_else(|| Failure::new(format!("{wanted} is not loaded")).hint(&*there))?;
        if !chosen.contains(found) {
            chosen.push(found.clone());
        }
    }
    Ok((chosen, pins))
}

/// The name of the algorithm that a C file of this path has; other names as they are.
fn name_of(name: &str) -> &str {
    let path = Path::new(name);
    match (path.extension(), path.file_stem().and_then(OsStr::to_str)) {
        (Some(extension), Some(stem)) if extension == "c" => stem,
        _ => name,
    }
}

/// A name that is close is suggested; what is loaded helps more than the names of all algorithms.
fn with_loaded(unknown: Failure, there: &str) -> Failure {
    let near = unknown
        .hint
        .filter(|hint| hint.starts_with("did you mean"))
        .map(|hint| format!("{hint} "));
    Failure {
        hint: Some(format!("{}{there}", near.unwrap_or_default())),
        ..unknown
    }
}

fn removable(one: &Registered, defaults: &Defaults) -> Result<(), Failure> {
    let places = defaults.places(&one.name);
    if !places.is_empty() {
        // The kernel would continue to use it for new sockets, although no list shows it any more.
        return Err(Failure::new(format!(
            "{} is the default congestion control of {}: that of {}",
            one.name,
            plural(places.len() as u64, "network namespace"),
            places.join(", ")
        ))
        .hint(match places.len() {
            1 => format!(
                "set another default there first: {}",
                defaults::set_another(&places)
            ),
            _ => format!(
                "set another default in each first, as here: {}",
                defaults::set_another(&places)
            ),
        }));
    }
    match &one.holder {
        Holder::Pin(_) | Holder::Nobody => Ok(()),
        Holder::Unknown if bpffs::state() == bpffs::State::ReadOnly => Err(Failure::new(format!(
            "{} is held by {}",
            one.name,
            holder(one)
        ))
        .hint(bpffs::remount())),
        Holder::Unknown => Err(Failure::new(format!(
            "{} is held by {}",
            one.name,
            holder(one)
        ))
        .hint(
            "run the command where it was loaded: `ip netns exec` and containers have a mount namespace, and so a \
             /sys/fs/bpf, of their own",
        )),
        Holder::Processes(_) => Err(Failure::new(format!(
            "{} is held by {}",
            one.name,
            holder(one)
        ))
        .hint("it is unloaded when that process ends; only algorithms loaded with --pin can be unloaded")),
    }
}

/// The default congestion control of every network namespace. A warning names those that nobody in this container may look
/// at.
pub(super) fn defaults() -> Result<Defaults, Failure> {
    let defaults = Defaults::read()?;
    if let Some(first) = defaults.closed.first() {
        errln!(
            "warning: the defaults in the network namespaces of {} cannot be read, the first is {first}",
            match defaults.closed.len() {
                1 => "1 process or file".to_owned(),
                count => format!("{count} processes or files"),
            }
        );
    }
    Ok(defaults)
}
