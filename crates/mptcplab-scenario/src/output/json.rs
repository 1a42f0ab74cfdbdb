//! A resolved sweep as JSON, for traces and for programs. Links and nodes are given by name, and units are suffixes of the
//! keys.

use super::text::aqm_name;
use crate::headers::Dss;
use crate::run::{
    ArrivalRate, Arrivals, CMT_SCTP, CcConfig, CompSack, DurationDistribution, Flow, Growth, Link,
    PriorityChange, RcvBuffer, RequestKind, RequestTimes, Requests, Run, Scheduler, SchedulerKind,
    SctpFlow, SizeDistribution, StartTime, Subflow, Sweep, TcpFlow, Traffic, Transport, UdpFlow,
};
use mptcplab_model::link::{Aqm, Change, Loss, QueueLimit};
use serde_json::{Map, Value, json};

/// A sweep: its axes, and the resolved scenario for each combination of their values.
pub fn sweep_json(sweep: &Sweep) -> Value {
    let axes = sweep
        .axes
        .iter()
        .map(|(key, values)| json!({ "key": key, "values": values }));
    let mut combinations: Vec<Value> = Vec::new();
    // The runs of a combination are adjacent.
    for runs in sweep.runs.chunk_by(|a, b| a.axes == b.axes) {
        let ids: Vec<u32> = runs.iter().map(|run| run.id).collect();
        combinations.push(
            json!({ "axes": axis_values(&runs[0]), "runs": ids, "scenario": scenario(&runs[0], None) }),
        );
    }
    json!({
        "name": sweep.name,
        "title": sweep.title,
        "source": sweep.source,
        "axes": axes.collect::<Vec<_>>(),
        "runs": sweep.runs.len(),
        "combinations": combinations,
    })
}

/// A resolved run. `scheduler` is the engine's default for connections that name none; without an engine, their scheduler
/// is null.
pub fn run_json(run: &Run, scheduler: Option<SchedulerKind>) -> Value {
    let first = json!({ "run": run.id, "rep": run.rep, "axes": axis_values(run) });
    merged(first, scenario(run, scheduler))
}

/// An object with the keys of both objects.
fn merged(mut first: Value, second: Value) -> Value {
    if let (Value::Object(all), Value::Object(more)) = (&mut first, second) {
        all.extend(more);
    }
    first
}

fn axis_values(run: &Run) -> Value {
    run.axes
        .iter()
        .map(|(key, value)| (key.clone(), json!(value)))
        .collect::<Map<_, _>>()
        .into()
}

fn scenario(run: &Run, scheduler: Option<SchedulerKind>) -> Value {
    json!({
        "seed": run.seed,
        "duration_ns": run.duration_ns,
        "warmup_ns": run.warmup_ns,
        "sample_ns": run.sample_ns,
        "per_ack": run.per_ack,
        "profile": run.profile.name(),
        "nodes": run.nodes[..],
        "links": run.links.iter().map(|l| link(run, l)).collect::<Vec<_>>(),
        "flows": run.flows.iter().map(|f| flow(run, f, scheduler)).collect::<Vec<_>>(),
    })
}

fn link(run: &Run, link: &Link) -> Value {
    let config = &link.config;
    json!({
        "name": link.name,
        "from": run.nodes[link.from],
        "to": run.nodes[link.to],
        "rate_bps": config.rate_bps,
        "delay_ns": config.delay_ns,
        "overhead_bytes": config.overhead_bytes,
        "queue": queue(config.queue),
        "aqm": aqm(&config.aqm),
        "ecn": config.ecn,
        "loss": loss(&config.loss),
        "reorder": config.reorder.as_ref().map(|reorder| json!({
            "probability": reorder.probability,
            "min_extra_delay_ns": reorder.min_extra_delay_ns,
            "max_extra_delay_ns": reorder.max_extra_delay_ns,
        })),
        "schedule": config.schedule.iter().map(change).collect::<Vec<_>>(),
        "trace": config.trace.as_ref().map(|trace| json!({
            "name": trace.name,
            "opportunities": trace.opportunities_ns.len(),
            "period_ns": trace.period_ns,
        })),
    })
}

fn queue(limit: QueueLimit) -> Value {
    match limit {
        QueueLimit::Packets(n) => json!({ "packets": n }),
        QueueLimit::Bytes(n) => json!({ "bytes": n }),
        QueueLimit::Unlimited => Value::Null,
    }
}

fn aqm(aqm: &Aqm) -> Value {
    let name = aqm_name(aqm);
    match *aqm {
        Aqm::DropTail => json!({ "name": name }),
        Aqm::Red {
            min_pkts,
            max_pkts,
            max_p,
            weight,
        } => {
            json!({ "name": name, "min_pkts": min_pkts, "max_pkts": max_pkts, "max_p": max_p, "weight": weight })
        }
        Aqm::Codel {
            target_ns,
            interval_ns,
        } => {
            json!({ "name": name, "target_ns": target_ns, "interval_ns": interval_ns })
        }
        Aqm::FqCodel {
            target_ns,
            interval_ns,
            flows,
            quantum_bytes,
        } => json!({
            "name": name,
            "target_ns": target_ns,
            "interval_ns": interval_ns,
            "flows": flows,
            "quantum_bytes": quantum_bytes,
        }),
    }
}

fn loss(loss: &Loss) -> Value {
    match *loss {
        Loss::None => Value::Null,
        Loss::Bernoulli { p } => json!({ "model": "bernoulli", "p": p }),
        Loss::GilbertElliott {
            p,
            r,
            loss_good,
            loss_bad,
        } => {
            json!({ "model": "gilbert-elliott", "p": p, "r": r, "loss_good": loss_good, "loss_bad": loss_bad })
        }
    }
}

/// Only the properties that change; `loss: null` means no loss from now on.
fn change(change: &Change) -> Value {
    let mut out = Map::new();
    out.insert("at_ns".into(), json!(change.at_ns));
    let mut put = |key: &str, value: Option<Value>| {
        if let Some(value) = value {
            out.insert(key.into(), value);
        }
    };
    put("rate_bps", change.rate_bps.map(Value::from));
    put("delay_ns", change.delay_ns.map(Value::from));
    put("loss", change.loss.as_ref().map(loss));
    put("up", change.up.map(Value::from));
    Value::Object(out)
}

fn flow(run: &Run, flow: &Flow, scheduler: Option<SchedulerKind>) -> Value {
    let start = match flow.start {
        StartTime::At(ns) => json!(ns),
        StartTime::Uniform { lo_ns, hi_ns } => json!({ "uniform_ns": [lo_ns, hi_ns] }),
    };
    let first = json!({ "name": flow.name, "start_ns": start, "stop_ns": flow.stop_ns });
    let rest = match &flow.transport {
        Transport::Tcp(flow) => tcp(run, flow, scheduler),
        Transport::Sctp(flow) => sctp(run, flow),
        Transport::Udp(flow) => udp(run, flow),
    };
    merged(first, rest)
}

fn tcp(run: &Run, tcp: &TcpFlow, scheduler: Option<SchedulerKind>) -> Value {
    let options = &tcp.options;
    let mut found = json!({
        "transport": if tcp.mptcp { "mptcp" } else { "tcp" },
        "cc": cc(&tcp.cc),
        "scheduler": tcp
            .scheduler
            .or(scheduler.map(Scheduler::new))
            .filter(|_| tcp.mptcp)
            .map(|s| s.to_string()),
        "traffic": traffic(&tcp.traffic),
        "rcv_buffer": rcv_buffer(tcp.rcv_buffer),
        "mss_bytes": tcp.mss_bytes,
        "initial_cwnd_pkts": options.initial_cwnd_pkts,
        "initial_ssthresh_pkts": options.initial_ssthresh_pkts,
        "cwnd_clamp_pkts": options.cwnd_clamp_pkts,
        "ecn": options.ecn,
        "recovery": options.recovery.name(),
        "pacing": options.pacing,
        "slow_start_after_idle": options.slow_start_after_idle,
        "reinject": options.reinject,
        "stale_after": options.stale_after,
        "send_jitter_ns": options.send_jitter_ns,
        "tso": options.tso,
        "comp_sack": options.comp_sack.map(CompSack::name),
        "subflows": tcp.subflows.iter().map(|s| tcp_subflow(run, tcp, s)).collect::<Vec<_>>(),
    });
    if options.linear_syn_timeouts > 0 {
        found["linear_syn_timeouts"] = options.linear_syn_timeouts.into();
    }
    if !options.nagle {
        found["nagle"] = false.into();
    }
    if options.host_delay_ns > 0 {
        found["host_delay_ns"] = options.host_delay_ns.into();
    }
    if tcp.mptcp && options.dss != Dss::default() {
        found["dss"] = options.dss.name().into();
    }
    found
}

/// The algorithm, and for one that is not in the build the digest of its source: otherwise the build says what ran.
fn cc(cc: &CcConfig) -> Value {
    let params: Map<_, _> = cc
        .params
        .iter()
        .map(|(name, raw)| (name.clone(), json!(raw)))
        .collect();
    let mut value = json!({ "text": cc.to_string(), "name": cc.name, "params_raw": params });
    let added = mptcplab_cc::added();
    if let Some(algorithm) = added.iter().find(|a| a.name() == cc.name) {
        value["source"] = json!(algorithm.source());
    }
    value
}

fn tcp_subflow(run: &Run, tcp: &TcpFlow, of: &Subflow) -> Value {
    let mut value = subflow(run, of);
    value["send_jitter_ns"] = json!(run.send_jitter_ns(tcp, of));
    value
}

/// The congestion control has a name here, so that it has one for every connection.
fn sctp(run: &Run, sctp: &SctpFlow) -> Value {
    let subflows = sctp.destinations.iter().map(|s| subflow(run, s));
    json!({
        "transport": CMT_SCTP,
        "cc": { "text": CMT_SCTP, "name": CMT_SCTP, "params_raw": {} },
        "scheduler": null,
        "traffic": traffic(&sctp.traffic),
        "rcv_buffer": rcv_buffer(sctp.rcv_buffer),
        "mss_bytes": sctp.mss_bytes,
        "subflows": subflows.collect::<Vec<_>>(),
    })
}

fn subflow(run: &Run, subflow: &Subflow) -> Value {
    json!({
        "name": subflow.name,
        "path": names(run, &subflow.path),
        "reverse": names(run, &subflow.reverse),
        "base_rtt_ns": run.base_rtt_ns(subflow),
        "start_ns": subflow.start_ns,
        "stop_ns": subflow.stop_ns,
        "backup": subflow.backup,
        "priority": subflow.priorities.iter().map(priority).collect::<Vec<_>>(),
    })
}

fn priority(change: &PriorityChange) -> Value {
    json!({ "at_ns": change.at_ns, "backup": change.backup })
}

fn udp(run: &Run, udp: &UdpFlow) -> Value {
    json!({
        "transport": "udp",
        "rate_bps": udp.rate_bps,
        "packet_bytes": udp.packet_bytes,
        "path": names(run, &udp.path),
        "on_off": udp.on_off.map(|(on, off)| json!({ "on_ns": duration(on), "off_ns": duration(off) })),
    })
}

fn names<'a>(run: &'a Run, path: &[usize]) -> Vec<&'a str> {
    path.iter()
        .map(|&link| run.links[link].name.as_str())
        .collect()
}

fn traffic(traffic: &Traffic) -> Value {
    match traffic {
        Traffic::Bulk => json!("bulk"),
        Traffic::Size { bytes } => json!({ "size_bytes": bytes }),
        Traffic::OnOff { on, off } => json!({ "on_ns": duration(*on), "off_ns": duration(*off) }),
        Traffic::Transfers(transfers) => json!({
            "size": size_distribution(transfers.size),
            "arrivals": arrivals(&transfers.arrivals),
        }),
        Traffic::Video(video) => json!({ "video": {
            "ladder_bps": video.ladder_bps,
            "chunk_ns": video.chunk_ns,
            "buffer_ns": video.buffer_ns,
            "safety": video.safety,
            "weight": video.weight,
            "first_estimate_bps": video.first_estimate_bps,
        }}),
        Traffic::Requests(requests) => requests_json(requests),
    }
}

fn requests_json(requests: &Requests) -> Value {
    let (key, value) = match &requests.times {
        RequestTimes::Think(pause) => ("think_ns", duration(*pause)),
        RequestTimes::Interval(interval) => ("interval_ns", duration(*interval)),
        RequestTimes::Poisson { levels } => ("arrivals", poisson(levels)),
    };
    let size = size_distribution(requests.size);
    let answer = requests.answer.map(size_distribution);
    let (count, bound_ns) = (requests.count, requests.bound_ns);
    match requests.kind {
        RequestKind::Requests => json!({ "requests": {
            "request": size, "response": answer, key: value, "count": count, "bound_ns": bound_ns,
        }}),
        RequestKind::Messages => json!({ "messages": {
            "size": size, "answer": answer, key: value, "count": count, "bound_ns": bound_ns,
        }}),
    }
}

fn size_distribution(distribution: SizeDistribution) -> Value {
    match distribution {
        SizeDistribution::Fixed { bytes } => json!(bytes),
        SizeDistribution::Exponential {
            mean_bytes,
            max_bytes,
        } => json!({ "law": "exponential", "mean_bytes": mean_bytes, "max_bytes": max_bytes }),
        SizeDistribution::Pareto {
            mean_bytes,
            shape,
            max_bytes,
        } => {
            json!({ "law": "pareto", "mean_bytes": mean_bytes, "shape": shape, "max_bytes": max_bytes })
        }
    }
}

fn arrivals(arrivals: &Arrivals) -> Value {
    match arrivals {
        Arrivals::Poisson { levels } => poisson(levels),
        Arrivals::Repeat { gap, count } => json!({ "gap_ns": duration(*gap), "count": count }),
    }
}

fn poisson(levels: &[ArrivalRate]) -> Value {
    let level = |level: &ArrivalRate| {
        let lasts_ns = Some(level.lasts_ns).filter(|&ns| ns != u64::MAX);
        json!({ "per_s": level.per_1000_min as f64 / 60_000.0, "lasts_ns": lasts_ns })
    };
    json!({ "levels": levels.iter().map(level).collect::<Vec<_>>() })
}

fn duration(distribution: DurationDistribution) -> Value {
    match distribution {
        DurationDistribution::Fixed(ns) => json!(ns),
        DurationDistribution::Uniform { lo_ns, hi_ns } => json!({ "uniform_ns": [lo_ns, hi_ns] }),
        DurationDistribution::Exponential { mean_ns } => json!({ "exponential_mean_ns": mean_ns }),
    }
}

fn rcv_buffer(buffer: RcvBuffer) -> Value {
    match buffer {
        RcvBuffer::Unlimited => Value::Null,
        RcvBuffer::Fixed(bytes) => json!({ "bytes": bytes }),
        RcvBuffer::FixedMemory(bytes) => json!({ "bytes": bytes, "announced": "linux-7.3" }),
        RcvBuffer::Auto {
            max_bytes,
            growth: Growth::Linux6_18,
        } => json!({ "auto_max_bytes": max_bytes }),
        RcvBuffer::Auto {
            max_bytes,
            growth: Growth::Linux7_3,
        } => json!({ "auto_max_bytes": max_bytes, "growth": "linux-7.3" }),
    }
}
