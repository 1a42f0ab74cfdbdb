//! Durations that may be random: fixed, uniform or exponential.

use super::dimension::{DURATION, Dimension, UnitError};
use crate::error::shorten;
use mptcplab_model::traffic::DurationDistribution;

pub(crate) const UNIFORM_EXAMPLE: &str = "uniform(0 s, 1 s)";

/// Parses `"1 s"` or `"uniform(0 s, 1 s)"` to the two ends in nanoseconds, which are equal for a fixed span.
pub(crate) fn span(text: &str) -> Result<(u64, u64), UnitError> {
    span_in(text, &DURATION)
}

/// The same, with hints in the unit of `times`.
pub(crate) fn span_in(text: &str, times: &Dimension) -> Result<(u64, u64), UnitError> {
    let not = || UnitError {
        message: format!("\"{}\" is not a random span", shorten(text)),
        hint: format!("write \"{UNIFORM_EXAMPLE}\""),
    };
    let Some(inside) = text.strip_prefix("uniform") else {
        if text.contains('(') {
            return Err(not());
        }
        return times.parse(text).map(|ns| (ns, ns));
    };
    let inside = inside
        .trim()
        .strip_prefix('(')
        .and_then(|s| s.strip_suffix(')'))
        .ok_or_else(not)?;
    let (lo, hi) = inside.split_once(',').ok_or_else(not)?;
    let (lo, hi) = (times.parse(lo.trim())?, times.parse(hi.trim())?);
    match lo < hi {
        true => Ok((lo, hi)),
        false => Err(UnitError {
            message: format!("\"{text}\" is empty: the first end is not before the second"),
            hint: format!("write \"{UNIFORM_EXAMPLE}\""),
        }),
    }
}

pub(crate) const EXPONENTIAL_EXAMPLE: &str = "exponential(100 ms)";

/// Parses a span that may be exponential, too, as in `"exponential(100 ms)"`.
pub(crate) fn period(text: &str) -> Result<DurationDistribution, UnitError> {
    let Some(inside) = text.strip_prefix("exponential") else {
        if let Some(mean) = argument_of_another(text) {
            return Err(UnitError {
                message: format!("\"{}\" is not a random period", shorten(text)),
                hint: format!("write \"exponential({mean})\""),
            });
        }
        return span(text).map(|(lo_ns, hi_ns)| match lo_ns == hi_ns {
            true => DurationDistribution::Fixed(lo_ns),
            false => DurationDistribution::Uniform { lo_ns, hi_ns },
        });
    };
    let mean = inside
        .trim()
        .strip_prefix('(')
        .and_then(|s| s.strip_suffix(')'))
        .ok_or_else(|| UnitError {
            message: format!("\"{}\" is not a random span", shorten(text)),
            hint: format!("write \"{EXPONENTIAL_EXAMPLE}\""),
        })?;
    DURATION
        .parse(mean.trim())
        .map(|mean_ns| DurationDistribution::Exponential { mean_ns })
}

/// The duration in `"exp(1 s)"` and the like: what has one argument, and is not uniform, can only mean an exponential period.
fn argument_of_another(text: &str) -> Option<&str> {
    let (name, rest) = text.split_once('(')?;
    let inside = rest.strip_suffix(')')?.trim();
    (name.trim() != "uniform" && DURATION.parse(inside).is_ok()).then_some(inside)
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
