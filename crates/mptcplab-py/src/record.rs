//! One run's row of the `run` table, from the scenario and what the engine says it did.

use crate::build;
use mptcplab_scenario::{CcChoice, Profile, Run, Sweep, TcpFlow, Transport};
use mptcplab_sim::Outcome;
use mptcplab_trace::RunRecord;
use serde_json::{Map, Value, json};

pub(crate) fn record(sweep: &Sweep, run: &Run, outcome: &Outcome) -> RunRecord {
    RunRecord {
        run: run.id,
        engine: "sim".into(),
        engine_version: build::VERSION.into(),
        build: build::LINE.into(),
        scenario: sweep.name.clone(),
        title: sweep.title.clone(),
        cc: label(run),
        profile: profile_name(run.profile).into(),
        axes: axes(run).to_string(),
        rep: run.rep,
        seed: run.seed,
        duration_ns: run.duration_ns,
        warmup_ns: run.warmup_ns,
        sample_ns: run.sample_ns,
        scenario_toml: sweep.text.clone(),
        resolved: mptcplab_scenario::to_json(run).to_string(),
        subflow_cc: subflow_cc(run, outcome).to_string(),
        events: outcome.events,
        packet_hops: outcome.packet_hops,
        flow_names: run.flows.iter().map(|flow| flow.name.clone()).collect(),
        subflow_names: run
            .flows
            .iter()
            .map(|flow| subflow_names(&flow.transport))
            .collect(),
        link_names: run.links.iter().map(|link| link.name.clone()).collect(),
    }
}

/// What the run is compared by: the axis `cc`, or else the flows' distinct algorithms in file order.
fn label(run: &Run) -> String {
    if let Some((_, value)) = run.axes.iter().find(|(key, _)| key == "cc") {
        return value.clone();
    }
    let mut names: Vec<&str> = Vec::new();
    for cc in tcp_flows(run).map(|(_, tcp)| tcp.cc.name.as_str()) {
        if !names.contains(&cc) {
            names.push(cc);
        }
    }
    names.join("+")
}

fn profile_name(profile: Profile) -> &'static str {
    // Invariant: ALL lists every profile.
    Profile::ALL
        .iter()
        .find(|(_, known)| *known == profile)
        .map_or("", |(name, _)| name)
}

fn axes(run: &Run) -> Value {
    let pairs = run
        .axes
        .iter()
        .map(|(key, value)| (key.clone(), value.clone().into()));
    Value::Object(pairs.collect::<Map<_, _>>())
}

/// The engine says which algorithm every subflow ran; the parameters are those of the scenario.
fn subflow_cc(run: &Run, outcome: &Outcome) -> Value {
    let subflows = tcp_flows(run).flat_map(|(index, tcp)| {
        let ran = outcome.subflow_cc.get(index).map_or(&[][..], Vec::as_slice);
        std::iter::zip(&tcp.subflows, ran).map(move |(subflow, cc)| {
            json!({
                "flow": run.flows[index].name,
                "subflow": subflow.name,
                "cc": cc,
                "params": params(&tcp.cc),
            })
        })
    });
    subflows.collect()
}

fn params(cc: &CcChoice) -> Value {
    let pairs = cc
        .params
        .iter()
        .map(|(name, value)| (name.clone(), (*value).into()));
    Value::Object(pairs.collect::<Map<_, _>>())
}

fn subflow_names(transport: &Transport) -> Vec<String> {
    match transport {
        Transport::Tcp(tcp) => tcp
            .subflows
            .iter()
            .map(|subflow| subflow.name.clone())
            .collect(),
        Transport::Udp(_) => Vec::new(),
    }
}

fn tcp_flows(run: &Run) -> impl Iterator<Item = (usize, &TcpFlow)> {
    run.flows
        .iter()
        .enumerate()
        .filter_map(|(index, flow)| match &flow.transport {
            Transport::Tcp(tcp) => Some((index, tcp)),
            Transport::Udp(_) => None,
        })
}
