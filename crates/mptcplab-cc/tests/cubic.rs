//! CUBIC's curve between losses, its Reno-friendly region, fast convergence, idle time, and HyStart.

use crate::support::Rng;
use mptcplab_cc::{AckSample, CaEvent, CaState, Conn, Sock, find};

/// One CUBIC flow on a clock.
struct Flow {
    conn: Conn,
    sock: Sock,
}

impl Flow {
    fn new(cwnd: u32, ssthresh: u32, rtt_us: u32, params: &[(&str, u64)]) -> Self {
        let params: Vec<(String, u64)> = params.iter().map(|&(k, v)| (k.to_owned(), v)).collect();
        let mut conn = Conn::new();
        let mut sock = Sock::new(find("cubic").unwrap(), &params, false).unwrap();
        sock.tp.snd_cwnd = cwnd;
        sock.tp.snd_ssthresh = ssthresh;
        sock.tp.srtt_us = rtt_us << 3;
        sock.tp.is_cwnd_limited = true;
        sock.tp.tcp_mstamp = 1_000_000;
        sock.init(&mut conn, 0);
        Self { conn, sock }
    }

    fn ack(&mut self, now_us: u64, acked: u32) {
        self.sock.tp.tcp_mstamp = now_us;
        let una = self.sock.tp.snd_una;
        self.sock.cong_avoid(&mut self.conn, una, acked);
    }

    fn sample(&mut self, now_us: u64, rtt_us: i32) {
        self.sock.tp.tcp_mstamp = now_us;
        self.sock.pkts_acked(
            &mut self.conn,
            &AckSample {
                pkts_acked: 1,
                rtt_us,
                in_flight: 1,
            },
        );
    }

    fn lose(&mut self) {
        self.sock.tp.prior_cwnd = self.sock.tp.snd_cwnd;
        self.sock.tp.snd_ssthresh = self.sock.ssthresh(&mut self.conn);
        self.sock.set_state(&mut self.conn, CaState::Recovery);
        self.sock.tp.snd_cwnd = self.sock.tp.snd_ssthresh;
        self.sock.set_state(&mut self.conn, CaState::Open);
    }

    /// One window of ACKs per RTT until `end_us`; calls `check` once per RTT with the time since `start_us` in seconds.
    fn run(&mut self, start_us: u64, end_us: u64, rtt_us: u64, mut check: impl FnMut(f64, &Sock)) {
        let mut now = start_us;
        while now < end_us {
            let window = u64::from(self.sock.tp.snd_cwnd);
            for i in 0..window {
                self.ack(now + i * rtt_us / window, 1);
            }
            now += rtt_us;
            check((now - start_us) as f64 * 1e-6, &self.sock);
        }
    }
}

#[test]
fn the_window_follows_the_cubic_curve_within_a_packet() {
    // K = cbrt(W_max (1 - 0.7)/0.4): 2304 packets give K = 12 s, 288 give 6 s. The RTTs keep Reno's estimate below the
    // curve; the rule aims at W_cubic one RTT ahead and reaches it one RTT later.
    for (w_max, k, rtt_us) in [(2304u32, 12.0f64, 50_000u64), (288, 6.0, 200_000)] {
        let mut flow = Flow::new(w_max, 1, rtt_us as u32, &[]);
        flow.lose();
        let start = 2_000_000;
        let mut last = 0.0;
        let mut worst: f64 = 0.0;
        flow.run(start, start + (1.6 * k * 1e6) as u64, rtt_us, |t, sock| {
            let curve = 0.4 * (t - k).powi(3) + f64::from(w_max);
            worst = worst.max((sock.window() - curve).abs());
            last = t;
        });
        assert!(
            (flow.sock.field("k").unwrap() - k).abs() < 0.01,
            "{:?}",
            flow.sock.field("k")
        );
        assert!(
            last > 1.5 * k && worst < 1.0,
            "W_max {w_max}: off by {worst} packets"
        );
    }
}

#[test]
fn small_windows_grow_as_reno_would() {
    // 30 packets at 10 ms: W_est = 21 + 0.529 per RTT is far above the curve, which is flat for seconds.
    let mut flow = Flow::new(30, 1, 10_000, &[]);
    flow.lose();
    let start = 2_000_000;
    flow.run(start, start + 150_000, 10_000, |t, sock| {
        let estimate = 21.0 + t / 0.010 * 0.9 / 1.7;
        assert!(
            (sock.window() - estimate).abs() < 0.5,
            "{t}: {} against {estimate}",
            sock.window()
        );
    });
}

#[test]
fn fast_convergence_gives_up_more_when_the_maximum_was_not_reached() {
    for (on, w_max) in [(1, 500.0 * (1024.0 + 717.0) / 2048.0), (0, 500.0)] {
        let mut flow = Flow::new(1000, 1, 30_000, &[("fast_convergence", on)]);
        flow.lose();
        assert_eq!(
            flow.sock.tp.snd_ssthresh, 700,
            "717/1024 of 1000, rounded down"
        );
        flow.sock.tp.snd_cwnd = 500;
        flow.lose();
        assert!(
            (flow.sock.field("w_max").unwrap() - w_max).abs() < 0.01,
            "{:?}",
            flow.sock.field("w_max")
        );
        // A loss at exactly this maximum gives up no more (RFC 9438 section 4.7: cwnd < W_max).
        flow.sock.tp.snd_cwnd = 1024;
        for _ in 0..2 {
            flow.lose();
            flow.sock.tp.snd_cwnd = 1024;
        }
        assert_eq!(flow.sock.field("w_max"), Some(1024.0));
    }
}

#[test]
fn idle_time_does_not_move_the_curve() {
    let rtt_us = 100_000;
    let window_after = |idle_us: u64| {
        let mut flow = Flow::new(2304, 1, rtt_us as u32, &[]);
        flow.lose();
        flow.run(2_000_000, 5_000_000, rtt_us, |_, _| {});
        flow.sock.tp.lsndtime_us = 5_000_000;
        flow.sock.tp.tcp_mstamp = 5_000_000 + idle_us;
        flow.sock.cwnd_event(&mut flow.conn, CaEvent::TxStart);
        flow.run(5_000_000 + idle_us, 6_000_000 + idle_us, rtt_us, |_, _| {});
        flow.sock.window()
    };
    let busy = window_after(0);
    assert!(
        (window_after(7_000_000) - busy).abs() < 0.5,
        "{} {busy}",
        window_after(7_000_000)
    );
    assert!(busy < 2304.0, "still below W_max");
}

#[test]
fn time_without_a_full_window_does_not_move_the_curve() {
    let rtt_us = 100_000;
    let mut flow = Flow::new(2304, 1, rtt_us as u32, &[]);
    flow.lose();
    flow.run(2_000_000, 5_000_000, rtt_us, |_, _| {});
    let before = flow.sock.window();
    flow.sock.tp.is_cwnd_limited = false;
    flow.run(5_000_000, 25_000_000, rtt_us, |_, _| {});
    assert_eq!(flow.sock.window(), before);
    flow.sock.tp.is_cwnd_limited = true;
    flow.ack(25_000_000, 1);
    // Twenty seconds later on the curve the target would be 1.5 w, half a packet more per ACK.
    assert!(
        flow.sock.window() - before < 0.2,
        "{before} {}",
        flow.sock.window()
    );
}

/// Linux moves the epoch by the time since the last transmission, if there is any: until then the time counts from the
/// last ACK.
#[test]
fn a_transmission_at_the_time_of_the_last_one_ends_no_idle_time() {
    let rtt_us = 100_000;
    let mut flow = Flow::new(2304, 1, rtt_us as u32, &[]);
    flow.lose();
    flow.run(2_000_000, 5_000_000, rtt_us, |_, _| {});
    let before = flow.sock.window();
    flow.sock.tp.lsndtime_us = 25_000_000;
    flow.sock.tp.tcp_mstamp = 25_000_000;
    flow.sock.cwnd_event(&mut flow.conn, CaEvent::TxStart);
    flow.sock.tp.is_cwnd_limited = false;
    flow.ack(25_000_000, 1);
    flow.sock.tp.is_cwnd_limited = true;
    flow.ack(25_000_000, 1);
    assert!(
        flow.sock.window() - before < 0.2,
        "{before} {}",
        flow.sock.window()
    );
}

#[test]
fn after_a_timeout_the_curve_starts_at_its_plateau() {
    let mut flow = Flow::new(400, 1, 50_000, &[]);
    flow.sock.tp.snd_ssthresh = flow.sock.ssthresh(&mut flow.conn);
    flow.sock.tp.snd_cwnd = 1;
    flow.sock.set_state(&mut flow.conn, CaState::Loss);
    flow.sock.set_state(&mut flow.conn, CaState::Open);
    flow.ack(2_000_000, 279);
    assert_eq!(flow.sock.tp.snd_cwnd, flow.sock.tp.snd_ssthresh);
    flow.ack(2_050_000, 1);
    assert_eq!(
        (
            flow.sock.field("k"),
            flow.sock.field("w_max").unwrap().floor()
        ),
        (Some(0.0), 280.0)
    );
}

/// A slow starting flow whose samples arrive `gap_us` apart in rounds of `per_round`; ends at the first exit.
fn slow_start_exit(
    params: &[(&str, u64)],
    cwnd: u32,
    gap_us: u64,
    rtt_of_round: impl Fn(u32) -> i32,
) -> Option<u32> {
    let mut flow = Flow::new(cwnd, u32::MAX >> 1, 40_000, params);
    let mut now = 1_000_000;
    for round in 0..6 {
        flow.sock.tp.snd_nxt = flow.sock.tp.snd_una + 20;
        for _ in 0..20 {
            now += gap_us;
            flow.sock.tp.snd_una += 1;
            flow.sample(now, rtt_of_round(round));
            if flow.sock.tp.snd_ssthresh <= flow.sock.tp.snd_cwnd {
                return Some(round);
            }
        }
    }
    None
}

#[test]
fn hystart_ends_slow_start_when_the_delay_grows_by_an_eighth() {
    // Base 80 ms: margin 10 ms. Gaps of 5 ms are no train.
    let grows_by = |us: i32| move |round: u32| 80_000 + if round >= 3 { us } else { 0 };
    assert_eq!(slow_start_exit(&[], 60, 5_000, grows_by(10_001)), Some(3));
    assert_eq!(slow_start_exit(&[], 60, 5_000, grows_by(9_999)), None);
    // The margin is at least 4 ms and at most 16 ms.
    let short = |us: i32| move |round: u32| 8_000 + if round >= 2 { us } else { 0 };
    assert_eq!(slow_start_exit(&[], 60, 5_000, short(4_001)), Some(2));
    assert_eq!(slow_start_exit(&[], 60, 5_000, short(3_999)), None);
    let long = |us: i32| move |round: u32| 400_000 + if round >= 2 { us } else { 0 };
    assert_eq!(slow_start_exit(&[], 60, 5_000, long(16_001)), Some(2));
    assert_eq!(slow_start_exit(&[], 60, 5_000, long(15_999)), None);
}

#[test]
fn hystart_ends_slow_start_on_a_train_longer_than_half_an_rtt() {
    // 20 ACKs 1.5 ms apart span 30 ms, more than half of 40 ms but less than half of 90 ms.
    assert_eq!(slow_start_exit(&[], 60, 1_500, |_| 40_000), Some(0));
    assert_eq!(slow_start_exit(&[], 60, 1_500, |_| 90_000), None);
    assert_eq!(
        slow_start_exit(&[], 60, 2_500, |_| 40_000),
        None,
        "gaps over 2 ms are no train"
    );
    assert_eq!(
        slow_start_exit(&[("hystart_ack_delta_us", 3_000)], 60, 2_500, |_| 40_000),
        Some(0)
    );
    assert_eq!(slow_start_exit(&[], 60, 2_000, |_| 40_000), Some(0));
    assert_eq!(slow_start_exit(&[], 60, 2_001, |_| 40_000), None);
}

#[test]
fn hystart_leaves_small_windows_alone_and_can_be_switched_off() {
    let growing = |round: u32| 80_000 + round as i32 * 20_000;
    assert_eq!(slow_start_exit(&[], 15, 1_500, growing), None);
    assert_eq!(slow_start_exit(&[], 16, 1_500, growing), Some(1));
    assert_eq!(slow_start_exit(&[("hystart", 0)], 60, 1_500, growing), None);
}

#[test]
fn beta_and_c_are_parameters() {
    let mut rng = Rng(3);
    for _ in 0..200 {
        // A multiple of what the parameter can be set to.
        let beta = (1024.0 * (0.5 + 0.39 * rng.unit())).round() / 1024.0;
        let c = 0.1 + rng.unit();
        let raw = |x: f64, scale: f64| (x * scale) as u64;
        let params = [("beta", raw(beta, 1024.0)), ("c", raw(c, 1_048_576.0))];
        let w = rng.log(300.0, 20_000.0);
        let mut flow = Flow::new(w, 1, 100_000, &params);
        flow.lose();
        assert!(
            (f64::from(flow.sock.tp.snd_ssthresh) - f64::from(w) * beta).abs() <= 1.5,
            "{beta} {w}"
        );
        flow.ack(2_000_000, 1);
        let k = (f64::from(w) * (1.0 - beta) / c).cbrt();
        assert!(
            (flow.sock.field("k").unwrap() - k).abs() < 0.01,
            "{beta} {c} {w}: {:?} {k}",
            flow.sock.field("k")
        );
    }
}
