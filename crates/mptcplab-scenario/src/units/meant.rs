//! The quantity that a wrong text probably means: without a sign, with a decimal point, without an exponent.

/// A text as the format writes it, and whether it had a minus sign.
pub(super) struct Cleaned {
    pub(super) text: String,
    pub(super) negative: bool,
}

/// Rewrites the number of a text: `-10 ms` to `10 ms`, `10,5 Mbit/s` to `10.5 Mbit/s`, `1e7 bit/s` to `10000000 bit/s`.
/// `None` if there is no number, or nothing to change.
pub(super) fn clean(text: &str) -> Option<Cleaned> {
    let trimmed = text.trim();
    let unsigned = trimmed.trim_start_matches(['-', '\u{2212}', '\u{2013}']);
    let negative = unsigned.len() < trimmed.len();
    let rest = unsigned.trim_start_matches('+').trim_start();
    let end = rest
        .find(|c: char| !c.is_ascii_digit() && !matches!(c, '.' | ',' | '_' | '\''))
        .unwrap_or(rest.len());
    let (number, after) = rest.split_at(end);
    if !number.bytes().any(|b| b.is_ascii_digit()) {
        return None;
    }
    let (exponent, unit) = exponent(after);
    let number = shift(&plain(number)?, exponent)?;
    let unit = unit.split_whitespace().collect::<Vec<_>>().join(" ");
    let cleaned = match unit.is_empty() {
        true => number,
        false => format!("{number} {unit}"),
    };
    (cleaned != text).then_some(Cleaned {
        text: cleaned,
        negative,
    })
}

/// Digits with at most one point. A comma before three digits, or one of several, groups digits; any other is a point.
fn plain(number: &str) -> Option<String> {
    let number: String = number
        .chars()
        .filter(|c| !matches!(c, '_' | '\''))
        .collect();
    let groups = |separator: char| {
        let mut parts = number.split(separator).skip(1).peekable();
        parts.peek().is_some()
            && parts.all(|part| part.split('.').next().is_some_and(|p| p.len() == 3))
    };
    let number = match (number.matches(',').count(), number.matches('.').count()) {
        (0, 0 | 1) => number,
        (0, _) => return None,
        (1, 0) if !groups(',') || number.starts_with('0') => number.replace(',', "."),
        (_, 0 | 1) if groups(',') => number.replace(',', ""),
        _ => return None,
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((&number, ""));
    let whole = if whole.is_empty() { "0" } else { whole };
    Some(match fraction.is_empty() {
        true => whole.to_string(),
        false => format!("{whole}.{fraction}"),
    })
}

/// The exponent at the start of a text, and what follows it.
fn exponent(text: &str) -> (i32, &str) {
    let Some(rest) = text.strip_prefix(['e', 'E']) else {
        return (0, text);
    };
    let signed = rest.strip_prefix(['+', '-']).unwrap_or(rest);
    let digits = signed.len()
        - signed
            .trim_start_matches(|c: char| c.is_ascii_digit())
            .len();
    let end = rest.len() - signed.len() + digits;
    match rest[..end].parse() {
        Ok(exponent) if digits > 0 => (exponent, &rest[end..]),
        _ => (0, text),
    }
}

/// Moves the point of a number by some digits.
fn shift(number: &str, by: i32) -> Option<String> {
    if by == 0 {
        return Some(number.to_string());
    }
    if by.abs() > 12 {
        return None;
    }
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let places = usize::try_from(by.unsigned_abs()).ok()?;
    let (whole, fraction) = match by > 0 {
        true => {
            let padded = format!("{fraction:0<places$}");
            let (moved, left) = padded.split_at(places);
            (format!("{whole}{moved}"), left.to_string())
        }
        false => {
            let padded = format!("{whole:0>width$}", width = places + 1);
            let (left, moved) = padded.split_at(padded.len() - places);
            (left.to_string(), format!("{moved}{fraction}"))
        }
    };
    let whole = match whole.trim_start_matches('0') {
        "" => "0",
        digits => digits,
    };
    Some(match fraction.trim_end_matches('0') {
        "" => whole.to_string(),
        fraction => format!("{whole}.{fraction}"),
    })
}

#[cfg(test)]
mod tests {
    use super::clean;

    #[test]
    fn numbers_become_what_the_format_takes() {
        let cleaned = |text| clean(text).map(|c| (c.text, c.negative));
        let same = |text: &str| Some((text.to_string(), false));
        assert_eq!(cleaned("-10 ms"), Some(("10 ms".into(), true)));
        assert_eq!(cleaned("\u{2212}10 ms"), Some(("10 ms".into(), true)));
        assert_eq!(cleaned("10,5 Mbit/s"), same("10.5 Mbit/s"));
        assert_eq!(cleaned("0,125 s"), same("0.125 s"));
        assert_eq!(cleaned("1,000 Mbit/s"), same("1000 Mbit/s"));
        assert_eq!(cleaned("1,000,000.5 bit/s"), same("1000000.5 bit/s"));
        assert_eq!(cleaned("1_000 bit/s"), same("1000 bit/s"));
        assert_eq!(cleaned("1e7 bit/s"), same("10000000 bit/s"));
        assert_eq!(cleaned("2.5E-3 s"), same("0.0025 s"));
        assert_eq!(cleaned(".5 ms"), same("0.5 ms"));
        assert_eq!(cleaned("5. ms"), same("5 ms"));
        assert_eq!(cleaned("  5\u{a0}ms "), same("5 ms"));
        assert_eq!(cleaned("+5 ms"), same("5 ms"));
        for text in [
            "5 ms",
            "ms",
            "",
            "-",
            "1.2.3 s",
            "1,23,4 s",
            "uniform(0 s, 1 s)",
        ] {
            assert_eq!(cleaned(text), None, "{text}");
        }
    }
}
