//! The state of a connection that its sender's threads and the sampler share: the states of its subflows, and its
//! retransmissions.

use super::totals::End;
use mptcplab_net::TcpInfo;
use mptcplab_scenario::TcpFlow;
use std::net::TcpStream;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI64, AtomicU8, Ordering};

/// The state of a subflow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum SubflowState {
    Closed,
    Handshake,
    Open,
    Removed,
}

/// One connection of a flow.
#[derive(Debug)]
pub(crate) struct Connection {
    /// The socket of the sender, once it is connected.
    pub(crate) sender: OnceLock<TcpStream>,
    states: Vec<AtomicU8>,
    /// Retransmissions of removed subflows, minus retransmitted SYNs, which the kernel counts too.
    settled_pkts: AtomicI64,
}

impl Connection {
    pub(crate) fn new(subflows: usize) -> Self {
        Self {
            sender: OnceLock::new(),
            states: (0..subflows)
                .map(|_| AtomicU8::new(SubflowState::Closed as u8))
                .collect(),
            settled_pkts: AtomicI64::new(0),
        }
    }

    pub(crate) fn state(&self, subflow: usize) -> SubflowState {
        match self.states[subflow].load(Ordering::Acquire) {
            1 => SubflowState::Handshake,
            2 => SubflowState::Open,
            3 => SubflowState::Removed,
            _ => SubflowState::Closed,
        }
    }

    pub(crate) fn set_state(&self, subflow: usize, life: SubflowState) {
        self.states[subflow].store(life as u8, Ordering::Release);
    }

    /// Called after a handshake: everything that the subflow has retransmitted so far were SYNs.
    pub(crate) fn opened(&self, subflow: usize, tcp: &TcpInfo) {
        self.settled_pkts
            .fetch_sub(tcp.total_retrans_pkts.into(), Ordering::AcqRel);
        self.set_state(subflow, SubflowState::Open);
    }

    /// Called when a subflow is removed, because the kernel's count of its retransmissions disappears with it.
    pub(crate) fn removed(&self, subflow: usize, tcp: &TcpInfo) {
        self.settled_pkts
            .fetch_add(tcp.total_retrans_pkts.into(), Ordering::AcqRel);
        self.set_state(subflow, SubflowState::Removed);
    }

    /// Segments retransmitted by subflows or reinjected by the connection; `None` where the kernel does not report them
    /// (before Linux 6.5).
    pub(crate) fn resent_pkts(&self, tcp: &TcpFlow) -> Option<u64> {
        let sender = End::of(self.sender.get(), tcp.mptcp)?;
        let now = sender.sum(|tcp| tcp.total_retrans_pkts.into());
        let of_subflows = now.saturating_add_signed(self.settled_pkts.load(Ordering::Acquire));
        Some(of_subflows + sender.reinjected_pkts(tcp.mss_bytes)?)
    }
}
