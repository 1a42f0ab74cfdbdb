//! Exact decimal numbers.

/// Digits with an optional fraction, without sign or exponent.
pub(super) const NUMBER_PATTERN: &str = r"[0-9]{1,15}(\.[0-9]{1,12})?";

/// The decimal fraction `digits / 10^scale`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Decimal {
    pub(super) digits: u128,
    pub(super) scale: u32,
}

impl Decimal {
    pub(super) fn parse(text: &str) -> Option<Self> {
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

    /// `self * factor`, if the product is a whole number.
    pub(super) fn times(self, factor: u64) -> Option<u128> {
        let product = self.digits.checked_mul(u128::from(factor))?;
        let divisor = 10u128.pow(self.scale);
        (product % divisor == 0).then_some(product / divisor)
    }
}

/// Splits `"10 Mbit/s"` into `("10", "Mbit/s")`; `None` if the text does not begin with a digit.
pub(super) fn split(text: &str) -> Option<(&str, &str)> {
    let end = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    (!number.is_empty()).then(|| (number, unit.strip_prefix(' ').unwrap_or(unit)))
}
