//! Loss recovery by exact losses: link B is down just while the segments pass that are to be lost.
//!
//! Link A takes 1.2112 ms per full packet, so that packets reach B one by one: the connection is established at
//! 82.12 ms, and segment k of the first window reaches B at 84.33 + 1.2112 k ms (RFC 8985, RFC 6937, RFC 6298,
//! RFC 5682).

mod common;

use common::{Measured, simulate_one};
use mptcplab_trace::EventKind::{FlowCompleted, LossEvent, RecoveryEnded, RtoFired, TlpSent, Undo};

/// A transfer over A (10 Mbit/s, 1 ms) and B (1 Gbit/s, 40 ms), B down during `outages` (ms).
fn scenario(segments: u32, outages: &[(f64, f64)]) -> String {
    let changes: Vec<String> = outages
        .iter()
        .map(|(from, to)| {
            format!("{{ at = \"{from} ms\", up = false }}, {{ at = \"{to} ms\", up = true }}")
        })
        .collect();
    format!(
        r#"
duration = "30 s"
sample = "1 ms"
profile = "rfc"
cc = "reno"
[links.A]
from = "S"
to = "M"
rate = "10 Mbit/s"
delay = "1 ms"
queue = "unlimited"
[links.B]
from = "M"
to = "D"
rate = "1 Gbit/s"
delay = "40 ms"
schedule = [{}]
reverse = {{ schedule = [] }}
[flows.f]
transport = "tcp"
paths = [["A", "B"]]
traffic = {{ size = "{} B" }}
"#,
        changes.join(", "),
        segments * 1448
    )
}

/// A time in the middle of segment k's arrival at B in the first window, and the outage that hits only it.
fn around(first: u32, last: u32) -> (f64, f64) {
    let arrival = |k: u32| 84.33 + 1.2112 * f64::from(k);
    ((arrival(first) - 0.5) * 1.0, arrival(last) + 0.5)
}

fn rounded(outage: (f64, f64)) -> (f64, f64) {
    (
        (outage.0 * 100.0).round() / 100.0,
        (outage.1 * 100.0).round() / 100.0,
    )
}

fn run(segments: u32, outages: &[(f64, f64)]) -> Measured {
    let outages: Vec<_> = outages.iter().map(|o| rounded(*o)).collect();
    let run = simulate_one(&scenario(segments, &outages), &[]);
    assert_eq!(run.events("f", -1, FlowCompleted).len(), 1, "not completed");
    run
}

#[test]
fn dbg() {
    for (a, b) in [(5, 5), (7, 7), (8, 9), (2, 4), (9, 9)] {
        let r = run(10, &[around(a, b)]);
        println!(
            "{a}-{b}: loss {:?} end {:?} tlp {:?} rto {:?} undo {:?} retx {} lost {}",
            r.events("f", 0, LossEvent),
            r.events("f", 0, RecoveryEnded),
            r.events("f", 0, TlpSent),
            r.events("f", 0, RtoFired),
            r.events("f", 0, Undo),
            r.last("f", 0, |t| &t.retx_pkts),
            r.last("f", 0, |t| &t.lost_pkts)
        );
        println!(
            "   srtt {} acked times {:?}",
            r.last("f", 0, |t| &t.srtt_us),
            (160..400)
                .map(|ms| r.at("f", 0, ms as f64, |t| &t.acked_pkts))
                .collect::<Vec<_>>()
        );
    }
}
