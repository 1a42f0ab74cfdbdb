//! Scenarios that are right, and what is understood.

use mptcplab_link::{Loss, QueueLimit};
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
