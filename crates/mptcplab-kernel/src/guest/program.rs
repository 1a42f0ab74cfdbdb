//! The program of a job, from its start to its end. One that prepares the machine waits in between for the run.

use super::job::Job;
use super::mailbox::Mailbox;
use super::{JOB, failed};
use crate::failure::Failure;
use crate::run::prepare::{CODE, WAITING};
use nix::sys::signal::Signal;
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use std::fs::{self, File};
use std::io::{ErrorKind, Read as _, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

const STDERR: &str = "/run/stderr";
const CHUNK_BYTES: usize = 65_536;

/// A program that runs.
pub(super) struct Program {
    name: String,
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: ChildStdout,
    /// Whether it stops itself after its run.
    stops: bool,
}

impl Program {
    pub(super) fn start(job: &Job) -> Result<Self, Failure> {
        let stderr = File::create(STDERR).map_err(|error| failed(STDERR, &error))?;
        let stdin = if job.prepares {
            Stdio::piped()
        } else {
            Stdio::null()
        };
        let mut child = Command::new(&job.program)
            .args(&job.arguments)
            .current_dir(JOB)
            .stdin(stdin)
            .stdout(Stdio::piped())
            .stderr(stderr)
            .spawn()
            .map_err(|error| failed(&job.program, &error))?;
        let stdout = child.stdout.take();
        Ok(Self {
            name: job.program.clone(),
            stdin: child.stdin.take(),
            stops: job.prepares,
            stdout: stdout.ok_or_else(|| Failure::new(format!("{}: no output", job.program)))?,
            child,
        })
    }

    /// Whether it says that it waits for a run; false if it ends instead.
    pub(super) fn waits(&mut self) -> Result<bool, Failure> {
        let mut line = vec![0; WAITING.len() + 1];
        match self.stdout.read_exact(&mut line) {
            Ok(()) if line.strip_suffix(b"\n") == Some(WAITING.as_bytes()) => Ok(true),
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => Ok(false),
            Ok(()) => Err(Failure::new(format!(
                "{}: {:?} instead of {WAITING:?}",
                self.name,
                String::from_utf8_lossy(&line)
            ))),
            Err(error) => Err(self.broken(&error)),
        }
    }

    /// Gives it the command line of the run for which it waits. If it has ended meanwhile, its end is what counts.
    pub(super) fn run(&mut self, job: &Job) -> Result<(), Failure> {
        let mut stdin = self.stdin.take();
        let words = job.arguments.join("\0");
        let written = stdin
            .as_mut()
            .map_or(Ok(()), |stdin| stdin.write_all(words.as_bytes()));
        match written {
            Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
            other => other.map_err(|error| self.broken(&error)),
        }
    }

    /// Passes on what it prints until it closes its output; returns its exit code and what it wrote on standard error.
    pub(super) fn follow(mut self, mailbox: &mut Mailbox) -> Result<(i32, Vec<u8>), Failure> {
        let mut buffer = vec![0; CHUNK_BYTES];
        loop {
            match self.stdout.read(&mut buffer) {
                Ok(0) => break,
                Ok(length) => mailbox.print(&buffer[..length])?,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(self.broken(&error)),
            }
        }
        let code = self.code()?;
        let stderr = fs::read(STDERR).map_err(|error| failed(STDERR, &error))?;
        Ok((code, stderr))
    }

    /// Its exit code, after it has ended or has stopped itself.
    fn code(&self) -> Result<i32, Failure> {
        let id = Pid::from_raw(self.child.id() as libc::pid_t);
        let flags = self.stops.then_some(WaitPidFlag::WUNTRACED);
        let status = waitpid(id, flags).map_err(|errno| failed(&self.name, &errno.into()))?;
        match status {
            WaitStatus::Exited(_, code) => Ok(code),
            // Shells report signals like this.
            WaitStatus::Signaled(_, signal, _) => Ok(128 + signal as i32),
            WaitStatus::Stopped(_, Signal::SIGSTOP) => {
                let text = fs::read_to_string(CODE).map_err(|error| failed(CODE, &error))?;
                text.parse()
                    .map_err(|_| Failure::new(format!("{}: exit code {text:?}", self.name)))
            }
            other => Err(Failure::new(format!("{}: {other:?}", self.name))),
        }
    }

    fn broken(&self, error: &std::io::Error) -> Failure {
        Failure::new(format!("{}: pipe: {error}", self.name))
    }
}
