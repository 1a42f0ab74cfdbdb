//! The variants of LIA, OLIA and BALIA: laws on random connections, and numbers worked by hand.

use crate::support::{Bench, Paths, Rng, instances};
use mptcplab_cc::{AckSample, CaEvent, CaState, Sock};

fn paths(w: &[u32], t: &[u32]) -> Paths {
    Paths {
        w: w.to_vec(),
        t: t.to_vec(),
        l: vec![(0, 0); w.len()],
        r: 0,
    }
}

/// An ACK of one packet with an RTT sample, which does not let the window grow.
fn sample(bench: &mut Bench, r: usize, rtt_us: i32) {
    let acked = AckSample {
        pkts_acked: 1,
        rtt_us,
        in_flight: 1,
    };
    bench.socks[r].pkts_acked(&mut bench.conn, &acked);
}

fn field(bench: &Bench, r: usize, name: &str) -> f64 {
    bench.socks[r].field(name).expect("a state of this name")
}

#[test]
fn no_set_of_lia_subsets_paths_is_faster_than_one_tcp_on_its_best() {
    let mut rng = Rng(21);
    for _ in 0..instances() / 4 {
        let p = Paths::random(&mut rng);
        let increases = Bench::new("lia-subset", &[], &p).increases();
        let lia = Bench::new("lia", &[], &p).increases();
        for r in 0..p.n() {
            assert!(increases[r] <= lia[r] * (1.0 + 1e-3), "{r} {p:?}");
        }
        let rates = p.rates();
        for set in 1u32..1 << p.n() {
            let members = || (0..p.n()).filter(|k| set >> k & 1 == 1);
            let key = |k: usize| f64::from(p.w[k]) / f64::from(p.t[k]).powi(2);
            let best = members()
                .max_by(|&a, &b| key(a).total_cmp(&key(b)))
                .unwrap();
            let speed: f64 = members().map(|k| rates[k] * increases[k]).sum();
            assert!(
                speed <= (1.0 + 1e-3) / f64::from(p.t[best]),
                "{set:b} {p:?}"
            );
        }
    }
}

#[test]
fn the_dynamic_factor_stays_within_its_limits_at_every_ack_and_loss() {
    let mut rng = Rng(22);
    for name in ["dlia", "dolia"] {
        for _ in 0..instances() / 20 {
            let p = Paths::random(&mut rng);
            let mut bench = Bench::new(name, &[], &p);
            for _ in 0..20 {
                let r = rng.below(p.n());
                bench.socks[r].tp.tcp_mstamp += 200_000;
                sample(&mut bench, r, rng.log(500.0, 2e6) as i32);
                bench.ack(r);
                let w = bench.socks[r].window();
                if rng.chance(0.5) {
                    bench.lose(r);
                    let kept = bench.socks[r].window() / w;
                    assert!(
                        w < 4.0 || (0.5 - 1.0 / w..=0.9).contains(&kept),
                        "{name} kept {kept} of {w}"
                    );
                }
                let beta = field(&bench, r, "beta_prev");
                assert!((0.5..=0.9).contains(&beta), "{name} {beta}");
            }
        }
    }
}

#[test]
fn dlia_keeps_more_the_sooner_losses_follow_one_another() {
    // gamma = 1/100 and beta = 0.25/100 + 0.375 is below 0.5; then 50/80 = 0.625 and 0.15625 + 0.375 = 0.53125.
    let losses = |params: &[(&str, u64)]| {
        let mut bench = Bench::new("dlia", params, &paths(&[100, 30], &[20_000, 50_000]));
        bench.lose(0);
        let first = bench.socks[0].tp.snd_cwnd;
        bench.socks[0].tp.snd_cwnd = 80;
        bench.lose(0);
        (first, bench.socks[0].window())
    };
    assert_eq!(losses(&[]), (50, 42.5));
    // The running text compares with the 100 packets before: gamma = 1, beta = 0.25 + 0.375.
    assert_eq!(losses(&[("gamma", 1)]), (50, 50.0));
    // beta = 0.7; then gamma = 70/80 and beta = 0.21875 + 0.525.
    let (first, second) = losses(&[("beta_min", 700)]);
    assert!(first == 70 && (second - 59.5).abs() < 1e-4, "{second}");
}

#[test]
fn the_dynamic_factor_begins_at_a_half_and_a_window_of_one_packet() {
    for name in ["dlia", "dolia"] {
        // gamma = 1 and beta = 0.25 + 0.375; of one packet nothing is taken.
        let mut bench = Bench::new(name, &[], &paths(&[1, 30], &[20_000, 50_000]));
        let state = |bench: &Bench| ["beta_prev", "cwnd_prev"].map(|of| field(bench, 0, of));
        assert_eq!(state(&bench), [0.5, 1.0], "{name}");
        // D-OLIA: no RTT above that of the last loss.
        bench.socks[0].tp.srtt_us = 1_000 << 3;
        bench.lose(0);
        assert_eq!(bench.socks[0].window(), 1.0, "{name}");
        assert_eq!(state(&bench), [0.625, 1.0], "{name}");
        // gamma = 1/20, so that beta = 0.0125 + 0.46875 is below its limit, which is exact.
        bench.socks[0].tp.snd_cwnd = 20;
        bench.lose(0);
        assert_eq!(state(&bench), [0.5, 10.0], "{name}");
    }
}

#[test]
fn dolia_takes_the_middle_of_more_than_two_samples_after_a_period() {
    let mut bench = Bench::new("dolia", &[], &paths(&[80, 30], &[20_000, 50_000]));
    for (now_us, rtt_us, middle) in [
        (1_000_000, 20_000, 0.0),
        (1_000_001, 30_000, 0.0),
        (1_000_002, 44_000, 0.032),
        // The next period of 0.5 s has one sample, the last.
        (1_100_000, 50_000, 0.032),
        (1_500_002, 60_000, 0.032),
        (1_500_003, 80_000, 0.062),
    ] {
        bench.socks[0].tp.tcp_mstamp = now_us;
        sample(&mut bench, 0, rtt_us);
        assert_eq!(field(&bench, 0, "rtt_mid"), middle, "{now_us}");
    }
}

#[test]
fn dolia_halves_when_the_delay_says_congested_and_asks_the_factor_when_not() {
    let lose_at = |rtt_us: i32| {
        let mut bench = Bench::new("dolia", &[], &paths(&[80, 30], &[20_000, 50_000]));
        bench.socks[0].tp.tcp_mstamp = 1_000_000;
        bench.socks[0].set_field(&mut bench.conn, "beta_prev", 0.75);
        bench.socks[0].set_field(&mut bench.conn, "cwnd_prev", 80.0);
        // The middle of 20 and 40 ms is 30 ms.
        for rtt in [20_000, 40_000, 24_000] {
            sample(&mut bench, 0, rtt);
        }
        assert_eq!(field(&bench, 0, "rtt_mid"), 0.030);
        sample(&mut bench, 0, rtt_us);
        bench.lose(0);
        (bench.socks[0].window(), field(&bench, 0, "beta_prev"))
    };
    assert_eq!(lose_at(31_000), (40.0, 0.75));
    // beta = 0.25 + 0.75 x 0.75 = 0.8125.
    assert_eq!(lose_at(29_000), (65.0, 0.8125));
}

/// A subflow that has seen RTTs from 20 ms to 20 ms + span since its last loss.
fn see_span(bench: &mut Bench, r: usize, span_us: i32) {
    sample(bench, r, 20_000);
    sample(bench, r, 20_000 + span_us);
}

#[test]
fn adw_balia_cuts_less_the_less_the_spans_agree() {
    // x = 4 and 1 packets per ms, so BALIA halves the first path and takes 3/4 from the second.
    let kept_of = |w: [u32; 2], dialect: u64, spans: [i32; 2], r: usize| {
        let params = [("dialect", dialect)];
        let mut bench = Bench::new("adw-balia", &params, &paths(&w, &[20_000, 40_000]));
        for (k, span) in spans.into_iter().enumerate() {
            see_span(&mut bench, k, span);
        }
        bench.lose(r);
        bench.socks[r].window()
    };
    let kept = |spans: [i32; 2], r: usize| kept_of([80, 40], 0, spans, r);
    // Means 10, 10.5 and 14 of spans whose 90 % and 110 %, or 80 % and 120 %, they are within or not.
    assert_eq!(
        [kept([10_000, 10_000], 0), kept([10_000, 10_000], 1)],
        [40.0, 10.0]
    );
    assert_eq!(
        [kept([9_800, 11_200], 0), kept([9_800, 11_200], 1)],
        [40.0, 10.0]
    );
    assert_eq!(
        [kept([9_000, 12_000], 0), kept([12_000, 9_000], 1)],
        [50.0, 25.0]
    );
    assert_eq!(
        [kept([10_000, 18_000], 0), kept([10_000, 18_000], 1)],
        [60.0, 30.0]
    );
    // The dialect takes whole packets: floor(40 0.75) and floor(20 0.75), or floor(40 0.5) and floor(20 0.5).
    let whole = |spans: [i32; 2]| [0, 1].map(|r| kept_of([81, 41], 1, spans, r));
    assert_eq!(whole([9_000, 12_000]), [51.0, 26.0]);
    assert_eq!(whole([10_000, 18_000]), [61.0, 31.0]);
    assert_eq!(kept_of([1, 41], 1, [9_000, 12_000], 0), 1.0);
}

#[test]
fn adw_balias_average_is_the_connections_and_stays_when_a_subflow_goes() {
    let mut bench = Bench::new(
        "adw-balia",
        &[],
        &paths(&[80, 40, 20], &[20_000, 40_000, 10_000]),
    );
    for r in 0..3 {
        see_span(&mut bench, r, 12_000);
    }
    bench.lose(0);
    assert_eq!(field(&bench, 0, "average"), 0.012);
    // m = (12 + 36 + 12)/3 = 20 and A = 3/8 x 12 + 5/8 x 20 = 17, at another subflow.
    see_span(&mut bench, 1, 36_000);
    bench.lose(1);
    assert_eq!(
        (field(&bench, 1, "average"), field(&bench, 1, "changes")),
        (0.017, 2.0)
    );
    // m = 20 again: 3/8 x 17 + 5/8 x 20 = 18.875.
    bench.lose(2);
    assert_eq!(
        (field(&bench, 2, "average"), field(&bench, 2, "changes")),
        (0.018_875, 3.0)
    );
    // Without the third, its own loss before counts: A was 17 and m is (12 + 36)/2 = 24, so 21.375.
    let mut gone = bench.socks.pop().unwrap();
    gone.release(&mut bench.conn);
    bench.lose(0);
    assert_eq!(
        (field(&bench, 0, "average"), field(&bench, 0, "changes")),
        (0.021_375, 3.0)
    );
}

#[test]
fn adw_balia_with_equal_spans_is_balia() {
    let mut rng = Rng(23);
    for _ in 0..instances() / 4 {
        let p = Paths::random(&mut rng);
        let mut balia = Bench::new("balia", &[], &p);
        let mut adw = Bench::new("adw-balia", &[], &p);
        for r in 0..p.n() {
            see_span(&mut adw, r, 7_000);
        }
        assert_eq!(
            adw.ssthresh_after_loss(p.r),
            balia.ssthresh_after_loss(p.r),
            "{p:?}"
        );
    }
}

/// A round of three samples, ended by an ACK that acknowledges no packet.
fn round(bench: &mut Bench, r: usize, rtt_us: i32) {
    for _ in 0..3 {
        sample(bench, r, rtt_us);
    }
    let sock = &mut bench.socks[r];
    let end = sock.tp.snd_nxt;
    sock.tp.snd_nxt += 1_000_000;
    sock.cong_avoid(&mut bench.conn, end, 0);
}

fn compound(w: &[u32], t: &[u32], delay_window: f64) -> Bench {
    let mut bench = Bench::new("mcompound", &[], &paths(w, t));
    for (sock, &t) in bench.socks.iter_mut().zip(t) {
        sock.set_field(&mut bench.conn, "d", delay_window);
        sock.set_field(&mut bench.conn, "base", f64::from(t) * 1e-6);
    }
    bench
}

#[test]
fn mcompounds_delay_window_fills_a_path_without_a_queue() {
    // 256^0.75 = 64, so 0.125 x 64 - 1 = 7 packets per round on one path.
    let mut alone = compound(&[256], &[10_000], 56.0);
    round(&mut alone, 0, 10_000);
    assert_eq!(
        (field(&alone, 0, "d"), alone.socks[0].window()),
        (63.0, 263.0)
    );
    // Of two with rates of 25.6 and 8.533 packets per ms, the first has three quarters of the gain.
    let mut two = compound(&[256, 256], &[10_000, 30_000], 56.0);
    round(&mut two, 0, 10_000);
    assert!(
        (field(&two, 0, "d") - 61.25).abs() < 1e-3,
        "{}",
        field(&two, 0, "d")
    );
}

#[test]
fn mcompounds_delay_window_gives_way_to_a_queue_and_slow_start_does_not_refill_it() {
    // diff = 256 x (12.5 - 10)/12.5 = 51.2 packets queued; d = 56 - 51.2 = 4.8.
    let mut bench = compound(&[256], &[10_000], 56.0);
    bench.socks[0].tp.snd_ssthresh = 250;
    round(&mut bench, 0, 12_500);
    assert!((field(&bench, 0, "d") - 4.8).abs() < 1e-3);
    assert!((bench.socks[0].window() - 204.8).abs() < 1e-3);
    assert!(bench.socks[0].tp.snd_ssthresh <= bench.socks[0].tp.snd_cwnd);
    // Twice the base RTT: 102 packets queued, more than d has.
    round(&mut bench, 0, 20_000);
    assert_eq!(field(&bench, 0, "d"), 0.0);
    assert_eq!(bench.socks[0].tp.snd_cwnd, 200);
}

#[test]
fn mcompounds_delay_window_gives_way_from_exactly_gamma_packets_on() {
    // 256 (8 - 7)/8 = 32 packets are queued: 56 - 32 are left if gamma is 32, and 7 more are added if it is 33.
    for (gamma, delay_window) in [(32.0, 24.0), (33.0, 63.0)] {
        let mut bench = compound(&[256], &[7_000], 56.0);
        bench.socks[0].set_field(&mut bench.conn, "gamma", gamma);
        round(&mut bench, 0, 8_000);
        assert_eq!(field(&bench, 0, "d"), delay_window, "{gamma}");
    }
}

#[test]
fn mcompounds_loss_window_keeps_a_packet_of_whatever_window_is_left() {
    // The socket has cut the window to 20 packets, so that d is 19 at most. 20 (12.5 - 10)/12.5 = 4 are queued.
    let mut bench = compound(&[20], &[10_000], 56.0);
    bench.socks[0].set_field(&mut bench.conn, "gamma", 2.0);
    round(&mut bench, 0, 12_500);
    assert_eq!(field(&bench, 0, "d"), 15.0);
    // c = 1 is not halved on two paths: d = 20/2 - 1.
    let mut bench = compound(&[20, 30], &[10_000, 40_000], 56.0);
    bench.lose(0);
    assert_eq!(
        (bench.socks[0].window(), field(&bench, 0, "d")),
        (10.0, 9.0)
    );
}

#[test]
fn an_undone_mcompound_loss_restores_both_windows_and_an_idle_period_ends_the_delay_window() {
    let mut bench = compound(&[256], &[10_000], 56.0);
    bench.lose(0);
    assert_eq!(
        (bench.socks[0].window(), field(&bench, 0, "d")),
        (128.0, 28.0)
    );
    let sock = &mut bench.socks[0];
    assert_eq!(sock.undo_cwnd(&mut bench.conn), 256);
    assert_eq!(sock.field("d"), Some(56.0));
    sock.tp.snd_cwnd = 300;
    assert_eq!(sock.undo_cwnd(&mut bench.conn), 300);
    sock.cwnd_event(&mut bench.conn, CaEvent::TxStart);
    assert_eq!(
        (sock.field("d"), sock.field("base")),
        (Some(56.0), Some(0.01))
    );
    sock.cwnd_event(&mut bench.conn, CaEvent::CwndRestart);
    assert_eq!(sock.field("d"), Some(0.0));
    assert!(sock.field("base") > Some(4000.0), "no base RTT");
}

#[test]
fn an_mcompound_loss_halves_the_sum_and_a_timeout_leaves_the_loss_window_alone() {
    let mut rng = Rng(24);
    for _ in 0..instances() / 4 {
        let p = Paths::random(&mut rng);
        let w = f64::from(p.w[p.r]);
        let delay_window = (rng.unit() * (w - 1.0)).floor();
        let mut bench = compound(&p.w, &p.t, 0.0);
        bench.socks[p.r].set_field(&mut bench.conn, "d", delay_window);
        bench.lose(p.r);
        let after = (bench.socks[p.r].window(), field(&bench, p.r, "d"));
        assert!(
            after.0 >= w / 2.0 - 1e-4 && after.0 <= w,
            "{after:?} of {w}"
        );
        assert!(after.1 >= 0.0 && after.1 < after.0, "{after:?} of {w}");
    }
    // c = 200 and d = 56: a timeout ends slow start at 100, a fast recovery at 128.
    let timeout = |bench: &mut Bench| {
        let sock: &mut Sock = &mut bench.socks[0];
        sock.tp.snd_ssthresh = sock.ssthresh(&mut bench.conn);
        let fast = sock.tp.snd_ssthresh;
        sock.tp.snd_cwnd = 1;
        sock.set_state(&mut bench.conn, CaState::Loss);
        (fast, sock.tp.snd_ssthresh, sock.field("d"))
    };
    assert_eq!(
        timeout(&mut compound(&[256], &[10_000], 56.0)),
        (128, 100, Some(0.0))
    );
}

#[test]
fn group_lia_couples_one_group_as_lia_and_nobody_else() {
    let mut rng = Rng(25);
    for _ in 0..instances() / 4 {
        let p = Paths::random(&mut rng);
        let mut bench = Bench::new("group-lia", &[], &p);
        let ungrouped = bench.increase(p.r);
        assert_eq!(
            ungrouped,
            Bench::new("reno", &[], &p).increase(p.r),
            "{p:?}"
        );
        let group: Vec<u8> = (0..p.n()).map(|_| rng.below(2) as u8).collect();
        for (sock, &g) in bench.socks.iter_mut().zip(&group) {
            sock.set_field(&mut bench.conn, "group", f64::from(g));
        }
        let members: Vec<usize> = (0..p.n()).filter(|&k| group[k] == group[p.r]).collect();
        let alone = Paths {
            w: members.iter().map(|&k| p.w[k]).collect(),
            t: members.iter().map(|&k| p.t[k]).collect(),
            l: members.iter().map(|&k| p.l[k]).collect(),
            r: members.iter().position(|&k| k == p.r).unwrap(),
        };
        let wanted = Bench::new("lia", &[], &alone).increase(alone.r);
        assert_eq!(bench.increase(p.r), wanted, "{group:?} {p:?}");
    }
}
