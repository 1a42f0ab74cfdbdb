//! The state after losses and idle periods, as the next loss, window or idle period shows it.

use crate::common::{over_two_hops, simulate_one};
use mptcplab_trace::EventKind::{
    FlowCompleted, LossEvent, RecoveryEnded, SubflowFailed, SubflowRecovered, TlpSent, Undo,
};

fn outage(from: f64, to: f64) -> String {
    format!("{{ at = \"{from:.2} ms\", up = false }}, {{ at = \"{to:.2} ms\", up = true }}")
}

/// A transfer of 3000 segments whose last three are lost on B; `before` happens earlier on B.
fn lose_the_tail(delay: u32, before: &str) -> crate::common::Measured {
    let flow = "cwnd_clamp = \"260 packets\"\ntraffic = { size = \"4344000 B\" }";
    let clean = simulate_one(&over_two_hops(10, delay, before, flow), &[]);
    let arrived = clean.events("f", -1, FlowCompleted)[0].0 - f64::from(delay);
    let separator = if before.is_empty() { "" } else { ", " };
    let schedule = format!(
        "{before}{separator}{}",
        outage(arrived - 3.1, arrived + 0.5)
    );
    let run = simulate_one(&over_two_hops(10, delay, &schedule, flow), &[]);
    assert!(run.last("f", 0, |t| &t.retx_pkts) >= 3);
    run
}

#[test]
fn the_window_of_a_packet_after_a_silence_is_the_reduced_one() {
    // As in windows.rs: 600 ms are two and a half timeouts, so 80 packets become 20, then double in slow start.
    let flow = "cwnd_clamp = \"80 packets\"\ntraffic = { on = \"1 s\", off = \"600 ms\" }";
    let text = over_two_hops(10, 19, "", flow).replace("10 Mbit/s", "1 Gbit/s");
    let run = simulate_one(&text, &[]);
    for (ms, window) in [(1620.0, 20), (1660.0, 40), (1700.0, 80)] {
        assert_eq!(run.at("f", 0, ms, |t| &t.cwnd_pkts), window, "at {ms} ms");
        assert_eq!(
            run.at("f", 0, ms, |t| &t.inflight_pkts),
            window,
            "at {ms} ms"
        );
    }
}

#[test]
fn recovery_with_little_to_send_still_ends_at_the_threshold() {
    // Segment 5 of ten is lost, and no new data follow. ssthresh is 7, and so is the window at the end.
    let run = simulate_one(
        &over_two_hops(
            10,
            40,
            &outage(89.89, 90.89),
            "traffic = { size = \"14480 B\" }",
        ),
        &[],
    );
    assert_eq!(run.events("f", 0, LossEvent)[0].1, 7);
    assert_eq!(run.events("f", 0, RecoveryEnded)[0].1, 7);
}

#[test]
fn a_tail_is_probed_where_the_timeout_is_due_before_two_round_trips() {
    // The RTT is 302 ms. Two RTTs exceed one RTT plus 200 ms, so the probe is sent when the timeout is due (RFC 8985
    // section 7.2).
    let run = lose_the_tail(150, "");
    assert_eq!(run.events("f", 0, TlpSent).len(), 1);
    assert_eq!(run.last("f", 0, |t| &t.rto_count), 0);
    assert_eq!(run.events("f", 0, LossEvent).len(), 1);
}

#[test]
fn a_probe_with_new_data_does_not_use_up_the_next_one() {
    // The delay grows for a while, so a probe with new data is sent needlessly. The tail is probed nevertheless.
    let jump = "{ at = \"2 s\", delay = \"900 ms\" }, { at = \"2.2 s\", delay = \"40 ms\" }";
    let run = lose_the_tail(40, jump);
    assert_eq!(run.events("f", 0, TlpSent).len(), 2);
    assert_eq!(run.last("f", 0, |t| &t.rto_count), 0);
}

#[test]
fn a_duplicate_alone_does_not_slow_down_loss_detection() {
    // The window is 80 segments. A needless probe is answered by a D-SACK. Without reordering, three SACKs still decide.
    let loss = outage(3000.0, 3001.2);
    let jump =
        "{ at = \"1000 ms\", delay = \"260 ms\" }, { at = \"1400 ms\", delay = \"40 ms\" }, ";
    for (before, duplicates) in [("", 0), (jump, 1)] {
        let run = simulate_one(
            &over_two_hops(
                10,
                40,
                &format!("{before}{loss}"),
                "rcv_buffer = \"115840 B\"",
            ),
            &[],
        );
        assert_eq!(
            run.flow_at("f", 30_000.0, |t| &t.duplicate_pkts),
            duplicates
        );
        // The segment is lost at B at 3000 ms at the earliest. The third SACK is back 80 ms and at most four packets later.
        let lost = run.events("f", 0, LossEvent)[0].0;
        assert!(
            (3080.0..3087.0).contains(&lost),
            "{duplicates} duplicates: {lost} ms"
        );
    }
}

/// The delayed ACK for a single segment comes with the first SACK beyond the loss. Nothing was reordered.
#[test]
fn an_ack_that_advances_and_sacks_does_not_look_like_reordering() {
    for from in [3000.8, 3002.0] {
        let run = simulate_one(
            &over_two_hops(
                10,
                40,
                &outage(from, from + 1.2),
                "rcv_buffer = \"115840 B\"",
            ),
            &[("profile", "linux-acked")],
        );
        let lost = run.events("f", 0, LossEvent)[0].0;
        assert!((3080.0..3088.0).contains(&lost), "{from}: {lost} ms");
    }
}

#[test]
fn a_lost_burst_is_probed_after_two_round_trips_and_the_probe_is_not_in_flight() {
    // Ten segments leave at 82 ms and are lost; srtt is slightly above 82 ms. The SACK for the probe marks the nine others
    // as lost, and proportional rate reduction sends one for each one delivered.
    let flow = "traffic = { size = \"14480 B\" }";
    let text = over_two_hops(10, 40, &outage(82.0, 110.0), flow);
    let run = simulate_one(&text, &[("sample", "off"), ("per_ack", "true")]);
    let probed = run.events("f", 0, TlpSent)[0].0;
    assert!((82.0 + 164.0..82.0 + 170.0).contains(&probed), "{probed}");
    let found = run.events("f", 0, LossEvent)[0].0;
    assert!((80.0..85.0).contains(&(found - probed)), "{found}");
    assert_eq!(run.at("f", 0, found, |t| &t.inflight_pkts), 1);
    assert_eq!(run.at("f", 0, found, |t| &t.retx_pkts), 2);
    assert_eq!(run.last("f", 0, |t| &t.rto_count), 0);
}

/// An MPTCP flow over two links of its own, of which the first has an outage.
fn over_two_links(outage: &str, window: &str) -> String {
    format!(
        r#"
duration = "30 s"
cc = "reno"
[links.one]
from = "S"
to = "D"
rate = "10 Mbit/s"
delay = "15 ms"
schedule = [{outage}]
[links.two]
from = "S"
to = "D"
rate = "6 Mbit/s"
delay = "25 ms"
[flows.f]
paths = [["one"], ["two"]]
cwnd_clamp = "{window}"
"#
    )
}

#[test]
fn a_subflow_probes_with_what_it_was_given() {
    let outage = outage(2000.0, 2070.0);
    let run = simulate_one(
        &over_two_links(&outage, "20 packets"),
        &[("duration", "4 s"), ("scheduler", "linger")],
    );
    let probed = run.events("f", 0, TlpSent)[0].0;
    let retransmitted = |ms: f64| run.at("f", 0, ms * 10.0, |t| &t.retx_pkts);
    let (before, after) = ((probed / 10.0).floor(), (probed / 10.0).ceil());
    assert_eq!(retransmitted(before), retransmitted(after));
    assert_eq!(run.last("f", 0, |t| &t.rto_count), 0);
    assert!(run.last("f", 0, |t| &t.retx_pkts) > 0);
}

#[test]
fn losses_that_an_undo_forgave_are_found_again() {
    // The first hop stops with a part of the window in its queue. The rest, including a probe, is lost. When the queue
    // drains, the original segments in it undo the timeout, and SACKs must show what was lost.
    let outage = outage(5000.0, 9000.0);
    let run = simulate_one(&over_two_links(&outage, "60 packets"), &[]);
    assert_eq!(run.events("f", 0, SubflowFailed).len(), 1);
    let undone = run.events("f", 0, Undo)[0].0;
    // A failure that a spurious timeout caused ends like any other.
    assert_eq!(run.events("f", 0, SubflowRecovered)[0].0, undone);
    let over = run.events("f", 0, RecoveryEnded);
    assert!(!over.is_empty() && over[0].0 < undone + 500.0, "{over:?}");
    // The state is Open, with the whole window.
    assert_eq!(run.last("f", 0, |t| &t.state), 2);
    assert_eq!(run.last("f", 0, |t| &t.cwnd_pkts), 60);
}
