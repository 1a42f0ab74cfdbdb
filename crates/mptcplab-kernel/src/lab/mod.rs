//! The lab builds the network, moves the packets, generates the traffic, takes samples, and sends them to the supervisor.
//!
//! It is a child process of the supervisor that is shut in (`mptcplab_net::sandbox`), so that everything it creates is
//! separate from the host and disappears with it. In a virtual machine, which disappears as a whole, it is a thread.

mod network;
mod readback;
mod sample_clock;
mod sampler;
mod session;
mod shown;

use crate::compiled;
use crate::failure::Failure;
use crate::protocol::{FromLab, RunRequest};
use mptcplab_net::sandbox::{self, Needs};
use nix::errno::Errno;
use nix::sys::prctl;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::signal::{SigSet, SigmaskHow, Signal, pthread_sigmask};
use nix::unistd::{Pid, getppid};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;

/// Files that lab and supervisor may have open in a virtual machine, whose kernel has a default of 4096.
const OPEN_FILES: u64 = 65_536;

/// Runs the lab in this process. `supervisor` is the process id of the supervisor, which is at the other end of standard
/// input.
pub(crate) fn main(supervisor: i32) -> Result<(), Failure> {
    die_with(supervisor)?;
    close_inherited()?;
    allow_many_sockets()?;
    serve(socket()?, |request| {
        // Only single-threaded processes can enter a user namespace, so this comes before any thread.
        declare(request).and_then(|()| shut_in(request, supervisor))
    })
}

/// Runs the lab in this thread of the supervisor, which is at the other end of the socket.
pub(crate) fn in_thread(socket: UnixStream) -> Result<(), Failure> {
    serve(socket, |_| open_files(OPEN_FILES))
}

/// Makes the run that the supervisor requests, after `begin`.
fn serve(
    socket: UnixStream,
    begin: impl FnOnce(&RunRequest) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let mut supervisor = session::SupervisorSocket::new(socket);
    let request = session::request(&mut supervisor)?;
    let result = begin(&request).and_then(|()| session::run(&mut supervisor, &request));
    if let Err(failure) = result {
        supervisor.send(&FromLab::Failed {
            message: failure.message,
            hint: failure.hint,
        })?;
    }
    Ok(())
}

/// Makes known what is not in the build, from files that are out of reach afterwards.
fn declare(request: &RunRequest) -> Result<(), Failure> {
    let directory = request.compiled.as_deref();
    directory.map_or(Ok(()), compiled::load_declarations)
}

/// Gives up whatever a run does not need. All that follows, and all programs that it starts, can reach only the networks
/// that it makes.
fn shut_in(request: &RunRequest, supervisor: i32) -> Result<(), Failure> {
    sandbox::enter(Needs {
        files: &request.files,
        programs: request.programs.is_some(),
    })?;
    // The kernel clears the setting when credentials change.
    die_with(supervisor)
}

/// Closes what the supervisor's caller left open besides the standard streams.
fn close_inherited() -> Result<(), Failure> {
    // SAFETY: nothing of this program has opened a file yet. Called by number because glibc has the function only from
    // 2.34 on and musl from 1.2.6 on; the kernel has it from 5.9 on.
    let result = unsafe { libc::syscall(libc::SYS_close_range, 3, libc::c_uint::MAX, 0) };
    Errno::result(result)
        .map(drop)
        .map_err(|errno| Failure::new(format!("lab: close files: {errno}")))
}

/// Makes the kernel kill this process when the supervisor dies. Fails if the supervisor has already died.
fn die_with(supervisor: i32) -> Result<(), Failure> {
    prctl::set_pdeathsig(Signal::SIGKILL)
        .map_err(|errno| Failure::new(format!("prctl: {errno}")))?;
    if getppid() != Pid::from_raw(supervisor) {
        return Err(Failure::new("the supervisor has ended"));
    }
    // The supervisor handles the terminal's Ctrl-C for both processes, but SIGTERM still ends the lab.
    let mut ends = SigSet::empty();
    ends.add(Signal::SIGTERM);
    pthread_sigmask(SigmaskHow::SIG_UNBLOCK, Some(&ends), None)
        .map_err(|errno| Failure::new(format!("sigmask: {errno}")))
}

/// Raises the limit of open files to what the machine allows: every transfer in progress needs two sockets.
fn allow_many_sockets() -> Result<(), Failure> {
    let allowed = getrlimit(Resource::RLIMIT_NOFILE);
    let (_, most) =
        allowed.map_err(|errno| Failure::new(format!("lab: number of open files: {errno}")))?;
    open_files(most)
}

fn open_files(most: u64) -> Result<(), Failure> {
    setrlimit(Resource::RLIMIT_NOFILE, most, most)
        .map_err(|errno| Failure::new(format!("lab: {most} open files: {errno}")))
}

fn socket() -> Result<UnixStream, Failure> {
    let fd: OwnedFd = std::io::stdin()
        .as_fd()
        .try_clone_to_owned()
        .map_err(|error| {
            Failure::new(format!(
                "the lab has no connection to its supervisor: {error}"
            ))
        })?;
    Ok(UnixStream::from(fd))
}
