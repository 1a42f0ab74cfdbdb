//! Round-trip time and retransmission timeout of one destination (RFC 9260 section 6.3).
//!
//! One packet per round trip is timed, and none that was sent twice (Karn). Times are whole microseconds.

/// `RTO.Initial`, `RTO.Min` and `RTO.Max` (RFC 9260 section 16).
const RTO_INITIAL_US: u64 = 1_000_000;
const RTO_MIN_US: u64 = 1_000_000;
const RTO_MAX_US: u64 = 60_000_000;

#[derive(Debug, Clone, Copy)]
pub(crate) struct Rto {
    /// Smoothed RTT times 8 and its variation times 4, so that nothing is rounded away.
    srtt8_us: u64,
    rttvar4_us: u64,
    /// Timeout without backoff.
    base_us: u64,
    backoff: u32,
    pub(crate) latest_us: u32,
    pub(crate) min_us: u32,
    pub(crate) count: u64,
    pub(crate) sum_us: u64,
}

impl Rto {
    pub(crate) fn new() -> Self {
        Self {
            srtt8_us: 0,
            rttvar4_us: 0,
            base_us: RTO_INITIAL_US,
            backoff: 0,
            latest_us: 0,
            min_us: 0,
            count: 0,
            sum_us: 0,
        }
    }

    /// Rules C2 and C3; a measurement ends the backoff.
    pub(crate) fn sample(&mut self, rtt_ns: u64) {
        let rtt = (rtt_ns / 1000).clamp(1, u64::from(u32::MAX));
        if self.count == 0 {
            self.srtt8_us = rtt * 8;
            self.rttvar4_us = rtt * 2;
            self.min_us = rtt as u32;
        } else {
            let deviation = (self.srtt8_us / 8).abs_diff(rtt);
            self.rttvar4_us = self.rttvar4_us - self.rttvar4_us / 4 + deviation;
            self.srtt8_us = self.srtt8_us - self.srtt8_us / 8 + rtt;
            self.min_us = self.min_us.min(rtt as u32);
        }
        self.latest_us = rtt as u32;
        self.count += 1;
        self.sum_us += rtt;
        // RTTVAR of nothing counts as the clock's granularity (rule G1).
        let wanted = self.srtt8_us / 8 + self.rttvar4_us.max(1);
        self.base_us = wanted.clamp(RTO_MIN_US, RTO_MAX_US);
        self.backoff = 0;
    }

    /// Rule E2: the timer expired.
    pub(crate) fn back_off(&mut self) {
        self.backoff = (self.backoff + 1).min(16);
    }

    /// The timeout to arm.
    pub(crate) fn timeout_ns(&self) -> u64 {
        (self.base_us << self.backoff).min(RTO_MAX_US) * 1000
    }

    /// Timeout without backoff, for the trace.
    pub(crate) fn base_us(&self) -> u32 {
        self.base_us as u32
    }

    /// Smoothed RTT; 0 before the first sample.
    pub(crate) fn srtt_us(&self) -> u32 {
        (self.srtt8_us / 8) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn follows_the_rules_of_the_rfc_between_its_bounds() {
        let mut r = Rto::new();
        assert_eq!(r.timeout_ns(), 1_000_000_000);
        // SRTT = 800 ms, RTTVAR = 400 ms, RTO = 2.4 s.
        r.sample(800_000_000);
        assert_eq!((r.srtt_us(), r.base_us()), (800_000, 2_400_000));
        // RTTVAR = 3/4 * 400 + 1/4 * 400 = 400, SRTT = 7/8 * 800 + 1/8 * 1200 = 850.
        r.sample(1_200_000_000);
        assert_eq!((r.srtt_us(), r.base_us()), (850_000, 2_450_000));
        r.back_off();
        r.back_off();
        assert_eq!(r.timeout_ns(), 9_800_000_000);
        for _ in 0..20 {
            r.back_off();
        }
        assert_eq!(r.timeout_ns(), 60_000_000_000);
        r.sample(850_000_000);
        assert_eq!(
            r.timeout_ns(),
            2_050_000_000,
            "a measurement ends the backoff"
        );
        let mut fast = Rto::new();
        fast.sample(20_000_000);
        assert_eq!(fast.timeout_ns(), 1_000_000_000, "RTO.Min");
        assert_eq!((r.min_us, r.count, r.sum_us), (800_000, 3, 2_850_000));
    }
}
