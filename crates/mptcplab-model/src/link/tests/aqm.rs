//! Queue management on whole links under load.

use super::*;

/// A constant stream of one flow: one packet of `bytes` every `gap_ns` from `start_ns`.
#[derive(Clone, Copy)]
struct Stream {
    flow: u32,
    bytes: u32,
    gap_ns: u64,
    start_ns: u64,
}

/// Offer the streams to the link until `until`; what came out. Ids number the packets of a flow.
fn offer(link: &mut Link<Parcel>, streams: &[Stream], ecn: bool, until: u64) -> Vec<(u64, Parcel)> {
    let mut next: Vec<(u64, u32)> = streams.iter().map(|s| (s.start_ns, 0)).collect();
    let mut out = Vec::new();
    loop {
        let (i, &(now, id)) = next
            .iter()
            .enumerate()
            .min_by_key(|(_, (at, _))| *at)
            .expect("there are streams");
        if now > until {
            return out;
        }
        let Stream {
            flow,
            bytes,
            gap_ns,
            ..
        } = streams[i];
        out.extend(run_until(link, now));
        let _ = link.enqueue(
            now,
            Parcel {
                id,
                flow,
                bytes,
                ecn,
                ce: false,
            },
        );
        next[i] = (now + gap_ns, id + 1);
    }
}

/// 10 Mbit/s without headers and delay: 1250 bytes last 1 ms.
fn bottleneck(aqm: Aqm) -> LinkConfig {
    LinkConfig {
        delay_ns: 0,
        overhead_bytes: 0,
        queue: QueueLimit::Packets(1000),
        aqm,
        ..config()
    }
}

const CODEL: Aqm = Aqm::Codel {
    target_ns: 5 * MS,
    interval_ns: 100 * MS,
};
const FQ_CODEL: Aqm = Aqm::FqCodel {
    target_ns: 5 * MS,
    interval_ns: 100 * MS,
    flows: 1024,
    quantum_bytes: 1514,
};
/// 3 % more than the link can carry.
const OVERLOAD: Stream = Stream {
    flow: 1,
    bytes: 1250,
    gap_ns: 970_000,
    start_ns: 0,
};

/// Mean queueing delay in ms between two times.
fn mean_delay_ms(link: &mut Link<Parcel>, streams: &[Stream], from: u64, until: u64) -> f64 {
    let _ = offer(link, streams, false, from);
    let before = link.stats(from);
    let late: Vec<Stream> = streams
        .iter()
        .map(|s| Stream {
            start_ns: from + s.gap_ns,
            ..*s
        })
        .collect();
    let _ = offer(link, &late, false, until);
    let after = link.stats(until);
    let packets = after.departed_pkts - before.departed_pkts;
    (after.queue_delay_sum_ns - before.queue_delay_sum_ns) as f64 / packets as f64 / MS as f64
}

#[test]
fn codel_keeps_the_standing_queue_near_its_target() {
    let delay = |aqm| {
        let mut link = link(&bottleneck(aqm));
        mean_delay_ms(&mut link, &[OVERLOAD], 30_000 * MS, 90_000 * MS)
    };
    let codel = delay(CODEL);
    assert!((2.0..12.0).contains(&codel), "{codel} ms");
    // The same load fills a drop-tail queue: 1000 packets of 1 ms.
    assert!(delay(Aqm::DropTail) > 900.0);
}

#[test]
fn codel_leaves_a_busy_link_without_a_standing_queue_alone() {
    let mut link = link(&bottleneck(CODEL));
    // Bursts of four at 95 % load: waits up to 3 ms.
    let stream = |start_ns| Stream {
        gap_ns: 4_200_000,
        start_ns,
        ..OVERLOAD
    };
    let streams = [stream(0), stream(1), stream(2), stream(3)];
    let _ = offer(&mut link, &streams, false, 20_000 * MS);
    let stats = link.stats(20_000 * MS);
    assert_eq!(stats.dropped_queue_pkts, 0);
    assert!(stats.queue_delay_max_ns > 2 * MS);
}

#[test]
fn codel_drops_first_after_an_interval_above_the_target() {
    let mut link = link(&bottleneck(CODEL));
    // At 150 % load the n-th packet waits n/3 ms: 5 ms are exceeded first by packet 15, which is dequeued at 15 ms.
    let stream = Stream {
        gap_ns: 666_667,
        ..OVERLOAD
    };
    let out = offer(&mut link, &[stream], false, 130 * MS);
    let missing = (0..)
        .zip(&out)
        .find(|(id, (_, parcel))| *id != parcel.id)
        .expect("a drop");
    // The first dequeue at or after 15 + 100 ms finds packet 115 or so and drops it.
    assert!((114..=118).contains(&missing.0), "{}", missing.0);
}

#[test]
fn codel_marks_instead_of_dropping() {
    let mut link = link(&LinkConfig {
        ecn: true,
        ..bottleneck(CODEL)
    });
    let out = offer(&mut link, &[OVERLOAD], true, 5_000 * MS);
    let stats = link.stats(5_000 * MS);
    let marked = out.iter().filter(|(_, parcel)| parcel.ce).count() as u64;
    assert_eq!(stats.dropped_queue_pkts, 0);
    assert!(
        stats.marked_pkts > 10 && stats.marked_pkts.abs_diff(marked) <= 1,
        "{stats:?} {marked}"
    );
}

#[test]
fn packets_that_are_not_ecn_capable_are_dropped() {
    let mut link = link(&LinkConfig {
        ecn: true,
        ..bottleneck(CODEL)
    });
    let _ = offer(&mut link, &[OVERLOAD], false, 5_000 * MS);
    let stats = link.stats(5_000 * MS);
    assert_eq!(stats.marked_pkts, 0);
    assert!(stats.dropped_queue_pkts > 10);
}

#[test]
fn fq_codel_isolates_a_sparse_flow_from_a_flood() {
    let mut link = link(&bottleneck(FQ_CODEL));
    let flood = Stream {
        flow: 7,
        bytes: 1250,
        gap_ns: 300_000,
        start_ns: 0,
    };
    let sparse = Stream {
        flow: 8,
        bytes: 125,
        gap_ns: 50 * MS,
        start_ns: 1_010_101,
    };
    let out = offer(&mut link, &[flood, sparse], false, 10_000 * MS);
    let sent_ns = |id: u32| sparse.start_ns + u64::from(id) * sparse.gap_ns;
    let arrivals: Vec<(u64, u32)> = out
        .iter()
        .filter(|(_, p)| p.flow == 8)
        .map(|(at, p)| (*at, p.id))
        .collect();
    // All but perhaps the last arrived, each after at most the packet in service and its own 0.1 ms.
    assert!(arrivals.len() >= 199);
    assert!(
        arrivals
            .iter()
            .enumerate()
            .all(|(i, (at, id))| i == *id as usize && at - sent_ns(*id) <= 11 * MS / 10)
    );
}

#[test]
fn fq_codel_shares_bytes_between_packet_sizes() {
    let mut link = link(&bottleneck(FQ_CODEL));
    let large = Stream {
        flow: 1,
        bytes: 1400,
        gap_ns: 700_000,
        start_ns: 0,
    };
    let small = Stream {
        flow: 2,
        bytes: 300,
        gap_ns: 150_000,
        start_ns: 50,
    };
    let out = offer(&mut link, &[large, small], false, 10_000 * MS);
    let bytes = |flow| {
        out.iter()
            .filter(|(_, p)| p.flow == flow)
            .map(|(_, p)| f64::from(p.bytes))
            .sum::<f64>()
    };
    let ratio = bytes(1) / bytes(2);
    assert!((0.97..1.03).contains(&ratio), "{ratio}");
}

#[test]
fn fq_codel_keeps_the_order_within_a_flow() {
    let mut link = link(&bottleneck(FQ_CODEL));
    let stream = |flow, bytes, gap_ns| Stream {
        flow,
        bytes,
        gap_ns,
        start_ns: u64::from(flow),
    };
    let streams = [
        stream(1, 1250, 2_000_000),
        stream(2, 700, 900_000),
        stream(3, 90, 200_000),
    ];
    let out = offer(&mut link, &streams, false, 3_000 * MS);
    for flow in 1..=3 {
        let ids: Vec<u32> = out
            .iter()
            .filter(|(_, p)| p.flow == flow)
            .map(|(_, p)| p.id)
            .collect();
        assert!(
            ids.len() > 500 && ids.is_sorted_by(|a, b| a < b),
            "flow {flow}"
        );
    }
}

#[test]
fn fq_codel_drops_from_the_fattest_queue_when_full() {
    let mut link = link(&LinkConfig {
        queue: QueueLimit::Packets(10),
        ..bottleneck(FQ_CODEL)
    });
    for id in 0..11 {
        assert_eq!(
            link.enqueue(
                0,
                Parcel {
                    flow: 1,
                    ..parcel(id, 1250)
                }
            ),
            Verdict::Queued
        );
    }
    // Full: a packet of another flow gets in, and the head of the fat queue (packet 1, as 0 is in service) goes.
    assert_eq!(
        link.enqueue(
            0,
            Parcel {
                flow: 2,
                ..parcel(99, 1250)
            }
        ),
        Verdict::Queued
    );
    let stats = link.stats(0);
    assert_eq!((stats.queue_pkts, stats.dropped_queue_pkts), (10, 1));
    let ids: Vec<u32> = drain(&mut link).iter().map(|(_, id)| *id).collect();
    // 264 bytes of the first quantum are left when packet 0 has begun: flow 1 is still the first of the new flows.
    assert_eq!(ids[..3], [0, 2, 99]);
    assert!(!ids.contains(&1) && ids.len() == 11);
}

#[test]
fn fq_codel_overflow_can_hit_the_arrival_itself() {
    let mut link = link(&LinkConfig {
        queue: QueueLimit::Bytes(1000),
        ..bottleneck(FQ_CODEL)
    });
    let _ = link.enqueue(
        0,
        Parcel {
            flow: 1,
            ..parcel(1, 1250)
        },
    );
    assert_eq!(
        link.enqueue(
            0,
            Parcel {
                flow: 2,
                ..parcel(2, 400)
            }
        ),
        Verdict::Queued
    );
    assert_eq!(
        link.enqueue(
            0,
            Parcel {
                flow: 3,
                ..parcel(3, 900)
            }
        ),
        Verdict::LostQueue
    );
    assert_eq!(link.stats(0).dropped_queue_pkts, 1);
}

#[test]
fn dropped_packets_come_back_to_an_owner_who_wants_them() {
    for (aqm, queue) in [(CODEL, 1000), (FQ_CODEL, 1000), (FQ_CODEL, 9)] {
        let queue = QueueLimit::Packets(queue);
        let mut link = link(&LinkConfig {
            queue,
            ..bottleneck(aqm)
        });
        link.keep_dropped();
        let stream = |flow, gap_ns| Stream {
            flow,
            gap_ns,
            start_ns: u64::from(flow),
            bytes: 1250,
        };
        let out = offer(
            &mut link,
            &[stream(1, 1_600_000), stream(2, 2_100_000)],
            false,
            3_000 * MS,
        );
        let dropped: Vec<Parcel> = std::iter::from_fn(|| link.take_dropped()).collect();
        let stats = link.stats(3_000 * MS);
        assert!(dropped.len() > 10);
        assert_eq!(
            dropped.len() as u64,
            stats.dropped_queue_pkts,
            "nothing was refused on arrival"
        );
        assert!(dropped.iter().all(|lost| {
            out.iter()
                .all(|(_, parcel)| (parcel.flow, parcel.id) != (lost.flow, lost.id))
        }));
    }
}

/// RED between 20 and 60 packets, at most 10 %, gentle.
const RED: Aqm = Aqm::Red {
    min_pkts: 20.0,
    max_pkts: 60.0,
    max_p: 0.1,
    weight: 0.002,
};

#[test]
fn red_settles_where_its_drop_rate_meets_the_overload() {
    let mut link = link(&bottleneck(RED));
    // 3 % must go: uniform gaps make the drop rate 2 p / (1 + p), so p = 0.0152 and the average queue 20 + 40 * 0.152 = 26.
    let delay = mean_delay_ms(&mut link, &[OVERLOAD], 30_000 * MS, 90_000 * MS);
    assert!((24.0..29.0).contains(&delay), "{delay} ms = packets");
}

#[test]
fn red_marks_instead_of_dropping_until_the_average_is_beyond_the_gentle_region() {
    let mut link = link(&LinkConfig {
        ecn: true,
        ..bottleneck(RED)
    });
    let out = offer(&mut link, &[OVERLOAD], true, 1_500 * MS);
    let stats = link.stats(1_500 * MS);
    assert!(
        stats.marked_pkts > 5 && stats.dropped_queue_pkts == 0,
        "{stats:?}"
    );
    assert!(out.iter().any(|(_, parcel)| parcel.ce));
    // Marks do not slow this source: the queue grows until packets are dropped at an average of 120.
    let late = Stream {
        start_ns: 1_500 * MS,
        ..OVERLOAD
    };
    let _ = offer(&mut link, &[late], true, 60_000 * MS);
    let stats = link.stats(60_000 * MS);
    assert!(
        stats.dropped_queue_pkts > 100 && stats.queue_pkts.abs_diff(120) < 10,
        "{stats:?}"
    );
}

#[test]
fn red_still_respects_the_queue_limit() {
    let mut link = link(&LinkConfig {
        queue: QueueLimit::Packets(15),
        ..bottleneck(RED)
    });
    let _ = offer(&mut link, &[OVERLOAD], false, 10_000 * MS);
    let stats = link.stats(10_000 * MS);
    assert_eq!(stats.queue_delay_max_ns / MS, 15);
    assert!(stats.dropped_queue_pkts > 250);
}
