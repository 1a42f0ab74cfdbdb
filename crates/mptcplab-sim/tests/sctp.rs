//! CMT-SCTP: one association over all its paths (RFC 9260; Iyengar, Amer, Stewart 2006).

use crate::common::{Measured, simulate_one};
use mptcplab_trace::EventKind::{
    FirstByte, FlowCompleted, LossEvent, RecoveryEnded, RtoFired, SubflowAdded,
};
use mptcplab_trace::SubflowTable;

fn cwnd(table: &SubflowTable) -> &Vec<u32> {
    &table.cwnd_pkts
}

fn near(measured: f64, expected: f64) {
    assert!(
        (measured - expected).abs() < 0.2,
        "{measured} ms, expected {expected} ms"
    );
}

/// 12 Gbit/s and no layer-2 bytes: a full packet of 1500 bytes takes 1 us; the RTT is 40 ms.
const FAST: &str = r#"
duration = "300 ms"
sample = "1 ms"
[links.L]
from = "S"
to = "D"
rate = "12 Gbit/s"
delay = "20 ms"
queue = "1000 packets"
overhead = "0 bytes"
[flows.f]
transport = "cmt-sctp"
path = ["L"]
"#;

#[test]
fn data_wait_for_two_round_trips() {
    let run = simulate_one(FAST, &[]);
    near(run.events("f", 0, SubflowAdded)[0].0, 80.0);
    near(run.events("f", -1, FirstByte)[0].0, 100.0);
}

#[test]
fn slow_start_grows_by_a_packet_per_delayed_sack() {
    let run = simulate_one(FAST, &[]);
    let at = |ms| {
        let flying = run.at("f", 0, ms, |t| &t.inflight_pkts);
        (run.at("f", 0, ms, cwnd), flying)
    };
    // 4380 bytes: three packets, 4500 bytes.
    assert_eq!(at(81.0), (3, 3));
    // One SACK for two packets: 5880 bytes.
    assert_eq!(at(121.0), (4, 4));
    // Two SACKs, also for the third packet of the first window: 8880 bytes. Then three: 13380.
    assert_eq!(at(161.0), (6, 6));
    assert_eq!(at(201.0), (9, 9));
}

#[test]
fn a_lost_init_is_sent_again_after_a_second() {
    let down = "schedule = [{ at = \"0 s\", up = false }, { at = \"500 ms\", up = true }]\n\
                reverse = { schedule = [] }\noverhead";
    let short = [("duration", "\"1100 ms\"")];
    let run = simulate_one(&FAST.replace("overhead", down), &short);
    near(run.events("f", 0, SubflowAdded)[0].0, 1080.0);
}

/// Packets leave A (12 Mbit/s, 1 ms each) one by one; B is down during `outages` (ms). Packet k of the first window
/// (k = 0, 1, 2) reaches B at 82.3 + k ms, the three packets after the first SACK at 124.35, 125.35 and 126.35 ms.
fn lossy(traffic: &str, outages: &[(f64, f64)]) -> Measured {
    let changes: Vec<String> = outages
        .iter()
        .map(|(from, to)| {
            format!("{{ at = \"{from} ms\", up = false }}, {{ at = \"{to} ms\", up = true }}")
        })
        .collect();
    let text = format!(
        r#"
duration = "9 s"
sample = "1 ms"
[links.A]
from = "S"
to = "M"
rate = "12 Mbit/s"
delay = "1 ms"
queue = "unlimited"
overhead = "0 bytes"
[links.B]
from = "M"
to = "D"
rate = "12 Gbit/s"
delay = "19 ms"
overhead = "0 bytes"
schedule = [{}]
reverse = {{ schedule = [] }}
[flows.f]
transport = "cmt-sctp"
path = ["A", "B"]
traffic = {traffic}
"#,
        changes.join(", ")
    );
    simulate_one(&text, &[])
}

#[test]
fn three_missing_reports_are_a_loss_and_the_window_halves_to_four_packets() {
    // Packet 3 is lost. The SACK for 2 and 4 reports it once, as 2 left before it; cwnd is 7380 then. The SACK for 5
    // and 6 reports it twice.
    let run = lossy("\"bulk\"", &[(124.0, 124.9)]);
    let losses = run.events("f", 0, LossEvent);
    near(losses[0].0, 205.4);
    assert_eq!(losses[0].1, 4, "max(7380 / 2, 4 MTU) = 6000");
    assert_eq!(run.at("f", 0, 205.0, cwnd), 5, "7380 bytes");
    assert_eq!(run.at("f", 0, 206.0, cwnd), 4);
    // Over when 7 and 8, which were under way, are acknowledged.
    let ended = run.events("f", 0, RecoveryEnded)[0];
    near(ended.0, 207.4);
    assert_eq!(ended.1, 4);
    assert_eq!(run.at("f", 0, 300.0, |t| &t.retx_pkts), 1);
    assert_eq!(run.events("f", 0, RtoFired).len(), 0);
    // A step of slow start, as cwnd is ssthresh, when 3 and 9 are acknowledged at 247.4 ms. Then a packet for a window:
    // 3000 bytes each at 249.4, 289.4 and 291.4 ms are more than 7500.
    assert_eq!(run.at("f", 0, 247.0, cwnd), 4);
    assert_eq!(run.at("f", 0, 248.0, cwnd), 5);
    assert_eq!(run.at("f", 0, 291.0, cwnd), 5);
    assert_eq!(run.at("f", 0, 292.0, cwnd), 6);
}

#[test]
fn a_lost_last_packet_waits_for_the_timer_of_a_second() {
    let run = lossy("{ size = \"4356 B\" }", &[(84.0, 84.8)]);
    let timeouts = run.events("f", 0, RtoFired);
    assert_eq!(timeouts.len(), 1);
    // The SACK for the first two packets restarted the timer at 122.4 ms.
    near(timeouts[0].0, 1122.4);
    assert_eq!(run.at("f", 0, 1121.0, cwnd), 4);
    assert_eq!(run.at("f", 0, 1123.0, cwnd), 1);
    assert_eq!(run.at("f", 0, 1123.0, |t| &t.ssthresh_pkts), 4);
    let completed = run.events("f", -1, FlowCompleted);
    near(completed[0].0, 1122.4 + 21.0);
    assert_eq!(completed[0].1, 4356);
    assert_eq!(run.last("f", 0, |t| &t.retx_pkts), 1);
}

/// Two paths with RTTs of 20 and 200 ms, and rates of 8 and 5 Mbit/s.
const UNLIKE: &str = r#"
duration = "60 s"
sample = "5 ms"
[links.near]
from = "S"
to = "D"
rate = "8 Mbit/s"
delay = "10 ms"
queue = "unlimited"
[links.far]
from = "S"
to = "D"
rate = "5 Mbit/s"
delay = "100 ms"
queue = "unlimited"
[flows.f]
transport = "cmt-sctp"
paths = [["near"], ["far"]]
traffic = { size = "6 MB" }
"#;

#[test]
fn paths_that_reorder_one_another_cause_no_retransmission() {
    let run = simulate_one(UNLIKE, &[]);
    assert_eq!(run.delivered_bytes("f"), 6_000_000);
    for d in 0..2 {
        assert!(run.last("f", d, |t| &t.acked_pkts) > 800);
        assert_eq!(run.last("f", d, |t| &t.retx_pkts), 0, "destination {d}");
        assert_eq!(run.last("f", d, |t| &t.loss_events), 0);
        assert_eq!(run.last("f", d, |t| &t.rto_count), 0);
    }
    let most = run.outcome.tables.flow.ooo_bytes.iter().max();
    assert!(most > Some(&50_000), "they do reorder: {most:?}");
}

#[test]
fn a_window_grows_while_the_other_path_holds_up_the_cumulative_ack() {
    // The far path is down from before the first data until long after: its packets of the first window are lost, and
    // are sent again over the near path when T3 expires after a second.
    let down = "queue = \"unlimited\"\nreverse = { schedule = [] }\nschedule = [{ at = \"1 ms\", up = false }]\n[flows.f]";
    let text = UNLIKE.replace("queue = \"unlimited\"\n[flows.f]", down);
    let run = simulate_one(&text, &[]);
    let (early, late) = (100.0, 900.0);
    let delivered = |ms| run.flow_at("f", ms, |t| &t.delivered_bytes);
    assert!(delivered(early) <= 3 * 1452);
    assert_eq!(
        delivered(early),
        delivered(late),
        "the cumulative ACK stands still"
    );
    let before = run.at("f", 0, early, cwnd);
    let after = run.at("f", 0, late, cwnd);
    assert!(after > 4 * before, "from {before} to {after} packets");
    // A path that is down costs time but no data.
    near(run.events("f", 1, RtoFired)[0].0, 1040.5);
    assert_eq!(run.events("f", -1, FlowCompleted)[0].1, 6_000_000);
    assert!(run.flow_at("f", 60_000.0, |t| &t.reinjected_pkts) > 0);
}

#[test]
fn a_small_shared_buffer_blocks_the_fast_path() {
    let buffer = |size: &str| {
        let set = format!("\"{size}\"");
        let run = simulate_one(UNLIKE, &[("flows.f.rcv_buffer", &set)]);
        let blocked = run.flow_at("f", 60_000.0, |t| &t.blocked_ns) as f64 / 1e9;
        let window = run.outcome.tables.flow.rcv_window_bytes.clone();
        (run.events("f", -1, FlowCompleted)[0].0, blocked, window)
    };
    // What arrives over the near path within the 180 ms by which the far one is slower does not fit into 32 kB.
    let (slow_ms, slow_blocked, window) = buffer("32 kB");
    let (fast_ms, fast_blocked, _) = buffer("4 MB");
    assert!(slow_ms > 2.0 * fast_ms, "{slow_ms} and {fast_ms} ms");
    assert!(
        slow_blocked > 1.0 && fast_blocked == 0.0,
        "{slow_blocked} and {fast_blocked} s"
    );
    assert!(window.iter().all(|w| *w <= 32_000) && window.iter().any(|w| *w < 10_000));
}

#[test]
fn losses_on_every_path_and_both_ways_lose_nothing() {
    for case in 1..=24_u64 {
        let mut text = format!("duration = \"4000 s\"\nsample = \"off\"\nseed = {case}\n");
        let paths = 1 + case % 3;
        for i in 0..paths {
            let (rate, delay, queue) = (
                1 + (case * 7 + i * 3) % 9,
                1 + (case * 13 + i * 29) % 90,
                4 + (case * 5 + i) % 40,
            );
            let (loss, back) = ((case + 2 * i) % 10, (case * 3 + i) % 8);
            let aqm = if (case + i) % 4 == 0 {
                "codel"
            } else {
                "drop-tail"
            };
            text += &format!(
                "[links.L{i}]\nfrom = \"S\"\nto = \"D\"\nrate = \"{rate} Mbit/s\"\ndelay = \"{delay} ms\"\n\
                 queue = \"{queue} packets\"\naqm = \"{aqm}\"\nloss = \"{loss} %\"\nreverse = {{ loss = \"{back} %\" }}\n"
            );
        }
        let list: Vec<String> = (0..paths).map(|i| format!("[\"L{i}\"]")).collect();
        let bytes = 1 + (case * 7919 * 131) % 900_000;
        let buffer = ["\"unlimited\"", "\"9 kB\"", "\"100 kB\""][(case / 3 % 3) as usize];
        text += &format!(
            "[flows.f]\ntransport = \"cmt-sctp\"\npaths = [{}]\ntraffic = {{ size = \"{bytes} B\" }}\nrcv_buffer = {buffer}\nmss = \"{} B\"\n",
            list.join(", "),
            500 + 40 * (case % 20)
        );
        let run = simulate_one(&text, &[]);
        let completed = run.events("f", -1, FlowCompleted);
        assert_eq!(completed.len(), 1, "case {case} did not complete\n{text}");
        assert_eq!(completed[0].1, bytes, "case {case}");
        assert_eq!(run.delivered_bytes("f"), bytes);
    }
}

#[test]
fn the_same_run_twice_leaves_the_same_rows_and_shares_links_with_tcp() {
    let text = UNLIKE.to_owned()
        + "[flows.t]\ntransport = \"tcp\"\ncc = \"reno\"\npath = [\"near\"]\n\
           [flows.u]\ntransport = \"udp\"\npath = [\"far\"]\nrate = \"1 Mbit/s\"\n";
    let set = [
        ("links.near.queue", "\"20 packets\""),
        ("links.far.queue", "\"30 packets\""),
    ];
    let (a, b) = (simulate_one(&text, &set), simulate_one(&text, &set));
    assert_eq!(a.outcome.tables, b.outcome.tables);
    assert_eq!(a.delivered_bytes("f"), 6_000_000);
    assert!(a.delivered_bytes("t") > 2_000_000);
    assert!(a.delivered_bytes("u") > 2_000_000);
    assert!(a.last("f", 0, |t| &t.loss_events) > 0);
    assert_eq!(
        a.outcome.subflow_cc,
        [vec!["cmt-sctp"; 2], vec!["reno"], vec![]]
    );
}

#[test]
fn every_ack_is_a_row_where_that_is_asked_for() {
    let text = format!("per_ack = true\n{}", FAST.replace("1 ms", "off"));
    let rows = simulate_one(&text, &[("duration", "\"170 ms\"")])
        .outcome
        .tables
        .subflow;
    // The start, the SACK at 120 ms, the two at 160 ms (to 7380 and 8880 bytes), the end.
    assert_eq!(rows.cwnd_pkts, [3, 4, 5, 6, 6]);
}
