//! Digests of runs: a run that has the digest of a finished one would give the same trace, so that it is not made again.

use crate::reference;
use mptcplab_scenario::{Flow, Run, Sweep, Transport};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

/// Hexadecimal digits of each part: enough that no two runs of a laboratory have the same by chance.
const DIGITS: usize = 20;
/// What a run is called, and where it stands in its sweep, does not change it.
const LABELS: [&str; 2] = ["run", "axes"];

/// The digests of all runs on an engine; `engine` is the digest of its build. Each has three parts, so that one can say
/// which of them differs: the resolved scenario, the algorithms' sources, the engine with the columns of the trace.
pub(crate) fn of_runs(sweep: &Sweep, engine: &str) -> Vec<String> {
    let engine = digest(&json!([engine, reference::trace_schema()]));
    let of_run = |run| {
        format!(
            "{}-{}-{engine}",
            digest(&scenario(run)),
            digest(&algorithms(run))
        )
    };
    sweep.runs.iter().map(of_run).collect()
}

fn scenario(run: &Run) -> Value {
    let mut resolved = mptcplab_scenario::run_json(run, None);
    if let Value::Object(resolved) = &mut resolved {
        resolved.retain(|key, _| !LABELS.contains(&key.as_str()));
    }
    // The resolved scenario only has the length of a delivery trace.
    let trace = |link: &mptcplab_scenario::Link| {
        let trace = link.config.trace.as_ref();
        trace.map(|trace| json!(*trace.opportunities_ns))
    };
    json!([resolved, run.links.iter().map(trace).collect::<Vec<_>>()])
}

/// Names and sources of all algorithms that a run uses, sorted. Algorithms of a kernel are part of the engine.
fn algorithms(run: &Run) -> Value {
    let mut used: Vec<(&str, &str)> = run
        .flows
        .iter()
        .filter_map(algorithm)
        .filter_map(mptcplab_cc::find)
        .map(|algorithm| (algorithm.name(), algorithm.source()))
        .collect();
    used.sort_unstable();
    used.dedup();
    json!(used)
}

/// The name of the algorithm that a flow runs.
pub(crate) fn algorithm(flow: &Flow) -> Option<&str> {
    match &flow.transport {
        Transport::Tcp(tcp) => Some(&tcp.cc.name),
        Transport::Sctp(_) | Transport::Udp(_) => None,
    }
}

fn digest(value: &Value) -> String {
    let hash = Sha256::digest(value.to_string().as_bytes());
    let hex: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
    hex[..DIGITS].to_owned()
}
