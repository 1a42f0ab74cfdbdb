//! A flow's columns from the kernel's TCP_INFO and MPTCP_INFO at the two ends of its connections.
//!
//! Where the kernel does not report a value, it is derived, or null in the trace if that is impossible:
//! - `ooo_bytes` is the payload that the emulator delivered minus what the receiver has in order. These also differ by
//!   data that arrived twice, so the column is null from the first duplicate or reinjection on.
//! - `duplicate_pkts` counts the DSACK blocks that the senders received. It is null from the first reinjection on, because
//!   the kernel does not count the duplicates that reinjections cause.
//! - `blocked_ns` is null for MPTCP: subflows count only the time in which data waited in their own queue.
//! - `reinjected_pkts` is the bytes that the connection reinjected divided by the size of a segment, rounded up. It is null
//!   before Linux 6.5, where `sent_bytes` of MPTCP includes reinjections.
//! - `rcv_window_bytes` is null before Linux 6.2.

use crate::protocol::FlowSample;
use mptcplab_net::TcpInfo;
use mptcplab_net::mptcp::{self, MptcpInfo, Subflow};
use mptcplab_scenario::TcpFlow;
use std::net::{SocketAddr, TcpStream};

/// The kernel's information about one end of a connection. A plain TCP connection has itself as its only subflow.
#[derive(Debug)]
pub(crate) struct End {
    mptcp: Option<MptcpInfo>,
    pub(crate) subflows: Vec<Subflow>,
}

impl End {
    /// Reads it from the kernel. `None` if the connection broke, which the thread that uses it reports.
    pub(crate) fn of(stream: Option<&TcpStream>, is_mptcp: bool) -> Option<Self> {
        let stream = stream?;
        if is_mptcp {
            let info = mptcp::full_info(stream).ok()?;
            return Some(Self {
                mptcp: Some(info.mptcp),
                subflows: info.subflows,
            });
        }
        let tcp = mptcp::tcp_info(stream).ok()?;
        let (SocketAddr::V4(local), SocketAddr::V4(remote)) =
            (stream.local_addr().ok()?, stream.peer_addr().ok()?)
        else {
            return None;
        };
        Some(Self {
            mptcp: None,
            subflows: vec![Subflow {
                id: None,
                local,
                remote,
                tcp,
            }],
        })
    }

    /// Whether everything that was written is acknowledged, in MPTCP at the data level.
    pub(crate) fn is_all_acknowledged(&self) -> bool {
        match &self.mptcp {
            Some(info) => info.snd_una == info.write_seq,
            None => self.sum(|tcp| u64::from(tcp.unacked_pkts) + u64::from(tcp.notsent_bytes)) == 0,
        }
    }

    pub(crate) fn sum(&self, get: fn(&TcpInfo) -> u64) -> u64 {
        self.subflows.iter().map(|one| get(&one.tcp)).sum()
    }

    /// Bytes that the kernel has received in order, read or not. Where MPTCP has no counter, the sum of the subflows'.
    pub(crate) fn in_order_bytes(&self) -> u64 {
        self.mptcp
            .as_ref()
            .and_then(|info| info.bytes_received)
            .unwrap_or_else(|| self.sum(|tcp| tcp.bytes_received))
    }

    /// Segments that the connection reinjected; always 0 for plain TCP.
    pub(crate) fn reinjected_pkts(&self, mss_bytes: u32) -> Option<u64> {
        let bytes = match &self.mptcp {
            Some(info) => info.bytes_retrans?,
            None => 0,
        };
        Some(bytes.div_ceil(mss_bytes.into()))
    }
}

/// The counters of both ends of one connection, or sums over several; `None` for what the kernel does not report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FlowTotals {
    sent_bytes: u64,
    in_order_bytes: Option<u64>,
    reinjected_pkts: Option<u64>,
    duplicate_pkts: Option<u64>,
    rcv_window_bytes: Option<u64>,
    blocked_ns: Option<u64>,
}

impl FlowTotals {
    /// The sum over no connections.
    pub(crate) fn zero(tcp: &TcpFlow) -> Self {
        Self {
            sent_bytes: 0,
            in_order_bytes: Some(0),
            reinjected_pkts: Some(0),
            duplicate_pkts: Some(0),
            rcv_window_bytes: Some(0),
            blocked_ns: (!tcp.mptcp).then_some(0),
        }
    }

    pub(crate) fn of(tcp: &TcpFlow, [sender, receiver]: [&End; 2]) -> Self {
        let first_time = sender.sum(|tcp| tcp.bytes_sent.saturating_sub(tcp.bytes_retrans));
        let dsacks = sender.sum(|tcp| tcp.dsack_dups.into());
        let in_order = match &receiver.mptcp {
            Some(info) => info.bytes_received,
            None => Some(receiver.in_order_bytes()),
        };
        let reinjected = sender.reinjected_pkts(tcp.mss_bytes);
        let windows = receiver.subflows.iter();
        Self {
            sent_bytes: sender
                .mptcp
                .as_ref()
                .and_then(|info| info.bytes_sent)
                .unwrap_or(first_time),
            in_order_bytes: in_order,
            reinjected_pkts: reinjected,
            duplicate_pkts: (reinjected == Some(0)).then_some(dsacks),
            rcv_window_bytes: windows
                .filter_map(|one| one.tcp.rcv_wnd_bytes)
                .max()
                .map(u64::from),
            blocked_ns: (!tcp.mptcp)
                .then(|| sender.sum(|tcp| tcp.rwnd_limited_us).saturating_mul(1000)),
        }
    }

    /// The sum with the totals of another connection.
    pub(crate) fn plus(self, other: Self) -> Self {
        let sum = |a: Option<u64>, b: Option<u64>| Some(a? + b?);
        Self {
            sent_bytes: self.sent_bytes + other.sent_bytes,
            in_order_bytes: sum(self.in_order_bytes, other.in_order_bytes),
            reinjected_pkts: sum(self.reinjected_pkts, other.reinjected_pkts),
            duplicate_pkts: sum(self.duplicate_pkts, other.duplicate_pkts),
            rcv_window_bytes: sum(self.rcv_window_bytes, other.rcv_window_bytes),
            blocked_ns: sum(self.blocked_ns, other.blocked_ns),
        }
    }

    /// What remains after the connection is closed: the counters, but no window.
    pub(crate) fn after_close(self) -> Self {
        Self {
            rcv_window_bytes: self.rcv_window_bytes.map(|_| 0),
            ..self
        }
    }

    /// Fills in a flow's row. `arrived_bytes` is the payload that the emulator has delivered.
    pub(crate) fn write_to(&self, row: &mut FlowSample, arrived_bytes: u64) {
        row.sent_bytes = self.sent_bytes;
        row.reinjected_pkts = self.reinjected_pkts;
        row.duplicate_pkts = self.duplicate_pkts;
        row.ooo_bytes = match (self.duplicate_pkts, self.in_order_bytes) {
            // The receiver was read a moment later and may be a packet ahead.
            (Some(0), Some(in_order)) => Some(arrived_bytes.saturating_sub(in_order)),
            _ => None,
        };
        row.rcv_window_bytes = self.rcv_window_bytes;
        row.blocked_ns = self.blocked_ns;
    }
}
