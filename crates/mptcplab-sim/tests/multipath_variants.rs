//! Variants of LIA, OLIA and BALIA in the simulator: what a loss costs them, and who is coupled.

use crate::common::{Measured, simulate_all, simulate_one};
use mptcplab_trace::EventKind::LossEvent;

/// Windows before and after every loss of a subflow, packets. Needs a row for every ACK.
fn losses(run: &Measured, subflow: u32) -> Vec<(f64, f64)> {
    let rows = &run.outcome.tables.subflow;
    let before = |ms: f64| {
        let row = (0..rows.len()).rev().find(|&i| {
            rows.subflow[i] == subflow && rows.flow[i] == 0 && rows.t_ns[i] as f64 / 1e6 < ms
        });
        f64::from(rows.cwnd_pkts[row.expect("an ACK before the first loss")])
    };
    let events = run.events("mp", subflow as i32, LossEvent);
    events
        .iter()
        .map(|&(ms, ssthresh)| (before(ms), ssthresh as f64))
        .collect()
}

/// Two links of different rates and delays with random loss, a subflow on each, and no other flows.
const PRIVATE: &str = r#"
duration = "40 s"
sample = "off"
per_ack = true
[links.L]
from = "S"
to = "D"
rate = "6 Mbit/s"
delay = "11 ms"
queue = "30 packets"
loss = "0.2 %"
[links.M]
from = "S"
to = "D"
rate = "4 Mbit/s"
delay = "31 ms"
queue = "90 packets"
loss = "0.1 %"
[flows.mp]
transport = "mptcp"
cc = "lia"
paths = [["L"], ["M"]]
"#;

#[test]
fn every_loss_of_the_dynamic_variants_keeps_half_to_nine_tenths() {
    for cc in ["dlia", "dolia"] {
        let run = simulate_one(PRIVATE, &[("flows.mp.cc", cc)]);
        let all: Vec<(f64, f64)> = (0..2).flat_map(|k| losses(&run, k)).collect();
        for &(w, kept) in all.iter().filter(|(w, _)| *w >= 4.0) {
            // Both are whole packets of windows with fractions.
            assert!(
                kept >= (w / 2.0).floor() && kept <= 0.9 * (w + 1.0),
                "{cc}: {kept} of {w}"
            );
        }
        let above_half = all.iter().filter(|(w, kept)| kept / w > 0.6).count();
        assert!(
            above_half > 5 && above_half < all.len(),
            "{cc}: {above_half} of {} losses kept more than 0.6",
            all.len()
        );
    }
}

#[test]
fn adw_balia_gives_up_less_than_balia_on_disjoint_bottlenecks() {
    let mean_kept = |cc: &str| {
        let run = simulate_one(PRIVATE, &[("flows.mp.cc", cc)]);
        let all: Vec<(f64, f64)> = (0..2).flat_map(|k| losses(&run, k)).collect();
        assert!(all.len() > 20, "{cc}: {} losses", all.len());
        all.iter().map(|(w, kept)| kept / w).sum::<f64>() / all.len() as f64
    };
    let (balia, adw) = (mean_kept("balia"), mean_kept("adw-balia"));
    assert!(balia < 0.52, "BALIA keeps {balia}");
    assert!((0.6..=0.8).contains(&adw), "ADW-BALIA keeps {adw}");
}

/// Both subflows share a drop-tail link that nearly stops now and then: its queue fills and drains, so that each sees
/// all RTTs from the base to the full queue between its losses.
fn shared_by_both() -> String {
    let stops = (1..10).map(|k| {
        let at = k * 4000;
        format!(
            "{{ at = \"{at} ms\", rate = \"0.2 Mbit/s\" }}, {{ at = \"{} ms\", rate = \"12 Mbit/s\" }}",
            at + 300
        )
    });
    format!(
        r#"
duration = "39 s"
sample = "off"
per_ack = true
[links.L]
from = "S"
to = "D"
rate = "12 Mbit/s"
delay = "20 ms"
queue = "60 packets"
schedule = [{}]
[flows.mp]
transport = "mptcp"
cc = "balia"
paths = [["L"], ["L"]]
initial_ssthresh = "20 packets"
"#,
        stops.collect::<Vec<_>>().join(", ")
    )
}

#[test]
fn adw_balia_is_balia_row_for_row_where_one_bottleneck_gives_all_the_same_span() {
    let text = shared_by_both();
    let tables = |cc: &str| simulate_one(&text, &[("flows.mp.cc", cc)]).outcome.tables;
    let balia = simulate_one(&text, &[]);
    for k in 0..2 {
        assert!(balia.events("mp", k, LossEvent).len() >= 6);
    }
    assert!(tables("adw-balia") == balia.outcome.tables);
    // The decrease is not always BALIA's: with this parameter it differs, because no two ranges of RTTs agree to the
    // microsecond.
    assert!(tables("adw-balia(level0_low=1,level0_high=1)") != balia.outcome.tables);
}

/// A connection with two subflows and a Reno flow at each bottleneck; `second` is the other subflow's link.
fn competition(second: &str) -> String {
    format!(
        r#"
duration = "130 s"
warmup = "60 s"
repetitions = 2
sample = "off"
[links.L]
from = "S"
to = "D"
rate = "20 Mbit/s"
delay = "20 ms"
queue = "1 BDP"
[links.M]
from = "S"
to = "D"
rate = "12 Mbit/s"
delay = "25 ms"
queue = "1 BDP"
[flows.mp]
transport = "mptcp"
cc = "group-lia"
paths = [["L"], ["{second}"]]
start = "uniform(0 s, 2 s)"
[flows.one]
transport = "tcp"
cc = "reno"
path = ["L"]
start = "uniform(0 s, 2 s)"
[flows.two]
transport = "tcp"
cc = "reno"
path = ["M"]
start = "uniform(0 s, 2 s)"
"#
    )
}

/// Mean over repetitions of what the connection gets, Mbit/s.
fn gets(text: &str, cc: &str) -> f64 {
    let runs = simulate_all(text, &[("flows.mp.cc", cc)]);
    runs.iter().map(|r| r.goodput("mp")).sum::<f64>() / runs.len() as f64
}

#[test]
fn group_lia_is_one_tcp_at_a_shared_bottleneck_and_two_at_two() {
    let (shared, disjoint) = (competition("L"), competition("M"));
    // At L, with 19 Mbit/s, it gets about one of two shares; two uncoupled subflows get two of three.
    let (group, reno) = (gets(&shared, "group-lia"), gets(&shared, "reno"));
    assert!(
        (8.0..11.0).contains(&group) && reno > 12.0,
        "{group}, Reno {reno}"
    );
    // At L and M it competes like two TCPs, and LIA like one.
    let (group, reno, lia) = (
        gets(&disjoint, "group-lia"),
        gets(&disjoint, "reno"),
        gets(&disjoint, "lia"),
    );
    assert!(
        (group / reno - 1.0).abs() < 0.05 && lia < 0.75 * reno,
        "{group}, Reno {reno}, LIA {lia}"
    );
}
