//! A resolved sweep as text.

use crate::run::{
    ArrivalRate, Arrivals, DurationDistribution, Flow, Growth, Link, LossRecovery, RcvBuffer,
    RequestKind, RequestTimes, Requests, Run, SctpFlow, SizeDistribution, StartTime, Subflow,
    Sweep, TcpFlow, Traffic, Transfers, Transport, UdpFlow, Video,
};
use crate::units::display::{percent, rate, size, time};
use mptcplab_model::link::{Aqm, LinkConfig, Loss, QueueLimit};
use std::fmt::Write;

/// Largest number of rows of a table; `--json` shows everything.
const ROWS: usize = 60;

/// The meaning of a scenario: axes and number of runs, nodes, links with resolved numbers, flows with paths and base RTTs.
/// Numbers that depend on an axis are those of the first run.
pub fn describe(sweep: &Sweep) -> String {
    let mut out = format!("{}: {}\n", sweep.name, sweep.title);
    if !sweep.source.is_empty() {
        let _ = writeln!(out, "source: {}", sweep.source);
    }
    let Some(run) = sweep.runs.first() else {
        return out;
    };
    out.push('\n');
    out.push_str(&plan(sweep, run));
    let _ = writeln!(out, "\nnodes: {}", cut(&run.nodes, "nodes").join(" "));
    out.push('\n');
    out.push_str(&table(&links(run), "links"));
    out.push('\n');
    out.push_str(&table(&flows(run), "subflows"));
    out
}

fn plan(sweep: &Sweep, run: &Run) -> String {
    let mut out = String::new();
    let samples = run.sample_ns.map_or("no samples".to_string(), |ns| {
        format!("samples every {}", time(ns))
    });
    let per_ack = if run.per_ack { " and at every ACK" } else { "" };
    let warmup = match run.warmup_ns {
        0 => String::new(),
        ns => format!(", the first {} left out of metrics", time(ns)),
    };
    let _ = writeln!(
        out,
        "{} simulated{warmup}; seed {}; profile {}; {samples}{per_ack}",
        time(run.duration_ns),
        run.seed,
        run.profile.name(),
    );
    let combinations: usize = sweep.axes.iter().map(|(_, values)| values.len()).product();
    let repetitions = sweep.runs.len() / combinations.max(1);
    let mut factors: Vec<String> = sweep
        .axes
        .iter()
        .map(|(key, values)| format!("{} {key}", values.len()))
        .collect();
    factors.push(format!(
        "{repetitions} repetition{}",
        if repetitions == 1 { "" } else { "s" }
    ));
    let _ = writeln!(out, "{} runs = {}", sweep.runs.len(), factors.join(" x "));
    for (key, values) in &sweep.axes {
        let _ = writeln!(out, "  {key}: {}", cut(values, "values").join(", "));
    }
    if !sweep.axes.is_empty() {
        let shown: Vec<String> = run
            .axes
            .iter()
            .map(|(key, value)| format!("{key} = {value}"))
            .collect();
        let _ = writeln!(out, "below: the first run, {}", shown.join(", "));
    }
    out
}

fn cut(words: &[String], what: &str) -> Vec<String> {
    let mut shown: Vec<String> = words.iter().take(ROWS).cloned().collect();
    if words.len() > ROWS {
        shown.push(format!("... and {} more {what}", words.len() - ROWS));
    }
    shown
}

/// Rows with aligned columns; the first row is the heading.
fn table(rows: &[Vec<String>], what: &str) -> String {
    let columns = rows.first().map_or(0, Vec::len);
    let shown = &rows[..rows.len().min(ROWS + 1)];
    let width = |c: usize| {
        shown
            .iter()
            .map(|row| row[c].chars().count())
            .max()
            .unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut out = String::new();
    for row in shown {
        let cells = row
            .iter()
            .zip(&widths)
            .map(|(cell, width)| format!("{cell:<width$}"));
        let _ = writeln!(out, "{}", cells.collect::<Vec<_>>().join("  ").trim_end());
    }
    if rows.len() > shown.len() {
        let _ = writeln!(out, "... and {} more {what}", rows.len() - shown.len());
    }
    out
}

fn row(cells: &[&str]) -> Vec<String> {
    cells.iter().map(|cell| (*cell).to_string()).collect()
}

fn links(run: &Run) -> Vec<Vec<String>> {
    let base_rtts = run.largest_base_rtts_ns();
    let mut rows = vec![row(&[
        "link", "from", "to", "rate", "delay", "BDP", "queue", "loss", "more",
    ])];
    for (link, base_rtt) in run.links.iter().zip(base_rtts) {
        let config = &link.config;
        let bdp = base_rtt.map_or("-".to_string(), |ns| {
            format!("{} packets", bdp_packets(config, ns))
        });
        rows.push(vec![
            link.name.clone(),
            run.nodes[link.from].clone(),
            run.nodes[link.to].clone(),
            rate(config.rate_bps),
            time(config.delay_ns),
            bdp,
            queue(config.queue),
            loss(&config.loss),
            more(link),
        ]);
    }
    rows
}

/// ceil(rate x base RTT / (8 x full frame)) (docs/reference/scenario-format.md, `queue`).
fn bdp_packets(config: &LinkConfig, base_rtt_ns: u64) -> u128 {
    let frame_bits = 8 * (1500 + u128::from(config.overhead_bytes));
    (u128::from(config.rate_bps) * u128::from(base_rtt_ns)).div_ceil(frame_bits * 1_000_000_000)
}

fn queue(limit: QueueLimit) -> String {
    match limit {
        QueueLimit::Packets(n) => format!("{n} packets"),
        QueueLimit::Bytes(n) => size(n),
        QueueLimit::Unlimited => "unlimited".into(),
    }
}

fn loss(loss: &Loss) -> String {
    match *loss {
        Loss::None => "0 %".into(),
        Loss::Bernoulli { p } => percent(p),
        Loss::GilbertElliott {
            p,
            r,
            loss_good,
            loss_bad,
        } => {
            // The share of time in the bad state. With p = r = 0 the state stays good.
            let bad = if p > 0.0 { p / (p + r) } else { 0.0 };
            let mean = loss_bad * bad + loss_good * (1.0 - bad);
            format!("{} in bursts", percent((mean * 1e6).round() / 1e6))
        }
    }
}

fn more(link: &Link) -> String {
    let config = &link.config;
    let mut notes = Vec::new();
    if let Some(trace) = &config.trace {
        notes.push(format!(
            "mean rate of {} ({})",
            trace.name,
            time(trace.period_ns)
        ));
    }
    if config.aqm != Aqm::DropTail {
        notes.push(format!(
            "{}{}",
            aqm_name(&config.aqm),
            if config.ecn { " with ECN" } else { "" }
        ));
    }
    if let Some(reorder) = config.reorder {
        let extra = match (reorder.min_extra_delay_ns, reorder.max_extra_delay_ns) {
            (lo, hi) if lo == hi => time(lo),
            (lo, hi) => format!("{}-{}", time(lo), time(hi)),
        };
        notes.push(format!("{} {extra} late", percent(reorder.probability)));
    }
    if config.overhead_bytes != crate::format::DEFAULT_OVERHEAD_BYTES {
        notes.push(format!("{} bytes overhead", config.overhead_bytes));
    }
    if let (Some(first), Some(last)) = (config.schedule.first(), config.schedule.last()) {
        let n = config.schedule.len();
        notes.push(format!(
            "{n} changes, {} to {}",
            time(first.at_ns),
            time(last.at_ns)
        ));
    }
    notes.join("; ")
}

pub(crate) fn aqm_name(aqm: &Aqm) -> &'static str {
    match aqm {
        Aqm::DropTail => "drop-tail",
        Aqm::Red { .. } => "red",
        Aqm::Codel { .. } => "codel",
        Aqm::FqCodel { .. } => "fq-codel",
    }
}

fn flows(run: &Run) -> Vec<Vec<String>> {
    let mut rows = vec![row(&["flow", "subflow", "path", "base RTT", "what"])];
    for flow in run.flows.iter() {
        let connection = match &flow.transport {
            Transport::Tcp(tcp) => tcp_summary(tcp),
            Transport::Sctp(sctp) => sctp_summary(sctp),
            Transport::Udp(udp) => {
                rows.push(vec![
                    flow.name.clone(),
                    "-".into(),
                    path(run, &udp.path),
                    "-".into(),
                    [udp_summary(udp), when(flow)].concat(),
                ]);
                continue;
            }
        };
        for (i, subflow) in flow.subflows().iter().enumerate() {
            let (name, what) = match i {
                0 => (flow.name.clone(), connection.clone() + &when(flow)),
                _ => (String::new(), String::new()),
            };
            rows.push(vec![
                name,
                subflow.name.clone(),
                path(run, &subflow.path),
                time(run.base_rtt_ns(subflow)),
                [what, subflow_notes(subflow)]
                    .concat()
                    .trim_start_matches(", ")
                    .to_string(),
            ]);
        }
    }
    rows
}

fn path(run: &Run, path: &[usize]) -> String {
    path.iter()
        .map(|&l| run.links[l].name.as_str())
        .collect::<Vec<_>>()
        .join(" > ")
}

fn tcp_summary(tcp: &TcpFlow) -> String {
    let protocol = match tcp.mptcp {
        true => match tcp.scheduler {
            Some(scheduler) => format!("MPTCP {} {scheduler}", tcp.cc),
            None => format!("MPTCP {}", tcp.cc),
        },
        false => format!("TCP {}", tcp.cc),
    };
    let (traffic, buffer) = (traffic(&tcp.traffic), rcv_buffer(tcp.rcv_buffer));
    let recovery = match tcp.options.recovery {
        LossRecovery::Sack => String::new(),
        other => format!(", {} recovery", other.name()),
    };
    format!("{protocol}, {traffic}{buffer}{recovery}")
}

fn sctp_summary(sctp: &SctpFlow) -> String {
    let (traffic, buffer) = (traffic(&sctp.traffic), rcv_buffer(sctp.rcv_buffer));
    format!("CMT-SCTP, {traffic}{buffer}")
}

fn traffic(traffic: &Traffic) -> String {
    match traffic {
        Traffic::Bulk => "bulk".to_string(),
        Traffic::Size { bytes } => size(*bytes),
        Traffic::OnOff { on, off } => format!("on {}, off {}", duration(*on), duration(*off)),
        Traffic::Transfers(transfers) => transfers_summary(transfers),
        Traffic::Video(video) => video_summary(video),
        Traffic::Requests(requests) => requests_summary(requests),
    }
}

fn rcv_buffer(buffer: RcvBuffer) -> String {
    match buffer {
        RcvBuffer::Unlimited => String::new(),
        RcvBuffer::Fixed(bytes) => format!(", {} receive buffer", size(bytes)),
        RcvBuffer::FixedMemory(bytes) => {
            format!(
                ", {} receive buffer (announced as in Linux 7.3)",
                size(bytes)
            )
        }
        RcvBuffer::Auto { max_bytes, growth } => {
            let as_in = match growth {
                Growth::Linux6_18 => "",
                Growth::Linux7_3 => " (grows as in Linux 7.3)",
            };
            format!(", receive buffer up to {}{as_in}", size(max_bytes))
        }
    }
}

fn udp_summary(udp: &UdpFlow) -> String {
    let pattern = udp.on_off.map_or(String::new(), |(on, off)| {
        format!(", on {}, off {}", duration(on), duration(off))
    });
    format!(
        "UDP {}, {} bytes per packet{pattern}",
        rate(udp.rate_bps),
        udp.packet_bytes
    )
}

fn when(flow: &Flow) -> String {
    let start = match flow.start {
        StartTime::At(0) => String::new(),
        StartTime::At(ns) => format!(", from {}", time(ns)),
        StartTime::Uniform { lo_ns, hi_ns } => {
            format!(", from {} to {} at random", time(lo_ns), time(hi_ns))
        }
    };
    let stop = flow
        .stop_ns
        .map_or(String::new(), |ns| format!(", until {}", time(ns)));
    start + &stop
}

fn subflow_notes(subflow: &Subflow) -> String {
    let mut out = String::new();
    if subflow.backup {
        out.push_str(", backup");
    }
    for change in &subflow.priorities {
        let kind = if change.backup { "backup" } else { "regular" };
        let _ = write!(out, ", {kind} from {}", time(change.at_ns));
    }
    if let Some(ns) = subflow.start_ns {
        let _ = write!(out, ", joins at {}", time(ns));
    }
    if let Some(ns) = subflow.stop_ns {
        let _ = write!(out, ", removed at {}", time(ns));
    }
    out
}

fn size_summary(distribution: SizeDistribution) -> String {
    match distribution {
        SizeDistribution::Fixed { bytes } => size(bytes),
        SizeDistribution::Exponential { mean_bytes, .. } => {
            format!("exponential of mean {}", size(mean_bytes))
        }
        SizeDistribution::Pareto {
            mean_bytes, shape, ..
        } => format!("Pareto({shape}) of mean {}", size(mean_bytes)),
    }
}

fn requests_summary(requests: &Requests) -> String {
    let size = size_summary(requests.size);
    let what = match (requests.kind, requests.answer.map(size_summary)) {
        (RequestKind::Requests, answer) => {
            format!(
                "requests of {size}, responses of {}",
                answer.unwrap_or_default()
            )
        }
        (RequestKind::Messages, Some(answer)) => format!("messages of {size}, answers of {answer}"),
        (RequestKind::Messages, None) => format!("messages of {size}"),
    };
    let times = match &requests.times {
        RequestTimes::Think(pause) => {
            format!("one after the other, think time {}", duration(*pause))
        }
        RequestTimes::Interval(interval) => format!("every {}", duration(*interval)),
        RequestTimes::Poisson { levels } => format!("at {}", levels_summary(levels)),
    };
    let count = requests
        .count
        .map_or(String::new(), |n| format!(", {n} in all"));
    let bound = requests
        .bound_ns
        .map_or(String::new(), |ns| format!(", late after {}", time(ns)));
    format!("{what}, {times}{count}{bound}")
}

fn levels_summary(levels: &[ArrivalRate]) -> String {
    let level = |level: &ArrivalRate| match levels.len() {
        1 => arrival_rate(level.per_1000_min),
        _ => format!(
            "{} for {}",
            arrival_rate(level.per_1000_min),
            time(level.lasts_ns)
        ),
    };
    let levels: Vec<_> = levels.iter().map(level).collect();
    levels.join(", then ")
}

fn transfers_summary(transfers: &Transfers) -> String {
    let size = size_summary(transfers.size);
    match &transfers.arrivals {
        Arrivals::Poisson { levels } => format!("{size} at {}", levels_summary(levels)),
        Arrivals::Repeat { gap, count } => {
            let count = count.map_or("again and again".to_string(), |n| format!("{n} times"));
            format!("{size} {count}, gap {}", duration(*gap))
        }
    }
}

fn arrival_rate(per_1000_min: u64) -> String {
    format!("{} / s", per_1000_min as f64 / 60_000.0)
}

fn video_summary(video: &Video) -> String {
    let ends = [video.ladder_bps.first(), video.ladder_bps.last()];
    let [low, high] = ends.map(|bps| bps.map_or(String::new(), |bps| rate(*bps)));
    format!(
        "video {low} to {high}, chunks of {}, buffer {}",
        time(video.chunk_ns),
        time(video.buffer_ns)
    )
}

fn duration(distribution: DurationDistribution) -> String {
    match distribution {
        DurationDistribution::Fixed(ns) => time(ns),
        DurationDistribution::Uniform { lo_ns, hi_ns } => {
            format!("{}-{}", time(lo_ns), time(hi_ns))
        }
        DurationDistribution::Exponential { mean_ns } => {
            format!("exponential of mean {}", time(mean_ns))
        }
    }
}
