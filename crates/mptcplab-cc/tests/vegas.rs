//! Vegas' rounds as an engine drives them: numbers worked by hand, and its formulas in real numbers.

use crate::support::{Bench, Paths, Rng};
use mptcplab_cc::{AckSample, CaEvent, CaState};

/// One subflow in congestion avoidance.
fn bench(w: u32, params: &[(&str, u64)]) -> Bench {
    let paths = Paths {
        w: vec![w],
        t: vec![20_000],
        l: vec![(0, 0)],
        r: 0,
    };
    Bench::new("vegas", params, &paths)
}

/// Acknowledges packets one by one, each with this RTT; the sender refills the window at once.
fn acks(bench: &mut Bench, packets: u32, rtt_us: i32) {
    let (conn, sock) = (&mut bench.conn, &mut bench.socks[0]);
    for _ in 0..packets {
        sock.tp.snd_una += 1;
        sock.tp.snd_nxt = sock.tp.snd_una + sock.tp.snd_cwnd - 1;
        let sample = AckSample {
            pkts_acked: 1,
            rtt_us,
            in_flight: 1,
        };
        sock.pkts_acked(conn, &sample);
        sock.cong_avoid(conn, sock.tp.snd_una, 1);
    }
}

/// One round: the ACKs of exactly what was in flight when it began. The decision is made at the last of them.
fn round(bench: &mut Bench, rtt_us: i32) {
    let packets = bench.socks[0].tp.snd_nxt - bench.socks[0].tp.snd_una;
    acks(bench, packets.max(1), rtt_us);
}

fn window(bench: &Bench) -> f64 {
    bench.socks[0].window()
}

/// A subflow of `w` packets that has seen its base RTT of 20 ms in a round which changed nothing else.
fn settled(w: u32, params: &[(&str, u64)]) -> Bench {
    let mut bench = bench(w, params);
    bench.socks[0].tp.is_cwnd_limited = false;
    round(&mut bench, 20_000);
    round(&mut bench, 20_000);
    bench.socks[0].tp.is_cwnd_limited = true;
    assert_eq!(window(&bench), f64::from(w));
    bench
}

#[test]
fn a_round_grows_shrinks_or_keeps_by_the_packets_queued() {
    // diff = 40 (rtt - 20)/rtt: 2 packets at 21.0526 ms, 4 at 22.2222 ms.
    for (rtt_us, wanted) in [
        (20_000, 41.0),
        (21_052, 41.0),
        (21_053, 40.0),
        (22_222, 40.0),
        (22_223, 39.0),
        (40_000, 39.0),
    ] {
        let mut bench = settled(40, &[]);
        round(&mut bench, rtt_us);
        assert_eq!(window(&bench), wanted, "at {rtt_us} us");
    }
}

#[test]
fn the_decision_is_made_once_a_round_by_the_mean_rtt() {
    let mut bench = settled(40, &[]);
    // 20 samples of 20 ms and 20 of 24: a mean of 22 ms is 3.6 packets, between alpha and beta.
    acks(&mut bench, 20, 20_000);
    assert_eq!(window(&bench), 40.0, "nothing is decided within a round");
    acks(&mut bench, 20, 24_000);
    assert_eq!(window(&bench), 40.0);
    // 19 and 21 samples make 22.1 ms, 3.8 packets; 16 and 24 make 22.4 ms, 4.3 packets.
    acks(&mut bench, 16, 20_000);
    acks(&mut bench, 24, 24_000);
    assert_eq!(window(&bench), 39.0);
}

#[test]
fn the_parameters_are_the_bounds_of_the_queue() {
    // diff = 100 (25 - 20)/25 = 20 packets.
    for (alpha, beta, wanted) in [
        (19, 30, 100.0),
        (21, 30, 101.0),
        (5, 19, 99.0),
        (20, 20, 100.0),
    ] {
        let mut bench = settled(100, &[("alpha", alpha), ("beta", beta)]);
        round(&mut bench, 25_000);
        assert_eq!(window(&bench), wanted, "alpha {alpha}, beta {beta}");
    }
}

#[test]
fn slow_start_ends_when_more_than_gamma_packets_queue() {
    // 80 packets: one is queued at 20.2532 ms, where w = 80 x 20/rtt + 1 is just below 80; 16 at 25 ms, where it is 65.
    for (gamma, rtt_us, wanted, ssthresh) in [
        (1, 20_253, 81, 1000),
        (1, 20_254, 79, 78),
        (1, 25_000, 65, 64),
        (15, 25_000, 65, 64),
        (16, 25_000, 81, 1000),
    ] {
        let mut bench = settled(80, &[("gamma", gamma)]);
        bench.socks[0].tp.snd_ssthresh = 1000;
        // Only the ACK that ends the round may grow: the window was not used at the others.
        bench.socks[0].tp.is_cwnd_limited = false;
        acks(&mut bench, 79, rtt_us);
        bench.socks[0].tp.is_cwnd_limited = true;
        acks(&mut bench, 1, rtt_us);
        let tp = &bench.socks[0].tp;
        assert_eq!(
            (tp.snd_cwnd, tp.snd_ssthresh),
            (wanted, ssthresh),
            "gamma {gamma}, {rtt_us} us"
        );
    }
}

#[test]
fn slow_start_doubles_in_every_round_or_in_every_other_one() {
    // A round ends at the ACK of the last packet sent before it began. That ACK allows two more packets, which belong
    // to the round after the next: 10 ACKs, then 20 - 2, 38 - 2 and 74 - 2. Without growth it allows one.
    for (mode, wanted) in [(0, [20, 38, 74, 146]), (1, [20, 20, 39, 39])] {
        let mut bench = bench(10, &[("slow_start", mode)]);
        bench.socks[0].tp.snd_ssthresh = 1000;
        bench.socks[0].tp.snd_nxt = 10;
        bench.socks[0].cwnd_event(&mut bench.conn, CaEvent::CwndRestart);
        let windows = [(); 4].map(|()| {
            round(&mut bench, 20_000);
            bench.socks[0].tp.snd_cwnd
        });
        assert_eq!(windows, wanted, "slow_start {mode}");
    }
}

#[test]
fn a_round_of_two_samples_grows_as_renos() {
    // 40 ms would be 20 packets queued, but two samples say nothing.
    let mut bench = settled(2, &[]);
    round(&mut bench, 40_000);
    assert_eq!(window(&bench), 3.0);
    round(&mut bench, 40_000);
    assert_eq!(
        window(&bench),
        4.0,
        "the samples of the next round begin anew"
    );
}

#[test]
fn the_window_never_falls_below_two_packets() {
    let mut bench = settled(4, &[("alpha", 1), ("beta", 1)]);
    for _ in 0..6 {
        round(&mut bench, 200_000);
        let tp = &bench.socks[0].tp;
        assert!(tp.snd_cwnd >= 2 && tp.snd_ssthresh >= 2, "{tp:?}");
    }
}

#[test]
fn a_loss_halves_and_keeps_the_base_rtt_a_timeout_and_an_idle_restart_forget_it() {
    let mut bench = settled(41, &[]);
    bench.lose(0);
    assert_eq!(
        (bench.socks[0].tp.snd_cwnd, bench.socks[0].tp.snd_ssthresh),
        (20, 20)
    );
    assert_eq!(bench.socks[0].field("base"), Some(0.02));
    let (conn, sock) = (&mut bench.conn, &mut bench.socks[0]);
    sock.tp.snd_una = sock.tp.snd_nxt - 1;
    sock.cong_avoid(conn, sock.tp.snd_una, 1);
    assert_eq!(
        sock.window(),
        20.0,
        "what was sent before the recovery ended ends no round"
    );
    sock.set_state(conn, CaState::Loss);
    assert!(
        sock.field("base").unwrap() > 4000.0,
        "no base RTT after a timeout"
    );
    sock.set_state(conn, CaState::Open);
    round(&mut bench, 31_000);
    assert_eq!(bench.socks[0].field("base"), Some(0.031));
    bench.socks[0].cwnd_event(&mut bench.conn, CaEvent::CwndRestart);
    assert!(
        bench.socks[0].field("base").unwrap() > 4000.0,
        "no base RTT after a restart"
    );
}

/// The decision of one round in real numbers (Brakmo and Peterson 1995, section 3.2): window and threshold after it.
fn formula(w: f64, ssthresh: f64, base: f64, rtt: f64) -> (f64, f64) {
    let diff = w * (rtt - base) / rtt;
    let shrunk = |w: f64| (w.max(2.0), ssthresh.min(w.max(2.0) - 1.0).max(2.0));
    match (w < ssthresh, diff) {
        (true, d) if d > 1.0 => shrunk(w.min(w * base / rtt + 1.0)),
        (true, _) => (w + 1.0, ssthresh),
        (false, d) if d > 4.0 => shrunk(w - 1.0),
        (false, d) if d < 2.0 => (w + 1.0, ssthresh),
        _ => (w, ssthresh),
    }
}

#[test]
fn every_round_follows_the_formula_over_the_whole_range() {
    let mut rng = Rng(21);
    let (mut grown, mut kept, mut shrunk) = (0, 0, 0);
    for _ in 0..20_000 {
        let w = rng.log(2.0, 1_048_575.0);
        let base_us = rng.log(1.0, 3e7);
        // From nothing to some ten packets queued, and sometimes far more.
        let queued = rng.unit() * if rng.chance(0.3) { f64::from(w) } else { 10.0 };
        let rtt = f64::from(base_us) * (1.0 + queued / f64::from(w));
        let rtt_us = (rtt as u32).clamp(base_us, 1 << 26);
        let ssthresh = if rng.chance(0.3) {
            w + 1
        } else {
            rng.log(2.0, f64::from(w))
        };
        let mut bench = bench(w, &[]);
        let (conn, sock) = (&mut bench.conn, &mut bench.socks[0]);
        sock.tp.snd_ssthresh = ssthresh;
        sock.set_field(conn, "base", f64::from(base_us) * 1e-6);
        for _ in 0..3 {
            let sample = AckSample {
                pkts_acked: 1,
                rtt_us: rtt_us as i32,
                in_flight: 1,
            };
            sock.pkts_acked(conn, &sample);
        }
        sock.cong_avoid(conn, sock.tp.snd_nxt, 1);
        let (wanted, threshold) = formula(
            f64::from(w),
            f64::from(ssthresh),
            f64::from(base_us),
            f64::from(rtt_us),
        );
        let context = (w, ssthresh, base_us, rtt_us);
        assert!(
            (sock.window() - wanted).abs() < 1e-3,
            "{} {wanted} {context:?}",
            sock.window()
        );
        assert!(
            (f64::from(sock.tp.snd_ssthresh) - threshold).abs() < 1.0,
            "{} {threshold} {context:?}",
            sock.tp.snd_ssthresh
        );
        match wanted - f64::from(w) {
            d if d > 0.0 => grown += 1,
            d if d < 0.0 => shrunk += 1,
            _ => kept += 1,
        }
    }
    assert!(
        grown > 1000 && kept > 1000 && shrunk > 1000,
        "{grown} {kept} {shrunk}"
    );
}
