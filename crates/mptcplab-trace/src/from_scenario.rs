//! The row of the `run` table as the scenario and the engine decide it, the same for every engine.

use crate::run_table::{RunRecord, Status};
use mptcplab_scenario::{
    CMT_SCTP, CcConfig, Flow, Run, Scheduler, SchedulerKind, Sweep, TcpFlow, Transport,
};
use serde_json::{Map, Value, json};

/// What an engine reports about itself and about a run.
#[derive(Debug, Clone)]
pub struct EngineInfo<'a> {
    /// "sim", "kernel" or "fluid".
    pub name: &'a str,
    pub version: &'a str,
    /// Source revision, compiler and target of the build.
    pub build: &'a str,
    /// Scheduler of the MPTCP flows that name none; `None` if the engine schedules no packets at all.
    pub scheduler: Option<SchedulerKind>,
    /// Algorithm that each subflow really ran, `subflow_cc[flow][subflow]`; shorter where it is not known (yet).
    pub subflow_cc: &'a [Vec<String>],
    /// Number of processed events.
    pub events: u64,
    /// Packets times links crossed.
    pub packet_hops: u64,
}

impl RunRecord {
    /// The row of a complete run.
    #[must_use]
    pub fn new(sweep: &Sweep, run: &Run, engine: &EngineInfo<'_>) -> Self {
        Self {
            run: run.id,
            engine: engine.name.into(),
            engine_version: engine.version.into(),
            build: engine.build.into(),
            scenario: sweep.name.clone(),
            title: sweep.title.clone(),
            cc: label(run),
            profile: run.profile.name().into(),
            axes: axes(run).to_string(),
            rep: run.rep,
            seed: run.seed,
            duration_ns: run.duration_ns,
            warmup_ns: run.warmup_ns,
            sample_ns: run.sample_ns,
            scenario_toml: sweep.text.clone(),
            resolved: mptcplab_scenario::run_json(run, engine.scheduler).to_string(),
            subflow_cc: subflow_cc(run, engine.subflow_cc).to_string(),
            scheduler: schedulers(run, engine.scheduler).to_string(),
            status: Status::Complete,
            status_reason: String::new(),
            digest: String::new(),
            host: "{}".into(),
            events: engine.events,
            packet_hops: engine.packet_hops,
            flow_names: run.flows.iter().map(|flow| flow.name.clone()).collect(),
            subflow_names: run.flows.iter().map(subflow_names).collect(),
            link_names: run.links.iter().map(|link| link.name.clone()).collect(),
        }
    }
}

/// What the `run` table says about a run only because of the sweep that it is part of, by column: its names and labels.
#[must_use]
pub fn texts_of_sweep(sweep: &Sweep, run: &Run) -> [(&'static str, String); 5] {
    [
        ("scenario", sweep.name.clone()),
        ("title", sweep.title.clone()),
        ("cc", label(run)),
        ("axes", axes(run).to_string()),
        ("scenario_toml", sweep.text.clone()),
    ]
}

/// The name under which runs are compared: the value of the axis `cc`, or else the flows' distinct algorithms in file
/// order.
fn label(run: &Run) -> String {
    if let Some((_, value)) = run.axes.iter().find(|(key, _)| key == "cc") {
        return value.clone();
    }
    let mut names: Vec<&str> = Vec::new();
    for cc in run.flows.iter().filter_map(algorithm) {
        if !names.contains(&cc) {
            names.push(cc);
        }
    }
    names.join("+")
}

fn algorithm(flow: &Flow) -> Option<&str> {
    match &flow.transport {
        Transport::Tcp(tcp) => Some(&tcp.cc.name),
        Transport::Sctp(_) => Some(CMT_SCTP),
        Transport::Udp(_) => None,
    }
}

fn axes(run: &Run) -> Value {
    let pairs = run
        .axes
        .iter()
        .map(|(key, value)| (key.clone(), value.clone().into()));
    Value::Object(pairs.collect::<Map<_, _>>())
}

/// The algorithm comes from the engine, the parameters come from the scenario.
fn subflow_cc(run: &Run, ran: &[Vec<String>]) -> Value {
    let subflows = run.flows.iter().enumerate().flat_map(|(index, flow)| {
        let ran = ran.get(index).map_or(&[][..], Vec::as_slice);
        let params = match &flow.transport {
            Transport::Tcp(tcp) => params(&tcp.cc),
            Transport::Sctp(_) | Transport::Udp(_) => json!({}),
        };
        std::iter::zip(flow.subflows(), ran).map(move |(subflow, cc)| {
            json!({
                "flow": flow.name,
                "subflow": subflow.name,
                "cc": cc,
                "params": params,
            })
        })
    });
    subflows.collect()
}

fn schedulers(run: &Run, default: Option<SchedulerKind>) -> Value {
    let pairs = tcp_flows(run)
        .filter(|(_, tcp)| tcp.mptcp)
        .map(|(index, tcp)| {
            let had = default.map(|default| tcp.scheduler.unwrap_or(Scheduler::new(default)));
            let name = had.map(|scheduler| scheduler.to_string());
            (run.flows[index].name.clone(), name.into())
        });
    Value::Object(pairs.collect::<Map<_, _>>())
}

fn params(cc: &CcConfig) -> Value {
    let pairs = cc
        .params
        .iter()
        .map(|(name, value)| (name.clone(), (*value).into()));
    Value::Object(pairs.collect::<Map<_, _>>())
}

fn subflow_names(flow: &Flow) -> Vec<String> {
    let names = flow.subflows().iter().map(|subflow| subflow.name.clone());
    names.collect()
}

fn tcp_flows(run: &Run) -> impl Iterator<Item = (usize, &TcpFlow)> {
    run.flows
        .iter()
        .enumerate()
        .filter_map(|(index, flow)| match &flow.transport {
            Transport::Tcp(tcp) => Some((index, tcp)),
            Transport::Sctp(_) | Transport::Udp(_) => None,
        })
}
