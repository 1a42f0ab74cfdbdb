//! Judgements of made-up reports.

use super::*;

const MS: u64 = 1_000_000;

fn link(name: &str, delay_ms: u64, p99_ns: u64) -> LinkReport {
    LinkReport {
        name: name.to_owned(),
        delay_ns: delay_ms * MS,
        arrived_pkts: 100,
        dropped_random_pkts: 1,
        dropped_queue_pkts: 2,
        marked_pkts: 0,
        released_pkts: 97,
        in_transit_pkts: 0,
        write_failed_pkts: 0,
        changes_applied: 0,
        lateness: Summary {
            count: 97,
            mean_ns: 10,
            p50_ns: 9,
            p90_ns: 20,
            p99_ns,
            p999_ns: 50 * MS,
            max_ns: 80 * MS,
            ..Summary::default()
        },
        answers: Summary::default(),
    }
}

/// Three links of 4, 10 and 90 ms whose releases are 0.3, 0.5 and 3 ms late; wake-ups are 0.1 ms late.
fn report() -> Report {
    Report {
        scheduling: Scheduling::Normal {
            refused: Some("EPERM".to_owned()),
        },
        spin_ns: 0,
        memory_locked: false,
        memory_refused: None,
        from_ns: 0,
        to_ns: 1000 * MS,
        cpu_ns: 5 * MS,
        spun_ns: 0,
        wakeups: Summary {
            count: 100,
            p99_ns: 100_000,
            ..Summary::default()
        },
        worst_busy_ns: 7,
        worst_write_ns: 8,
        worst_sample_ns: 9,
        links: vec![
            link("near", 4, 300_000),
            link("mid", 10, 500_000),
            link("far", 90, 3 * MS),
        ],
        ports: Vec::new(),
        pairs: Vec::new(),
        log: Vec::new(),
    }
}

fn problems(paths: &[&[usize]]) -> Vec<String> {
    let paths: Vec<_> = paths.iter().map(|path| path.to_vec()).collect();
    report().judge(&Bound::default(), &paths).problems
}

#[test]
fn a_path_may_be_late_by_a_millisecond_or_a_share_of_its_delay() {
    // To near: 0.4 of 1 ms. Over mid: 0.6 of 1 ms. Over far: 3.1 ms of 4.5, 4.7 and 5.2 ms.
    assert_eq!(
        problems(&[&[0], &[1], &[0, 1], &[2], &[0, 2], &[0, 1, 2]]),
        [""; 0]
    );
    let mut late = report();
    late.wakeups.p99_ns = 500_064;
    let verdict = late.judge(&Bound::default(), &[vec![0], vec![0, 1]]);
    assert_eq!(
        verdict.problems,
        [
            "path near > mid: emulation was late by up to 1000.1 us at the 99th percentile (releases 500.0 us, \
          waking 500.1 us), allowed are 1000.0 us for a propagation delay of 14000.0 us (the larger of \
          1000.0 us and 5 %); thread scheduling normal (real-time refused: EPERM)"
        ]
    );
    assert!(!verdict.is_valid());
}

#[test]
fn links_that_no_path_uses_do_not_matter_for_lateness() {
    let mut late = report();
    late.links[2].lateness.p99_ns = 500 * MS;
    assert!(late.judge(&Bound::default(), &[vec![0, 1]]).is_valid());
    assert_eq!(
        late.judge(&Bound::default(), &[vec![0, 2]]).problems.len(),
        1
    );
}

#[test]
fn a_link_without_packets_is_not_late() {
    let mut idle = report();
    idle.wakeups.p99_ns = 40 * MS;
    idle.links[0].lateness = Summary::default();
    assert!(idle.judge(&Bound::default(), &[vec![0]]).is_valid());
}

#[test]
fn packets_lost_outside_the_model_condemn_a_run_on_time() {
    let mut lossy = report();
    lossy.links[1].write_failed_pkts = 1;
    let verdict = lossy.judge(&Bound::default(), &[]);
    assert_eq!(
        verdict.problems,
        [
            "link mid: its destination refused 1 of 97 packets, a loss that the link model did not cause"
        ]
    );
}
