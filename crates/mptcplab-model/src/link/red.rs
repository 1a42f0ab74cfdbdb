//! Random early detection (Floyd & Jacobson 1993), gentle variant (Floyd 2000), in fixed point.

use crate::link::rng::{Probability, Rng};
use crate::link::{Aqm, LinkConfig, Packet};

/// 1.0 with 32 fractional bits.
const ONE_Q32: u64 = 1 << 32;
/// 1.0 with 63 fractional bits.
const ONE_Q63: u128 = 1 << 63;
/// Length of the packets that an idle link is assumed to have sent meanwhile (ns-2 and Linux examples use 1000).
pub(crate) const IDLE_PACKET_BYTES: u32 = 1000;

/// RED's decision on an arriving packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Signal {
    Pass,
    /// Mark it, or drop it if it is not ECN-capable.
    Early,
    /// Drop it: the average is beyond the gentle region.
    Forced,
}

/// State of RED on one queue.
#[derive(Debug, Clone)]
pub(crate) struct Red {
    min_q32: u64,
    max_q32: u64,
    max_p: Probability,
    weight_q32: u64,
    average_q32: u64,
    /// Packets let in since the last signal while the average was above the minimum; `None` below it.
    spacing: Option<u64>,
    /// Mark ECN-capable packets instead of dropping them.
    ecn: bool,
    rng: Rng,
}

impl Red {
    /// `None` unless the link uses RED.
    pub(crate) fn new(config: &LinkConfig, rng: &Rng) -> Option<Self> {
        let Aqm::Red {
            min_pkts,
            max_pkts,
            max_p,
            weight,
        } = config.aqm
        else {
            return None;
        };
        // Products with a power of two are exact, casts saturate.
        let q32 = |x: f64| (x * ONE_Q32 as f64) as u64;
        Some(Self {
            min_q32: q32(min_pkts),
            max_q32: q32(max_pkts),
            max_p: Probability::new(max_p),
            weight_q32: q32(weight).min(ONE_Q32),
            average_q32: 0,
            spacing: None,
            ecn: config.ecn,
            rng: rng.fork("red"),
        })
    }

    /// Whether a packet that arrives gets in, where the queue has `room` for it or not; RED may mark it. See
    /// [`arrival`](Self::arrival) for `waiting` and `idle`.
    pub(crate) fn admits<P: Packet>(
        &mut self,
        (waiting, idle): (usize, u64),
        room: bool,
        packet: &mut P,
        marked: &mut u64,
    ) -> bool {
        match self.arrival(waiting, idle) {
            _ if !room => {
                // A packet lost to a full queue counts as a signal.
                self.spacing = Some(0);
                false
            }
            Signal::Pass => true,
            Signal::Early if self.ecn && packet.is_ecn_capable() => {
                packet.mark_ce();
                *marked += 1;
                true
            }
            Signal::Early | Signal::Forced => false,
        }
    }

    /// A packet arrives and finds `waiting` packets, after `idle` packets could have been sent on an idle link.
    fn arrival(&mut self, waiting: usize, idle: u64) -> Signal {
        self.decay(idle);
        self.sample(waiting as u64);
        if self.average_q32 < self.min_q32 {
            self.spacing = None;
            return Signal::Pass;
        }
        if self.average_q32 >= self.max_q32.saturating_mul(2) {
            self.spacing = Some(0);
            return Signal::Forced;
        }
        let count = self.spacing.map_or(0, |count| count + 1);
        let base = self.base_probability();
        // p / (1 - count p) makes the gaps between signals uniform instead of geometric (paper, section 7).
        let gap = ONE_Q63.saturating_sub(u128::from(count) * u128::from(base));
        if self.rng.chance(Probability::ratio(u128::from(base), gap)) {
            self.spacing = Some(0);
            return Signal::Early;
        }
        self.spacing = Some(count);
        Signal::Pass
    }

    /// average += weight * (waiting - average)
    fn sample(&mut self, waiting: u64) {
        let product = |x: u64, y: u64| (u128::from(x) * u128::from(y)) >> 32;
        let kept = product(self.average_q32, ONE_Q32 - self.weight_q32);
        let added = product(waiting << 32, self.weight_q32);
        // A weighted mean of two u64 is a u64.
        self.average_q32 = (kept + added) as u64;
    }

    /// average *= (1 - weight)^packets, by squaring.
    fn decay(&mut self, mut packets: u64) {
        let mut factor = u128::from(ONE_Q32 - self.weight_q32);
        let mut average = u128::from(self.average_q32);
        while packets > 0 && average > 0 {
            if packets & 1 == 1 {
                average = (average * factor) >> 32;
            }
            factor = (factor * factor) >> 32;
            packets >>= 1;
        }
        self.average_q32 = average as u64;
    }

    /// 0 to max_p between the thresholds, max_p to 1 up to twice the upper one (gentle); 63 fractional bits.
    fn base_probability(&self) -> u64 {
        let along = |rise: u64, distance: u64, length: u64| {
            (u128::from(rise) * u128::from(distance) / u128::from(length.max(1))) as u64
        };
        let (average, max_p) = (self.average_q32, self.max_p.q63());
        match average.checked_sub(self.max_q32) {
            None => along(max_p, average - self.min_q32, self.max_q32 - self.min_q32),
            Some(above) => max_p + along(Probability::ONE.q63() - max_p, above, self.max_q32),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn red(min_pkts: f64, max_pkts: f64, max_p: f64, weight: f64) -> Red {
        let config = LinkConfig {
            aqm: Aqm::Red {
                min_pkts,
                max_pkts,
                max_p,
                weight,
            },
            ..crate::link::tests::config()
        };
        Red::new(&config, &Rng::new(5, 0, "test", "red")).expect("is RED")
    }

    fn average(red: &Red) -> f64 {
        red.average_q32 as f64 / ONE_Q32 as f64
    }

    #[test]
    fn average_follows_the_queue_exponentially() {
        let mut red = red(100.0, 300.0, 0.1, 0.25);
        let seen = [8, 8, 0].map(|waiting| {
            red.arrival(waiting, 0);
            average(&red)
        });
        // 8/4 = 2; 2 * 3/4 + 2 = 3.5; 3.5 * 3/4 = 2.625
        assert_eq!(seen, [2.0, 3.5, 2.625]);
    }

    #[test]
    fn idle_time_decays_the_average() {
        let mut red = red(100.0, 300.0, 0.1, 0.5);
        red.arrival(64, 0);
        assert_eq!(average(&red), 32.0);
        red.arrival(0, 3);
        // Three packets that were not there, then the sample: 32 / 2^4.
        assert_eq!(average(&red), 2.0);
        red.arrival(0, 1 << 40);
        assert_eq!(average(&red), 0.0);
    }

    #[test]
    fn probability_has_three_pieces() {
        let at = |waiting: f64| {
            let mut red = red(10.0, 30.0, 0.2, 1.0);
            red.average_q32 = (waiting * ONE_Q32 as f64) as u64;
            red.base_probability() as f64 / ONE_Q63 as f64
        };
        for (waiting, expected) in [
            (10.0, 0.0),
            (20.0, 0.1),
            (30.0, 0.2),
            (45.0, 0.6),
            (60.0, 1.0),
        ] {
            assert!(
                (at(waiting) - expected).abs() < 1e-9,
                "{waiting}: {}",
                at(waiting)
            );
        }
    }

    #[test]
    fn signals_by_region() {
        let mut red = red(10.0, 30.0, 0.2, 1.0);
        assert!((0..1000).all(|_| red.arrival(9, 0) == Signal::Pass));
        assert!((0..1000).all(|_| red.arrival(60, 0) == Signal::Forced));
        // p = 0.1. The n-th packet after a signal has p / (1 - n p): gaps are uniform on 1..=9 (paper, section 7).
        let mut gaps = Vec::new();
        let mut gap = 0;
        while gaps.len() < 20_000 {
            gap += 1;
            if red.arrival(20, 0) == Signal::Early {
                gaps.push(gap);
                gap = 0;
            }
        }
        let mean = gaps.iter().sum::<u32>() as f64 / gaps.len() as f64;
        assert!(gaps[1..].iter().all(|g| (1..=9).contains(g)));
        assert!((mean - 5.0).abs() < 0.1, "{mean}");
    }

    #[test]
    fn a_loss_to_a_full_queue_counts_as_a_signal() {
        // p = 0.1 and gaps are uniform on 1..=9, so 4 packets get in on average between the loss and the next signal. If
        // the loss only counted as a packet let in, it would be about 3.5.
        let mut red = red(10.0, 30.0, 0.2, 1.0);
        let mut admits = |room| {
            red.admits(
                (20, 0),
                room,
                &mut crate::link::tests::parcel(0, 40),
                &mut 0,
            )
        };
        let mut run = |_| {
            assert!(!admits(false));
            (0..20).take_while(|_| admits(true)).count()
        };
        let mean = (0..20_000).map(&mut run).sum::<usize>() as f64 / 20_000.0;
        assert!((mean - 4.0).abs() < 0.1, "{mean}");
    }
}
