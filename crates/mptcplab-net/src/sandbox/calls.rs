//! The system calls that a shut-in process may use. Any other one fails with ENOSYS, as on a kernel that lacks it, so that
//! the C library uses older ones where it can (clone for clone3).
//!
//! What is not here cannot be called: mount and the newer calls for mounts, ptrace, bpf, perf_event_open, keyctl,
//! init_module, io_uring, userfaultfd, kexec_load, process_vm_readv, open_by_handle_at, chroot, setuid, capset.

use std::collections::BTreeMap;
use std::io;

use libc::c_long;
use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition,
    SeccompFilter, SeccompRule, apply_filter,
};

use crate::{NetError, Result};

/// Calls that are allowed with any arguments.
const ANY: &[c_long] = &[
    // Memory
    libc::SYS_brk,
    libc::SYS_madvise,
    libc::SYS_membarrier,
    libc::SYS_mlock,
    libc::SYS_mlock2,
    libc::SYS_mlockall,
    libc::SYS_mmap,
    libc::SYS_mprotect,
    libc::SYS_mremap,
    libc::SYS_munlock,
    libc::SYS_munlockall,
    libc::SYS_munmap,
    // Threads and their scheduling
    libc::SYS_exit,
    libc::SYS_exit_group,
    libc::SYS_futex,
    libc::SYS_get_robust_list,
    libc::SYS_getcpu,
    libc::SYS_getpid,
    libc::SYS_getppid,
    libc::SYS_gettid,
    libc::SYS_prctl,
    libc::SYS_rseq,
    libc::SYS_sched_get_priority_max,
    libc::SYS_sched_get_priority_min,
    libc::SYS_sched_getaffinity,
    libc::SYS_sched_getattr,
    libc::SYS_sched_getparam,
    libc::SYS_sched_getscheduler,
    libc::SYS_sched_setaffinity,
    libc::SYS_sched_setattr,
    libc::SYS_sched_setscheduler,
    libc::SYS_sched_yield,
    libc::SYS_set_robust_list,
    libc::SYS_set_tid_address,
    // Signals
    libc::SYS_kill,
    libc::SYS_restart_syscall,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigpending,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_rt_sigsuspend,
    libc::SYS_rt_sigtimedwait,
    libc::SYS_sigaltstack,
    libc::SYS_signalfd4,
    libc::SYS_tgkill,
    // Files
    libc::SYS_close,
    libc::SYS_close_range,
    libc::SYS_dup,
    libc::SYS_dup3,
    libc::SYS_epoll_create1,
    libc::SYS_epoll_ctl,
    libc::SYS_epoll_pwait,
    libc::SYS_epoll_pwait2,
    libc::SYS_eventfd2,
    libc::SYS_faccessat,
    libc::SYS_faccessat2,
    libc::SYS_fcntl,
    libc::SYS_fstat,
    libc::SYS_fstatfs,
    libc::SYS_ftruncate,
    libc::SYS_getcwd,
    libc::SYS_getdents64,
    libc::SYS_lseek,
    libc::SYS_newfstatat,
    libc::SYS_openat,
    libc::SYS_pipe2,
    libc::SYS_ppoll,
    libc::SYS_pread64,
    libc::SYS_preadv,
    libc::SYS_pselect6,
    libc::SYS_pwrite64,
    libc::SYS_pwritev,
    libc::SYS_read,
    libc::SYS_readlinkat,
    libc::SYS_readv,
    libc::SYS_statfs,
    libc::SYS_statx,
    libc::SYS_timerfd_create,
    libc::SYS_timerfd_gettime,
    libc::SYS_timerfd_settime,
    libc::SYS_umask,
    libc::SYS_unlinkat,
    libc::SYS_write,
    libc::SYS_writev,
    // Sockets
    libc::SYS_accept,
    libc::SYS_accept4,
    libc::SYS_bind,
    libc::SYS_connect,
    libc::SYS_getpeername,
    libc::SYS_getsockname,
    libc::SYS_getsockopt,
    libc::SYS_listen,
    libc::SYS_recvfrom,
    libc::SYS_recvmmsg,
    libc::SYS_recvmsg,
    libc::SYS_sendmmsg,
    libc::SYS_sendmsg,
    libc::SYS_sendto,
    libc::SYS_setsockopt,
    libc::SYS_shutdown,
    libc::SYS_socketpair,
    // Time
    libc::SYS_clock_getres,
    libc::SYS_clock_gettime,
    libc::SYS_clock_nanosleep,
    libc::SYS_gettimeofday,
    libc::SYS_nanosleep,
    libc::SYS_times,
    // The process and the machine
    libc::SYS_capget,
    libc::SYS_getegid,
    libc::SYS_geteuid,
    libc::SYS_getgid,
    libc::SYS_getrandom,
    libc::SYS_getrlimit,
    libc::SYS_getrusage,
    libc::SYS_getuid,
    libc::SYS_prlimit64,
    libc::SYS_setrlimit,
    libc::SYS_sysinfo,
    libc::SYS_uname,
];

/// What starting and following another program needs.
const PROGRAMS: &[c_long] = &[
    libc::SYS_execve,
    libc::SYS_getpgid,
    libc::SYS_pidfd_getfd,
    libc::SYS_pidfd_open,
    libc::SYS_pidfd_send_signal,
    libc::SYS_setitimer,
    libc::SYS_wait4,
    libc::SYS_waitid,
];

/// Older forms of calls above, which newer architectures do not have.
#[cfg(target_arch = "x86_64")]
const OLDER: &[c_long] = &[
    libc::SYS_access,
    libc::SYS_arch_prctl,
    libc::SYS_dup2,
    libc::SYS_epoll_create,
    libc::SYS_epoll_wait,
    libc::SYS_eventfd,
    libc::SYS_getpgrp,
    libc::SYS_lstat,
    libc::SYS_open,
    libc::SYS_pipe,
    libc::SYS_poll,
    libc::SYS_readlink,
    libc::SYS_select,
    libc::SYS_stat,
    libc::SYS_time,
    libc::SYS_unlink,
];
#[cfg(not(target_arch = "x86_64"))]
const OLDER: &[c_long] = &[];

const FAMILIES: [libc::c_int; 4] = [
    libc::AF_UNIX,
    libc::AF_INET,
    libc::AF_INET6,
    libc::AF_NETLINK,
];
/// Every flag of clone(2) that makes a namespace.
const NEW_NAMESPACES: libc::c_int = libc::CLONE_NEWNS
    | libc::CLONE_NEWCGROUP
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUSER
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNET
    | CLONE_NEWTIME;
/// Of `linux/sched.h`.
const CLONE_NEWTIME: libc::c_int = 0x80;

/// Restricts the calling thread, and all that it starts, to the calls above. Needs no_new_privs.
pub(super) fn restrict(programs: bool) -> Result<()> {
    let refused = |error: &dyn std::fmt::Display| {
        let why = io::Error::other(error.to_string());
        NetError::kernel("restrict the system calls", why)
            .with_hint("the kernel needs CONFIG_SECCOMP_FILTER, which every distribution's has")
    };
    let filter = filter(programs).map_err(|error| refused(&error))?;
    apply_filter(&filter).map_err(|error| refused(&error))
}

fn filter(programs: bool) -> std::result::Result<BpfProgram, BackendError> {
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> = BTreeMap::new();
    let more = if programs { PROGRAMS } else { &[] };
    for &call in ANY.iter().chain(OLDER).chain(more) {
        rules.insert(call, Vec::new());
    }
    let network_only = || argument(0, SeccompCmpOp::Eq, libc::CLONE_NEWNET);
    rules.insert(libc::SYS_unshare, vec![rule(vec![network_only()?])?]);
    let into_network = argument(1, SeccompCmpOp::Eq, libc::CLONE_NEWNET)?;
    rules.insert(libc::SYS_setns, vec![rule(vec![into_network])?]);
    let no_namespace = SeccompCmpOp::MaskedEq(NEW_NAMESPACES as u64);
    rules.insert(
        libc::SYS_clone,
        vec![rule(vec![argument(0, no_namespace, 0)?])?],
    );
    let families = FAMILIES
        .iter()
        .map(|&family| rule(vec![argument(0, SeccompCmpOp::Eq, family)?]))
        .collect::<std::result::Result<Vec<_>, _>>()?;
    rules.insert(libc::SYS_socket, families);
    // Both would let it type into the terminal from which it was started.
    // The type of these constants is another one with musl.
    let not_typing = [libc::TIOCSTI, libc::TIOCLINUX]
        .map(|request| argument(1, SeccompCmpOp::Ne, request as libc::c_int));
    let not_typing = not_typing
        .into_iter()
        .collect::<std::result::Result<_, _>>()?;
    rules.insert(libc::SYS_ioctl, vec![rule(not_typing)?]);
    SeccompFilter::new(
        rules,
        SeccompAction::Errno(libc::ENOSYS as u32),
        SeccompAction::Allow,
        std::env::consts::ARCH.try_into()?,
    )?
    .try_into()
}

fn rule(conditions: Vec<SeccompCondition>) -> std::result::Result<SeccompRule, BackendError> {
    SeccompRule::new(conditions)
}

/// Compares the lower 32 bits of an argument, which is all that the kernel looks at for an `int`.
fn argument(
    index: u8,
    operation: SeccompCmpOp,
    value: libc::c_int,
) -> std::result::Result<SeccompCondition, BackendError> {
    SeccompCondition::new(index, SeccompCmpArgLen::Dword, operation, value as u64)
}
