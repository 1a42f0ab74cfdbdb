//! Runs the vectors of C-MPBBR: the number by which a subflow's bandwidth is divided, and when a subflow should leave.
//!
//! Every path measures its bandwidth from rate samples, through STARTUP; then the acting path begins the phase of the gain
//! cycle in which subflows are counted. The expected numbers include neither BBR's pacing margin nor its bursts, so both
//! are subtracted here.

use super::report::Deviation;
use crate::{Algorithm, CaState, Conn, MAX_SUBFLOWS, RateSample, Sock};
use serde::Deserialize;
use serde_json::Value;

/// Kinds of vectors that this runner knows.
pub(super) const KINDS: [&str; 2] = ["cmpbbr", "cmpbbr_benefit"];

/// Bandwidths are kept in steps of 2^-24 packets/us.
const STEP_PPS: f64 = 1e6 / (1u64 << 24) as f64;
/// Relative error: rounding of the rate sample, of the gains (eight bits) and of bytes.
const TOLERANCE: f64 = 2e-3;
/// Windows are rounded up to an even number.
const WINDOW_TOLERANCE_PKTS: f64 = 2.0;
/// Length of a rate sample, µs: long enough to resolve every bandwidth.
const INTERVAL_US: i64 = 1_000_000_000;
/// Segments so long that BBR's bursts, at most 64 KiB, are two packets.
const MSS_BYTES: u32 = 65_535;
/// Three bursts on top of the BDP.
const BURSTS_PKTS: f64 = 6.0;
/// A window is never less.
const LEAST_WINDOW_PKTS: f64 = 4.0;
/// Two more packets while probing for bandwidth.
const PROBE_PKTS: f64 = 2.0;
/// BBR paces at this fraction of the rate.
const MARGIN: f64 = 0.99;
const MODES: [&str; 4] = ["STARTUP", "DRAIN", "PROBE_BW", "PROBE_RTT"];
const PROBE_BW: f64 = 2.0;
/// Gain of each mode, where the gain cycle does not give it.
const MODE_GAINS: [f64; 4] = [739.0 / 256.0, 88.0 / 256.0, 1.0, 1.0];
/// The phase before the one in which subflows are counted, and one that uses the whole bandwidth.
const BEFORE_COUNT: f64 = 2.0;
const WHOLE_BANDWIDTH: f64 = 1.0;
/// Rounds without growth that mean a full pipe.
const FULL_ROUNDS: f64 = 3.0;
/// More than any BDP.
const FLIGHT_PKTS: u32 = 1 << 29;
/// Round-trip time where a vector gives none, seconds.
const RTT_S: f64 = 0.01;

#[derive(Debug, Deserialize)]
struct Vector {
    id: String,
    kind: String,
    /// Packets/s, of every path.
    bw: Vec<f64>,
    /// Packets/s that every path delivers now.
    #[serde(default)]
    delivery: Vec<f64>,
    #[serde(default)]
    r: usize,
    /// The previous count of subflows.
    #[serde(default = "one")]
    last: f64,
    mode: Option<String>,
    #[serde(default)]
    cycle_idx: u32,
    min_rtt: Option<f64>,
    /// Of a mode other than PROBE_BW.
    #[serde(default = "one")]
    gain: f64,
    /// Subflows that share a bottleneck.
    #[serde(default = "one")]
    n_shared: f64,
    #[serde(default)]
    count: f64,
    expect: Expect,
}

#[derive(Debug, Deserialize)]
struct Expect {
    #[serde(rename = "N")]
    sharing: Option<f64>,
    last: Option<f64>,
    bw: Option<f64>,
    pacing: Option<f64>,
    cwnd_target: Option<f64>,
    count: Option<f64>,
    close: Option<u32>,
}

fn one() -> f64 {
    1.0
}

/// The vector's id, and every number that it names, compared.
pub(super) fn run(
    algorithm: &'static Algorithm,
    value: &Value,
) -> Result<(String, Vec<Deviation>), String> {
    let vector = Vector::deserialize(value).map_err(|e| e.to_string())?;
    vector.check()?;
    let mut bench = Bench::new(algorithm, &vector)?;
    let mut deviations = Vec::new();
    let mut add = |what: &str, got: f64, expected: Option<f64>, tolerance: f64| {
        if let Some(expected) = expected {
            deviations.push(Deviation {
                id: vector.id.clone(),
                what: what.to_owned(),
                got,
                expected,
                tolerance,
            });
        }
    };
    let expect = &vector.expect;
    if vector.kind == "cmpbbr_benefit" {
        let closed = bench.benefit(&vector);
        add("count", bench.state("count"), expect.count, 0.0);
        // -1: no subflow is to leave.
        let wanted = expect.close.map_or(-1.0, f64::from);
        add("close", closed, Some(wanted), 0.0);
    } else {
        let result = bench.share(&vector);
        add("N", bench.state("N"), expect.sharing, 0.0);
        add("last", bench.state("last"), expect.last, 0.0);
        let rate = |pps: Option<f64>| pps.unwrap_or(0.0) * TOLERANCE + STEP_PPS;
        add("bw", result.bw, expect.bw, rate(expect.bw));
        add("pacing", result.pacing, expect.pacing, rate(expect.pacing));
        let rounding = 2.0 * STEP_PPS * vector.min_rtt.unwrap_or(RTT_S) + WINDOW_TOLERANCE_PKTS;
        let window = expect.cwnd_target.unwrap_or(0.0) * TOLERANCE + rounding;
        add("cwnd_target", result.window, expect.cwnd_target, window);
    }
    Ok((vector.id, deviations))
}

impl Vector {
    fn check(&self) -> Result<(), String> {
        let paths = self.bw.len();
        if paths == 0 || paths > MAX_SUBFLOWS {
            return Err(format!("{paths} bandwidths, wanted 1 to {MAX_SUBFLOWS}"));
        }
        if self.r >= paths {
            return Err(format!("r = {}, but there are {paths} paths", self.r));
        }
        // The filter's largest value is 256 packets/us.
        let range = |x: &f64| (0.0..2e6).contains(x);
        if !self.bw.iter().chain(&self.delivery).all(range) {
            return Err("bandwidths are 0 to 2000000 packets/s".into());
        }
        if self.kind == "cmpbbr_benefit" && self.delivery.len() != paths {
            return Err(format!(
                "{} deliveries of {paths} paths",
                self.delivery.len()
            ));
        }
        if self.kind == "cmpbbr" && self.mode().is_none() {
            return Err(format!("mode {:?}, wanted one of {MODES:?}", self.mode));
        }
        if self.cycle_idx > 7 {
            return Err(format!("cycle_idx {}, wanted 0 to 7", self.cycle_idx));
        }
        Ok(())
    }

    fn mode(&self) -> Option<usize> {
        let mode = self.mode.as_deref()?;
        MODES.iter().position(|m| *m == mode)
    }

    fn cycle_gain(&self) -> f64 {
        match self.cycle_idx {
            0 => 1.25,
            1 => 0.75,
            _ => 1.0,
        }
    }
}

/// What the acting subflow uses, in the units of the vectors: packets/s and packets.
struct Sharing {
    bw: f64,
    pacing: f64,
    window: f64,
}

/// A connection on which every subflow has measured its bandwidth.
struct Bench {
    conn: Conn,
    socks: Vec<Sock>,
    r: usize,
    now_us: u64,
    rtt_us: u32,
}

impl Bench {
    fn new(algorithm: &'static Algorithm, vector: &Vector) -> Result<Self, String> {
        if !algorithm.fields().iter().any(|f| f.name == "N") {
            let kind = &vector.kind;
            return Err(format!("kind {kind}, but the algorithm counts no subflows"));
        }
        let rtt_us = (vector.min_rtt.unwrap_or(RTT_S) * 1e6).round() as u32;
        let mut bench = Self {
            conn: Conn::new(),
            socks: Vec::new(),
            r: vector.r,
            now_us: 1_000_000,
            rtt_us,
        };
        for slot in 0..vector.bw.len() {
            let mut sock = Sock::new(algorithm, &[], false).map_err(|e| e.to_string())?;
            sock.tp.tcp_mstamp = bench.now_us;
            sock.tp.srtt_us = rtt_us << 3;
            sock.tp.min_rtt_us = rtt_us;
            sock.tp.mss_cache = MSS_BYTES;
            sock.init(&mut bench.conn, slot as u32);
            bench.socks.push(sock);
        }
        for (k, bw) in vector.bw.iter().enumerate() {
            bench.measure(k, *bw);
        }
        // A benefit vector names no acting path: any that has measured something.
        if vector.kind == "cmpbbr_benefit" {
            bench.r = vector.bw.iter().position(|bw| *bw > 0.0).unwrap_or(0);
        }
        Ok(bench)
    }

    fn state(&self, name: &str) -> f64 {
        self.socks[self.r].field(name).unwrap_or(f64::NAN)
    }

    fn set(&mut self, name: &str, value: f64) {
        let known = self.socks[self.r].set_field(&mut self.conn, name, value);
        debug_assert!(known, "no state {name}");
    }

    /// Rounds at one delivery rate, until the pipe is full and the gain cycle has begun.
    fn measure(&mut self, k: usize, bw_pps: f64) {
        if bw_pps == 0.0 {
            return;
        }
        for _ in 0..6 {
            let delivered = (bw_pps * INTERVAL_US as f64 / 1e6).round() as i32;
            self.ack(k, delivered, INTERVAL_US, 1);
        }
    }

    /// One ACK of a whole round; `delivered` < 0: it brings no rate sample.
    fn ack(&mut self, k: usize, delivered: i32, interval_us: i64, acked: u32) {
        let sock = &mut self.socks[k];
        sock.tp.tcp_mstamp = self.now_us;
        sock.tp.ca_state = CaState::Open as u8;
        sock.tp.snd_una += 1;
        let sample = RateSample {
            prior_delivered: sock.tp.delivered,
            delivered,
            interval_us,
            rtt_us: i64::from(self.rtt_us),
            acked_sacked: acked,
            prior_in_flight: sock.tp.packets_out,
            ..RateSample::default()
        };
        sock.tp.delivered += 1;
        sock.cong_control(&mut self.conn, sock.tp.snd_una, 0, &sample);
    }

    /// Ends the acting subflow's phase, begins the one in which it counts, and lets it count.
    fn count(&mut self) {
        self.set("mode", PROBE_BW);
        self.set("cycle_idx", BEFORE_COUNT);
        self.now_us += u64::from(self.rtt_us) + 1;
        self.ack(self.r, -1, -1, 0);
        self.ack(self.r, -1, -1, 0);
    }

    fn share(&mut self, vector: &Vector) -> Sharing {
        self.set("last", vector.last);
        self.count();
        let mode = vector.mode().unwrap_or_default();
        let probing = mode as f64 == PROBE_BW;
        let own_gain = if probing {
            vector.cycle_gain()
        } else {
            MODE_GAINS[mode]
        };
        let pacing = self.pacing_in(mode as f64, f64::from(vector.cycle_idx)) / own_gain;
        // The expected window has the gain of PROBE_BW in every mode; outside PROBE_BW the whole bandwidth counts.
        let phase = if probing {
            f64::from(vector.cycle_idx)
        } else {
            WHOLE_BANDWIDTH
        };
        let more = if phase == 0.0 { PROBE_PKTS } else { 0.0 };
        let window = self.window_in(phase);
        Sharing {
            bw: pacing,
            pacing: pacing * if probing { own_gain } else { vector.gain },
            window: (window - BURSTS_PKTS - more).max(LEAST_WINDOW_PKTS),
        }
    }

    /// Enters a mode and a phase that the next ACK does not end: much is in flight, and the pipe is full except in STARTUP.
    fn enter(&mut self, mode: f64, phase: f64) {
        self.set("mode", mode);
        self.set("cycle_idx", phase);
        self.set("full_bw_cnt", if mode == 0.0 { 0.0 } else { FULL_ROUNDS });
        self.socks[self.r].tp.packets_out = FLIGHT_PKTS;
    }

    /// The pacing rate in packets/s, without the margin: the bandwidth times the gain.
    fn pacing_in(&mut self, mode: f64, phase: f64) -> f64 {
        self.enter(mode, phase);
        // While the pipe is not full, the rate only rises.
        self.socks[self.r].tp.sk_pacing_rate = 0;
        self.ack(self.r, -1, -1, 0);
        self.socks[self.r].tp.sk_pacing_rate as f64 / f64::from(MSS_BYTES) / MARGIN
    }

    /// The window that a phase of PROBE_BW allows, packets.
    fn window_in(&mut self, phase: f64) -> f64 {
        self.enter(PROBE_BW, phase);
        self.socks[self.r].tp.snd_cwnd = 1 << 30;
        self.ack(self.r, -1, -1, 1);
        f64::from(self.socks[self.r].tp.snd_cwnd)
    }

    /// Counts once with these delivery rates. Returns the slot that should leave, or -1.
    fn benefit(&mut self, vector: &Vector) -> f64 {
        for (sock, delivery) in self.socks.iter_mut().zip(&vector.delivery) {
            sock.set_field(&mut self.conn, "delivery", *delivery);
        }
        self.set("last", vector.n_shared);
        self.set("count", vector.count);
        self.count();
        match self.socks[self.r].take_backups_wanted() {
            0 => -1.0,
            slots => f64::from(slots.trailing_zeros()),
        }
    }
}
