//! `cc unload`: unloads all of the named algorithms or none.

use super::list::{holder, uncoupled, users};
use super::{algorithm, is_loaded_by_operator, kernel_name, plural};
use crate::failure::Failure;
use mptcplab_bpf::registered::{Holder, Registered, registered};
use mptcplab_doctor::{errln, outln};
use mptcplab_net::{InNamespace, in_every_namespace};
use serde_json::json;

/// Unload algorithms that were loaded with --pin.
///
/// Sockets that use one keep it until they close; new ones cannot use it.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Names of algorithms, with or without `lab_`.
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
    let chosen = if arguments.all {
        ours
    } else {
        choose(&ours, &arguments.names)?
    };
    // Check all before the first one is unloaded.
    let defaults = defaults()?;
    for one in &chosen {
        removable(one, &defaults)?;
    }
    for one in &chosen {
        one.unregister()?;
        if let Some(what) = uncoupled(one) {
            errln!("warning: {}: {what}", one.name);
        }
    }
    if arguments.json {
        let names: Vec<&str> = chosen.iter().map(|one| one.name.as_str()).collect();
        outln!("{}", json!({ "unloaded": names }));
        return Ok(0);
    }
    if chosen.is_empty() {
        outln!("no algorithm was loaded");
    }
    for one in &chosen {
        match users(one) {
            Some(users) => outln!("unloaded {}; {users} keep it until they close", one.name),
            None => outln!("unloaded {}", one.name),
        }
    }
    Ok(0)
}

fn choose(ours: &[Registered], names: &[String]) -> Result<Vec<Registered>, Failure> {
    let mut chosen: Vec<Registered> = Vec::new();
    for name in names {
        // The name of what was compiled from a file is known to the kernel alone.
        let wanted = match ours.iter().find(|one| one.name == *name) {
            Some(loaded) => loaded.name.clone(),
            None => kernel_name(algorithm(name)?),
        };
        let found = ours.iter().find(|one| one.name == wanted).ok_or_else(|| {
            let there: Vec<&str> = ours.iter().map(|one| one.name.as_str()).collect();
            let there = if there.is_empty() {
                "nothing".to_owned()
            } else {
                there.join(", ")
            };
            Failure::new(format!("{wanted} is not loaded"))
                .hint(format!("loaded by operators: {there}"))
        })?;
        if !chosen.contains(found) {
            chosen.push(found.clone());
        }
    }
    Ok(chosen)
}

fn removable(one: &Registered, defaults: &[(String, String)]) -> Result<(), Failure> {
    let places: Vec<&str> = defaults
        .iter()
        .filter(|(_, default)| *default == one.name)
        .map(|(place, _)| place.as_str())
        .collect();
    if !places.is_empty() {
        // The kernel would continue to use it for new sockets, although no list shows it any more.
        return Err(Failure::new(format!(
            "{} is the default congestion control of {}: that of {}",
            one.name,
            plural(places.len() as u64, "network namespace"),
            places.join(", ")
        ))
        .hint(
            "set another default there first: sysctl -w net.ipv4.tcp_congestion_control=cubic, in another namespace with \
             `nsenter --net=/proc/PID/ns/net` before it",
        ));
    }
    match &one.holder {
        Holder::Pin(_) | Holder::Nobody => Ok(()),
        Holder::Processes(_) | Holder::Unknown => Err(Failure::new(format!(
            "{} is held by {}",
            one.name,
            holder(one)
        ))
        .hint("it is unloaded when that process ends; only algorithms loaded with --pin can be unloaded")),
    }
}

/// The default congestion control of every network namespace, with which namespace it is. A warning names those that
/// nobody in this container may look at.
fn defaults() -> Result<Vec<(String, String)>, Failure> {
    let read = || std::fs::read_to_string("/proc/sys/net/ipv4/tcp_congestion_control");
    let mut defaults = Vec::new();
    let mut closed = Vec::new();
    for InNamespace { place, result } in in_every_namespace(read)? {
        match result {
            Ok(Ok(text)) => defaults.push((place, text.trim().to_owned())),
            Ok(Err(_)) => {}
            Err(_) => closed.push(place),
        }
    }
    if let Some(first) = closed.first() {
        errln!(
            "warning: the defaults in the network namespaces of {} processes cannot be read, the first is {first}",
            closed.len()
        );
    }
    Ok(defaults)
}
