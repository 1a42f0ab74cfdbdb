//! One measurement in a process of its own: simulates the first run of a scenario on one thread.
//!
//! usage: speed SCENARIO.toml [key=value ...]
//!
//! Keys override the scenario's, for example `sample=off` or `duration="20 s"`. Prints one line of
//! `name=value` pairs. CPU time and peak memory are the process's own, from /proc; the CPU time is that of
//! the simulation alone, without start-up and reading the scenario. Samples are taken but not written.

use mptcplab_scenario::{Overrides, load};
use mptcplab_sim::{Control, simulate_streaming};
use mptcplab_trace::Tables;
use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    match measure() {
        Ok(line) => {
            println!("{line}");
            ExitCode::SUCCESS
        }
        Err(message) => {
            eprintln!("error: {message}");
            ExitCode::from(2)
        }
    }
}

fn measure() -> Result<String, String> {
    let mut args = std::env::args().skip(1);
    let file = args
        .next()
        .ok_or("no scenario\n\nhint: speed SCENARIO.toml [key=value ...]")?;
    let set = args
        .map(|a| match a.split_once('=') {
            Some((k, v)) => Ok((k.to_owned(), v.to_owned())),
            None => Err(format!("{a:?} is not key=value")),
        })
        .collect::<Result<Vec<_>, _>>()?;
    let overrides = Overrides {
        set,
        ..Overrides::default()
    };
    let sweep = load(Path::new(&file), &overrides).map_err(|e| e.to_string())?;
    let run = sweep.runs.first().ok_or("the scenario has no run")?;
    let before = cpu_seconds();
    let mut delivered = 0;
    let outcome = simulate_streaming(run, &Control::default(), &mut |tables| {
        delivered += delivered_at_end(run.duration_ns, tables);
        tables.clear();
        true
    })
    .map_err(|e| format!("{file}: {e}"))?;
    delivered += delivered_at_end(run.duration_ns, &outcome.tables);
    Ok(format!(
        "hops={} events={} cpu_s={:.4} peak_mb={:.2} goodput_mbps={:.1}",
        outcome.packet_hops,
        outcome.events,
        cpu_seconds() - before,
        peak_memory_mb(),
        delivered as f64 * 8e3 / run.duration_ns as f64,
    ))
}

/// Bytes that the flows had delivered at the end of the run: shows that the workload is what it should be.
fn delivered_at_end(end_ns: u64, tables: &Tables) -> u64 {
    let flow = &tables.flow;
    let at_end = (0..flow.len()).filter(|&i| flow.t_ns[i] == end_ns);
    at_end.map(|i| flow.delivered_bytes[i]).sum()
}

/// CPU time of this process's first thread, which does all the work.
fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    let ns = stat
        .split_whitespace()
        .next()
        .and_then(|ns| ns.parse::<f64>().ok());
    ns.unwrap_or(f64::NAN) / 1e9
}

/// Largest resident set so far.
fn peak_memory_mb() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status
        .lines()
        .find(|l| l.starts_with("VmHWM:"))
        .unwrap_or_default();
    let kb = line
        .split_whitespace()
        .nth(1)
        .and_then(|kb| kb.parse::<f64>().ok());
    kb.unwrap_or(f64::NAN) / 1024.0
}
