//! Subflows that start, stop, fail and return, and the distribution of packets over them (RFC 8684).

use crate::common::{Measured, simulate_one};
use mptcplab_trace::EventKind::{
    FlowCompleted, RtoFired, SubflowAdded, SubflowFailed, SubflowRecovered, SubflowRemoved,
};

/// Path 1: 10 Mbit/s, RTT 32 ms; path 2: 6 Mbit/s, RTT 52 ms. Windows of 60 packets fill both. Their second hops
/// have no queue, so that an outage there loses packets and delays none.
const TWO: &str = r#"
duration = "30 s"
sample = "10 ms"
profile = "linux-acked"
cc = "reno"
[links.one]
from = "S"
to = "M"
rate = "10 Mbit/s"
delay = "15 ms"
[links.two]
from = "S"
to = "N"
rate = "6 Mbit/s"
delay = "25 ms"
[links.one-b]
from = "M"
to = "D"
rate = "1 Gbit/s"
delay = "1 ms"
schedule = []
reverse = { schedule = [] }
[links.two-b]
from = "N"
to = "D"
rate = "1 Gbit/s"
delay = "1 ms"
schedule = []
reverse = { schedule = [] }
[flows.f]
paths = [["one", "one-b"], ["two", "two-b"]]
cwnd_clamp = "60 packets"
"#;

fn with_subflows(subflows: &str) -> String {
    TWO.replace(
        "paths = [[\"one\", \"one-b\"], [\"two\", \"two-b\"]]",
        &format!("subflows = [{subflows}]"),
    )
}

fn with_outage(link: &str, from: &str, to: &str) -> String {
    let node = if link == "one" { "M" } else { "N" };
    let hop = format!(
        "from = \"{node}\"\nto = \"D\"\nrate = \"1 Gbit/s\"\ndelay = \"1 ms\"\nschedule = "
    );
    let outage = format!("[{{ at = \"{from}\", up = false }}, {{ at = \"{to}\", up = true }}]");
    TWO.replace(&format!("{hop}[]"), &format!("{hop}{outage}"))
}

/// Packets that a subflow's receiver got in an interval, ms.
fn received(run: &Measured, subflow: u32, from: f64, to: f64) -> u64 {
    run.at("f", subflow, to, |t| &t.rx_pkts) - run.at("f", subflow, from, |t| &t.rx_pkts)
}

#[test]
fn data_in_flight_on_a_removed_subflow_go_over_the_other() {
    for (removed, kept) in [(0, 1), (1, 0)] {
        let mut stop = ["", ""].map(str::to_owned);
        stop[removed as usize] = ", stop = \"1 s\"".to_owned();
        let text = with_subflows(&format!(
            "{{ path = [\"one\", \"one-b\"]{} }}, {{ path = [\"two\", \"two-b\"]{} }}",
            stop[0], stop[1]
        ));
        let run = simulate_one(&text, &[("flows.f.traffic", "{ size = \"4 MB\" }")]);
        assert_eq!(run.events("f", removed, SubflowRemoved)[0].0, 1000.0);
        assert_eq!(run.events("f", kept, SubflowRemoved).len(), 0);
        assert_eq!(run.events("f", -1, FlowCompleted)[0].1, 4_000_000);
        assert_eq!(run.delivered_bytes("f"), 4_000_000);
        let handed_over = run.flow_at("f", 30_000.0, |t| &t.reinjected_pkts);
        // A whole window, except for what data ACKs of the other path already cover.
        assert!((50..=60).contains(&handed_over), "{handed_over}");
        assert_eq!(received(&run, removed as u32, 1100.0, 30_000.0), 0);
        assert_eq!(run.last("f", removed as u32, |t| &t.state), 0);
    }
}

#[test]
fn a_failed_subflow_is_replaced_and_used_again_when_it_returns() {
    for (link, failed, other) in [("one", 0u32, 1u32), ("two", 1, 0)] {
        let run = simulate_one(&with_outage(link, "5 s", "9 s"), &[]);
        let fails = run.events("f", failed as i32, SubflowFailed);
        assert_eq!(fails.len(), 1, "{link}");
        assert_eq!(fails[0].0, run.events("f", failed as i32, RtoFired)[0].0);
        let back = run.events("f", failed as i32, SubflowRecovered);
        assert_eq!(back.len(), 1, "{link}");
        assert!(back[0].0 > 9000.0);
        assert!(run.events("f", other as i32, SubflowFailed).is_empty());
        // The whole window of the failed subflow goes over the other one.
        let handed_over = run.flow_at("f", 30_000.0, |t| &t.reinjected_pkts);
        assert!((50..=60).contains(&handed_over), "{link}: {handed_over}");
        assert_eq!(received(&run, failed, 5100.0, 9000.0), 0);
        let full = [10e6, 6e6].map(|rate| rate / 8.0 / 1514.0);
        for (subflow, from) in [(other, 5000.0), (failed, back[0].0 + 2000.0)] {
            let got = received(&run, subflow, from, from + 3000.0) as f64 / 3.0;
            let share = got / full[subflow as usize];
            assert!(
                share > 0.97,
                "{link}: subflow {subflow} runs at {share} of its link"
            );
        }
    }
}

#[test]
fn without_reinjection_data_wait_for_the_path_to_return() {
    let text = with_outage("two", "2 s", "9 s") + "traffic = { size = \"6 MB\" }\n";
    let done = |reinject: &str| {
        let run = simulate_one(&text, &[("flows.f.reinject", reinject)]);
        let again = run.flow_at("f", 30_000.0, |t| &t.reinjected_pkts);
        (run.events("f", -1, FlowCompleted)[0].0, again)
    };
    // About 6 MB at 9.4 Mbit/s with it; without it the hole of path two is filled only after 9 s.
    let (with, without) = (done("true"), done("false"));
    assert!(with.0 < 5500.0 && with.1 >= 40, "{with:?}");
    assert!(without.0 > 9000.0 && without.1 == 0, "{without:?}");
}

#[test]
fn a_backup_carries_nothing_until_the_regular_subflow_fails() {
    let subflows =
        "{ path = [\"one\", \"one-b\"] }, { path = [\"two\", \"two-b\"], backup = true }";
    for scheduler in mptcplab_model::sched::declarations().iter().map(|d| d.name) {
        let text = with_outage("one", "5 s", "9 s").replace(
            "paths = [[\"one\", \"one-b\"], [\"two\", \"two-b\"]]",
            &format!("subflows = [{subflows}]"),
        );
        let run = simulate_one(&text, &[("scheduler", scheduler)]);
        assert_eq!(run.events("f", 1, SubflowAdded).len(), 1);
        assert_eq!(run.at("f", 1, 5000.0, |t| &t.sent_pkts), 0, "{scheduler}");
        let failed = run.events("f", 0, SubflowFailed)[0].0;
        assert!(
            received(&run, 1, failed + 500.0, failed + 2500.0) as f64 > 0.9 * 2.0 * 495.0,
            "{scheduler}"
        );
        let back = run.events("f", 0, SubflowRecovered)[0].0;
        // What was queued for it still leaves, then it is quiet again.
        assert_eq!(received(&run, 1, back + 1500.0, 30_000.0), 0, "{scheduler}");
        assert!(
            received(&run, 0, back + 1500.0, 30_000.0) > 10_000,
            "{scheduler}"
        );
    }
}

/// Two paths of the same rate, RTTs 30 and 90 ms, far from full: 20 segments of receive window at a time.
fn unhurried(scheduler: &str) -> [u64; 2] {
    let text = TWO
        .replace("6 Mbit/s", "10 Mbit/s")
        .replace("25 ms", "45 ms")
        .replace("cwnd_clamp = \"60 packets\"", "rcv_buffer = \"28560 B\"");
    let run = simulate_one(&text, &[("scheduler", scheduler)]);
    assert_eq!(
        run.last("f", 0, |t| &t.retx_pkts) + run.last("f", 1, |t| &t.retx_pkts),
        0
    );
    [0, 1].map(|s| received(&run, s, 2000.0, 30_000.0))
}

#[test]
fn round_robin_gives_each_subflow_every_other_packet() {
    let [one, two] = unhurried("roundrobin");
    assert!(one.abs_diff(two) <= 20 && one > 1000, "{one} and {two}");
}

#[test]
fn lowest_rtt_first_leaves_the_slower_path_alone_while_there_is_room() {
    let [one, two] = unhurried("minrtt");
    assert!(one > 10_000 && two == 0, "{one} and {two}");
}

#[test]
fn every_scheduler_fills_both_paths_when_windows_limit() {
    let sparing = |name: &&str| *name != "redundant";
    let names = mptcplab_model::sched::declarations().iter().map(|d| d.name);
    for scheduler in names.filter(sparing) {
        let run = simulate_one(TWO, &[("scheduler", scheduler), ("warmup", "5 s")]);
        for (subflow, rate) in [(0, 10e6), (1, 6e6)] {
            let got = received(&run, subflow, 5000.0, 30_000.0) as f64 / 25.0;
            let share = got * 1514.0 * 8.0 / rate;
            assert!(share > 0.99, "{scheduler}: subflow {subflow} at {share}");
        }
        let goodput = run.goodput("f");
        let expected = 16.0 * 1428.0 / 1514.0;
        assert!(
            (goodput / expected - 1.0).abs() < 0.01,
            "{scheduler}: {goodput}"
        );
    }
}

#[test]
fn a_burst_on_a_slow_path_holds_the_fast_one_only_as_long_as_the_send_buffer_lasts() {
    // A burst of 45 segments takes 2.6 s at 200 kbit/s, in which the fast path alone could send 3 MB. Each subflow's
    // buffer is at most twice the largest window, 60 packets, at 2304 bytes each.
    let slow = TWO.replace("rate = \"6 Mbit/s\"", "rate = \"200 kbit/s\"");
    let run = simulate_one(&slow, &[("scheduler", "linger")]);
    let most = (0..3000).map(|i| run.flow_at("f", 10.0 * f64::from(i), |t| &t.ooo_bytes));
    let most = most.max().expect("samples");
    let buffers = 4096 + 2 * (60 + 60) * 2304;
    assert!(most <= buffers, "{most} bytes wait out of order");
    assert!(
        most > buffers / 4,
        "the slow path never blocked: {most} bytes"
    );
    assert!(run.goodput("f") < 9.0e6, "{}", run.goodput("f"));
}
