//! Commands from the owner's thread to the emulator's thread.

use crate::report::Scheduling;
use crate::sample::Sample;
use nix::sys::eventfd::EventFd;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender};

/// A command to the emulator's thread.
pub(crate) enum Command {
    /// Fill the sample, whose vectors have enough capacity, and send it back.
    Sample(Box<Sample>, SyncSender<Box<Sample>>),
    RefreshScheduling(SyncSender<Scheduling>),
    Stop,
    #[cfg(test)]
    Panic,
}

/// The thread's end of the command queue; `wakeup` is readable while there are commands.
pub(crate) struct Inbox {
    pub(crate) wakeup: Arc<EventFd>,
    pub(crate) commands: Receiver<Command>,
}
