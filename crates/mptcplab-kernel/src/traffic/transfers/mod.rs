//! Flows of many transfers, each over a connection of its own: two threads serve all of a flow's connections.
//!
//! The sender's thread opens them, writes, opens further subflows, and closes a connection when all of it has arrived and
//! is acknowledged; the receiver's takes them, reads and checks. A connection ends with a reset, so that neither ports nor
//! sockets are held by the thousand, and packets of its end are as few as in the simulator, which has none.

mod receive;
mod send;

pub(super) use receive::receive;
pub(super) use send::send;

use super::Connection;
use crate::traffic::ends::{End, Told};
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

/// Longest sleep without looking whether the run is over.
const PATIENCE: Duration = Duration::from_millis(50);
/// A time that has not come.
const NEVER: u64 = u64::MAX;
/// Bytes of the flow's pattern between the beginnings of two transfers, so that mixed-up ones show: a prime.
const STRIDE: u64 = 104_729;

/// One transfer under way.
#[derive(Debug)]
struct Transfer {
    connection: Arc<Connection>,
    arrival: Arc<Arrival>,
}

/// What its receiver has of it: not the sender's end, which closes when the sender drops it.
#[derive(Debug)]
struct Arrival {
    index: u32,
    bytes: u64,
    receiver: OnceLock<TcpStream>,
    /// When its last byte was at the receiver.
    done_ns: AtomicU64,
    /// When its sender closed it.
    closed_ns: AtomicU64,
}

impl Arrival {
    fn new(due: mptcplab_model::traffic::Transfer) -> Self {
        Self {
            index: due.index,
            bytes: due.bytes,
            receiver: OnceLock::new(),
            done_ns: AtomicU64::new(NEVER),
            closed_ns: AtomicU64::new(NEVER),
        }
    }

    /// Where its data begin in the flow's pattern.
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
    /// What both ends tell, once both are there.
    fn told(&self, tcp: &TcpFlow) -> Option<Told> {
        let sender = End::of(self.connection.sender.get(), tcp.mptcp)?;
        let receiver = End::of(self.arrival.receiver.get(), tcp.mptcp)?;
        Some(Told::of(tcp, [&sender, &receiver]))
    }
}

/// The transfers of a flow that are under way, by the port of their sender, and what the others came to.
#[derive(Debug, Default)]
pub(crate) struct Live(Mutex<Inner>);

#[derive(Debug, Default)]
struct Inner {
    live: BTreeMap<u16, Arc<Transfer>>,
    closed: Option<Told>,
}

impl Live {
    /// The sum over all transfers so far.
    pub(crate) fn told(&self, tcp: &TcpFlow) -> Told {
        // Their sockets stay open while they are held here, so that none is counted twice or not at all.
        let (live, closed) = {
            let inner = self.inner();
            let live: Vec<_> = inner.live.values().cloned().collect();
            (live, inner.closed)
        };
        let sum = closed.unwrap_or_else(|| Told::nothing(tcp));
        live.iter()
            .filter_map(|one| one.told(tcp))
            .fold(sum, Told::and)
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

    fn by_port(&self, port: u16) -> Option<Arc<Arrival>> {
        let inner = self.inner();
        inner.live.get(&port).map(|one| Arc::clone(&one.arrival))
    }

    /// A transfer is over: its counters stay.
    fn end(&self, port: u16, tcp: &TcpFlow) {
        let mut inner = self.inner();
        let Some(transfer) = inner.live.remove(&port) else {
            return;
        };
        if let Some(told) = transfer.told(tcp) {
            let sum = inner.closed.unwrap_or_else(|| Told::nothing(tcp));
            inner.closed = Some(sum.and(told.closed()));
        }
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        // Nothing that can panic comes between two changes that belong together.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Waits until one of these is ready, so long at most; says which are.
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
