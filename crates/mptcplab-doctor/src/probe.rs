//! Tries the engine's privileged operations in a child process that ends at once, because only an attempt shows what a
//! security module allows.
//!
//! The child only makes system calls, as a process must that was forked from a program that may have threads.

use nix::sys::wait::waitpid;
use nix::unistd::{ForkResult, fork, pipe};
use std::fs::File;
use std::io::Read;
use std::os::fd::{AsRawFd, OwnedFd};

/// The result of one step: `Ok`, or the kernel's error number. Steps after a failed one are `None`.
pub(super) type Step = Option<Result<(), i32>>;

/// The results of the operations of a run's lab process, in their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct ProbeResults {
    /// Creating a user namespace.
    pub(super) user: Step,
    /// Creating a network namespace in it.
    pub(super) network: Step,
    /// Opening the device node `/dev/net/tun`.
    pub(super) tun_node: Step,
    /// Creating a TUN device in the namespace.
    pub(super) tun: Step,
    /// Setting the emulator's real-time scheduling, which is tried before the others.
    pub(super) realtime: Step,
}

const STEPS: usize = 5;
/// Marks a step that was not reached; error numbers are positive and 0 is success.
const NOT_TRIED: i32 = -1;
/// Of `linux/if_tun.h`: a device for IP packets, without a header before each.
const IFF_TUN_NO_PI: libc::c_short = 0x1001;
const TUNSETIFF: libc::c_ulong = 0x4004_54ca;
/// The lowest real-time priority: enough to find out whether one can be set.
const PRIORITY: libc::c_int = 1;

/// Runs the steps in a child. `None` if no child could be created.
pub(super) fn run() -> Option<ProbeResults> {
    let (reader, writer) = pipe().ok()?;
    // SAFETY: the child calls `attempt`, which makes system calls only, and then `_exit`.
    match unsafe { fork() }.ok()? {
        ForkResult::Child => {
            let outcome = attempt();
            send(&writer, &outcome);
            // SAFETY: ends the child without running destructors or handlers of the parent's.
            unsafe { libc::_exit(0) }
        }
        ForkResult::Parent { child } => {
            drop(writer);
            let found = receive(reader);
            let _ = waitpid(child, None);
            found
        }
    }
}

/// The error numbers of the steps. The real-time step does not depend on the others.
fn attempt() -> [i32; STEPS] {
    let mut outcome = [NOT_TRIED; STEPS];
    outcome[STEPS - 1] = be_realtime();
    let steps = [
        || unshare(libc::CLONE_NEWUSER),
        || unshare(libc::CLONE_NEWNET),
        open_tun_node,
        make_tun,
    ];
    for (step, result) in steps.iter().zip(outcome.iter_mut()) {
        *result = step();
        if *result != 0 {
            break;
        }
    }
    outcome
}

fn unshare(what: libc::c_int) -> i32 {
    // SAFETY: takes a flag; changes this short-lived child only.
    number_of(unsafe { libc::unshare(what) })
}

fn open_tun_node() -> i32 {
    let fd = tun_node();
    if fd < 0 {
        return errno();
    }
    // SAFETY: `fd` was opened above and is used nowhere else.
    unsafe { libc::close(fd) };
    0
}

fn tun_node() -> libc::c_int {
    // SAFETY: the path is a C string.
    unsafe { libc::open(c"/dev/net/tun".as_ptr(), libc::O_RDWR | libc::O_CLOEXEC) }
}

/// The device disappears with its descriptor, which is closed when the child ends.
fn make_tun() -> i32 {
    let fd = tun_node();
    // `struct ifreq`: 16 bytes of name (empty: the kernel chooses), then the flags.
    let mut request = [0_u8; 40];
    request[16..18].copy_from_slice(&IFF_TUN_NO_PI.to_ne_bytes());
    // SAFETY: the kernel reads and writes one `struct ifreq`, 40 bytes, which is what `request` has.
    number_of(unsafe { libc::ioctl(fd, TUNSETIFF as _, request.as_mut_ptr()) })
}

fn be_realtime() -> i32 {
    // SAFETY: all members of this structure are integers.
    let mut parameter: libc::sched_param = unsafe { std::mem::zeroed() };
    parameter.sched_priority = PRIORITY;
    // SAFETY: the pointer is to a local that lives through the call; 0 is the calling child.
    number_of(unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const parameter) })
}

fn number_of(returned: libc::c_int) -> i32 {
    if returned < 0 { errno() } else { 0 }
}

fn errno() -> i32 {
    nix::errno::Errno::last_raw()
}

fn send(writer: &OwnedFd, outcome: &[i32; STEPS]) {
    // SAFETY: the pointer and length are those of the array. 20 bytes go into an empty pipe at once.
    unsafe {
        libc::write(
            writer.as_raw_fd(),
            outcome.as_ptr().cast(),
            size_of_val(outcome),
        )
    };
}

fn receive(reader: OwnedFd) -> Option<ProbeResults> {
    let mut bytes = Vec::new();
    File::from(reader).read_to_end(&mut bytes).ok()?;
    let numbers: Vec<i32> = bytes
        .chunks_exact(size_of::<i32>())
        .filter_map(|chunk| chunk.try_into().ok().map(i32::from_ne_bytes))
        .collect();
    let step = |number: i32| match number {
        NOT_TRIED => None,
        0 => Some(Ok(())),
        errno => Some(Err(errno)),
    };
    let [user, network, tun_node, tun, realtime] = <[i32; STEPS]>::try_from(numbers).ok()?;
    Some(ProbeResults {
        user: step(user),
        network: step(network),
        tun_node: step(tun_node),
        tun: step(tun),
        realtime: step(realtime),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_probe_answers_and_leaves_this_process_as_it_was() {
        let namespaces = || {
            ["user", "net"].map(|kind| std::fs::read_link(format!("/proc/self/ns/{kind}")).unwrap())
        };
        let before = namespaces();
        let found = run().expect("a child can be made");
        assert_eq!(namespaces(), before);
        assert!(found.user.is_some(), "{found:?}");
        assert!(found.realtime.is_some(), "{found:?}");
        // A step is tried exactly if all before it succeeded.
        let steps = [found.user, found.network, found.tun_node, found.tun];
        for pair in steps.windows(2) {
            assert_eq!(pair[1].is_some(), pair[0] == Some(Ok(())), "{found:?}");
        }
    }
}
