//! The cost of opening a connection and its subflows (RFC 9293, RFC 6298, RFC 8684 sections 3.1 and 3.2).

use crate::common::simulate_one;
use mptcplab_trace::EventKind::{FirstByte, SubflowAdded};

/// Two paths at 1 Gbit/s (8 ns a byte, so headers cost next to nothing) with RTTs of 40 and 70 ms.
const TWO_PATHS: &str = r#"
duration = "9 s"
profile = "rfc"
cc = "reno"
[links.near]
from = "S"
to = "D"
rate = "1 Gbit/s"
delay = "20 ms"
[links.far]
from = "S"
to = "D"
rate = "1 Gbit/s"
delay = "35 ms"
[flows.f]
paths = [["near"], ["far"]]
cwnd_clamp = "12 packets"
"#;

fn close(measured: f64, expected: f64) {
    assert!(
        (measured - expected).abs() < 1e-5,
        "{measured} ms, expected {expected} ms"
    );
}

#[test]
fn tcp_carries_data_after_one_round_trip() {
    let text = TWO_PATHS.replace("[[\"near\"], [\"far\"]]", "[[\"near\"]]");
    let run = simulate_one(&text, &[]);
    // SYN and SYN/ACK: 60 + 14 bytes each, 592 ns each.
    close(run.events("f", 0, SubflowAdded)[0].0, 40.001_184);
    // The first segment takes the time of 1514 bytes and the delay of one way.
    close(run.events("f", -1, FirstByte)[0].0, 60.013_296);
}

#[test]
fn a_join_costs_two_round_trips_after_the_first_handshake() {
    let run = simulate_one(TWO_PATHS, &[]);
    // MP_CAPABLE: SYN 60 + 4 + 14 bytes, SYN/ACK 60 + 12 + 14 bytes.
    let first = run.events("f", 0, SubflowAdded)[0];
    close(first.0, 40.001_312);
    // MP_JOIN: SYN 86, SYN/ACK 90, ACK 98, the fourth packet 74 bytes; the join begins when the first is open.
    let (added, took) = run.events("f", 1, SubflowAdded)[0];
    close(took as f64 / 1e6, 140.002_784);
    close(added, first.0 + 140.002_784);
    assert_eq!(run.at("f", 1, 180.0, |t| &t.sent_pkts), 0);
    assert!(run.at("f", 1, 190.0, |t| &t.sent_pkts) > 0);
}

#[test]
fn a_join_waits_for_its_start() {
    let text = TWO_PATHS.replace(
        "paths = [[\"near\"], [\"far\"]]",
        "subflows = [{ path = [\"near\"] }, { path = [\"far\"], start = \"300 ms\" }]",
    );
    let run = simulate_one(&text, &[]);
    close(run.events("f", 1, SubflowAdded)[0].0, 440.002_784);
}

#[test]
fn a_lost_syn_is_sent_again_after_1_3_and_7_seconds() {
    for (until, expected) in [("0.9 s", 1040.0), ("2.5 s", 3040.0), ("6.9 s", 7040.0)] {
        let down = format!(
            "delay = \"20 ms\"\nschedule = [{{ at = \"0 s\", up = false }}, {{ at = \"{until}\", up = true }}]"
        );
        let text = TWO_PATHS.replace("delay = \"20 ms\"", &down);
        let run = simulate_one(&text, &[]);
        let first = run.events("f", 0, SubflowAdded)[0].0;
        assert!(
            (first - expected).abs() < 0.01,
            "down until {until}: established at {first} ms"
        );
        // RFC 6298 section 3: the retried handshake gives an RTT by its timestamp, not by the first SYN.
        let rtt = run.at("f", 0, first + 20.0, |t| &t.srtt_us);
        assert!((38_000..=42_500).contains(&rtt), "srtt {rtt} us");
    }
}

#[test]
fn a_lost_third_packet_of_a_join_is_sent_again_after_two_round_trips() {
    // The join's SYN leaves at 40 ms, and its SYN/ACK is back at 110 ms, just after the path has failed.
    let text = TWO_PATHS.replace(
        "delay = \"35 ms\"",
        "delay = \"35 ms\"\nschedule = [{ at = \"105 ms\", up = false }, { at = \"500 ms\", up = true }]",
    );
    let run = simulate_one(&text, &[]);
    let joined = run.events("f", 1, SubflowAdded)[0].0;
    // The third packet is sent again every 140 ms and some microseconds, the last time at 530 ms. The fourth packet
    // answers it.
    assert!((joined - 600.01).abs() < 0.01, "joined at {joined} ms");
}
