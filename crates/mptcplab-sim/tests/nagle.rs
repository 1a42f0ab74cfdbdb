//! Nagle's algorithm on the subflows of a connection, compared with Linux 7.3 on the same scenario.

use crate::common::{Measured, simulate_all, simulate_one};

/// Two paths with one last hop, which docs/kernels.md has on Linux 7.3.
const LAST_HOP: &str = include_str!("../../../tests/kernels/nagle.toml");

/// The largest amount that becomes readable within a millisecond, in packets.
fn largest_burst(run: &Measured) -> u64 {
    let bytes: Vec<u64> = (0..700)
        .map(|ms| run.flow_at("mp", f64::from(ms), |t| &t.delivered_bytes))
        .collect();
    let steps = bytes.windows(2).map(|two| two[1] - two[0]);
    steps.max().unwrap_or(0) / 1428
}

/// The mean of the largest bursts of six repetitions.
fn mean_burst(nagle: &str) -> f64 {
    let runs = simulate_all(LAST_HOP, &[("flows.mp.nagle", nagle)]);
    runs.iter().map(largest_burst).sum::<u64>() as f64 / runs.len() as f64
}

/// 63 packets in the machine, and 25 without Nagle's algorithm.
#[test]
fn what_the_other_subflow_delivers_waits_for_the_small_segment() {
    let (with_nagle, without) = (mean_burst("true"), mean_burst("false"));
    assert!((40.0..90.0).contains(&with_nagle), "{with_nagle}");
    assert!((10.0..25.0).contains(&without), "{without}");
}

#[test]
fn one_path_requests_fixed_buffers_and_ungrouped_segments_do_not_depend_on_it() {
    let one = [("flows.mp.paths", "[[\"fast\", \"last\"]]")];
    let requests = [(
        "flows.mp.traffic",
        "{ requests = { response = \"70 kB\", think = \"20 ms\" } }",
    )];
    let plain = [("tcp.tso", "false")];
    let fixed = [("flows.mp.rcv_buffer", "90 kB")];
    for set in [&one[..], &requests, &plain, &fixed] {
        let with_nagle = simulate_one(LAST_HOP, set);
        let off: Vec<_> = set
            .iter()
            .copied()
            .chain([("flows.mp.nagle", "false")])
            .collect();
        let without = simulate_one(LAST_HOP, &off);
        let same =
            format!("{:?}", with_nagle.outcome.tables) == format!("{:?}", without.outcome.tables);
        assert!(same, "{set:?}");
    }
}
