//! The lab as the supervisor sees it: a child process at the other end of a socket.

use crate::failure::Failure;
use crate::protocol::{FromLab, ToLab};
use crate::wire;
use std::io::{ErrorKind, Read as _, Write as _};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, ExitStatus, Stdio};

const CHUNK_BYTES: usize = 65_536;

/// A running lab. Dropping it kills the process and waits for its end, after which nothing of the run is left.
#[derive(Debug)]
pub(super) struct LabProcess {
    child: Child,
    socket: UnixStream,
    received: wire::Received,
    /// What one read receives; kept, because clearing it takes longer than most reads.
    chunk: Box<[u8]>,
}

/// The result of trying to receive a message from the lab.
#[derive(Debug)]
pub(super) enum Received {
    Message(FromLab),
    /// No message is available.
    Nothing,
    /// The lab closed its socket, usually because it died.
    Closed,
}

impl LabProcess {
    pub(super) fn start() -> Result<Self, Failure> {
        let failed = |what: &str, error: std::io::Error| {
            Failure::new(format!("cannot start the lab: {what}: {error}"))
        };
        let (socket, theirs) = UnixStream::pair().map_err(|error| failed("socket pair", error))?;
        socket
            .set_nonblocking(true)
            .map_err(|error| failed("socket", error))?;
        let program =
            std::env::current_exe().map_err(|error| failed("this program's path", error))?;
        let child = Command::new(&program)
            .args(["lab", "--supervisor", &std::process::id().to_string()])
            .stdin(OwnedFd::from(theirs))
            .stdout(Stdio::null())
            .spawn()
            .map_err(|error| failed(&program.display().to_string(), error))?;
        Ok(Self {
            child,
            socket,
            received: wire::Received::default(),
            chunk: vec![0; CHUNK_BYTES].into_boxed_slice(),
        })
    }

    pub(super) fn send(&mut self, message: &ToLab) -> Result<(), Failure> {
        let bytes =
            wire::encode(message).map_err(|error| Failure::new(format!("supervisor: {error}")))?;
        self.socket
            .set_nonblocking(false)
            .map_err(connection_lost)?;
        self.socket.write_all(&bytes).map_err(connection_lost)?;
        self.socket.set_nonblocking(true).map_err(connection_lost)
    }

    /// Receives the next message, without waiting.
    pub(super) fn recv(&mut self) -> Result<Received, Failure> {
        loop {
            let message = self.received.take().map_err(|error| {
                Failure::new(format!("the lab sent a malformed message: {error}"))
            })?;
            if let Some(message) = message {
                return Ok(Received::Message(message));
            }
            match self.socket.read(&mut self.chunk) {
                Ok(0) => return Ok(Received::Closed),
                Ok(length) => self.received.push(&self.chunk[..length]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    return Ok(Received::Nothing);
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::ConnectionReset => {
                    return Ok(Received::Closed);
                }
                Err(error) => return Err(connection_lost(error)),
            }
        }
    }

    /// Gives its main thread real-time priority, which the thread that moves the packets inherits. Without the privilege
    /// nothing happens, and the emulator's report says so.
    pub(super) fn grant_real_time(&self) {
        let _ = crate::priority::raise(self.child.id());
    }

    /// Kills it and waits for its end.
    pub(super) fn kill(&mut self) -> Option<ExitStatus> {
        // It may already have ended.
        let _ = self.child.kill();
        self.child.wait().ok()
    }

    /// Waits for it to end on its own.
    pub(super) fn wait(&mut self) -> Option<ExitStatus> {
        self.child.wait().ok()
    }
}

fn connection_lost(error: std::io::Error) -> Failure {
    Failure::new(format!("the connection to the lab broke: {error}"))
}

impl AsFd for LabProcess {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Drop for LabProcess {
    fn drop(&mut self) {
        self.kill();
    }
}
