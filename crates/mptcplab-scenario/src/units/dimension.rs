//! Quantities with a unit ("10 Mbit/s", "14 ms"), to exact integers in a base unit.
//!
//! SI case rules: `Mbit/s` is 10^6 bit/s, `MB/s` is 10^6 byte/s, `MiB` is 2^20 byte. Each unit has one spelling, apart from
//! the singular of words; a misspelt unit is refused with the right one.

use super::decimal::{Decimal, NUMBER_PATTERN, split};
use super::meant::clean;
use crate::error::shorten;

/// The error of a text that is not the expected quantity.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct UnitError {
    pub(crate) message: String,
    pub(crate) hint: String,
}

/// A kind of quantity.
#[derive(Debug)]
pub(crate) struct Dimension {
    /// With its article: "a rate".
    pub(crate) what: &'static str,
    pub(crate) example: &'static str,
    /// The units with their size in the base unit.
    units: &'static [(&'static str, u64)],
    /// Common misspellings of each unit.
    misspelt: &'static [(&'static str, &'static [&'static str])],
    /// The unit of the parsed integer.
    pub(super) base: &'static str,
    min: u64,
    max: u64,
    /// The limits, for messages.
    range: &'static str,
}

/// Words that are units, and their singular, which is taken as well and not listed.
const SINGULAR: [(&str, &str); 2] = [("packets", "packet"), ("bytes", "byte")];

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
        ("bit/s", &["bps", "b/s", "bits/s", "bit"]),
        ("kbit/s", &["kbps", "kb/s", "kbit", "kbits/s"]),
        ("Mbit/s", &["mbps", "mb/s", "mb", "mbit", "mbits/s", "m"]),
        ("Gbit/s", &["gbps", "gb/s", "gbit", "gbits/s", "g"]),
    ],
    base: "bit/s",
    min: 0,
    max: 400_000_000_000,
    range: "at most 400 Gbit/s",
};

/// Short times, in nanoseconds.
pub(crate) static DURATION: Dimension = time("14 ms");

/// Times in the order of a run, in nanoseconds. Only the example differs.
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
            ("ns", &["nsec"]),
            ("us", &["\u{b5}s", "\u{3bc}s", "usec"]),
            ("ms", &["msec"]),
            ("s", &["sec", "secs", "second", "seconds"]),
            ("min", &["m", "mins", "minute", "minutes"]),
            ("h", &["hour", "hours", "hr"]),
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
        ("bytes", &["b"]),
        ("kB", &["k"]),
        ("MB", &["m"]),
        ("GB", &["g"]),
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
    misspelt: &[("packets", &["pkts", "pkt", "p", "segments"])],
    base: "packets",
    min: 1,
    max: 100_000_000,
    range: "1 to 100000000 packets",
};

/// Rates of a random process, in arrivals per 1000 minutes, so that decimal rates per second or minute become integers.
pub(crate) static ARRIVALS: Dimension = Dimension {
    what: "a rate of arrivals",
    example: "10 / s",
    units: &[("/ s", 60_000), ("/ min", 1_000)],
    misspelt: &[
        ("/ s", &["/s", "/sec", "/ sec", "per s", "per second", "Hz"]),
        ("/ min", &["/min", "/ minute", "per min"]),
    ],
    base: "arrivals in 1000 minutes",
    min: 0,
    max: 6_000_000_000,
    range: "at most 100000 / s",
};

/// Parses a rate as in scenarios (`100 Mbit/s`) to bit/s.
///
/// # Errors
/// One sentence that says what to write instead.
pub fn rate_bps(text: &str) -> Result<u64, String> {
    RATE.parse(text).map_err(UnitError::sentence)
}

/// Parses a duration as in scenarios (`50 ms`) to nanoseconds.
///
/// # Errors
/// One sentence that says what to write instead.
pub fn duration_ns(text: &str) -> Result<u64, String> {
    DURATION.parse(text).map_err(UnitError::sentence)
}

impl UnitError {
    /// With a hint from the text itself, if a number that the format does not take is all that is wrong with it. `right`
    /// gives what to write for the text with the number as the format takes it.
    pub(super) fn or_meant(
        self,
        what: &str,
        text: &str,
        right: impl Fn(&str) -> Option<String>,
    ) -> Self {
        let Some(cleaned) = clean(text) else {
            return self;
        };
        let Some(write) = right(&cleaned.text) else {
            return self;
        };
        let hint = match cleaned.negative {
            true => format!("{what} is not negative; write \"{write}\""),
            false => format!("write \"{write}\""),
        };
        Self { hint, ..self }
    }

    fn sentence(self) -> String {
        format!("{} ({})", self.message, self.hint)
    }
}

impl Dimension {
    /// Parses a text to the value in the base unit.
    pub(crate) fn parse(&self, text: &str) -> Result<u64, UnitError> {
        self.exact(text).map_err(|error| {
            let respelt = |meant: &str| {
                let (number, unit) = split(meant)?;
                let respelt = self.respell(number, unit);
                (respelt != self.example).then_some(respelt)
            };
            error.or_meant(self.what, text, |meant| match self.exact(meant) {
                Ok(_) => Some(meant.to_string()),
                Err(_) => respelt(meant).filter(|right| self.exact(right).is_ok()),
            })
        })
    }

    fn exact(&self, text: &str) -> Result<u64, UnitError> {
        let (number, unit) = split(text).ok_or_else(|| self.not(text, self.example.to_string()))?;
        let (decimal, factor) = match self.factor(unit) {
            Some(factor) => (Decimal::parse(number), factor),
            None => {
                let error = self.not(text, self.respell(number, unit));
                let known = unit.is_empty() || self.right_unit(unit).is_some();
                let is_number = Decimal::parse(number).is_some();
                return Err(match known || !is_number {
                    true => error,
                    false => self.with_units(error, unit),
                });
            }
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

    /// The size of a unit in the base unit.
    fn factor(&self, unit: &str) -> Option<u64> {
        let plural = SINGULAR.iter().find(|(_, one)| *one == unit);
        let name = plural.map_or(unit, |(plural, _)| *plural);
        self.units
            .iter()
            .find(|(known, _)| *known == name)
            .map(|(_, factor)| *factor)
    }

    /// Whether this is one of the units.
    pub(super) fn has(&self, unit: &str) -> bool {
        self.factor(unit).is_some()
    }

    /// A regular expression for editors.
    pub(crate) fn pattern(&self) -> String {
        format!("{NUMBER_PATTERN} ?({})", self.alternatives())
    }

    /// The units in a regular expression.
    pub(super) fn alternatives(&self) -> String {
        let singular = SINGULAR
            .iter()
            .map(|(_, one)| *one)
            .filter(|one| self.has(one));
        let units: Vec<_> = self.units().chain(singular).collect();
        units.join("|")
    }

    pub(crate) fn units(&self) -> impl Iterator<Item = &'static str> {
        self.units.iter().map(|(name, _)| *name)
    }

    /// What to write instead of a bare number. A fraction was probably meant in another unit than the example's, so the
    /// example itself is returned for it.
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
            message: format!("\"{}\" is not {}", shorten(text), self.what),
            hint: format!("write \"{write}\""),
        }
    }

    /// The hint for a unit that this kind of quantity does not have: what it is a unit of, and the units that there are.
    fn with_units(&self, error: UnitError, unit: &str) -> UnitError {
        let kinds = [&RATE, &DURATION, &SIZE, &PACKETS];
        let names: Vec<_> = self.units().collect();
        let names = names.join(", ");
        let other = kinds.into_iter().find(|kind| kind.has(unit));
        let hint = match other {
            Some(other) => format!("\"{unit}\" is of {}; {} has {names}", other.what, self.what),
            None => format!("{}; the units are {names}", error.hint),
        };
        UnitError { hint, ..error }
    }

    /// The unit that a misspelt one stands for.
    fn right_unit(&self, unit: &str) -> Option<&'static str> {
        let same = |name: &str| name.eq_ignore_ascii_case(unit);
        let known = self
            .misspelt
            .iter()
            .find(|(_, wrong)| wrong.iter().any(|w| same(w)));
        known
            .map(|(right, _)| *right)
            .or_else(|| self.units().find(|name| same(name)))
    }

    /// The text with the right spelling of the unit, or an example.
    pub(super) fn respell(&self, number: &str, unit: &str) -> String {
        if Decimal::parse(number).is_none() {
            return self.example.to_string();
        }
        if unit.is_empty() {
            return self.with_unit(number);
        }
        match self.right_unit(unit) {
            Some(right) => format!("{number} {right}"),
            None => self.example.to_string(),
        }
    }
}
