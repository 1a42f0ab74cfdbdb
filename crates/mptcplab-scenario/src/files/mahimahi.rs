//! Packet-delivery traces of Mahimahi (Netravali et al., USENIX ATC 2015): each line is a time in milliseconds at which
//! one MTU may leave.

use crate::error::shorten;
use mptcplab_model::link::DeliveryTrace;

/// Bytes per delivery opportunity: `PACKET_SIZE` in Mahimahi's `link_queue.hh`.
pub(crate) const MTU_BYTES: u64 = 1504;
/// Largest time: 30 days.
const MAX_MS: u64 = 30 * 24 * 3_600_000;

/// Description of the format.
pub(crate) const HINT: &str =
    "each line is a time in whole milliseconds, none before the line above, the last above 0";

/// Parses a trace. An error has the number of the line, from 1, and the reason.
pub(crate) fn parse(name: &str, text: &str) -> Result<DeliveryTrace, (usize, String)> {
    let mut opportunities = Vec::new();
    let mut last_ms = 0;
    for (i, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() {
            continue;
        }
        let wrong = |why: &str| (i + 1, format!("\"{}\" {why}", shorten(line)));
        let ms: u64 = line
            .parse()
            .map_err(|_| wrong("is not a whole number of milliseconds"))?;
        if ms < last_ms {
            return Err(wrong("is before the line above"));
        }
        if ms > MAX_MS {
            return Err(wrong("is more than 30 days"));
        }
        last_ms = ms;
        opportunities.push(ms * 1_000_000);
    }
    if opportunities.is_empty() {
        return Err((1, "the file has no line with a time".into()));
    }
    match last_ms {
        0 => Err((text.lines().count().max(1), "the trace ends at 0 ms".into())),
        _ => Ok(DeliveryTrace {
            name: name.to_string(),
            opportunities_ns: opportunities.into(),
            period_ns: last_ms * 1_000_000,
        }),
    }
}

/// Mean rate of a trace if every opportunity is used.
pub(crate) fn mean_rate_bps(trace: &DeliveryTrace) -> u64 {
    let bits = trace.opportunities_ns.len() as u128 * u128::from(MTU_BYTES) * 8;
    let rate = bits * 1_000_000_000 / u128::from(trace.period_ns.max(1));
    u64::try_from(rate).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_repeats_after_its_last_line() {
        let trace = parse("t", "0\n5\n5\n\n20\n").expect("a good trace");
        assert_eq!(
            &*trace.opportunities_ns,
            &[0, 5_000_000, 5_000_000, 20_000_000]
        );
        assert_eq!(trace.period_ns, 20_000_000);
        // 4 x 1504 bytes in 20 ms.
        assert_eq!(mean_rate_bps(&trace), 4 * 1504 * 8 * 50);
    }

    #[test]
    fn bad_lines_are_named() {
        assert_eq!(parse("t", "1\n3\n2\n").map_err(|e| e.0), Err(3));
        assert_eq!(parse("t", "1\nx\n").map_err(|e| e.0), Err(2));
        assert_eq!(parse("t", "").map_err(|e| e.0), Err(1));
        assert_eq!(parse("t", "0\n0\n").map_err(|e| e.0), Err(2));
    }
}
