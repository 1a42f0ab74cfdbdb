//! With one subflow a coupled algorithm is its single-path reduction, sample by sample.

use crate::common::simulate_one;

/// Losses, a queue that overflows, a competitor and a silent period: everything an algorithm reacts to.
const SCENARIO: &str = r#"
duration = "60 s"
sample = "10 ms"
[links.L]
from = "S"
to = "D"
rate = "8 Mbit/s"
delay = "17 ms"
queue = "30 packets"
loss = "0.3 %"
[flows.mp]
transport = "mptcp"
cc = "reno"
paths = [["L"]]
traffic = { on = "7 s", off = "1 s" }
[flows.tcp]
transport = "tcp"
cc = "reno"
paths = [["L"]]
start = "1 s"
"#;

/// Coupled algorithms that are not Reno on one path: Vegas, Compound TCP, and Reno that holds while the delay varies.
const DELAY_BASED: [&str; 3] = ["wvegas", "mcompound", "delayvar"];

#[test]
fn one_subflow_is_reno() {
    let reference = simulate_one(SCENARIO, &[("flows.mp.cc", "reno")]);
    assert!(reference.last("mp", 0, |t| &t.loss_events) > 10);
    let coupled = mptcplab_cc::algorithms()
        .iter()
        .filter(|a| a.coupled() && !a.has_cong_control() && !DELAY_BASED.contains(&a.name()));
    let mut compared = 0;
    for algorithm in coupled {
        let run = simulate_one(SCENARIO, &[("flows.mp.cc", algorithm.name())]);
        assert_eq!(run.outcome.subflow_cc[0], [algorithm.name()]);
        assert!(
            run.outcome.tables == reference.outcome.tables,
            "{} differs from reno",
            algorithm.name()
        );
        compared += 1;
    }
    assert!(compared >= 10, "only {compared} coupled algorithms");
}

#[test]
fn one_subflow_of_coupled_bbr_is_bbr() {
    let reference = simulate_one(SCENARIO, &[("flows.mp.cc", "bbr")]);
    assert!(reference.last("mp", 0, |t| &t.loss_events) > 10);
    let run = simulate_one(SCENARIO, &[("flows.mp.cc", "cmpbbr")]);
    assert!(run.outcome.tables == reference.outcome.tables);
    let reno = simulate_one(SCENARIO, &[]);
    assert!(run.outcome.tables != reno.outcome.tables);
}

#[test]
fn one_subflow_is_reno_without_sack_as_well() {
    let text = format!("{SCENARIO}[tcp]\nrecovery = \"newreno\"\n");
    let reference = simulate_one(&text, &[("flows.mp.cc", "reno")]);
    assert!(reference.last("mp", 0, |t| &t.loss_events) > 10);
    for name in ["lia", "olia", "balia"] {
        let run = simulate_one(&text, &[("flows.mp.cc", name)]);
        assert!(
            run.outcome.tables == reference.outcome.tables,
            "{name} differs from reno"
        );
    }
}

#[test]
fn two_subflows_are_not_reno() {
    let two = SCENARIO.replace("[[\"L\"]]\ntraffic", "[[\"L\"], [\"L\"]]\ntraffic");
    let reference = simulate_one(&two, &[("flows.mp.cc", "reno")]);
    for name in [
        "lia",
        "lia-subset",
        "olia",
        "balia",
        "ewtcp",
        "coupled",
        "semicoupled",
        "dlia",
        "dolia",
        "adw-balia",
        "mcompound",
        "delayvar",
    ] {
        let run = simulate_one(&two, &[("flows.mp.cc", name)]);
        assert!(
            run.outcome.tables != reference.outcome.tables,
            "{name} on two subflows is uncoupled"
        );
    }
}

#[test]
fn wvegas_on_one_path_queues_no_more_than_its_ten_packets() {
    let clean = SCENARIO
        .replace("loss = \"0.3 %\"\n", "")
        .replace("30 packets", "200 packets");
    let alone = clean
        .split("[flows.tcp]")
        .next()
        .unwrap()
        .replace("traffic", "# traffic");
    let run = simulate_one(&alone, &[("flows.mp.cc", "wvegas"), ("warmup", "20 s")]);
    let queue = &run.outcome.tables.link;
    let standing =
        (0..queue.len()).filter(|&i| queue.link[i] == 0 && queue.t_ns[i] > run.run.warmup_ns);
    let worst = standing.map(|i| queue.queue_pkts[i]).max().unwrap();
    assert!((1..=11).contains(&worst), "{worst} packets queued");
    // Its drain (section 5.9, rule 4) halves the window whenever the queueing delay doubles, so it does not fill the link.
    assert!(run.goodput("mp") > 4.0, "goodput {}", run.goodput("mp"));
}

#[test]
fn delayvar_on_one_path_stops_growing_when_the_delay_has_risen_by_its_threshold() {
    let clean = SCENARIO
        .replace("loss = \"0.3 %\"\n", "")
        .replace("30 packets", "400 packets");
    let (alone, _) = clean.split_once("[flows.tcp]").unwrap();
    let alone = alone.replace("traffic", "initial_ssthresh = \"10 packets\"\n# traffic");
    for (threshold, times) in [("0.5", 1.5), ("1.5", 2.5)] {
        let cc = format!("delayvar(threshold={threshold})");
        let run = simulate_one(&alone, &[("flows.mp.cc", &cc), ("warmup", "40 s")]);
        let srtt = run.mean("mp", 0, |t, i| f64::from(t.srtt_us[i]));
        let least = run.mean("mp", 0, |t, i| f64::from(t.min_rtt_us[i]));
        // The smoothed RTT also waits for delayed ACKs.
        let risen = srtt / least / times;
        assert!((0.98..1.1).contains(&risen), "{srtt} and {least}");
        assert_eq!(run.last("mp", 0, |t| &t.loss_events), 0);
    }
}
