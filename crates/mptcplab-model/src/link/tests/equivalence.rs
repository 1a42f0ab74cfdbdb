//! Random loads: both machines give the same packets at the same times, and no packet is made or lost on the way.

use super::*;

/// Configurations that the fused machine serves; all parameters differ from one to the next.
fn fused_configs() -> Vec<LinkConfig> {
    let base = config();
    let red = Aqm::Red {
        min_pkts: 2.0,
        max_pkts: 6.0,
        max_p: 0.3,
        weight: 0.1,
    };
    let bursty = Loss::GilbertElliott {
        p: 0.05,
        r: 0.3,
        loss_good: 0.01,
        loss_bad: 0.6,
    };
    vec![
        base.clone(),
        LinkConfig {
            rate_bps: 30_000_000,
            delay_ns: 0,
            overhead_bytes: 0,
            ..base.clone()
        },
        LinkConfig {
            rate_bps: 9_999_991,
            delay_ns: 1,
            queue: QueueLimit::Packets(0),
            ..base.clone()
        },
        LinkConfig {
            rate_bps: 54_000_000,
            queue: QueueLimit::Bytes(4000),
            ..base.clone()
        },
        LinkConfig {
            rate_bps: 7_000_000,
            queue: QueueLimit::Unlimited,
            overhead_bytes: 38,
            ..base.clone()
        },
        LinkConfig {
            loss: Loss::Bernoulli { p: 0.1 },
            delay_ns: 3 * MS,
            ..base.clone()
        },
        LinkConfig {
            loss: bursty,
            queue: QueueLimit::Bytes(9000),
            delay_ns: 7 * MS,
            ..base.clone()
        },
        LinkConfig {
            aqm: red,
            queue: QueueLimit::Packets(9),
            ..base.clone()
        },
        LinkConfig {
            aqm: red,
            queue: QueueLimit::Bytes(20_000),
            ecn: true,
            delay_ns: 2 * MS,
            ..base
        },
    ]
}

/// Configurations that need the general machine.
fn general_configs() -> Vec<LinkConfig> {
    let base = config();
    let codel = Aqm::Codel {
        target_ns: MS,
        interval_ns: 8 * MS,
    };
    let fq_codel = Aqm::FqCodel {
        target_ns: 2 * MS,
        interval_ns: 9 * MS,
        flows: 3,
        quantum_bytes: 300,
    };
    let change = |at_ms, rate_bps, delay_ns, up| Change {
        at_ns: at_ms * MS + 7,
        rate_bps,
        delay_ns,
        loss: rate_bps.map(|bps| Loss::Bernoulli {
            p: 1e5 / (1.0 + bps as f64),
        }),
        up,
    };
    let schedule = vec![
        change(10, Some(3_000_001), None, None),
        change(40, None, Some(MS), None),
        change(60, Some(0), Some(8 * MS), None),
        change(75, Some(20_000_003), None, None),
        change(100, None, None, Some(false)),
        change(130, None, Some(0), Some(true)),
    ];
    let outages = schedule.clone();
    let reorder = Reorder {
        probability: 0.2,
        min_extra_delay_ns: 0,
        max_extra_delay_ns: 30 * MS,
    };
    let trace = DeliveryTrace {
        name: "test".into(),
        opportunities_ns: [1, 1, 3, 4, 4, 4, 6].iter().map(|ms| ms * MS).collect(),
        period_ns: 6 * MS,
    };
    vec![
        LinkConfig {
            aqm: codel,
            queue: QueueLimit::Packets(40),
            ..base.clone()
        },
        LinkConfig {
            aqm: codel,
            ecn: true,
            queue: QueueLimit::Bytes(30_000),
            ..base.clone()
        },
        LinkConfig {
            aqm: fq_codel,
            queue: QueueLimit::Packets(20),
            ..base.clone()
        },
        LinkConfig {
            aqm: fq_codel,
            ecn: true,
            queue: QueueLimit::Bytes(9_000),
            delay_ns: 5,
            ..base.clone()
        },
        LinkConfig {
            schedule: schedule.clone(),
            ..base.clone()
        },
        LinkConfig {
            schedule: schedule.clone(),
            aqm: fq_codel,
            ..base.clone()
        },
        LinkConfig {
            trace: Some(trace.clone()),
            queue: QueueLimit::Packets(30),
            ..base.clone()
        },
        LinkConfig {
            trace: Some(trace),
            schedule,
            aqm: codel,
            ..base.clone()
        },
        LinkConfig {
            rate_bps: 100_000,
            queue: QueueLimit::Unlimited,
            ..base.clone()
        },
        LinkConfig {
            reorder: Some(reorder),
            loss: Loss::Bernoulli { p: 0.05 },
            ..base.clone()
        },
        LinkConfig {
            reorder: Some(Reorder {
                probability: 0.9,
                ..reorder
            }),
            schedule: outages,
            aqm: codel,
            ..base
        },
    ]
}

/// What the owner of a link sees.
#[derive(Debug, Default, PartialEq)]
struct Log {
    verdicts: Vec<Verdict>,
    delivered: Vec<(u64, Parcel)>,
    samples: Vec<LinkStats>,
}

/// A packet that arrives, and whether the counters are read then.
#[derive(Debug, Clone)]
struct Arrival {
    at: u64,
    parcel: Parcel,
    sample: bool,
}

/// Random arrivals for such a link, on and off above its capacity; often several at once, and often at the very
/// nanosecond at which the link does something.
fn arrivals(config: &LinkConfig, seed: u64) -> Vec<Arrival> {
    let mut rng = Rng::new(seed, 1, "test", "arrivals");
    let mut link = Link::new_general(config, &Rng::new(seed, 0, "link", "test"));
    let mut at = 0;
    (0..ARRIVALS)
        .map(|id| {
            let pause = if rng.below(40) == 0 { 40 * MS } else { 2 * MS };
            let next_ns = link.next_ns();
            at = match rng.below(4) {
                0 => at,
                1 if (at..at + pause).contains(&next_ns) => next_ns,
                _ => at + rng.below(pause),
            };
            let parcel = Parcel {
                id,
                flow: rng.below(4) as u32,
                bytes: [52, 72, 600, 1500][rng.below(4) as usize],
                ecn: rng.below(2) == 0,
                ce: false,
            };
            run_until(&mut link, at);
            let _ = link.enqueue(at, parcel.clone());
            Arrival {
                at,
                parcel,
                sample: rng.below(5) == 0,
            }
        })
        .collect()
}

const ARRIVALS: u32 = 400;

/// Offer the arrivals, then leave the link alone until nothing happens any more.
fn replay(link: &mut Link<Parcel>, arrivals: &[Arrival], sample: bool) -> Log {
    let mut log = Log::default();
    for arrival in arrivals {
        log.delivered.extend(run_until(link, arrival.at));
        log.verdicts
            .push(link.enqueue(arrival.at, arrival.parcel.clone()));
        if sample && arrival.sample {
            log.samples.push(link.stats(arrival.at));
        }
    }
    log.delivered.extend(run_until(link, MAX_TIME_NS - 1));
    log.samples.push(link.stats(MAX_TIME_NS - 1));
    log
}

#[test]
fn both_machines_deliver_the_same_packets_at_the_same_times() {
    for (index, config) in fused_configs().iter().enumerate() {
        for seed in 0..60 {
            let sample = seed % 2 == 0;
            let arrivals = arrivals(config, seed);
            let rng = Rng::new(seed, 0, "link", "test");
            let mut general = replay(&mut Link::new_general(config, &rng), &arrivals, sample);
            let mut link = Link::new(config, rng);
            assert!(
                matches!(link.machine, Machine::Fused(_)),
                "configuration {index}"
            );
            let mut fused = replay(&mut link, &arrivals, sample);
            if sample {
                forget_when_waits_became_known(&mut fused);
                forget_when_waits_became_known(&mut general);
            }
            let context = format!("configuration {index}, seed {seed}");
            assert!(fused.verdicts == general.verdicts, "verdicts: {context}");
            assert_eq!(
                first_difference(&fused.delivered, &general.delivered),
                None,
                "{context}"
            );
            assert_eq!(
                first_difference(&fused.samples, &general.samples),
                None,
                "{context}"
            );
        }
    }
}

/// The machines learn of a wait at different times; only the final sum must agree.
fn forget_when_waits_became_known(log: &mut Log) {
    let last = log.samples.len() - 1;
    for (i, stats) in log.samples.iter_mut().enumerate() {
        stats.queue_delay_max_ns = 0;
        stats.queue_delay_sum_ns *= u64::from(i == last);
    }
}

/// The first pair that is not equal; one side is missing where the lengths differ.
fn first_difference<'a, T: PartialEq>(
    a: &'a [T],
    b: &'a [T],
) -> Option<(Option<&'a T>, Option<&'a T>)> {
    (0..a.len().max(b.len()))
        .map(|i| (a.get(i), b.get(i)))
        .find(|(x, y)| x != y)
}

#[test]
fn no_packet_is_made_or_lost_on_the_way() {
    let configs = [fused_configs(), general_configs()].concat();
    for (index, config) in configs.iter().enumerate() {
        for seed in 0..40 {
            let mut link = Link::new(config, Rng::new(seed, 0, "link", "conservation"));
            let log = replay(&mut link, &arrivals(config, seed), true);
            let context = format!("configuration {index}, seed {seed}");
            let stats = log.samples.last().expect("there is a last sample");
            let count = |verdict| log.verdicts.iter().filter(|v| **v == verdict).count() as u64;
            assert_eq!(stats.arrived_pkts, u64::from(ARRIVALS), "{context}");
            assert_eq!(
                stats.dropped_random_pkts,
                count(Verdict::LostRandom),
                "{context}"
            );
            assert!(
                stats.dropped_queue_pkts >= count(Verdict::LostQueue),
                "{context}"
            );
            let gone = stats.dropped_random_pkts + stats.dropped_queue_pkts;
            assert_eq!(
                log.delivered.len() as u64 + gone + link.in_transit(),
                400,
                "{context}"
            );
            assert_eq!(
                link.delivered_pkts(),
                log.delivered.len() as u64,
                "{context}"
            );
            assert_eq!(
                link.in_transit(),
                0,
                "every configuration can empty itself: {context}"
            );
            let bytes: u64 = log
                .delivered
                .iter()
                .map(|(_, p)| u64::from(p.bytes + config.overhead_bytes))
                .sum();
            assert_eq!(
                (stats.departed_bytes, stats.queue_bytes),
                (bytes, 0),
                "{context}"
            );
            check_order(config, &log, &context);
            let marks = log.delivered.iter().filter(|(_, p)| p.ce).count() as u64;
            assert!(
                marks <= stats.marked_pkts && (config.ecn || marks == 0),
                "{context}"
            );
        }
    }
}

/// Times do not decrease; ids increase where nothing is reordered, with flow queueing within each flow.
fn check_order(config: &LinkConfig, log: &Log, context: &str) {
    assert!(log.delivered.is_sorted_by_key(|(at, _)| *at), "{context}");
    if config.reorder.is_some() {
        return;
    }
    let flow_queueing = matches!(config.aqm, Aqm::FqCodel { .. });
    for flow in 0..4 {
        let ids = log
            .delivered
            .iter()
            .filter(|(_, p)| !flow_queueing || p.flow == flow)
            .map(|(_, p)| p.id);
        assert!(ids.is_sorted_by(|a, b| a < b), "{context}");
    }
}

#[test]
fn the_same_seed_gives_the_same_run_and_another_one_does_not() {
    let lossy = &fused_configs()[5];
    let arrivals = arrivals(lossy, 1);
    let log = |seed| {
        replay(
            &mut Link::new(lossy, Rng::new(seed, 0, "link", "same")),
            &arrivals,
            true,
        )
    };
    assert_eq!(log(1), log(1));
    assert_ne!(log(1).verdicts, log(2).verdicts);
}
