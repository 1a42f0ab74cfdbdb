//! Random times and sizes from a flow's stream.
//!
//! Logarithm and exponential function are implemented here with additions, multiplications and divisions only, because those of
//! the system library may differ in the last bit between machines.

use super::config::{DurationDistribution, SizeDistribution, StartTime};
use crate::link::rng::Rng;

/// Draws a duration in nanoseconds.
pub fn duration(distribution: DurationDistribution, rng: &mut Rng) -> u64 {
    match distribution {
        DurationDistribution::Fixed(ns) => ns,
        DurationDistribution::Uniform { lo_ns, hi_ns } => lo_ns + rng.below((hi_ns - lo_ns).max(1)),
        DurationDistribution::Exponential { mean_ns } => (exponential(rng) * mean_ns as f64) as u64,
    }
}

/// Draws a start time.
pub fn start(start: StartTime, rng: &mut Rng) -> u64 {
    match start {
        StartTime::At(ns) => ns,
        StartTime::Uniform { lo_ns, hi_ns } => lo_ns + rng.below((hi_ns - lo_ns).max(1)),
    }
}

/// Draws a size in bytes, at least one.
pub fn size(distribution: SizeDistribution, rng: &mut Rng) -> u64 {
    match distribution {
        SizeDistribution::Fixed { bytes } => bytes,
        SizeDistribution::Exponential {
            mean_bytes,
            max_bytes,
        } => within(exponential(rng) * mean_bytes as f64, max_bytes),
        SizeDistribution::Pareto {
            mean_bytes,
            shape,
            max_bytes,
        } => {
            let least = mean_bytes as f64 * (shape - 1.0) / shape;
            // The logarithm of a Pareto number over its least value is exponential of mean 1 / shape.
            within(least * exp(exponential(rng) / shape), max_bytes)
        }
    }
}

fn within(bytes: f64, max_bytes: u64) -> u64 {
    // A cast keeps what is beyond u64 at its largest value.
    (bytes as u64).clamp(1, max_bytes)
}

/// Exponential with mean 1; at most 36.8 = 53 ln 2.
pub(crate) fn exponential(rng: &mut Rng) -> f64 {
    /// 2^-53.
    const STEP: f64 = 1.0 / (1_u64 << 53) as f64;
    // In (0, 1]: one more than the top 53 bits.
    -ln(((rng.next_u64() >> 11) + 1) as f64 * STEP)
}

/// Natural logarithm of a positive normal number.
fn ln(x: f64) -> f64 {
    let bits = x.to_bits();
    let mut exponent = (bits >> 52) as i64 - 1023;
    let mut m = f64::from_bits(bits & ((1 << 52) - 1) | 1023 << 52);
    // m in [sqrt(1/2), sqrt(2)) keeps s small.
    if m >= std::f64::consts::SQRT_2 {
        m /= 2.0;
        exponent += 1;
    }
    // ln m = 2 artanh s = 2 (s + s^3/3 + s^5/5 + ...), |s| < 0.172: the 12th term is below 2^-57.
    let s = (m - 1.0) / (m + 1.0);
    let series = (0..12)
        .rev()
        .fold(0.0, |sum, k| sum * s * s + 1.0 / f64::from(2 * k + 1));
    exponent as f64 * std::f64::consts::LN_2 + 2.0 * s * series
}

/// e^x for 0 <= x < 700.
fn exp(x: f64) -> f64 {
    let power = (x / std::f64::consts::LN_2).floor();
    let r = x - power * std::f64::consts::LN_2;
    // r in [0, ln 2): the 20th term of the series is below 2^-60.
    let series = (1..20)
        .rev()
        .fold(1.0, |sum, k| 1.0 + sum * r / f64::from(k));
    let scale = f64::from_bits((power as u64 + 1023) << 52);
    series * scale
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rng() -> Rng {
        Rng::new(7, 2, "flow", "web")
    }

    #[test]
    fn own_functions_are_those_of_the_library_within_rounding() {
        let mut x = 1.0_f64 / (1_u64 << 53) as f64;
        while x <= 1.0 {
            let (own, library) = (ln(x), x.ln());
            assert!(
                (own - library).abs() <= 4e-16 * library.abs().max(1.0),
                "ln {x}: {own}, {library}"
            );
            x *= 1.37;
        }
        for i in 0..400 {
            let x = f64::from(i) * 0.0911;
            let (own, library) = (exp(x), x.exp());
            assert!(
                (own / library - 1.0).abs() < 1e-14,
                "exp {x}: {own}, {library}"
            );
        }
    }

    #[test]
    fn exponential_durations_have_their_mean_and_their_tail() {
        let mut rng = rng();
        let distribution = DurationDistribution::Exponential {
            mean_ns: 10_000_000,
        };
        let draws: Vec<f64> = (0..100_000)
            .map(|_| duration(distribution, &mut rng) as f64 / 1e7)
            .collect();
        let mean = draws.iter().sum::<f64>() / 1e5;
        // The mean of 100,000 has a standard deviation of 0.0032.
        assert!((mean - 1.0).abs() < 0.013, "{mean}");
        let beyond = |x: f64| draws.iter().filter(|d| **d > x).count() as f64 / 1e5;
        assert!((beyond(1.0) - 0.3679).abs() < 0.006);
        assert!((beyond(3.0) - 0.0498).abs() < 0.003);
    }

    #[test]
    fn pareto_sizes_have_their_least_value_tail_and_cut() {
        let mut rng = rng();
        let distribution = SizeDistribution::Pareto {
            mean_bytes: 200_000,
            shape: 2.5,
            max_bytes: 40_000_000,
        };
        let draws: Vec<u64> = (0..100_000).map(|_| size(distribution, &mut rng)).collect();
        // 200 kB x 1.5 / 2.5
        assert!(draws.iter().all(|d| (120_000..=40_000_000).contains(d)));
        let mean = draws.iter().map(|d| *d as f64).sum::<f64>() / 1e5;
        // Standard deviation of one: 200 kB sqrt(1 / (2.5 x 0.5)) = 179 kB.
        assert!((mean - 200_000.0).abs() < 2_500.0, "{mean}");
        // P(size > 480 kB) = (1/4)^2.5 = 1/32
        let tail = draws.iter().filter(|d| **d > 480_000).count() as f64 / 1e5;
        assert!((tail - 1.0 / 32.0).abs() < 0.0022, "{tail}");
        let heavy = SizeDistribution::Pareto {
            mean_bytes: 200_000,
            shape: 1.1,
            max_bytes: 300_000,
        };
        assert!((0..1000).any(|_| size(heavy, &mut rng) == 300_000));
    }

    #[test]
    fn exponential_sizes_have_their_mean_and_are_a_byte_at_least() {
        let mut rng = rng();
        let distribution = |mean_bytes| SizeDistribution::Exponential {
            mean_bytes,
            max_bytes: 1_000_000,
        };
        let mean = (0..100_000)
            .map(|_| size(distribution(30_000), &mut rng) as f64)
            .sum::<f64>()
            / 1e5;
        assert!((mean - 30_000.0).abs() < 390.0, "{mean}");
        assert!((0..100).all(|_| size(distribution(1), &mut rng) >= 1));
    }
}
