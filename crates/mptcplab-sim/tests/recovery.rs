//! Loss recovery by exact losses: link B is down just while the segments pass that are to be lost.
//!
//! Link A takes 1.2112 ms per full packet, so that packets reach B one by one: the connection is established at
//! 82.12 ms, and segment k of the first window reaches B at 84.33 + 1.2112 k ms (RFC 8985, RFC 6937, RFC 6298,
//! RFC 5682).

use crate::common::{Measured, halved_by_marks, over_two_hops, simulate_one};
use mptcplab_trace::EventKind::{FlowCompleted, LossEvent, RecoveryEnded, RtoFired, TlpSent, Undo};

/// A transfer over A (10 Mbit/s, 1 ms) and B (1 Gbit/s, 40 ms), B down during `outages` (ms).
fn scenario(segments: u32, outages: &[(f64, f64)]) -> String {
    let changes: Vec<String> = outages
        .iter()
        .map(|(from, to)| {
            format!("{{ at = \"{from} ms\", up = false }}, {{ at = \"{to} ms\", up = true }}")
        })
        .collect();
    let flow = format!("traffic = {{ size = \"{} B\" }}", segments * 1448);
    over_two_hops(1, 40, &changes.join(", "), &flow)
}

/// A time in the middle of segment k's arrival at B in the first window, and the outage that hits only it.
fn around(first: u32, last: u32) -> (f64, f64) {
    let arrival = |k: u32| 84.33 + 1.2112 * f64::from(k);
    ((arrival(first) - 0.5) * 1.0, arrival(last) + 0.5)
}

/// When the ACK for segment k of the first window arrives: two ways, and two serialisations at 1 Gbit/s.
fn ack_of(k: u32) -> f64 {
    165.406 + 1.2112 * f64::from(k)
}

fn rounded(outage: (f64, f64)) -> (f64, f64) {
    (
        (outage.0 * 100.0).round() / 100.0,
        (outage.1 * 100.0).round() / 100.0,
    )
}

fn run(segments: u32, outages: &[(f64, f64)]) -> Measured {
    let outages: Vec<_> = outages.iter().map(|o| rounded(*o)).collect();
    let run = simulate_one(&scenario(segments, &outages), &[]);
    assert_eq!(run.events("f", -1, FlowCompleted).len(), 1, "not completed");
    run
}

/// A bulk flow with a window of 100 packets, of which 71 fill the path; `change` is B's schedule.
fn bulk(change: &str) -> Measured {
    let text = scenario(1, &[])
        .replace(
            "schedule = []\nreverse",
            &format!("schedule = [{change}]\nreverse"),
        )
        .replace(
            "traffic = { size = \"1448 B\" }",
            "cwnd_clamp = \"100 packets\"",
        );
    simulate_one(&text, &[])
}

#[test]
fn several_losses_in_a_window_are_one_episode() {
    let run = run(10, &[around(2, 4)]);
    // The third SACK is that of segment 7; ssthresh is half of the ten plus the two acknowledged.
    let losses = run.events("f", 0, LossEvent);
    assert_eq!(losses.len(), 1);
    assert!((losses[0].0 - ack_of(7)).abs() < 0.01, "{losses:?}");
    assert_eq!(losses[0].1, 6);
    assert_eq!(run.last("f", 0, |t| &t.retx_pkts), 3);
    assert_eq!(run.last("f", 0, |t| &t.lost_pkts), 3);
    assert_eq!(run.last("f", 0, |t| &t.rto_count), 0);
    assert_eq!(run.events("f", 0, RecoveryEnded).len(), 1);
}

#[test]
fn a_loss_is_certain_with_three_segments_above_it() {
    let run = run(10, &[around(5, 5)]);
    let losses = run.events("f", 0, LossEvent);
    assert!((losses[0].0 - ack_of(8)).abs() < 0.01, "{losses:?}");
    assert_eq!((losses.len(), run.last("f", 0, |t| &t.retx_pkts)), (1, 1));
}

#[test]
fn with_two_segments_above_it_a_loss_waits_a_quarter_of_the_minimum_rtt() {
    let run = run(10, &[around(7, 7)]);
    // All ten left together, so the timer runs from the last SACK: 82.12 / 4 ms and two jiffies.
    let losses = run.events("f", 0, LossEvent);
    assert!(
        (losses[0].0 - (ack_of(9) + 82.12 / 4.0 + 2.0)).abs() < 0.05,
        "{losses:?}"
    );
    assert_eq!((losses.len(), run.last("f", 0, |t| &t.retx_pkts)), (1, 1));
}

#[test]
fn a_lost_tail_is_probed_after_two_round_trips() {
    let run = run(10, &[around(8, 9)]);
    let probes = run.events("f", 0, TlpSent);
    let srtt = f64::from(run.at("f", 0, 300.0, |t| &t.srtt_us)) / 1000.0;
    assert_eq!(probes.len(), 1);
    assert!(
        (probes[0].0 - (ack_of(7) + 2.0 * srtt + 2.0)).abs() < 0.01,
        "{probes:?}, srtt {srtt}"
    );
    // The probe's SACK shows the other loss: fast recovery, no timeout.
    let losses = run.events("f", 0, LossEvent);
    assert!(
        (losses[0].0 - (probes[0].0 + 83.3)).abs() < 0.1,
        "{losses:?}"
    );
    assert_eq!((losses.len(), run.last("f", 0, |t| &t.retx_pkts)), (1, 2));
    assert_eq!(run.last("f", 0, |t| &t.rto_count), 0);
}

#[test]
fn a_probe_for_nothing_reduces_nothing() {
    // The second window of ten crosses B after its delay grew by 160 ms: the probe fires before the ACKs come.
    let jump = "schedule = [{ at = \"165 ms\", delay = \"200 ms\" }]\nreverse";
    let text = scenario(20, &[]).replace("schedule = []\nreverse", jump);
    let run = simulate_one(&text, &[]);
    assert_eq!(run.events("f", 0, TlpSent).len(), 1);
    assert_eq!(run.flow_at("f", 30_000.0, |t| &t.duplicate_pkts), 1);
    assert_eq!(run.last("f", 0, |t| &t.retx_pkts), 1);
    assert_eq!(run.last("f", 0, |t| &t.loss_events), 0);
    assert_eq!(run.last("f", 0, |t| &t.ssthresh_pkts), 0x7fff_ffff);
    assert!(run.last("f", 0, |t| &t.cwnd_pkts) >= 20);
}

#[test]
fn recovery_ends_at_the_threshold() {
    let run = bulk("{ at = \"3 s\", up = false }, { at = \"3.01 s\", up = true }");
    // 10 ms hold eight or nine packets of 1.2112 ms.
    let lost = run.last("f", 0, |t| &t.lost_pkts);
    assert!((8..=9).contains(&lost), "{lost} lost");
    assert_eq!(run.last("f", 0, |t| &t.retx_pkts), lost);
    let values = |kind| {
        run.events("f", 0, kind)
            .iter()
            .map(|e| e.1)
            .collect::<Vec<_>>()
    };
    assert_eq!(values(LossEvent), [50]);
    assert_eq!(values(RecoveryEnded), [50]);
    assert_eq!(run.last("f", 0, |t| &t.rto_count), 0);
    // Proportional rate reduction: after the lost ones the window falls step by step, never below the threshold.
    let began = run.events("f", 0, LossEvent)[0].0;
    let windows: Vec<u32> = (0..120)
        .map(|k| run.at("f", 0, began + f64::from(k), |t| &t.cwnd_pkts))
        .collect();
    assert!(
        windows[1..]
            .windows(2)
            .all(|w| w[1] <= w[0] && w[0] - w[1] <= 2),
        "{windows:?}"
    );
    assert!(windows[119] >= 50);
}

#[test]
fn timeouts_back_off_by_two_until_the_link_returns() {
    let run = bulk("{ at = \"3 s\", up = false }, { at = \"10 s\", up = true }");
    let rto = f64::from(run.at("f", 0, 3100.0, |t| &t.rto_us)) / 1000.0;
    // srtt of 100 packets of 1.2112 ms, and the least variance term.
    assert!((rto - (121.12 + 200.0)).abs() < 0.1, "rto {rto}");
    let probe = run.events("f", 0, TlpSent)[0].0;
    let timeouts = run.events("f", 0, RtoFired);
    let mut expected = probe;
    for (k, (at, backoff)) in timeouts.iter().enumerate() {
        expected += rto * f64::from(1 << k);
        assert!(
            (at - expected).abs() < 0.01,
            "timeout {k} at {at}, expected {expected}"
        );
        assert_eq!(*backoff, k as u64);
    }
    // 3.6, 4.3, 5.6, 8.1 and 13.3 s.
    assert_eq!(timeouts.len(), 5);
    let srtt = run.last("f", 0, |t| &t.srtt_us);
    assert!((90_000..130_000).contains(&srtt), "srtt {srtt}");
    let late = run.flow_at("f", 30_000.0, |t| &t.delivered_bytes)
        - run.flow_at("f", 15_000.0, |t| &t.delivered_bytes);
    assert!(
        late as f64 * 8.0 / 15e6 > 9.4,
        "{late} bytes in 15 s after the outage"
    );
}

#[test]
fn a_timeout_for_nothing_is_undone() {
    // The delay grows by 860 ms: the timeout is spurious, the first late ACK echoes an older timestamp.
    let run = bulk("{ at = \"3 s\", delay = \"900 ms\" }");
    assert_eq!(run.events("f", 0, RtoFired).len(), 1);
    assert_eq!(run.at("f", 0, 3800.0, |t| &t.cwnd_pkts), 1);
    let undone = run.events("f", 0, Undo);
    assert_eq!(undone[0].1, 100);
    // The original segments were held up for 860 ms and arrive from 3.94 s on.
    assert!((3940.0..3943.0).contains(&undone[0].0), "{undone:?}");
    assert_eq!(run.at("f", 0, 4000.0, |t| &t.cwnd_pkts), 100);
    assert_eq!(run.at("f", 0, 4000.0, |t| &t.ssthresh_pkts), 0x7fff_ffff);
    assert!(run.last("f", 0, |t| &t.retx_pkts) <= 2);
}

#[test]
fn marks_reduce_once_per_round_trip_without_losses() {
    let (run, marks) = halved_by_marks(&scenario(1, &[]));
    assert_eq!(run.last("f", 0, |t| &t.lost_pkts), 0);
    assert_eq!(run.last("f", 0, |t| &t.ecn_events), marks.len() as u64);
    assert!(run.link_last("A", |t| &t.marked_pkts) >= marks.len() as u64);
}
