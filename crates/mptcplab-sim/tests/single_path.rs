//! One TCP flow against theory.

use crate::common::{jain, simulate_all, simulate_one};

const LOSSY: &str = r#"
duration = "1500 s"
warmup = "50 s"
repetitions = 2
sample = "50 ms"
profile = "rfc"
cc = "reno"
[links.L]
from = "S"
to = "D"
rate = "1 Gbit/s"
delay = "20 ms"
queue = "100000 packets"
loss = "1 %"
[flows.f]
transport = "tcp"
paths = [["L"]]
"#;

#[test]
fn reno_follows_the_square_root_law() {
    let mut constants = Vec::new();
    for p in [1e-4, 3e-4, 1e-3, 2e-3, 5e-3] {
        let loss = format!("{:.2} %", p * 100.0);
        let runs = simulate_all(LOSSY, &[("links.L.loss", &loss)]);
        let window = runs
            .iter()
            .map(|r| r.mean("f", 0, |t, i| f64::from(t.cwnd_pkts[i])))
            .sum::<f64>()
            / runs.len() as f64;
        constants.push(window * f64::sqrt(p));
    }
    println!("C = {constants:.3?}");
    let mean = constants.iter().sum::<f64>() / constants.len() as f64;
    for c in constants {
        assert!((1.15..1.45).contains(&c), "constant {c}");
        assert!(
            (c / mean - 1.0).abs() < 0.1,
            "constant {c} against the mean {mean}"
        );
    }
}

const CLEAN: &str = r#"
duration = "300 s"
warmup = "20 s"
sample = "100 ms"
profile = "linux-acked"
cc = "reno"
[links.L]
from = "S"
to = "D"
rate = "20 Mbit/s"
delay = "15 ms"
queue = "1 BDP"
"#;

#[test]
fn reno_fills_a_link_with_one_bdp_of_buffer() {
    let text = format!("{CLEAN}[flows.f]\ntransport = \"tcp\"\npaths = [[\"L\"]]\n");
    for profile in ["rfc", "linux-acked"] {
        let run = simulate_one(&text, &[("profile", profile)]);
        let used = run.utilisation("L");
        println!("{profile}: {used}");
        assert!(used > 0.98, "{profile}: utilisation {used}");
    }
}

#[test]
fn two_reno_flows_share_a_link() {
    let text = format!(
        "{CLEAN}[flows.a]\ntransport = \"tcp\"\npaths = [[\"L\"]]\nstart = \"0.3 s\"\n[flows.b]\ntransport = \"tcp\"\npaths = [[\"L\"]]\nstart = \"2 s\"\n"
    );
    let run = simulate_one(&text, &[]);
    let shares = [run.goodput("a"), run.goodput("b")];
    println!("{shares:?}");
    assert!(jain(&shares) > 0.98, "shares {shares:?}");
}
