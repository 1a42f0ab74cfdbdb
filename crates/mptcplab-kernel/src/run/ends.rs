//! What ends a run before its time: a signal, or the end of the process that asked for it.
//!
//! The kernel's own way to end with a parent (PR_SET_PDEATHSIG) is lost when the program file has capabilities.

use crate::failure::{Failure, INTERRUPTED};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::unistd::getppid;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::os::fd::{AsFd, OwnedFd};

/// Watches for it.
pub(super) struct Ends {
    signals: SignalFd,
    parent: Option<OwnedFd>,
}

impl Ends {
    /// Blocks the signals that end the program. `parent` is the process whose end also ends it.
    pub(super) fn watch(parent: Option<i32>) -> Result<Self, Failure> {
        let mut set = SigSet::empty();
        for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP] {
            set.add(signal);
        }
        let failed = |errno| Failure::new(format!("signals: {errno}"));
        set.thread_block().map_err(failed)?;
        let flags = SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK;
        Ok(Self {
            signals: SignalFd::with_flags(&set, flags).map_err(failed)?,
            parent: parent.map(open).transpose()?,
        })
    }

    /// Waits until `other` can be read, for `most` at most. If the program has to end, returns its exit code.
    pub(super) fn wait(&self, other: &impl AsFd, most: PollTimeout) -> Result<Option<u8>, Failure> {
        let mut fds = vec![
            PollFd::new(other.as_fd(), PollFlags::POLLIN),
            PollFd::new(self.signals.as_fd(), PollFlags::POLLIN),
        ];
        let parent = self.parent.iter();
        fds.extend(parent.map(|one| PollFd::new(one.as_fd(), PollFlags::POLLIN)));
        match poll(&mut fds, most) {
            Ok(_) | Err(Errno::EINTR) => {}
            Err(errno) => return Err(Failure::new(format!("poll: {errno}"))),
        }
        // The descriptor of a process can be read once the process has ended.
        if fds.get(2).is_some_and(|parent| parent.any() == Some(true)) {
            return Ok(Some(INTERRUPTED));
        }
        let signal = self.signals.read_signal();
        signal
            .map(|signal| signal.map(|signal| exit_code(signal.ssi_signo)))
            .map_err(|errno| Failure::new(format!("signals: {errno}")))
    }
}

/// The exit code of a program that a signal ended, as shells have it.
fn exit_code(signal: u32) -> u8 {
    u8::try_from(128 + signal).unwrap_or(INTERRUPTED)
}

fn open(parent: i32) -> Result<OwnedFd, Failure> {
    let wrong = |why: String| Failure::new(format!("--parent {parent}: {why}"));
    let process = Pid::from_raw(parent).ok_or_else(|| wrong("not a process".into()))?;
    let opened =
        pidfd_open(process, PidfdFlags::empty()).map_err(|error| wrong(error.to_string()))?;
    // Only now is it certain that the number was not given to another process.
    if getppid().as_raw() != parent {
        return Err(wrong(
            "it has not started this process, or has ended".into(),
        ));
    }
    Ok(opened)
}
