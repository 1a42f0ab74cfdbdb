//! What the threads of a run share: the clock, the signal to stop, what each flow has come to.

use super::Connection;
use super::transfers::Live;
use super::waits::Waits;
use crate::lab::wire::{Happening, TransferSample, Trouble, TroubleKind};
use mptcplab_emulator::Clock;
use mptcplab_scenario::Flow;
use mptcplab_trace::EventKind;
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError};
use std::time::Duration;

/// The run's clock and the end of the run.
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

    /// Tells all threads to end.
    pub(crate) fn stop(&self) {
        // A poisoned lock still guards a whole value: it is only ever assigned.
        *self.stopped.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.changed.notify_all();
    }

    pub(crate) fn is_stopped(&self) -> bool {
        *self.stopped.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a time of the run; false when the run is over before.
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

    /// Time left until a time of the run, also before its zero.
    pub(crate) fn until(&self, t_ns: u64) -> Duration {
        let at = self.clock.zero_ns().saturating_add(t_ns);
        Duration::from_nanos(at.saturating_sub(Clock::monotonic_ns()))
    }
}

/// A flow as its threads have it, for the sampler.
#[derive(Debug)]
pub(crate) struct FlowState {
    /// Application bytes that the receiver has read.
    pub(crate) delivered: AtomicU64,
    /// UDP: payload bytes sent.
    pub(crate) sent: AtomicU64,
    /// Largest delay of a UDP packet, or of the beginning of one of many transfers, against its time.
    pub(crate) late_ns: AtomicU64,
    /// Whether the receiver is ours and counts what it reads.
    pub(crate) counts: AtomicBool,
    /// Its connection, if it has only one, and the end that receives, once it is there.
    pub(crate) connection: Arc<Connection>,
    pub(crate) receiver: OnceLock<TcpStream>,
    /// Its connections, if every transfer has one.
    pub(crate) transfers: Live,
    pub(crate) waits: Waits,
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
            transfers: Live::default(),
            waits: Waits::default(),
        }
    }
}

/// What a thread tells the lab.
#[derive(Debug)]
pub(crate) enum Note {
    Event(Happening),
    Trouble(Trouble),
    /// A transfer is complete.
    Transfer(TransferSample),
    /// A subflow is open: its algorithm can be read back.
    Opened,
}

/// The way to the lab.
#[derive(Debug, Clone)]
pub(crate) struct Notes(pub(crate) Sender<Note>);

impl Notes {
    pub(crate) fn event(&self, t_ns: u64, kind: EventKind, flow: usize, value: u64) {
        self.put(Note::Event(Happening {
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
        self.put(Note::Event(Happening {
            t_ns,
            kind: kind as u8,
            flow,
            subflow,
            link: -1,
            value,
        }));
    }

    /// The run ends here, but what was recorded is right.
    pub(crate) fn ends_early(&self, reason: String) {
        self.put(Note::Trouble(Trouble {
            kind: TroubleKind::EndsEarly,
            reason,
        }));
    }

    /// The run is not what the scenario says.
    pub(crate) fn spoils(&self, reason: String) {
        self.put(Note::Trouble(Trouble {
            kind: TroubleKind::Spoils,
            reason,
        }));
    }

    pub(crate) fn transfer(&self, row: TransferSample) {
        self.put(Note::Transfer(row));
    }

    pub(crate) fn opened(&self) {
        self.put(Note::Opened);
    }

    fn put(&self, note: Note) {
        // The lab has ended the run if nobody listens.
        let _ = self.0.send(note);
    }
}
