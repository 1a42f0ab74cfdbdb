//! Two links in a row, with and without an event between them: the same packets at the same times, and at any time the
//! same counters.

use super::*;
use std::collections::VecDeque;

/// Pairs of links; no parameter of the first is one of the second.
fn pairs() -> Vec<[LinkConfig; 2]> {
    let base = config();
    let slow = LinkConfig {
        rate_bps: 4_000_003,
        delay_ns: 9 * MS,
        overhead_bytes: 38,
        queue: QueueLimit::Packets(3),
        ..base.clone()
    };
    let lossy = LinkConfig {
        loss: Loss::Bernoulli { p: 0.08 },
        delay_ns: 3 * MS,
        ..base.clone()
    };
    let bytes = LinkConfig {
        rate_bps: 5_999_999,
        delay_ns: 0,
        overhead_bytes: 0,
        queue: QueueLimit::Bytes(4000),
        loss: Loss::GilbertElliott {
            p: 0.05,
            r: 0.3,
            loss_good: 0.01,
            loss_bad: 0.6,
        },
        ..base.clone()
    };
    let free = LinkConfig {
        rate_bps: 1_000_000_000,
        delay_ns: MS,
        queue: QueueLimit::Unlimited,
        ..base.clone()
    };
    let none = LinkConfig {
        rate_bps: 7_000_001,
        queue: QueueLimit::Packets(0),
        ..base.clone()
    };
    vec![
        [base.clone(), slow.clone()],
        [slow.clone(), free.clone()],
        [free.clone(), bytes.clone()],
        [lossy, base.clone()],
        [bytes, slow],
        [free, none.clone()],
        [none, base],
    ]
}

fn two_links([first, second]: &[LinkConfig; 2], seed: u64) -> [Link<Parcel>; 2] {
    let link = |config, name| Link::new(config, Rng::new(seed, 0, "link", name));
    [link(first, "first"), link(second, "second")]
}

/// When packets are sent, when they arrive at the first link, and when the counters are read.
struct Load {
    packets: Vec<(u64, u64, Parcel)>,
    samples: Vec<u64>,
}

/// Bursts and pauses. Some packets are known before they arrive, and samples are often taken at the moment of an arrival.
fn load(seed: u64) -> Load {
    let mut rng = Rng::new(seed, 2, "test", "load");
    let (mut now, mut at) = (0, 0);
    let packets: Vec<_> = (0..500)
        .map(|id| {
            let pause = if rng.below(50) == 0 { 60 * MS } else { 5 * MS };
            now += rng.below(2) * rng.below(pause);
            at = at.max(now + rng.below(2) * rng.below(4 * MS));
            let bytes = [52, 72, 600, 1500][rng.below(4) as usize];
            (now, at, parcel(id, bytes))
        })
        .collect();
    let sample = |i: u64| match packets.get(i as usize * 7) {
        Some((_, at, _)) if i % 3 == 0 => *at,
        _ => i * 13 * MS,
    };
    let mut samples: Vec<u64> = (0..80).map(sample).collect();
    samples.extend([2 * MS, 100_000 * MS]);
    samples.sort_unstable();
    Load { packets, samples }
}

/// What came out of the second link, and the counters of both at the times of the samples.
#[derive(Debug, Default, PartialEq)]
struct Seen {
    delivered: Vec<(u64, u32)>,
    samples: Vec<[LinkStats; 2]>,
    left: [(u64, u64); 2],
}

/// Event by event: packets arrive, the links deliver, and then samples are taken, all of a time in this order.
fn event_by_event(links: &mut [Link<Parcel>; 2], load: &Load) -> Seen {
    let mut seen = Seen::default();
    let mut arrivals: VecDeque<_> = load.packets.iter().collect();
    for &sample in &load.samples {
        loop {
            let arrival = arrivals.front().map_or(u64::MAX, |(_, at, _)| *at);
            let [first, second] = [links[0].next_ns(), links[1].next_ns()];
            let now = arrival.min(first).min(second);
            if now > sample {
                break;
            }
            if now == first {
                let packet = links[0].poll(now).expect("a packet");
                let _ = links[1].enqueue(now, packet);
            } else if now == second {
                let packet = links[1].poll(now).expect("a packet");
                seen.delivered.push((now, packet.id));
            } else if let Some((_, _, packet)) = arrivals.pop_front() {
                let _ = links[0].enqueue(now, packet.clone());
            }
        }
        seen.samples.push(links.each_mut().map(|l| l.stats(sample)));
    }
    seen.left = links
        .each_ref()
        .map(|l| (l.in_transit(), l.delivered_pkts()));
    seen
}

/// Both links are asked when a packet is sent.
fn ahead(links: &mut [Link<Parcel>; 2], load: &Load) -> Seen {
    links.iter_mut().for_each(Link::look_ahead);
    let mut seen = Seen::default();
    let mut packets: VecDeque<_> = load.packets.iter().collect();
    for &sample in &load.samples {
        loop {
            let sent = packets.front().map_or(u64::MAX, |(now, _, _)| *now);
            let next = links[1].next_ns();
            if sent.min(next) > sample {
                break;
            }
            if next <= sent {
                let packet = links[1].poll(next).expect("a packet");
                seen.delivered.push((next, packet.id));
            } else if let Some((now, at, packet)) = packets.pop_front() {
                let through = links[0].enqueue_ahead(*now, *at, packet.bytes as u16);
                let out =
                    through.and_then(|at| links[1].enqueue_ahead(*now, at, packet.bytes as u16));
                if let Some(delivery_ns) = out {
                    links[1].keep(delivery_ns, packet.clone());
                }
            }
        }
        seen.samples.push(links.each_mut().map(|l| l.stats(sample)));
    }
    seen.left = links
        .each_ref()
        .map(|l| (l.in_transit(), l.delivered_pkts()));
    seen
}

#[test]
fn links_that_look_ahead_do_the_same_as_event_by_event() {
    for (index, pair) in pairs().iter().enumerate() {
        for seed in 0..40 {
            let load = load(seed);
            let expected = event_by_event(&mut two_links(pair, seed), &load);
            let found = ahead(&mut two_links(pair, seed), &load);
            assert!(
                expected.delivered.len() > 100 && expected.delivered.len() < 500,
                "pair {index}"
            );
            assert_eq!(found, expected, "pair {index}, seed {seed}");
        }
    }
}

#[test]
fn packets_that_have_not_arrived_are_not_counted() {
    let [mut first, _] = two_links(&pairs()[0], 1);
    first.look_ahead();
    let delivery = first.enqueue_ahead(0, 5 * MS, 1500);
    assert_eq!(delivery, Some(5 * MS + 1_211_200 + 20 * MS));
    assert_eq!(first.stats(5 * MS - 1), LinkStats::default());
    assert_eq!((first.in_transit(), first.delivered_pkts()), (0, 0));
    let arrived = first.stats(5 * MS);
    assert_eq!((arrived.arrived_pkts, arrived.departed_pkts), (1, 0));
    assert_eq!((first.in_transit(), first.delivered_pkts()), (1, 0));
}

#[test]
fn links_whose_fate_of_a_packet_is_open_do_not_look_ahead() {
    let red = Aqm::Red {
        min_pkts: 2.0,
        max_pkts: 6.0,
        max_p: 0.3,
        weight: 0.1,
    };
    let codel = Aqm::Codel {
        target_ns: MS,
        interval_ns: 8 * MS,
    };
    assert!(link(&config()).can_look_ahead());
    for aqm in [red, codel] {
        assert!(!link(&LinkConfig { aqm, ..config() }).can_look_ahead());
    }
}
