//! Links driven by packet-delivery opportunities.

use super::*;

/// Opportunities at these milliseconds, repeated after the last; no propagation delay, 4 bytes of overhead as mm-link.
fn traced(at_ms: &[u64]) -> LinkConfig {
    LinkConfig {
        delay_ns: 0,
        overhead_bytes: 4,
        trace: Some(DeliveryTrace {
            name: "test".into(),
            opportunities_ns: at_ms.iter().map(|ms| ms * MS).collect(),
            period_ns: at_ms.last().copied().unwrap_or(0) * MS,
        }),
        ..config()
    }
}

#[test]
fn each_opportunity_lets_one_full_packet_leave() {
    let mut link = link(&traced(&[2, 2, 5, 11]));
    let _ = burst(&mut link, MS, 1..6);
    assert_eq!(
        drain(&mut link),
        [
            (2 * MS, 1),
            (2 * MS, 2),
            (5 * MS, 3),
            (11 * MS, 4),
            (13 * MS, 5)
        ]
    );
}

#[test]
fn small_packets_share_an_opportunity() {
    let mut link = link(&traced(&[3, 7, 10]));
    // 504 + 504 + 496 = 1504 leave together, the next ones at the next opportunity.
    for (id, bytes) in [(1, 500), (2, 500), (3, 492), (4, 100), (5, 100)] {
        let _ = link.enqueue(0, parcel(id, bytes));
    }
    assert_eq!(
        drain(&mut link),
        [
            (3 * MS, 1),
            (3 * MS, 2),
            (3 * MS, 3),
            (7 * MS, 4),
            (7 * MS, 5)
        ]
    );
}

#[test]
fn a_large_packet_spans_opportunities_and_the_rest_is_used() {
    let mut link = link(&traced(&[3, 7, 10]));
    // 4004 bytes end in the third opportunity, where 508 bytes are left for the next packet.
    for (id, bytes) in [(1, 4000), (2, 504), (3, 40)] {
        let _ = link.enqueue(0, parcel(id, bytes));
    }
    assert_eq!(drain(&mut link), [(10 * MS, 1), (10 * MS, 2), (13 * MS, 3)]);
}

#[test]
fn unused_opportunities_are_lost() {
    let mut link = link(&traced(&[1, 2, 3, 4, 10]));
    assert_eq!(link.next_ns(), u64::MAX);
    let _ = burst(&mut link, 4 * MS, 1..3);
    assert_eq!(drain(&mut link), [(10 * MS, 1), (11 * MS, 2)]);
    // Many periods later.
    let _ = burst(&mut link, 5_004 * MS + 1, 3..4);
    assert_eq!(drain(&mut link), [(5_010 * MS, 3)]);
}

#[test]
fn opportunities_of_an_outage_are_lost() {
    let change = |at_ns, up| Change {
        at_ns,
        rate_bps: None,
        delay_ns: None,
        loss: None,
        up: Some(up),
    };
    let mut link = link(&LinkConfig {
        schedule: vec![change(4 * MS, false), change(9 * MS, true)],
        ..traced(&[2, 5, 8, 12])
    });
    let _ = burst(&mut link, 0, 1..4);
    assert_eq!(drain(&mut link), [(2 * MS, 1), (12 * MS, 2), (14 * MS, 3)]);
}

#[test]
fn a_backlogged_trace_carries_its_mean_rate() {
    // 7 opportunities per 20 ms: 350 per second, 4.2112 Mbit/s of mm-link bytes.
    let config = LinkConfig {
        queue: QueueLimit::Unlimited,
        ..traced(&[1, 1, 2, 8, 9, 15, 20])
    };
    let mut link = link(&config);
    let _ = burst(&mut link, 0, 0..4000);
    let out = run_until(&mut link, 10_000 * MS);
    assert_eq!(out.len(), 3500);
    assert_eq!(link.stats(10_000 * MS).departed_bytes, 3500 * 1504);
}

#[test]
fn the_queue_limit_counts_what_has_not_begun_to_leave() {
    let mut link = link(&LinkConfig {
        queue: QueueLimit::Packets(2),
        ..traced(&[3, 7])
    });
    let verdicts = burst(&mut link, 0, 1..4);
    assert_eq!(
        verdicts,
        [Verdict::Queued, Verdict::Queued, Verdict::LostQueue]
    );
    assert_eq!(link.stats(0).queue_pkts, 2);
    assert_eq!(link.stats(3 * MS).queue_delay_max_ns, 3 * MS);
}
