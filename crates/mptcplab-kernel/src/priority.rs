//! Real-time priority for the thread that moves the packets.
//!
//! A lab in the sandbox may not set it, but a thread inherits the priority of the thread that starts it, and every thread
//! may give its priority up: the supervisor raises the priority of the lab's first thread, which starts the emulator's
//! thread and then drops its own.

use nix::errno::Errno;

/// A low real-time priority: above all ordinary threads, below those of dedicated real-time applications.
pub(crate) const REAL_TIME: i32 = 10;

/// Gives a thread `SCHED_FIFO`; the number of a process is that of its first thread. Needs CAP_SYS_NICE or RLIMIT_RTPRIO.
pub(crate) fn raise(thread: u32) -> Result<(), Errno> {
    // Their numbers are positive and have 22 bits.
    set(thread as libc::pid_t, libc::SCHED_FIFO, REAL_TIME)
}

/// Makes the calling thread an ordinary one.
pub(crate) fn drop_own() -> Result<(), Errno> {
    set(0, libc::SCHED_OTHER, 0)
}

fn set(thread: libc::pid_t, policy: libc::c_int, priority: i32) -> Result<(), Errno> {
    // SAFETY: the kernel reads its parameters, of which the priority is the only one, during the call. The system call
    // itself, as musl's wrapper always fails.
    let result = unsafe {
        libc::syscall(
            libc::SYS_sched_setscheduler,
            thread,
            policy,
            &raw const priority,
        )
    };
    Errno::result(result).map(drop)
}
