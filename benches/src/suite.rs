//! The benchmark suite: workloads W1 to W5, traces off and with 10 ms sampling, and the cost of scale.
//!
//! usage: cargo run --release -p mptcplab-bench --bin suite [ROUNDS]
//!
//! Every measurement is a process of its own (`speed`). The rounds of all cases are interleaved, so that a
//! slow moment of the machine hits all of them; medians are printed, with the range.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

/// A case: label, scenario file, overrides.
struct Case {
    label: &'static str,
    file: &'static str,
    set: &'static [&'static str],
}

const OFF: &str = "sample=off";
const SAMPLED: &str = "sample=10 ms";

const CASES: &[Case] = &[
    Case {
        label: "W1 one Reno flow, 100 Mbit/s",
        file: "w1-one-reno.toml",
        set: &[OFF],
    },
    Case {
        label: "W1, 10 ms sampling",
        file: "w1-one-reno.toml",
        set: &[SAMPLED],
    },
    Case {
        label: "W2 LIA and two Reno flows",
        file: "w2-two-bottlenecks.toml",
        set: &[OFF],
    },
    Case {
        label: "W2, 10 ms sampling",
        file: "w2-two-bottlenecks.toml",
        set: &[SAMPLED],
    },
    Case {
        label: "W3 1,000 flows, 100 links",
        file: "w3-thousand-flows.toml",
        set: &[OFF],
    },
    Case {
        label: "W3, 10 ms sampling",
        file: "w3-thousand-flows.toml",
        set: &[SAMPLED],
    },
    Case {
        label: "W3 with 10 flows, 1 link",
        file: "w3-thousand-flows.toml",
        set: &[
            OFF,
            "links.neck.count=1",
            "flows.tcp.count=10",
            "flows.tcp.path=[\"neck-1\"]",
        ],
    },
    Case {
        label: "W4 one flow, 10 Gbit/s",
        file: "w4-ten-gigabit.toml",
        set: &[OFF],
    },
    Case {
        label: "W4, 10 ms sampling",
        file: "w4-ten-gigabit.toml",
        set: &[SAMPLED],
    },
    Case {
        label: "W5 LIA as in Linux 7.3",
        file: "w5-upstream-linux.toml",
        set: &[OFF],
    },
    Case {
        label: "W3 with 10,000 flows, 1 link",
        file: "w3-thousand-flows.toml",
        set: &[
            OFF,
            "links.neck.count=1",
            "links.neck.rate=10 Gbit/s",
            "flows.tcp.count=10000",
            "flows.tcp.path=[\"neck-1\"]",
            "duration=4 s",
            "warmup=0 s",
        ],
    },
];

fn main() -> ExitCode {
    let rounds = std::env::args()
        .nth(1)
        .and_then(|n| n.parse().ok())
        .unwrap_or(5);
    match run(rounds) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("error: {message}");
            ExitCode::from(2)
        }
    }
}

fn run(rounds: usize) -> Result<(), String> {
    let mut samples: Vec<Vec<BTreeMap<String, f64>>> = CASES.iter().map(|_| Vec::new()).collect();
    for round in 1..=rounds {
        eprintln!("round {round} of {rounds}");
        for (case, samples) in CASES.iter().zip(&mut samples) {
            samples.push(measure(case)?);
        }
    }
    println!(
        "{:<30} {:>22} {:>12} {:>9} {:>10}",
        "workload", "M packet-hops/CPU s", "M events/s", "peak MB", "Mbit/s"
    );
    for (case, samples) in CASES.iter().zip(&samples) {
        let speed = sorted(samples, |s| s["hops"] / s["cpu_s"] / 1e6);
        let events = sorted(samples, |s| s["events"] / s["cpu_s"] / 1e6);
        let peak = sorted(samples, |s| s["peak_mb"]);
        let range = format!(
            "{:.1} ({:.1}-{:.1})",
            median(&speed),
            speed[0],
            speed[speed.len() - 1]
        );
        let goodput = samples[0]["goodput_mbps"];
        println!(
            "{:<30} {range:>22} {:>12.1} {:>9.1} {goodput:>10.1}",
            case.label,
            median(&events),
            peak[peak.len() - 1]
        );
    }
    Ok(())
}

fn measure(case: &Case) -> Result<BTreeMap<String, f64>, String> {
    let speed = std::env::current_exe()
        .map_err(|e| format!("cannot find this program: {e}"))?
        .with_file_name("speed");
    let scenario = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../scenarios/bench")
        .join(case.file);
    let out = Command::new(&speed)
        .arg(scenario)
        .args(case.set)
        .output()
        .map_err(|e| format!("cannot run {}: {e}", speed.display()))?;
    if !out.status.success() {
        return Err(format!(
            "{}: {}",
            case.label,
            String::from_utf8_lossy(&out.stderr)
        ));
    }
    let text = String::from_utf8_lossy(&out.stdout);
    let pairs = text
        .split_whitespace()
        .filter_map(|pair| pair.split_once('='));
    Ok(pairs
        .filter_map(|(k, v)| Some((k.to_owned(), v.parse().ok()?)))
        .collect())
}

fn sorted(
    samples: &[BTreeMap<String, f64>],
    value: impl Fn(&BTreeMap<String, f64>) -> f64,
) -> Vec<f64> {
    let mut values: Vec<f64> = samples.iter().map(value).collect();
    values.sort_by(f64::total_cmp);
    values
}

fn median(sorted: &[f64]) -> f64 {
    sorted[sorted.len() / 2]
}
