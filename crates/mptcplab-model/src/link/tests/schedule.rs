//! Links that change while packets are on them.

use super::*;

const FULL: u64 = 1_211_200;
const DELAY: u64 = 20 * MS;

fn at(at_ns: u64) -> Change {
    Change {
        at_ns,
        rate_bps: None,
        delay_ns: None,
        loss: None,
        up: None,
    }
}

fn scheduled(schedule: Vec<Change>) -> Link<Parcel> {
    link(&LinkConfig {
        schedule,
        ..config()
    })
}

#[test]
fn a_rate_change_takes_effect_inside_a_packet() {
    let mut link = scheduled(vec![Change {
        rate_bps: Some(5_000_000),
        ..at(600_000)
    }]);
    let _ = burst(&mut link, 0, 1..3);
    // 6000 of 12,112 bits in 600 us, the rest at 5 Mbit/s in 1,222,400 ns; then a whole packet in 2,422,400 ns.
    let first = 600_000 + 1_222_400;
    assert_eq!(
        drain(&mut link),
        [(first + DELAY, 1), (first + 2 * FULL + DELAY, 2)]
    );
    assert_eq!(link.changes_applied(), 1);
}

#[test]
fn several_changes_inside_one_packet_are_exact() {
    // 12,112 bits: 1000 at 10 Mbit/s in 100 us, 300 at 3 Mbit/s in 100 us, nothing for 1 ms, 10,812 at 40 Mbit/s.
    let mut link = scheduled(vec![
        Change {
            rate_bps: Some(3_000_000),
            ..at(100_000)
        },
        Change {
            rate_bps: Some(0),
            ..at(200_000)
        },
        Change {
            rate_bps: Some(40_000_000),
            ..at(1_200_000)
        },
    ]);
    let _ = burst(&mut link, 0, 1..2);
    assert_eq!(drain(&mut link), [(1_200_000 + 270_300 + DELAY, 1)]);
}

#[test]
fn rate_zero_freezes_and_the_queue_fills() {
    let mut link = scheduled(vec![
        Change {
            rate_bps: Some(0),
            ..at(600_000)
        },
        Change {
            rate_bps: Some(10_000_000),
            ..at(50 * MS)
        },
    ]);
    let _ = burst(&mut link, 0, 1..2);
    let verdicts = burst(&mut link, MS, 2..9);
    assert_eq!(
        verdicts
            .iter()
            .filter(|v| **v == Verdict::LostQueue)
            .count(),
        2
    );
    assert_eq!(link.stats(40 * MS).queue_pkts, 5);
    let first = 50 * MS + (FULL - 600_000) + DELAY;
    let expected: Vec<_> = (0..6)
        .map(|i| (first + u64::from(i) * FULL, i + 1))
        .collect();
    assert_eq!(drain(&mut link), expected);
}

#[test]
fn a_link_that_is_down_loses_arrivals_and_holds_the_rest() {
    let mut link = scheduled(vec![
        Change {
            up: Some(false),
            ..at(2 * FULL)
        },
        Change {
            up: Some(true),
            ..at(100 * MS)
        },
    ]);
    let _ = burst(&mut link, 0, 1..5);
    assert_eq!(link.next_ns(), FULL, "the first packet ends");
    // Two are on the wire and arrive; the arrival at the very time of the change is lost.
    assert_eq!(burst(&mut link, 2 * FULL, 5..6), [Verdict::LostRandom]);
    assert_eq!(burst(&mut link, 60 * MS, 6..7), [Verdict::LostRandom]);
    let out = drain(&mut link);
    let ids: Vec<u32> = out.iter().map(|(_, id)| *id).collect();
    assert_eq!(ids, [1, 2, 3, 4]);
    assert_eq!(out[3].0, 100 * MS + 2 * FULL + DELAY);
    assert_eq!(link.stats(200 * MS).dropped_random_pkts, 2);
}

#[test]
fn packets_on_the_wire_arrive_during_an_outage() {
    let mut link = scheduled(vec![Change {
        up: Some(false),
        ..at(2 * FULL)
    }]);
    let _ = burst(&mut link, 0, 1..4);
    assert_eq!(drain(&mut link), [(FULL + DELAY, 1), (2 * FULL + DELAY, 2)]);
    assert_eq!(link.in_transit(), 1);
}

#[test]
fn a_shorter_delay_does_not_reorder() {
    let mut link = scheduled(vec![
        Change {
            delay_ns: Some(MS),
            ..at(3 * MS)
        },
        Change {
            delay_ns: Some(9 * MS),
            ..at(30 * MS)
        },
    ]);
    let _ = burst(&mut link, 0, 1..5);
    let _ = burst(&mut link, 40 * MS, 5..6);
    // Packet 3 leaves at 3.6 ms and could arrive at 4.6 ms; it arrives with packet 2.
    let second = 2 * FULL + DELAY;
    assert_eq!(
        drain(&mut link),
        [
            (FULL + DELAY, 1),
            (second, 2),
            (second, 3),
            (second, 4),
            (49 * MS + FULL, 5)
        ]
    );
}

#[test]
fn loss_changes_by_schedule() {
    let mut link = scheduled(vec![
        Change {
            loss: Some(Loss::Bernoulli { p: 1.0 }),
            ..at(10 * MS)
        },
        Change {
            loss: Some(Loss::None),
            ..at(20 * MS)
        },
    ]);
    let verdicts = [9, 10, 19, 20].map(|ms| burst(&mut link, ms * MS, 0..1)[0]);
    use Verdict::{LostRandom, Queued};
    assert_eq!(verdicts, [Queued, LostRandom, LostRandom, Queued]);
}

#[test]
fn the_owner_is_woken_at_each_change() {
    let mut link = scheduled(vec![
        Change {
            rate_bps: Some(1_000_000),
            ..at(5)
        },
        Change {
            delay_ns: Some(1),
            ..at(5)
        },
        Change {
            up: Some(true),
            ..at(8)
        },
    ]);
    assert_eq!((link.next_ns(), link.changes_applied()), (5, 0));
    assert_eq!(link.poll(5), None);
    assert_eq!((link.next_ns(), link.changes_applied()), (8, 2));
    assert_eq!(link.poll(8), None);
    assert_eq!((link.next_ns(), link.changes_applied()), (u64::MAX, 3));
}
