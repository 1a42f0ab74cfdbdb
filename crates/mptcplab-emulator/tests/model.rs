//! The emulator does what the link model does: recorded arrivals, replayed without a clock, give the same verdicts and
//! the same times of release.

mod common;

use common::packet::{self, ECT0};
use common::{Host, MS, config, link, number, numbered, port, replay, rng, setup};
use mptcplab_emulator::{Report, start};
use mptcplab_model::link::rng::Rng;
use mptcplab_model::link::{
    Aqm, Change, DeliveryTrace, LinkConfig, Loss, QueueLimit, Reorder, Verdict,
};
use std::time::Duration;

/// Sizes of packets: full ones, small ones, and between.
const SIZES: [usize; 5] = [1500, 1500, 64, 900, 1437];

/// A change of nothing at this time.
fn change(at_ns: u64) -> Change {
    Change {
        at_ns,
        rate_bps: None,
        delay_ns: None,
        loss: None,
        up: None,
    }
}

/// Links of every kind, no two with the same numbers.
fn kinds() -> Vec<(&'static str, LinkConfig)> {
    vec![
        (
            "short queue",
            LinkConfig {
                rate_bps: 20_000_000,
                delay_ns: 5 * MS,
                queue: QueueLimit::Packets(12),
                ..config()
            },
        ),
        (
            "bytes and loss",
            LinkConfig {
                rate_bps: 31_000_000,
                delay_ns: 1_700_000,
                overhead_bytes: 38,
                queue: QueueLimit::Bytes(30_000),
                loss: Loss::Bernoulli { p: 0.06 },
                ..config()
            },
        ),
        (
            "bursty loss",
            LinkConfig {
                rate_bps: 44_000_000,
                delay_ns: 11 * MS,
                queue: QueueLimit::Unlimited,
                loss: Loss::GilbertElliott {
                    p: 0.02,
                    r: 0.3,
                    loss_good: 0.001,
                    loss_bad: 0.7,
                },
                ..config()
            },
        ),
        (
            "red",
            LinkConfig {
                rate_bps: 25_000_000,
                delay_ns: 2 * MS,
                queue: QueueLimit::Packets(90),
                aqm: Aqm::Red {
                    min_pkts: 5.0,
                    max_pkts: 30.0,
                    max_p: 0.2,
                    weight: 0.02,
                },
                ecn: true,
                ..config()
            },
        ),
        (
            "codel",
            LinkConfig {
                rate_bps: 17_000_000,
                delay_ns: 4 * MS,
                queue: QueueLimit::Packets(300),
                aqm: Aqm::Codel {
                    target_ns: 2 * MS,
                    interval_ns: 15 * MS,
                },
                ..config()
            },
        ),
        (
            "fq_codel",
            LinkConfig {
                rate_bps: 15_000_000,
                delay_ns: 6 * MS,
                queue: QueueLimit::Packets(120),
                aqm: Aqm::FqCodel {
                    target_ns: 3 * MS,
                    interval_ns: 20 * MS,
                    flows: 64,
                    quantum_bytes: 1514,
                },
                ecn: true,
                ..config()
            },
        ),
        (
            "schedule",
            LinkConfig {
                rate_bps: 40_000_000,
                delay_ns: 9 * MS,
                queue: QueueLimit::Packets(60),
                schedule: vec![
                    Change {
                        rate_bps: Some(8_000_000),
                        ..change(40 * MS)
                    },
                    Change {
                        delay_ns: Some(2 * MS),
                        loss: Some(Loss::Bernoulli { p: 0.1 }),
                        ..change(80 * MS)
                    },
                    Change {
                        up: Some(false),
                        ..change(120 * MS)
                    },
                    Change {
                        up: Some(true),
                        rate_bps: Some(30_000_000),
                        ..change(150 * MS)
                    },
                ],
                ..config()
            },
        ),
        (
            // Packets end, and others arrive, while the emulator does one thing.
            "fast and short",
            LinkConfig {
                rate_bps: 900_000_000,
                delay_ns: 2_000,
                schedule: vec![Change {
                    rate_bps: Some(700_000_000),
                    ..change(100 * MS)
                }],
                ..config()
            },
        ),
        (
            "delivery trace",
            LinkConfig {
                delay_ns: 7 * MS,
                queue: QueueLimit::Packets(40),
                trace: Some(DeliveryTrace {
                    name: "test".to_owned(),
                    opportunities_ns: [0, 1, 1, 2, 5, 6, 6, 9].map(|ms| ms * MS).into(),
                    period_ns: 10 * MS,
                }),
                ..config()
            },
        ),
        (
            "reordering",
            LinkConfig {
                rate_bps: 60_000_000,
                delay_ns: 3_300_000,
                reorder: Some(Reorder {
                    probability: 0.1,
                    min_extra_delay_ns: MS,
                    max_extra_delay_ns: 4 * MS,
                }),
                ..config()
            },
        ),
    ]
}

/// All kinds at once, each between its own pair of ports, with so many packets; what the emulator reports, and the
/// serial numbers that came out of each.
fn run_all(kinds: &[(&'static str, LinkConfig)], packets: u32) -> (Report, Vec<Vec<u32>>) {
    let (mut ports, mut hosts, mut links) = (Vec::new(), Vec::new(), Vec::new());
    for (index, (name, config)) in kinds.iter().enumerate() {
        let (from, sender) = port(&format!("{name} in"));
        let (to, receiver) = port(&format!("{name} out"));
        ports.extend([from, to]);
        hosts.push((sender, receiver));
        links.push(link(name, 2 * index, 2 * index + 1, config.clone()));
    }
    let emulator = start(setup(ports, links, Vec::new())).expect("an emulator");
    let received = std::thread::scope(|scope| {
        let receivers: Vec<_> = hosts
            .iter()
            .map(|(_, receiver)| scope.spawn(|| receive_numbers(receiver)))
            .collect();
        for (index, (sender, _)) in hosts.iter().enumerate() {
            scope.spawn(move || send_bursts(sender, index, packets));
        }
        let join = |thread: std::thread::ScopedJoinHandle<'_, _>| thread.join().expect("no panic");
        receivers.into_iter().map(join).collect()
    });
    (emulator.stop().expect("no error"), received)
}

/// Bursts that fill queues and pauses that empty them, unlike on every link.
fn send_bursts(host: &Host, link: usize, packets: u32) {
    let mut rng = Rng::new(5, 0, "test", &format!("bursts {link}"));
    let mut burst = 0;
    for number in 0..packets {
        if burst == 0 {
            burst = 1 + rng.below(40);
            std::thread::sleep(Duration::from_micros(rng.below(9_000)));
        }
        burst -= 1;
        let bytes = SIZES[rng.below(5) as usize];
        host.send(&numbered(rng.below(6) as u16, number, bytes, ECT0));
    }
}

/// Until nothing comes for longer than any link of the test holds a packet.
fn receive_numbers(host: &Host) -> Vec<u32> {
    let first = host.receive(5000).expect("a packet");
    let rest = std::iter::from_fn(|| host.receive(1000));
    std::iter::once(first)
        .chain(rest)
        .map(|packet| number(&packet))
        .collect()
}

#[test]
fn links_of_every_kind_do_what_the_model_says_with_the_arrivals_that_they_had() {
    let kinds = kinds();
    let (report, received) = run_all(&kinds, 1200);
    for (index, (name, config)) in kinds.iter().enumerate() {
        let logged = replay::logged(&report.log, index);
        let (replayed, stats) =
            replay::replayed(&report.log, index, config, rng(name), report.to_ns);
        assert_eq!(logged.verdicts.len(), 1200, "{name}");
        assert_eq!(logged.verdicts, replayed.verdicts, "{name}");
        assert_eq!(logged.releases, replayed.releases, "{name}");
        let numbers: Vec<u32> = logged
            .releases
            .iter()
            .map(|(number, _)| *number as u32)
            .collect();
        assert_eq!(received[index], numbers, "{name}: what came out, in order");

        let reported = &report.links[index];
        assert_eq!(
            [
                reported.arrived_pkts,
                reported.dropped_random_pkts,
                reported.dropped_queue_pkts,
                reported.marked_pkts,
                reported.released_pkts,
            ],
            [
                1200,
                stats.dropped_random_pkts,
                stats.dropped_queue_pkts,
                stats.marked_pkts,
                numbers.len() as u64,
            ],
            "{name}"
        );
        assert_eq!(
            (reported.in_transit_pkts, reported.write_failed_pkts),
            (0, 0),
            "{name}"
        );
        assert_eq!(reported.changes_applied, config.schedule.len(), "{name}");
        assert_eq!(reported.lateness.count, numbers.len() as u64, "{name}");
    }
    // Each kind did what it is there for; otherwise the comparison would show little.
    let of = |name: &str| {
        &report.links[kinds
            .iter()
            .position(|kind| kind.0 == name)
            .expect("a kind")]
    };
    for name in [
        "short queue",
        "bytes and loss",
        "red",
        "codel",
        "fq_codel",
        "schedule",
        "delivery trace",
    ] {
        let link = of(name);
        assert!(link.dropped_queue_pkts + link.marked_pkts > 10, "{link:?}");
    }
    for name in ["bytes and loss", "bursty loss", "schedule"] {
        assert!(of(name).dropped_random_pkts > 10, "{:?}", of(name));
    }
    for name in ["red", "fq_codel"] {
        assert!(of(name).marked_pkts > 10, "{:?}", of(name));
    }
    let reordered = &received[kinds
        .iter()
        .position(|kind| kind.0 == "reordering")
        .expect("a kind")];
    assert!(!reordered.is_sorted() && reordered.len() == 1200);
}

#[test]
fn marked_packets_are_whole_and_have_a_right_checksum() {
    let codel = LinkConfig {
        rate_bps: 10_000_000,
        aqm: Aqm::Codel {
            target_ns: MS,
            interval_ns: 5 * MS,
        },
        ecn: true,
        ..config()
    };
    let ((from, sender), (to, receiver)) = (port("in"), port("out"));
    let emulator = start(setup(
        vec![from, to],
        vec![link("codel", 0, 1, codel)],
        Vec::new(),
    ))
    .expect("an emulator");
    // 200 packets at once wait up to 240 ms.
    (0..200).for_each(|number| sender.send(&numbered(0, number, 1500, ECT0)));
    let packets = receiver.receive_all(200);
    let report = emulator.stop().expect("no error");
    let marked = packets
        .iter()
        .filter(|packet| packet[1] & 3 == packet::CE)
        .count();
    assert!(marked > 5, "{marked}");
    assert_eq!(report.links[0].marked_pkts, marked as u64);
    for (number, packet) in (0..).zip(packets) {
        assert!(packet::header_checksum_is_right(&packet), "packet {number}");
        let sent = numbered(0, number, 1500, ECT0);
        assert_eq!((&packet[2..10], &packet[12..]), (&sent[2..10], &sent[12..]));
    }
}

#[test]
fn a_link_that_is_down_loses_what_arrives_and_holds_what_it_has() {
    let down = LinkConfig {
        rate_bps: 12_000_000,
        overhead_bytes: 0,
        schedule: vec![
            Change {
                up: Some(false),
                ..change(200 * MS)
            },
            Change {
                up: Some(true),
                ..change(600 * MS)
            },
        ],
        ..config()
    };
    let ((from, sender), (to, receiver)) = (port("in"), port("out"));
    let emulator = start(setup(
        vec![from, to],
        vec![link("down", 0, 1, down.clone())],
        Vec::new(),
    ))
    .expect("an emulator");
    // 1 ms each: 200 ms are not enough for all.
    (0..300).for_each(|number| sender.send(&numbered(0, number, 1500, 0)));
    while emulator.sample().expect("it runs").t_ns < 250 * MS {
        std::thread::sleep(Duration::from_millis(5));
    }
    (300..330).for_each(|number| sender.send(&numbered(0, number, 1500, 0)));
    let packets: Vec<u32> = receiver
        .receive_all(300)
        .iter()
        .map(|packet| number(packet))
        .collect();
    assert_eq!(packets, (0..300).collect::<Vec<_>>());
    assert_eq!(
        receiver.receive(50),
        None,
        "what arrived during the outage is lost"
    );
    let report = emulator.stop().expect("no error");
    let logged = replay::logged(&report.log, 0);
    assert_eq!(logged.verdicts[300..], [Verdict::LostRandom; 30]);
    assert_eq!(
        logged.releases,
        replay::replayed(&report.log, 0, &down, rng("down"), report.to_ns)
            .0
            .releases
    );
}
