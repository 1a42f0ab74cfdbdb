//! Numbers in base units, written with a unit as a scenario would write them.

const RATES: &[(&str, u64)] = &[
    ("Gbit/s", 1_000_000_000),
    ("Mbit/s", 1_000_000),
    ("kbit/s", 1_000),
    ("bit/s", 1),
];

const TIMES: &[(&str, u64)] = &[
    ("s", 1_000_000_000),
    ("ms", 1_000_000),
    ("us", 1_000),
    ("ns", 1),
];

const SIZES: &[(&str, u64)] = &[
    ("GB", 1_000_000_000),
    ("MB", 1_000_000),
    ("kB", 1_000),
    ("bytes", 1),
];

const BINARY_SIZES: &[(&str, u64)] = &[("MiB", 1 << 20), ("KiB", 1 << 10)];

/// A rate in bit/s.
pub(crate) fn rate(bps: u64) -> String {
    with_unit(bps, RATES)
}

/// A time in nanoseconds.
pub(crate) fn time(ns: u64) -> String {
    with_unit(ns, TIMES)
}

/// A size in bytes, in binary units where these are whole and decimal ones are not.
pub(crate) fn size(bytes: u64) -> String {
    let is_whole = |&&(_, factor): &&(&str, u64)| bytes > 0 && bytes % factor == 0;
    match BINARY_SIZES.iter().find(is_whole) {
        Some((name, factor)) if bytes % 1000 != 0 => {
            format!("{} {name}", bytes / factor)
        }
        _ => with_unit(bytes, SIZES),
    }
}

/// A probability in percent, with up to nine decimals.
pub(crate) fn percent(p: f64) -> String {
    let text = format!("{:.9}", p * 100.0);
    format!("{} %", text.trim_end_matches('0').trim_end_matches('.'))
}

/// The exact value in the largest unit that needs at most three decimals.
fn with_unit(value: u64, units: &[(&str, u64)]) -> String {
    for &(name, factor) in units {
        let thousandths = u128::from(value) * 1000;
        if value >= factor && thousandths % u128::from(factor) == 0 {
            let fraction = (thousandths / u128::from(factor) % 1000) as u64;
            let text = format!("{}.{fraction:03}", value / factor);
            return format!(
                "{} {name}",
                text.trim_end_matches('0').trim_end_matches('.')
            );
        }
    }
    match units.last() {
        // Not a multiple of a thousandth of any unit that is not larger than the value.
        Some((name, _)) if value > 0 => format!("{value} {name}"),
        Some(_) => format!("0 {}", units.get(1).map_or("", |(name, _)| name)),
        None => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back_as_they_were_written() {
        assert_eq!(rate(10_000_000), "10 Mbit/s");
        assert_eq!(rate(1_500_000), "1.5 Mbit/s");
        assert_eq!(rate(1_000_000_000), "1 Gbit/s");
        assert_eq!(rate(1_234_567), "1234.567 kbit/s");
        assert_eq!(time(14_000_000), "14 ms");
        assert_eq!(time(0), "0 ms");
        assert_eq!(time(90_000_000_000), "90 s");
        assert_eq!(size(1448), "1.448 kB");
        assert_eq!(size(64_000), "64 kB");
        assert_eq!(size(65_536), "64 KiB");
        assert_eq!(size(33_554_432), "32 MiB");
        assert_eq!(size(1_536_000), "1.536 MB");
        assert_eq!(percent(0.001), "0.1 %");
        assert_eq!(percent(0.0), "0 %");
        assert_eq!(percent(1.0), "100 %");
    }
}
