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

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::TimeSpec;
use std::io::Result;
use std::os::fd::AsFd;
use std::time::Duration;

/// Waits until one of the sockets is ready, at most for `most`; returns which of them are.
pub(super) fn ready(sockets: &[(&dyn AsFd, PollFlags)], most: Duration) -> Result<Vec<bool>> {
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
