//! What the kernel tells of a connection at its two ends: TCP_INFO and MPTCP_INFO.
//!
//! What it does not tell, and what becomes of it (null in the trace where nothing can be said):
//! - `ooo_bytes` is what the emulator delivered less what the receiver has in order. The two also differ by data that
//!   arrived twice, so it is null from the first such packet or reinjection on.
//! - `duplicate_pkts` counts the DSACK blocks that the senders received; null from the first reinjection on, whose
//!   duplicates nobody counts.
//! - `blocked_ns` of MPTCP is null: subflows count only the time in which data waited in their own queue.
//! - `reinjected_pkts` is the bytes that the connection sent again divided by the size of a segment, rounded up; null
//!   before Linux 6.5, where also `sent_bytes` of MPTCP includes reinjections.
//! - `rcv_window_bytes` is null before Linux 6.2.

use crate::lab::wire::FlowSample;
use mptcplab_net::TcpInfo;
use mptcplab_net::mptcp::{self, MptcpInfo, Subflow};
use mptcplab_scenario::TcpFlow;
use std::net::{SocketAddr, TcpStream};

/// One end of a connection; a plain TCP connection is its own only subflow.
#[derive(Debug)]
pub(crate) struct End {
    mptcp: Option<MptcpInfo>,
    pub(crate) subflows: Vec<Subflow>,
}

impl End {
    /// Nothing once the connection broke, which the thread that uses it reports.
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

    /// Whether everything that was written is acknowledged, by an MPTCP connection as data.
    pub(crate) fn is_all_acknowledged(&self) -> bool {
        match &self.mptcp {
            Some(info) => info.snd_una == info.write_seq,
            None => self.sum(|tcp| u64::from(tcp.unacked_pkts) + u64::from(tcp.notsent_bytes)) == 0,
        }
    }

    pub(crate) fn sum(&self, get: fn(&TcpInfo) -> u64) -> u64 {
        self.subflows.iter().map(|one| get(&one.tcp)).sum()
    }

    /// What the kernel has handed over in order, or would if the application read; without MPTCP's count what the
    /// subflows did.
    pub(crate) fn in_order_bytes(&self) -> u64 {
        self.mptcp
            .as_ref()
            .and_then(|info| info.bytes_received)
            .unwrap_or_else(|| self.sum(|tcp| tcp.bytes_received))
    }

    /// Segments that the connection sent again; plain TCP never does.
    pub(crate) fn reinjected_pkts(&self, mss_bytes: u32) -> Option<u64> {
        let bytes = match &self.mptcp {
            Some(info) => info.bytes_retrans?,
            None => 0,
        };
        Some(bytes.div_ceil(mss_bytes.into()))
    }
}

/// What both ends tell together, of one connection or in sum over many; `None` where the kernel does not tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Told {
    sent_bytes: u64,
    in_order_bytes: Option<u64>,
    reinjected_pkts: Option<u64>,
    duplicate_pkts: Option<u64>,
    rcv_window_bytes: Option<u64>,
    blocked_ns: Option<u64>,
}

impl Told {
    /// The sum over no connection.
    pub(crate) fn nothing(tcp: &TcpFlow) -> Self {
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
        let told_twice = sender.sum(|tcp| tcp.dsack_dups.into());
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
            duplicate_pkts: (reinjected == Some(0)).then_some(told_twice),
            rcv_window_bytes: windows
                .filter_map(|one| one.tcp.rcv_wnd_bytes)
                .max()
                .map(u64::from),
            blocked_ns: (!tcp.mptcp)
                .then(|| sender.sum(|tcp| tcp.rwnd_limited_us).saturating_mul(1000)),
        }
    }

    /// With another connection's.
    pub(crate) fn and(self, other: Self) -> Self {
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

    /// What stays of it when the connection is closed: counters do, a window does not.
    pub(crate) fn closed(self) -> Self {
        Self {
            rcv_window_bytes: self.rcv_window_bytes.map(|_| 0),
            ..self
        }
    }

    /// Puts it into a flow's row. `arrived_bytes` is the payload that the emulator delivered so far.
    pub(crate) fn put(&self, row: &mut FlowSample, arrived_bytes: u64) {
        row.sent_bytes = self.sent_bytes;
        row.reinjected_pkts = self.reinjected_pkts;
        row.duplicate_pkts = self.duplicate_pkts;
        row.ooo_bytes = match (self.duplicate_pkts, self.in_order_bytes) {
            // What is read a moment later may be a packet ahead.
            (Some(0), Some(in_order)) => Some(arrived_bytes.saturating_sub(in_order)),
            _ => None,
        };
        row.rcv_window_bytes = self.rcv_window_bytes;
        row.blocked_ns = self.blocked_ns;
    }
}
