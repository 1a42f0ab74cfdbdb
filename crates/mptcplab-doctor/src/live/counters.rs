//! The kernel's counters of MPTCP in one network namespace, and what those of fallbacks mean.
//!
//! They count all connections since the namespace was made, so they hint at a reason and never prove it.

use std::collections::BTreeMap;
use std::fs;

const FILE: &str = "/proc/net/netstat";
const ROWS: &str = "MPTcpExt:";

/// Counter, and why it makes a connection plain TCP.
const FALLBACKS: &[(&str, &str)] = &[
    (
        "MPCapableFallbackSYNACK",
        "the peer, or a box on the way, answered without MPTCP",
    ),
    (
        "MPCapableFallbackACK",
        "the client's last segment of the handshake came without MPTCP",
    ),
    (
        "MPCapableSYNTXDrop",
        "SYNs with MPTCP got no answer, so that one without was sent",
    ),
    (
        "MPCapableSYNTXDisabled",
        "MPTCP to that peer is switched off for a while after such losses",
    ),
    ("Blackhole", "MPTCP was found to be dropped on the way"),
    (
        "MPFallbackTokenInit",
        "no token was free for the connection",
    ),
    (
        "MPCapableDataFallback",
        "the first data came without a mapping to the connection",
    ),
    (
        "DssFallback",
        "data came without a mapping to the connection: a box on the way strips options",
    ),
    (
        "DSSCorruptionFallback",
        "a mapping was damaged: a box on the way changes data",
    ),
    (
        "DataCsumErr",
        "a checksum was wrong: a box on the way changes data",
    ),
    (
        "InfiniteMapRx",
        "the peer gave up MPTCP after an error of its own",
    ),
    ("InfiniteMapTx", "MPTCP was given up after damaged data"),
    ("SimultConnectFallback", "both ends connected at once"),
    ("MD5SigFallback", "TCP's MD5 option excludes MPTCP"),
];

/// Counters by name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Counters(BTreeMap<String, u64>);

impl Counters {
    /// Those of the namespace that this process is in; none where the kernel has no MPTCP.
    pub(super) fn read() -> Self {
        Self::parse(&fs::read_to_string(FILE).unwrap_or_default())
    }

    /// Two lines: names, then values.
    pub(super) fn parse(text: &str) -> Self {
        let mut rows = text.lines().filter_map(|line| line.strip_prefix(ROWS));
        let (Some(names), Some(values)) = (rows.next(), rows.next()) else {
            return Self::default();
        };
        let numbers = values
            .split_whitespace()
            .map(|word| word.parse().unwrap_or(0));
        Self(
            names
                .split_whitespace()
                .map(str::to_owned)
                .zip(numbers)
                .collect(),
        )
    }

    /// A counter; 0 if the kernel has none of that name.
    pub(super) fn get(&self, name: &str) -> u64 {
        self.0.get(name).copied().unwrap_or(0)
    }

    /// Why connections here fell back to TCP: every cause that was counted.
    pub(super) fn fallbacks(&self) -> Vec<String> {
        FALLBACKS
            .iter()
            .filter(|(name, _)| self.get(name) > 0)
            .map(|(name, meaning)| format!("{meaning} ({name} = {})", self.get(name)))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_values_meet_in_their_columns() {
        let text = "TcpExt: SyncookiesSent\nTcpExt: 9\nMPTcpExt: MPJoinSynTx MPCapableFallbackSYNACK AddAddr\n\
                    MPTcpExt: 4 2 0\n";
        let counters = Counters::parse(text);
        assert_eq!(counters.get("MPJoinSynTx"), 4);
        assert_eq!(counters.get("AddAddr"), 0);
        assert_eq!(counters.get("SyncookiesSent"), 0);
        assert_eq!(
            counters.fallbacks(),
            ["the peer, or a box on the way, answered without MPTCP (MPCapableFallbackSYNACK = 2)"]
        );
        assert_eq!(
            Counters::parse("TcpExt: a\nTcpExt: 1\n"),
            Counters::default()
        );
    }
}
