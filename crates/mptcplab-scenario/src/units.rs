//! Numbers with units as people write them ("10 Mbit/s", "14 ms", "0.1 %"), to exact integers.
//!
//! SI case rules: `Mbit/s` is 10^6 bit/s, `MB/s` is 10^6 byte/s, `MiB` is 2^20 byte. There is one spelling of each
//! unit; every other one is refused with the right one.

use crate::model::Span;
use mptcplab_model::link::QueueLimit;

/// Why a text is not the quantity it should be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct UnitError {
    pub(crate) message: String,
    pub(crate) hint: String,
}

/// A kind of quantity: its units with their size in the base unit, and how people misspell them.
#[derive(Debug)]
pub(crate) struct Dimension {
    /// With its article: "a rate".
    pub(crate) what: &'static str,
    pub(crate) example: &'static str,
    units: &'static [(&'static str, u64)],
    misspelt: &'static [(&'static str, &'static str)],
    /// Unit of the integer that comes out.
    base: &'static str,
    min: u64,
    max: u64,
    /// The limits as people write them.
    range: &'static str,
}

/// Rates, in bit/s.
pub(crate) static RATE: Dimension = Dimension {
    what: "a rate",
    example: "10 Mbit/s",
    units: &[
        ("bit/s", 1),
        ("kbit/s", 1_000),
        ("Mbit/s", 1_000_000),
        ("Gbit/s", 1_000_000_000),
        ("B/s", 8),
        ("kB/s", 8_000),
        ("MB/s", 8_000_000),
        ("GB/s", 8_000_000_000),
    ],
    misspelt: &[
        ("bps", "bit/s"),
        ("b/s", "bit/s"),
        ("bits/s", "bit/s"),
        ("bit", "bit/s"),
        ("kbps", "kbit/s"),
        ("kb/s", "kbit/s"),
        ("kbit", "kbit/s"),
        ("kbits/s", "kbit/s"),
        ("mbps", "Mbit/s"),
        ("mb/s", "Mbit/s"),
        ("mb", "Mbit/s"),
        ("mbit", "Mbit/s"),
        ("mbits/s", "Mbit/s"),
        ("m", "Mbit/s"),
        ("gbps", "Gbit/s"),
        ("gb/s", "Gbit/s"),
        ("gbit", "Gbit/s"),
        ("gbits/s", "Gbit/s"),
        ("g", "Gbit/s"),
    ],
    base: "bit/s",
    min: 0,
    max: 400_000_000_000,
    range: "at most 400 Gbit/s",
};

/// Times of links and packets, in nanoseconds.
pub(crate) static DURATION: Dimension = time("14 ms");

/// The same for what lasts as long as a run.
pub(crate) static LONG_DURATION: Dimension = time("60 s");

const fn time(example: &'static str) -> Dimension {
    Dimension {
        what: "a duration",
        example,
        units: &[
            ("ns", 1),
            ("us", 1_000),
            ("ms", 1_000_000),
            ("s", 1_000_000_000),
            ("min", 60_000_000_000),
            ("h", 3_600_000_000_000),
        ],
        misspelt: &[
            ("nsec", "ns"),
            ("\u{b5}s", "us"),
            ("\u{3bc}s", "us"),
            ("usec", "us"),
            ("msec", "ms"),
            ("sec", "s"),
            ("secs", "s"),
            ("second", "s"),
            ("seconds", "s"),
            ("m", "min"),
            ("mins", "min"),
            ("minute", "min"),
            ("minutes", "min"),
            ("hour", "h"),
            ("hours", "h"),
            ("hr", "h"),
        ],
        base: "ns",
        min: 0,
        max: 24 * 3_600_000_000_000,
        range: "at most 24 h",
    }
}

/// Sizes, in bytes.
pub(crate) static SIZE: Dimension = Dimension {
    what: "a size",
    example: "64 kB",
    units: &[
        ("bytes", 1),
        ("B", 1),
        ("kB", 1_000),
        ("MB", 1_000_000),
        ("GB", 1_000_000_000),
        ("KiB", 1 << 10),
        ("MiB", 1 << 20),
        ("GiB", 1 << 30),
    ],
    misspelt: &[
        ("byte", "bytes"),
        ("b", "bytes"),
        ("k", "kB"),
        ("m", "MB"),
        ("g", "GB"),
    ],
    base: "bytes",
    min: 0,
    max: 1 << 50,
    range: "at most 1 PiB",
};

/// Counts of packets.
pub(crate) static PACKETS: Dimension = Dimension {
    what: "a number of packets",
    example: "100 packets",
    units: &[("packets", 1)],
    misspelt: &[
        ("packet", "packets"),
        ("pkts", "packets"),
        ("pkt", "packets"),
        ("p", "packets"),
        ("segments", "packets"),
    ],
    base: "packets",
    min: 1,
    max: 100_000_000,
    range: "1 to 100000000 packets",
};

/// Rates of a random process, in arrivals in 1000 minutes: whole for any decimal rate per second or minute.
pub(crate) static ARRIVALS: Dimension = Dimension {
    what: "a rate of arrivals",
    example: "10 / s",
    units: &[("/ s", 60_000), ("/ min", 1_000)],
    misspelt: &[
        ("/s", "/ s"),
        ("/sec", "/ s"),
        ("/ sec", "/ s"),
        ("per s", "/ s"),
        ("per second", "/ s"),
        ("Hz", "/ s"),
        ("/min", "/ min"),
        ("/ minute", "/ min"),
        ("per min", "/ min"),
    ],
    base: "arrivals in 1000 minutes",
    min: 0,
    max: 6_000_000_000,
    range: "at most 100000 / s",
};

/// A rate as scenarios write it (`100 Mbit/s`), in bit/s. The error is one sentence, with what to write instead.
pub fn rate_bps(text: &str) -> Result<u64, String> {
    RATE.parse(text).map_err(UnitError::sentence)
}

/// A duration as scenarios write it (`50 ms`), in nanoseconds. The error is one sentence, with what to write instead.
pub fn duration_ns(text: &str) -> Result<u64, String> {
    DURATION.parse(text).map_err(UnitError::sentence)
}

impl UnitError {
    fn sentence(self) -> String {
        format!("{} ({})", self.message, self.hint)
    }
}

impl Dimension {
    /// The value in the base unit.
    pub(crate) fn parse(&self, text: &str) -> Result<u64, UnitError> {
        let (number, unit) = split(text).ok_or_else(|| self.not(text, self.example.to_string()))?;
        let (decimal, factor) = match self.units.iter().find(|(name, _)| *name == unit) {
            Some((_, factor)) => (Decimal::parse(number), *factor),
            None => return Err(self.not(text, self.respell(number, unit))),
        };
        let decimal = decimal.ok_or_else(|| self.not(text, self.example.to_string()))?;
        let value = decimal.times(factor).ok_or_else(|| UnitError {
            message: format!("\"{text}\" is not a whole number of {}", self.base),
            hint: format!("the finest step is 1 {}", self.base),
        })?;
        match u64::try_from(value) {
            Ok(value) if (self.min..=self.max).contains(&value) => Ok(value),
            _ => Err(UnitError {
                message: format!("\"{text}\" is out of range"),
                hint: format!("{} is {}", self.what, self.range),
            }),
        }
    }

    /// A regular expression for editors.
    pub(crate) fn pattern(&self) -> String {
        let units: Vec<_> = self.units.iter().map(|(name, _)| *name).collect();
        format!("{NUMBER_PATTERN} ?({})", units.join("|"))
    }

    /// Every unit, for the documentation.
    pub(crate) fn units(&self) -> impl Iterator<Item = &'static str> {
        self.units.iter().map(|(name, _)| *name)
    }

    /// What to write for a bare number. A fraction was probably meant in another unit than the example's.
    pub(crate) fn with_unit(&self, number: &str) -> String {
        match split(self.example) {
            Some((_, unit)) if number.bytes().all(|b| b.is_ascii_digit()) => {
                format!("{number} {unit}")
            }
            _ => self.example.to_string(),
        }
    }

    fn not(&self, text: &str, write: String) -> UnitError {
        UnitError {
            message: format!("\"{}\" is not {}", crate::value::shorten(text), self.what),
            hint: format!("write \"{write}\""),
        }
    }

    /// The text with its unit spelt right, or an example.
    fn respell(&self, number: &str, unit: &str) -> String {
        if Decimal::parse(number).is_none() {
            return self.example.to_string();
        }
        if unit.is_empty() {
            return self.with_unit(number);
        }
        let known = self
            .misspelt
            .iter()
            .find(|(wrong, _)| wrong.eq_ignore_ascii_case(unit));
        let same_letters = || {
            self.units
                .iter()
                .find(|(name, _)| name.eq_ignore_ascii_case(unit))
        };
        match known
            .map(|(_, right)| right)
            .or_else(|| same_letters().map(|(name, _)| name))
        {
            Some(right) => format!("{number} {right}"),
            None => self.example.to_string(),
        }
    }
}

/// Digits with an optional fraction, without sign or exponent.
const NUMBER_PATTERN: &str = r"[0-9]{1,15}(\.[0-9]{1,12})?";

/// A decimal fraction `digits / 10^scale`, exact.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Decimal {
    digits: u128,
    scale: u32,
}

impl Decimal {
    fn parse(text: &str) -> Option<Self> {
        let (whole, fraction) = match text.split_once('.') {
            Some((whole, fraction)) => (whole, Some(fraction)),
            None => (text, None),
        };
        let digits =
            |s: &str, most| (1..=most).contains(&s.len()) && s.bytes().all(|b| b.is_ascii_digit());
        if !digits(whole, 15) || !fraction.is_none_or(|f| digits(f, 12)) {
            return None;
        }
        let fraction = fraction.unwrap_or_default();
        Some(Self {
            digits: format!("{whole}{fraction}").parse().ok()?,
            scale: u32::try_from(fraction.len()).ok()?,
        })
    }

    /// `self * factor` if it is a whole number.
    fn times(self, factor: u64) -> Option<u128> {
        let product = self.digits.checked_mul(u128::from(factor))?;
        let divisor = 10u128.pow(self.scale);
        (product % divisor == 0).then_some(product / divisor)
    }
}

/// `"10 Mbit/s"` to `("10", "Mbit/s")`; `None` where no digit comes first.
fn split(text: &str) -> Option<(&str, &str)> {
    let end = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    (!number.is_empty()).then(|| (number, unit.strip_prefix(' ').unwrap_or(unit)))
}

/// A probability, written in percent.
pub(crate) const PERCENT_EXAMPLE: &str = "0.1 %";

/// `"0.1 %"` to the `f64` nearest to 0.001.
pub(crate) fn percent(text: &str) -> Result<f64, UnitError> {
    let not = |write: String| UnitError {
        message: format!("\"{}\" is not a percentage", crate::value::shorten(text)),
        hint: format!("write \"{write}\""),
    };
    let (number, unit) = split(text).ok_or_else(|| not(PERCENT_EXAMPLE.into()))?;
    Decimal::parse(number).ok_or_else(|| not(PERCENT_EXAMPLE.into()))?;
    if unit != "%" {
        return Err(not(
            match unit.is_empty() || unit.starts_with(['%', 'p', 'P']) {
                true => format!("{number} %"),
                false => PERCENT_EXAMPLE.into(),
            },
        ));
    }
    // The exponent is part of the literal, so that the division by 100 is rounded once.
    let p: f64 = format!("{number}e-2")
        .parse()
        .map_err(|_| not(PERCENT_EXAMPLE.into()))?;
    match p <= 1.0 {
        true => Ok(p),
        false => Err(UnitError {
            message: format!("\"{text}\" is more than 100 %"),
            hint: "a probability lies between \"0 %\" and \"100 %\"".into(),
        }),
    }
}

/// What to write for a bare number: up to 1 it is a probability, above it percent.
pub(crate) fn percent_for_bare_number(number: &str) -> String {
    match number.parse::<f64>() {
        Ok(p) if (0.0..=1.0).contains(&p) => crate::format::percent(p),
        Ok(p) if p <= 100.0 && Decimal::parse(number).is_some() => format!("{number} %"),
        _ => PERCENT_EXAMPLE.to_string(),
    }
}

/// Regular expression of [`percent`].
pub(crate) fn percent_pattern() -> String {
    format!("{NUMBER_PATTERN} ?%")
}

/// Room of a queue before it is resolved against its link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum QueueSize {
    Fixed(QueueLimit),
    /// Time to drain at the link's rate.
    Nanoseconds(u64),
    /// `digits / 10^scale` bandwidth-delay products.
    Bdp(BdpFactor),
}

/// How many bandwidth-delay products.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BdpFactor(Decimal);

impl BdpFactor {
    /// ceil(factor x rate x time / (8 x frame)) in packets (spec/scenarios.md 0.1), at least 1.
    pub(crate) fn packets(self, rate_bps: u64, base_rtt_ns: u64, frame_bytes: u64) -> Option<u128> {
        let bits_times_ns = u128::from(rate_bps).checked_mul(u128::from(base_rtt_ns))?;
        let over = bits_times_ns.checked_mul(self.0.digits)?;
        let under = 10u128
            .pow(self.0.scale)
            .checked_mul(8 * u128::from(frame_bytes) * 1_000_000_000)?;
        Some(over.div_ceil(under).max(1))
    }
}

/// How queue sizes are written.
pub(crate) const QUEUE_EXAMPLES: &str = "\"100 packets\", \"64 kB\", \"50 ms\" or \"1 BDP\"";

/// A queue size in packets, bytes, time or bandwidth-delay products.
pub(crate) fn queue(text: &str) -> Result<QueueSize, UnitError> {
    let not = |hint: String| UnitError {
        message: format!("\"{}\" is not a queue size", crate::value::shorten(text)),
        hint,
    };
    let Some((number, unit)) = split(text) else {
        return Err(not(format!("write {QUEUE_EXAMPLES}")));
    };
    if unit == "BDP" {
        let factor =
            Decimal::parse(number).filter(|d| (1..=1_000_000_000_000_000).contains(&d.digits));
        return match factor {
            Some(factor) => Ok(QueueSize::Bdp(BdpFactor(factor))),
            None => Err(not("write \"1 BDP\"; the factor is more than 0".into())),
        };
    }
    for dimension in [&PACKETS, &SIZE, &DURATION] {
        if dimension.units().any(|name| name == unit) {
            let value = dimension.parse(text)?;
            return match dimension.base {
                "packets" => Ok(QueueSize::Fixed(QueueLimit::Packets(
                    u32::try_from(value).unwrap_or(u32::MAX),
                ))),
                "bytes" => Ok(QueueSize::Fixed(QueueLimit::Bytes(value))),
                _ => Ok(QueueSize::Nanoseconds(value)),
            };
        }
    }
    if unit.eq_ignore_ascii_case("bdp") || unit.eq_ignore_ascii_case("bdps") {
        return Err(not(format!("write \"{number} BDP\"")));
    }
    let respelt = [&PACKETS, &SIZE, &DURATION]
        .into_iter()
        .map(|d| (d.respell(number, unit), d.example))
        .find(|(text, example)| !unit.is_empty() && text != example);
    Err(not(match respelt {
        Some((text, _)) => format!("write \"{text}\""),
        None => format!("write {QUEUE_EXAMPLES}"),
    }))
}

/// Regular expression of [`queue`].
pub(crate) fn queue_pattern() -> String {
    let units = [&PACKETS, &SIZE, &DURATION]
        .into_iter()
        .flat_map(Dimension::units);
    let units: Vec<_> = units.chain(["BDP"]).collect();
    format!("{NUMBER_PATTERN} ?({})", units.join("|"))
}

/// How a random span is written.
pub(crate) const UNIFORM_EXAMPLE: &str = "uniform(0 s, 1 s)";

/// `"1 s"` or `"uniform(0 s, 1 s)"`: the two ends in nanoseconds, equal for a fixed span.
pub(crate) fn span(text: &str) -> Result<(u64, u64), UnitError> {
    let Some(inside) = text.strip_prefix("uniform") else {
        return DURATION.parse(text).map(|ns| (ns, ns));
    };
    let not = || UnitError {
        message: format!("\"{}\" is not a random span", crate::value::shorten(text)),
        hint: format!("write \"{UNIFORM_EXAMPLE}\""),
    };
    let inside = inside
        .trim()
        .strip_prefix('(')
        .and_then(|s| s.strip_suffix(')'))
        .ok_or_else(not)?;
    let (lo, hi) = inside.split_once(',').ok_or_else(not)?;
    let (lo, hi) = (DURATION.parse(lo.trim())?, DURATION.parse(hi.trim())?);
    match lo < hi {
        true => Ok((lo, hi)),
        false => Err(UnitError {
            message: format!("\"{text}\" is empty: the first end is not before the second"),
            hint: format!("write \"{UNIFORM_EXAMPLE}\""),
        }),
    }
}

/// How an exponential span is written.
pub(crate) const EXPONENTIAL_EXAMPLE: &str = "exponential(100 ms)";

/// A span that may also be exponential, by its mean.
pub(crate) fn period(text: &str) -> Result<Span, UnitError> {
    let Some(inside) = text.strip_prefix("exponential") else {
        return span(text).map(|(lo_ns, hi_ns)| match lo_ns == hi_ns {
            true => Span::Fixed(lo_ns),
            false => Span::Uniform { lo_ns, hi_ns },
        });
    };
    let mean = inside
        .trim()
        .strip_prefix('(')
        .and_then(|s| s.strip_suffix(')'))
        .ok_or_else(|| UnitError {
            message: format!("\"{}\" is not a random span", crate::value::shorten(text)),
            hint: format!("write \"{EXPONENTIAL_EXAMPLE}\""),
        })?;
    DURATION
        .parse(mean.trim())
        .map(|mean_ns| Span::Exponential { mean_ns })
}

/// Regular expression of [`period`].
pub(crate) fn period_pattern() -> String {
    let (span, one) = (span_pattern(), DURATION.pattern());
    format!(r"({span}|exponential ?\( ?{one} ?\))")
}

/// Regular expression of [`span`].
pub(crate) fn span_pattern() -> String {
    let one = DURATION.pattern();
    format!(r"({one}|uniform ?\( ?{one} ?, ?{one} ?\))")
}

#[cfg(test)]
mod tests;
