//! Westwood+'s bandwidth estimate as an engine drives it: numbers worked by hand, and its filter in real numbers.

use crate::support::{Bench, Paths, Rng};
use mptcplab_cc::{AckSample, CaState};

/// One subflow of 40 packets in congestion avoidance, with its clock at 1 s.
fn bench(srtt_us: u32) -> Bench {
    let paths = Paths {
        w: vec![40],
        t: vec![srtt_us],
        l: vec![(0, 0)],
        r: 0,
    };
    let mut bench = Bench::new("westwood", &[], &paths);
    bench.socks[0].tp.tcp_mstamp = 1_000_000;
    bench
}

/// An ACK that delivers packets `after_us` after the last one.
fn ack(bench: &mut Bench, after_us: u64, delivered: u32, rtt_us: i32) {
    let (conn, sock) = (&mut bench.conn, &mut bench.socks[0]);
    sock.tp.tcp_mstamp += after_us;
    sock.tp.delivered = sock.tp.delivered.wrapping_add(delivered);
    let sample = AckSample {
        pkts_acked: delivered,
        rtt_us,
        in_flight: 1,
    };
    sock.pkts_acked(conn, &sample);
}

/// Packets per second.
fn bandwidth(bench: &Bench) -> f64 {
    bench.socks[0].field("bandwidth").unwrap()
}

#[test]
fn the_first_sample_is_what_the_round_after_the_first_ack_delivered() {
    let mut bench = bench(50_000);
    ack(&mut bench, 50_000, 1, 50_000);
    assert_eq!(bandwidth(&bench), 0.0, "the first ACK starts the clock");
    ack(&mut bench, 49_999, 30, 50_000);
    assert_eq!(bandwidth(&bench), 0.0, "the round is not over");
    ack(&mut bench, 1, 20, 50_000);
    // 50 packets in 50 ms.
    assert!((bandwidth(&bench) - 1000.0).abs() < 1e-3);
}

#[test]
fn the_estimate_is_filtered_twice() {
    let mut bench = bench(100_000);
    ack(&mut bench, 100_000, 1, 100_000);
    ack(&mut bench, 100_000, 64, 100_000);
    assert!((bandwidth(&bench) - 640.0).abs() < 1e-3);
    // 0 packets: bw_ns = 7/8 x 640 = 560, bw = (7 x 640 + 560)/8 = 630.
    ack(&mut bench, 100_000, 0, 100_000);
    assert!((bandwidth(&bench) - 630.0).abs() < 1e-3);
    // 1280 packets/s: bw_ns = (7 x 560 + 1280)/8 = 650, bw = (7 x 630 + 650)/8 = 632.5.
    ack(&mut bench, 100_000, 128, 100_000);
    assert!((bandwidth(&bench) - 632.5).abs() < 1e-3);
}

#[test]
fn a_congestion_event_keeps_the_window_that_the_bandwidth_fills_without_a_queue() {
    // 50 packets in 51.2 ms and a smallest RTT of 30.72 ms make 30 packets, however long the queue is now.
    let mut bench = bench(50_000);
    ack(&mut bench, 30_720, 1, 30_720);
    ack(&mut bench, 51_200, 50, 50_000);
    bench.lose(0);
    let tp = &bench.socks[0].tp;
    assert_eq!((tp.snd_cwnd, tp.snd_ssthresh), (30, 30));
    // A random loss at a window of 20, below what the bandwidth fills: nothing is given back.
    bench.socks[0].tp.snd_cwnd = 20;
    bench.lose(0);
    let tp = &bench.socks[0].tp;
    assert_eq!((tp.snd_cwnd, tp.snd_ssthresh), (20, 30));
}

#[test]
fn the_threshold_is_at_least_two_packets() {
    let mut bench = bench(50_000);
    assert_eq!(bench.ssthresh_after_loss(0), 2, "before the first sample");
    ack(&mut bench, 50_000, 1, 50_000);
    ack(&mut bench, 60_000, 1, 50_000);
    // One packet in 60 ms and 50 ms make 0.8 packets.
    assert_eq!(bench.ssthresh_after_loss(0), 2);
}

#[test]
fn retransmissions_without_an_rtt_count_as_delivered() {
    let mut bench = bench(40_000);
    ack(&mut bench, 40_000, 1, 40_000);
    bench.socks[0].set_state(&mut bench.conn, CaState::Recovery);
    ack(&mut bench, 40_000, 20, -1);
    assert!((bandwidth(&bench) - 500.0).abs() < 1e-3);
    assert_eq!(bench.socks[0].field("rtt_min"), Some(0.04));
}

#[test]
fn growth_is_renos() {
    let mut bench = bench(50_000);
    assert!((bench.increase(0) - 1.0 / 40.0).abs() < 1e-9);
}

#[test]
fn the_estimate_follows_the_formula_over_the_whole_range() {
    let mut rng = Rng(22);
    for _ in 0..5_000 {
        let srtt_us = rng.log(1.0, 67_108_864.0);
        let mut bench = bench(srtt_us);
        bench.socks[0].tp.delivered = rng.next() as u32;
        ack(&mut bench, 1, 1, srtt_us as i32);
        let (mut once, mut twice) = (None, 0.0);
        let mut least = srtt_us;
        for _ in 0..8 {
            let packets = rng.log(1.0, 1_048_576.0);
            let after = u64::from(srtt_us) + rng.next() % (u64::from(srtt_us) + 1);
            let rtt_us = rng.log(1.0, 6e7);
            least = least.min(rtt_us);
            ack(&mut bench, after, packets, rtt_us as i32);
            let b = f64::from(packets) / (after as f64 * 1e-6);
            let ns = once.map_or(b, |old: f64| (7.0 * old + b) / 8.0);
            twice = once.map_or(b, |_| (7.0 * twice + ns) / 8.0);
            once = Some(ns);
            // Rounded down three times to 2^-40 packets/us, which adds up to 3 x 8 of them.
            let rounding = 24.0 * 1e6 / (1u64 << 40) as f64;
            let got = bandwidth(&bench);
            assert!(
                (got - twice).abs() <= twice * 1e-12 + rounding,
                "{got} {twice}"
            );
        }
        let bdp = (twice * f64::from(least) * 1e-6).clamp(2.0, 1_048_576.0);
        let got = f64::from(bench.ssthresh_after_loss(0));
        assert!((got - bdp).abs() <= 1.0 + bdp * 1e-9, "{got} {bdp}");
    }
}
