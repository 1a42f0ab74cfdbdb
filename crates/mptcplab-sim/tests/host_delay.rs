//! The time that hosts take: it adds to every round trip, and with a full drop-tail queue decides who loses.

use crate::common::{Measured, simulate_all, simulate_one};

/// Three transfers on links of their own, each of one segment at a time. `host_delay` is that of all, of the first the flow's.
const ONE_BY_ONE: &str = r#"
duration = "4 s"
cc = "reno"
sample = "10 ms"
[tcp]
initial_cwnd = "1 packets"
cwnd_clamp = "1 packets"
[links.A]
from = "S"
to = "D"
rate = "8 Mbit/s"
delay = "17 ms"
[links.B]
from = "S"
to = "E"
rate = "12 Mbit/s"
delay = "29 ms"
[links.C]
from = "S"
to = "F"
rate = "20 Mbit/s"
delay = "5 ms"
[flows.a]
path = ["A"]
host_delay = "1700 us"
[flows.b]
path = ["B"]
send_jitter = "40 us"
[flows.c]
path = ["C"]
"#;

/// Smallest round-trip time of each flow, ns.
fn least_rtts_us(set: &[(&str, &str)]) -> [u32; 3] {
    let run = simulate_one(ONE_BY_ONE, set);
    ["a", "b", "c"].map(|flow| run.last(flow, 0, |t| &t.min_rtt_us))
}

#[test]
fn a_round_trip_takes_as_much_longer_as_the_hosts_take() {
    let without = least_rtts_us(&[("flows.a.host_delay", "0 s")]);
    let with = least_rtts_us(&[("tcp.host_delay", "300 us")]);
    assert_eq!(with[0] - without[0], 1700);
    assert_eq!(with[2] - without[2], 300);
    // The jitter's draws are the same, and the smallest of them decides.
    assert_eq!(with[1] - without[1], 300);
}

/// Two subflows and two Reno flows, all with the same round-trip time, at a full queue. Without `like` all packets have the same
/// size.
const PHASES: &str = r#"
duration = "30 s"
warmup = "7500 ms"
repetitions = 4
scheduler = "linger"
profile = "linux-acked"
[tcp]
like = "linux-7.3"
[links.in]
from = "S"
to = "R"
rate = "1000 Mbit/s"
delay = "1 ms"
[links.neck]
from = "R"
to = "D"
rate = "60 Mbit/s"
delay = "4 ms"
queue = "50 packets"
[flows.mp]
cc = "reno"
subflows = [{ path = ["in", "neck"] }, { path = ["in", "neck"] }]
start = "uniform(0 s, 1 s)"
[flows.tcp]
transport = "tcp"
cc = "reno"
count = 2
path = ["in", "neck"]
start = "uniform(0 s, 1 s)"
"#;

#[test]
fn microseconds_decide_who_loses_at_a_full_queue() {
    let shares = |delay: &str| {
        let set = [("tcp.host_delay", delay), ("tcp.send_jitter", "8 us")];
        let share =
            |run: &Measured| run.goodput("mp") / (run.goodput("tcp-1") + run.goodput("tcp-2"));
        simulate_all(PHASES, &set)
            .iter()
            .map(share)
            .collect::<Vec<_>>()
    };
    let all = ["0 s", "5 us", "15 us", "40 us", "100 us"].map(shares);
    let spread = |repetition: usize| {
        let shares = all.iter().map(|shares| shares[repetition]);
        shares.clone().fold(0.0, f64::max) / shares.fold(f64::MAX, f64::min)
    };
    let mean = (0..4).map(spread).sum::<f64>() / 4.0;
    assert!(mean > 1.1, "{mean}: {all:?}");
}
