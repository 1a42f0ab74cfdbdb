//! The dialect `mptcp-0.95`, the rules as the out-of-tree kernel had them, with numbers worked by hand.
//!
//! Some laws of `laws.rs` do not hold: LIA's dialect may be faster than one TCP on the best path, OLIA's does not follow
//! its formula, and BALIA's decrease has no values between w/2 and 3w/4. The bounds hold, and `fuzz.rs` plays the
//! dialects like every other parameter.

mod support;

use support::{Bench, Paths, Rng};

const SPEC: &[(&str, u64)] = &[("dialect", 0)];
const KERNEL: &[(&str, u64)] = &[("dialect", 1)];

fn paths(w: &[u32], t_ms: &[u32]) -> Paths {
    Paths {
        w: w.to_vec(),
        t: t_ms.iter().map(|t| t * 1000).collect(),
        l: vec![(70, 30); w.len()],
        r: 0,
    }
}

/// ACKs per packet of growth.
fn acks(name: &str, dialect: &[(&str, u64)], p: &Paths, r: usize) -> f64 {
    1.0 / Bench::new(name, dialect, p).increase(r)
}

fn assert_acks(got: f64, wanted: f64) {
    assert!(
        (got / wanted - 1.0).abs() < 1e-5,
        "{got} ACKs, wanted {wanted}"
    );
}

#[test]
fn alone_the_dialects_are_reno() {
    for name in ["lia", "olia", "balia"] {
        let p = paths(&[700], &[20]);
        assert_acks(acks(name, KERNEL, &p, 0), 700.0);
        assert_eq!(
            Bench::new(name, KERNEL, &p).ssthresh_after_loss(0),
            350,
            "{name}"
        );
    }
}

#[test]
fn lias_whole_alpha_is_too_slow_or_too_fast() {
    // S = 2 w and w_b/S^2 = 1/(4 w), so the RFC waits for 4 w ACKs; alpha = floor(4096/(4 w)), at least 1.
    for (w, kernel) in [
        (256, 1024.0),
        (341, 1365.0),
        (600, 4096.0),
        (3000, 4096.0),
        (5000, 5000.0),
    ] {
        let p = paths(&[w, w], &[20, 20]);
        assert_acks(acks("lia", SPEC, &p, 1), 4.0 * f64::from(w));
        assert_acks(acks("lia", KERNEL, &p, 1), kernel);
    }
}

#[test]
fn lia_takes_the_last_subflow_for_the_best_when_all_are_slow() {
    // floor(64 2^32/800000^2) = 0, as for 16. S = 80: 64/6400 is one in 100 ACKs, but alpha = floor(4096 16/6400) = 10.
    let slow = paths(&[64, 16], &[100, 100]);
    assert_acks(acks("lia", SPEC, &slow, 0), 100.0);
    assert_acks(acks("lia", KERNEL, &slow, 0), 409.0);
    // Ten times faster the order is right: alpha = floor(4096 64/6400) = 40.
    assert_acks(acks("lia", KERNEL, &paths(&[64, 16], &[10, 10]), 0), 102.0);
}

#[test]
fn olia_stops_growing_where_an_ack_is_worth_less_than_one_in_1024() {
    let grown = |dialect, w: u32, count: usize| {
        let mut bench = Bench::new("olia", dialect, &paths(&[w, w], &[20, 20]));
        for _ in 0..count {
            bench.ack(0);
            // The other path keeps up, so that none is best.
            bench.socks[1].set_field(&mut bench.conn, "l1", 1e6);
            bench.socks[0].set_field(&mut bench.conn, "l1", 1e6);
        }
        bench.socks[0].tp.snd_cwnd - w
    };
    // 1/(4 w) is exactly one unit at 256, and a packet is due at 1023 of them.
    assert_eq!((grown(KERNEL, 256, 1022), grown(KERNEL, 256, 1023)), (0, 1));
    // A packet after 1200 ACKs; the larger window then waits for the other.
    assert_eq!((grown(KERNEL, 300, 5000), grown(SPEC, 300, 5000)), (0, 1));
}

#[test]
fn olia_forgets_no_interval_in_which_nothing_was_acknowledged_and_keeps_two_packets() {
    for (dialect, l1, floor) in [(SPEC, 0.0, 1), (KERNEL, 30.0, 2)] {
        let mut bench = Bench::new("olia", dialect, &paths(&[3, 40], &[20, 35]));
        assert_eq!(bench.ssthresh_after_loss(0), floor);
        bench.lose(0);
        assert_eq!(bench.socks[0].field("l1"), Some(30.0));
        bench.lose(0);
        assert_eq!(bench.socks[0].field("l1"), Some(l1));
    }
}

#[test]
fn balia_cuts_by_half_or_three_quarters_and_nothing_between() {
    // Own window and the other's at equal RTTs: alpha = other/own.
    for (own, other, spec, kernel) in [
        (40, 40, 20, 20),
        (40, 60, 10, 20),
        (40, 79, 10, 20),
        (40, 80, 10, 10),
        (48, 60, 18, 24),
        // floor(7/2) = 3 and 3 3/2 = 4, where 3 7/4 = 5.
        (7, 21, 2, 3),
    ] {
        for (dialect, wanted) in [(SPEC, spec), (KERNEL, kernel)] {
            let mut bench = Bench::new("balia", dialect, &paths(&[own, other], &[20, 20]));
            for sock in &mut bench.socks {
                sock.tp.mss_cache = 1000;
            }
            assert_eq!(
                bench.ssthresh_after_loss(0),
                wanted,
                "{own} beside {other}, {dialect:?}"
            );
        }
    }
}

#[test]
fn wvegas_sees_whole_packets_and_drains_an_empty_queue() {
    let after = |dialect, base_us: u32, rtt_us: u32| {
        let mut bench = Bench::new("wvegas", dialect, &paths(&[40, 25], &[20, 35]));
        let sock = &mut bench.socks[0];
        sock.set_field(&mut bench.conn, "base", f64::from(base_us) / 1e6);
        sock.set_field(&mut bench.conn, "alpha", 2.0);
        for _ in 0..4 {
            let sample = mptcplab_cc::AckSample {
                pkts_acked: 1,
                rtt_us: rtt_us as i32,
                in_flight: 9,
            };
            sock.pkts_acked(&mut bench.conn, &sample);
        }
        sock.cong_avoid(&mut bench.conn, 100, 1);
        sock.tp.snd_cwnd
    };
    // Nothing is queued: one packet more; but 0 >= 2 x 0, and 41 20/(2 20) is 20.
    assert_eq!(
        (after(SPEC, 20_000, 20_000), after(KERNEL, 20_000, 20_000)),
        (41, 20)
    );
    // 40 (32 - 20)/32 = 15 packets are queued: alpha becomes the whole 10, and one packet goes.
    assert_eq!(
        (after(SPEC, 20_000, 32_000), after(KERNEL, 20_000, 32_000)),
        (39, 39)
    );
}

#[test]
fn the_dialects_keep_within_reno_and_a_quarter_of_the_window() {
    let mut rng = Rng(31);
    let mut faster = 0;
    for _ in 0..5_000 {
        let p = Paths::extreme(&mut rng);
        let w = p.w[p.r];
        for name in ["lia", "balia"] {
            let mut bench = Bench::new(name, KERNEL, &p);
            for sock in &mut bench.socks {
                sock.tp.mss_cache = rng.log(1.0, 65_536.0);
            }
            let inc = bench.increase(p.r);
            assert!(
                inc > 0.0 && inc <= (1.0 + 1e-6) / f64::from(w),
                "{name} {inc} {p:?}"
            );
            let ssthresh = bench.ssthresh_after_loss(p.r);
            assert!(
                ssthresh >= (w / 4).max(1) && ssthresh <= (w / 2 + 1).max(2),
                "{name} {ssthresh} {p:?}"
            );
        }
        let increases = Bench::new("lia", KERNEL, &p).increases();
        let speed: f64 = increases.iter().zip(p.rates()).map(|(d, x)| d * x).sum();
        faster += u32::from(speed > 1.01 / f64::from(p.t[p.best()]));
        if p.n() > 1 {
            let inc = Bench::new("olia", KERNEL, &p).increase(p.r);
            assert!(
                [-1.0, 0.0, 1.0].contains(&inc),
                "OLIA grows by whole packets: {inc} {p:?}"
            );
        }
    }
    assert!(
        faster > 100,
        "faster than one TCP on the best path on {faster} of 5000 connections"
    );
}
