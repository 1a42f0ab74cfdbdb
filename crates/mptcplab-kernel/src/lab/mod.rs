//! The lab: a child process of the supervisor in a user namespace of its own, so that everything it creates is separate
//! from the host and disappears with it. It builds the network, moves the packets, generates the traffic, takes samples,
//! and sends them to the supervisor.

mod network;
mod readback;
mod sample_clock;
mod sampler;
mod session;

use crate::failure::Failure;
use crate::protocol::FromLab;
use nix::sys::prctl;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::signal::{SigSet, SigmaskHow, Signal, pthread_sigmask};
use nix::unistd::{Pid, getppid};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;

/// Runs the lab. `supervisor` is the process id of the supervisor, which is at the other end of standard input.
pub(crate) fn main(supervisor: i32) -> Result<(), Failure> {
    die_with(supervisor)?;
    // Only single-threaded processes can enter a user namespace, so this comes first.
    let entered = mptcplab_net::userns::enter();
    // The kernel clears the setting when credentials change.
    die_with(supervisor)?;
    allow_many_sockets()?;
    let socket = socket()?;
    let mut supervisor_socket = session::SupervisorSocket::new(socket)?;
    let result = entered
        .map_err(Failure::from)
        .and_then(|()| session::run(&mut supervisor_socket));
    if let Err(failure) = result {
        supervisor_socket.send(&FromLab::Failed {
            message: failure.message,
            hint: failure.hint,
        })?;
    }
    Ok(())
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
    allowed
        .and_then(|(_, most)| setrlimit(Resource::RLIMIT_NOFILE, most, most))
        .map_err(|errno| Failure::new(format!("lab: number of open files: {errno}")))
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
