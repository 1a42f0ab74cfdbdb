//! Seeded random streams: xoshiro256++ (Blackman & Vigna 2021), one independent stream per purpose.
//!
//! A stream is named by (seed, repetition, kind, name), for example `(7, 0, "link", "wifi~")`. The names are hashed, so
//! adding a link or a flow leaves the numbers of the others as they are.

/// Increment of SplitMix64 (Steele, Lea & Flood 2014): 2^64 / golden ratio, odd.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// The output function of SplitMix64: a bijection in which every input bit affects every output bit.
pub(crate) fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// Hash of a sequence of words and strings; order and lengths matter.
struct Hash(u64);

impl Hash {
    fn word(mut self, word: u64) -> Self {
        self.0 = mix(self.0.wrapping_add(GOLDEN) ^ mix(word.wrapping_add(GOLDEN)));
        self
    }

    fn text(self, text: &str) -> Self {
        text.as_bytes()
            .chunks(8)
            .map(|chunk| {
                let mut word = [0; 8];
                word[..chunk.len()].copy_from_slice(chunk);
                u64::from_le_bytes(word)
            })
            .fold(self.word(text.len() as u64), Self::word)
    }
}

/// A probability as the number of the 2^63 equally likely draws that count as a hit: exact for 0 and 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Probability(u64);

impl Probability {
    pub const ZERO: Self = Self(0);
    pub const ONE: Self = Self(1 << 63);

    /// From a number in [0, 1]; what lies outside is clamped and NaN counts as 0.
    pub fn new(p: f64) -> Self {
        // NaN passes through `clamp`, and the cast maps it to 0. The product is exact: a power of two.
        Self((p.clamp(0.0, 1.0) * Self::ONE.0 as f64) as u64)
    }

    /// The fraction `numerator / denominator`, at most 1. A zero denominator gives 1.
    pub(crate) fn ratio(numerator: u128, denominator: u128) -> Self {
        if numerator >= denominator {
            return Self::ONE;
        }
        let shift = numerator.leading_zeros().min(63);
        // Keeps the product below 2^128: large numerators give up low bits of both.
        Self((((numerator << shift) / denominator.max(1)) << (63 - shift)) as u64)
    }

    /// As a fixed-point number with 63 fractional bits.
    pub(crate) fn q63(self) -> u64 {
        self.0
    }
}

/// A stream of random numbers.
#[derive(Debug, Clone)]
pub struct Rng {
    state: [u64; 4],
}

impl Rng {
    /// The stream with this name.
    pub fn new(seed: u64, repetition: u32, kind: &str, name: &str) -> Self {
        Self::from_hash(Hash(seed).word(u64::from(repetition)).text(kind).text(name))
    }

    /// A stream that depends on this one's state and on `label`, and leaves this one as it is.
    pub fn fork(&self, label: &str) -> Self {
        let state = self
            .state
            .iter()
            .fold(Hash(0), |hash, &word| hash.word(word));
        Self::from_hash(state.text(label))
    }

    /// SplitMix64 fills the state, as the authors of xoshiro recommend; it cannot give four zeros.
    fn from_hash(hash: Hash) -> Self {
        let mut counter = hash.0;
        let state = std::array::from_fn(|_| {
            counter = counter.wrapping_add(GOLDEN);
            mix(counter)
        });
        Self { state }
    }

    /// 64 uniform bits.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        let s = &mut self.state;
        let result = s[0].wrapping_add(s[3]).rotate_left(23).wrapping_add(s[0]);
        let t = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= t;
        s[3] = s[3].rotate_left(45);
        result
    }

    /// Uniform in `0..n`, without bias (Lemire 2019); 0 for `n == 0`.
    #[inline]
    pub fn below(&mut self, n: u64) -> u64 {
        loop {
            let product = u128::from(self.next_u64()) * u128::from(n);
            let low = product as u64;
            // 2^64 mod n of the low parts would favour some results; the division runs only when that is possible.
            if low >= n || low >= n.wrapping_neg().checked_rem(n).unwrap_or(0) {
                return (product >> 64) as u64;
            }
        }
    }

    /// True with this probability; always takes one draw.
    #[inline]
    pub fn chance(&mut self, p: Probability) -> bool {
        self.next_u64() >> 1 < p.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn xoshiro_matches_the_reference_implementation() {
        // First outputs of the authors' xoshiro256plusplus.c for the state {1, 2, 3, 4}.
        let mut rng = Rng {
            state: [1, 2, 3, 4],
        };
        let got: [u64; 4] = std::array::from_fn(|_| rng.next_u64());
        assert_eq!(
            got,
            [
                41_943_041,
                58_720_359,
                3_588_806_011_781_223,
                3_591_011_842_654_386
            ]
        );
    }

    #[test]
    fn streams_are_told_apart_by_every_part_of_the_name() {
        let first = |seed, rep, kind, name| Rng::new(seed, rep, kind, name).next_u64();
        let base = first(7, 0, "link", "wifi");
        assert_eq!(base, first(7, 0, "link", "wifi"));
        for other in [
            first(8, 0, "link", "wifi"),
            first(7, 1, "link", "wifi"),
            first(7, 0, "flow", "wifi"),
            first(7, 0, "link", "wifi~"),
            first(7, 0, "lin", "kwifi"),
            first(7, 0, "", "linkwifi"),
        ] {
            assert_ne!(base, other);
        }
    }

    #[test]
    fn forking_does_not_disturb_the_parent() {
        let mut alone = Rng::new(3, 2, "link", "a");
        let mut parent = alone.clone();
        let mut loss = parent.fork("loss");
        let mut aqm = parent.fork("aqm");
        assert_ne!(loss.next_u64(), aqm.next_u64());
        assert_eq!(alone.next_u64(), parent.next_u64());
    }

    #[test]
    fn certain_and_impossible_events_are_exact() {
        let mut rng = Rng::new(1, 0, "test", "chance");
        for _ in 0..10_000 {
            assert!(rng.chance(Probability::new(1.0)));
            assert!(!rng.chance(Probability::new(0.0)));
        }
        assert_eq!(Probability::new(2.0), Probability::ONE);
        assert_eq!(Probability::new(-1.0), Probability::ZERO);
        assert_eq!(Probability::new(f64::NAN), Probability::ZERO);
        assert_eq!(Probability::new(0.5).q63(), 1 << 62);
    }

    #[test]
    fn ratios_are_exact_where_they_can_be() {
        assert_eq!(Probability::ratio(1, 4), Probability::new(0.25));
        assert_eq!(Probability::ratio(0, 4), Probability::ZERO);
        assert_eq!(Probability::ratio(5, 4), Probability::ONE);
        assert_eq!(Probability::ratio(0, 0), Probability::ONE);
        assert_eq!(
            Probability::ratio(1 << 120, 1 << 122),
            Probability::new(0.25)
        );
    }

    #[test]
    fn frequencies_match_the_probability() {
        let mut rng = Rng::new(1, 0, "test", "frequency");
        for p in [0.001, 0.3, 0.97] {
            let n = 400_000;
            let hits = (0..n).filter(|_| rng.chance(Probability::new(p))).count();
            let sigma = (f64::from(n) * p * (1.0 - p)).sqrt();
            let error = (hits as f64 - f64::from(n) * p).abs();
            assert!(error < 4.0 * sigma, "p = {p}: {hits} of {n}");
        }
    }

    #[test]
    fn below_is_uniform_and_stays_below() {
        let mut rng = Rng::new(1, 0, "test", "below");
        assert_eq!(rng.below(0), 0);
        assert_eq!(rng.below(1), 0);
        let mut counts = [0_u32; 7];
        for _ in 0..70_000 {
            counts[rng.below(7) as usize] += 1;
        }
        // 10,000 expected each, standard deviation 93.
        assert!(
            counts.iter().all(|&c| c.abs_diff(10_000) < 400),
            "{counts:?}"
        );
        // Three quarters of 2^64: without rejection every third result would come twice as often as the others.
        let n = 3 << 62;
        let thirds = (0..10_000).filter(|_| rng.below(n) % 3 == 0).count();
        assert!(thirds.abs_diff(3_333) < 190, "{thirds}");
    }
}
