//! Flows in which every transfer has a connection of its own. Two threads serve all connections of a flow.
//!
//! The sender's thread opens the connections and their further subflows, writes, and closes a connection when all of its
//! data have arrived and are acknowledged. The receiver's thread accepts the connections, reads and checks. A connection
//! ends with a reset, so that closed connections occupy neither ports nor sockets and cause hardly any packets; the
//! simulator has none at the end of a connection.

mod receive;
mod send;

pub(super) use receive::receive;
pub(super) use send::send;

use super::connection::Connection;
use super::stream::PATIENCE;
use crate::traffic::totals::{End, FlowTotals};
use mptcplab_scenario::TcpFlow;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::TimeSpec;
use std::collections::BTreeMap;
use std::io::Result;
use std::net::TcpStream;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

/// A time that is never reached.
const NEVER: u64 = u64::MAX;
/// Distance in the flow's pattern between the beginnings of two transfers, so that mixed-up transfers are detected: a
/// prime.
const STRIDE: u64 = 104_729;

/// A transfer in progress.
#[derive(Debug)]
struct Transfer {
    connection: Arc<Connection>,
    state: Arc<TransferState>,
}

/// The part of a transfer that both threads use. It does not contain the sender's socket, which must close when the sender
/// drops it.
#[derive(Debug)]
struct TransferState {
    index: u32,
    bytes: u64,
    receiver: OnceLock<TcpStream>,
    /// When its last byte arrived.
    done_ns: AtomicU64,
    /// When the sender closed the connection.
    closed_ns: AtomicU64,
}

impl TransferState {
    fn new(due: mptcplab_model::traffic::Transfer) -> Self {
        Self {
            index: due.index,
            bytes: due.bytes,
            receiver: OnceLock::new(),
            done_ns: AtomicU64::new(NEVER),
            closed_ns: AtomicU64::new(NEVER),
        }
    }

    /// Position in the flow's pattern at which its data begin.
    fn place(&self) -> u64 {
        u64::from(self.index) * STRIDE
    }

    fn done_ns(&self) -> Option<u64> {
        Some(self.done_ns.load(Ordering::Acquire)).filter(|&at| at != NEVER)
    }

    fn closed_ns(&self) -> Option<u64> {
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

    fn count(&self) -> usize {
        self.inner().live.len()
    }

    fn is_free(&self, port: u16) -> bool {
        !self.inner().live.contains_key(&port)
    }

    fn begin(&self, port: u16, transfer: &Arc<Transfer>) {
        self.inner().live.insert(port, Arc::clone(transfer));
    }

    fn by_port(&self, port: u16) -> Option<Arc<TransferState>> {
        let inner = self.inner();
        inner.live.get(&port).map(|one| Arc::clone(&one.state))
    }

    /// Removes a transfer and adds its counters to those of the completed ones.
    fn end(&self, port: u16, tcp: &TcpFlow) {
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

/// Waits until one of the sockets is ready, at most for `most`; returns which of them are.
fn ready(sockets: &[(&dyn AsFd, PollFlags)], most: Duration) -> Result<Vec<bool>> {
    let mut fds: Vec<PollFd<'_>> = sockets
        .iter()
        .map(|(socket, flags)| PollFd::new(socket.as_fd(), *flags))
        .collect();
    match ppoll(&mut fds, Some(TimeSpec::from_duration(most)), None) {
        Ok(_) | Err(Errno::EINTR) => {}
        Err(errno) => return Err(errno.into()),
    }
    Ok(fds.iter().map(|fd| fd.any().unwrap_or(false)).collect())
}
