//! Each scheduler in the situation that it is made for: a blocked receive window, short transfers over lossy paths, and others.

use crate::common::{Measured, simulate_one};
use mptcplab_trace::EventKind::{self, FlowCompleted, SubflowAdded};

/// Path fast: 10 Mbit/s, RTT 20 ms; path slow: a tenth of the rate, ten times the RTT.
const UNLIKE: &str = r#"
duration = "30 s"
warmup = "5 s"
cc = "reno"
sample = "100 ms"
[links.fast]
from = "S"
to = "D"
rate = "10 Mbit/s"
delay = "10 ms"
queue = "15 packets"
[links.slow]
from = "S"
to = "D"
rate = "1 Mbit/s"
delay = "100 ms"
queue = "20 packets"
[flows.f]
paths = [["fast"], ["slow"]]
"#;

/// With 45 segments of receive window.
fn unlike(scheduler: &str) -> Measured {
    let text = UNLIKE.to_owned() + "rcv_buffer = \"64 KiB\"\n";
    simulate_one(&text, &[("scheduler", scheduler)])
}

fn again(run: &Measured) -> u64 {
    run.flow_at("f", 30_000.0, |t| &t.reinjected_pkts)
}

#[test]
fn blest_and_ecf_beat_minrtt_where_a_slow_path_blocks_the_window() {
    let plain = unlike("minrtt(opportunistic=false, penalise=false)").goodput("f");
    let unpenalised = unlike("minrtt(penalise=false)").goodput("f");
    for scheduler in ["blest", "ecf"] {
        let goodput = unlike(scheduler).goodput("f");
        // 10 Mbit/s less headers is 9.4 Mbit/s.
        assert!(goodput > 9.0, "{scheduler}: {goodput}");
        assert!(
            goodput > 2.0 * plain.max(unpenalised),
            "{plain} {unpenalised}"
        );
    }
}

#[test]
fn retransmission_and_penalisation_each_help_minrtt_and_both_help_more() {
    let [both, resend, slow_down, none] = [
        "minrtt",
        "minrtt(penalise=false)",
        "minrtt(opportunistic=false)",
        "minrtt(opportunistic=false, penalise=false)",
    ]
    .map(unlike);
    let goodput = |run: &Measured| run.goodput("f");
    assert!(goodput(&both) > goodput(&resend).max(goodput(&slow_down)));
    assert!(goodput(&none) < goodput(&resend).min(goodput(&slow_down)));
    assert!(again(&both) > 100 && again(&resend) > 100);
    assert_eq!((again(&slow_down), again(&none)), (0, 0));
    // The penalty reduces the window of the slow subflow.
    let slow = |run: &Measured| run.mean("f", 1, |t, i| f64::from(t.cwnd_pkts[i]));
    assert!(slow(&slow_down) < slow(&none));
}

#[test]
fn an_unlimited_window_needs_no_opportunistic_retransmission() {
    for scheduler in ["minrtt", "blest", "ecf"] {
        let run = simulate_one(UNLIKE, &[("scheduler", scheduler)]);
        assert_eq!(again(&run), 0, "{scheduler}");
    }
}

#[test]
fn blest_with_an_unlimited_window_is_minrtt() {
    let tables = |scheduler| {
        simulate_one(UNLIKE, &[("scheduler", scheduler)])
            .outcome
            .tables
    };
    assert!(tables("blest") == tables("minrtt"));
    assert!(tables("blest") != tables("linger"));
}

#[test]
fn redundant_is_as_fast_as_its_best_path_whatever_the_window() {
    let run = unlike("redundant");
    assert!(run.goodput("f") > 9.0);
    // The slow path carries what it can, and all of it had been sent before.
    let slow = run.last("f", 1, |t| &t.sent_pkts);
    assert!(slow > 2000, "{slow}");
    assert!(again(&run) > slow * 9 / 10, "{} of {slow}", again(&run));
}

/// The time in ms that 150 transfers of 80 kB took from when they were connected, shortest first, over two paths that lose
/// 2 % (a lost SYN takes a second whatever the scheduler).
fn short_transfers(scheduler: &str) -> Vec<f64> {
    const N: i32 = 150;
    let text = r#"
duration = "80 s"
sample = "off"
cc = "lia"
[links.a]
from = "S"
to = "D"
rate = "20 Mbit/s"
delay = "15 ms"
loss = "2 %"
[links.b]
from = "S"
to = "D"
rate = "15 Mbit/s"
delay = "20 ms"
loss = "2 %"
[flows.f]
count = 150
paths = [["a"], ["b"]]
traffic = { size = "80 kB" }
start = "uniform(0 s, 70 s)"
"#;
    let run = simulate_one(text, &[("scheduler", scheduler)]);
    let e = &run.outcome.tables.event;
    let at = |kind: EventKind, flow: i32| {
        let of = |i: &usize| e.kind[*i] == kind as u8 && e.flow[*i] == flow;
        (0..e.len()).find(of).map(|i| e.t_ns[i] as f64 / 1e6)
    };
    let time = |f| at(FlowCompleted, f).unwrap() - at(SubflowAdded, f).unwrap();
    let mut times: Vec<f64> = (0..N).map(time).collect();
    times.sort_by(f64::total_cmp);
    times
}

#[test]
fn redundant_has_the_shortest_slow_transfers_under_loss() {
    let p99 = |scheduler| short_transfers(scheduler)[148];
    let redundant = p99("redundant");
    for other in mptcplab_model::sched::declarations()
        .iter()
        .filter(|d| d.name != "redundant")
    {
        assert!(
            redundant < p99(other.name),
            "{}: {} against {redundant}",
            other.name,
            p99(other.name)
        );
    }
}

/// Path a has ten times the RTT of path b, and both have room, so a scheduler may wait for b.
fn shares(scheduler: &str) -> [u64; 2] {
    let text = r#"
duration = "20 s"
cc = "reno"
[links.a]
from = "S"
to = "D"
rate = "30 Mbit/s"
delay = "50 ms"
[links.b]
from = "S"
to = "D"
rate = "40 Mbit/s"
delay = "5 ms"
[flows.f]
paths = [["a"], ["b"]]
cwnd_clamp = "25 packets"
"#;
    let run = simulate_one(text, &[("scheduler", scheduler)]);
    [0, 1].map(|i| run.last("f", i, |t| &t.sent_pkts))
}

#[test]
fn round_robin_waits_for_a_full_subflow_only_if_told_to() {
    let [a, b] = shares("roundrobin");
    // 25 packets per RTT each, of 100 and 10 ms.
    assert!(b > 8 * a && a > 1000, "{a} and {b}");
    let [a, b] = shares("roundrobin(cwnd_limited=false)");
    assert!(a.abs_diff(b) <= 25 && a > 1000, "{a} and {b}");
    let [c, d] = shares("roundrobin(cwnd_limited=false, num_segments=5)");
    assert!(c.abs_diff(d) <= 25 && c > 1000, "{c} and {d}");
}

#[test]
fn backup_is_minrtt_without_repair() {
    let [backup, plain] = ["backup", "minrtt(opportunistic=false, penalise=false)"].map(unlike);
    assert!(backup.outcome.tables == plain.outcome.tables);
}

/// Path a has the lower RTT, but UDP fills its queue from 10 to 20 s; path b is longer and steady.
fn varying(scheduler: &str, from_s: u64, to_s: u64) -> [u64; 2] {
    let text = r#"
duration = "30 s"
cc = "reno"
sample = "100 ms"
[links.a]
from = "S"
to = "D"
rate = "10 Mbit/s"
delay = "10 ms"
queue = "60 packets"
[links.b]
from = "S"
to = "D"
rate = "10 Mbit/s"
delay = "14 ms"
[flows.f]
paths = [["a"], ["b"]]
cwnd_clamp = "12 packets"
rcv_buffer = "17136 B"
[flows.cross]
transport = "udp"
path = ["a"]
rate = "9.9 Mbit/s"
start = "10 s"
stop = "20 s"
"#;
    let run = simulate_one(text, &[("scheduler", scheduler)]);
    let sent = |i, s| run.at("f", i, s as f64 * 1e3, |t| &t.sent_pkts);
    [0, 1].map(|i| sent(i, to_s) - sent(i, from_s))
}

#[test]
fn delayvar_leaves_a_subflow_whose_delay_varies() {
    let calm = varying("delayvar", 2, 10);
    assert!(calm[0] > 10 * calm[1], "{calm:?}");
    let busy = varying("delayvar", 12, 20);
    assert!(busy[1] > 10 * busy[0], "{busy:?}");
}

#[test]
fn delayvar_copies_what_fast_retransmit_repairs_unless_told_not_to() {
    let lossy = |scheduler: &str| {
        let set = [
            ("scheduler", scheduler),
            ("links.slow.rate", "9 Mbit/s"),
            ("links.slow.delay", "12 ms"),
        ];
        simulate_one(UNLIKE, &set)
    };
    let copied = lossy("delayvar");
    let losses = copied.last("f", 0, |t| &t.loss_events) + copied.last("f", 1, |t| &t.loss_events);
    assert!(
        losses > 50 && again(&copied) >= losses / 2,
        "{} of {losses}",
        again(&copied)
    );
    assert_eq!(again(&lossy("delayvar(copy_losses=false)")), 0);
}
