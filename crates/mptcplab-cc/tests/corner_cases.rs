//! Corners of the algorithms that the laws and the long courses pass by: what happens exactly at a threshold, and which copy of a
//! value counts.

use mptcplab_cc::{AckSample, CaState, Conn, INFINITE_SSTHRESH, Sock, find};

fn sock(conn: &mut Conn, algorithm: &str, slot: u32, cwnd: u32, rtt_us: u32) -> Sock {
    let mut sock = Sock::new(find(algorithm).unwrap(), &[], false).unwrap();
    sock.tp.snd_cwnd = cwnd;
    sock.tp.snd_ssthresh = 1;
    sock.tp.srtt_us = rtt_us << 3;
    sock.tp.is_cwnd_limited = true;
    sock.tp.tcp_mstamp = 1_000_000;
    sock.init(conn, slot);
    sock.publish(conn);
    sock
}

fn ack(conn: &mut Conn, sock: &mut Sock, now_us: u64) {
    sock.tp.tcp_mstamp = now_us;
    let una = sock.tp.snd_una;
    sock.cong_avoid(conn, una, 1);
}

fn lose(conn: &mut Conn, sock: &mut Sock) {
    sock.tp.prior_cwnd = sock.tp.snd_cwnd;
    sock.tp.snd_ssthresh = sock.ssthresh(conn);
    sock.set_state(conn, CaState::Recovery);
    sock.tp.snd_cwnd = sock.tp.snd_ssthresh;
    sock.set_state(conn, CaState::Open);
}

/// A window of acknowledgements per round trip of 1 ms, in which the cubic curve does not move.
fn rounds(conn: &mut Conn, sock: &mut Sock, from_us: u64, count: u64) {
    for round in 0..count {
        for _ in 0..sock.tp.snd_cwnd {
            ack(conn, sock, from_us + round * 1000);
        }
    }
}

/// RFC 9438 section 4.3: W_est grows by alpha = 3 (1 - 0.7) / (1 + 0.7) = 0.53 packets per round trip until it reaches the window
/// before the reduction, and by 1 from there on. From 14 to 20 that takes 11.3 round trips; 8.7 more lead to 28.7.
#[test]
fn cubic_estimates_reno_faster_once_it_is_back_at_the_former_window() {
    let mut conn = Conn::new();
    let mut cubic = sock(&mut conn, "cubic", 0, 20, 1000);
    lose(&mut conn, &mut cubic);
    let start = cubic.window();
    rounds(&mut conn, &mut cubic, 2_000_000, 8);
    let early = cubic.window() - start;
    assert!((early - 8.0 * 0.53).abs() < 0.4, "{early} after 8");
    rounds(&mut conn, &mut cubic, 2_008_000, 12);
    // Whole packets per round make it a little slower; without the change it would be 24.6.
    assert!((27.0..29.0).contains(&cubic.window()), "{}", cubic.window());
}

/// At the former window already, because the reduction was undone: the whole packet per round trip from the first ACK on.
#[test]
fn cubic_estimates_reno_at_full_speed_after_an_undo() {
    let mut conn = Conn::new();
    let mut cubic = sock(&mut conn, "cubic", 0, 20, 1000);
    lose(&mut conn, &mut cubic);
    cubic.tp.snd_cwnd = cubic.undo_cwnd(&mut conn);
    assert_eq!(cubic.tp.snd_cwnd, 20);
    // The credit of the reduced window is gone.
    let before = cubic.window();
    ack(&mut conn, &mut cubic, 2_000_000);
    ack(&mut conn, &mut cubic, 2_000_000);
    let grown = cubic.window() - before;
    assert!(
        (0.095..0.101).contains(&grown),
        "{before}, then {grown} more"
    );
}

fn sample(conn: &mut Conn, sock: &mut Sock, now_us: u64, rtt_us: i32) {
    sock.tp.tcp_mstamp = now_us;
    let sample = AckSample {
        pkts_acked: 1,
        rtt_us,
        in_flight: 1,
    };
    sock.pkts_acked(conn, &sample);
}

/// HyStart takes no delay samples for a second after an epoch of congestion avoidance began (Linux `cubictcp_acked`), and takes them
/// from exactly then on. A lower sample is the new least RTT, so that another slow start ends at a lower delay.
#[test]
fn hystart_ignores_delays_for_a_second_after_a_reduction() {
    for (sampled_at_us, ends) in [(2_999_999, false), (3_000_000, true)] {
        let mut conn = Conn::new();
        let mut cubic = sock(&mut conn, "cubic", 0, 40, 50_000);
        sample(&mut conn, &mut cubic, 1_500_000, 50_000);
        lose(&mut conn, &mut cubic);
        ack(&mut conn, &mut cubic, 2_000_000);
        sample(&mut conn, &mut cubic, sampled_at_us, 20_000);
        cubic.tp.snd_nxt = 100;
        cubic.tp.snd_ssthresh = 1000;
        // Less than 50 + 50 / 8 ms, more than 20 + 4 ms.
        for k in 0..9 {
            cubic.tp.snd_una += 1;
            sample(&mut conn, &mut cubic, 4_000_000 + k * 10, 30_000);
        }
        assert_eq!(
            cubic.tp.snd_ssthresh == cubic.tp.snd_cwnd,
            ends,
            "{sampled_at_us}"
        );
    }
}

/// A decrease counts with the window that the subflow has, even where growth counts with less because the window was not full:
/// `cc_coupling_set_for_loss` against `cc_effective_window`.
#[test]
fn a_coupled_decrease_counts_with_the_whole_window() {
    let mut conn = Conn::new();
    let mut one = sock(&mut conn, "coupled", 0, 40, 50_000);
    let _other = sock(&mut conn, "coupled", 1, 20, 80_000);
    let full = one.ssthresh(&mut conn);
    assert!(full > 5, "{full}");
    // The application has only five packets in flight.
    one.tp.packets_out = 5;
    one.tp.app_limited = 1;
    one.publish(&mut conn);
    assert_eq!(one.ssthresh(&mut conn), full);
}

/// A subflow counts with its threshold while it recovers (RFC 6356 section 3), but not before a loss has set one: 1/(40
/// + 20).
#[test]
fn a_sibling_that_recovers_without_a_threshold_counts_with_its_window() {
    for (ssthresh, total) in [(INFINITE_SSTHRESH, 60.0), (10, 50.0)] {
        let mut conn = Conn::new();
        let mut one = sock(&mut conn, "coupled", 0, 40, 50_000);
        let mut other = sock(&mut conn, "coupled", 1, 20, 80_000);
        other.tp.snd_ssthresh = ssthresh;
        other.set_state(&mut conn, CaState::Recovery);
        ack(&mut conn, &mut one, 2_000_000);
        let grown = one.window() - 40.0;
        assert!((grown * total - 1.0).abs() < 1e-9, "{ssthresh}: {grown}");
    }
}

/// Congestion avoidance counts up to 2^16 packets of one ACK, which the arithmetic allows for.
#[test]
fn an_ack_counts_for_at_most_2_to_the_16_packets() {
    for (acked, counted) in [(65_535, 65_535.0), (65_536, 65_536.0), (65_537, 65_536.0)] {
        let mut conn = Conn::new();
        let mut reno = sock(&mut conn, "reno", 0, 1000, 50_000);
        reno.cong_avoid(&mut conn, 1, acked);
        let grown = (reno.window() - 1000.0) * 1000.0;
        assert!((grown - counted).abs() < 1e-3, "{acked}: {grown}");
    }
}

/// Only a negative RTT is no sample. One below a microsecond counts as one, where something is divided by it.
#[test]
fn an_rtt_that_rounds_to_zero_is_a_sample() {
    for (algorithm, field, seen) in [
        ("wvegas", "base", 1e-6),
        ("vegas", "base", 1e-6),
        ("mcompound", "base", 1e-6),
        ("westwood", "rtt_min", 1e-6),
        ("delayvar", "rtt_min", 1e-6),
        ("adw-balia", "rtt_min", 0.0),
        ("dolia", "n_ack", 1.0),
    ] {
        let mut conn = Conn::new();
        let mut sock = sock(&mut conn, algorithm, 0, 40, 50_000);
        let before = sock.field(field).expect("a declared field");
        sample(&mut conn, &mut sock, 2_000_000, -1);
        assert_eq!(sock.field(field), Some(before), "{algorithm}");
        sample(&mut conn, &mut sock, 2_000_000, 0);
        assert_eq!(sock.field(field), Some(seen), "{algorithm}");
        assert!(before > 1.0 || before == 0.0, "{algorithm}: {before}");
    }
}

/// As above, for HyStart: 4.002 ms are more than 4 ms above the least RTT only if that is 1 us.
#[test]
fn an_rtt_that_rounds_to_zero_is_hystarts_least() {
    for (rtt_us, ends) in [(-1, false), (0, true)] {
        let mut conn = Conn::new();
        let mut cubic = sock(&mut conn, "cubic", 0, 40, 50_000);
        cubic.tp.snd_ssthresh = 1000;
        sample(&mut conn, &mut cubic, 1_000_000, rtt_us);
        for k in 1..=10 {
            // In a round of its own.
            cubic.tp.snd_una = 1;
            cubic.tp.snd_nxt = 100;
            sample(&mut conn, &mut cubic, 1_500_000 + k * 10_000, 4_002);
        }
        assert_eq!(cubic.tp.snd_ssthresh == 40, ends, "{rtt_us}");
    }
}
