//! A new user namespace, in which the process is root without privileges over the host.
//!
//! All operations of this crate on namespaces, links, routes and MPTCP work inside it. Loading BPF programs and setting
//! real-time priority do not. Source: user_namespaces(7).

use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::os::fd::OwnedFd;

use nix::errno::Errno;
use nix::sched::{CloneFlags, unshare};
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::{
    ForkResult, Gid, Pid, Uid, fork, getegid, geteuid, getpid, pipe, setgroups, setresgid,
    setresuid,
};

use crate::{NetError, Result};

const MAX_USER_NAMESPACES: &str = "/proc/sys/user/max_user_namespaces";
const UNPRIVILEGED_CLONE: &str = "/proc/sys/kernel/unprivileged_userns_clone";
const APPARMOR_RESTRICTION: &str = "/proc/sys/kernel/apparmor_restrict_unprivileged_userns";

/// Moves the calling process into a new user namespace, in which its user and group are 0.
///
/// The process must have only one thread. It keeps its open files and loses its privileges over everything outside.
///
/// # Errors
///
/// [`NetError::Kernel`] when the kernel or a security module refuses; the hint names the setting that prevents it.
pub fn enter() -> Result<()> {
    let (user, group) = (geteuid(), getegid());
    unshare_user()?;
    // Before the group map: an unprivileged process may write that only after it gave up setgroups().
    write("/proc/self/setgroups", "deny")?;
    write("/proc/self/uid_map", &format!("0 {user} 1"))?;
    write("/proc/self/gid_map", &format!("0 {group} 1"))
}

/// The same for root, which becomes another user on the host: `number` is that user's and its group's.
///
/// The namespace belongs to root, so that other processes of the user have no rights over it. Calls fork(2).
///
/// # Errors
///
/// As [`enter`].
pub fn enter_as(number: u32) -> Result<()> {
    let failed = |what: &str| {
        let what = format!("become user {number}: {what}");
        move |errno: Errno| {
            NetError::kernel(what, errno)
                .with_hint("root needs CAP_SETUID and CAP_SETGID, which a container may lack")
        }
    };
    setgroups(&[]).map_err(failed("give up groups"))?;
    let (ready, signal) = pipe().map_err(failed("pipe"))?;
    let this = getpid();
    // SAFETY: this process has a single thread, as the namespace requires, so that its copy may do anything.
    let writer = match unsafe { fork() }.map_err(failed("fork"))? {
        ForkResult::Child => {
            drop(signal);
            let errno = map_when_ready(this, number, ready);
            // SAFETY: ends the copy without running the destructors of the original.
            unsafe { libc::_exit(errno) }
        }
        ForkResult::Parent { child } => child,
    };
    let entered = unshare_user();
    if entered.is_ok() {
        // Fails only if the copy has ended, which the next lines find out.
        let _ = File::from(signal).write_all(&[1]);
    } else {
        drop(signal);
    }
    let ended = waitpid(writer, None).map_err(failed("wait"))?;
    entered?;
    match ended {
        WaitStatus::Exited(_, 0) => {}
        WaitStatus::Exited(_, errno) => return Err(failed("map it")(Errno::from_raw(errno))),
        _ => return Err(failed("map it")(Errno::EINTR)),
    }
    let (group, user) = (Gid::from_raw(0), Uid::from_raw(0));
    setresgid(group, group, group).map_err(failed("setresgid"))?;
    setresuid(user, user, user).map_err(failed("setresuid"))
}

/// Waits for a byte, and maps user and group 0 of a process's namespace to `number`. Returns 0 or an error number.
fn map_when_ready(process: Pid, number: u32, ready: OwnedFd) -> i32 {
    if File::from(ready).read_exact(&mut [0]).is_err() {
        return 0;
    }
    let map = format!("0 {number} 1");
    let written = fs::write(format!("/proc/{process}/setgroups"), "deny")
        .and_then(|()| fs::write(format!("/proc/{process}/uid_map"), &map))
        .and_then(|()| fs::write(format!("/proc/{process}/gid_map"), &map));
    written.map_or_else(|error| error.raw_os_error().unwrap_or(libc::EIO), |()| 0)
}

fn unshare_user() -> Result<()> {
    unshare(CloneFlags::CLONE_NEWUSER)
        .map_err(|errno| NetError::kernel("make a user namespace", errno).with_hint(refusal(errno)))
}

fn write(path: &str, text: &str) -> Result<()> {
    fs::write(path, text).map_err(|error| {
        NetError::kernel(format!("write \"{text}\" to {path}"), error)
            .with_hint(refusal(Errno::EPERM))
    })
}

/// The setting that prevents it, as far as the kernel's settings show.
fn refusal(errno: Errno) -> String {
    if errno == Errno::EINVAL {
        return "only a process with a single thread can enter a user namespace; do it before any thread starts".into();
    }
    if setting(MAX_USER_NAMESPACES) == Some(0) || errno == Errno::ENOSPC {
        return "user namespaces are exhausted or switched off: raise the sysctl user.max_user_namespaces".into();
    }
    if setting(APPARMOR_RESTRICTION) == Some(1) {
        return "AppArmor keeps user namespaces from unprivileged programs here: run as root, or set the sysctl \
                kernel.apparmor_restrict_unprivileged_userns=0"
            .into();
    }
    if setting(UNPRIVILEGED_CLONE) == Some(0) {
        return "user namespaces are for root only here: run as root, or set the sysctl \
                kernel.unprivileged_userns_clone=1"
            .into();
    }
    "run as root, or allow user namespaces (a container may forbid them by its seccomp profile)"
        .into()
}

fn setting(path: &str) -> Option<u64> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}
