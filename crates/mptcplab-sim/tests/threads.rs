//! The parts of a run on several threads: the same rows in the same order as on one.

use crate::common::{over_two_hops, sweep};
use mptcplab_scenario::Run;
use mptcplab_sim::{Control, Outcome, SimError, Threads, simulate_on_threads, simulate_streaming};
use mptcplab_trace::Tables;
use std::sync::atomic::{AtomicBool, Ordering};

/// Parts of unlike size: the first takes longest, two have a few rows and the last one has no flow.
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

/// All rows in the order in which the caller gets them, the outcome without its rows, and the calls.
fn simulated(
    simulate: impl FnOnce(&mut dyn FnMut(&mut Tables) -> bool) -> Result<Outcome, SimError>,
) -> (Tables, Outcome, usize) {
    let (mut all, mut calls) = (Tables::default(), 0);
    let outcome = simulate(&mut |tables| {
        calls += 1;
        all.append(tables);
        true
    });
    let mut outcome = outcome.expect("a run");
    all.append(&mut outcome.tables);
    (all, outcome, calls)
}

#[test]
fn threads_give_the_same_rows_as_none() {
    let run = run();
    let (expected, one, calls) =
        simulated(|sink| simulate_streaming(&run, &Control::default(), sink));
    assert!(calls > 8 && one.packet_hops > 0);
    let part_of = |link: &u32| match run.links[*link as usize].name.as_str() {
        "busy" | "short" => 0,
        "slow" => 1,
        "datagrams" => 2,
        _ => 3,
    };
    let mut parts: Vec<_> = expected.link.link.iter().map(part_of).collect();
    parts.sort_unstable();
    parts.dedup();
    assert_eq!(parts, [0, 1, 2, 3], "also the link without flows");
    for count in [1, 2, 3, 9] {
        let control = Control::default();
        let (found, several, _) =
            simulated(|sink| simulate_on_threads(&run, &control, threads(count), sink));
        assert!(found == expected, "{count} threads");
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
fn rows_that_the_caller_leaves_come_back_with_later_ones() {
    let run = run();
    let (expected, ..) = simulated(|sink| simulate_streaming(&run, &Control::default(), sink));
    for count in [1, 3] {
        let (mut taken, mut calls, mut most) = (Tables::default(), 0, 0);
        let outcome =
            simulate_on_threads(&run, &Control::default(), threads(count), &mut |tables| {
                calls += 1;
                most = most.max(tables.subflow.len());
                if calls % 3 == 0 {
                    let subflows = std::mem::take(&mut tables.subflow);
                    taken.append(tables);
                    tables.subflow = subflows;
                }
                true
            });
        assert!(calls > 8 && most > 8192, "{calls} calls, {most} rows");
        taken.append(&mut outcome.expect("a run").tables);
        assert!(taken == expected, "{count} threads");
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
fn threads_do_not_finish_their_parts_when_another_one_breaks() {
    // Without samples nothing is handed over before a part ends.
    let run = sweep(SCENARIO, &[("duration", "300 s"), ("sample", "off")])
        .runs
        .swap_remove(0);
    static FIRST: AtomicBool = AtomicBool::new(true);
    let threads = Threads {
        count: 2,
        catch: |work| {
            if FIRST.swap(false, Ordering::Relaxed) {
                return Err("broken".into());
            }
            work();
            Ok(())
        },
    };
    let control = Control::default();
    let broken = simulate_on_threads(&run, &control, threads, &mut |_| true);
    assert!(matches!(broken, Err(SimError::Panicked(_))));
    let simulated_ns = control.simulated_ns.load(Ordering::Relaxed);
    assert!(simulated_ns < run.duration_ns / 10, "{simulated_ns} ns");
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
