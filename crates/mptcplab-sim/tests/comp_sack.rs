//! ACKs that a receiver combines while segments are missing (`comp_sack`).

use crate::common::{Measured, over_two_hops, simulate_one};
use mptcplab_trace::EventKind;

/// One packet is lost after 2 s.
fn one_loss(comp_sack: &str) -> Measured {
    losses(&[2000.0], comp_sack)
}

/// A window of 400 packets, 0.242 ms apart at 50 Mbit/s. One of them is lost at each of these times (ms).
fn losses(at: &[f64], comp_sack: &str) -> Measured {
    let lost: Vec<String> = at
        .iter()
        .map(|ms| {
            let end = ms + 0.2;
            format!("{{ at = \"{ms:.3} ms\", loss = \"100 %\" }}, {{ at = \"{end:.3} ms\", loss = \"0 %\" }}")
        })
        .collect();
    let text = over_two_hops(
        10,
        40,
        &lost.join(", "),
        "cwnd_clamp = \"400 packets\"\ninitial_ssthresh = \"400 packets\"",
    );
    let set = [
        ("links.A.rate", "50 Mbit/s"),
        ("duration", "3 s"),
        ("profile", "linux-acked"),
        ("sample", "off"),
        ("per_ack", "true"),
        ("tcp.comp_sack", comp_sack),
    ];
    simulate_one(&text, &set)
}

/// Times of the ACKs from the loss until it is known to be repaired, ms.
fn acks_of_recovery(run: &Measured) -> Vec<f64> {
    let begun = run.events("f", 0, EventKind::LossEvent)[0].0;
    let ended = run.events("f", 0, EventKind::RecoveryEnded)[0].0;
    let t = &run.outcome.tables.subflow;
    let times = t.t_ns.iter().map(|&ns| ns as f64 / 1e6);
    times.filter(|ms| (begun..ended).contains(ms)).collect()
}

#[test]
fn one_ack_tells_of_a_millisecond_of_segments_beyond_a_gap() {
    let (each, together) = (one_loss("false"), one_loss("true"));
    for run in [&each, &together] {
        assert_eq!(run.last("f", 0, |t| &t.retx_pkts), 1);
        assert_eq!(run.last("f", 0, |t| &t.rto_count), 0);
    }
    let apart = |run: &Measured| {
        let times = acks_of_recovery(run);
        (times[times.len() - 1] - times[0]) / (times.len() - 1) as f64
    };
    // The wait begins with a segment, so every fifth or sixth one causes an ACK.
    assert!((0.24..0.25).contains(&apart(&each)), "{}", apart(&each));
    assert!(
        (1.1..1.5).contains(&apart(&together)),
        "{}",
        apart(&together)
    );
    let (a, b) = (each.goodput("f"), together.goodput("f"));
    assert!((b / a - 1.0).abs() < 0.01, "{a} {b}");
}

#[test]
fn fast_retransmit_is_as_quick_as_without() {
    let when = |comp_sack| one_loss(comp_sack).events("f", 0, EventKind::LossEvent)[0].0;
    assert_eq!(when("true"), when("false"));
}

/// Five of ten packets are lost, and an option has no room for all blocks. The ACK that waits is sent before there is a
/// third block, so all five are repaired once, and a later loss is found by its third ACK.
#[test]
fn a_waiting_ack_is_sent_before_there_are_more_blocks_than_an_option_holds() {
    let mut at: Vec<f64> = (0..5).map(|k| 2000.0 + 0.4845 * f64::from(k)).collect();
    at.push(2699.8);
    let run = losses(&at, "true");
    assert_eq!(run.last("f", 0, |t| &t.retx_pkts), 6);
    assert_eq!(run.flow_at("f", 3000.0, |t| &t.duplicate_pkts), 0);
    let found = run.events("f", 0, EventKind::LossEvent);
    assert_eq!(found.len(), 2, "{found:?}");
    assert!((2780.0..2784.0).contains(&found[1].0), "{found:?}");
}
