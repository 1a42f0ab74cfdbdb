//! System calls that `nix` does not offer.

use nix::errno::Errno;
use nix::sys::epoll::Epoll;
use std::os::fd::AsRawFd;

/// Most events that one call returns; the rest come with the next call.
pub(crate) const EVENTS: usize = 64;

/// The buffer for the events that [`wait`] returns.
#[derive(Debug)]
pub(crate) struct Events([libc::epoll_event; EVENTS]);

impl Events {
    pub(crate) fn new() -> Self {
        Self([libc::epoll_event { events: 0, u64: 0 }; EVENTS])
    }

    /// The tag of the event with this index, and whether it reports an error or a hang-up.
    pub(crate) fn get(&self, index: usize) -> (u64, bool) {
        // Copied: the kernel's struct is packed on x86-64.
        let event = self.0[index];
        let gone = libc::EPOLLERR | libc::EPOLLHUP;
        (event.u64, event.events & gone as u32 != 0)
    }
}

/// Waits for events for at most `timeout_ns` (`None`: for ever), with nanosecond resolution. Returns their number.
pub(crate) fn wait(
    epoll: &Epoll,
    events: &mut Events,
    timeout_ns: Option<u64>,
) -> Result<usize, Errno> {
    let timeout = timeout_ns.map(|ns| libc::timespec {
        // Both fit: below 2^34 and below 10^9.
        tv_sec: (ns / 1_000_000_000) as _,
        tv_nsec: (ns % 1_000_000_000) as _,
    });
    let timeout_pointer = timeout
        .as_ref()
        .map_or(std::ptr::null(), std::ptr::from_ref);
    // SAFETY: the descriptor is open for the whole call, `events` has room for EVENTS entries that the kernel may
    // write, the timeout lives until the call returns or is null, and a null signal mask needs no size. Called by
    // number because glibc has the function only from 2.35 on; the kernel has it from 5.11 on.
    let count = unsafe {
        libc::syscall(
            libc::SYS_epoll_pwait2,
            epoll.0.as_raw_fd(),
            events.0.as_mut_ptr(),
            EVENTS as libc::c_int,
            timeout_pointer,
            std::ptr::null::<libc::sigset_t>(),
            0_usize,
        )
    };
    // At most EVENTS.
    Errno::result(count).map(|count| count as usize)
}

/// The calling thread's id in the system.
pub(crate) fn thread_id() -> i32 {
    nix::unistd::gettid().as_raw()
}

/// Gives a thread this real-time priority (`SCHED_FIFO`), which its children do not inherit; 0 is the calling thread.
pub(crate) fn set_real_time(thread_id: i32, priority: u8) -> Result<(), Errno> {
    let parameters = parameters(libc::c_int::from(priority));
    let policy = libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK;
    // SAFETY: the parameters live until the call returns. By number because musl's function always fails.
    let result = unsafe {
        libc::syscall(
            libc::SYS_sched_setscheduler,
            thread_id,
            policy,
            &raw const parameters,
        )
    };
    Errno::result(result).map(drop)
}

/// The calling thread's real-time priority, if it has one.
pub(crate) fn real_time_priority() -> Result<Option<u8>, Errno> {
    // SAFETY: no pointers; 0 is the calling thread.
    let policy = Errno::result(unsafe { libc::syscall(libc::SYS_sched_getscheduler, 0) })?;
    if policy & !(libc::SCHED_RESET_ON_FORK as libc::c_long) != libc::SCHED_FIFO as libc::c_long {
        return Ok(None);
    }
    let mut parameters = parameters(0);
    // SAFETY: the kernel writes the parameters before the call returns.
    let result = unsafe { libc::syscall(libc::SYS_sched_getparam, 0, &raw mut parameters) };
    Errno::result(result)?;
    // 1 to 99.
    Ok(Some(parameters.sched_priority as u8))
}

fn parameters(priority: libc::c_int) -> libc::sched_param {
    // SAFETY: sched_param has integers only, for which zero is a value.
    let mut parameters: libc::sched_param = unsafe { std::mem::zeroed() };
    parameters.sched_priority = priority;
    parameters
}
