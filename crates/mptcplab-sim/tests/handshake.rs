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

/// With the scheduler of Linux, nothing follows the first segment until it is acknowledged, not even the SYN of a join; without
/// its ACK the kernel would fall back to TCP.
#[test]
fn upstream_sends_the_first_segment_alone_and_joins_when_it_is_acknowledged() {
    let set = [("scheduler", "linger"), ("sample", "1 ms")];
    let run = simulate_one(TWO_PATHS, &set);
    let first = run.events("f", 0, SubflowAdded)[0];
    close(first.0, 40.001_312);
    let sent = |subflow, ms| run.at("f", subflow, ms, |t| &t.sent_pkts);
    assert_eq!([sent(0, 41.0), sent(0, 80.0), sent(0, 81.0)], [1, 1, 11]);
    // A full segment of 1514 bytes there and an ACK of 74 back.
    let acknowledged = first.0 + 40.012_704;
    close(
        run.events("f", 1, SubflowAdded)[0].0,
        acknowledged + 140.002_784,
    );
    // The application has more to send, but it is not the receiver that limits it.
    assert_eq!(run.flow_at("f", 79.0, |t| &t.blocked_ns), 0);
}

/// So does a connection of one path; TCP, other schedulers and connections with data in both directions do not.
#[test]
fn only_upstream_mptcp_sends_the_first_segment_alone() {
    let sent = |text: &str, set: &[(&str, &str)]| {
        let set = [set, &[("sample", "1 ms")]].concat();
        simulate_one(text, &set).at("f", 0, 79.0, |t| &t.sent_pkts)
    };
    let one_path = TWO_PATHS.replace(
        "[[\"near\"], [\"far\"]]",
        "[[\"near\"]]\ntransport = \"mptcp\"",
    );
    let tcp = TWO_PATHS.replace("[[\"near\"], [\"far\"]]", "[[\"near\"]]");
    let linger = ("scheduler", "linger");
    assert_eq!(sent(&one_path, &[linger]), 1);
    assert_eq!(sent(&tcp, &[]), 10);
    assert_eq!(sent(TWO_PATHS, &[]), 10);
    let messages = "{ messages = { size = \"9 kB\", interval = \"1 s\", answer = \"100 B\" } }";
    assert_eq!(sent(TWO_PATHS, &[linger, ("flows.f.traffic", messages)]), 7);
    // Nor do the answers: the first one is as quick as with another scheduler.
    let answers = "{ messages = { size = \"1 kB\", interval = \"1 s\", answer = \"9 kB\" } }";
    let arrived = |scheduler| {
        let set = [("scheduler", scheduler), ("flows.f.traffic", answers)];
        let run = simulate_one(TWO_PATHS, &set);
        run.outcome.tables.request.t_ns[0]
    };
    assert_eq!(arrived("linger"), arrived("minrtt"));
}

/// A first segment that is lost is sent again after a timeout, and joins wait for it.
#[test]
fn joins_wait_for_a_first_segment_that_was_lost() {
    let outage = "delay = \"20 ms\"\nschedule = [{ at = \"30 ms\", up = false }, { at = \"90 ms\", up = true }]";
    let text = TWO_PATHS.replace("delay = \"20 ms\"", outage);
    let run = simulate_one(&text, &[("scheduler", "linger")]);
    let joined = run.events("f", 1, SubflowAdded)[0].0;
    let delivered = run.events("f", -1, FirstByte)[0].0;
    assert!(delivered > 100.0, "{delivered} ms");
    // The ACK's way, and the join.
    close(joined, delivered + 20.000_592 + 140.002_784);
}

/// The subflow that opens the connection is removed before its first segment is acknowledged: the other one opens it then.
#[test]
fn a_connection_whose_first_segment_was_never_acknowledged_is_opened_by_the_next_subflow() {
    let subflows = "subflows = [{ name = \"a\", path = [\"near\"], stop = \"50 ms\" }, { name = \"b\", path = [\"far\"] }]";
    let text = TWO_PATHS.replace("paths = [[\"near\"], [\"far\"]]", subflows);
    let run = simulate_one(&text, &[("scheduler", "linger")]);
    assert_eq!(run.last("f", 0, |t| &t.sent_pkts), 1);
    // A handshake of MP_CAPABLE, which takes one round trip and not two.
    close(
        run.events("f", 1, SubflowAdded)[0].1 as f64 / 1e6,
        70.001_312,
    );
    assert!(run.last("f", 1, |t| &t.acked_pkts) > 500);
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
fn a_lost_syn_is_sent_again_after_1_3_and_7_seconds_or_as_in_linux_after_1_to_5_and_7() {
    for (until, like, expected) in [
        ("0.9 s", "none", 1040.0),
        ("2.5 s", "none", 3040.0),
        ("6.9 s", "none", 7040.0),
        ("0.9 s", "linux-6.18", 1040.0),
        ("1.1 s", "linux-7.3", 2040.0),
        ("4.5 s", "linux-6.18", 5040.0),
        ("5.1 s", "linux-7.3", 7040.0),
        ("7.1 s", "linux-7.3", 11_040.0),
    ] {
        let down = format!(
            "delay = \"20 ms\"\nschedule = [{{ at = \"0 s\", up = false }}, {{ at = \"{until}\", up = true }}]"
        );
        let text = TWO_PATHS.replace("delay = \"20 ms\"", &down);
        let set = [
            ("duration", "12 s"),
            ("tcp.like", like),
            ("tcp.tso", "false"),
            ("scheduler", "minrtt"),
        ];
        let run = simulate_one(&text, &set);
        let first = run.events("f", 0, SubflowAdded)[0].0;
        assert!(
            (first - expected).abs() < 0.01,
            "like {like}, down until {until}: established at {first} ms"
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
