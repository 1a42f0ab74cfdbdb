//! Files, short transfers and video: when they begin, when they are complete, and their rows in the trace.

use crate::common::{Measured, simulate_all, simulate_one, sweep};
use mptcplab_sim::{Control, simulate};
use mptcplab_trace::{EventKind, NOT_MEASURED, TransferRow};

/// One link of 10 Mbit/s and 20 ms each way without layer 2: a full segment is 1500 bytes, 1.2 ms; a SYN is 60
/// bytes, 0.048 ms. A handshake takes 40.096 ms; five segments after it the last one is there 26 ms later.
const CLEAN: &str = r#"
duration = "10 s"
profile = "rfc"
[links.l]
from = "S"
to = "D"
rate = "10 Mbit/s"
delay = "20 ms"
overhead = "0 bytes"
[flows.f]
start = "1 s"
path = ["l"]
cc = "reno"
traffic = { size = "7240 bytes" }
"#;

/// Two different paths, an MPTCP download and a flow of transfers over both, one over the second, and UDP.
const BUSY: &str = r#"
duration = "40 s"
[links.a]
from = "S"
to = "D"
rate = "20 Mbit/s"
delay = "5 ms"
queue = "60 packets"
loss = "1 %"
[links.b]
from = "S"
to = "D"
rate = "8 Mbit/s"
delay = "15 ms"
queue = "90 packets"
[tcp]
send_jitter = "300 us"
[flows.bulk]
paths = [["a"], ["b"]]
cc = "lia"
[flows.web]
start = "500 ms"
stop = "35 s"
paths = [["a"], ["b"]]
cc = "olia"
traffic = { size = { law = "pareto", mean = "60 kB", shape = 1.5 }, arrivals = "25 / s" }
[flows.small]
path = ["b"]
cc = "cubic"
traffic = { size = { law = "exponential", mean = "9 kB" }, arrivals = "7 / s" }
[flows.noise]
transport = "udp"
path = ["a"]
rate = "1 Mbit/s"
traffic = { on = "exponential(10 ms)", off = "exponential(100 ms)" }
"#;

fn transfers(run: &Measured, flow: &str) -> Vec<TransferRow> {
    let f = run.run.flows.iter().position(|f| f.name == flow).unwrap() as u32;
    let t = &run.outcome.tables.transfer;
    let row = |i: usize| TransferRow {
        t_ns: t.t_ns[i],
        flow: t.flow[i],
        transfer: t.transfer[i],
        bytes: t.bytes[i],
        media_bps: t.media_bps[i],
        first_byte_ns: t.first_byte_ns[i],
        completion_ns: t.completion_ns[i],
        resent_pkts: t.resent_pkts[i],
        stall_ns: t.stall_ns[i],
    };
    let mut rows: Vec<_> = (0..t.len()).filter(|&i| t.flow[i] == f).map(row).collect();
    rows.sort_by_key(|row| row.transfer);
    rows
}

fn is_complete(row: &&TransferRow) -> bool {
    row.completion_ns != NOT_MEASURED
}

#[test]
fn a_file_takes_a_handshake_and_its_segments() {
    let run = simulate_one(CLEAN, &[]);
    let rows = transfers(&run, "f");
    assert_eq!(rows.len(), 1);
    let row = rows[0];
    assert_eq!((row.t_ns, row.bytes), (1_000_000_000, 7240));
    assert_eq!(
        (row.first_byte_ns, row.completion_ns),
        (61_296_000, 66_096_000)
    );
    assert_eq!(
        (row.resent_pkts, row.media_bps, row.stall_ns),
        (0, 0, NOT_MEASURED)
    );
}

#[test]
fn a_file_that_does_not_fit_is_recorded_as_not_complete() {
    let run = simulate_one(CLEAN, &[("flows.f.traffic", "{ size = \"1 GB\" }")]);
    let rows = transfers(&run, "f");
    assert_eq!((rows.len(), rows[0].bytes), (1, 1_000_000_000));
    assert_eq!(rows[0].completion_ns, NOT_MEASURED);
    assert_eq!(rows[0].first_byte_ns, 61_296_000);
}

#[test]
fn repeated_files_begin_a_gap_after_the_one_before() {
    let traffic = "{ size = \"7240 bytes\", gap = \"100 ms\", repeat = 4 }";
    let run = simulate_one(CLEAN, &[("flows.f.traffic", traffic)]);
    let rows = transfers(&run, "f");
    // Each has a handshake of its own: 66.096 ms, and then 100 ms of nothing.
    let begins: Vec<u64> = rows.iter().map(|row| row.t_ns).collect();
    let expected = [1_000_000_000, 1_166_096_000, 1_332_192_000, 1_498_288_000];
    assert_eq!(begins, expected);
    assert!(
        rows.iter()
            .all(|row| row.completion_ns == 66_096_000 && row.bytes == 7240)
    );
    assert_eq!(run.delivered_bytes("f"), 4 * 7240);
    assert_eq!(run.last("f", 0, |t| &t.sent_pkts), 20);
}

#[test]
fn files_that_overlap_share_the_link() {
    // 2000 / s of 5 segments for 1 s on a link that carries 833 segments a second: 10,000 segments in 12 s.
    let set = [
        (
            "flows.f.traffic",
            "{ size = \"7240 bytes\", arrivals = \"2000 / s\" }",
        ),
        ("flows.f.stop", "2 s"),
        ("duration", "60 s"),
        ("links.l.queue", "100000 packets"),
    ];
    let run = simulate_one(CLEAN, &set);
    let rows = transfers(&run, "f");
    assert!((1800..2200).contains(&rows.len()), "{}", rows.len());
    assert!(rows.iter().all(|row| is_complete(&row)));
    assert_eq!(run.delivered_bytes("f"), 7240 * rows.len() as u64);
    let last = rows
        .iter()
        .map(|row| row.t_ns + row.completion_ns)
        .max()
        .unwrap();
    let carried = last as f64 / 1e9 - 1.0;
    assert!(carried > rows.len() as f64 * 5.0 * 0.0012, "{carried}");
}

#[test]
fn more_transfers_at_once_than_there_is_room_for_end_the_run() {
    let set = [
        (
            "flows.f.traffic",
            "{ size = \"100 kB\", arrivals = \"1000 / s\" }",
        ),
        ("duration", "20 s"),
    ];
    let sweep = sweep(CLEAN, &set);
    let error = simulate(&sweep.runs[0], &Control::default())
        .unwrap_err()
        .to_string();
    assert!(
        error.starts_with("flows.f: more than 4096 transfers are under way after 5."),
        "{error}"
    );
}

/// 33 flows of up to 4,096 transfers at once have more subflows than a packet that is held back has places in the tree.
#[test]
fn more_subflows_than_can_hold_packets_back_are_refused() {
    let text = r#"
duration = "300 ms"
[links.l]
from = "S"
to = "D"
rate = "1 Gbit/s"
delay = "2 ms"
[flows.web]
count = 33
path = ["l"]
cc = "reno"
start = "10 ms"
traffic = { size = "30 kB", gap = "40 ms" }
"#;
    for (jitter, refused) in [("3 us", true), ("0 s", false)] {
        let sweep = sweep(text, &[("tcp.send_jitter", jitter)]);
        match simulate(&sweep.runs[0], &Control::default()) {
            Ok(outcome) => assert!(!refused && outcome.tables.transfer.len() > 33, "{jitter}"),
            Err(error) => assert!(
                refused
                    && error
                        .to_string()
                        .starts_with("more than 131072 subflows share links"),
                "{jitter}: {error}"
            ),
        }
    }
}

#[test]
fn transfers_lose_nothing_and_the_trace_has_their_sums() {
    let run = simulate_one(BUSY, &[]);
    for (flow, from, to, per_s, mss) in [
        ("web", 0.5, 35.0, 25.0, 1428),
        ("small", 0.0, 40.0, 7.0, 1448),
    ] {
        let rows = transfers(&run, flow);
        let expected: f64 = (to - from) * per_s;
        let found = rows.len() as f64;
        assert!(
            (found - expected).abs() < 4.0 * expected.sqrt(),
            "{flow}: {found}"
        );
        let numbers: Vec<u32> = rows.iter().map(|row| row.transfer).collect();
        assert_eq!(numbers, (0..rows.len() as u32).collect::<Vec<_>>());
        assert!(
            rows.iter().filter(is_complete).count() as f64 > 0.97 * found,
            "{flow}"
        );
        let whole: u64 = rows.iter().filter(is_complete).map(|row| row.bytes).sum();
        let rest: u64 = rows
            .iter()
            .filter(|r| !is_complete(r))
            .map(|r| r.bytes)
            .sum();
        let delivered = run.delivered_bytes(flow);
        assert!(
            (whole..=whole + rest).contains(&delivered),
            "{flow}: {whole} {rest} {delivered}"
        );
        // What reached the receivers' subflows is at least that, and what was sent at least what arrived.
        let subflows = if flow == "web" { 2 } else { 1 };
        let sum = |column: fn(&mptcplab_trace::SubflowTable) -> &Vec<u64>| -> u64 {
            (0..subflows).map(|k| run.last(flow, k, column)).sum()
        };
        assert!(sum(|t| &t.rx_payload_bytes) >= delivered);
        assert!(sum(|t| &t.sent_pkts) >= sum(|t| &t.rx_pkts));
        assert!(sum(|t| &t.sent_pkts) * mss >= delivered);
        let resent: u64 = rows.iter().map(|row| row.resent_pkts).sum();
        assert!(
            sum(|t| &t.retx_pkts) + run.flow_at(flow, 40_000.0, |t| &t.reinjected_pkts) >= resent
        );
    }
    // Both subflows of the transfers carried something; subflows of slots have no events, the flow has.
    assert!((0..2).all(|k| run.last("web", k, |t| &t.rx_pkts) > 100));
    assert!(run.events("web", 0, EventKind::SubflowAdded).is_empty());
    assert_eq!(run.events("bulk", 0, EventKind::SubflowAdded).len(), 1);
    assert_eq!(run.events("web", -1, EventKind::FlowStarted), [(500.0, 0)]);
    assert_eq!(
        run.events("web", -1, EventKind::FlowStopped),
        [(35_000.0, 0)]
    );
    assert!(run.events("web", -1, EventKind::FirstByte).is_empty());
    assert_eq!(
        run.outcome.subflow_cc,
        [vec!["lia"; 2], vec!["olia"; 2], vec!["cubic"], vec![]]
    );
}

#[test]
fn arrivals_and_sizes_depend_on_seed_and_name_alone() {
    let drawn = |run: &Measured, flow: &str| -> Vec<(u64, u64)> {
        transfers(run, flow)
            .iter()
            .map(|row| (row.t_ns, row.bytes))
            .collect()
    };
    let set = [("duration", "8 s"), ("flows.web.stop", "7 s")];
    let one = simulate_one(BUSY, &set);
    let same = simulate_one(BUSY, &set);
    assert_eq!(one.outcome.tables, same.outcome.tables);
    let slower = simulate_one(
        BUSY,
        &[
            set[0],
            set[1],
            ("links.a.rate", "12 Mbit/s"),
            ("flows.web.cc", "balia"),
        ],
    );
    assert_eq!(drawn(&one, "web"), drawn(&slower, "web"));
    assert_eq!(drawn(&one, "small"), drawn(&slower, "small"));
    let more = simulate_one(
        &format!("{BUSY}\n[flows.further]\npath = [\"a\"]\ncc = \"reno\"\n"),
        &set,
    );
    assert_eq!(drawn(&one, "web"), drawn(&more, "web"));
    let repetitions = simulate_all(BUSY, &[set[0], set[1], ("repetitions", "2")]);
    assert_ne!(drawn(&repetitions[0], "web"), drawn(&repetitions[1], "web"));
}

#[test]
fn an_outage_leaves_late_packets_that_no_later_transfer_takes_for_its_own() {
    // Link b stops for 30 s. The packets in its queue arrive long after their transfers were completed over link a.
    let text = BUSY.replace(
        "queue = \"90 packets\"\n",
        "queue = \"90 packets\"\nschedule = [{ at = \"3 s\", rate = \"0 bit/s\" }, { at = \"33 s\", rate = \"8 Mbit/s\" }]\n",
    );
    let run = simulate_one(&text, &[("flows.small.path", "[\"a\"]")]);
    let rows = transfers(&run, "web");
    let whole: u64 = rows.iter().filter(is_complete).map(|row| row.bytes).sum();
    let rest: u64 = rows
        .iter()
        .filter(|r| !is_complete(r))
        .map(|r| r.bytes)
        .sum();
    assert!((whole..=whole + rest).contains(&run.delivered_bytes("web")));
    let during = rows
        .iter()
        .filter(|r| (5_000_000_000..30_000_000_000).contains(&r.t_ns));
    let done = during.clone().filter(is_complete).count();
    assert!(done > 500 && done * 10 > during.count() * 9, "{done}");
}

#[test]
fn a_video_asks_as_the_buffer_has_room() {
    // A chunk of 1 s at 57.92 kbit/s is five segments. Known to be open at 1060.096 ms, asked for, half a round trip
    // to the sender, 26 ms to the receiver: 46 ms. The buffer of 3 s has room for another after 1 and 1.954 s;
    // 2.908 s and one more fit 0.908 s later, and then one is asked for every second.
    let video = "{ video = { ladder = [\"57920 bit/s\"], chunk = \"1 s\", buffer = \"3 s\" } }";
    let run = simulate_one(
        CLEAN,
        &[("flows.f.traffic", video), ("flows.f.stop", "5200 ms")],
    );
    let rows = transfers(&run, "f");
    let asked: Vec<u64> = rows.iter().map(|row| row.t_ns / 1000).collect();
    let expected = [
        1_060_096, 1_106_096, 1_152_096, 2_106_096, 3_106_096, 4_106_096, 5_106_096,
    ];
    assert_eq!(asked, expected);
    for row in &rows {
        assert_eq!(
            (row.completion_ns, row.first_byte_ns),
            (46_000_000, 41_200_000)
        );
        assert_eq!((row.bytes, row.media_bps, row.stall_ns), (7240, 57_920, 0));
    }
    assert_eq!(run.delivered_bytes("f"), 7 * 7240);
}

#[test]
fn a_video_that_is_too_slow_stands_still_for_what_is_missing() {
    // Five segments in 60,000 bits of 30 kbit/s: 2 s for 1 s of video.
    let video = "{ video = { ladder = [\"57920 bit/s\"], chunk = \"1 s\", buffer = \"9 s\" } }";
    let set = [
        ("flows.f.traffic", video),
        ("links.l.rate", "30 kbit/s"),
        ("duration", "30 s"),
    ];
    let run = simulate_one(CLEAN, &set);
    let rows: Vec<_> = transfers(&run, "f")
        .into_iter()
        .filter(|row| is_complete(&row))
        .collect();
    assert!(rows.len() > 10);
    assert_eq!(rows[0].stall_ns, 0);
    for pair in rows.windows(2) {
        let [before, now] = [&pair[0], &pair[1]].map(|row| row.t_ns + row.completion_ns);
        assert!(now - before >= 2_000_000_000);
        assert_eq!(pair[1].stall_ns, now - before - 1_000_000_000);
    }
}

#[test]
fn a_video_over_a_fast_link_climbs_to_the_best_encoding() {
    let run = simulate_one(CLEAN, &[("flows.f.traffic", "video"), ("duration", "60 s")]);
    let rates: Vec<u64> = transfers(&run, "f")
        .iter()
        .map(|row| row.media_bps)
        .collect();
    // 0.8 x 0.4 x 10 Mbit/s are enough for the screen's 2.5 Mbit/s at once.
    assert!(
        rates.len() > 10 && rates.iter().all(|&bps| bps == 2_500_000),
        "{rates:?}"
    );
    let low = [
        (
            "flows.f.traffic",
            "{ video = { first_estimate = \"200 kbit/s\" } }",
        ),
        ("duration", "60 s"),
    ];
    let rates: Vec<u64> = transfers(&simulate_one(CLEAN, &low), "f")
        .iter()
        .map(|row| row.media_bps)
        .collect();
    assert_eq!((rates[0], rates[rates.len() - 1]), (100_000, 2_500_000));
    assert!(rates.is_sorted());
}

#[test]
fn video_over_mptcp_uses_both_paths() {
    let set = [
        (
            "flows.bulk.traffic",
            "{ video = { max_rate = \"4.5 Mbit/s\", chunk = \"2 s\" } }",
        ),
        ("flows.web.traffic", "{ size = \"1 kB\" }"),
    ];
    let run = simulate_one(BUSY, &set);
    let rows = transfers(&run, "bulk");
    assert!(rows.len() > 15 && rows.iter().filter(is_complete).count() + 1 >= rows.len());
    assert!((0..2).all(|k| run.last("bulk", k, |t| &t.rx_pkts) > 500));
    let whole: u64 = rows.iter().filter(is_complete).map(|row| row.bytes).sum();
    assert!(run.delivered_bytes("bulk") >= whole);
}
