//! BBR and C-MPBBR hook by hook: the max filter, policers, and how subflows share a bottleneck.

use crate::support::Rng;
use mptcplab_cc::{CaEvent, CaState, Conn, RateSample, Sock, find};

const RTT_US: u32 = 20_000;

/// Subflows that are acknowledged one round at a time.
struct Flow {
    conn: Conn,
    socks: Vec<Sock>,
    now_us: u64,
}

impl Flow {
    fn new(algorithm: &str, subflows: u32) -> Self {
        let mut flow = Self {
            conn: Conn::new(),
            socks: Vec::new(),
            now_us: 5_000_000,
        };
        for slot in 0..subflows {
            let mut sock = Sock::new(find(algorithm).unwrap(), &[], false).unwrap();
            sock.tp.tcp_mstamp = flow.now_us;
            sock.tp.srtt_us = RTT_US << 3;
            sock.tp.min_rtt_us = RTT_US;
            sock.init(&mut flow.conn, slot);
            flow.socks.push(sock);
        }
        flow
    }

    /// One round later: subflow `k` gets an ACK for `packets`, while `lost` were lost.
    fn round(&mut self, k: usize, packets: u32, lost: u32) {
        self.deliver(k, packets, lost, RTT_US);
    }

    /// An ACK for the packets that were delivered in these microseconds, which are the RTT.
    fn deliver(&mut self, k: usize, packets: u32, lost: u32, us: u32) {
        let sock = &mut self.socks[k];
        sock.tp.tcp_mstamp = self.now_us;
        let prior_delivered = sock.tp.delivered;
        sock.tp.delivered += packets;
        sock.tp.lost += lost;
        sock.tp.snd_una += packets;
        sock.tp.packets_out = packets;
        let sample = RateSample {
            prior_delivered,
            delivered: packets as i32,
            interval_us: i64::from(us),
            rtt_us: i64::from(us),
            losses: lost as i32,
            acked_sacked: packets,
            prior_in_flight: sock.tp.snd_cwnd,
            ..RateSample::default()
        };
        sock.cong_control(&mut self.conn, sock.tp.snd_una, 0, &sample);
    }

    fn next_round(&mut self) {
        self.now_us += u64::from(RTT_US) + 1;
    }

    fn field(&self, k: usize, name: &str) -> f64 {
        self.socks[k].field(name).unwrap()
    }

    fn pacing(&self, k: usize) -> u64 {
        self.socks[k].tp.sk_pacing_rate
    }
}

/// Packets/s of a round with so many packets.
fn rate(packets: u32) -> f64 {
    f64::from(packets) * 1e6 / f64::from(RTT_US)
}

#[test]
fn the_bandwidth_is_a_largest_sample_of_the_last_ten_rounds() {
    let below_the_best: u32 = (0..8).map(drift).sum();
    // Three samples represent ten rounds, which is exact most of the time.
    assert!(
        below_the_best < 1_800,
        "{below_the_best} times not the best"
    );
}

/// 9 s, so that no PROBE_RTT intervenes. Returns how often the bandwidth was not the largest of its window.
fn drift(seed: u64) -> u32 {
    let mut rng = Rng(seed);
    let mut flow = Flow::new("bbr", 1);
    let mut seen: Vec<u32> = Vec::new();
    let mut below_the_best = 0;
    for round in 0..450 {
        // Slowly down and up, so that candidates age and are replaced.
        let drift = if round % 150 < 100 { round % 150 } else { 50 };
        let packets = 400 - drift + rng.next() as u32 % 30;
        seen.push(packets);
        flow.round(0, packets, 0);
        flow.next_round();
        let bw = flow.field(0, "bw");
        let best = *seen[seen.len().saturating_sub(11)..].iter().max().unwrap();
        assert!(bw >= rate(packets) - 0.1, "{bw} after {packets}");
        assert!(bw <= rate(best) + 0.1, "{bw}, at most {best} lately");
        below_the_best += u32::from(bw < rate(best) - 0.1);
    }
    below_the_best
}

/// The pacing rates of so many rounds.
fn rates(flow: &mut Flow, rounds: u32, packets: u32, lost: u32) -> Vec<u64> {
    let mut rates: Vec<u64> = (0..rounds)
        .map(|_| {
            flow.round(0, packets, lost);
            flow.next_round();
            flow.pacing(0)
        })
        .collect();
    rates.sort_unstable();
    rates.dedup();
    rates
}

#[test]
fn a_policer_is_recognised_and_after_a_while_tried_again() {
    let mut flow = Flow::new("bbr", 1);
    rates(&mut flow, 20, 100, 0);
    // 1.25, 0.75 and 1 times 5000 packets/s of 1448 bytes, less 1 %.
    let cycle = rates(&mut flow, 16, 100, 0);
    let expected = [0.75, 1.0, 1.25].map(|gain| gain * 5_000.0 * 1448.0 * 0.99);
    assert_eq!(cycle.len(), 3, "{cycle:?}");
    for (got, wanted) in cycle.iter().zip(expected) {
        assert!((*got as f64 / wanted - 1.0).abs() < 1e-3, "{cycle:?}");
    }
    // A quarter of the packets is dropped at a constant rate: two intervals of four rounds, then no more probing.
    rates(&mut flow, 12, 100, 34);
    let policed = rates(&mut flow, 30, 100, 34);
    assert_eq!(policed.len(), 1, "{policed:?}");
    // 48 rounds of use are over.
    rates(&mut flow, 20, 100, 0);
    assert_eq!(rates(&mut flow, 16, 100, 0).len(), 3);
}

#[test]
fn a_few_random_losses_are_no_policer() {
    let mut flow = Flow::new("bbr", 1);
    rates(&mut flow, 20, 100, 0);
    // 10 %, less than the fifth that makes a policer.
    rates(&mut flow, 30, 100, 10);
    assert_eq!(rates(&mut flow, 16, 100, 10).len(), 3);
}

#[test]
fn a_policer_drops_at_least_50_of_256_packets() {
    for (lost, rates_of_the_cycle) in [(49, 3), (50, 1)] {
        let mut flow = Flow::new("bbr", 1);
        rates(&mut flow, 20, 256, 0);
        rates(&mut flow, 12, 256, lost);
        let found = rates(&mut flow, 16, 256, lost);
        assert_eq!(found.len(), rates_of_the_cycle, "{lost}: {found:?}");
    }
}

/// The pacing rate after two intervals with losses, each of rounds with so many packets in so many microseconds.
fn pacing_after_intervals(mss: u32, intervals: [(u32, u32); 2]) -> u64 {
    let mut flow = Flow::new("bbr", 1);
    flow.socks[0].tp.mss_cache = mss;
    let [before, after] = intervals;
    // The first lossy ACK begins the first interval and counts as its first round.
    for (rounds, lossy, (packets, us)) in [(20, 0, before), (4, 1, before), (4, 1, after)] {
        for _ in 0..rounds {
            flow.now_us += u64::from(us);
            flow.deliver(0, packets, lossy * packets.div_ceil(4), us);
        }
    }
    assert_eq!(flow.field(0, "mode"), 2.0, "PROBE_BW");
    flow.pacing(0)
}

/// Linux `bbr_lt_bw_interval_done`: the rates of both intervals differ by at most an eighth or 500 bytes/s. Then their
/// mean is the bandwidth.
#[test]
fn two_rates_of_a_policer_differ_by_at_most_an_eighth_or_500_bytes_per_second() {
    // 1/8 packet per us, and 9/64 or 7/64, or a little further away. Of 17/128 and 15/128, 99 % are paced.
    for (packets, mean) in [
        (2250, Some(190_389_375)),
        (1750, Some(167_990_625)),
        (2251, None),
        (1749, None),
    ] {
        let paced = pacing_after_intervals(1448, [(2000, 16_000), (packets, 16_000)]);
        let largest = f64::from(packets.max(2000)) / 16_000.0 * 1448e6 * 0.99;
        match mean {
            Some(mean) => assert_eq!(paced, mean, "{packets}"),
            None => assert!(
                [0.75, 1.0, 1.25]
                    .map(|gain| (paced as f64 / (gain * largest) - 1.0).abs() < 1e-6)
                    .contains(&true),
                "{packets}: {paced}"
            ),
        }
    }
    // 120 and 180 of 2^-24 packets per us: 500 bytes/s with segments of 140 bytes, 504 with 141. Of 150, these are
    // 1251.
    assert_eq!(
        pacing_after_intervals(140, [(1, 139_000), (1, 93_000)]),
        1251 * 99 / 100
    );
    assert_ne!(
        pacing_after_intervals(141, [(1, 139_000), (1, 93_000)]),
        1260 * 99 / 100
    );
}

#[test]
fn the_window_is_twice_the_bdp_and_three_bursts_rounded_up_to_even() {
    // 144 packets per round of 2^14 us. Bursts are 0.99 ms of 1.25, 0.75 and 1 times 8789 packets/s: 10, 6 and 8
    // packets. While probing, two packets more are sent.
    let mut flow = Flow::new("bbr", 1);
    let mut seen = [0; 8];
    for round in 0..60 {
        flow.now_us += (1 << 14) + 1;
        flow.deliver(0, 144, 0, 1 << 14);
        if round >= 30 {
            assert_eq!(flow.field(0, "mode"), 2.0);
            seen[flow.field(0, "cycle_idx") as usize] = flow.socks[0].tp.snd_cwnd;
        }
    }
    assert_eq!(seen, [320, 306, 312, 312, 312, 312, 312, 312]);
}

/// A subflow that has measured neither an RTT nor a bandwidth, paced at this rate.
fn unmeasured(rate: u64, cwnd: u32) -> (Conn, Sock) {
    let mut conn = Conn::new();
    let mut sock = Sock::new(find("bbr").unwrap(), &[], false).unwrap();
    sock.init(&mut conn, 0);
    (sock.tp.sk_pacing_rate, sock.tp.snd_cwnd) = (rate, cwnd);
    sock.tp.delivered = 10;
    (conn, sock)
}

/// An ACK without a sample of the rate or of the RTT.
fn no_sample() -> RateSample {
    RateSample {
        delivered: -1,
        interval_us: -1,
        rtt_us: -1,
        acked_sacked: 1,
        ..RateSample::default()
    }
}

#[test]
fn bursts_are_two_packets_from_1200_kbit_per_second_on() {
    // Without an RTT, 10 packets and three bursts, rounded up to even: 16 with two packets each, 14 with one.
    for (rate, target) in [(150_000, 16), (149_999, 14)] {
        for cwnd in [13, 14, 15, 16, 17] {
            let (mut conn, mut sock) = unmeasured(rate, cwnd);
            sock.cong_control(&mut conn, 0, 0, &no_sample());
            let grows = cwnd < target;
            assert_eq!(sock.tp.snd_cwnd, cwnd + u32::from(grows), "{rate}");
        }
    }
}

#[test]
fn the_first_rtt_is_kept_within_the_arithmetic_and_a_missing_one_stays_missing() {
    for (min_rtt_us, kept) in [
        (0, 1e-6),
        (30_000, 0.03),
        ((1 << 26) + 1, 67.108_864),
        (u32::MAX, 4_294.967_295),
    ] {
        let mut conn = Conn::new();
        let mut sock = Sock::new(find("bbr").unwrap(), &[], false).unwrap();
        sock.tp.min_rtt_us = min_rtt_us;
        sock.init(&mut conn, 0);
        assert_eq!(sock.field("min_rtt"), Some(kept));
        let zero = RateSample {
            rtt_us: 0,
            ..no_sample()
        };
        sock.cong_control(&mut conn, 0, 0, &zero);
        assert_eq!(sock.field("min_rtt"), Some(1e-6), "0 is a sample");
    }
}

#[test]
fn an_ack_without_an_interval_is_no_sample_of_the_rate() {
    let (mut conn, mut sock) = unmeasured(0, 10);
    // 5 packets in 1024 us.
    let rate = 5e6 / 1024.0;
    for (delivered, interval_us, delivery) in [
        (5, 1024, rate),
        (-1, 1000, rate),
        (7, 0, rate),
        (7, -1, rate),
        (0, 1000, 0.0),
    ] {
        let sample = RateSample {
            delivered,
            interval_us,
            ..no_sample()
        };
        sock.cong_control(&mut conn, 0, 0, &sample);
        assert_eq!(
            sock.field("delivery"),
            Some(delivery),
            "{delivered} {interval_us}"
        );
    }
}

#[test]
fn losses_take_a_window_down_to_one_packet_before_it_grows() {
    for (losses, cwnd) in [(0, 13), (4, 9), (5, 8), (6, 8), (7, 8)] {
        let (mut conn, mut sock) = unmeasured(0, 6);
        let sample = RateSample {
            losses,
            acked_sacked: 7,
            ..no_sample()
        };
        sock.cong_control(&mut conn, 0, 0, &sample);
        assert_eq!(sock.tp.snd_cwnd, cwnd, "{losses}");
    }
}

/// The restart lasts until something is delivered. Until then the old smallest RTT is no reason to send less.
#[test]
fn a_restart_after_idle_probes_no_rtt_until_something_is_delivered() {
    let mut flow = Flow::new("bbr", 1);
    rates(&mut flow, 20, 100, 0);
    let (conn, sock) = (&mut flow.conn, &mut flow.socks[0]);
    // 11 s later.
    sock.tp.tcp_mstamp += 11_000_000;
    sock.tp.app_limited = 1;
    sock.cwnd_event(conn, CaEvent::TxStart);
    for (delivered, mode) in [(0, 2.0), (-1, 2.0), (0, 2.0), (1, 2.0), (1, 3.0)] {
        let sample = RateSample {
            delivered,
            interval_us: 1000,
            ..no_sample()
        };
        sock.cong_control(conn, 0, 0, &sample);
        assert_eq!(sock.field("mode"), Some(mode), "{delivered}");
    }
}

#[test]
fn recovery_sends_what_is_delivered_and_then_the_window_comes_back() {
    let mut flow = Flow::new("bbr", 1);
    rates(&mut flow, 20, 100, 0);
    let before = flow.socks[0].tp.snd_cwnd;
    let sock = &mut flow.socks[0];
    assert_eq!(sock.ssthresh(&mut flow.conn), sock.tp.snd_ssthresh);
    sock.set_state(&mut flow.conn, CaState::Recovery);
    sock.tp.packets_out = 40;
    let sample = RateSample {
        delivered: -1,
        interval_us: -1,
        rtt_us: -1,
        losses: 2,
        acked_sacked: 3,
        ..RateSample::default()
    };
    sock.cong_control(&mut flow.conn, 0, 0, &sample);
    assert_eq!(sock.tp.snd_cwnd, 43);
    sock.set_state(&mut flow.conn, CaState::Open);
    sock.cong_control(
        &mut flow.conn,
        0,
        0,
        &RateSample {
            losses: 0,
            ..sample
        },
    );
    assert_eq!(sock.tp.snd_cwnd, before);
}

/// Random rounds on two subflows of C-MPBBR; those of the first also on BBR. `second` is the second's bandwidth in percent.
fn side_by_side(second: u32, mut look: impl FnMut(&Flow, &Flow)) {
    let mut rng = Rng(u64::from(second));
    let mut alone = Flow::new("bbr", 1);
    let mut shared = Flow::new("cmpbbr", 2);
    for _ in 0..400 {
        let packets = 200 + rng.next() as u32 % 4;
        let lost = u32::from(rng.chance(0.05));
        alone.round(0, packets, lost);
        shared.round(0, packets, lost);
        shared.round(1, packets * second / 100, 0);
        alone.next_round();
        shared.next_round();
        look(&alone, &shared);
    }
}

#[test]
fn subflows_with_unlike_bandwidths_are_bbr() {
    for second in [50, 78, 124, 300] {
        side_by_side(second, |alone, shared| {
            assert_eq!(shared.field(0, "N"), 1.0, "{second} %");
            assert_eq!(shared.pacing(0), alone.pacing(0), "{second} %");
            assert_eq!(shared.socks[0].tp.snd_cwnd, alone.socks[0].tp.snd_cwnd);
        });
    }
}

#[test]
fn subflows_with_alike_bandwidths_halve_it_but_for_probing() {
    for second in [85, 100, 115] {
        let (mut halved, mut whole) = (0, 0);
        side_by_side(second, |alone, shared| {
            let divides = shared.field(0, "mode") == 2.0 && shared.field(0, "cycle_idx") >= 2.0;
            let parts = if divides { shared.field(0, "N") } else { 1.0 };
            let difference = shared.pacing(0) as f64 * parts / alone.pacing(0) as f64 - 1.0;
            assert!(difference.abs() < 1e-3, "{second} %: {difference}");
            halved += u32::from(parts == 2.0);
            whole += u32::from(shared.field(0, "N") == 2.0 && parts == 1.0);
        });
        assert!(halved > 200 && whole > 50, "{second} %: {halved} {whole}");
    }
}

/// Subflows of C-MPBBR of which the first is about to count those that are like it. Each has this bandwidth and
/// delivers at this rate, in 2^-14 packets per us.
fn before_counting(paths: &[(u32, u32)]) -> Flow {
    let mut flow = Flow::new("cmpbbr", paths.len() as u32);
    let counts = |flow: &Flow| flow.field(0, "mode") == 2.0 && flow.field(0, "cycle_idx") == 3.0;
    while !counts(&flow) {
        flow.next_round();
        flow.round(0, 100, 0);
    }
    for (sock, &(bw, delivery)) in flow.socks.iter_mut().zip(paths) {
        for (name, rate) in [("bw", bw), ("delivery", delivery)] {
            sock.set_field(&mut flow.conn, name, f64::from(rate) * 1e6 / 16_384.0);
        }
    }
    flow
}

/// Counts, and returns how often in a row the subflows have added nothing.
fn strikes(flow: &mut Flow) -> f64 {
    flow.next_round();
    flow.round(0, 100, 0);
    flow.field(0, "count")
}

#[test]
fn subflows_that_together_deliver_less_than_60_percent_of_the_best_add_nothing() {
    for (paths, wanted) in [
        ([(100, 40), (50, 19)], 1.0),
        ([(100, 40), (50, 20)], 0.0),
        // None is the weakest, or there is no other.
        ([(100, 20), (100, 20)], 0.0),
        ([(100, 20), (0, 0)], 0.0),
    ] {
        assert_eq!(strikes(&mut before_counting(&paths)), wanted, "{paths:?}");
    }
}

#[test]
fn the_subflow_with_the_lowest_bandwidth_becomes_the_backup() {
    // One without a bandwidth has measured nothing yet.
    let mut flow = before_counting(&[(100, 20), (0, 0), (10, 5), (40, 10)]);
    flow.socks[0].set_field(&mut flow.conn, "count", 4.0);
    assert_eq!(strikes(&mut flow), 5.0);
    assert_eq!(flow.socks[0].take_backups_wanted(), 0b100);
}
