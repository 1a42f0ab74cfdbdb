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
    // The exponent is part of the literal, so that the result is rounded only once.
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

/// What to write instead of a bare number. Numbers up to 1 are taken as probabilities, larger ones as percentages.
pub(crate) fn percent_for_bare_number(number: &str) -> String {
    match number.parse::<f64>() {
        Ok(p) if (0.0..=1.0).contains(&p) => display::percent(p),
        Ok(p) if p <= 100.0 && Decimal::parse(number).is_some() => format!("{number} %"),
        _ => PERCENT_EXAMPLE.to_string(),
    }
}

/// Regular expression of [`percent`].
pub(crate) fn percent_pattern() -> String {
    format!("{NUMBER_PATTERN} ?%")
}
