//! The scenarios in `scenarios/`.

use mptcplab_model::link::{Loss, QueueLimit};
use mptcplab_scenario::{Overrides, Transport, load};
use std::path::Path;

#[test]
fn the_demo_is_understood_as_the_paper_prints_it() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/dolia-scenario-1.toml");
    let sweep = load(&file, &Overrides::default()).unwrap_or_else(|e| panic!("error: {e}"));
    assert_eq!(sweep.name, "dolia-scenario-1");
    assert_eq!(sweep.runs.len(), 6 * 5);
    let run = &sweep.runs[7];
    assert_eq!((run.id, run.rep), (7, 2));
    assert_eq!(run.axes, [("cc".to_string(), "reno".to_string())]);
    let names: Vec<_> = run.links.iter().map(|l| l.name.as_str()).collect();
    assert_eq!(names, ["B1", "B1~", "e1", "e1~", "B2", "B2~", "e2", "e2~"]);
    let b2 = &run.links[4].config;
    assert_eq!((b2.rate_bps, b2.delay_ns), (5_000_000, 10_000_000));
    assert_eq!(b2.loss, Loss::Bernoulli { p: 0.002 });
    assert_eq!(b2.queue, QueueLimit::Packets(1000));
    assert_eq!(run.links[5].config.loss, Loss::None);
    let Transport::Tcp(tcp) = &run.flows[0].transport else {
        panic!("mp is not MPTCP")
    };
    assert_eq!(
        (tcp.mptcp, tcp.mss_bytes, tcp.cc.name.as_str()),
        (true, 1428, "reno")
    );
    assert_eq!(tcp.subflows[1].path, [4, 6]);
    assert_eq!(tcp.subflows[1].reverse, [7, 5]);
}

/// Every file below `scenarios/`.
fn shipped() -> Vec<std::path::PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    let mut files = Vec::new();
    for folder in [root.clone(), root.join("bench")] {
        for entry in std::fs::read_dir(&folder).expect("scenarios/ is there") {
            let path = entry.expect("a readable folder").path();
            if path.extension().is_some_and(|e| e == "toml") {
                files.push(path);
            }
        }
    }
    files.sort();
    files
}

#[test]
fn every_shipped_scenario_is_right() {
    for file in shipped() {
        let sweep = load(&file, &Overrides::default()).unwrap_or_else(|e| panic!("error: {e}"));
        let text = mptcplab_scenario::describe(&sweep);
        println!("{text}");
        assert!(text.contains(&format!("{} runs = ", sweep.runs.len())));
        let json = mptcplab_scenario::sweep_json(&sweep);
        assert_eq!(json["runs"], sweep.runs.len());
    }
}

fn first_run(name: &str) -> mptcplab_scenario::Run {
    let file = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../scenarios")
        .join(name);
    let sweep = load(&file, &Overrides::default()).unwrap_or_else(|e| panic!("error: {e}"));
    sweep.runs[0].clone()
}

#[test]
fn the_benchmarks_have_the_sizes_that_they_name() {
    // 1 BDP in frames of 1514 bytes: 165.1, 49.5, 165.1, 8256.3 and 49.5.
    let cases = [
        ("bench/w1-one-reno.toml", 300, 2, 1, 100_000_000, 166),
        ("bench/w2-two-bottlenecks.toml", 300, 4, 3, 60_000_000, 50),
        (
            "bench/w3-thousand-flows.toml",
            60,
            200,
            1000,
            100_000_000,
            166,
        ),
        ("bench/w4-ten-gigabit.toml", 10, 2, 1, 10_000_000_000, 8257),
        ("bench/w5-upstream-linux.toml", 300, 4, 2, 60_000_000, 50),
    ];
    for (name, seconds, links, flows, rate_bps, queue) in cases {
        let run = first_run(name);
        assert_eq!(run.duration_ns, seconds * 1_000_000_000, "{name}");
        assert_eq!((run.links.len(), run.flows.len()), (links, flows), "{name}");
        assert_eq!(run.links[0].config.rate_bps, rate_bps, "{name}");
        assert_eq!(
            run.links[0].config.queue,
            QueueLimit::Packets(queue),
            "{name}"
        );
        assert_eq!(run.sample_ns, None, "{name}");
    }
    let w3 = first_run("bench/w3-thousand-flows.toml");
    let mut users = vec![0; w3.links.len()];
    for flow in w3.flows.iter() {
        users[flow.subflows()[0].path[0]] += 1;
    }
    assert_eq!(users, [[10, 0]; 100].concat());
}

#[test]
fn the_demo_is_described_with_its_resolved_numbers() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/dolia-scenario-1.toml");
    let sweep = load(&file, &Overrides::default()).unwrap_or_else(|e| panic!("error: {e}"));
    let text = mptcplab_scenario::describe(&sweep);
    let expected = "\
30 runs = 6 cc x 5 repetitions
  cc: cubic, reno, lia, olia, balia, wvegas
below: the first run, cc = cubic

nodes: S R1 D R2

link  from  to  rate       delay  BDP           queue         loss   more
B1    S     R1  10 Mbit/s  5 ms   12 packets    1000 packets  0.1 %
B1~   R1    S   10 Mbit/s  5 ms   12 packets    1000 packets  0 %
e1    R1    D   1 Gbit/s   2 ms   1156 packets  1000 packets  0 %
e1~   D     R1  1 Gbit/s   2 ms   1156 packets  1000 packets  0 %
B2    S     R2  5 Mbit/s   10 ms  10 packets    1000 packets  0.2 %
B2~   R2    S   5 Mbit/s   10 ms  10 packets    1000 packets  0 %
e2    R2    D   1 Gbit/s   2 ms   1982 packets  1000 packets  0 %
e2~   D     R2  1 Gbit/s   2 ms   1982 packets  1000 packets  0 %

flow  subflow  path     base RTT  what
mp    sf1      B1 > e1  14 ms     MPTCP cubic, bulk
      sf2      B2 > e2  24 ms
";
    assert!(text.ends_with(expected), "{text}");
}
