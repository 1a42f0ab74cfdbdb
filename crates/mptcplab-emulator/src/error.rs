//! Errors at the start and while packets move.

use nix::errno::Errno;

/// Why the emulator did not start, or ended.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The set-up is inconsistent.
    #[error("emulator set-up: {what}: {why}")]
    Setup {
        what: String,
        /// What is wrong with it and what would be correct.
        why: String,
    },
    /// A port's file descriptor refused an operation.
    #[error("port {port:?}: cannot {action}: {errno}")]
    Port {
        port: String,
        action: &'static str,
        errno: Errno,
    },
    /// A port's device was removed, or its other end closed.
    #[error("port {port:?}: its device or its other end is gone")]
    Closed { port: String },
    /// A system call that belongs to no port failed.
    #[error("emulator: cannot {action}: {errno}")]
    System { action: &'static str, errno: Errno },
    /// A bug: the emulator's thread panicked.
    #[error("the emulator's thread panicked: {message}")]
    Panicked { message: String },
    /// The emulator had been stopped before.
    #[error("the emulator was stopped")]
    Stopped,
}

impl Error {
    /// For `map_err` on calls that belong to no port.
    pub(crate) fn system(action: &'static str) -> impl Fn(Errno) -> Self {
        move |errno| Self::System { action, errno }
    }
}
