//! Multipath flows against single-path TCP: the design goals of RFC 6356 on the smallest topologies.
//!
//! The measured figures are in docs/fidelity/fidelity.md.

use crate::common::{simulate_all, simulate_one};

/// Two equal subflows and one Reno flow through one drop-tail bottleneck, random start offsets.
const SHARED: &str = r#"
duration = "200 s"
warmup = "20 s"
repetitions = 12
sample = "off"
profile = "linux-acked"
[links.L]
from = "S"
to = "D"
rate = "30 Mbit/s"
delay = "20 ms"
queue = "1 BDP"
[flows.mp]
transport = "mptcp"
cc = "lia"
paths = [["L"], ["L"]]
start = "uniform(0 s, 2 s)"
[flows.tcp]
transport = "tcp"
cc = "reno"
paths = [["L"]]
start = "uniform(0 s, 2 s)"
"#;

const EWTCP_FAIR: &str = r#"{name = "ewtcp", weight = "fair"}"#;

/// Mean over repetitions of the multipath flow's goodput over TCP's.
fn ratio(cc: &str, profile: &str) -> f64 {
    let runs = simulate_all(SHARED, &[("flows.mp.cc", cc), ("profile", profile)]);
    let (mp, tcp) = runs.iter().fold((0.0, 0.0), |(m, t), r| {
        (m + r.goodput("mp"), t + r.goodput("tcp"))
    });
    println!("{cc:<12} {profile:<13} {:.3}", mp / tcp);
    mp / tcp
}

/// Fair with today's ACK counting, and visibly weaker when coupled growth counts ACKs.
fn takes_about_one_share(cc: &str) {
    let (today, legacy) = (ratio(cc, "linux-acked"), ratio(cc, "linux-legacy"));
    assert!((0.7..=1.15).contains(&today), "{cc}: {today}");
    assert!(
        legacy < 0.85 * today,
        "{cc}: {legacy} in linux-legacy against {today}"
    );
}

#[test]
fn lia_takes_about_one_share_of_a_shared_bottleneck() {
    takes_about_one_share("lia");
}

#[test]
fn olia_takes_about_one_share_of_a_shared_bottleneck() {
    takes_about_one_share("olia");
}

#[test]
fn balia_takes_about_one_share_of_a_shared_bottleneck() {
    takes_about_one_share("balia");
}

#[test]
fn ewtcp_fair_takes_about_one_share_of_a_shared_bottleneck() {
    takes_about_one_share(EWTCP_FAIR);
}

#[test]
fn uncoupled_reno_takes_two_shares_of_a_shared_bottleneck() {
    let r = ratio("reno", "linux-acked");
    assert!((1.7..=2.3).contains(&r), "{r}");
}

#[test]
fn lia_is_no_worse_than_tcp_on_the_best_of_disjoint_paths() {
    let links = r#"
duration = "120 s"
warmup = "20 s"
sample = "off"
[links.A]
from = "S"
to = "D"
rate = "12 Mbit/s"
delay = "18 ms"
queue = "36 packets"
[links.B]
from = "S"
to = "D"
rate = "12 Mbit/s"
delay = "18 ms"
queue = "36 packets"
"#;
    let multi = format!("{links}[flows.f]\ncc = \"lia\"\npaths = [[\"A\"], [\"B\"]]\n");
    let single =
        format!("{links}[flows.f]\ntransport = \"tcp\"\ncc = \"reno\"\npaths = [[\"A\"]]\n");
    let (multi, single) = (
        simulate_one(&multi, &[]).goodput("f"),
        simulate_one(&single, &[]).goodput("f"),
    );
    println!("disjoint: lia {multi:.2}, tcp {single:.2}");
    assert!(multi >= 0.95 * single, "{multi} against {single}");
    assert!(
        multi >= 1.8 * single,
        "both paths are free: {multi} against {single}"
    );
}
