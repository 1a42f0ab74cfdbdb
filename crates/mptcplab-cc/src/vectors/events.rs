//! Runs a vector of events (ACKs, losses, timeouts, rounds) through the hooks, as an engine would.

use super::format::{Op, PathState, PerPath, Vector, micros};
use super::report::Deviation;
use crate::{AckSample, Algorithm, CaState, Conn, INFINITE_SSTHRESH, ParamError, Sock};
use serde_json::Value;

/// Kinds of vectors that this runner knows.
pub(super) const KINDS: [&str; 5] = ["ack", "loss", "rto", "round", "seq"];

/// Packets between two round ends, more than any vector acknowledges in a round.
const ROUND_PACKETS: u32 = 1 << 24;
/// Increase per packet, as a fraction of 1/cwnd: what integer arithmetic may lose.
const INC_TOLERANCE: f64 = 4e-4;
/// Windows after a loss, and thresholds, which are whole packets here.
const LOSS_TOLERANCE_PKTS: f64 = 1.0;
/// One decision of wVegas is exact except for the rounding of fractions.
const ROUND_TOLERANCE_PKTS: f64 = 0.01;
/// Sequences without a tolerance of their own get the smallest one in the file.
const SEQ_TOLERANCE_PKTS: f64 = 1.5;
/// Two of these have windows of a few packets, where it matters that siblings see whole packets, not real numbers. The
/// rule behind the other tolerances (twice the deviation of an integer model) would allow 3.9 and 20 packets.
const SMALL_WINDOWS: [(&str, f64); 2] = [("adw-balia-098", 1.6), ("dolia-108", 3.0)];
/// State: a relative tolerance, to which its resolution is added.
const STATE_TOLERANCE: f64 = 1e-3;
/// A parameter of ADW-BALIA's vectors that is really state: the connection's average before the event, seconds.
const CONNECTION_AVERAGE: &str = "adw_avg";
/// The delay window, packets, which vectors of mCompound do not include in cwnd and ssthresh.
const DELAY_WINDOW: &str = "d";
/// The bottleneck group of a subflow, and its value for none.
pub(super) const GROUP: &str = "group";
pub(super) const NO_GROUP: f64 = 255.0;
/// A whole packet of credit.
const CREDIT_ONE: f64 = (1u64 << 40) as f64;

/// Runs `vector` and compares every number that it names.
pub(super) fn run(
    algorithm: &'static Algorithm,
    vector: &Vector,
) -> Result<Vec<Deviation>, String> {
    let mut bench = Bench::new(algorithm, vector)?;
    let mut check = Check {
        id: &vector.id,
        deviations: Vec::new(),
    };
    match vector.kind.as_str() {
        "ack" => run_ack(&mut bench, vector, &mut check),
        "seq" => run_sequence(&mut bench, vector, &mut check)?,
        _ => run_event(&mut bench, vector, &mut check)?,
    }
    Ok(check.deviations)
}

fn run_ack(bench: &mut Bench, vector: &Vector, check: &mut Check<'_>) {
    let (r, path) = (vector.r, &vector.paths[vector.r]);
    if let Some(inc) = vector.expect.inc_per_pkt {
        check.add(
            "inc_per_pkt",
            bench.increase_per_packet(r),
            inc,
            INC_TOLERANCE / path.cwnd,
        );
    }
    let before = bench.socks[r].clone();
    bench.ack(r, vector.acked, vector.rtt, vector.now, true);
    let tolerance = f64::from(vector.acked) * INC_TOLERANCE / path.cwnd;
    if let Some(delta) = vector.expect.delta {
        check.add("delta", growth(&before, &bench.socks[r]), delta, tolerance);
    }
    if let PerPath::One(Some(cwnd)) = vector.expect.cwnd {
        check.add("cwnd", bench.window(r), cwnd, tolerance);
    }
}

fn run_event(bench: &mut Bench, vector: &Vector, check: &mut Check<'_>) -> Result<(), String> {
    let r = vector.r;
    let mut tolerance = LOSS_TOLERANCE_PKTS;
    match vector.kind.as_str() {
        "loss" => bench.loss(r),
        "rto" => bench.rto(r),
        _ => {
            tolerance = ROUND_TOLERANCE_PKTS;
            bench.round(r, vector.rtt.ok_or("a round needs \"rtt\"")?, vector.cnt);
        }
    }
    let sock = &bench.socks[r];
    if let PerPath::One(Some(cwnd)) = vector.expect.cwnd {
        check.add("cwnd", bench.window(r), cwnd, tolerance);
    }
    if let Some(PerPath::One(ssthresh)) = vector.expect.ssthresh {
        check.add_ssthresh(
            "ssthresh".into(),
            bench.threshold(r),
            ssthresh,
            LOSS_TOLERANCE_PKTS,
        );
    }
    for (name, expected) in &vector.expect.st {
        let spec = sock.algorithm().fields().iter().find(|f| f.name == name);
        let (Some(got), Some(spec)) = (sock.field(name), spec) else {
            return Err(format!("expect.st.{name}: the algorithm has no such state"));
        };
        let resolution = spec.num as f64 / spec.den as f64;
        let none = no_value(resolution);
        check.add(
            &format!("st.{name}"),
            got,
            expected.unwrap_or(none),
            STATE_TOLERANCE * expected.unwrap_or_default().abs() + resolution,
        );
    }
    Ok(())
}

/// The value of a member of the state that has none yet: all ones in 32 bits.
fn no_value(resolution: f64) -> f64 {
    f64::from(u32::MAX) * resolution
}

fn run_sequence(bench: &mut Bench, vector: &Vector, check: &mut Check<'_>) -> Result<(), String> {
    let tolerance = vector
        .int_tol_pkts
        .unwrap_or_else(|| sequence_tolerance(&vector.id));
    for (i, op) in vector.steps.iter().enumerate() {
        bench.apply(op);
        let Some(row) = vector.expect.after_each_op.get(i) else {
            continue;
        };
        for (k, expected) in row.iter().enumerate() {
            if k >= bench.socks.len() {
                return Err(format!("expect.after_each_op[{i}]: too many paths"));
            }
            check.add(
                &format!("cwnd of path {k} after op {i}"),
                bench.window(k),
                *expected,
                tolerance,
            );
        }
    }
    let (PerPath::All(cwnd), Some(PerPath::All(ssthresh))) =
        (&vector.expect.cwnd, &vector.expect.ssthresh)
    else {
        return Err("expect: a sequence needs cwnd and ssthresh of every path".into());
    };
    for k in 0..bench.socks.len() {
        let (Some(Some(cwnd)), Some(ssthresh)) = (cwnd.get(k), ssthresh.get(k)) else {
            return Err(format!("expect: no values of path {k}"));
        };
        check.add(
            &format!("final cwnd of path {k}"),
            bench.window(k),
            *cwnd,
            tolerance,
        );
        let ssthresh_tolerance = tolerance + LOSS_TOLERANCE_PKTS;
        check.add_ssthresh(
            format!("final ssthresh of path {k}"),
            bench.threshold(k),
            *ssthresh,
            ssthresh_tolerance,
        );
    }
    Ok(())
}

fn sequence_tolerance(id: &str) -> f64 {
    let small = SMALL_WINDOWS.iter().find(|(known, _)| *known == id);
    small.map_or(SEQ_TOLERANCE_PKTS, |(_, packets)| *packets)
}

/// Collects the comparisons of one vector.
struct Check<'a> {
    id: &'a str,
    deviations: Vec<Deviation>,
}

impl Check<'_> {
    fn add(&mut self, what: &str, got: f64, expected: f64, tolerance: f64) {
        self.deviations.push(Deviation {
            id: self.id.to_owned(),
            what: what.to_owned(),
            got,
            expected,
            tolerance,
        });
    }

    fn add_ssthresh(&mut self, what: String, got: f64, expected: Option<f64>, tolerance: f64) {
        self.add(&what, got, expected.unwrap_or(f64::INFINITY), tolerance);
    }
}

/// A connection whose hooks are called in the order in which an engine calls them.
#[derive(Clone)]
struct Bench {
    conn: Conn,
    socks: Vec<Sock>,
    /// An engine calls no `cong_avoid` on a subflow that is not usable.
    usable: Vec<bool>,
}

impl Bench {
    fn new(algorithm: &'static Algorithm, vector: &Vector) -> Result<Self, String> {
        let params = parameters(algorithm, vector).map_err(|e| e.to_string())?;
        let mut bench = Self {
            conn: Conn::new(),
            socks: Vec::new(),
            usable: Vec::new(),
        };
        for (slot, path) in vector.paths.iter().enumerate() {
            let sock = Sock::new(algorithm, &params, false).map_err(|e| e.to_string())?;
            bench.add_path(slot as u32, sock, path)?;
        }
        if let Some(average) = vector.params.get(CONNECTION_AVERAGE) {
            bench.set_average(vector.r, average)?;
        }
        Ok(bench)
    }

    /// Sets the connection's average, as if path `r` had seen the only loss so far.
    fn set_average(&mut self, r: usize, average: &Value) -> Result<(), String> {
        let (sock, conn) = (&mut self.socks[r], &mut self.conn);
        match average.as_f64() {
            Some(seconds)
                if sock.set_field(conn, "average", seconds)
                    && sock.set_field(conn, "changes", 1.0) =>
            {
                Ok(())
            }
            Some(_) => Err(format!(
                "params.{CONNECTION_AVERAGE}: the algorithm has no average"
            )),
            None if average.is_null() => Ok(()),
            None => Err(format!(
                "params.{CONNECTION_AVERAGE}: {average}, wanted a number"
            )),
        }
    }

    fn add_path(&mut self, slot: u32, mut sock: Sock, path: &PathState) -> Result<(), String> {
        let tp = &mut sock.tp;
        tp.snd_cwnd = path.cwnd as u32;
        tp.snd_ssthresh = path.ssthresh.map_or(INFINITE_SSTHRESH, |s| s as u32);
        tp.srtt_us = path.srtt_us() << 3;
        tp.is_cwnd_limited = true;
        tp.snd_nxt = ROUND_PACKETS;
        tp.ca_state = if path.in_recovery {
            CaState::Recovery
        } else {
            CaState::Open
        } as u8;
        if let (true, Some(flight)) = (path.app_limited, path.flight) {
            tp.app_limited = 1;
            tp.packets_out = flight as u32;
        }
        sock.init(&mut self.conn, slot);
        // The reference starts base RTTs at the smoothed RTT where a vector gives none.
        sock.set_field(&mut self.conn, "base", path.srtt);
        for (name, value) in &path.st {
            if value.is_some_and(|value| !sock.set_field(&mut self.conn, name, value)) {
                return Err(format!(
                    "paths[{slot}].st.{name}: the algorithm has no such state"
                ));
            }
        }
        if let Some(delay_window) = path.st.get(DELAY_WINDOW).copied().flatten() {
            let window = path.cwnd + delay_window;
            sock.tp.snd_cwnd = window as u32;
            sock.set_credit(window as u32, (window.fract() * CREDIT_ONE) as i64);
            sock.publish(&mut self.conn);
        }
        self.socks.push(sock);
        self.usable.push(true);
        self.set_usable(slot as usize, path.usable);
        Ok(())
    }

    /// The window as vectors define it: without the delay window.
    fn window(&self, r: usize) -> f64 {
        self.socks[r].window() - self.delay_window(r)
    }

    fn threshold(&self, r: usize) -> f64 {
        match self.socks[r].tp.snd_ssthresh {
            INFINITE_SSTHRESH.. => f64::INFINITY,
            // A threshold below the delay window is below any window.
            ssthresh => (f64::from(ssthresh) - self.delay_window(r)).max(1.0),
        }
    }

    fn delay_window(&self, r: usize) -> f64 {
        self.socks[r].field(DELAY_WINDOW).unwrap_or_default()
    }

    fn apply(&mut self, op: &Op) {
        match *op {
            Op::Ack {
                r,
                acked,
                rtt,
                now,
                cwnd_limited,
            } => self.ack(r, acked, rtt, now, cwnd_limited),
            Op::Acks { ref order, count } => {
                for j in 0..count {
                    self.ack(order[j % order.len()], 1, None, None, true);
                }
            }
            Op::TimedAcks {
                r,
                count,
                start,
                step,
                rtt,
            } => {
                for j in 0..count {
                    self.ack(r, 1, Some(rtt), Some(start + f64::from(j) * step), true);
                }
            }
            Op::Loss { r } => self.loss(r),
            Op::Rto { r } => self.rto(r),
            Op::Srtt { r, srtt } => {
                self.socks[r].tp.srtt_us = (micros(srtt) as u32) << 3;
                self.socks[r].publish(&mut self.conn);
            }
            Op::Round {
                r,
                rtt,
                samples,
                times,
            } => {
                for _ in 0..times {
                    self.round(r, rtt, samples);
                }
            }
            Op::Usable { r, usable } => self.set_usable(r, usable),
            Op::Group { r, group } => {
                let group = group.map_or(NO_GROUP, f64::from);
                self.socks[r].set_field(&mut self.conn, GROUP, group);
            }
        }
    }

    fn ack(
        &mut self,
        r: usize,
        acked: u32,
        rtt: Option<f64>,
        now: Option<f64>,
        cwnd_limited: bool,
    ) {
        let usable = self.usable[r];
        let sock = &mut self.socks[r];
        if let Some(now) = now {
            sock.tp.tcp_mstamp = micros(now);
        }
        sock.tp.snd_una = sock.tp.snd_una.wrapping_add(acked);
        let in_flight = sock.tp.snd_cwnd;
        let sample = AckSample {
            pkts_acked: acked,
            rtt_us: rtt.map_or(-1, |s| micros(s) as i32),
            in_flight,
        };
        sock.pkts_acked(&mut self.conn, &sample);
        if usable && sock.tp.ca_state != CaState::Recovery as u8 {
            sock.tp.is_cwnd_limited = cwnd_limited;
            sock.cong_avoid(&mut self.conn, sock.tp.snd_una, acked);
        }
    }

    /// The growth that one acknowledged packet would give in congestion avoidance, on a copy.
    fn increase_per_packet(&self, r: usize) -> f64 {
        let mut copy = self.clone();
        let sock = &mut copy.socks[r];
        if sock.tp.ca_state == CaState::Recovery as u8 {
            // The rules see ssthresh here, not cwnd; cwnd must only not be in slow start.
            sock.tp.snd_cwnd = sock.tp.snd_cwnd.max(sock.tp.snd_ssthresh);
        } else {
            sock.tp.snd_ssthresh = 1;
        }
        let before = sock.clone();
        sock.cong_avoid(&mut copy.conn, sock.tp.snd_una, 1);
        growth(&before, sock)
    }

    /// The end of a round in which all of `samples` RTT samples had this value.
    fn round(&mut self, r: usize, rtt: f64, samples: u32) {
        let sock = &mut self.socks[r];
        for _ in 0..samples {
            let sample = AckSample {
                pkts_acked: 0,
                rtt_us: micros(rtt) as i32,
                in_flight: sock.tp.snd_cwnd,
            };
            sock.pkts_acked(&mut self.conn, &sample);
        }
        sock.tp.snd_una = sock.tp.snd_nxt;
        sock.tp.snd_nxt = sock.tp.snd_nxt.wrapping_add(ROUND_PACKETS);
        sock.cong_avoid(&mut self.conn, sock.tp.snd_una, 0);
    }

    /// A fast recovery, entered and left.
    fn loss(&mut self, r: usize) {
        self.reduce(r);
        let sock = &mut self.socks[r];
        sock.set_state(&mut self.conn, CaState::Recovery);
        sock.tp.snd_cwnd = sock.tp.snd_cwnd.min(sock.tp.snd_ssthresh);
        sock.set_state(&mut self.conn, CaState::Open);
    }

    /// A retransmission timeout, and the recovery from it without an ACK that could grow the window.
    fn rto(&mut self, r: usize) {
        self.reduce(r);
        let sock = &mut self.socks[r];
        sock.tp.snd_cwnd = 1;
        sock.set_state(&mut self.conn, CaState::Loss);
        sock.set_state(&mut self.conn, CaState::Open);
    }

    fn reduce(&mut self, r: usize) {
        let sock = &mut self.socks[r];
        sock.tp.prior_cwnd = sock.tp.snd_cwnd;
        sock.tp.prior_ssthresh = sock.tp.snd_ssthresh;
        sock.tp.snd_ssthresh = sock.ssthresh(&mut self.conn);
    }

    fn set_usable(&mut self, r: usize, usable: bool) {
        self.usable[r] = usable;
        self.socks[r].set_usable(&mut self.conn, usable);
    }
}

/// Growth of the window, packets: whole packets and fractions apart, since their sum would not fit an f64.
fn growth(before: &Sock, after: &Sock) -> f64 {
    f64::from(after.tp.snd_cwnd) - f64::from(before.tp.snd_cwnd)
        + (after.credit() - before.credit())
}

/// The vector's parameters as raw values.
fn parameters(algorithm: &Algorithm, vector: &Vector) -> Result<Vec<(String, u64)>, ParamError> {
    let mut params = Vec::new();
    for (name, value) in &vector.params {
        if name == CONNECTION_AVERAGE {
            continue;
        }
        let text = match value {
            Value::String(s) => s.clone(),
            other => other.to_string(),
        };
        let name = key_of(algorithm, name);
        params.push((name.to_owned(), algorithm.parse_param(name, &text)?));
    }
    // Vectors describe the window rules alone; the early end of slow start is an extension that depends on ACK times.
    if algorithm.param("hystart").is_ok() && !vector.params.contains_key("hystart") {
        params.push((
            "hystart".to_owned(),
            algorithm.parse_param("hystart", "off")?,
        ));
    }
    Ok(params)
}

/// The name of a vector's parameter in this project, which calls EWTCP's variants by their weight.
fn key_of<'a>(algorithm: &Algorithm, name: &'a str) -> &'a str {
    match (algorithm.name(), name) {
        ("ewtcp", "variant") => "weight",
        _ => name,
    }
}
