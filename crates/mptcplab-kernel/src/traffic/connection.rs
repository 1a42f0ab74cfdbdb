//! A connection as the threads of its sender and the sampler have it: how far each subflow is, what was sent again.

use super::ends::End;
use mptcplab_net::TcpInfo;
use mptcplab_scenario::TcpFlow;
use std::net::TcpStream;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI64, AtomicU8, Ordering};

/// How far a subflow is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Life {
    Closed,
    Handshake,
    Open,
    Removed,
}

/// One connection of a flow.
#[derive(Debug)]
pub(crate) struct Connection {
    /// Its sending end, once it is there.
    pub(crate) sender: OnceLock<TcpStream>,
    lives: Vec<AtomicU8>,
    /// Retransmissions of subflows that are gone, less SYNs sent again: the kernel counts those among them.
    settled_pkts: AtomicI64,
}

impl Connection {
    pub(crate) fn new(subflows: usize) -> Self {
        Self {
            sender: OnceLock::new(),
            lives: (0..subflows)
                .map(|_| AtomicU8::new(Life::Closed as u8))
                .collect(),
            settled_pkts: AtomicI64::new(0),
        }
    }

    pub(crate) fn life(&self, subflow: usize) -> Life {
        match self.lives[subflow].load(Ordering::Acquire) {
            1 => Life::Handshake,
            2 => Life::Open,
            3 => Life::Removed,
            _ => Life::Closed,
        }
    }

    pub(crate) fn set_life(&self, subflow: usize, life: Life) {
        self.lives[subflow].store(life as u8, Ordering::Release);
    }

    /// A handshake is over: all that the subflow sent again were SYNs.
    pub(crate) fn opened(&self, subflow: usize, tcp: &TcpInfo) {
        self.settled_pkts
            .fetch_sub(tcp.total_retrans_pkts.into(), Ordering::AcqRel);
        self.set_life(subflow, Life::Open);
    }

    /// A subflow is removed, and with it the kernel's count of what it sent again.
    pub(crate) fn removed(&self, subflow: usize, tcp: &TcpInfo) {
        self.settled_pkts
            .fetch_add(tcp.total_retrans_pkts.into(), Ordering::AcqRel);
        self.set_life(subflow, Life::Removed);
    }

    /// Segments that were sent again, by subflows and by the connection; none where the kernel does not tell (before
    /// Linux 6.5).
    pub(crate) fn resent_pkts(&self, tcp: &TcpFlow) -> Option<u64> {
        let sender = End::of(self.sender.get(), tcp.mptcp)?;
        let now = sender.sum(|tcp| tcp.total_retrans_pkts.into());
        let of_subflows = now.saturating_add_signed(self.settled_pkts.load(Ordering::Acquire));
        Some(of_subflows + sender.reinjected_pkts(tcp.mss_bytes)?)
    }
}
