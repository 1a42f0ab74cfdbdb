//! Algorithms that estimate the state of the path: the queue of Vegas and the bandwidth of Westwood+.

use crate::common::{Measured, simulate_one};
use mptcplab_trace::EventKind::LossEvent;

/// Two different links, to which the tests add flows.
const LINKS: &str = r#"
duration = "60 s"
warmup = "20 s"
sample = "10 ms"
[links.L]
from = "S"
to = "D"
rate = "8 Mbit/s"
delay = "17 ms"
queue = "200 packets"
[links.M]
from = "S"
to = "D"
rate = "12 Mbit/s"
delay = "29 ms"
queue = "300 packets"
"#;

/// Packets waiting or being sent on a link, after the warm-up: (smallest, mean, largest) over the samples.
fn queue(run: &Measured, link: u32) -> (u32, f64, u32) {
    let t = &run.outcome.tables.link;
    let samples: Vec<u32> = (0..t.len())
        .filter(|&i| t.link[i] == link && t.t_ns[i] >= run.run.warmup_ns)
        .map(|i| t.queue_pkts[i])
        .collect();
    let sum: f64 = samples.iter().copied().map(f64::from).sum();
    let least = samples.iter().copied().min().unwrap();
    let most = samples.iter().copied().max().unwrap();
    (least, sum / samples.len() as f64, most)
}

#[test]
fn vegas_keeps_between_alpha_and_beta_packets_queued() {
    for (alpha, beta) in [(2, 4), (6, 9)] {
        let text = format!(
            "{LINKS}[flows.v]\npath = [\"L\"]\ncc = \"vegas(alpha={alpha},beta={beta})\"\n"
        );
        let run = simulate_one(&text, &[("profile", "rfc")]);
        let (least, mean, most) = queue(&run, 0);
        assert!(
            least >= alpha && most <= beta,
            "{least} to {most} packets queued, {mean} on average, with alpha {alpha} and beta {beta}"
        );
        // 8 Mbit/s less headers: the link is never idle.
        assert!(run.goodput("v") > 7.6, "goodput {}", run.goodput("v"));
        assert_eq!(run.last("v", 0, |t| &t.lost_pkts), 0);
    }
}

#[test]
fn wvegas_on_two_paths_queues_no_more_than_its_total_alpha() {
    let text = format!("{LINKS}[flows.w]\npaths = [[\"L\"], [\"M\"]]\ncc = \"wvegas\"\n");
    let run = simulate_one(&text, &[("profile", "rfc")]);
    let (l, m) = (queue(&run, 0), queue(&run, 2));
    assert!(l.2 + m.2 <= 10 && l.2 > 0 && m.2 > 0, "{l:?} {m:?}");
}

#[test]
fn westwood_loses_less_than_reno_to_random_losses() {
    for (loss, least) in [("0.1 %", 1.7), ("0.5 %", 2.5), ("1 %", 2.5), ("3 %", 2.0)] {
        let goodput = |cc: &str| {
            let text = format!("{LINKS}[flows.f]\npath = [\"M\"]\ncc = \"{cc}\"\n");
            simulate_one(&text, &[("links.M.loss", loss)]).goodput("f")
        };
        let (reno, westwood) = (goodput("reno"), goodput("westwood"));
        assert!(
            westwood > least * reno,
            "{loss}: {westwood} to {reno} Mbit/s"
        );
    }
}

#[test]
fn westwood_falls_back_to_the_window_that_fills_the_path_when_the_queue_overflows() {
    let text = format!("{LINKS}[flows.f]\npath = [\"M\"]\ncc = \"westwood\"\n");
    let run = simulate_one(
        &text,
        &[("links.M.queue", "80 packets"), ("profile", "rfc")],
    );
    let losses = run.events("f", 0, LossEvent);
    let steady: Vec<u64> = losses
        .iter()
        .filter(|e| e.0 > 20_000.0)
        .map(|e| e.1)
        .collect();
    // 12 Mbit/s are 1000 full packets a second; the base RTT of 58 ms and a packet each way on the wire make 59.
    assert!(steady.len() >= 2, "{losses:?}");
    assert!(steady.iter().all(|w| (56..=60).contains(w)), "{losses:?}");
    assert!(run.utilisation("M") > 0.99, "{}", run.utilisation("M"));
}
