//! Packets that are held up on the wire.

use super::*;
use std::collections::BTreeMap;

const FULL: u64 = 1_211_200;
const DELAY: u64 = 20 * MS;

fn held_up(probability: f64, min_extra_delay_ns: u64, max_extra_delay_ns: u64) -> LinkConfig {
    LinkConfig {
        reorder: Some(Reorder {
            probability,
            min_extra_delay_ns,
            max_extra_delay_ns,
        }),
        queue: QueueLimit::Unlimited,
        ..config()
    }
}

/// Arrival time of each id.
fn times(out: &[(u64, u32)]) -> BTreeMap<u32, u64> {
    out.iter().map(|&(at, id)| (id, at)).collect()
}

#[test]
fn chosen_packets_are_overtaken_and_the_others_are_on_time() {
    for (p, min, max, n) in [(0.01, 5 * MS, 5 * MS, 20_000), (0.3, 1, 9 * MS, 5_000)] {
        let mut link = link(&held_up(p, min, max));
        let _ = burst(&mut link, 0, 0..n);
        let out = drain(&mut link);
        assert_eq!(out.len(), n as usize);
        let mut late = 0;
        let mut sum = 0;
        for (id, at) in times(&out) {
            let extra = at - (DELAY + (u64::from(id) + 1) * FULL);
            assert!(extra == 0 || (min..=max).contains(&extra), "{extra}");
            late += u64::from(extra > 0);
            sum += extra;
        }
        let expected = f64::from(n) * p;
        let sigma = (expected * (1.0 - p)).sqrt();
        assert!(
            (late as f64 - expected).abs() < 4.0 * sigma,
            "{late}, not {expected}"
        );
        let (mean, middle) = (sum as f64 / late as f64, (min + max) as f64 / 2.0);
        let sigma = (max - min) as f64 / (12.0 * late as f64).sqrt();
        assert!((mean - middle).abs() <= 4.0 * sigma, "{mean}, not {middle}");
        let overtaken = out.windows(2).filter(|w| w[0].1 > w[1].1).count();
        assert!(overtaken > late as usize / 2, "{overtaken} of {late}");
    }
}

#[test]
fn holding_up_every_packet_by_the_same_time_is_a_longer_delay() {
    let mut all = link(&held_up(1.0, 3 * MS, 3 * MS));
    let mut longer = link(&LinkConfig {
        delay_ns: 23 * MS,
        ..held_up(0.0, 3 * MS, 3 * MS)
    });
    for link in [&mut all, &mut longer] {
        let _ = burst(link, 7, 0..50);
    }
    assert_eq!(drain(&mut all), drain(&mut longer));
}

#[test]
fn losses_queue_and_service_are_as_without_reordering() {
    let plain = LinkConfig {
        loss: Loss::Bernoulli { p: 0.1 },
        queue: QueueLimit::Packets(4),
        ..config()
    };
    let reordered = LinkConfig {
        reorder: held_up(0.4, 0, 30 * MS).reorder,
        ..plain.clone()
    };
    let run = |config: &LinkConfig| {
        let mut link = Link::new_general(config, &Rng::new(5, 3, "link", "same"));
        let (mut verdicts, mut samples, mut out) = (Vec::new(), Vec::new(), Vec::new());
        for id in 0..2000 {
            let now = u64::from(id) * MS + u64::from(id % 7) * 90_001;
            out.extend(run_until(&mut link, now));
            verdicts.push(link.enqueue(now, parcel(id, 700 + id % 800)));
            samples.push(link.stats(now));
        }
        out.extend(run_until(&mut link, MAX_TIME_NS - 1));
        (verdicts, samples, out)
    };
    let (verdicts, samples, mut in_order) = run(&plain);
    let (same_verdicts, same_samples, mut out) = run(&reordered);
    assert_eq!(verdicts, same_verdicts);
    assert_eq!(samples, same_samples);
    assert!(!out.is_sorted_by_key(|(_, parcel)| parcel.id));
    // The same packets, none of them earlier.
    out.sort_by_key(|(_, parcel)| parcel.id);
    in_order.sort_by_key(|(_, parcel)| parcel.id);
    assert_eq!(out.len(), in_order.len());
    for ((late, parcel), (at, same)) in out.iter().zip(&in_order) {
        assert!(parcel == same && (*at..=at + 30 * MS).contains(late));
    }
}

#[test]
fn a_packet_that_catches_up_with_one_held_up_stays_behind_it() {
    // Both are held up; the delay falls by exactly the time between their departures, so that they arrive together.
    let change = Change {
        at_ns: FULL + 1,
        rate_bps: None,
        delay_ns: Some(DELAY - FULL),
        loss: None,
        up: None,
    };
    let mut both = link(&LinkConfig {
        schedule: vec![change],
        ..held_up(1.0, 2 * MS, 2 * MS)
    });
    let _ = burst(&mut both, 0, 1..3);
    let together = FULL + DELAY + 2 * MS;
    assert_eq!(drain(&mut both), [(together, 1), (together, 2)]);
    // One is held up by the time of exactly one packet. Find a stream that chooses the first and not the second.
    let one = held_up(0.5, FULL, FULL);
    let orders = (0..40).map(|seed| {
        let mut link = Link::new(&one, Rng::new(seed, 0, "link", "tie"));
        let _ = burst(&mut link, 0, 1..3);
        drain(&mut link)
    });
    let ties: Vec<_> = orders.filter(|out| out[0].0 == out[1].0).collect();
    assert!(!ties.is_empty());
    for tie in ties {
        let at = DELAY + 2 * FULL;
        assert_eq!(tie, [(at, 1), (at, 2)]);
    }
}

#[test]
fn what_is_held_up_is_in_transit() {
    let mut link = link(&held_up(1.0, 40 * MS, 70 * MS));
    let _ = burst(&mut link, 0, 0..3);
    assert!(run_until(&mut link, 50 * MS).is_empty());
    let stats = link.stats(50 * MS);
    assert_eq!((stats.departed_pkts, stats.queue_pkts), (3, 0));
    assert_eq!((link.in_transit(), link.delivered_pkts()), (3, 0));
    assert_eq!(drain(&mut link).len(), 3);
    assert_eq!((link.in_transit(), link.delivered_pkts()), (0, 3));
}
