//! Runs vectors of kind `sbd` (shared bottleneck detection): which flows share a bottleneck, from measurements on each.

use super::events::{GROUP, NO_GROUP};
use super::format::{Bottlenecks, Measured};
use super::report::Deviation;
use crate::{AckSample, Algorithm, Conn, Sock};

pub(super) const KIND: &str = "sbd";

/// Intervals that a subflow measures before it decides anything: twice RFC 8382's M, and one.
const SETTLING: u32 = 61;
/// Longer than an interval (350 ms), µs.
const INTERVAL_US: u64 = 400_000;
const RTT_US: i32 = 50_000;
/// A smoothed RTT, which makes a subflow a member of the coupling set, µs << 3.
const SRTT: u32 = (RTT_US as u32) << 3;

/// Whether `algorithm` groups its subflows by bottlenecks.
pub(super) fn applies_to(algorithm: &Algorithm) -> bool {
    algorithm.fields().iter().any(|f| f.name == GROUP)
}

/// Gives subflows these measurements, and ends intervals so that they decide on their groups.
pub(super) fn run(
    algorithm: &'static Algorithm,
    vector: &Bottlenecks,
) -> Result<Vec<Deviation>, String> {
    let mut conn = Conn::new();
    let mut socks = Vec::new();
    for (slot, flow) in vector.flows.iter().enumerate() {
        let mut sock = Sock::new(algorithm, &[], false).map_err(|e| e.to_string())?;
        sock.tp.srtt_us = SRTT;
        sock.init(&mut conn, slot as u32);
        settle(&mut sock, &mut conn);
        measure(&mut sock, &mut conn, flow)?;
        socks.push(sock);
    }
    // The first round decides who is at a bottleneck, the second groups by it.
    for _ in 0..2 {
        for sock in &mut socks {
            end_interval(sock, &mut conn);
        }
    }
    compare(vector, &socks)
}

fn settle(sock: &mut Sock, conn: &mut Conn) {
    for _ in 0..SETTLING {
        acknowledge(sock, conn, RTT_US);
        end_interval(sock, conn);
    }
}

/// An ACK without an RTT sample, which leaves the statistics as they were set.
fn end_interval(sock: &mut Sock, conn: &mut Conn) {
    sock.tp.tcp_mstamp += INTERVAL_US;
    acknowledge(sock, conn, -1);
}

fn acknowledge(sock: &mut Sock, conn: &mut Conn, rtt_us: i32) {
    let sample = AckSample {
        pkts_acked: 1,
        rtt_us,
        in_flight: 1,
    };
    sock.pkts_acked(conn, &sample);
}

fn measure(sock: &mut Sock, conn: &mut Conn, flow: &Measured) -> Result<(), String> {
    let fields = [
        ("skew_plus_1", 1.0 + flow.skew),
        ("var", flow.var),
        ("freq", flow.freq),
        ("loss", flow.loss),
        ("pb", f64::from(u8::from(flow.pb))),
    ];
    for (name, value) in fields {
        if !sock.set_field(conn, name, value) {
            return Err(format!("the algorithm has no state {name}"));
        }
    }
    Ok(())
}

fn compare(vector: &Bottlenecks, socks: &[Sock]) -> Result<Vec<Deviation>, String> {
    let mut deviations = Vec::new();
    let mut add = |what: String, got: f64, expected: f64| {
        deviations.push(Deviation {
            id: vector.id.clone(),
            what,
            got,
            expected,
            tolerance: 0.0,
        });
    };
    for (k, sock) in socks.iter().enumerate() {
        let field = |name| {
            sock.field(name)
                .ok_or_else(|| format!("the algorithm has no state {name}"))
        };
        let group = vector.expect.groups.iter().find(|g| g.contains(&k));
        // A group is named after its first member.
        let first = group.and_then(|g| g.iter().min());
        let expected = first.map_or(NO_GROUP, |first| *first as f64);
        add(format!("group of flow {k}"), field(GROUP)?, expected);
        let bottleneck = f64::from(u8::from(vector.expect.pb[k]));
        add(format!("bottleneck of flow {k}"), field("pb")?, bottleneck);
    }
    Ok(deviations)
}
