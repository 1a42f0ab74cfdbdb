//! The dialect `mptcp-0.95`, the rules as the out-of-tree kernel had them (net/mptcp/mptcp_coupled.c, mptcp_olia.c,
//! mptcp_balia.c and mptcp_wvegas.c of multipath-tcp.org), with numbers worked by hand.
//!
//! Some laws of `laws.rs` do not hold: LIA's dialect may be faster than one TCP on the best path, OLIA's does not follow
//! its formula, and BALIA's decrease has no values between w/2 and 3w/4. The bounds hold, and `fuzz.rs` plays the
//! dialects like every other parameter.

use crate::support::{Bench, Paths, Rng};
use mptcplab_cc::{AckSample, CaEvent, CaState};

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
fn lia_takes_the_oldest_subflow_for_the_best_when_all_are_slow() {
    // floor(w 2^32/800000^2) = 0 for both. With b = 0, S = 64 + 16 and alpha = floor(4096 64/6400) = 40; with b = 1,
    // S is the same, but alpha = floor(4096 16/6400) = 10.
    for (w, alpha) in [([64, 16], 40), ([16, 64], 10)] {
        let slow = paths(&w, &[100, 100]);
        assert_acks(acks("lia", SPEC, &slow, 0), 100.0);
        assert_acks(
            acks("lia", KERNEL, &slow, 0),
            f64::from((4096 / alpha).max(w[0])),
        );
        // Ten times faster, the best path is found wherever it is.
        let fast = paths(&w, &[10, 10]);
        assert_acks(acks("lia", KERNEL, &fast, 0), 102.0);
    }
}

/// ACKs until the window of path r has grown by a packet.
fn acks_until_growth(bench: &mut Bench, r: usize) -> u32 {
    let cwnd = bench.socks[r].tp.snd_cwnd;
    (1..100_000)
        .find(|_| {
            bench.ack(r);
            bench.socks[r].tp.snd_cwnd > cwnd
        })
        .expect("a window that grows")
}

#[test]
fn the_counter_of_acks_reaches_its_value_and_the_next_ack_adds_the_packet() {
    // LIA: floor(4096/floor(4096 40/(40 + 16)^2)) = floor(4096/52) = 78 ACKs.
    let p = paths(&[40, 16], &[12, 12]);
    let mut lia = Bench::new("lia", KERNEL, &p);
    assert_eq!(acks_until_growth(&mut lia, 1), 79);
    assert_eq!((lia.socks[1].tp.snd_cwnd, lia.socks[1].credit()), (17, 0.0));
    assert_eq!(
        acks_until_growth(&mut Bench::new("dlia", KERNEL, &p), 1),
        79
    );
    // BALIA: x = 3333333 and 1333333 bytes/s, so floor(10 4666666^2/4666666) = 46666660, and that times 16 over
    // 4 1333333 + 3333333 = 8666665 is 86.
    let balia = |name| {
        let mut bench = Bench::new(name, KERNEL, &p);
        bench.socks[1].tp.mss_cache = 1000;
        acks_until_growth(&mut bench, 1)
    };
    assert_eq!((balia("balia"), balia("adw-balia")), (87, 87));
    // All but the last ACK: less than a packet.
    let mut lia = Bench::new("lia", KERNEL, &p);
    (0..78).for_each(|_| lia.ack(1));
    assert_eq!(lia.socks[1].credit(), 1.0 - (-40f64).exp2());
    // An ACK that comes when the value has sunk below the counter adds the packet at once.
    let mut lia = Bench::new("lia", KERNEL, &p);
    (0..60).for_each(|_| lia.ack(1));
    lia.socks[0].tp.snd_cwnd = 10;
    lia.socks[0].publish(&mut lia.conn);
    assert_eq!(acks_until_growth(&mut lia, 1), 1);
}

#[test]
fn balia_takes_rates_for_whole_bytes_per_second() {
    // Segments of one byte: 11 and 3 packets in 2 s are 5 and 1 bytes/s, and floor(36 11/25) = 15 ACKs fill the counter.
    // In 20 s they are 0, and the window takes the place of the quotient.
    for (t_ms, acks) in [(2_000, 15), (20_000, 11)] {
        let mut bench = Bench::new("balia", KERNEL, &paths(&[11, 3], &[t_ms, t_ms]));
        bench.socks[0].tp.mss_cache = 1;
        assert_eq!(acks_until_growth(&mut bench, 0), acks + 1, "{t_ms}");
    }
}

#[test]
fn balia_scales_rates_down_by_32_if_one_exceeds_2_to_the_25() {
    // Segments of one byte. 2^20 packets in 31.25 ms are m = 2^25 bytes/s, beside x = floor(1/0.032) = 31:
    // floor(10 (m + 31)^2/(2 m)) = 5 m + 310, and floor((5 m + 310) 2^20/(5 m)) = 2^20 + 1. In 31.249 ms they are
    // more, so that x becomes 0, and 10 m^2/(2 m) 2^20/(5 m) = 2^20.
    for (t_us, acks) in [(31_250, (1 << 20) + 1), (31_249, 1 << 20)] {
        for name in ["balia", "adw-balia"] {
            let p = Paths {
                w: vec![1 << 20, 1],
                t: vec![t_us, 32_000],
                l: vec![(0, 0); 2],
                r: 0,
            };
            let mut bench = Bench::new(name, KERNEL, &p);
            bench.socks[0].tp.mss_cache = 1;
            for _ in 0..16 {
                bench.socks[0].cong_avoid(&mut bench.conn, 1, 1 << 16);
            }
            assert_eq!(bench.socks[0].tp.snd_cwnd_cnt, 1 << 20, "{name} {t_us}");
            let more = acks_until_growth(&mut bench, 0);
            assert_eq!((1 << 20) + more, acks + 1, "{name} {t_us}");
        }
    }
}

#[test]
fn an_ack_that_ends_slow_start_leaves_nothing_for_congestion_avoidance() {
    for name in ["lia", "olia", "balia", "dlia", "dolia", "adw-balia"] {
        let after = |dialect| {
            let mut bench = Bench::new(name, dialect, &paths(&[37, 25], &[20, 35]));
            let sock = &mut bench.socks[0];
            sock.tp.snd_ssthresh = 40;
            sock.cong_avoid(&mut bench.conn, 100, 9);
            (sock.tp.snd_cwnd, sock.credit() > 0.0)
        };
        assert_eq!(
            (after(KERNEL), after(SPEC)),
            ((40, false), (40, true)),
            "{name}"
        );
    }
}

#[test]
fn olia_stops_growing_where_an_ack_is_worth_less_than_one_in_1024() {
    for name in ["olia", "dolia"] {
        let grown = |dialect, w: u32, count: usize| {
            let mut bench = Bench::new(name, dialect, &paths(&[w, w], &[20, 20]));
            for _ in 0..count {
                bench.ack(0);
                // The other path keeps up, so that none is best.
                bench.socks[1].set_field(&mut bench.conn, "l1", 1e6);
                bench.socks[0].set_field(&mut bench.conn, "l1", 1e6);
            }
            bench.socks[0].tp.snd_cwnd - w
        };
        // 1024/(4 255) is 1, and a packet is due at 1023. At 256 it is 1 too, but the sum of rates begins at 1, not 0.
        assert_eq!((grown(KERNEL, 255, 1022), grown(KERNEL, 255, 1023)), (0, 1));
        // In the specification a packet after 1200 ACKs; the larger window then waits for the other.
        assert_eq!((grown(KERNEL, 256, 5000), grown(SPEC, 300, 5000)), (0, 1));
    }
}

/// ACKs of path 0 until its window changes, and the new window, with OLIA's dialect; `l` packets between losses.
fn olia_change(name: &str, w: &[u32], l: &[u32]) -> (u32, u32) {
    let mut p = paths(w, &vec![100; w.len()]);
    p.l = l.iter().map(|&l| (l, 0)).collect();
    let mut bench = Bench::new(name, KERNEL, &p);
    let sock = &mut bench.socks[0];
    let count = (1..10_000)
        .find(|_| {
            sock.cong_avoid(&mut bench.conn, 1, 1);
            sock.tp.snd_cwnd != w[0]
        })
        .expect("a window that changes");
    (count, sock.tp.snd_cwnd)
}

#[test]
fn olia_moves_window_from_the_largest_paths_to_the_best_ones() {
    for name in ["olia", "dolia"] {
        // In C with another: 1024 (20/100^2 + 1/(3 2 20)) is 10.6, so 10 of 1023 per ACK.
        assert_eq!(
            olia_change(name, &[20, 20, 60], &[3000, 3000, 30]),
            (103, 21)
        );
        // In M with another, beside one in C: 1024 (10/21^2 - 1/(3 2 10)) is 6.15.
        assert_eq!(olia_change(name, &[10, 10, 1], &[30, 30, 3000]), (171, 11));
        // Alone in M: 1024 (80/159^2 - 1/(2 80)) is -3.16. 341 times -3 are -1023, just enough.
        assert_eq!(olia_change(name, &[80, 79], &[30, 3000]), (341, 79));
        // In neither: 1024 10/45^2 is 5.06.
        assert_eq!(olia_change(name, &[10, 20, 15], &[30, 30, 3000]), (205, 11));
    }
}

#[test]
fn olia_wraps_no_product_below_16_000_packets_where_no_window_moves() {
    // w (2048 w)^2 is below 2^64. The increase is less than 1/1024, so that even 2^16 ACKs add nothing.
    for w in 12_000..16_000 {
        let mut bench = Bench::new("olia", KERNEL, &paths(&[w, w], &[20, 20]));
        bench.socks[0].cong_avoid(&mut bench.conn, 1, 1 << 16);
        assert_eq!(bench.socks[0].tp.snd_cwnd, w);
    }
}

#[test]
fn olia_takes_a_long_slow_path_for_a_bad_one_where_its_product_wraps() {
    // Packets since the loss of the smaller window; the other path has lost after 30 packets. 25,000 packets of 1000
    // bytes times (8 10^5 us)^2 are 0.867 2^64; 29,000 are 1.006 2^64, so that the path counts with 0.006 of that.
    for (l, collected) in [(25_000, true), (29_000, false)] {
        for (name, dialect, wanted) in [
            ("olia", KERNEL, collected),
            ("dolia", KERNEL, collected),
            ("olia", SPEC, true),
        ] {
            let mut p = paths(&[20, 30], &[100, 100]);
            p.l = vec![(l, 0), (300, 0)];
            let mut bench = Bench::new(name, dialect, &p);
            for sock in &mut bench.socks {
                sock.tp.mss_cache = 1000;
            }
            // 1/2 + 20/50^2 of a packet per window while the path is collected, else 20/50^2 only.
            let mut count = 1;
            while bench.socks[0].tp.snd_cwnd == 20 {
                bench.socks[0].cong_avoid(&mut bench.conn, 1, 1);
                count += 1;
            }
            assert_eq!(count < 60, wanted, "{name} {dialect:?} {l}: {count} ACKs");
        }
    }
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
fn olia_counts_what_a_recovery_acknowledges_at_the_first_ack_after_it() {
    for name in ["olia", "dolia"] {
        for (dialect, during, after) in [(SPEC, 46.0, 47.0), (KERNEL, 30.0, 47.0)] {
            let mut bench = Bench::new(name, dialect, &paths(&[20, 40], &[20, 35]));
            for pkts_acked in [7, 9] {
                let acked = AckSample {
                    pkts_acked,
                    rtt_us: -1,
                    in_flight: 0,
                };
                bench.socks[0].pkts_acked(&mut bench.conn, &acked);
            }
            assert_eq!(bench.socks[0].field("l2"), Some(during), "{name}");
            bench.ack(0);
            assert_eq!(bench.socks[0].field("l2"), Some(after), "{name}");
        }
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

/// An ACK of wVegas' path 0 with an RTT sample.
fn wvegas_ack(bench: &mut Bench, ack: u32, rtt_us: i32) {
    let (conn, sock) = (&mut bench.conn, &mut bench.socks[0]);
    let sample = AckSample {
        pkts_acked: 1,
        rtt_us,
        in_flight: 9,
    };
    sock.pkts_acked(conn, &sample);
    sock.cong_avoid(conn, ack, 1);
}

/// A round whose end is packet 20, played from the ACK of packet 1 to that of 21. The end of the next one is 41.
fn wvegas_round(bench: &mut Bench, rtt_us: i32) {
    bench.socks[0].tp.snd_nxt = 20;
    bench.socks[0].set_state(&mut bench.conn, CaState::Open);
    bench.socks[0].tp.snd_nxt = 41;
    (1..=21).for_each(|ack| wvegas_ack(bench, ack, rtt_us));
}

/// 40 packets beside 25, in congestion avoidance, with a smallest RTT of 20 ms.
fn wvegas(dialect: &[(&str, u64)]) -> Bench {
    let mut bench = Bench::new("wvegas", dialect, &paths(&[40, 25], &[20, 35]));
    bench.socks[0].set_field(&mut bench.conn, "base", 0.02);
    bench
}

#[test]
fn wvegas_sees_whole_packets_and_drains_an_empty_queue() {
    let after = |dialect, rtt_us: i32| {
        let mut bench = wvegas(dialect);
        wvegas_round(&mut bench, rtt_us);
        bench.socks[0].tp.snd_cwnd
    };
    // Nothing is queued: one packet more; but 0 >= 2 x 0, and 41 20/(2 20) is 20.
    assert_eq!((after(SPEC, 20_000), after(KERNEL, 20_000)), (41, 20));
    // 40 (32 - 20)/32 = 15 packets are queued: alpha becomes the whole 10, and one packet goes.
    assert_eq!((after(SPEC, 32_000), after(KERNEL, 32_000)), (39, 39));
    // 40 (21.8 - 20)/21.8 = 3.3 are queued, of 3 that it may have: the fraction says shrink, the whole packets say stay.
    let small = |dialect| {
        let mut bench = wvegas(dialect);
        for (sock, rate) in bench.socks.iter_mut().zip([0.0, 4000.0]) {
            sock.set_field(&mut bench.conn, "rate", rate);
        }
        wvegas_round(&mut bench, 21_800);
        bench.socks[0].tp.snd_cwnd
    };
    assert_eq!((small(SPEC), small(KERNEL)), (39, 40));
}

#[test]
fn wvegas_ends_a_round_at_an_ack_after_its_end() {
    let windows = |dialect| {
        let mut bench = wvegas(dialect);
        bench.socks[0].tp.snd_nxt = 20;
        bench.socks[0].set_state(&mut bench.conn, CaState::Open);
        bench.socks[0].tp.snd_nxt = 41;
        (1..=21)
            .map(|ack| {
                wvegas_ack(&mut bench, ack, 32_000);
                bench.socks[0].tp.snd_cwnd
            })
            .collect::<Vec<_>>()
    };
    assert_eq!(windows(KERNEL)[18..], [40, 40, 39]);
    assert_eq!(windows(SPEC)[18..], [40, 39, 39]);
}

#[test]
fn wvegas_slow_starts_back_to_three_quarters_of_its_window_after_a_drain() {
    let mut bench = wvegas(KERNEL);
    // 2 packets are queued of the 10 that it may have: one more, and ssthresh is 41/2 + 41/4.
    wvegas_round(&mut bench, 21_100);
    let window = |bench: &Bench| {
        let tp = &bench.socks[0].tp;
        (tp.snd_cwnd, tp.snd_ssthresh)
    };
    assert_eq!(window(&bench), (41, 30));
    // The queueing delay doubles from 1.1 to 2.2 ms, with 4 packets in the queue: w = 42, and floor(42 20/(2 22.2)) = 18.
    // These do not raise ssthresh, and each ACK then adds one, up to 30.
    bench.socks[0].tp.snd_nxt = 80;
    (22..=42).for_each(|ack| wvegas_ack(&mut bench, ack, 22_200));
    assert_eq!(window(&bench), (18, 30));
    (43..=47).for_each(|ack| wvegas_ack(&mut bench, ack, 20_500));
    assert_eq!(window(&bench), (23, 30));
    (48..=58).for_each(|ack| wvegas_ack(&mut bench, ack, 20_500));
    assert_eq!(window(&bench), (30, 30));
}

#[test]
fn wvegas_grows_as_reno_outside_open_and_in_a_round_of_two_samples() {
    let mut bench = wvegas(KERNEL);
    bench.socks[0].tp.ca_state = CaState::Disorder as u8;
    for (acked, wanted) in [(39, 40), (1, 41), (82, 43)] {
        bench.socks[0].cong_avoid(&mut bench.conn, 100, acked);
        assert_eq!(bench.socks[0].tp.snd_cwnd, wanted);
    }
    bench.socks[0].tp.ca_state = CaState::Open as u8;
    bench.socks[0].tp.snd_nxt = 1;
    bench.socks[0].set_state(&mut bench.conn, CaState::Open);
    bench.socks[0].tp.snd_cwnd = 4;
    bench.socks[0].tp.snd_cwnd_cnt = 2;
    wvegas_ack(&mut bench, 1, 30_000);
    wvegas_ack(&mut bench, 2, 30_000);
    let tp = &bench.socks[0].tp;
    // The third of four packets; a measured round would have added one, since 1 of 2 is queued.
    assert_eq!((tp.snd_cwnd, tp.snd_cwnd_cnt), (4, 3));
}

#[test]
fn the_renos_counter_of_a_larger_window_counts_for_one_packet() {
    let mut bench = wvegas(KERNEL);
    let sock = &mut bench.socks[0];
    sock.tp.ca_state = CaState::Disorder as u8;
    // tcp_cong_avoid_ai: what was counted towards another window makes one packet, and the ACK counts towards the next.
    sock.tp.snd_cwnd_cnt = 95;
    sock.cong_avoid(&mut bench.conn, 100, 1);
    assert_eq!((sock.tp.snd_cwnd, sock.tp.snd_cwnd_cnt), (41, 1));
    // Traces see 3 of 8.
    (sock.tp.snd_cwnd, sock.tp.snd_cwnd_cnt) = (8, 0);
    sock.cong_avoid(&mut bench.conn, 100, 3);
    assert_eq!((sock.tp.snd_cwnd, sock.credit()), (8, 0.375));
}

/// So many RTT samples, and the ACK that ends their round. Returns the window and the threshold.
fn wvegas_decision(bench: &mut Bench, samples: u32, rtt_us: i32) -> (u32, u32) {
    let (conn, sock) = (&mut bench.conn, &mut bench.socks[0]);
    sock.tp.snd_nxt = 20;
    sock.set_state(conn, CaState::Open);
    for _ in 0..samples {
        let sample = AckSample {
            pkts_acked: 1,
            rtt_us,
            in_flight: 9,
        };
        sock.pkts_acked(conn, &sample);
    }
    sock.cong_avoid(conn, 21, 1);
    (sock.tp.snd_cwnd, sock.tp.snd_ssthresh)
}

#[test]
fn wvegas_decides_by_three_samples_whose_rtt_is_a_microsecond_more() {
    // 40 (32 - 20)/32 = 15 packets are queued: one less, and ssthresh is 39/2 + 39/4 of whole packets.
    assert_eq!(wvegas_decision(&mut wvegas(KERNEL), 3, 32_000), (39, 28));
    assert_eq!(wvegas_decision(&mut wvegas(KERNEL), 2, 32_000), (40, 1));
    // floor(40 (20.601 - 20.001)/20.601) = 1 is less than the 2 that it may have, so that these stay what they are.
    let mut bench = wvegas(KERNEL);
    assert_eq!(wvegas_decision(&mut bench, 3, 20_600), (41, 30));
    assert_eq!(bench.socks[0].field("rate"), Some(0.0));
    assert_eq!(bench.socks[0].field("alpha"), Some(2.0));
}

#[test]
fn wvegas_leaves_slow_start_with_a_packet_more_than_fits_the_path() {
    let after = |rtt_us| {
        let mut bench = wvegas(KERNEL);
        bench.socks[0].tp.snd_ssthresh = 1000;
        wvegas_decision(&mut bench, 3, rtt_us)
    };
    // One packet is queued, which gamma allows: slow start goes on.
    assert_eq!(after(20_600), (41, 1000));
    // floor(40 (21.101 - 20.001)/21.101) = 2 packets are: floor(40 20.001/21.101) + 1 = 38 are kept.
    assert_eq!(after(21_100), (38, 38));
}

#[test]
fn wvegas_forgets_its_share_when_it_returns_to_open_but_not_the_smallest_rtt() {
    let mut bench = wvegas(KERNEL);
    wvegas_round(&mut bench, 32_000);
    let fields = |bench: &Bench| {
        ["rate", "alpha", "weight", "qdelay", "base"]
            .map(|name| bench.socks[0].field(name).expect("a declared field"))
    };
    // Alone it has the whole weight: floor(40 2^16/32001) = 81 in Q16 per us.
    assert_eq!(fields(&bench), [81e6 / 65_536.0, 10.0, 1.0, 0.012, 0.02]);
    bench.socks[0].set_state(&mut bench.conn, CaState::Disorder);
    assert_eq!(fields(&bench)[1], 10.0);
    bench.socks[0].set_state(&mut bench.conn, CaState::Open);
    assert_eq!(fields(&bench), [0.0, 2.0, 1.0, 0.0, 0.02]);
    // A loss halves the window; the siblings see the rate until a timeout or the return to Open.
    wvegas_round(&mut bench, 32_000);
    assert_eq!(bench.ssthresh_after_loss(0), 19);
    assert!(fields(&bench)[0] > 0.0);
    bench.socks[0].cwnd_event(&mut bench.conn, CaEvent::TxStart);
    assert!(fields(&bench)[0] > 0.0);
    bench.socks[0].cwnd_event(&mut bench.conn, CaEvent::Loss);
    assert_eq!(fields(&bench)[0], 0.0);
    // In the specification the threshold has forgotten the rate already, and the event says nothing more.
    let mut bench = wvegas(SPEC);
    bench.socks[0].set_field(&mut bench.conn, "rate", 4096.0);
    let rate = fields(&bench)[0];
    bench.socks[0].cwnd_event(&mut bench.conn, CaEvent::Loss);
    assert!(rate > 0.0 && fields(&bench)[0] == rate);
}

#[test]
fn wvegas_shares_by_the_rates_of_the_subflows_that_have_a_sample() {
    let alpha = |with_sample: bool, later_us: i32| {
        let mut bench = wvegas(KERNEL);
        // 81 in Q16 per us, as path 0 will have.
        bench.socks[1].set_field(&mut bench.conn, "rate", 81e6 / 65_536.0);
        if !with_sample {
            bench.socks[1].tp.snd_nxt = 0;
            for ack in 1..=3 {
                let sock = &mut bench.socks[1];
                let sample = AckSample {
                    pkts_acked: 1,
                    rtt_us: 35_000,
                    in_flight: 9,
                };
                sock.pkts_acked(&mut bench.conn, &sample);
                if ack == 3 {
                    sock.cong_avoid(&mut bench.conn, ack, 1);
                }
            }
            bench.socks[1].set_field(&mut bench.conn, "rate", 81e6 / 65_536.0);
            let sample = AckSample {
                pkts_acked: 1,
                rtt_us: later_us,
                in_flight: 9,
            };
            bench.socks[1].pkts_acked(&mut bench.conn, &sample);
        }
        wvegas_round(&mut bench, 32_000);
        bench.socks[0].field("alpha").expect("a declared field")
    };
    assert_eq!((alpha(true, -1), alpha(false, -1)), (5.0, 10.0));
    // With a sample in the new round it counts again.
    assert_eq!((alpha(false, 35_000), alpha(false, 0)), (5.0, 5.0));
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
