//! The parts of a run on several threads: the same rows in the same pieces as on one.

use crate::common::{over_two_hops, sweep};
use mptcplab_scenario::Run;
use mptcplab_sim::{Control, Outcome, SimError, Threads, simulate_on_threads, simulate_streaming};
use mptcplab_trace::Tables;
use std::sync::atomic::Ordering;

/// Parts of unlike size: the first takes longest, two have a few rows and the last one has no flow. Most pieces have rows of
/// more than one part.
const SCENARIO: &str = r#"
duration = "9 s"
sample = "2 ms"
cc = "lia"
[links.busy]
from = "S"
to = "D"
rate = "80 Mbit/s"
delay = "6 ms"
queue = "50 packets"
[links.short]
from = "S"
to = "D"
rate = "30 Mbit/s"
delay = "13 ms"
queue = "40 packets"
[links.slow]
from = "P"
to = "Q"
rate = "2 Mbit/s"
delay = "31 ms"
loss = "1 %"
[links.datagrams]
from = "U"
to = "V"
rate = "3 Mbit/s"
delay = "9 ms"
[links.unused]
from = "X"
to = "Y"
rate = "4 Mbit/s"
delay = "7 ms"
[flows.mp]
paths = [["busy"], ["short"]]
[flows.tcp]
count = 5
path = ["busy"]
cc = "reno"
start = "uniform(0 s, 1 s)"
[flows.other]
path = ["slow"]
cc = "cubic"
[flows.udp]
transport = "udp"
path = ["datagrams"]
rate = "1 Mbit/s"
"#;

fn run() -> Run {
    sweep(SCENARIO, &[]).runs.swap_remove(0)
}

fn catch(work: &mut dyn FnMut()) -> Result<(), String> {
    work();
    Ok(())
}

fn threads(count: usize) -> Threads {
    Threads { count, catch }
}

type Simulated = (Vec<Tables>, Outcome);

/// The pieces that the caller gets, and the outcome.
fn pieces(
    simulate: impl FnOnce(&mut dyn FnMut(&mut Tables) -> bool) -> Result<Outcome, SimError>,
) -> Simulated {
    let mut pieces = Vec::new();
    let outcome = simulate(&mut |tables| {
        pieces.push(std::mem::take(tables));
        true
    });
    (pieces, outcome.expect("a run"))
}

#[test]
fn threads_give_the_same_pieces_as_none() {
    let run = run();
    let (expected, one) = pieces(|sink| simulate_streaming(&run, &Control::default(), sink));
    assert!(expected.len() > 8 && one.packet_hops > 0);
    let unused = run.links.iter().position(|link| link.name == "unused");
    let is_sampled = |piece: &Tables| piece.link.link.iter().any(|&l| Some(l as usize) == unused);
    assert!(
        is_sampled(&one.tables) || expected.iter().any(is_sampled),
        "a link without flows"
    );
    let parts_of_links = [[0, 1], [2, 2], [3, 3]];
    let mixed = |piece: &Tables| {
        let part = |&link: &u32| parts_of_links.iter().position(|p| p.contains(&link));
        let mut parts: Vec<_> = piece.link.link.iter().map(part).collect();
        parts.dedup();
        parts.len() > 1
    };
    assert!(expected.iter().any(mixed), "a piece with rows of two parts");
    for count in [1, 2, 3, 9] {
        let control = Control::default();
        let (found, several) =
            pieces(|sink| simulate_on_threads(&run, &control, threads(count), sink));
        assert_eq!(found.len(), expected.len(), "{count} threads");
        assert!(found == expected, "{count} threads");
        assert!(several.tables == one.tables && !one.tables.is_empty());
        assert_eq!(several.subflow_cc, one.subflow_cc);
        assert_eq!(
            (several.events, several.packet_hops),
            (one.events, one.packet_hops)
        );
        let simulated_ns = control.simulated_ns.load(Ordering::Relaxed);
        assert!(simulated_ns.abs_diff(run.duration_ns) < 1000);
    }
}

#[test]
fn a_caller_that_stops_or_cancels_ends_all_threads() {
    let run = run();
    let mut calls = 0;
    let stopped = simulate_on_threads(&run, &Control::default(), threads(2), &mut |tables| {
        tables.clear();
        calls += 1;
        calls < 2
    });
    assert!(matches!(stopped, Err(SimError::Cancelled)));
    assert_eq!(calls, 2);
    let control = Control::default();
    control.cancel.store(true, Ordering::Relaxed);
    let cancelled = simulate_on_threads(&run, &control, threads(2), &mut |_| true);
    assert!(matches!(cancelled, Err(SimError::Cancelled)));
}

#[test]
fn the_panic_of_a_thread_is_an_error_with_its_message() {
    let threads = Threads {
        count: 2,
        catch: |_| Err("broken at line 7".into()),
    };
    let broken = simulate_on_threads(&run(), &Control::default(), threads, &mut |_| true);
    let Err(SimError::Panicked(message)) = broken else {
        panic!("no error");
    };
    assert_eq!(message, "broken at line 7");
}

#[test]
fn one_thread_or_one_part_needs_no_threads() {
    let run = run();
    let alone = sweep(&over_two_hops(10, 3, "", ""), &[])
        .runs
        .swap_remove(0);
    let uses_threads = |run: &Run, count| {
        let catch = |_: &mut dyn FnMut()| Err("a thread".into());
        let threads = Threads { count, catch };
        simulate_on_threads(run, &Control::default(), threads, &mut |_| true).is_err()
    };
    assert!(!uses_threads(&run, 1));
    assert!(uses_threads(&run, 2));
    assert!(!uses_threads(&alone, 2));
}

#[test]
fn progress_is_the_time_that_was_simulated() {
    let sweep = sweep(SCENARIO, &[("duration", "40 s"), ("sample", "off")]);
    let control = Control::default();
    let outcome = simulate_streaming(&sweep.runs[0], &control, &mut |_| true).expect("a run");
    assert!(outcome.events > 500_000, "several looks at the control");
    let simulated_ns = control.simulated_ns.load(Ordering::Relaxed);
    assert!(simulated_ns.abs_diff(sweep.runs[0].duration_ns) < 1000);
}
