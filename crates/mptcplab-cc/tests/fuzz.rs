//! Every registered algorithm under random events, in an engine's order: the invariants that hold for all of them.
//!
//! Debug builds of the C files also abort on any overflow, division by zero or undefined shift (see `build.rs`).

use crate::support::{Rng, SPECIFIED};
use mptcplab_cc::{
    AckSample, Algorithm, CaEvent, CaState, Conn, INFINITE_SSTHRESH, MAX_SUBFLOWS, RateSample,
    Sock, algorithms,
};

const EVENTS: usize = 1_500;
/// Windows in the algorithms' arithmetic.
const WINDOW_RANGE: u32 = 1 << 20;

/// Runs per algorithm, for 750,000 events or as many as the environment says.
fn runs() -> u64 {
    crate::support::scale("MPTCPLAB_FUZZ_EVENTS", 750_000).div_ceil(EVENTS) as u64
}

/// A connection of up to eight subflows that come and go.
struct Model {
    algorithm: &'static Algorithm,
    params: Vec<(String, u64)>,
    conn: Conn,
    subflows: Vec<Option<Sock>>,
    now_us: u64,
    /// Ranges of this run: ordinary values, or all that the types allow.
    extreme: bool,
}

impl Model {
    fn new(algorithm: &'static Algorithm, rng: &mut Rng) -> Self {
        let params = algorithm
            .params()
            .iter()
            .filter_map(|p| {
                let value = p.min + rng.next() % (p.max - p.min + 1);
                rng.chance(0.5).then(|| (p.name.to_owned(), value))
            })
            .collect();
        Self {
            algorithm,
            params,
            conn: Conn::new(),
            subflows: vec![None; MAX_SUBFLOWS],
            now_us: 1 + rng.next() % 1_000_000,
            extreme: rng.chance(0.3),
        }
    }

    fn step(&mut self, rng: &mut Rng) {
        self.now_us += rng.next() % if self.extreme { 1 << 30 } else { 30_000 };
        let slot = rng.below(MAX_SUBFLOWS);
        let others = self.windows_except(slot);
        match self.subflows[slot].take() {
            None => {
                if rng.chance(0.05) {
                    self.subflows[slot] = Some(self.join(slot, rng));
                }
            }
            Some(mut sock) => {
                sock.tp.tcp_mstamp = self.now_us;
                let keep = self.event(&mut sock, rng);
                if keep {
                    check(&sock);
                    self.subflows[slot] = Some(sock);
                }
            }
        }
        assert_eq!(
            self.windows_except(slot),
            others,
            "{} changed a sibling",
            self.algorithm.name()
        );
    }

    fn join(&mut self, slot: usize, rng: &mut Rng) -> Sock {
        let mut sock = Sock::new(self.algorithm, &self.params, rng.chance(0.3))
            .expect("values within their ranges");
        sock.tp.tcp_mstamp = self.now_us;
        sock.tp.snd_cwnd = if self.extreme { rng.log(1.0, 4e6) } else { 10 };
        sock.tp.snd_cwnd_clamp = if rng.chance(0.3) {
            sock.tp.snd_cwnd + rng.log(1.0, 1e4)
        } else {
            u32::MAX
        };
        sock.tp.snd_una = rng.next() as u32;
        sock.tp.snd_nxt = sock.tp.snd_una;
        sock.init(&mut self.conn, slot as u32);
        sock
    }

    /// One event on a subflow; false when it leaves.
    fn event(&mut self, sock: &mut Sock, rng: &mut Rng) -> bool {
        let conn = &mut self.conn;
        match rng.below(100) {
            0 => {
                sock.release(conn);
                return false;
            }
            1 => sock.set_usable(conn, rng.chance(0.7)),
            2..=5 => reduce(sock, conn, CaState::Recovery),
            6 => reduce(sock, conn, CaState::Loss),
            7 => {
                sock.tp.snd_cwnd = sock.undo_cwnd(conn).min(sock.tp.snd_cwnd_clamp);
            }
            8 => {
                let event = rng.pick(&[
                    CaEvent::TxStart,
                    CaEvent::CwndRestart,
                    CaEvent::EcnNoCe,
                    CaEvent::EcnIsCe,
                ]);
                sock.tp.lsndtime_us = self.now_us - rng.next() % self.now_us;
                sock.cwnd_event(conn, event);
            }
            9 => {
                // An engine may set the window itself: penalty, idle restart.
                sock.tp.snd_cwnd = (sock.tp.snd_cwnd / 2).max(1);
                sock.publish(conn);
            }
            10 => sock.tp.app_limited = rng.next() as u32 & 1,
            11 => sock.tp.is_cwnd_limited = rng.chance(0.9),
            12 => {
                sock.set_state(conn, rng.pick(&[CaState::Open, CaState::Disorder]));
            }
            _ => ack(sock, conn, rng, self.extreme),
        }
        true
    }

    fn windows_except(&self, slot: usize) -> Vec<Option<(u32, u32)>> {
        let window = |s: &Option<Sock>| s.as_ref().map(|s| (s.tp.snd_cwnd, s.tp.snd_ssthresh));
        self.subflows
            .iter()
            .enumerate()
            .filter(|(i, _)| *i != slot)
            .map(|(_, s)| window(s))
            .collect()
    }
}

fn ack(sock: &mut Sock, conn: &mut Conn, rng: &mut Rng, extreme: bool) {
    let rtt_us = if extreme {
        rng.log(1.0, 2e9)
    } else {
        rng.log(500.0, 1e6)
    };
    let acked = if extreme {
        rng.log(1.0, 1e6)
    } else {
        1 + rng.next() as u32 % 4
    };
    sock.tp.srtt_us = if extreme && rng.chance(0.1) {
        u32::MAX
    } else {
        rtt_us.min(u32::MAX >> 3) << 3
    };
    sock.tp.min_rtt_us = sock.tp.min_rtt_us.min(rtt_us);
    sock.tp.snd_una = sock.tp.snd_una.wrapping_add(acked);
    sock.tp.snd_nxt = sock.tp.snd_una.wrapping_add(sock.tp.snd_cwnd);
    sock.tp.delivered = sock.tp.delivered.wrapping_add(acked);
    sock.tp.packets_out = sock.tp.snd_cwnd;
    sock.tp.max_packets_out = sock.tp.snd_cwnd;
    let sample = AckSample {
        pkts_acked: acked,
        rtt_us: if rng.chance(0.1) { -1 } else { rtt_us as i32 },
        in_flight: sock.tp.snd_cwnd,
    };
    sock.pkts_acked(conn, &sample);
    if sock.algorithm().has_cong_control() {
        control(sock, conn, rng, extreme, acked, rtt_us);
        return;
    }
    let recovering = [CaState::Recovery as u8, CaState::Cwr as u8].contains(&sock.tp.ca_state);
    if !recovering {
        sock.cong_avoid(conn, sock.tp.snd_una, acked);
    } else if rng.chance(0.2) {
        sock.tp.snd_cwnd = sock.tp.snd_cwnd.min(sock.tp.snd_ssthresh);
        sock.set_state(conn, CaState::Open);
    }
}

/// An ACK for a rate-based algorithm, whose window only it reduces.
fn control(
    sock: &mut Sock,
    conn: &mut Conn,
    rng: &mut Rng,
    extreme: bool,
    acked: u32,
    rtt_us: u32,
) {
    let losses = if rng.chance(0.05) {
        1 + rng.next() as i32 % 5
    } else {
        0
    }
    .max(0);
    sock.tp.delivered = sock.tp.delivered.wrapping_add(acked);
    sock.tp.lost = sock.tp.lost.wrapping_add(losses as u32);
    sock.tp.packets_out = if rng.chance(0.2) { 0 } else { sock.tp.snd_cwnd };
    let sampled = rng.chance(0.9);
    let flight = if extreme {
        rng.log(1.0, 2e9)
    } else {
        rng.log(1.0, 1e3)
    };
    let sample = RateSample {
        prior_delivered: sock.tp.delivered.wrapping_sub(flight),
        delivered: if sampled { flight as i32 } else { -1 },
        interval_us: if sampled { i64::from(rtt_us) } else { -1 },
        rtt_us: if rng.chance(0.1) {
            -1
        } else {
            i64::from(rtt_us)
        },
        losses,
        acked_sacked: if rng.chance(0.9) { acked } else { 0 },
        prior_in_flight: sock.tp.snd_cwnd,
        is_app_limited: rng.chance(0.1),
        is_ack_delayed: rng.chance(0.1),
        ..RateSample::default()
    };
    sock.cong_control(conn, sock.tp.snd_una, 0, &sample);
    assert!(sock.tp.sk_pacing_status != 0, "a rate needs pacing");
    if sock.tp.ca_state != CaState::Open as u8 && rng.chance(0.2) {
        sock.set_state(conn, CaState::Open);
    }
}

fn reduce(sock: &mut Sock, conn: &mut Conn, state: CaState) {
    let before = sock.tp.snd_cwnd;
    sock.tp.prior_cwnd = before;
    sock.tp.prior_ssthresh = sock.tp.snd_ssthresh;
    sock.tp.snd_ssthresh = sock.ssthresh(conn);
    assert_eq!(sock.tp.snd_cwnd, before, "ssthresh() only answers");
    // A rate-based rule leaves the threshold as it is.
    let kept =
        sock.algorithm().has_cong_control() && sock.tp.snd_ssthresh == sock.tp.prior_ssthresh;
    // Westwood+ returns the bandwidth-delay product that it measured. Where that is above the window, the engine keeps the
    // window.
    let most = match sock.algorithm().name() {
        "westwood" => WINDOW_RANGE,
        _ => before.max(2),
    };
    assert!(
        kept || (1..=most).contains(&sock.tp.snd_ssthresh),
        "ssthresh {} of {before}",
        sock.tp.snd_ssthresh
    );
    if state == CaState::Loss {
        sock.tp.snd_cwnd = 1;
    }
    sock.set_state(conn, state);
}

fn check(sock: &Sock) {
    let name = sock.algorithm().name();
    let tp = &sock.tp;
    assert!(
        (1..=tp.snd_cwnd_clamp).contains(&tp.snd_cwnd),
        "{name}: cwnd {} of {}",
        tp.snd_cwnd,
        tp.snd_cwnd_clamp
    );
    assert!(
        (1..=INFINITE_SSTHRESH).contains(&tp.snd_ssthresh),
        "{name}: ssthresh {}",
        tp.snd_ssthresh
    );
    assert!(
        (0.0..1.0).contains(&sock.credit()),
        "{name}: credit {}",
        sock.credit()
    );
}

#[test]
fn windows_stay_within_their_limits_whatever_happens() {
    for algorithm in algorithms() {
        for run in 0..runs() {
            let mut rng = Rng(run * 7919 + 17);
            let mut model = Model::new(algorithm, &mut rng);
            for _ in 0..EVENTS {
                model.step(&mut rng);
            }
        }
    }
}

#[test]
fn the_same_events_give_the_same_windows() {
    for algorithm in algorithms() {
        let play = || {
            let mut rng = Rng(4242);
            let mut model = Model::new(algorithm, &mut rng);
            let mut trace = Vec::new();
            for _ in 0..EVENTS {
                model.step(&mut rng);
                trace.push(model.windows_except(MAX_SUBFLOWS));
            }
            trace
        };
        assert_eq!(play(), play(), "{}", algorithm.name());
    }
}

#[test]
fn windows_grow_when_nothing_is_lost() {
    // Without this, a rule that never grows would pass every limit above.
    for algorithm in algorithms() {
        let mut conn = Conn::new();
        let mut sock = Sock::new(algorithm, &[], false).expect("defaults are valid");
        sock.tp.snd_cwnd = 12;
        sock.tp.snd_ssthresh = 12;
        sock.tp.srtt_us = 30_000 << 3;
        sock.tp.is_cwnd_limited = true;
        sock.init(&mut conn, 0);
        for round in 1..=20u64 {
            for i in 0..u64::from(sock.tp.snd_cwnd) {
                sock.tp.tcp_mstamp = round * 30_000 + i;
                sock.tp.snd_una += 1;
                sock.tp.snd_nxt = sock.tp.snd_una + sock.tp.snd_cwnd - 1;
                sock.pkts_acked(
                    &mut conn,
                    &AckSample {
                        pkts_acked: 1,
                        rtt_us: 30_000,
                        in_flight: 9,
                    },
                );
                sock.cong_avoid(&mut conn, sock.tp.snd_una, 1);
                // The path carries 20 packets per RTT; a rate-based rule wants a window of twice that.
                sock.tp.delivered += 1;
                let sample = RateSample {
                    prior_delivered: sock.tp.delivered.saturating_sub(20),
                    delivered: 20.min(sock.tp.delivered as i32),
                    interval_us: 30_000,
                    rtt_us: 30_000,
                    acked_sacked: 1,
                    prior_in_flight: sock.tp.snd_cwnd,
                    ..RateSample::default()
                };
                sock.cong_control(&mut conn, sock.tp.snd_una, 0, &sample);
            }
        }
        // From 12 packets in 20 round trips: about one per round trip, and far from slow start.
        let specified = SPECIFIED.contains(&algorithm.name());
        assert!(
            (20..=if specified { 40 } else { 100 }).contains(&sock.tp.snd_cwnd),
            "{}: {}",
            algorithm.name(),
            sock.tp.snd_cwnd
        );
    }
}
