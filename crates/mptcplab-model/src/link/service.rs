//! Serialisation times in fixed point: nanoseconds with 16 fractional bits.
//!
//! 1514 bytes at 10 Gbit/s last 1211.2 ns; the fraction is carried from packet to packet, so that a saturated link keeps
//! its rate to a few parts per billion. Instants are stored with half a unit added ("rounded up front"), so that dropping
//! the fraction rounds to the nearest nanosecond.

const FRACTION_BITS: u32 = 16;
const HALF: u64 = 1 << (FRACTION_BITS - 1);

/// Times passed to a link must be below this: 2^48 ns, 78 hours.
pub const MAX_TIME_NS: u64 = 1 << (64 - FRACTION_BITS);

/// An instant in 2^-16 ns, with half a nanosecond added.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Instant(u64);

impl Instant {
    pub(crate) const ZERO: Self = Self(0);
    /// Beyond every time a link may be asked about.
    pub(crate) const NEVER: Self = Self(u64::MAX);

    /// A whole nanosecond.
    #[inline]
    pub(crate) fn from_ns(ns: u64) -> Self {
        debug_assert!(ns < MAX_TIME_NS, "time {ns} ns is beyond 2^48 ns");
        Self((ns << FRACTION_BITS) | HALF)
    }

    /// The nearest nanosecond.
    #[inline]
    pub(crate) fn ns(self) -> u64 {
        self.0 >> FRACTION_BITS
    }

    /// Later by a duration in 2^-16 ns. Saturates: a packet behind 78 hours of others never leaves.
    #[inline]
    pub(crate) fn after(self, duration_q16: u64) -> Self {
        Self(self.0.saturating_add(duration_q16))
    }

    /// Time since `earlier` in 2^-16 ns, 0 if that is later.
    pub(crate) fn since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

/// Bits times 10^9 times 2^16: divided by bit/s this is a duration in 2^-16 ns.
pub(crate) type Work = u128;

/// The work of serialising this many bytes.
pub(crate) fn work(bytes: u32) -> Work {
    (u128::from(bytes) * 8 * 1_000_000_000) << FRACTION_BITS
}

/// A serialisation rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Rate {
    bps: u64,
    /// Duration of a byte in 2^-48 ns; 0 where it does not fit (below 123 kbit/s).
    byte_q48: u64,
}

impl Rate {
    pub(crate) fn new(bps: u64) -> Self {
        let byte_q48 = div_round(work(1) << 32, u128::from(bps));
        Self {
            bps,
            byte_q48: byte_q48.and_then(|q| u64::try_from(q).ok()).unwrap_or(0),
        }
    }

    /// Whether [`duration_fast`](Self::duration_fast) may be used.
    pub(crate) fn is_fast(self) -> bool {
        self.byte_q48 != 0
    }

    /// How long `bytes` last at a fast rate, in 2^-16 ns: a multiplication instead of a division.
    #[inline]
    pub(crate) fn duration_fast(self, bytes: u32) -> u64 {
        let product = u128::from(self.byte_q48) * u128::from(bytes);
        // 2^32 bytes last less than 2^64: byte_q48 has 64 bits.
        ((product + (1 << 31)) >> 32) as u64
    }

    /// When a transmission of `bytes` that starts at `start` ends.
    pub(crate) fn finish(self, start: Instant, bytes: u32) -> Instant {
        if self.is_fast() {
            start.after(self.duration_fast(bytes))
        } else {
            self.finish_work(start, work(bytes))
        }
    }

    /// When a transmission ends that continues at `start` with this work left.
    pub(crate) fn finish_work(self, start: Instant, work: Work) -> Instant {
        div_round(work, u128::from(self.bps)).map_or(Instant::NEVER, |duration| {
            start.after(u64::try_from(duration).unwrap_or(u64::MAX))
        })
    }

    /// Packets of `bytes` that fit in `ns`.
    pub(crate) fn packets_within(self, ns: u64, bytes: u32) -> u64 {
        let packets = (u128::from(ns) << FRACTION_BITS) * u128::from(self.bps) / work(bytes).max(1);
        u64::try_from(packets).unwrap_or(u64::MAX)
    }

    /// Work done in a duration of `q16` 2^-16 ns; exact.
    pub(crate) fn done(self, q16: u64) -> Work {
        u128::from(q16) * u128::from(self.bps)
    }
}

/// Quotient rounded to nearest; `None` for a zero divisor.
fn div_round(dividend: u128, divisor: u128) -> Option<u128> {
    (dividend + divisor / 2).checked_div(divisor)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Duration of `bytes` at `bps` in 2^-16 ns.
    fn duration(bps: u64, bytes: u32) -> u64 {
        Rate::new(bps)
            .finish(Instant::ZERO, bytes)
            .since(Instant::ZERO)
    }

    #[test]
    fn whole_nanoseconds_are_exact() {
        // 1514 * 8 / 10^7 s = 1,211,200 ns; 86 * 8 / 10^6 s = 688,000 ns; 40 * 8 / 64,000 s = 5 ms (slow: by division).
        assert_eq!(duration(10_000_000, 1514), 1_211_200 << 16);
        assert_eq!(duration(1_000_000, 86), 688_000 << 16);
        assert_eq!(duration(64_000, 40), 5_000_000 << 16);
    }

    #[test]
    fn fractions_are_rounded_to_two_to_the_minus_sixteen() {
        // 1211.2 * 65536 = 79,377,203.2
        assert_eq!(duration(10_000_000_000, 1514), 79_377_203);
        // 1514 * 8 / 3e7 s = 403,733 1/3 ns; times 65536 = 26,459,067,733.3
        assert_eq!(duration(30_000_000, 1514), 26_459_067_733);
    }

    #[test]
    fn multiplication_agrees_with_division() {
        for bps in [123_457, 999_983, 54_000_001, 7_777_777_777, 99_999_999_977] {
            for bytes in [40, 86, 1000, 1514, 9014, 65_535] {
                let rate = Rate::new(bps);
                let exact = rate.finish_work(Instant::ZERO, work(bytes));
                let fast = rate.finish(Instant::ZERO, bytes);
                assert!(
                    exact.since(fast).max(fast.since(exact)) <= 1,
                    "{bytes} at {bps}"
                );
            }
        }
    }

    #[test]
    fn nothing_ends_at_rate_zero_and_time_does_not_wrap() {
        assert_eq!(Rate::new(0).finish(Instant::from_ns(5), 40), Instant::NEVER);
        assert_eq!(
            Rate::new(1).finish(Instant::from_ns(MAX_TIME_NS - 1), u32::MAX),
            Instant::NEVER
        );
    }
}
