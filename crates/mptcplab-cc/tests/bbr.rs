//! BBR and C-MPBBR hook by hook: the max filter, policers, and how subflows share a bottleneck.

use crate::support::Rng;
use mptcplab_cc::{CaState, Conn, RateSample, Sock, find};

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
            interval_us: i64::from(RTT_US),
            rtt_us: i64::from(RTT_US),
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
