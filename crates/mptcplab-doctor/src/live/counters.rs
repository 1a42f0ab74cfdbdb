//! The kernel's MPTCP counters of one network namespace, and the causes of fallbacks that they suggest.
//!
//! They count all connections since the namespace was created, so they suggest a cause but do not prove it.

use std::collections::BTreeMap;
use std::fs;

const FILE: &str = "/proc/net/netstat";
const ROWS: &str = "MPTcpExt:";

/// Counters of fallbacks, and their causes.
const FALLBACKS: &[(&str, &str)] = &[
    (
        "MPCapableFallbackSYNACK",
        "the peer or a middlebox answered without MPTCP",
    ),
    (
        "MPCapableFallbackACK",
        "the last segment of the client's handshake arrived without MPTCP",
    ),
    (
        "MPCapableSYNTXDrop",
        "SYNs with MPTCP were not answered, so one without MPTCP was sent",
    ),
    (
        "MPCapableSYNTXDisabled",
        "MPTCP to that peer is temporarily disabled after such losses",
    ),
    (
        "Blackhole",
        "packets with MPTCP options were dropped in the network",
    ),
    (
        "MPFallbackTokenInit",
        "no token was available for the connection",
    ),
    (
        "MPCapableDataFallback",
        "the first data arrived without an MPTCP mapping",
    ),
    (
        "DssFallback",
        "data arrived without an MPTCP mapping: a middlebox removes options",
    ),
    (
        "DSSCorruptionFallback",
        "an MPTCP mapping was corrupted: a middlebox changes data",
    ),
    (
        "DataCsumErr",
        "a checksum was wrong: a middlebox changes data",
    ),
    (
        "InfiniteMapRx",
        "the peer stopped using MPTCP after an error",
    ),
    (
        "InfiniteMapTx",
        "this host stopped using MPTCP after corrupted data",
    ),
    (
        "SimultConnectFallback",
        "both ends connected simultaneously",
    ),
    (
        "MD5SigFallback",
        "TCP's MD5 option cannot be used with MPTCP",
    ),
];

/// Counters by name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Counters(BTreeMap<String, u64>);

impl Counters {
    /// Reads the counters of this process's namespace; there are none if the kernel has no MPTCP.
    pub(super) fn read() -> Self {
        Self::parse(&fs::read_to_string(FILE).unwrap_or_default())
    }

    /// Parses two lines: names, then values.
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

    /// The value of a counter; 0 if the kernel does not have it.
    pub(super) fn get(&self, name: &str) -> u64 {
        self.0.get(name).copied().unwrap_or(0)
    }

    /// The causes of fallbacks whose counters are not 0.
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
            ["the peer or a middlebox answered without MPTCP (MPCapableFallbackSYNACK = 2)"]
        );
        assert_eq!(
            Counters::parse("TcpExt: a\nTcpExt: 1\n"),
            Counters::default()
        );
    }
}
