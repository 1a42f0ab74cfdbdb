//! A new user namespace, in which the process is root without privileges over the host.
//!
//! All operations of this crate on namespaces, links, routes and MPTCP work inside it. Loading BPF programs and setting
//! real-time priority do not. Source: user_namespaces(7).

use std::fs;

use nix::errno::Errno;
use nix::sched::{CloneFlags, unshare};
use nix::unistd::{getegid, geteuid};

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
    unshare(CloneFlags::CLONE_NEWUSER).map_err(|errno| {
        NetError::kernel("make a user namespace", errno).with_hint(refusal(errno))
    })?;
    // Before the group map: an unprivileged process may write that only after it gave up setgroups().
    write("/proc/self/setgroups", "deny")?;
    write("/proc/self/uid_map", &format!("0 {user} 1"))?;
    write("/proc/self/gid_map", &format!("0 {group} 1"))
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
