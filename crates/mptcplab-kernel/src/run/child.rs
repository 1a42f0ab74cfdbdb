//! The lab as the director sees it: a child at the other end of a socket.

use crate::failure::Failure;
use crate::lab::wire::{FromLab, ToLab};
use std::io::{ErrorKind, Read as _, Write as _};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, ExitStatus, Stdio};

/// A running lab. Dropping it kills it and waits for its end, after which nothing of the run is left.
#[derive(Debug)]
pub(super) struct Lab {
    child: Child,
    socket: UnixStream,
    buffer: Vec<u8>,
}

/// What came from the lab.
#[derive(Debug)]
pub(super) enum Heard {
    Message(FromLab),
    /// Nothing yet.
    Silence,
    /// It died.
    Gone,
}

impl Lab {
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
            .args(["lab", "--director", &std::process::id().to_string()])
            .stdin(OwnedFd::from(theirs))
            .stdout(Stdio::null())
            .spawn()
            .map_err(|error| failed(&program.display().to_string(), error))?;
        Ok(Self {
            child,
            socket,
            buffer: Vec::new(),
        })
    }

    pub(super) fn send(&mut self, message: &ToLab) -> Result<(), Failure> {
        let mut line = serde_json::to_vec(message)
            .map_err(|error| Failure::new(format!("director: {error}")))?;
        line.push(b'\n');
        self.socket.set_nonblocking(false).map_err(broken)?;
        self.socket.write_all(&line).map_err(broken)?;
        self.socket.set_nonblocking(true).map_err(broken)
    }

    /// The next message, without waiting.
    pub(super) fn hear(&mut self) -> Result<Heard, Failure> {
        loop {
            if let Some(end) = self.buffer.iter().position(|&byte| byte == b'\n') {
                let line: Vec<u8> = self.buffer.drain(..=end).collect();
                let message = serde_json::from_slice(&line);
                return message
                    .map(Heard::Message)
                    .map_err(|error| Failure::new(format!("the lab said nonsense: {error}")));
            }
            let mut chunk = [0; 65_536];
            match self.socket.read(&mut chunk) {
                Ok(0) => return Ok(Heard::Gone),
                Ok(length) => self.buffer.extend_from_slice(&chunk[..length]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(Heard::Silence),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::ConnectionReset => return Ok(Heard::Gone),
                Err(error) => return Err(broken(error)),
            }
        }
    }

    /// Gives its main thread real-time priority, for the thread that moves the packets. Without privilege nothing
    /// happens, which the emulator's report then says.
    pub(super) fn prioritise(&self) {
        let _ = crate::priority::raise(self.child.id());
    }

    /// Ends it, however it is.
    pub(super) fn end(&mut self) -> Option<ExitStatus> {
        // It may have ended on its own.
        let _ = self.child.kill();
        self.child.wait().ok()
    }

    /// Waits for it to end on its own.
    pub(super) fn wait(&mut self) -> Option<ExitStatus> {
        self.child.wait().ok()
    }
}

fn broken(error: std::io::Error) -> Failure {
    Failure::new(format!("the connection to the lab broke: {error}"))
}

impl AsFd for Lab {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        self.end();
    }
}
