//! Real-time priority for the thread that moves the packets.
//!
//! The lab has no privilege for it, but a thread inherits what its maker has, and may always give it up: the
//! director gives it to the lab's main thread, which starts the emulator's and then drops its own.

use nix::errno::Errno;

/// The emulator's default: above nothing that a desktop runs, below what serious real-time work uses.
pub(crate) const REAL_TIME: i32 = 10;

/// Gives the main thread of a process `SCHED_FIFO`. Needs CAP_SYS_NICE or RLIMIT_RTPRIO.
pub(crate) fn raise(process: u32) -> Result<(), Errno> {
    // Process ids are positive numbers of 22 bits.
    set(process as libc::pid_t, libc::SCHED_FIFO, REAL_TIME)
}

/// Makes the calling thread one like any other.
pub(crate) fn drop_own() -> Result<(), Errno> {
    set(0, libc::SCHED_OTHER, 0)
}

fn set(thread: libc::pid_t, policy: libc::c_int, priority: i32) -> Result<(), Errno> {
    let parameters = libc::sched_param {
        sched_priority: priority,
    };
    // SAFETY: the kernel reads `parameters` during the call only. The system call itself, as musl's wrapper always
    // fails.
    let result = unsafe {
        libc::syscall(
            libc::SYS_sched_setscheduler,
            thread,
            policy,
            &raw const parameters,
        )
    };
    Errno::result(result).map(drop)
}
