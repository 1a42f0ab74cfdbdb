//! The lab: a child of the director that has its own user namespace, so that all that it makes is nobody else's and
//! goes with it. It builds the network, moves the packets, makes the traffic, samples, and tells the director.

mod clock;
mod network;
mod readback;
mod sample;
mod session;
pub(crate) mod wire;

use crate::failure::Failure;
use nix::sys::prctl;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::signal::{SigSet, SigmaskHow, Signal, pthread_sigmask};
use nix::unistd::{Pid, getppid};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use wire::FromLab;

/// Runs the lab of the director with this process id, which is at the other end of standard input.
pub(crate) fn main(director: i32) -> Result<(), Failure> {
    die_with(director)?;
    // Only single-threaded processes can enter a user namespace, so this comes first.
    let entered = mptcplab_net::userns::enter();
    // The kernel forgets it when credentials change.
    die_with(director)?;
    allow_many_sockets()?;
    let socket = socket()?;
    let mut link = session::Link::new(socket)?;
    let result = entered
        .map_err(Failure::from)
        .and_then(|()| session::run(&mut link));
    if let Err(failure) = result {
        link.send(&FromLab::Failed {
            message: failure.message,
            hint: failure.hint,
        })?;
    }
    Ok(())
}

/// SIGKILL when the director dies; at once if it has.
fn die_with(director: i32) -> Result<(), Failure> {
    prctl::set_pdeathsig(Signal::SIGKILL)
        .map_err(|errno| Failure::new(format!("prctl: {errno}")))?;
    if getppid() != Pid::from_raw(director) {
        return Err(Failure::new("the director is gone"));
    }
    // The director handles the terminal's Ctrl-C for both; anybody may still end the lab.
    let mut ends = SigSet::empty();
    ends.add(Signal::SIGTERM);
    pthread_sigmask(SigmaskHow::SIG_UNBLOCK, Some(&ends), None)
        .map_err(|errno| Failure::new(format!("sigmask: {errno}")))
}

/// As many descriptors as the machine allows this process: a flow of many transfers needs two for each.
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
                "the lab has no connection to its director: {error}"
            ))
        })?;
    Ok(UnixStream::from(fd))
}
