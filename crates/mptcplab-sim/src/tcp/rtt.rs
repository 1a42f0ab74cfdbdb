//! Round-trip time: RFC 6298 smoothing with Linux' variance decay, and the windowed minimum.

use mptcplab_cc::TcpSock;

/// Lower bound of the variance term, Linux' `TCP_RTO_MIN`.
pub(crate) const RTO_MIN_US: u32 = 200_000;
/// Upper bound of the timeout, Linux' `TCP_RTO_MAX`.
pub(crate) const RTO_MAX_US: u32 = 120_000_000;
/// Timeout before the first sample (RFC 6298 2.1).
pub(crate) const RTO_INITIAL_US: u32 = 1_000_000;
/// Window of the minimum filter, Linux' `tcp_min_rtt_wlen`.
const MIN_RTT_WINDOW_US: u64 = 300_000_000;

/// State beside `srtt_us`, `mdev_us`, `rttvar_us` and `min_rtt_us`, which the algorithms see in their socket.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RttEstimator {
    /// Largest mean deviation of the current round.
    mdev_max_us: u32,
    /// The round ends when this segment is acknowledged.
    round_end: u32,
    /// Timeout without backoff.
    pub(crate) rto_us: u32,
    /// Latest sample.
    pub(crate) latest_us: u32,
    /// Samples so far, for exact means.
    pub(crate) count: u64,
    pub(crate) sum_us: u64,
    /// The three best minima of the filter window: (time, rtt), best first (Nichols' windowed filter).
    minima: [(u64, u32); 3],
    /// When a sub-window of the filter expires next.
    minima_due_us: u64,
}

impl RttEstimator {
    pub(crate) fn new() -> Self {
        Self {
            mdev_max_us: 0,
            round_end: 0,
            rto_us: RTO_INITIAL_US,
            latest_us: 0,
            count: 0,
            sum_us: 0,
            minima: [(0, u32::MAX); 3],
            minima_due_us: 0,
        }
    }

    /// Timeout without backoff.
    #[inline]
    pub(crate) fn rto_ns(&self) -> u64 {
        u64::from(self.rto_us) * 1000
    }

    /// Take in one sample of at least 1 us (RFC 6298 2.2, 2.3), at the time that `tp` says it is. `last_ns`: that of the last
    /// segment that the ACK covers, for the minimum.
    #[inline(always)]
    pub(crate) fn sample(&mut self, tp: &mut TcpSock, rtt_ns: u64, last_ns: u64) {
        let rtt_us = ((rtt_ns / 1000) as u32).max(1);
        self.latest_us = rtt_us;
        self.count += 1;
        self.sum_us += u64::from(rtt_us);
        self.minimum(tp, ((last_ns / 1000) as u32).max(1));
        if tp.srtt_us == 0 {
            tp.srtt_us = rtt_us << 3;
            tp.mdev_us = rtt_us << 1;
            tp.rttvar_us = tp.mdev_us.max(RTO_MIN_US);
            self.mdev_max_us = tp.rttvar_us;
            self.round_end = tp.snd_nxt;
        } else {
            self.smooth(tp, rtt_us);
        }
        self.rto_us = ((tp.srtt_us >> 3) + tp.rttvar_us).min(RTO_MAX_US);
    }

    #[inline(always)]
    fn smooth(&mut self, tp: &mut TcpSock, rtt_us: u32) {
        let error = rtt_us as i32 - (tp.srtt_us >> 3) as i32;
        tp.srtt_us = tp.srtt_us.wrapping_add_signed(error).max(1);
        // mdev is the deviation times 4; a shrinking RTT must not inflate it, so that step counts an eighth.
        let excess = error.abs() - (tp.mdev_us >> 2) as i32;
        let shift = 3 * u32::from(error < 0 && excess > 0);
        let step = excess >> shift;
        tp.mdev_us = tp.mdev_us.wrapping_add_signed(step);
        if tp.mdev_us > self.mdev_max_us {
            self.mdev_max_us = tp.mdev_us;
            tp.rttvar_us = tp.rttvar_us.max(self.mdev_max_us);
        }
        if tp.snd_una > self.round_end {
            if self.mdev_max_us < tp.rttvar_us {
                tp.rttvar_us -= (tp.rttvar_us - self.mdev_max_us) >> 2;
            }
            self.round_end = tp.snd_nxt;
            self.mdev_max_us = RTO_MIN_US;
        }
    }

    #[inline(always)]
    fn minimum(&mut self, tp: &mut TcpSock, rtt_us: u32) {
        let now_us = tp.tcp_mstamp;
        // Nothing changes while no candidate is beaten and no sub-window expires.
        if rtt_us > self.minima[2].1 && now_us < self.minima_due_us {
            return;
        }
        let sample = (now_us, rtt_us);
        if rtt_us <= self.minima[0].1 || now_us - self.minima[2].0 > MIN_RTT_WINDOW_US {
            self.minima = [sample; 3];
        } else {
            self.update_minima(sample);
        }
        self.minima_due_us = self.next_expiry();
        tp.min_rtt_us = self.minima[0].1;
    }

    /// When `update_minima` would act on age alone.
    fn next_expiry(&self) -> u64 {
        let m = &self.minima;
        let age = if m[1].0 == m[0].0 {
            MIN_RTT_WINDOW_US / 4
        } else if m[2].0 == m[1].0 {
            MIN_RTT_WINDOW_US / 2
        } else {
            MIN_RTT_WINDOW_US
        };
        m[0].0 + age + 1
    }

    fn update_minima(&mut self, sample: (u64, u32)) {
        let m = &mut self.minima;
        if sample.1 <= m[1].1 {
            m[1] = sample;
            m[2] = sample;
        } else if sample.1 <= m[2].1 {
            m[2] = sample;
        }
        // As sub-windows expire, the next best take over.
        let age = sample.0 - m[0].0;
        if age > MIN_RTT_WINDOW_US {
            *m = [m[1], m[2], sample];
            if sample.0 - m[0].0 > MIN_RTT_WINDOW_US {
                *m = [m[1], m[2], sample];
            }
        } else if m[1].0 == m[0].0 && age > MIN_RTT_WINDOW_US / 4 {
            m[1] = sample;
            m[2] = sample;
        } else if m[2].0 == m[1].0 && age > MIN_RTT_WINDOW_US / 2 {
            m[2] = sample;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mptcplab_model::link::rng::Rng;

    /// The least round-trip time after each of `samples`, which are (s, ms).
    fn minima(samples: &[(u64, u64)]) -> Vec<u32> {
        let (mut rtt, mut tp) = (RttEstimator::new(), TcpSock::default());
        let after = |&(s, ms): &(u64, u64)| {
            tp.tcp_mstamp = s * 1_000_000;
            rtt.sample(&mut tp, ms * 1_000_000, ms * 1_000_000);
            tp.min_rtt_us / 1000
        };
        samples.iter().map(after).collect()
    }

    /// 30 ms is the least after a quarter of the window, and 50 ms after half of it; 55 ms comes too late to take its place.
    #[test]
    fn the_best_of_each_part_of_the_window_takes_over_in_turn() {
        let samples = [
            (0, 10),
            (10, 33),
            (80, 30),
            (100, 32),
            (160, 50),
            (200, 55),
            (310, 60),
        ];
        assert_eq!(minima(&samples), [10, 10, 10, 10, 10, 10, 30]);
        assert_eq!(minima(&[&samples[..], &[(385, 70)]].concat())[7], 50);
    }

    /// The candidates after each of `samples`, which are (us, us).
    fn candidates(samples: &[(u64, u32)]) -> [(u64, u32); 3] {
        let (mut rtt, mut tp) = (RttEstimator::new(), TcpSock::default());
        for &(at, rtt_us) in samples {
            tp.tcp_mstamp = at;
            rtt.minimum(&mut tp, rtt_us);
        }
        rtt.minima
    }

    /// Each part of the window is over a microsecond after its end.
    #[test]
    fn a_candidate_is_good_to_the_last_microsecond() {
        let (window, first) = (MIN_RTT_WINDOW_US, (0, 10));
        assert_eq!(candidates(&[first, (window / 4, 20)]), [first; 3]);
        let second = (window / 4 + 1, 20);
        assert_eq!(candidates(&[first, second]), [first, second, second]);
        let half = (window / 2, 30);
        assert_eq!(candidates(&[first, second, half]), [first, second, second]);
        let third = (window / 2 + 1, 30);
        let all = [first, second, third];
        assert_eq!(candidates(&all), all);
        let then = |sample| candidates(&[&all[..], &[sample]].concat());
        assert_eq!(then((window, 40)), all);
        let late = (window + 1, 40);
        assert_eq!(then(late), [second, third, late]);
        let later = (second.0 + window, 40);
        assert_eq!(then(later), [second, third, later]);
        let latest = (third.0 + window, 40);
        assert_eq!(then(latest), [third, latest, latest]);
        assert_eq!(then((latest.0 + 1, 40)), [(latest.0 + 1, 40); 3]);
    }

    /// A sample that changes nothing is passed over: the filter is always the same as if it were not.
    #[test]
    fn passing_over_samples_changes_no_candidate() {
        let (mut quick, mut tp) = (RttEstimator::new(), TcpSock::default());
        let mut slow = quick;
        let mut rng = Rng::new(5, 0, "test", "least RTT");
        let mut passed = 0;
        for step in 0..20_000_u64 {
            let at_due = quick.minima_due_us.saturating_sub(step % 2);
            let later = tp.tcp_mstamp + rng.below(9_000_000);
            tp.tcp_mstamp = if rng.below(4) == 0 && at_due > tp.tcp_mstamp {
                at_due
            } else {
                later
            };
            let rtt_us = 100 + rng.below(30) as u32;
            passed += u32::from(rtt_us > quick.minima[2].1 && tp.tcp_mstamp < quick.minima_due_us);
            slow.minima_due_us = 0;
            quick.minimum(&mut tp, rtt_us);
            slow.minimum(&mut tp, rtt_us);
            assert_eq!(quick.minima, slow.minima, "step {step}");
        }
        assert!(passed > 1000, "{passed}");
    }

    /// Of three candidates, the first two have expired when the next sample comes.
    #[test]
    fn two_candidates_may_expire_at_once() {
        assert_eq!(
            minima(&[(0, 10), (80, 30), (160, 50), (385, 70)]),
            [10, 10, 10, 50]
        );
    }
}
