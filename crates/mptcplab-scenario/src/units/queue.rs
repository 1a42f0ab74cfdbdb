//! Queue sizes: packets, bytes, drain time or bandwidth-delay products.

use super::decimal::{Decimal, NUMBER_PATTERN, split};
use super::dimension::{DURATION, Dimension, PACKETS, SIZE, UnitError};
use crate::error::shorten;
use mptcplab_model::link::QueueLimit;

/// The size of a queue before it is resolved for its link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum QueueSize {
    Fixed(QueueLimit),
    /// The time to drain at the link's rate.
    Nanoseconds(u64),
    /// `digits / 10^scale` bandwidth-delay products.
    Bdp(BdpFactor),
}

/// A number of bandwidth-delay products.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BdpFactor(Decimal);

impl BdpFactor {
    /// ceil(factor x rate x RTT / (8 x frame)) packets, at least 1 (docs/reference/scenario-format.md, `queue`).
    pub(crate) fn packets(self, rate_bps: u64, base_rtt_ns: u64, frame_bytes: u64) -> Option<u128> {
        let bits_times_ns = u128::from(rate_bps).checked_mul(u128::from(base_rtt_ns))?;
        let over = bits_times_ns.checked_mul(self.0.digits)?;
        let under = 10u128
            .pow(self.0.scale)
            .checked_mul(8 * u128::from(frame_bytes) * 1_000_000_000)?;
        Some(over.div_ceil(under).max(1))
    }
}

pub(crate) const QUEUE_EXAMPLES: &str = "\"100 packets\", \"64 kB\", \"50 ms\" or \"1 BDP\"";

/// Parses a queue size.
pub(crate) fn queue(text: &str) -> Result<QueueSize, UnitError> {
    exact(text).map_err(|error| {
        error.or_meant("a queue size", text, |meant| {
            exact(meant).is_ok().then(|| meant.to_string())
        })
    })
}

fn exact(text: &str) -> Result<QueueSize, UnitError> {
    let not = |hint: String| UnitError {
        message: format!("\"{}\" is not a queue size", shorten(text)),
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
        if dimension.has(unit) {
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
    let units = [&PACKETS, &SIZE, &DURATION].map(Dimension::alternatives);
    format!("{NUMBER_PATTERN} ?({}|BDP)", units.join("|"))
}
