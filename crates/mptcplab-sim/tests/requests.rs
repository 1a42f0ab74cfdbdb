//! Requests, responses and messages on connections that last: exact times, conservation of bytes, and what a slow path, a loss and
//! a pause do to them.

use crate::common::{Measured, simulate_all, simulate_one, sweep};
use mptcplab_sim::{Control, simulate};
use mptcplab_trace::{EventKind, NOT_MEASURED, RequestRow};

/// One link of 10 Mbit/s and 20 ms each way without layer 2: a full segment is 1500 bytes, 1.2 ms; a SYN is 60 bytes, 0.048 ms.
/// The handshake takes 40.096 ms, and its last packet 20 ms more. Every segment is acknowledged (52 bytes, 0.0416 ms).
const CLEAN: &str = r#"
duration = "10 s"
profile = "rfc"
[links.l]
from = "S"
to = "D"
rate = "10 Mbit/s"
delay = "20 ms"
overhead = "0 bytes"
[tcp]
send_jitter = "0 s"
[flows.f]
start = "1 s"
path = ["l"]
cc = "cubic"
traffic = { requests = { request = "448 bytes", response = "7240 bytes", think = "100 ms", repeat = 4 } }
"#;

/// Two different lossy paths; flows of requests, of echoes and of messages that are just delivered, and a download.
const BUSY: &str = r#"
duration = "40 s"
[links.a]
from = "S"
to = "D"
rate = "20 Mbit/s"
delay = "5 ms"
queue = "60 packets"
loss = "1 %"
reverse = { loss = "2 %" }
[links.b]
from = "S"
to = "D"
rate = "8 Mbit/s"
delay = "15 ms"
queue = "90 packets"
loss = "0.5 %"
[tcp]
send_jitter = "300 us"
[flows.bulk]
path = ["b"]
cc = "reno"
[flows.web]
start = "500 ms"
stop = "30 s"
paths = [["a"], ["b"]]
cc = "lia"
traffic = { requests = { response = { law = "pareto", mean = "60 kB", shape = 1.5 }, request = { law = "exponential", mean = "2 kB" }, arrivals = "9 / s" } }
[flows.rpc]
stop = "32 s"
paths = [["b"], ["a"]]
cc = "olia"
traffic = { requests = { response = "4321 bytes", request = "123 bytes", think = "exponential(40 ms)" } }
[flows.ssh]
start = "700 ms"
stop = "31 s"
path = ["a"]
cc = "cubic"
traffic = { messages = { size = "61 bytes", answer = "87 bytes", arrivals = "6 / s" } }
[flows.game]
start = "900 ms"
stop = "33 s"
paths = [["a"], ["b"]]
cc = "balia"
traffic = { messages = { size = "211 bytes", interval = "33 ms" } }
"#;

fn requests(run: &Measured, flow: &str) -> Vec<RequestRow> {
    let f = run.run.flows.iter().position(|f| f.name == flow).unwrap() as u32;
    let t = &run.outcome.tables.request;
    let row = |i: usize| RequestRow {
        t_ns: t.t_ns[i],
        flow: t.flow[i],
        request: t.request[i],
        request_bytes: t.request_bytes[i],
        response_bytes: t.response_bytes[i],
        first_byte_ns: t.first_byte_ns[i],
        completion_ns: t.completion_ns[i],
    };
    let mut rows: Vec<_> = (0..t.len()).filter(|&i| t.flow[i] == f).map(row).collect();
    rows.sort_by_key(|row| row.request);
    rows
}

fn mean_ms(rows: &[RequestRow]) -> f64 {
    let sum: u64 = rows.iter().map(|row| row.completion_ns).sum();
    sum as f64 / 1e6 / rows.len() as f64
}

fn slowest_ms(rows: &[RequestRow]) -> u64 {
    rows.iter().map(|row| row.completion_ns).max().unwrap() / 1_000_000
}

#[test]
fn a_response_takes_its_request_a_round_trip_and_its_segments() {
    let run = simulate_one(CLEAN, &[]);
    let rows = requests(&run, "f");
    // Request: 500 bytes, 0.4 ms, and 20 ms. Its ACK leaves before the response, which is five segments: 6 ms, and 20 ms.
    let (first, last) = (
        20_400_000 + 41_600 + 21_200_000,
        20_400_000 + 41_600 + 26_000_000,
    );
    let begins: Vec<u64> = rows.iter().map(|row| row.t_ns).collect();
    let second = 1_060_096_000 + last + 100_000_000;
    let step = last + 100_000_000;
    assert_eq!(
        begins,
        [1_060_096_000, second, second + step, second + 2 * step]
    );
    for row in &rows {
        assert_eq!((row.first_byte_ns, row.completion_ns), (first, last));
        assert_eq!((row.request_bytes, row.response_bytes), (448, 7240));
    }
    assert_eq!(run.delivered_bytes("f"), 4 * 7240);
    assert!(run.outcome.tables.transfer.is_empty());
}

#[test]
fn a_message_takes_one_way_and_its_echo_two() {
    let of = |traffic: &str| {
        let run = simulate_one(CLEAN, &[("flows.f.traffic", traffic)]);
        requests(&run, "f")
    };
    let rows = of("{ messages = { size = \"98 bytes\", interval = \"50 ms\", repeat = 3 } }");
    let begins: Vec<u64> = rows.iter().map(|row| row.t_ns / 1000).collect();
    assert_eq!(begins, [1_040_096, 1_090_096, 1_140_096]);
    // 150 bytes: 0.12 ms.
    for row in &rows {
        assert_eq!((row.completion_ns, row.response_bytes), (20_120_000, 0));
        assert_eq!(row.first_byte_ns, row.completion_ns);
    }
    let echo = "{ messages = { size = \"98 bytes\", answer = \"198 bytes\", interval = \"50 ms\", repeat = 3 } }";
    for row in of(echo) {
        // An ACK of 0.0416 ms, then 250 bytes: 0.2 ms.
        assert_eq!(row.completion_ns, 20_120_000 + 41_600 + 20_200_000);
        assert_eq!((row.request_bytes, row.response_bytes), (98, 198));
    }
}

#[test]
fn requests_of_an_open_loop_do_not_wait_and_their_responses_keep_the_order() {
    // A response takes 80 ms on the link, and 20 a second come: they queue more and more.
    let traffic = "{ requests = { response = \"100 kB\", arrivals = \"20 / s\" } }";
    let run = simulate_one(CLEAN, &[("flows.f.traffic", traffic)]);
    let rows = requests(&run, "f");
    let done: Vec<u64> = rows
        .iter()
        .filter(|row| row.completion_ns != NOT_MEASURED)
        .map(|row| row.t_ns + row.completion_ns)
        .collect();
    assert!(done.is_sorted() && done.len() > 95, "{}", done.len());
    assert!(rows.len() > done.len() + 40, "{}", rows.len());
    assert!(rows.iter().rev().all(|row| row.t_ns < 10_000_000_000));
    assert!(rows[90].completion_ns > 3 * rows[20].completion_ns);
}

#[test]
fn every_byte_that_was_asked_for_is_delivered_with_every_scheduler() {
    for scheduler in [
        "minrtt",
        "roundrobin",
        "blest",
        "ecf",
        "redundant",
        "linger",
    ] {
        let run = simulate_one(BUSY, &[("scheduler", scheduler)]);
        for (flow, least) in [("web", 200), ("rpc", 100), ("ssh", 150), ("game", 900)] {
            let rows = requests(&run, flow);
            assert!(rows.len() > least, "{scheduler} {flow}: {}", rows.len());
            let mut asked = 0;
            for (i, row) in rows.iter().enumerate() {
                assert_eq!(row.request as usize, i, "{scheduler} {flow}");
                assert_ne!(row.completion_ns, NOT_MEASURED, "{scheduler} {flow} {i}");
                assert!(row.first_byte_ns <= row.completion_ns);
                asked += match flow {
                    "web" | "rpc" => row.response_bytes,
                    _ => row.request_bytes,
                };
            }
            assert_eq!(run.delivered_bytes(flow), asked, "{scheduler} {flow}");
            assert_eq!(run.sent_bytes(flow), asked, "{scheduler} {flow}");
            let times = rows.iter().map(|row| row.t_ns + row.completion_ns);
            assert!(times.is_sorted(), "{scheduler} {flow}");
        }
    }
}

#[test]
fn the_same_seed_gives_the_same_requests_and_another_one_others() {
    let sweep = sweep(BUSY, &[("repetitions", "2"), ("duration", "\"9 s\"")]);
    let once = |i: usize| {
        simulate(&sweep.runs[i], &Control::default())
            .unwrap()
            .tables
    };
    let first = once(0);
    assert!(first.request.len() > 100);
    assert_eq!(first, once(0));
    assert_ne!(first.request, once(1).request);
}

/// Times and sizes are those of the flow alone, whatever else is in the network.
#[test]
fn another_flow_does_not_change_when_messages_are_sent() {
    let with = simulate_one(BUSY, &[("duration", "\"20 s\"")]);
    let without = simulate_one(
        BUSY,
        &[("duration", "\"20 s\""), ("flows.bulk.start", "\"19 s\"")],
    );
    let plan = |run: &Measured| -> Vec<(u64, u64)> {
        let rows = requests(run, "game");
        rows.iter()
            .map(|r| (r.t_ns - rows[0].t_ns, r.request_bytes))
            .collect()
    };
    assert_eq!(plan(&with), plan(&without));
    let delays = |run: &Measured| mean_ms(&requests(run, "game"));
    assert_ne!(delays(&with), delays(&without));
}

#[test]
fn messages_that_wait_together_share_segments() {
    // One packet at a time, and a round trip of 40 ms: the forty messages of a round trip share the segments after the first.
    let traffic = "{ messages = { size = \"100 bytes\", interval = \"1 ms\", repeat = 200 } }";
    let changes = [
        ("flows.f.traffic", traffic),
        ("flows.f.initial_cwnd", "\"1 packets\""),
        ("flows.f.cwnd_clamp", "\"1 packets\""),
    ];
    let run = simulate_one(CLEAN, &changes);
    let rows = requests(&run, "f");
    assert!(rows.len() == 200 && run.delivered_bytes("f") == 20_000);
    let t = &run.outcome.tables.subflow;
    // 20 kB are 13.8 segments; the first is a message alone, and rounds of 40 ms leave three segments each.
    let sent = t.sent_pkts[t.len() - 1];
    assert!((15..=20).contains(&sent), "{sent}");
    let done: Vec<u64> = rows
        .iter()
        .map(|row| row.t_ns + row.completion_ns)
        .collect();
    assert!(done.is_sorted());
    // Many are complete at the same time.
    let distinct = done.windows(2).filter(|pair| pair[0] != pair[1]).count() as u64 + 1;
    assert_eq!(distinct, sent);
}

/// The scheduler gives a burst to a subflow that can send one packet at a time: short segments wait there while later messages
/// are written.
#[test]
fn a_short_segment_that_waits_on_its_subflow_keeps_its_length() {
    let changes = [
        ("scheduler", "linger"),
        ("tcp.cwnd_clamp", "\"1 packets\""),
        ("tcp.reinject", "false"),
        (
            "flows.page.traffic",
            "{ messages = { size = \"1600 bytes\", interval = \"7 ms\", repeat = 60 } }",
        ),
    ];
    let run = simulate_one(SLOW_PATH, &changes);
    assert_eq!(run.delivered_bytes("page"), 60 * 1600);
    let t = &run.outcome.tables.subflow;
    let received = t.rx_payload_bytes.iter().rev().take(2).sum::<u64>();
    let flow = &run.outcome.tables.flow;
    let copies = flow.reinjected_pkts[flow.len() - 1];
    assert_eq!((received, copies), (60 * 1600, 0));
}

#[test]
fn a_pause_of_a_timeout_closes_the_window_unless_the_profile_forbids_it() {
    // 40 segments: 48 ms on the link. With a window of ten, two more round trips are needed.
    let traffic = "{ requests = { response = \"57920 bytes\", think = \"1 s\", repeat = 5 } }";
    let last = |idle: &str| {
        let changes = [
            ("flows.f.traffic", traffic),
            ("flows.f.slow_start_after_idle", idle),
        ];
        let rows = requests(&simulate_one(CLEAN, &changes), "f");
        (rows[0].completion_ns / 1000, rows[4].completion_ns / 1000)
    };
    let (first, restarted) = last("true");
    let (_, kept) = last("false");
    // Without a restart the window of the first response is still there: request, round trip and 48 ms.
    assert_eq!(kept, 20_361 + 41 + 20_000 + 48_000 + 1);
    assert!(restarted.abs_diff(first) < 100, "{restarted} {first}");
    assert!(restarted > kept + 20_000, "{restarted} {kept}");
}

/// Messages that come alone: an ACK that waited for a second segment would be 40 ms late.
#[test]
fn a_message_is_acknowledged_when_it_is_read_and_a_request_with_its_answer() {
    let messages = "size = \"98 bytes\", interval = \"90 ms\"";
    for traffic in [
        format!("{{ messages = {{ {messages} }} }}"),
        format!("{{ messages = {{ {messages}, answer = \"1600 bytes\" }} }}"),
    ] {
        let changes = [
            ("flows.f.traffic", traffic.as_str()),
            ("profile", "linux-acked"),
        ];
        let run = simulate_one(CLEAN, &changes);
        let t = &run.outcome.tables.subflow;
        let srtt_us = t.srtt_us[t.len() - 1];
        assert!((40_000..40_500).contains(&srtt_us), "{traffic}: {srtt_us}");
    }
}

/// A fast path, and a slow one of 150 ms: responses of ten segments fit into the window of the fast one.
const SLOW_PATH: &str = r#"
duration = "30 s"
[links.wifi]
from = "S"
to = "D"
rate = "30 Mbit/s"
delay = "8 ms"
[links.lte]
from = "S"
to = "D"
rate = "12 Mbit/s"
delay = "150 ms"
[tcp]
send_jitter = "0 s"
[flows.page]
paths = [["wifi"], ["lte"]]
cc = "lia"
traffic = { requests = { response = "14 kB", think = "200 ms" } }
"#;

#[test]
fn a_slow_subflow_holds_up_responses_under_a_scheduler_that_uses_it() {
    let page = |scheduler: &str| {
        let run = simulate_one(SLOW_PATH, &[("scheduler", scheduler)]);
        let rows = requests(&run, "page");
        mean_ms(&rows[5..rows.len() - 1])
    };
    // Ten segments in a window of ten: minRTT needs the fast path only. Round robin waits 150 ms for the slow one.
    let (minrtt, roundrobin) = (page("minrtt"), page("roundrobin"));
    assert!((16.0..40.0).contains(&minrtt), "{minrtt}");
    assert!(roundrobin > 150.0, "{roundrobin}");
}

#[test]
fn a_lost_last_segment_is_repaired_without_a_timeout() {
    let drop = "{ gilbert_elliott = { p = \"3 %\", r = \"60 %\" } }";
    let traffic = "{ messages = { size = \"100 bytes\", interval = \"400 ms\" } }";
    let changes = [
        ("flows.f.traffic", traffic),
        ("links.l.loss", drop),
        ("duration", "\"100 s\""),
        ("profile", "linux-acked"),
    ];
    let run = simulate_one(CLEAN, &changes);
    let rows = requests(&run, "f");
    let events = &run.outcome.tables.event;
    let count = |kind: EventKind| events.kind.iter().filter(|k| **k == kind as u8).count();
    // Each message is alone: a lost one is sent again by the probe, after two round trips and the longest delay of an ACK.
    assert!(
        count(EventKind::TlpSent) > 3,
        "{}",
        count(EventKind::TlpSent)
    );
    let slow = rows
        .iter()
        .filter(|row| row.completion_ns > 100_000_000)
        .count();
    assert!(
        slow > 3 && slowest_ms(&rows[..rows.len() - 2]) < 1_500,
        "{slow}"
    );
}

#[test]
fn a_subflow_that_is_removed_takes_no_message_with_it() {
    let text = BUSY.replace(
        "paths = [[\"a\"], [\"b\"]]\ncc = \"balia\"",
        "subflows = [{ path = [\"a\"], stop = \"12 s\" }, { path = [\"b\"], start = \"3 s\" }]\ncc = \"balia\"",
    );
    let text = text.replace(
        "size = \"211 bytes\", interval",
        "size = \"211 bytes\", answer = \"17 bytes\", interval",
    );
    let run = simulate_one(&text, &[]);
    let rows = requests(&run, "game");
    assert!(rows.len() > 900);
    for row in &rows {
        assert_ne!(row.completion_ns, NOT_MEASURED, "{}", row.request);
    }
}

#[test]
fn requests_under_way_at_the_end_are_recorded_as_such_and_a_stop_ends_new_ones() {
    let run = simulate_one(CLEAN, &[("duration", "\"1.07 s\"")]);
    let rows = requests(&run, "f");
    assert_eq!(rows.len(), 1);
    assert_eq!(
        (rows[0].first_byte_ns, rows[0].completion_ns),
        (NOT_MEASURED, NOT_MEASURED)
    );
    let run = simulate_one(CLEAN, &[("duration", "\"1.105 s\"")]);
    let rows = requests(&run, "f");
    assert_eq!(
        (rows[0].first_byte_ns, rows[0].completion_ns),
        (41_641_600, NOT_MEASURED)
    );
    // The second request would be sent at 1.2065 s.
    let run = simulate_one(CLEAN, &[("flows.f.stop", "\"1.2 s\"")]);
    assert_eq!(requests(&run, "f").len(), 1);
    let run = simulate_one(CLEAN, &[("flows.f.stop", "\"1.0605 s\"")]);
    assert_eq!(requests(&run, "f")[0].completion_ns, 46_441_600);
}

/// The runs of a sweep see the same requests under each algorithm.
#[test]
fn every_algorithm_is_asked_the_same() {
    let runs = simulate_all(
        BUSY,
        &[
            ("duration", "\"8 s\""),
            ("flows.game.cc", "[\"lia\", \"reno\"]"),
        ],
    );
    let plan = |run: &Measured| -> Vec<(u64, u64)> {
        let rows = requests(run, "web");
        rows.iter()
            .map(|r| (r.request_bytes, r.response_bytes))
            .collect()
    };
    let (one, other) = (plan(&runs[0]), plan(&runs[1]));
    let least = one.len().min(other.len());
    assert!(least > 40 && one[..least] == other[..least]);
}
