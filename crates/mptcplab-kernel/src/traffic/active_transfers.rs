//! The transfers in progress of a flow in which every transfer has a connection of its own.

use super::connection::Connection;
use super::totals::{End, FlowTotals};
use mptcplab_scenario::TcpFlow;
use std::collections::BTreeMap;
use std::net::TcpStream;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// A time that is never reached.
pub(super) const NEVER: u64 = u64::MAX;
/// Distance in the flow's pattern between the beginnings of two transfers, so that mixed-up transfers are detected: a
/// prime.
const STRIDE: u64 = 104_729;

/// A transfer in progress.
#[derive(Debug)]
pub(super) struct Transfer {
    pub(super) connection: Arc<Connection>,
    pub(super) state: Arc<TransferState>,
}

/// The part of a transfer that both threads use. It does not contain the sender's socket, which must close when the sender
/// drops it.
#[derive(Debug)]
pub(super) struct TransferState {
    pub(super) index: u32,
    pub(super) bytes: u64,
    pub(super) receiver: OnceLock<TcpStream>,
    /// When its last byte arrived.
    pub(super) done_ns: AtomicU64,
    /// When the sender closed the connection.
    pub(super) closed_ns: AtomicU64,
}

impl TransferState {
    pub(super) fn new(due: mptcplab_model::traffic::Transfer) -> Self {
        Self {
            index: due.index,
            bytes: due.bytes,
            receiver: OnceLock::new(),
            done_ns: AtomicU64::new(NEVER),
            closed_ns: AtomicU64::new(NEVER),
        }
    }

    /// Position in the flow's pattern at which its data begin.
    pub(super) fn place(&self) -> u64 {
        u64::from(self.index) * STRIDE
    }

    pub(super) fn done_ns(&self) -> Option<u64> {
        Some(self.done_ns.load(Ordering::Acquire)).filter(|&at| at != NEVER)
    }

    pub(super) fn closed_ns(&self) -> Option<u64> {
        Some(self.closed_ns.load(Ordering::Acquire)).filter(|&at| at != NEVER)
    }
}

impl Transfer {
    /// The totals of both ends, once both sockets exist.
    fn totals(&self, tcp: &TcpFlow) -> Option<FlowTotals> {
        let sender = End::of(self.connection.sender.get(), tcp.mptcp)?;
        let receiver = End::of(self.state.receiver.get(), tcp.mptcp)?;
        Some(FlowTotals::of(tcp, [&sender, &receiver]))
    }
}

/// The transfers of a flow that are in progress, by the port of their sender, and the totals of the completed ones.
#[derive(Debug, Default)]
pub(crate) struct ActiveTransfers(Mutex<Inner>);

#[derive(Debug, Default)]
struct Inner {
    live: BTreeMap<u16, Arc<Transfer>>,
    closed: Option<FlowTotals>,
}

impl ActiveTransfers {
    /// The sum over all transfers, complete or not.
    pub(crate) fn totals(&self, tcp: &TcpFlow) -> FlowTotals {
        // The clones keep the sockets open, so that no transfer is counted twice or not at all.
        let (live, closed) = {
            let inner = self.inner();
            let live: Vec<_> = inner.live.values().cloned().collect();
            (live, inner.closed)
        };
        let sum = closed.unwrap_or_else(|| FlowTotals::zero(tcp));
        live.iter()
            .filter_map(|one| one.totals(tcp))
            .fold(sum, FlowTotals::plus)
    }

    pub(super) fn count(&self) -> usize {
        self.inner().live.len()
    }

    pub(super) fn is_free(&self, port: u16) -> bool {
        !self.inner().live.contains_key(&port)
    }

    pub(super) fn begin(&self, port: u16, transfer: &Arc<Transfer>) {
        self.inner().live.insert(port, Arc::clone(transfer));
    }

    pub(super) fn by_port(&self, port: u16) -> Option<Arc<TransferState>> {
        let inner = self.inner();
        inner.live.get(&port).map(|one| Arc::clone(&one.state))
    }

    /// Removes a transfer and adds its counters to those of the completed ones.
    pub(super) fn end(&self, port: u16, tcp: &TcpFlow) {
        let mut inner = self.inner();
        let Some(transfer) = inner.live.remove(&port) else {
            return;
        };
        if let Some(totals) = transfer.totals(tcp) {
            let sum = inner.closed.unwrap_or_else(|| FlowTotals::zero(tcp));
            inner.closed = Some(sum.plus(totals.after_close()));
        }
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        // No code that can panic runs between two changes that belong together.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
