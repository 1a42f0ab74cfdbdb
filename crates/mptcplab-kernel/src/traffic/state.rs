//! State that the threads of a run share: the clock, the signal to stop, the counters of each flow.

use super::active_transfers::ActiveTransfers;
use super::connection::Connection;
use super::open_requests::OpenRequests;
use super::pending::PendingTransfers;
use crate::protocol::{Problem, ProblemKind};
use mptcplab_emulator::Clock;
use mptcplab_scenario::Flow;
use mptcplab_trace::{EventKind, EventRow, RequestRow, TransferRow};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError};
use std::time::Duration;

/// The clock of the run, and whether it has been stopped.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) clock: Clock,
    stopped: Mutex<bool>,
    changed: Condvar,
}

impl Shared {
    pub(crate) fn new(clock: Clock) -> Self {
        Self {
            clock,
            stopped: Mutex::new(false),
            changed: Condvar::new(),
        }
    }

    /// Makes all threads end.
    pub(crate) fn stop(&self) {
        // The value is only ever assigned, so it is valid even if the lock is poisoned.
        *self.stopped.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.changed.notify_all();
    }

    pub(crate) fn is_stopped(&self) -> bool {
        *self.stopped.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until a time of the run. Returns false if the run is stopped before.
    pub(crate) fn sleep_until(&self, t_ns: u64) -> bool {
        let mut stopped = self.stopped.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let left = match self.until(t_ns) {
                _ if *stopped => return false,
                Duration::ZERO => return true,
                left => left,
            };
            stopped = self
                .changed
                .wait_timeout(stopped, left)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
    }

    /// The time left until a time of the run, also before its zero.
    pub(crate) fn until(&self, t_ns: u64) -> Duration {
        let at = self.clock.zero_ns().saturating_add(t_ns);
        Duration::from_nanos(at.saturating_sub(Clock::monotonic_ns()))
    }
}

/// The state of a flow that its threads update and the sampler reads.
#[derive(Debug)]
pub(crate) struct FlowState {
    /// Bytes that the receiving application has read.
    pub(crate) delivered: AtomicU64,
    /// UDP: payload bytes sent.
    pub(crate) sent: AtomicU64,
    /// Largest delay of a UDP packet, of a request or of the beginning of a transfer after its scheduled time.
    pub(crate) late_ns: AtomicU64,
    /// Whether the receiver counts what it reads, which iperf3 does not.
    pub(crate) counts: AtomicBool,
    /// The connection, if the flow has only one.
    pub(crate) connection: Arc<Connection>,
    /// The receiver's socket of that connection, once it is accepted.
    pub(crate) receiver: OnceLock<TcpStream>,
    /// The connections in progress, if every transfer has one.
    pub(crate) transfers: ActiveTransfers,
    pub(crate) pending: PendingTransfers,
    pub(crate) requests: OpenRequests,
}

impl FlowState {
    pub(crate) fn new(flow: &Flow) -> Self {
        Self {
            delivered: AtomicU64::new(0),
            sent: AtomicU64::new(0),
            late_ns: AtomicU64::new(0),
            counts: AtomicBool::new(true),
            connection: Arc::new(Connection::new(flow.subflows().len())),
            receiver: OnceLock::new(),
            transfers: ActiveTransfers::default(),
            pending: PendingTransfers::default(),
            requests: OpenRequests::default(),
        }
    }
}

/// A message from a thread to the lab's main thread.
#[derive(Debug)]
pub(crate) enum ThreadMessage {
    Event(EventRow),
    Problem(Problem),
    /// A transfer is complete.
    Transfer(TransferRow),
    /// A request or a message is complete.
    Request(RequestRow),
    /// A subflow is open, so that its algorithm can be read back.
    SubflowOpened,
}

/// Sends messages to the lab's main thread.
#[derive(Debug, Clone)]
pub(crate) struct Reporter(pub(crate) Sender<ThreadMessage>);

impl Reporter {
    pub(crate) fn event(&self, t_ns: u64, kind: EventKind, flow: usize, value: u64) {
        self.send(ThreadMessage::Event(EventRow {
            t_ns,
            kind: kind as u8,
            flow: flow as i32,
            subflow: -1,
            link: -1,
            value,
        }));
    }

    pub(crate) fn subflow_event(
        &self,
        t_ns: u64,
        kind: EventKind,
        (flow, subflow): (usize, usize),
        value: u64,
    ) {
        let (flow, subflow) = (flow as i32, subflow as i32);
        self.send(ThreadMessage::Event(EventRow {
            t_ns,
            kind: kind as u8,
            flow,
            subflow,
            link: -1,
            value,
        }));
    }

    /// Ends the run here; what was recorded is valid.
    pub(crate) fn end_run(&self, reason: String) {
        self.send(ThreadMessage::Problem(Problem {
            kind: ProblemKind::EndsRun,
            reason,
        }));
    }

    /// Marks the run as invalid, because it deviated from the scenario.
    pub(crate) fn invalidate(&self, reason: String) {
        self.send(ThreadMessage::Problem(Problem {
            kind: ProblemKind::InvalidatesRun,
            reason,
        }));
    }

    pub(crate) fn transfer(&self, row: TransferRow) {
        self.send(ThreadMessage::Transfer(row));
    }

    pub(crate) fn request(&self, row: RequestRow) {
        self.send(ThreadMessage::Request(row));
    }

    pub(crate) fn opened(&self) {
        self.send(ThreadMessage::SubflowOpened);
    }

    fn send(&self, message: ThreadMessage) {
        // There is no receiver if the lab has already ended the run.
        let _ = self.0.send(message);
    }
}
