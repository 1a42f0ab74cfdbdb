//! The lab as the supervisor sees it: at the other end of a socket, in a child process or in a thread of its own.

use crate::failure::Failure;
use crate::protocol::{FromLab, Place, ToLab};
use crate::{lab, wire};
use mptcplab_doctor::errln;
use std::io::{ErrorKind, Read as _, Write as _};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::channel;
use std::thread::{self, JoinHandle};

const CHUNK_BYTES: usize = 65_536;

/// A running lab. Dropping it kills its process and waits for its end, after which nothing of the run is left; a thread
/// ends with this process.
#[derive(Debug)]
pub(super) struct LabHandle {
    body: Body,
    socket: UnixStream,
    received: wire::Received,
    /// What one read receives; kept, because clearing it takes longer than most reads.
    chunk: Box<[u8]>,
}

#[derive(Debug)]
enum Body {
    Process(Child),
    Thread {
        /// Its id in the system.
        id: u32,
        /// Taken when the thread is joined. It gives the reason if the lab could not even report its failure.
        handle: Option<JoinHandle<Result<(), Failure>>>,
    },
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

impl LabHandle {
    pub(super) fn start(place: Place) -> Result<Self, Failure> {
        let (socket, theirs) = UnixStream::pair().map_err(|error| failed("socket pair", error))?;
        socket
            .set_nonblocking(true)
            .map_err(|error| failed("socket", error))?;
        let body = match place {
            Place::Process => process(theirs)?,
            Place::Thread => thread(theirs)?,
        };
        Ok(Self {
            body,
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
        let _ = crate::priority::raise(match &self.body {
            Body::Process(child) => child.id(),
            Body::Thread { id, .. } => *id,
        });
    }

    /// Kills its process; a thread ends with this one.
    pub(super) fn kill(&mut self) {
        if let Body::Process(child) = &mut self.body {
            // It may already have ended.
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// Waits for it to end on its own.
    pub(super) fn wait(&mut self) {
        match &mut self.body {
            Body::Process(child) => drop(child.wait()),
            Body::Thread { handle, .. } => drop(handle.take().map(JoinHandle::join)),
        }
    }

    /// Describes how it ended after it closed its socket.
    pub(super) fn exit_reason(&mut self) -> String {
        const UNKNOWN: &str = "for an unknown reason";
        match &mut self.body {
            Body::Process(child) => {
                let _ = child.kill();
                let status = child.wait();
                status.map_or_else(|_| UNKNOWN.to_owned(), |status| status.to_string())
            }
            Body::Thread { handle, .. } => match handle.take().map(JoinHandle::join) {
                Some(Ok(Err(failure))) => failure.message,
                Some(Err(_)) => "it panicked".to_owned(),
                Some(Ok(Ok(()))) | None => UNKNOWN.to_owned(),
            },
        }
    }
}

fn process(socket: UnixStream) -> Result<Body, Failure> {
    let program = std::env::current_exe().map_err(|error| failed("this program's path", error))?;
    let child = Command::new(&program)
        .args(["lab", "--supervisor", &std::process::id().to_string()])
        .stdin(OwnedFd::from(socket))
        .stdout(Stdio::null())
        .spawn()
        .map_err(|error| failed(&program.display().to_string(), error))?;
    Ok(Body::Process(child))
}

fn thread(socket: UnixStream) -> Result<Body, Failure> {
    let (sender, started) = channel();
    let body = move || {
        // The receiver waits for it.
        let _ = sender.send(nix::unistd::gettid().as_raw());
        // Said here as well, as a process does: without a connection nobody else may.
        lab::in_thread(socket).inspect_err(|failure| errln!("error: lab: {failure}"))
    };
    let handle = thread::Builder::new()
        .name("lab".to_owned())
        .spawn(body)
        .map_err(|error| failed("thread", error))?;
    let id = started.recv().ok().and_then(|id| u32::try_from(id).ok());
    Ok(Body::Thread {
        id: id.ok_or_else(|| Failure::new("cannot start the lab: its thread ended at once"))?,
        handle: Some(handle),
    })
}

fn failed(what: &str, error: std::io::Error) -> Failure {
    Failure::new(format!("cannot start the lab: {what}: {error}"))
}

fn connection_lost(error: std::io::Error) -> Failure {
    Failure::new(format!("the connection to the lab broke: {error}"))
}

impl AsFd for LabHandle {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Drop for LabHandle {
    fn drop(&mut self) {
        self.kill();
    }
}
