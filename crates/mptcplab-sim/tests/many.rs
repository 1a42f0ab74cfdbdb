//! With thousands of connections, what the next packets need is fetched ahead. That changes nothing.

use crate::common::simulate_one;
use mptcplab_trace::{EventKind, Tables};

/// A subflow's path with losses, one with a small queue, a sender that is paced, and traffic that is not TCP. All parameters
/// differ.
const SCENARIO: &str = r#"
duration = "6 s"
sample = "9 ms"
cc = "lia"
[links.a]
from = "S"
to = "D"
rate = "17 Mbit/s"
delay = "12 ms"
queue = "30 packets"
loss = "0.3 %"
[links.b]
from = "S"
to = "D"
rate = "11 Mbit/s"
delay = "31 ms"
queue = "20 kB"
[flows.mp]
paths = [["a"], ["b"]]
[flows.one]
transport = "tcp"
cc = "reno"
path = ["b"]
start = "600 ms"
[flows.paced]
transport = "tcp"
cc = "bbr"
path = ["a"]
start = "900 ms"
[flows.sctp]
transport = "cmt-sctp"
paths = [["a"], ["b"]]
start = "1.2 s"
[flows.udp]
transport = "udp"
path = ["b"]
rate = "800 kbit/s"
"#;

/// How many flows that has.
const FLOWS: u64 = 5;

/// When the many connections start.
const LATE_NS: u64 = 5_900_000_000;
const LATE: &str = r#"
[flows.z]
transport = "tcp"
count = 1100
path = ["b"]
start = "5.9 s"
"#;

/// What was recorded before the many start: of links, of subflows and of events, each with its time.
type Rows = (
    Vec<(u64, [u64; 4])>,
    Vec<(u64, [u64; 6])>,
    Vec<(u64, [u64; 4], u8)>,
);

fn before_late(tables: &Tables) -> Rows {
    let (l, s, e) = (&tables.link, &tables.subflow, &tables.event);
    let links = (0..l.len()).map(|i| {
        let counted = [l.departed_bytes[i], l.dropped_queue_pkts[i]];
        let (link, queue) = (u64::from(l.link[i]), u64::from(l.queue_pkts[i]));
        (l.t_ns[i], [link, queue, counted[0], counted[1]])
    });
    let subflows = (0..s.len()).map(|i| {
        let of = [s.flow[i], s.subflow[i], s.cwnd_pkts[i], s.srtt_us[i]].map(u64::from);
        let counted = [s.acked_pkts[i], s.retx_pkts[i]];
        (
            s.t_ns[i],
            [of[0], of[1], of[2], of[3], counted[0], counted[1]],
        )
    });
    let events = (0..e.len()).map(|i| {
        let of = [e.flow[i], e.subflow[i]].map(|id| i64::from(id) as u64);
        let link = i64::from(e.link[i]) as u64;
        (e.t_ns[i], [of[0], of[1], link, e.value[i]], e.kind[i])
    });
    (
        links.filter(|row| row.0 < LATE_NS).collect(),
        subflows
            .filter(|row| row.0 < LATE_NS && row.1[0] < FLOWS)
            .collect(),
        events.filter(|row| row.0 < LATE_NS).collect(),
    )
}

#[test]
fn a_run_is_the_same_until_many_connections_start() {
    let few = simulate_one(SCENARIO, &[]).outcome;
    let many = simulate_one(&[SCENARIO, LATE].concat(), &[]).outcome;
    let (found, expected) = (before_late(&many.tables), before_late(&few.tables));
    assert!(found.0 == expected.0, "links");
    assert!(found.1 == expected.1, "subflows");
    assert!(found.2 == expected.2, "events");
    let losses = expected
        .2
        .iter()
        .filter(|e| e.2 == EventKind::LossEvent as u8);
    assert!(expected.1.len() > 2000 && losses.count() > 10);
    assert!(many.packet_hops > few.packet_hops);
}
