//! Packet-hops per CPU second, events per second and peak memory of one scenario on one thread.
//!
//! usage: speed SCENARIO.toml [key=value ...]
//!
//! Simulates the first run of the scenario, with the given keys overridden (for example `sample=off`
//! or `duration="20 s"`), and prints one line. CPU time and memory are the process's own, from /proc.

use mptcplab_scenario::{Overrides, load};
use mptcplab_sim::{Control, simulate};
use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    match measure() {
        Ok(line) => {
            println!("{line}");
            ExitCode::SUCCESS
        }
        Err(message) => {
            eprintln!("{message}");
            ExitCode::from(2)
        }
    }
}

fn measure() -> Result<String, String> {
    let mut args = std::env::args().skip(1);
    let file = args
        .next()
        .ok_or("usage: speed SCENARIO.toml [key=value ...]")?;
    let set = args
        .map(|a| {
            a.split_once('=')
                .map(|(k, v)| (k.to_owned(), v.to_owned()))
                .ok_or(format!("error: {a}: want key=value"))
        })
        .collect::<Result<Vec<_>, _>>()?;
    let sweep = load(
        Path::new(&file),
        &Overrides {
            set,
            ..Overrides::default()
        },
    )
    .map_err(|e| e.to_string())?;
    let run = sweep.runs.first().ok_or("error: the scenario has no run")?;
    let before = cpu_seconds();
    let outcome = simulate(run, &Control::default()).map_err(|e| format!("error: {file}: {e}"))?;
    let cpu = cpu_seconds() - before;
    let goodput = last_goodput_mbps(run.duration_ns, &outcome);
    Ok(format!(
        "{:<28} {:>7.0} simulated s  {:>10} packet-hops  {:>10} events  {cpu:>6.3} CPU s  {:>6.1} M hops/CPU s  {:>6.1} M events/CPU s  {:>5.1} MB peak  {goodput:>8.1} Mbit/s goodput",
        sweep.name,
        run.duration_ns as f64 / 1e9,
        outcome.packet_hops,
        outcome.events,
        outcome.packet_hops as f64 / cpu / 1e6,
        outcome.events as f64 / cpu / 1e6,
        peak_memory_mb(),
    ))
}

/// Goodput of all flows over the whole run, as a check that the workload is what it should be.
fn last_goodput_mbps(duration_ns: u64, outcome: &mptcplab_sim::Outcome) -> f64 {
    let flow = &outcome.tables.flow;
    let bytes: u64 = (0..flow.len())
        .filter(|&i| flow.t_ns[i] == duration_ns)
        .map(|i| flow.delivered_bytes[i])
        .sum();
    bytes as f64 * 8e3 / duration_ns as f64
}

/// User and system CPU time of this process.
fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    stat.split_whitespace()
        .next()
        .and_then(|ns| ns.parse::<f64>().ok())
        .unwrap_or(f64::NAN)
        / 1e9
}

/// Largest resident set so far.
fn peak_memory_mb() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status
        .lines()
        .find(|l| l.starts_with("VmHWM:"))
        .unwrap_or_default();
    line.split_whitespace()
        .nth(1)
        .and_then(|kb| kb.parse::<f64>().ok())
        .unwrap_or(f64::NAN)
        / 1024.0
}
