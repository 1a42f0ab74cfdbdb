//! wVegas' rounds as an engine drives them: sequence numbers, recoveries and idle periods.

use crate::support::{Bench, Paths};
use mptcplab_cc::{AckSample, CaEvent, CaState};

/// One subflow of 40 packets in congestion avoidance, base RTT 20 ms.
fn bench() -> Bench {
    Bench::new(
        "wvegas",
        &[],
        &Paths {
            w: vec![40],
            t: vec![20_000],
            l: vec![(0, 0)],
            r: 0,
        },
    )
}

/// Acknowledges one window packet by packet, each with this RTT; the sender refills the window at once.
fn window_of_acks(bench: &mut Bench, rtt_us: i32) {
    let (conn, sock) = (&mut bench.conn, &mut bench.socks[0]);
    for _ in 0..sock.tp.snd_cwnd {
        sock.tp.snd_una += 1;
        sock.tp.snd_nxt = sock.tp.snd_una + sock.tp.snd_cwnd - 1;
        sock.pkts_acked(
            conn,
            &AckSample {
                pkts_acked: 1,
                rtt_us,
                in_flight: 1,
            },
        );
        sock.cong_avoid(conn, sock.tp.snd_una, 1);
    }
}

fn field(bench: &Bench, name: &str) -> f64 {
    bench.socks[0].field(name).expect("a declared field")
}

#[test]
fn one_decision_a_round_holds_ten_packets_in_the_queue() {
    let mut bench = bench();
    window_of_acks(&mut bench, 20_000);
    let start = bench.socks[0].tp.snd_cwnd;
    for _ in 0..5 {
        window_of_acks(&mut bench, 20_000);
    }
    assert_eq!(
        bench.socks[0].tp.snd_cwnd,
        start + 5,
        "an empty queue: one packet per round"
    );
    // 2 of 22 ms are queueing: 110 packets have ten of them in the queue.
    for _ in 0..100 {
        window_of_acks(&mut bench, 22_000);
    }
    assert_eq!(bench.socks[0].window(), 110.0);
    assert!(
        (field(&bench, "alpha") - 10.0).abs() < 1e-3,
        "one subflow has the whole allowance"
    );
}

#[test]
fn slow_start_ends_when_a_packet_queues() {
    let mut bench = bench();
    bench.socks[0].tp.snd_ssthresh = 1000;
    window_of_acks(&mut bench, 20_000);
    assert_eq!(bench.socks[0].tp.snd_cwnd, 80, "slow start doubles");
    window_of_acks(&mut bench, 20_000);
    window_of_acks(&mut bench, 21_000);
    let tp = &bench.socks[0].tp;
    // w base/rtt + 1 of a window between 160 and 320, and ssthresh a packet below it.
    assert!(
        tp.snd_cwnd > 150 && tp.snd_cwnd < 320 && tp.snd_ssthresh < tp.snd_cwnd,
        "{tp:?}"
    );
}

#[test]
fn a_doubled_queueing_delay_drains_the_path() {
    let mut bench = bench();
    window_of_acks(&mut bench, 20_000);
    for _ in 0..2 {
        window_of_acks(&mut bench, 21_000);
    }
    assert!(
        (field(&bench, "qdelay") - 0.001).abs() < 2e-4,
        "{}",
        field(&bench, "qdelay")
    );
    let before = bench.socks[0].window();
    for _ in 0..2 {
        window_of_acks(&mut bench, 23_000);
    }
    let after = bench.socks[0].window();
    assert!(
        after < before * 0.5 && after > before * 20.0 / 23.0 / 2.0 - 2.0,
        "{before} {after}"
    );
}

#[test]
fn a_recovery_starts_a_new_round_and_forgets_the_rate() {
    let mut bench = bench();
    window_of_acks(&mut bench, 20_000);
    for _ in 0..4 {
        window_of_acks(&mut bench, 36_000);
    }
    assert!(field(&bench, "rate") > 0.0);
    let before = bench.socks[0].tp.snd_cwnd;
    bench.lose(0);
    assert_eq!(bench.socks[0].tp.snd_cwnd, (before / 2).max(2));
    assert_eq!(
        (
            field(&bench, "rate"),
            field(&bench, "alpha"),
            field(&bench, "weight")
        ),
        (0.0, 2.0, 1.0)
    );
    assert_eq!(
        field(&bench, "base"),
        0.02,
        "a loss does not forget the base RTT"
    );
    let (conn, sock) = (&mut bench.conn, &mut bench.socks[0]);
    let cwnd = sock.tp.snd_cwnd;
    sock.tp.snd_una = sock.tp.snd_nxt - 1;
    sock.cong_avoid(conn, sock.tp.snd_una, 1);
    assert_eq!(
        sock.tp.snd_cwnd, cwnd,
        "what was sent before the recovery ended does not end a round"
    );
}

#[test]
fn a_timeout_slow_starts_and_an_idle_restart_forgets_the_base_rtt() {
    let mut bench = bench();
    window_of_acks(&mut bench, 20_000);
    let (conn, sock) = (&mut bench.conn, &mut bench.socks[0]);
    sock.tp.snd_ssthresh = sock.ssthresh(conn);
    sock.tp.snd_cwnd = 1;
    sock.set_state(conn, CaState::Loss);
    sock.set_state(conn, CaState::Open);
    sock.tp.snd_nxt = sock.tp.snd_una + 100;
    sock.set_state(conn, CaState::Open);
    sock.cong_avoid(conn, sock.tp.snd_una + 1, 1);
    assert_eq!(sock.window(), 2.0, "no part of the halved window is left");
    sock.cwnd_event(conn, CaEvent::CwndRestart);
    assert!(field(&bench, "base") > 4000.0, "no base RTT");
}

/// One subflow of `w` packets in congestion avoidance whose smallest RTT so far is `base_us`.
fn settled(w: u32, base_us: u32) -> Bench {
    let paths = Paths {
        w: vec![w],
        t: vec![base_us],
        l: vec![(0, 0)],
        r: 0,
    };
    let mut bench = Bench::new("wvegas", &[], &paths);
    bench.socks[0].set_field(&mut bench.conn, "base", f64::from(base_us) * 1e-6);
    bench
}

/// A round with three RTT samples, up to the ACK that ends it.
fn round(bench: &mut Bench, rtt_us: i32) {
    let (conn, sock) = (&mut bench.conn, &mut bench.socks[0]);
    for _ in 0..3 {
        let sample = AckSample {
            pkts_acked: 1,
            rtt_us,
            in_flight: 1,
        };
        sock.pkts_acked(conn, &sample);
    }
    let end = sock.tp.snd_nxt;
    sock.tp.snd_nxt += 100;
    sock.cong_avoid(conn, end, 1);
}

/// The draft, section 4: the rate is recorded and alpha shared out anew if diff >= alpha; then w -= 1 if diff > alpha,
/// w += 1 if diff < alpha, and neither if they are equal. Alpha is 2 at first, and the whole 10 for a subflow that is
/// alone.
#[test]
fn a_queue_of_exactly_alpha_updates_alpha_and_keeps_the_window() {
    for (w, base_us, window, alpha, rate) in [
        // 19 x 2/20 = 1.9 and 20 x 2/20 = 2 packets are queued.
        (19, 18_000, 20.0, 2.0, 0.0),
        (20, 18_000, 21.0, 10.0, 1_000.0),
        // 40 x 5/20 = 10 and 41 x 5/20 = 10.25.
        (40, 15_000, 40.0, 10.0, 2_000.0),
        (41, 15_000, 40.0, 10.0, 2_050.0),
    ] {
        let mut bench = settled(w, base_us);
        round(&mut bench, 20_000);
        assert_eq!(bench.socks[0].window(), window, "{w}");
        assert_eq!(field(&bench, "alpha"), alpha, "{w}");
        assert!((field(&bench, "rate") - rate).abs() < 1e-3, "{w}");
    }
}

#[test]
fn a_queueing_delay_of_exactly_twice_the_smallest_drains_the_path() {
    // 1 ms first, with 40/21 < 2 packets queued; then 41 x 2/22 = 3.7 of 10. A drain leaves 42 x 20/22/2 packets.
    for (rtt_us, window, qdelay) in [(21_999, 42.0, 0.001), (22_000, 19.090_909, 0.0)] {
        let mut bench = settled(40, 20_000);
        round(&mut bench, 21_000);
        round(&mut bench, rtt_us);
        let got = bench.socks[0].window();
        assert!((got - window).abs() < 1e-4, "{got} at {rtt_us}");
        assert_eq!(field(&bench, "qdelay"), qdelay, "{rtt_us}");
    }
}
