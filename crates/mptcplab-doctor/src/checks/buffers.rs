//! Compares the socket buffers with the bandwidth-delay product.

use super::super::facts::Facts;
use super::super::finding::Finding;

const AREA: &str = "Buffers";
/// The kernel uses the other half of a buffer for its bookkeeping.
const OVERHEAD: u128 = 2;
/// Round-trip time that is assumed without `--rtt`.
const USUAL_RTT_MS: u128 = 100;

/// The rate and round-trip time that the buffers should support.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TargetBdp {
    /// Rate of all subflows of a connection together.
    pub(crate) rate_bps: u64,
    /// Round-trip time of the slowest path.
    pub(crate) rtt_ns: u64,
}

impl TargetBdp {
    /// Bytes in flight.
    fn bytes(self) -> u128 {
        u128::from(self.rate_bps) * u128::from(self.rtt_ns) / 8 / 1_000_000_000
    }
}

pub(super) fn check(facts: &Facts, target_bdp: Option<TargetBdp>) -> Vec<Finding> {
    [
        ("net.ipv4.tcp_rmem", "receive"),
        ("net.ipv4.tcp_wmem", "send"),
    ]
    .into_iter()
    .filter_map(|(sysctl, name)| buffer(facts, sysctl, name, target_bdp))
    .collect()
}

fn buffer(
    facts: &Facts,
    sysctl: &str,
    name: &'static str,
    target_bdp: Option<TargetBdp>,
) -> Option<Finding> {
    let words = facts.words(sysctl);
    let [least, first, most] = words.as_slice() else {
        return None;
    };
    let bytes: u128 = most.parse().ok()?;
    let payload = bytes / OVERHEAD;
    let found = format!("up to {} ({sysctl})", size(bytes));
    let Some(target_bdp) = target_bdp else {
        let bps = payload * 8 * 1000 / USUAL_RTT_MS;
        let meaning = format!(
            "half of it holds payload: enough for {} at a round-trip time of {USUAL_RTT_MS} ms, \
             all subflows together (use --rate and --rtt for other values)",
            rate(bps)
        );
        return Some(Finding::ok(AREA, name, found, meaning));
    };
    let bdp = target_bdp.bytes();
    let meaning = format!(
        "half of it holds payload; that rate needs {} in flight",
        size(bdp)
    );
    let line = Finding::ok(AREA, name, found, meaning);
    Some(if payload >= bdp {
        line
    } else {
        let wanted = (bdp * OVERHEAD).next_multiple_of(4096);
        let carried = payload * 8 * 1_000_000_000 / u128::from(target_bdp.rtt_ns.max(1));
        let meaning = format!(
            "{}, so no more than {} is possible",
            line.meaning,
            rate(carried)
        );
        Finding { meaning, ..line }.warn(format!("sysctl -w {sysctl}=\"{least} {first} {wanted}\""))
    })
}

/// A size with its binary unit, such as `6 MiB`.
fn size(bytes: u128) -> String {
    scaled(bytes, 1024, &["B", "KiB", "MiB", "GiB", "TiB"])
}

/// A rate with its unit, such as `250 Mbit/s`.
fn rate(bps: u128) -> String {
    scaled(
        bps,
        1000,
        &["bit/s", "kbit/s", "Mbit/s", "Gbit/s", "Tbit/s"],
    )
}

/// A value with its unit and three significant digits.
fn scaled(value: u128, step: u128, units: &[&str]) -> String {
    let mut size = 1;
    let mut unit = 0;
    while value >= size * step && unit + 1 < units.len() {
        size *= step;
        unit += 1;
    }
    let number = value as f64 / size as f64;
    let digits = if number >= 99.95 || number.fract() == 0.0 {
        0
    } else {
        1
    };
    format!("{number:.digits$} {}", units[unit])
}

#[cfg(test)]
mod tests {
    use super::super::super::finding::Status;
    use super::super::tests::{healthy, healthy_except, line};
    use super::*;

    #[test]
    fn half_of_the_buffer_is_the_window() {
        // 6 MiB / 2 = 3145728 B; * 8 / 0.1 s = 251.7 Mbit/s.  4 MiB / 2 = 2097152 B; 167.8 Mbit/s.
        let found = check(&healthy(), None);
        assert!(
            line(&found, "receive")
                .meaning
                .contains("252 Mbit/s at a round-trip time of 100 ms")
        );
        assert!(line(&found, "send").meaning.contains("168 Mbit/s"));
    }

    #[test]
    fn a_small_buffer_comes_with_the_command_that_enlarges_it() {
        // 400 Mbit/s * 50 ms / 8 = 2.5 MB: more than half of the send buffer (2097152), less than of the other.
        let target_bdp = TargetBdp {
            rate_bps: 400_000_000,
            rtt_ns: 50_000_000,
        };
        let found = check(&healthy(), Some(target_bdp));
        assert_eq!(line(&found, "receive").status, Status::Ok);
        let send = line(&found, "send");
        assert_eq!(send.status, Status::Warn);
        // 5000000 rounded up to whole pages: 1221 * 4096 = 5001216.
        assert_eq!(
            send.remedy.as_deref(),
            Some("sysctl -w net.ipv4.tcp_wmem=\"4096 16384 5001216\"")
        );
        // 2097152 B * 8 / 0.05 s = 335.5 Mbit/s.
        assert!(
            send.meaning
                .ends_with("no more than 336 Mbit/s is possible")
        );
        let mended = healthy_except(|facts| {
            facts
                .sysctls
                .insert("net.ipv4.tcp_wmem", "4096 16384 5001216".into());
        });
        assert_eq!(
            line(&check(&mended, Some(target_bdp)), "send").status,
            Status::Ok
        );
    }

    #[test]
    fn sizes_and_rates_are_for_people() {
        assert_eq!(size(33_554_432), "32 MiB");
        assert_eq!(size(5_001_216), "4.8 MiB");
        assert_eq!(rate(999), "999 bit/s");
        assert_eq!(rate(1_500), "1.5 kbit/s");
        assert_eq!(rate(251_658_240), "252 Mbit/s");
    }

    #[test]
    fn a_setting_that_is_not_three_numbers_is_left_out() {
        let odd = healthy_except(|facts| {
            facts.sysctls.insert("net.ipv4.tcp_rmem", "4096".into());
        });
        assert!(
            check(&odd, None)
                .iter()
                .all(|finding| finding.name != "receive")
        );
    }
}
