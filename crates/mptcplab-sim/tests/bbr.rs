//! BBR and C-MPBBR: rates instead of losses, probing for both parts of the model, sharing.

use crate::common::{Measured, jain, simulate_one};

/// One flow on a link of its own.
const ALONE: &str = r#"
duration = "30 s"
warmup = "5 s"
sample = "10 ms"
[links.L]
from = "S"
to = "D"
rate = "20 Mbit/s"
delay = "20 ms"
queue = "1 BDP"
[flows.f]
transport = "tcp"
cc = "bbr"
paths = [["L"]]
"#;

/// Mean of the link's queue after the warm-up, packets.
fn mean_queue(run: &Measured, link: u32) -> f64 {
    let t = &run.outcome.tables.link;
    let rows: Vec<f64> = (0..t.len())
        .filter(|&i| t.link[i] == link && t.t_ns[i] >= run.run.warmup_ns)
        .map(|i| f64::from(t.queue_pkts[i]))
        .collect();
    rows.iter().sum::<f64>() / rows.len() as f64
}

#[test]
fn random_loss_that_stops_reno_does_not_stop_bbr() {
    let lossy = [("links.L.loss", "1 %")];
    let bbr = simulate_one(ALONE, &lossy);
    let reno = simulate_one(ALONE, &[lossy[0], ("flows.f.cc", "reno")]);
    let used = (bbr.utilisation("L"), reno.utilisation("L"));
    assert!(used.0 > 0.85 && used.1 < 0.5, "{used:?}");
}

#[test]
fn the_queue_stays_short_and_the_link_full() {
    let bbr = simulate_one(ALONE, &[]);
    let reno = simulate_one(ALONE, &[("flows.f.cc", "reno")]);
    assert!(bbr.utilisation("L") > 0.93, "{}", bbr.utilisation("L"));
    let queues = (mean_queue(&bbr, 0), mean_queue(&reno, 0));
    assert!(queues.0 < queues.1 / 3.0, "{queues:?}");
    assert!(bbr.last("f", 0, |t| &t.loss_events) <= 2);
}

/// Start and length of every period with a window of four packets or fewer, ms.
fn stays_at_four(run: &Measured) -> Vec<(u64, u64)> {
    let t = &run.outcome.tables.subflow;
    let mut stays: Vec<(u64, u64)> = Vec::new();
    let mut inside = false;
    for i in 0..t.len() {
        let ms = t.t_ns[i] / 1_000_000;
        let small = t.cwnd_pkts[i] <= 4;
        match (small, inside) {
            (true, false) => stays.push((ms, 0)),
            (true, true) => stays.last_mut().unwrap().1 = ms - stays.last().unwrap().0,
            _ => {}
        }
        inside = small;
    }
    stays
}

#[test]
fn the_propagation_time_is_measured_again_every_ten_seconds() {
    let run = simulate_one(ALONE, &[("duration", "45 s")]);
    let stays = stays_at_four(&run);
    assert_eq!(stays.len(), 4, "{stays:?}");
    // Each begins 10 s after the last one ended, and takes a round to drain, 200 ms, and a round to refill.
    let mut before = 0;
    for (at, length) in stays {
        assert!(
            (10_000..10_100).contains(&(at - before)),
            "{at} after {before}"
        );
        assert!((200..300).contains(&length), "{length} ms");
        before = at + length;
    }
}

#[test]
fn two_flows_share_a_link() {
    let two = ALONE
        .replace("\"30 s\"", "\"60 s\"")
        .replace("\"5 s\"", "\"15 s\"")
        + "[flows.g]\ntransport = \"tcp\"\ncc = \"bbr\"\npaths = [[\"L\"]]\nstart = \"3 s\"\n";
    let run = simulate_one(&two, &[]);
    let rates = [run.goodput("f"), run.goodput("g")];
    assert!(
        jain(&rates) > 0.9 && rates[0] + rates[1] > 17.0,
        "{rates:?}"
    );
}

const SHARED: &str = r#"
duration = "60 s"
warmup = "10 s"
sample = "10 ms"
[links.L]
from = "S"
to = "D"
rate = "24 Mbit/s"
delay = "15 ms"
queue = "2 BDP"
[flows.mp]
transport = "mptcp"
cc = "cmpbbr"
paths = [["L"], ["L"]]
[flows.tcp]
transport = "tcp"
cc = "bbr"
paths = [["L"]]
"#;

#[test]
fn subflows_behind_one_bottleneck_divide_it() {
    let coupled = simulate_one(SHARED, &[]);
    let uncoupled = simulate_one(SHARED, &[("flows.mp.cc", "bbr")]);
    let parts = [&coupled, &uncoupled].map(|run| run.goodput("mp") / run.goodput("tcp"));
    assert!(parts[0] < 0.8 * parts[1], "{parts:?}");
}

/// A fast path, and a slow one that adds a few percent.
const UNLIKE: &str = r#"
duration = "40 s"
sample = "100 ms"
[links.fast]
from = "S"
to = "D"
rate = "20 Mbit/s"
delay = "10 ms"
queue = "60 packets"
[links.slow]
from = "S"
to = "D"
rate = "0.6 Mbit/s"
delay = "30 ms"
queue = "20 packets"
[flows.mp]
transport = "mptcp"
cc = "cmpbbr"
paths = [["fast"], ["slow"]]
"#;

#[test]
fn a_subflow_that_the_algorithm_gives_up_becomes_a_backup() {
    // The first check demands more than the best path's bandwidth of the slow path, which soon fails it.
    let strict = "cmpbbr(gain_lost=0, strikes=1)";
    let on = simulate_one(UNLIKE, &[("flows.mp.cc", strict)]);
    let off = simulate_one(
        UNLIKE,
        &[("flows.mp.cc", &strict.replace(')', ", benefit=off)"))],
    );
    let late = |run: &Measured, subflow| {
        run.last("mp", subflow, |t| &t.sent_pkts)
            - run.at("mp", subflow, 20_000.0, |t| &t.sent_pkts)
    };
    assert_eq!(
        (late(&on, 1), late(&off, 1) > 500),
        (0, true),
        "{}",
        late(&off, 1)
    );
    assert!(late(&on, 0) > 30_000, "the best path stays in use");
    // With the authors' numbers both paths stay in use.
    let usual = simulate_one(UNLIKE, &[]);
    assert!(late(&usual, 1) > 500, "{}", late(&usual, 1));
}

/// A full receive window is no application limit: the samples of bandwidth count, and STARTUP ends (`tcp_rate_check_app_limited`
/// looks at what is written). 128 KiB are 1.3 times what the path holds.
#[test]
fn a_receive_window_does_not_keep_the_flow_in_startup() {
    let limited = simulate_one(ALONE, &[("flows.f.rcv_buffer", "128 KiB")]);
    let rate = |ms: f64| limited.at("f", 0, ms, |t| &t.pacing_bps) as f64 / 1e6;
    for ms in [8_000.0, 15_000.0, 29_000.0] {
        assert!(rate(ms) < 26.0, "{} Mbit/s", rate(ms));
    }
}
