//! Errors of the doctor itself, as opposed to what it finds.

use mptcplab_net::NetError;
use std::io;

/// Why the doctor could not look at what it was asked about.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The network namespace of the process named by `--pid` cannot be entered.
    #[error("--pid {pid}: {path}: {source}")]
    Namespace {
        pid: u32,
        /// The file of its network namespace.
        path: String,
        source: io::Error,
    },
    /// The addresses of this host cannot be listed.
    #[error("list addresses: {0}")]
    Addresses(#[source] io::Error),
    /// A request about sockets or routes failed.
    #[error(transparent)]
    Net(#[from] NetError),
}

impl Error {
    /// The advice for the `hint:` line under the message.
    pub fn hint(&self) -> Option<&str> {
        match self {
            Self::Namespace { .. } => Some(
                "give the number of a running process; the namespace of another user's process needs root",
            ),
            Self::Addresses(_) => None,
            Self::Net(error) => error.hint(),
        }
    }
}
