//! The scheduler part of a file of test vectors, run by the functions that the engine calls.

use super::blest::{SrttRange, Window, blest};
use super::delayvar::{delayvar, delayvar_order};
use super::ecf::ecf;
use super::linger::{Queue, linger};
use super::redundant::redundant;
use super::roundrobin::roundrobin;
use super::{
    Kind, MAX_SUBFLOWS, Path, Scheduler, SchedulerConfig, may_retransmit, must_penalise,
    next_destination, penalised_window,
};
use mptcplab_cc::vectors::{AlgorithmReport, Deviation, Report, VectorError};
use mptcplab_cc::{AckSample, INFINITE_SSTHRESH, Sock};
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Windows are whole packets here and fractions in the reference.
const WINDOW_TOLERANCE_PKTS: f64 = 1.0;
/// Rates are whole bytes per second.
const RATE_TOLERANCE_BYTES_PER_S: f64 = 1.0;

/// Runs the vectors of a file, algorithms and schedulers.
///
/// # Errors
/// As [`mptcplab_cc::vectors::run_file`].
pub fn run_file(path: &std::path::Path) -> Result<Report, VectorError> {
    mptcplab_cc::vectors::run_file_with(path, &run)
}

/// Runs the vectors of one scheduler; `None` if there is none of this name.
///
/// # Errors
/// A description of the error, with the vector.
pub fn run(name: &str, raw: &[Value]) -> Option<Result<AlgorithmReport, String>> {
    let decide = decision(name)?;
    Some(run_all(name, raw, decide))
}

fn run_all(name: &str, raw: &[Value], decide: Decide) -> Result<AlgorithmReport, String> {
    let mut report = AlgorithmReport::new(name);
    for (index, value) in raw.iter().enumerate() {
        let place = |what: String| format!("schedulers.{name}[{index}]: {what}");
        let case = Case::parse(value).map_err(place)?;
        let got = decide(&case).map_err(place)?;
        let expected = value.get("expect").unwrap_or(&Value::Null);
        let mut deviations = Vec::new();
        compare(&case.id, "", &got, expected, &mut deviations);
        report.add(&case.id, deviations);
    }
    Ok(report)
}

type Decide = fn(&Case) -> Result<Value, String>;

fn decision(name: &str) -> Option<Decide> {
    Some(match name {
        "minrtt" => run_minrtt,
        "rbuf-opt" => run_rbuf_opt,
        "rr" => run_roundrobin,
        "redundant" => run_redundant,
        "blest" => run_blest,
        "ecf" => run_ecf,
        "linger" => run_linger,
        "delayvar" => run_delayvar,
        "cmt-rr" => run_cmt_rr,
        _ => return None,
    })
}

#[derive(Debug, Deserialize)]
struct Case {
    id: String,
    sub: Vec<Sub>,
    args: Args,
}

/// The arguments of all schedulers together; each takes its own.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Args {
    sent_on: Vec<usize>,
    fast: Option<usize>,
    holders: Vec<usize>,
    quota: BTreeMap<usize, u32>,
    burst: Option<u32>,
    n: Option<u32>,
    cwnd_limited: Option<bool>,
    next: BTreeMap<usize, u32>,
    head: u32,
    tail: u32,
    snd_wnd: u64,
    seg_len: u32,
    lam: Option<f64>,
    k: u32,
    waiting: u8,
    beta: Option<f64>,
    room: u64,
    thr: Option<f64>,
    backlog: u32,
    nxt: usize,
    rwnd: u64,
}

/// A subflow as the file writes it. Times are seconds.
#[derive(Debug, Deserialize)]
struct Sub {
    #[serde(default)]
    srtt: f64,
    #[serde(default)]
    rttvar: f64,
    min_srtt: Option<f64>,
    max_srtt: Option<f64>,
    rtt: Option<f64>,
    rtt_min: Option<f64>,
    #[serde(default)]
    cwnd: u32,
    #[serde(default)]
    inflight: u32,
    #[serde(default)]
    queued: u32,
    ssthresh: Option<u32>,
    #[serde(default)]
    mss: u32,
    #[serde(default = "yes")]
    usable: bool,
    #[serde(default)]
    pf: bool,
    #[serde(default)]
    loss: bool,
    #[serde(default = "yes")]
    ca_open: bool,
    #[serde(default)]
    backup: bool,
    #[serde(default)]
    wmem: u64,
    #[serde(default)]
    avg_pacing: f64,
    #[serde(default)]
    pacing: f64,
    #[serde(default = "yes")]
    mem_free: bool,
    #[serde(default)]
    stale: bool,
}

fn yes() -> bool {
    true
}

/// Seconds to eighths of a microsecond; the files have whole microseconds.
fn us8(seconds: f64) -> u32 {
    (seconds * 8e6).round() as u32
}

fn milli(x: f64) -> u32 {
    (x * 1000.0).round() as u32
}

impl Path for Sub {
    fn is_usable(&self) -> bool {
        self.usable && !self.pf
    }
    fn is_backup(&self) -> bool {
        self.backup
    }
    fn in_loss(&self) -> bool {
        self.loss
    }
    fn is_open(&self) -> bool {
        self.ca_open
    }
    fn waits_for_pacing(&self) -> bool {
        false
    }
    fn cwnd(&self) -> u32 {
        self.cwnd
    }
    fn inflight(&self) -> u32 {
        self.inflight
    }
    fn queued(&self) -> u32 {
        self.queued
    }
    fn ssthresh(&self) -> u32 {
        self.ssthresh.unwrap_or(INFINITE_SSTHRESH)
    }
    fn srtt_us8(&self) -> u32 {
        us8(self.srtt)
    }
    fn rttvar_us8(&self) -> u32 {
        us8(self.rttvar)
    }
    fn rtt_us8(&self) -> u32 {
        us8(self.rtt.unwrap_or(self.srtt))
    }
    fn min_rtt_us8(&self) -> u32 {
        us8(self.rtt_min.unwrap_or(self.srtt))
    }
    fn is_established(&self) -> bool {
        self.usable
    }
    fn unacked_pkts(&self) -> u32 {
        self.inflight + self.queued
    }
    fn pacing_bytes_per_s(&self) -> u64 {
        self.pacing.round() as u64
    }
    fn carries(&self, _dsn: u32) -> bool {
        false
    }
}

impl Queue for Sub {
    fn is_usable(&self) -> bool {
        self.usable && !self.pf
    }
    fn is_backup(&self) -> bool {
        self.backup
    }
    fn queued_bytes(&self) -> u64 {
        self.wmem
    }
    fn pacing_bytes_per_s(&self) -> u64 {
        self.pacing.round() as u64
    }
    fn has_send_memory(&self) -> bool {
        self.mem_free
    }
    fn is_stale(&self) -> bool {
        self.stale
    }
}

impl Case {
    fn parse(value: &Value) -> Result<Self, String> {
        let case = Self::deserialize(value).map_err(|e| e.to_string())?;
        let n = case.sub.len();
        if n == 0 || n > MAX_SUBFLOWS {
            return Err(format!("{n} subflows, wanted 1 to {MAX_SUBFLOWS}"));
        }
        let args = &case.args;
        let named = args.sent_on.iter().chain(&args.holders).chain(&args.fast);
        let named = named.chain(args.quota.keys()).chain(args.next.keys());
        let named = named.chain(std::iter::once(&args.nxt));
        match named.max() {
            Some(&i) if i >= n => Err(format!("subflow {i} of {n}")),
            _ => Ok(case),
        }
    }

    /// A value per subflow, 0 where the file has none.
    fn per_subflow(&self, given: &BTreeMap<usize, u32>) -> Vec<u32> {
        (0..self.sub.len())
            .map(|i| given.get(&i).copied().unwrap_or(0))
            .collect()
    }
}

fn run_minrtt(case: &Case) -> Result<Value, String> {
    let scheduler = Scheduler::new(&SchedulerConfig::new(Kind::MinRtt));
    let pick = scheduler.pick_for_reinjection(&case.sub, |i| case.args.sent_on.contains(&i));
    Ok(json!({ "pick": pick }))
}

fn run_rbuf_opt(case: &Case) -> Result<Value, String> {
    let fast = case.args.fast.ok_or("no args.fast")?;
    let holders = || case.args.holders.iter().copied();
    let slowed: Vec<usize> = holders()
        .filter(|&h| must_penalise(&case.sub, fast, h))
        .collect();
    let after = slowed.iter().map(|&h| {
        let (cwnd, ssthresh) = penalised_window(case.sub[h].cwnd, case.sub[h].ssthresh());
        json!([cwnd, (ssthresh != INFINITE_SSTHRESH).then_some(ssthresh)])
    });
    Ok(json!({
        "reinject": may_retransmit(&case.sub, fast, holders()),
        "after": after.collect::<Value>(),
        "penalise": slowed,
    }))
}

fn run_roundrobin(case: &Case) -> Result<Value, String> {
    let args = &case.args;
    let mut quota = case.per_subflow(&args.quota);
    let (burst, limited) = (args.burst.unwrap_or(1), args.cwnd_limited.unwrap_or(true));
    let picks: Vec<_> = (0..args.n.unwrap_or(1))
        .map(|_| roundrobin(&case.sub, &mut quota, burst, limited))
        .collect();
    Ok(json!({ "picks": picks, "quota": by_index(&quota) }))
}

fn run_redundant(case: &Case) -> Result<Value, String> {
    let args = &case.args;
    let mut next: Vec<u32> = (0..case.sub.len())
        .map(|i| args.next.get(&i).copied().unwrap_or(args.head))
        .collect();
    let sent = redundant(&case.sub, &mut next, args.head, args.tail);
    Ok(json!({ "sent": *sent, "next": by_index(&next) }))
}

fn by_index(values: &[u32]) -> Value {
    let entries = values.iter().enumerate();
    Value::Object(entries.map(|(i, v)| (i.to_string(), json!(v))).collect())
}

fn run_blest(case: &Case) -> Result<Value, String> {
    let ranges: Vec<SrttRange> = case
        .sub
        .iter()
        .map(|s| SrttRange {
            min_us8: us8(s.min_srtt.unwrap_or(s.srtt)),
            max_us8: us8(s.max_srtt.unwrap_or(s.srtt)),
        })
        .collect();
    let window = Window {
        bytes: case.args.snd_wnd,
        mss: case.sub[0].mss,
        segment: case.args.seg_len,
    };
    let lambda = case
        .args
        .lam
        .map_or_else(|| SchedulerConfig::new(Kind::Blest).raw("lambda"), milli);
    Ok(json!({ "pick": blest(&case.sub, &ranges, &window, lambda) }))
}

fn run_ecf(case: &Case) -> Result<Value, String> {
    let mut waiting = case.args.waiting != 0;
    let beta = case
        .args
        .beta
        .map_or_else(|| SchedulerConfig::new(Kind::Ecf).raw("beta"), milli);
    let pick = ecf(&case.sub, case.args.k, &mut waiting, beta);
    Ok(json!({ "pick": pick, "waiting": u8::from(waiting) }))
}

fn run_cmt_rr(case: &Case) -> Result<Value, String> {
    let mut next = case.args.nxt;
    let admitted = case.args.rwnd >= u64::from(case.args.seg_len);
    let has_room = |i: usize| case.sub[i].usable && case.sub[i].inflight < case.sub[i].cwnd;
    let picks: Vec<_> = (0..case.args.n.unwrap_or(1))
        .map(|_| next_destination(&mut next, case.sub.len(), admitted, has_room))
        .collect();
    Ok(json!({ "picks": picks, "nxt": next }))
}

fn run_linger(case: &Case) -> Result<Value, String> {
    let mut average: Vec<u64> = case
        .sub
        .iter()
        .map(|s| s.avg_pacing.round() as u64)
        .collect();
    let pick = linger(&case.sub, &mut average, case.args.room);
    Ok(json!({
        "pick": pick.map(|p| p.0),
        "burst": pick.map_or(0, |p| p.1),
        "avg_pacing": average,
    }))
}

fn run_delayvar(case: &Case) -> Result<Value, String> {
    let threshold = case.args.thr.map_or_else(
        || SchedulerConfig::new(Kind::DelayVar).raw("threshold"),
        milli,
    );
    let windows: Result<Vec<u32>, String> = case
        .sub
        .iter()
        .map(|s| window_after_loss(s, threshold))
        .collect();
    Ok(json!({
        "order": *delayvar_order(&case.sub, threshold),
        "pick": delayvar(&case.sub, threshold, case.args.backlog),
        "loss": windows?,
    }))
}

/// The paper's adaptive fast retransmit is a rule of the congestion control of the same name.
fn window_after_loss(sub: &Sub, threshold_milli: u32) -> Result<u32, String> {
    let algorithm = mptcplab_cc::find("delayvar").ok_or("no algorithm delayvar in this build")?;
    let spec = algorithm.param("threshold").map_err(|e| e.to_string())?;
    let raw = (u64::from(threshold_milli) * spec.scale + 500) / 1000;
    let params = [("threshold".to_owned(), raw)];
    let mut sock = Sock::new(algorithm, &params, false).map_err(|e| e.to_string())?;
    let mut conn = mptcplab_cc::Conn::new();
    sock.tp.snd_cwnd = sub.cwnd;
    sock.tp.snd_ssthresh = sub.ssthresh();
    sock.tp.srtt_us = sub.srtt_us8();
    sock.init(&mut conn, 0);
    for rtt_us8 in [sub.min_rtt_us8(), sub.rtt_us8()] {
        let sample = AckSample {
            pkts_acked: 1,
            rtt_us: (rtt_us8 / 8) as i32,
            in_flight: sub.inflight,
        };
        sock.pkts_acked(&mut conn, &sample);
    }
    Ok(sock.ssthresh(&mut conn))
}

/// Every number of `expected` against `got`, place by place. What is of another shape differs infinitely.
fn compare(id: &str, place: &str, got: &Value, expected: &Value, out: &mut Vec<Deviation>) {
    match (got, expected) {
        (Value::Array(g), Value::Array(e)) if g.len() == e.len() => {
            for (i, (g, e)) in g.iter().zip(e).enumerate() {
                compare(id, &format!("{place}[{i}]"), g, e, out);
            }
        }
        (Value::Object(g), Value::Object(e)) => {
            for (key, e) in e {
                let here = format!("{place}.{key}");
                compare(
                    id,
                    here.trim_start_matches('.'),
                    g.get(key).unwrap_or(&Value::Null),
                    e,
                    out,
                );
            }
        }
        _ => out.push(Deviation {
            id: id.to_owned(),
            what: place.to_owned(),
            got: number(got),
            expected: number(expected),
            tolerance: tolerance(place),
        }),
    }
}

/// A truth value or a number as such; nothing and everything else as numbers that no decision is.
fn number(value: &Value) -> f64 {
    match value {
        Value::Null => -1.0,
        Value::Bool(b) => f64::from(u8::from(*b)),
        Value::Number(n) => n.as_f64().unwrap_or(f64::NAN),
        Value::Array(items) => -2.0 - items.len() as f64,
        _ => f64::NAN,
    }
}

fn tolerance(place: &str) -> f64 {
    if place.starts_with("after") || place.starts_with("loss") {
        WINDOW_TOLERANCE_PKTS
    } else if place.starts_with("avg_pacing") {
        RATE_TOLERANCE_BYTES_PER_S
    } else {
        0.0
    }
}
