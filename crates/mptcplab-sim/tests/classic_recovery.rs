//! Tahoe, Reno and NewReno, packet by packet: link B is down just while the segments pass that are to be lost.
//!
//! Link A takes 1.2112 ms per full packet of 1514 bytes on the wire, so segment k of the first window reaches B at
//! 84.33 + 1.2112 k ms, and its ACK comes back at 165.406 + 1.2112 k ms, as in `recovery.rs`. There are no delayed ACKs.
//! A round trip is 83.3 ms.

use crate::common::{Measured, halved_by_marks, over_two_hops, simulate_all, simulate_one};
use mptcplab_trace::EventKind;
use mptcplab_trace::EventKind::{FlowCompleted, LossEvent, RecoveryEnded, RtoFired, TlpSent, Undo};

/// A round trip of one full packet, ms.
const RTT: f64 = 83.2766;

/// A transfer over A and B with these losses, under `recovery`; window 10 from the start, growth of Reno.
fn scenario(recovery: &str, segments: u32, outages: &[(u32, u32)]) -> String {
    let arrival = |k: u32| 84.33 + 1.2112 * f64::from(k);
    let changes: Vec<String> = outages
        .iter()
        .map(|&(first, last)| {
            format!(
                "{{ at = \"{:.2} ms\", up = false }}, {{ at = \"{:.2} ms\", up = true }}",
                arrival(first) - 0.5,
                arrival(last) + 0.5
            )
        })
        .collect();
    let flow = format!(
        "recovery = \"{recovery}\"\ninitial_ssthresh = \"10 packets\"\ntraffic = {{ size = \"{} B\" }}",
        segments * 1448
    );
    over_two_hops(1, 40, &changes.join(", "), &flow)
}

/// The run of a transfer that is completed.
fn run_any(recovery: &str, segments: u32, outages: &[(u32, u32)]) -> Measured {
    let run = simulate_one(&scenario(recovery, segments, outages), &[]);
    assert_eq!(run.events("f", -1, FlowCompleted).len(), 1, "not completed");
    run
}

/// The same, and nothing happened that only Linux does.
fn run(recovery: &str, segments: u32, outages: &[(u32, u32)]) -> Measured {
    let run = run_any(recovery, segments, outages);
    for linux in [TlpSent, Undo] {
        assert_eq!(run.events("f", 0, linux), [], "{recovery} has no {linux:?}");
    }
    run
}

/// When the ACK for segment k of the first window arrives.
fn ack_of(k: u32) -> f64 {
    165.406 + 1.2112 * f64::from(k)
}

/// The windows from the first loss event on, one for each change.
fn windows_after_loss(run: &Measured) -> Vec<u32> {
    let began = run.events("f", 0, LossEvent)[0].0;
    let t = &run.outcome.tables.subflow;
    let after = (0..t.len()).filter(|&i| t.t_ns[i] as f64 / 1e6 > began);
    let mut windows: Vec<u32> = after.map(|i| t.cwnd_pkts[i]).collect();
    windows.dedup();
    windows
}

fn near(got: f64, wanted: f64) {
    assert!((got - wanted).abs() < 0.02, "at {got} ms, not at {wanted}");
}

/// The events of a kind: their values, and their times near these.
fn happened(run: &Measured, kind: EventKind, wanted: &[(f64, u64)]) {
    let events = run.events("f", 0, kind);
    let values = |of: &[(f64, u64)]| of.iter().map(|e| e.1).collect::<Vec<_>>();
    assert_eq!(values(&events), values(wanted), "{kind:?} {events:?}");
    for (event, wanted) in events.iter().zip(wanted) {
        near(event.0, wanted.0);
    }
}

#[test]
fn one_loss_is_repaired_in_a_round_trip() {
    // Segment 3 of ten is lost. Segments 4, 5 and 6 cause three duplicate ACKs, and 7 to 9 and the three that were sent
    // for 0 to 2 cause six more.
    for (recovery, windows) in [
        ("tahoe", [1, 2, 3, 4, 5, 6].as_slice()),
        ("reno", &[8, 9, 10, 11, 12, 13, 14, 5, 6]),
        ("newreno", &[8, 9, 10, 11, 12, 13, 14, 5, 6]),
    ] {
        let run = run(recovery, 30, &[(3, 3)]);
        happened(&run, LossEvent, &[(ack_of(6), 5)]);
        happened(&run, RtoFired, &[]);
        let after = if recovery == "tahoe" { 1 } else { 5 };
        happened(&run, RecoveryEnded, &[(ack_of(6) + RTT, after)]);
        assert_eq!(
            windows_after_loss(&run)[..windows.len()],
            *windows,
            "{recovery}"
        );
        assert_eq!(run.last("f", 0, |t| &t.retx_pkts), 1);
        assert_eq!(run.last("f", 0, |t| &t.lost_pkts), 1);
        assert_eq!(run.last("f", 0, |t| &t.sent_pkts), 31);
        assert_eq!(run.last("f", 0, |t| &t.acked_pkts), 30);
    }
}

#[test]
fn an_inflated_window_sends_new_segments_once_half_of_the_old_ones_left() {
    let run = run("reno", 30, &[(3, 3)]);
    let sent = |ms: f64| run.at("f", 0, ms, |t| &t.sent_pkts);
    // Thirteen segments and one retransmission; ten are not acknowledged, so a window of 8 to 10 sends nothing.
    assert_eq!((sent(ack_of(6) + 1.0), sent(ack_of(8) + 1.0)), (14, 14));
    // The duplicate ACKs for 7, 8 and 9 raise it to 11, and those for 10, 11 and 12, a round trip later, to 14.
    assert_eq!(
        (sent(ack_of(9) + 1.0), sent(ack_of(2) + RTT + 1.0)),
        (15, 18)
    );
    // The new ACK leaves five in flight: the four sent meanwhile and one more.
    assert_eq!(
        run.at("f", 0, ack_of(6) + RTT + 1.0, |t| &t.inflight_pkts),
        5
    );
    assert_eq!(sent(ack_of(6) + RTT + 1.0), 19);
}

#[test]
fn two_losses_halve_reno_twice_and_newreno_once() {
    let losses = [(2, 2), (4, 4)];
    // Segment 3 causes the first duplicate ACK. As 4 is lost, 5 and 6 cause the others.
    let began = ack_of(6);

    let reno = run("reno", 30, &losses);
    // A partial ACK ends the recovery at a window of 5 with 11 in flight. The next duplicates come from the segments
    // sent while the window was inflated, for 9 on: three of them, from 256 to 334 ms.
    let [first, second] = reno.events("f", 0, LossEvent)[..] else {
        panic!("{:?}", reno.events("f", 0, LossEvent))
    };
    assert_eq!((first.1, second.1), (5, 2));
    near(first.0, began);
    happened(
        &reno,
        RecoveryEnded,
        &[(began + RTT, 5), (second.0 + RTT, 2)],
    );
    happened(&reno, RtoFired, &[]);
    assert_eq!(reno.last("f", 0, |t| &t.retx_pkts), 2);

    let newreno = run("newreno", 30, &losses);
    happened(&newreno, LossEvent, &[(began, 5)]);
    // One hole per round trip, and the window is deflated by what a partial ACK covers, less one: 13 - 2 + 1.
    happened(&newreno, RecoveryEnded, &[(began + 2.0 * RTT, 5)]);
    assert_eq!(newreno.at("f", 0, began + RTT - 1.0, |t| &t.cwnd_pkts), 13);
    assert_eq!(newreno.at("f", 0, began + RTT + 1.0, |t| &t.cwnd_pkts), 12);
    assert_eq!(newreno.last("f", 0, |t| &t.retx_pkts), 2);

    let tahoe = run("tahoe", 30, &losses);
    happened(&tahoe, LossEvent, &[(began, 5)]);
    happened(&tahoe, RecoveryEnded, &[(began + 2.0 * RTT, 2)]);
    // The sender goes back, so it also repeats segment 5, which had arrived.
    assert_eq!(tahoe.last("f", 0, |t| &t.retx_pkts), 3);
    assert_eq!(tahoe.flow_at("f", 30_000.0, |t| &t.duplicate_pkts), 1);

    let completed = |run: &Measured| run.events("f", -1, FlowCompleted)[0].0;
    assert!(completed(&newreno) < completed(&tahoe) && completed(&newreno) < completed(&reno));
}

#[test]
fn three_losses_make_reno_wait_for_its_timer_while_newreno_repairs_one_a_round_trip() {
    let losses = [(1, 1), (3, 3), (5, 5)];
    let reno = run("reno", 30, &losses);
    assert_eq!(reno.events("f", 0, RtoFired).len(), 1);

    let newreno = run("newreno", 30, &losses);
    let [(began, 5)] = newreno.events("f", 0, LossEvent)[..] else {
        panic!("{:?}", newreno.events("f", 0, LossEvent))
    };
    let [(ended, _)] = newreno.events("f", 0, RecoveryEnded)[..] else {
        panic!("{:?}", newreno.events("f", 0, RecoveryEnded))
    };
    near(ended, began + 3.0 * RTT);
    happened(&newreno, RtoFired, &[]);
    assert_eq!(newreno.last("f", 0, |t| &t.retx_pkts), 3);

    let tahoe = run("tahoe", 30, &losses);
    happened(&tahoe, RtoFired, &[]);
    let sack = run_any("sack", 30, &losses);
    let completed = |run: &Measured| run.events("f", -1, FlowCompleted)[0].0;
    assert!(completed(&sack) < completed(&newreno));
    assert!(completed(&newreno) < completed(&tahoe));
    assert!(completed(&tahoe) < completed(&reno));
}

#[test]
fn fewer_than_three_duplicates_wait_for_the_timer() {
    for recovery in ["tahoe", "reno", "newreno"] {
        for (lost, halved) in [(9, 5), (8, 5), (7, 5)] {
            let run = run(recovery, 10, &[(lost, lost)]);
            happened(&run, LossEvent, &[]);
            // The timer runs from the last ACK of something new.
            let before = ack_of(lost - 1);
            let rto_ms = f64::from(run.at("f", 0, before + 1.0, |t| &t.rto_us)) / 1000.0;
            happened(&run, RtoFired, &[(before + rto_ms, 0)]);
            let after = before + rto_ms + 1.0;
            assert_eq!(run.at("f", 0, after, |t| &t.cwnd_pkts), 1, "{recovery}");
            assert_eq!(
                run.at("f", 0, after, |t| &t.ssthresh_pkts),
                halved,
                "{recovery} {lost}"
            );
            assert_eq!(run.last("f", 0, |t| &t.retx_pkts), 1);
        }
    }
}

#[test]
fn a_lost_retransmission_waits_for_the_timer_and_then_everything_goes_again() {
    // Segment 3 and its retransmission are lost. The latter reaches B 2.2 ms after the third duplicate ACK, behind one
    // segment.
    for recovery in ["reno", "newreno"] {
        let text = scenario(recovery, 13, &[(3, 3)]).replace(
            "]\nreverse",
            ", { at = \"173.5 ms\", up = false }, { at = \"177 ms\", up = true }]\nreverse",
        );
        let run = simulate_one(&text, &[]);
        assert_eq!(run.events("f", 0, RtoFired).len(), 1, "{recovery}");
        let at = run.events("f", 0, RtoFired)[0].0;
        // Nothing new can be sent, so the timeout takes half of the ten segments in flight as the threshold.
        assert_eq!(run.at("f", 0, at + 1.0, |t| &t.ssthresh_pkts), 5);
        assert_eq!(run.at("f", 0, at + 1.0, |t| &t.cwnd_pkts), 1);
        assert_eq!(run.delivered_bytes("f"), 13 * 1448);
    }
}

#[test]
fn newreno_does_not_take_echoes_of_its_retransmissions_for_losses() {
    // The delay grows by 860 ms: the timeout is spurious, everything is sent twice, and the second copies cause
    // duplicates of the last ACK. Reno and Tahoe take them for a loss (RFC 6582, section 1).
    let text = |recovery: &str| {
        scenario(recovery, 1, &[])
            .replace(
                "schedule = []\nreverse",
                "schedule = [{ at = \"3 s\", delay = \"900 ms\" }]\nreverse",
            )
            .replace(
                "traffic = { size = \"1448 B\" }",
                "cwnd_clamp = \"40 packets\"",
            )
    };
    let run = |recovery| simulate_one(&text(recovery), &[]);
    let losses = |run: &Measured| run.events("f", 0, LossEvent).len();
    let [tahoe, reno, newreno] = ["tahoe", "reno", "newreno"].map(run);
    assert_eq!((losses(&reno), losses(&newreno)), (1, 0));
    // Tahoe repeats its whole window again, which causes the next duplicates, and so on (Floyd 1994).
    assert!(losses(&tahoe) > 10, "{}", losses(&tahoe));
    for run in [tahoe, reno, newreno] {
        assert!(!run.events("f", 0, RtoFired).is_empty());
        assert!(run.flow_at("f", 30_000.0, |t| &t.duplicate_pkts) >= 30);
        assert_eq!(run.link_last("B", |t| &t.dropped_random_pkts), 0);
    }
}

#[test]
fn no_sack_option_is_sent() {
    // Each ACK of a window with a loss has 52 + 14 bytes, without SACK options.
    let bytes = |recovery: &str| {
        let run = run_any(recovery, 30, &[(3, 3)]);
        run.link_last("B~", |t| &t.departed_bytes) / run.link_last("B~", |t| &t.departed_pkts)
    };
    assert_eq!(bytes("newreno"), 66);
    assert!(bytes("sack") > 66);
}

#[test]
fn a_mark_halves_once_a_round_trip_at_once() {
    for recovery in ["tahoe", "reno", "newreno"] {
        let (run, marks) = halved_by_marks(&scenario(recovery, 1, &[]));
        for (ms, ssthresh) in &marks {
            assert_eq!(
                u64::from(run.at("f", 0, ms + 1.0, |t| &t.cwnd_pkts)),
                *ssthresh
            );
        }
    }
}

#[test]
fn each_recovery_is_better_than_the_older_one_under_bursts_of_losses() {
    let file = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../scenarios/loss-recovery-bursts.toml"
    );
    let text = std::fs::read_to_string(file).unwrap();
    let runs = simulate_all(&text, &[("repetitions", "3"), ("sample", "off")]);
    for r in ["50 %", "25 %"] {
        let goodput = |recovery: &str| {
            let of = |run: &&Measured| {
                let axes = &run.run.axes;
                axes.iter().any(|a| a.1 == recovery) && axes.iter().any(|a| a.1 == r)
            };
            let rates: Vec<f64> = runs.iter().filter(of).map(|run| run.goodput("f")).collect();
            assert_eq!(rates.len(), 3, "{recovery} {r}");
            rates.iter().sum::<f64>() / 3.0
        };
        let rates = ["tahoe", "reno", "newreno", "sack"].map(goodput);
        assert!(
            rates[0] < rates[1] && rates[1] < rates[2] && rates[2] <= rates[3],
            "{r}: {rates:?}"
        );
    }
}
