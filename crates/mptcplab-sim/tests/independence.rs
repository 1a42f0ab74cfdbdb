//! Results do not depend on other parts of the topology, on the order in the file or on sampling; UDP does not react to congestion.

use crate::common::{Measured, simulate_one};
use mptcplab_trace::EventKind::{FlowStarted, FlowStopped};

const LINKS: &str = r#"
[links.L]
from = "S"
to = "D"
rate = "20 Mbit/s"
delay = "13 ms"
queue = "40 packets"
loss = "0.4 %"
[links.K]
from = "S"
to = "D"
rate = "12 Mbit/s"
delay = "29 ms"
queue = "25 packets"
loss = "0.9 %"
"#;
const HEAD: &str =
    "duration = \"20 s\"\nsample = \"100 ms\"\nprofile = \"linux-acked\"\ncc = \"lia\"\n";
const MP: &str = "[flows.mp]\npaths = [[\"L\"], [\"K\"]]\nstart = \"uniform(0 s, 1 s)\"\n";
const TCP: &str = "[flows.tcp]\ntransport = \"tcp\"\ncc = \"cubic\"\npath = [\"K\"]\nstart = \"uniform(1 s, 2 s)\"\n";

/// The totals of a flow: bytes, and per subflow packets sent, retransmitted and lost.
fn result(run: &Measured, flow: &str, subflows: u32) -> (u64, Vec<[u64; 4]>) {
    let counters = (0..subflows).map(|s| {
        [
            run.last(flow, s, |t| &t.sent_pkts),
            run.last(flow, s, |t| &t.retx_pkts),
            run.last(flow, s, |t| &t.lost_pkts),
            run.last(flow, s, |t| &t.rtt_sum_us),
        ]
    });
    (run.delivered_bytes(flow), counters.collect())
}

#[test]
fn the_order_of_links_and_flows_in_the_file_does_not_matter() {
    let (first, second) = LINKS.split_at(LINKS.find("[links.K]").unwrap());
    let run = simulate_one(&format!("{HEAD}{LINKS}{MP}{TCP}"), &[]);
    let turned = simulate_one(&format!("{HEAD}{second}{first}{TCP}{MP}"), &[]);
    assert_eq!(turned.run.links[0].name, "K");
    for (flow, subflows) in [("mp", 2), ("tcp", 1)] {
        let (bytes, counters) = result(&run, flow, subflows);
        assert!(bytes > 1_000_000 && counters[0][1] > 0);
        assert_eq!((bytes, counters), result(&turned, flow, subflows), "{flow}");
    }
}

#[test]
fn what_shares_no_link_changes_nothing() {
    let alone = simulate_one(&format!("{HEAD}{LINKS}{MP}"), &[]);
    let other = "[links.far]\nfrom = \"X\"\nto = \"Y\"\nrate = \"9 Mbit/s\"\ndelay = \"7 ms\"\nloss = \"2 %\"\n\
                 [flows.away]\ntransport = \"tcp\"\ncc = \"reno\"\npath = [\"far\"]\n";
    let both = simulate_one(&format!("{HEAD}{LINKS}{other}{MP}"), &[]);
    assert_eq!(result(&alone, "mp", 2), result(&both, "mp", 2));
    assert!(result(&both, "away", 1).1[0][2] > 10);
}

#[test]
fn from_a_thousand_connections_on_only_the_time_of_the_processor_changes() {
    let head = HEAD.replace("20 s", "4 s");
    let crowd = "[flows.tcp]\ntransport = \"tcp\"\ncount = 999\npath = [\"L\"]\nstart = \"uniform(0 s, 1 s)\"\n";
    let one_more = "[flows.never]\ntransport = \"tcp\"\npath = [\"L\"]\nstart = \"3.999999 s\"\n";
    let fewer = simulate_one(&format!("{head}{LINKS}{crowd}"), &[]);
    let many = simulate_one(&format!("{head}{LINKS}{crowd}{one_more}"), &[]);
    assert_eq!(fewer.outcome.packet_hops, many.outcome.packet_hops);
    // One more connection starts, too late for any packet of it to arrive.
    assert_eq!(fewer.outcome.events + 1, many.outcome.events);
    for flow in (1..=999).map(|number| format!("tcp-{number}")) {
        assert_eq!(result(&fewer, &flow, 1), result(&many, &flow, 1), "{flow}");
    }
}

#[test]
fn links_with_other_names_lose_other_packets() {
    let text = format!("{HEAD}{LINKS}[flows.f]\ntransport = \"tcp\"\npath = [\"L\"]\n");
    let renamed = text
        .replace("[links.L]", "[links.M]")
        .replace("[\"L\"]", "[\"M\"]");
    let results = [
        result(&simulate_one(&text, &[]), "f", 1),
        result(&simulate_one(&renamed, &[]), "f", 1),
        result(&simulate_one(&text, &[("seed", "7")]), "f", 1),
    ];
    assert!(
        results[0] != results[1] && results[0] != results[2],
        "{results:?}"
    );
}

#[test]
fn sampling_only_watches() {
    let text = format!("{HEAD}{LINKS}{MP}{TCP}");
    let sampled = simulate_one(&text, &[]);
    assert!(sampled.outcome.tables == simulate_one(&text, &[]).outcome.tables);
    for set in [("sample", "off"), ("sample", "7 ms"), ("per_ack", "true")] {
        let run = simulate_one(&text, &[set]);
        assert_eq!(
            run.outcome.packet_hops, sampled.outcome.packet_hops,
            "{set:?}"
        );
        assert!(
            run.outcome.tables.event == sampled.outcome.tables.event,
            "{set:?}"
        );
        for (flow, subflows) in [("mp", 2), ("tcp", 1)] {
            assert_eq!(
                result(&run, flow, subflows),
                result(&sampled, flow, subflows),
                "{set:?}"
            );
        }
    }
}

#[test]
fn per_ack_rows_show_every_ack() {
    let text = format!("{HEAD}{LINKS}[flows.f]\ntransport = \"tcp\"\npath = [\"L\"]\n");
    let run = simulate_one(
        &text,
        &[("per_ack", "true"), ("sample", "off"), ("profile", "rfc")],
    );
    // One ACK per data packet received, a row for each, and rows at the start and the end.
    let rows = run.outcome.tables.subflow.len() as u64;
    let acks = run.link_last("L~", |t| &t.departed_pkts) - 1;
    assert!(acks > 1000);
    let on_the_way = acks + 2 - rows;
    // ACKs that had not arrived after 13 ms, of 1.65 packets per ms.
    assert!(on_the_way <= 22, "{rows} rows, {acks} ACKs");
}

const UDP: &str = r#"
duration = "10 s"
[links.L]
from = "S"
to = "D"
rate = "8 Mbit/s"
delay = "5 ms"
[flows.u]
transport = "udp"
path = ["L"]
rate = "3 Mbit/s"
packet = "1000 bytes"
start = "1 s"
stop = "9 s"
"#;

#[test]
fn udp_keeps_its_rate_exactly() {
    let run = simulate_one(UDP, &[]);
    // 1014 bytes on the wire every 2.704 ms, in [1 s, 9 s): 2958.58, so 2959 packets of 972 bytes.
    assert_eq!(run.link_last("L", |t| &t.arrived_pkts), 2959);
    assert_eq!(run.delivered_bytes("u"), 2959 * 972);
    assert_eq!(run.flow_at("u", 10_000.0, |t| &t.sent_bytes), 2959 * 972);
    assert_eq!(run.events("u", -1, FlowStarted)[0].0, 1000.0);
}

#[test]
fn udp_rests_between_its_periods() {
    // Periods of 500 ms at 1 s, 2.5 s, 4 s, 5.5 s, 7 s and 8.5 s: 185 packets each.
    let run = simulate_one(
        UDP,
        &[("flows.u.traffic", "{ on = \"500 ms\", off = \"1 s\" }")],
    );
    assert_eq!(run.link_last("L", |t| &t.arrived_pkts), 6 * 185);
    assert_eq!(run.flow_at("u", 1_510.0, |t| &t.sent_bytes), 185 * 972);
    assert_eq!(run.flow_at("u", 2_490.0, |t| &t.sent_bytes), 185 * 972);
    assert_eq!(
        run.flow_at("u", 2_510.0, |t| &t.sent_bytes),
        (185 + 4) * 972
    );
}

#[test]
fn a_flow_sends_between_its_start_and_its_stop() {
    let text = format!(
        "{HEAD}{LINKS}[flows.f]\ntransport = \"tcp\"\npath = [\"L\"]\nstart = \"2 s\"\nstop = \"5 s\"\n"
    );
    let run = simulate_one(&text, &[]);
    assert_eq!(run.events("f", -1, FlowStarted)[0].0, 2000.0);
    assert_eq!(run.events("f", -1, FlowStopped)[0].0, 5000.0);
    assert_eq!(run.at("f", 0, 2000.0, |t| &t.sent_pkts), 0);
    let sent = run.flow_at("f", 5000.0, |t| &t.sent_bytes);
    assert!(sent > 100_000);
    // Data that the subflow already had are still delivered, but nothing new is.
    assert_eq!(run.flow_at("f", 20_000.0, |t| &t.sent_bytes), sent);
    assert_eq!(run.delivered_bytes("f"), sent);
}
