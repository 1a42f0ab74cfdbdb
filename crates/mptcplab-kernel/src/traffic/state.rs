//! What the threads of a run share: the clock, the signal to stop, what each flow has come to.

use crate::lab::wire::{Happening, Trouble, TroubleKind};
use mptcplab_emulator::Clock;
use mptcplab_trace::EventKind;
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Condvar, Mutex, OnceLock, PoisonError};
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

/// How far a subflow is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Life {
    Closed,
    Handshake,
    Open,
    Removed,
}

/// A flow as its threads have it, for the sampler.
#[derive(Debug)]
pub(crate) struct FlowState {
    /// Application bytes that the receiver has read.
    pub(crate) delivered: AtomicU64,
    /// UDP: payload bytes sent.
    pub(crate) sent: AtomicU64,
    /// UDP: largest delay of a packet against its time.
    pub(crate) late_ns: AtomicU64,
    /// Whether the receiver is ours and counts what it reads.
    pub(crate) counts: AtomicBool,
    /// The connection at both ends, once it is there.
    pub(crate) sender: OnceLock<TcpStream>,
    pub(crate) receiver: OnceLock<TcpStream>,
    lives: Vec<AtomicU8>,
}

impl FlowState {
    pub(crate) fn new(subflows: usize) -> Self {
        Self {
            delivered: AtomicU64::new(0),
            sent: AtomicU64::new(0),
            late_ns: AtomicU64::new(0),
            counts: AtomicBool::new(true),
            sender: OnceLock::new(),
            receiver: OnceLock::new(),
            lives: (0..subflows)
                .map(|_| AtomicU8::new(Life::Closed as u8))
                .collect(),
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
}

/// What a thread tells the lab.
#[derive(Debug)]
pub(crate) enum Note {
    Event(Happening),
    Trouble(Trouble),
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

    pub(crate) fn opened(&self) {
        self.put(Note::Opened);
    }

    fn put(&self, note: Note) {
        // The lab has ended the run if nobody listens.
        let _ = self.0.send(note);
    }
}
