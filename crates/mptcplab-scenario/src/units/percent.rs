//! Probabilities, written in percent.

use super::decimal::{Decimal, NUMBER_PATTERN, split};
use super::dimension::UnitError;
use super::display;
use crate::error::shorten;

pub(crate) const PERCENT_EXAMPLE: &str = "0.1 %";

/// Parses `"0.1 %"` to the `f64` nearest to 0.001.
pub(crate) fn percent(text: &str) -> Result<f64, UnitError> {
    exact(text).map_err(|error| {
        error.or_meant("a percentage", text, |meant| match exact(meant) {
            Ok(_) => Some(meant.to_string()),
            Err(_) => split(meant)
                .filter(|(_, unit)| unit.is_empty() || unit.starts_with(['%', 'p', 'P']))
                .map(|(number, _)| format!("{number} %"))
                .filter(|right| exact(right).is_ok()),
        })
    })
}

fn exact(text: &str) -> Result<f64, UnitError> {
    let not = |write: String| UnitError {
        message: format!("\"{}\" is not a percentage", shorten(text)),
        hint: format!("write {write}"),
    };
    let example = || not(format!("\"{PERCENT_EXAMPLE}\""));
    let (number, unit) = split(text).ok_or_else(example)?;
    Decimal::parse(number).ok_or_else(example)?;
    if unit.is_empty() {
        return Err(not(percent_for_bare_number(number)));
    }
    if unit != "%" {
        return Err(match unit.starts_with(['%', 'p', 'P']) {
            true => not(format!("\"{number} %\"")),
            false => example(),
        });
    }
    // The exponent is part of the literal, so that the result is rounded only once.
    let p: f64 = format!("{number}e-2").parse().map_err(|_| example())?;
    match p <= 1.0 {
        true => Ok(p),
        false => Err(UnitError {
            message: format!("\"{text}\" is more than 100 %"),
            hint: "a probability lies between \"0 %\" and \"100 %\"".into(),
        }),
    }
}

/// What to write instead of a number without a unit. Up to 1, it may be a probability or a percentage.
pub(crate) fn percent_for_bare_number(number: &str) -> String {
    let as_percentage = Decimal::parse(number).map(|_| format!("\"{number} %\""));
    let as_probability = |p| format!("\"{}\" for a probability of {number}", display::percent(p));
    match (number.parse::<f64>(), as_percentage) {
        (Ok(0.0), _) => "\"0 %\"".into(),
        (Ok(p), Some(percentage)) if (0.0..=1.0).contains(&p) => {
            format!("{}, or {percentage}", as_probability(p))
        }
        (Ok(p), None) if (0.0..=1.0).contains(&p) => as_probability(p),
        (Ok(p), Some(percentage)) if p <= 100.0 => percentage,
        _ => format!("\"{PERCENT_EXAMPLE}\""),
    }
}

/// Regular expression of [`percent`].
pub(crate) fn percent_pattern() -> String {
    format!("{NUMBER_PATTERN} ?%")
}
