//! ACKs that a receiver puts together while segments are missing (`comp_sack`).

mod common;

use common::{Measured, over_two_hops, simulate_one};
use mptcplab_trace::EventKind;

/// A window of 400 packets, which 50 Mbit/s carry 0.242 ms apart; one of them is lost after 2 s.
fn one_loss(comp_sack: &str) -> Measured {
    let lost = "{ at = \"2 s\", loss = \"100 %\" }, { at = \"2000.2 ms\", loss = \"0 %\" }";
    let text = over_two_hops(
        10,
        40,
        lost,
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
    // The wait begins with a segment: every fifth or sixth one is told of.
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
