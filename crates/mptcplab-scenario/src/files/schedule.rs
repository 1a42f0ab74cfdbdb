//! Files of link changes: CSV with a heading. All numbers are whole, so that every reader gets the same values.

use crate::error::shorten;
use mptcplab_model::link::{Change, Loss};

/// Description of the format.
pub(crate) const HINT: &str = "lines of whole numbers under a heading such as at_ms,rate_bps,loss_ppm, in time order; \
     columns: at_ms, rate_bps, delay_us, loss_ppm, up (0 or 1); an empty field leaves a property as it is; # begins a comment";
/// Largest time: 30 days.
const MAX_MS: u64 = 30 * 24 * 3_600_000;
/// Largest delay: an hour. A larger one is probably in another unit.
const MAX_DELAY_US: u64 = 3_600_000_000;
/// Largest rate: 1 Pbit/s. A larger one is probably in another unit.
const MAX_RATE_BPS: u64 = 1_000_000_000_000_000;

/// A change at the start of the run that leaves every property as it is.
const NOTHING: Change = Change {
    at_ns: 0,
    rate_bps: None,
    delay_ns: None,
    loss: None,
    up: None,
};

/// A column of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Column {
    At,
    Rate,
    Delay,
    Loss,
    Up,
}

impl Column {
    const ALL: [(&'static str, Self, u64); 5] = [
        ("at_ms", Self::At, MAX_MS),
        ("rate_bps", Self::Rate, MAX_RATE_BPS),
        ("delay_us", Self::Delay, MAX_DELAY_US),
        ("loss_ppm", Self::Loss, 1_000_000),
        ("up", Self::Up, 1),
    ];
}

/// Parses the changes. An error has the number of the line, from 1, and the reason.
pub(crate) fn parse(text: &str) -> Result<Vec<Change>, (usize, String)> {
    let mut lines = text
        .lines()
        .enumerate()
        .map(|(i, line)| (i + 1, line.trim()))
        .filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
    let (number, heading) = lines.next().ok_or((1, "no heading".to_string()))?;
    let columns = columns(heading).map_err(|why| (number, why))?;
    let mut changes: Vec<Change> = Vec::new();
    for (number, line) in lines {
        let change = change(&columns, line).map_err(|why| (number, why))?;
        if changes
            .last()
            .is_some_and(|before| before.at_ns >= change.at_ns)
        {
            return Err((number, "is not after the line above".into()));
        }
        changes.push(change);
    }
    match changes.len() {
        0 => Err((number, "no change under the heading".into())),
        _ => Ok(changes),
    }
}

fn columns(heading: &str) -> Result<Vec<(&'static str, Column, u64)>, String> {
    let mut columns: Vec<(&'static str, Column, u64)> = Vec::new();
    for word in heading.split(',').map(str::trim) {
        let known = Column::ALL.iter().find(|(name, ..)| *name == word);
        let column = known.ok_or_else(|| format!("no column \"{}\"", shorten(word)))?;
        if columns.contains(column) {
            return Err(format!("the column {word} is there twice"));
        }
        columns.push(*column);
    }
    let has_time = columns.iter().any(|(_, column, _)| *column == Column::At);
    match has_time && columns.len() > 1 {
        true => Ok(columns),
        false => Err("the heading names at_ms and at least one property".into()),
    }
}

fn change(columns: &[(&'static str, Column, u64)], line: &str) -> Result<Change, String> {
    let fields: Vec<&str> = line.split(',').map(str::trim).collect();
    if fields.len() != columns.len() {
        return Err(format!(
            "{} fields under {} columns",
            fields.len(),
            columns.len()
        ));
    }
    let (mut at_ms, mut change) = (None, NOTHING);
    for (field, (name, column, most)) in fields.iter().zip(columns) {
        if field.is_empty() {
            continue;
        }
        let number: Option<u64> = field.parse().ok().filter(|n| n <= most);
        let number = number.ok_or_else(|| {
            format!(
                "{name}: \"{}\" is not a whole number from 0 to {most}",
                shorten(field)
            )
        })?;
        match column {
            Column::At => at_ms = Some(number),
            Column::Rate => change.rate_bps = Some(number),
            Column::Delay => change.delay_ns = Some(number * 1000),
            Column::Loss => change.loss = Some(loss(number)),
            Column::Up => change.up = Some(number == 1),
        }
    }
    change.at_ns = at_ms.ok_or("no time")? * 1_000_000;
    let at_ns = change.at_ns;
    match change == (Change { at_ns, ..NOTHING }) {
        true => Err("a change of nothing".into()),
        false => Ok(change),
    }
}

fn loss(ppm: u64) -> Loss {
    match ppm {
        0 => Loss::None,
        // Exact, because `ppm` is at most a million.
        ppm => Loss::Bernoulli {
            p: ppm as f64 / 1e6,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_field_changes_nothing() {
        let text = "# a walk\nat_ms,loss_ppm,rate_bps,up,delay_us\n\n0,500,11000000,,\n100,,0,,\n250,0,,0,7500\n";
        let changes = parse(text).expect("a good file");
        let plain = |at_ms: u64| Change {
            at_ns: at_ms * 1_000_000,
            ..NOTHING
        };
        let expected = [
            Change {
                rate_bps: Some(11_000_000),
                loss: Some(Loss::Bernoulli { p: 0.0005 }),
                ..plain(0)
            },
            Change {
                rate_bps: Some(0),
                ..plain(100)
            },
            Change {
                loss: Some(Loss::None),
                up: Some(false),
                delay_ns: Some(7_500_000),
                ..plain(250)
            },
        ];
        assert_eq!(changes, expected);
    }

    #[test]
    fn bad_lines_are_named() {
        let line = |text: &str| parse(text).map_err(|wrong| wrong.0);
        for (text, number) in [
            ("", 1),
            ("at_ms\n1\n", 1),
            ("rate_bps,loss_ppm\n1,2\n", 1),
            ("at_ms,rate\n1,2\n", 1),
            ("at_ms,up,up\n1,1,1\n", 1),
            ("at_ms,up\n", 1),
            ("at_ms,up\n1,1\n2\n", 3),
            ("at_ms,up\n1,1\n1,0\n", 3),
            ("at_ms,up\n1,2\n", 2),
            ("at_ms,up\n,1\n", 2),
            ("at_ms,up\n# no\n1,\n", 3),
            ("at_ms,loss_ppm\n1,1000001\n", 2),
            ("at_ms,delay_us\n1,-5\n", 2),
        ] {
            assert_eq!(line(text), Err(number), "{text:?}");
        }
    }
}
