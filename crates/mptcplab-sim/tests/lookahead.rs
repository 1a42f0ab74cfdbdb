//! Without events for packets whose way is known, a run is the same as with an event for every hop.

use crate::common::sweep;
use mptcplab_model::link::Change;
use mptcplab_scenario::Run;
use mptcplab_sim::{Control, Outcome, simulate};
use mptcplab_trace::{LinkRow, LinkTable};
use std::sync::Arc;

/// Chains of links that only one link feeds, a link that two feed, first links of one sender and of two, and traffic that is
/// not TCP. All parameters differ. The UDP flow ends at a link that nothing else uses.
const SCENARIO: &str = r#"
duration = "12 s"
sample = "7 ms"
cc = "olia"
[links.m1]
from = "S"
to = "R1"
rate = "90 Mbit/s"
delay = "1 ms"
queue = "300 packets"
[links.m2]
from = "S"
to = "R2"
rate = "70 Mbit/s"
delay = "2 ms"
queue = "200 packets"
loss = "0.1 %"
[links.n1]
from = "R1"
to = "R3"
rate = "11 Mbit/s"
delay = "13 ms"
queue = "25 packets"
[links.n2]
from = "R2"
to = "R4"
rate = "7 Mbit/s"
delay = "31 ms"
queue = "40 packets"
loss = { gilbert_elliott = { p = "0.3 %", r = "40 %" } }
[links.x1]
from = "R3"
to = "D"
rate = "50 Mbit/s"
delay = "3 ms"
queue = "60 packets"
loss = "0.2 %"
[links.x2]
from = "R4"
to = "D"
rate = "6 Mbit/s"
delay = "5 ms"
queue = "20 kB"
[links.y1]
from = "R3"
to = "E"
rate = "40 Mbit/s"
delay = "4 ms"
[links.t]
from = "T"
to = "R1"
rate = "80 Mbit/s"
delay = "6 ms"
queue = "50 packets"
[links.spare]
from = "E"
to = "F"
rate = "30 Mbit/s"
delay = "8 ms"
[flows.mp]
paths = [["m1", "n1", "x1"], ["m2", "n2", "x2"]]
[flows.one]
transport = "tcp"
cc = "cubic"
path = ["t", "n1", "y1"]
start = "1 s"
[flows.two]
transport = "tcp"
cc = "reno"
path = ["t", "n1", "y1"]
start = "2 s"
stop = "9 s"
send_jitter = "3 ms"
[flows.sctp]
transport = "cmt-sctp"
paths = [["m2", "n2", "x2"]]
start = "3 s"
[flows.noise]
transport = "udp"
path = ["t", "n1", "y1", "spare"]
rate = "300 kbit/s"
"#;

/// So many connections that what their packets need is fetched ahead, some over a link that marks packets.
const MANY: &str = r#"
[links.w]
from = "W"
to = "R1"
rate = "16 Mbit/s"
delay = "7 ms"
queue = "60 packets"
aqm = { name = "red", min = "5 packets", max = "30 packets", max_p = "10 %" }
ecn = true
[flows.p]
transport = "tcp"
cc = "reno"
count = 600
path = ["w", "n1", "y1"]
start = "8 s"
ecn = true
[flows.q]
transport = "tcp"
cc = "cubic"
count = 500
path = ["t", "n1", "y1"]
start = "9 s"
"#;

/// The same, with an event for every hop: a schedule anywhere in the topology brings them back.
fn with_all_events(run: &Run) -> Run {
    let mut run = run.clone();
    let never = Change {
        at_ns: 2 * run.duration_ns,
        rate_bps: None,
        delay_ns: None,
        loss: None,
        up: None,
    };
    let links = Arc::make_mut(&mut run.links);
    let spare = links.iter_mut().find(|link| link.name == "spare");
    spare.expect("a link").config.schedule.push(never);
    run
}

/// The rows of all links but the one with the schedule, which counts a wait when it ends.
fn rows(run: &Run, t: &LinkTable) -> Vec<LinkRow> {
    let spare = run.links.iter().position(|link| link.name == "spare");
    let row = |i: usize| LinkRow {
        t_ns: t.t_ns[i],
        link: t.link[i],
        queue_pkts: t.queue_pkts[i],
        queue_bytes: t.queue_bytes[i],
        arrived_pkts: t.arrived_pkts[i],
        dropped_random_pkts: t.dropped_random_pkts[i],
        dropped_queue_pkts: t.dropped_queue_pkts[i],
        marked_pkts: t.marked_pkts[i],
        departed_pkts: t.departed_pkts[i],
        departed_bytes: t.departed_bytes[i],
        queue_delay_sum_ns: t.queue_delay_sum_ns[i],
        queue_delay_max_ns: t.queue_delay_max_ns[i],
    };
    (0..t.len())
        .filter(|&i| Some(t.link[i] as usize) != spare)
        .map(row)
        .collect()
}

fn compare(run: &Run) -> Outcome {
    let expected = simulate(&with_all_events(run), &Control::default()).expect("a run");
    let found = simulate(run, &Control::default()).expect("a run");
    assert_eq!(found.packet_hops, expected.packet_hops);
    // The link with the schedule has internal steps.
    assert!(found.events < expected.events && found.events > found.packet_hops);
    assert!(found.tables.flow == expected.tables.flow, "flows");
    assert!(found.tables.subflow == expected.tables.subflow, "subflows");
    assert!(found.tables.event == expected.tables.event, "events");
    let (found_rows, rows) = (
        rows(run, &found.tables.link),
        rows(run, &expected.tables.link),
    );
    let difference = found_rows.iter().zip(&rows).find(|(a, b)| a != b);
    assert_eq!(difference, None);
    assert_eq!(found_rows.len(), rows.len());
    found
}

#[test]
fn a_run_is_the_same_with_an_event_for_every_hop() {
    for (jitter, delay) in [
        ("0 s", "0 s"),
        ("200 us", "0 s"),
        ("5 ms", "1700 us"),
        ("0 s", "90 us"),
    ] {
        let sweep = sweep(
            SCENARIO,
            &[
                ("tcp.send_jitter", jitter),
                ("tcp.host_delay", delay),
                ("repetitions", "3"),
            ],
        );
        for run in &sweep.runs {
            let outcome = compare(run);
            let losses = &outcome.tables.link;
            let sum = |column: &[u64]| column.iter().copied().max().unwrap_or(0);
            assert!(sum(&losses.dropped_random_pkts) > 10 && sum(&losses.dropped_queue_pkts) > 10);
        }
    }
}

#[test]
fn a_run_that_samples_seldom_is_the_same() {
    let sweep = sweep(
        SCENARIO,
        &[("sample", "\"5 s\""), ("tcp.send_jitter", "1 ms")],
    );
    compare(&sweep.runs[0]);
}

#[test]
fn a_run_of_many_connections_is_the_same() {
    for jitter in ["0 s", "200 us"] {
        let sweep = sweep(&[SCENARIO, MANY].concat(), &[("tcp.send_jitter", jitter)]);
        let outcome = compare(&sweep.runs[0]);
        assert!(outcome.tables.link.marked_pkts.iter().any(|&n| n > 100));
    }
}
