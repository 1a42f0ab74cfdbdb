//! The kinds of quantities in the scenario format.

use super::dimension::{Dimension, UnitError};
use super::percent::{PERCENT_EXAMPLE, percent, percent_for_bare_number, percent_pattern};
use super::queue::{QUEUE_EXAMPLES, queue, queue_pattern};
use super::span::{
    EXPONENTIAL_EXAMPLE, UNIFORM_EXAMPLE, period, period_pattern, span_in, span_pattern,
};

/// A kind of number with a unit.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Quantity {
    Plain(&'static Dimension),
    Percent,
    Queue,
    /// A time that may be random.
    Span(&'static Dimension),
    /// A span that may be exponential, too.
    Period,
}

impl Quantity {
    pub(crate) fn what(self) -> &'static str {
        match self {
            Self::Plain(d) => d.what,
            Self::Percent => "a percentage",
            Self::Queue => "a queue size",
            Self::Span(_) => "a duration or a random span",
            Self::Period => "a duration or a random period",
        }
    }

    pub(crate) fn examples(self) -> String {
        match self {
            Self::Plain(d) => format!("\"{}\"", d.example),
            Self::Percent => format!("\"{}\"", PERCENT_EXAMPLE),
            Self::Queue => QUEUE_EXAMPLES.to_string(),
            Self::Span(d) => format!("\"{}\" or \"{}\"", d.example, UNIFORM_EXAMPLE),
            Self::Period => format!(
                "\"1 s\", \"{}\" or \"{}\"",
                UNIFORM_EXAMPLE, EXPONENTIAL_EXAMPLE
            ),
        }
    }

    /// What to write instead of a number without a unit.
    pub(crate) fn for_bare_number(self, number: &str) -> String {
        match self {
            Self::Plain(d) | Self::Span(d) => format!("\"{}\"", d.with_unit(number)),
            Self::Percent => percent_for_bare_number(number),
            Self::Queue | Self::Period => self.examples(),
        }
    }

    pub(crate) fn check(self, text: &str) -> Result<(), UnitError> {
        match self {
            Self::Plain(d) => d.parse(text).map(drop),
            Self::Percent => percent(text).map(drop),
            Self::Queue => queue(text).map(drop),
            Self::Span(d) => span_in(text, d).map(drop),
            Self::Period => period(text).map(drop),
        }
    }

    pub(crate) fn pattern(self) -> String {
        match self {
            Self::Plain(d) => d.pattern(),
            Self::Percent => percent_pattern(),
            Self::Queue => queue_pattern(),
            Self::Span(_) => span_pattern(),
            Self::Period => period_pattern(),
        }
    }
}
