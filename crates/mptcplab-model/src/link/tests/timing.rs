//! Times and drops of links of constant rate, worked by hand.

use super::*;

/// Serialisation of 1514 bytes at 10 Mbit/s.
const FULL: u64 = 1_211_200;
const DELAY: u64 = 20 * MS;

#[test]
fn a_packet_takes_serialisation_plus_propagation() {
    let mut link = link(&config());
    assert_eq!(link.next_ns(), u64::MAX);
    assert_eq!(link.enqueue(3, parcel(1, 1500)), Verdict::Queued);
    assert_eq!(link.poll(3), None);
    assert_eq!(drain(&mut link), [(3 + FULL + DELAY, 1)]);
    assert_eq!((link.in_transit(), link.delivered_pkts()), (0, 1));
}

#[test]
fn packets_are_sent_back_to_back_whatever_their_size() {
    let mut link = link(&config());
    // 86 and 1014 bytes on the link: 68,800 and 811,200 ns.
    for (id, bytes) in [(1, 72), (2, 1000), (3, 1500)] {
        assert_eq!(link.enqueue(100, parcel(id, bytes)), Verdict::Queued);
    }
    let ends = [68_800, 68_800 + 811_200, 68_800 + 811_200 + FULL];
    assert_eq!(
        drain(&mut link),
        [1, 2, 3].map(|id| (100 + ends[id as usize - 1] + DELAY, id))
    );
}

#[test]
fn fractions_of_a_nanosecond_add_up() {
    // 1211.2 ns per packet at 10 Gbit/s: after 5 n packets exactly 6056 n ns.
    let mut link = link(&LinkConfig {
        rate_bps: 10_000_000_000,
        delay_ns: 0,
        queue: QueueLimit::Unlimited,
        ..config()
    });
    assert!(
        burst(&mut link, 0, 1..1001)
            .iter()
            .all(|v| *v == Verdict::Queued)
    );
    let times: Vec<u64> = drain(&mut link).iter().map(|(at, _)| *at).collect();
    assert_eq!(times[..5], [1211, 2422, 3634, 4845, 6056]);
    assert_eq!(times[999], 1_211_200);
}

#[test]
fn the_packet_in_service_takes_no_room() {
    let mut link = link(&config());
    let verdicts = burst(&mut link, 0, 1..9);
    // One in service, five waiting.
    assert_eq!(verdicts[..6], [Verdict::Queued; 6]);
    assert_eq!(verdicts[6..], [Verdict::LostQueue; 2]);
    // A packet leaves at FULL and makes room for one, also for an arrival at the same nanosecond.
    assert_eq!(burst(&mut link, FULL - 1, 9..10), [Verdict::LostQueue]);
    assert_eq!(
        burst(&mut link, FULL, 10..12),
        [Verdict::Queued, Verdict::LostQueue]
    );
    let ids: Vec<u32> = drain(&mut link).iter().map(|(_, id)| *id).collect();
    assert_eq!(ids, [1, 2, 3, 4, 5, 6, 10]);
}

/// Room is found for many packets at a time; there must be as many places as packets have left, and not one more.
#[test]
fn a_long_queue_has_room_for_exactly_as_many_packets_as_have_left() {
    for limit in [20, 79, 300] {
        let mut link = link(&LinkConfig {
            queue: QueueLimit::Packets(limit),
            delay_ns: 170 * FULL,
            ..config()
        });
        let full = limit as usize + 1;
        let mut accepted = |now: u64| {
            run_until(&mut link, now);
            let verdicts = burst(&mut link, now, 0..400);
            let queued = verdicts.iter().take_while(|v| **v == Verdict::Queued);
            let queued = queued.count();
            assert!(verdicts[queued..].iter().all(|v| *v == Verdict::LostQueue));
            queued
        };
        assert_eq!(accepted(0), full);
        let mut now = 0;
        // Several times, so that the places in memory come round.
        for left in [1, 15, 16, 17, 31, 63, 64, 65, 79, 200, 2, 64, 16, 290, 63].repeat(3) {
            let left = left.min(full);
            now += left as u64 * FULL;
            assert_eq!(accepted(now - 1), left - 1, "{left} of {full}");
            assert_eq!(accepted(now), 1, "{left} of {full}");
        }
    }
}

#[test]
fn a_queue_without_room_still_lets_a_packet_into_an_idle_link() {
    for queue in [QueueLimit::Packets(0), QueueLimit::Bytes(0)] {
        let mut link = link(&LinkConfig { queue, ..config() });
        assert_eq!(
            burst(&mut link, 0, 1..3),
            [Verdict::Queued, Verdict::LostQueue]
        );
        assert_eq!(burst(&mut link, FULL, 3..4), [Verdict::Queued]);
    }
}

#[test]
fn byte_limits_count_layer_two_bytes_of_waiting_packets() {
    let mut link = link(&LinkConfig {
        queue: QueueLimit::Bytes(3114),
        ..config()
    });
    // In service; 1514 waiting; 3028 waiting; 86 more fit exactly, the next does not.
    let verdicts = [1500, 1500, 1500, 72, 1].map(|bytes| link.enqueue(0, parcel(0, bytes)));
    assert_eq!(verdicts[..4], [Verdict::Queued; 4]);
    assert_eq!(verdicts[4], Verdict::LostQueue);
    let stats = link.stats(0);
    assert_eq!((stats.queue_pkts, stats.queue_bytes), (3, 3114));
}

#[test]
fn counters_tell_what_happened_so_far() {
    let mut link = link(&config());
    let _ = burst(&mut link, 0, 1..9);
    assert_eq!(
        link.stats(FULL),
        LinkStats {
            queue_pkts: 4,
            queue_bytes: 4 * 1514,
            arrived_pkts: 8,
            dropped_random_pkts: 0,
            dropped_queue_pkts: 2,
            marked_pkts: 0,
            departed_pkts: 1,
            departed_bytes: 1514,
            // 0 + 1 + ... + 5 packets
            queue_delay_sum_ns: 15 * FULL,
            queue_delay_max_ns: 5 * FULL,
        }
    );
    // The last packet leaves after 6 FULL, long before the first is delivered.
    let stats = link.stats(6 * FULL);
    assert_eq!(
        (stats.departed_pkts, stats.departed_bytes, stats.queue_pkts),
        (6, 6 * 1514, 0)
    );
    assert_eq!(stats.queue_delay_max_ns, 0, "a new interval");
    assert_eq!((link.in_transit(), link.delivered_pkts()), (6, 0));
}

#[test]
fn a_late_owner_gets_the_same_packets() {
    let mut link = link(&config());
    let _ = burst(&mut link, 0, 1..4);
    let late = 100 * MS;
    let ids: Vec<u32> = std::iter::from_fn(|| link.poll(late))
        .map(|p| p.id)
        .collect();
    assert_eq!(ids, [1, 2, 3]);
    assert_eq!(link.next_ns(), u64::MAX);
}

#[test]
fn a_frozen_link_keeps_filling() {
    let mut link = link(&LinkConfig {
        rate_bps: 0,
        ..config()
    });
    let lost = burst(&mut link, 7, 0..10)
        .iter()
        .filter(|v| **v == Verdict::LostQueue)
        .count();
    assert_eq!((lost, link.in_transit(), link.next_ns()), (4, 6, u64::MAX));
    assert_eq!(link.stats(1000 * MS).departed_pkts, 0);
}

#[test]
fn slow_links_are_exact_too() {
    // 64 kbit/s needs the general machine: 54 bytes take 6.75 ms.
    let mut link = link(&LinkConfig {
        rate_bps: 64_000,
        ..config()
    });
    let _ = link.enqueue(0, parcel(1, 40));
    let _ = link.enqueue(0, parcel(2, 40));
    assert_eq!(drain(&mut link), [(26_750_000, 1), (33_500_000, 2)]);
}

#[test]
fn random_loss_comes_before_the_queue() {
    let mut link = link(&LinkConfig {
        loss: Loss::Bernoulli { p: 0.25 },
        queue: QueueLimit::Packets(2),
        ..config()
    });
    let verdicts = burst(&mut link, 0, 0..4000);
    let random = verdicts
        .iter()
        .filter(|v| **v == Verdict::LostRandom)
        .count();
    // 1000 expected, standard deviation 27: full or not, every packet meets its coin.
    assert!(random.abs_diff(1000) < 120, "{random}");
    let stats = link.stats(0);
    assert_eq!(stats.dropped_random_pkts, random as u64);
    assert_eq!(stats.dropped_queue_pkts, 4000 - 3 - random as u64);
}

#[test]
fn small_in_memory() {
    // 1000 links fit in a megabyte; a simulator's 24-byte packet makes 32-byte ring entries.
    assert!(std::mem::size_of::<Link<[u64; 3]>>() <= 512);
}
