//! Shuts the calling process in: what it does afterwards can reach its own network namespaces and nothing else.
//!
//! | What | If root starts it | Otherwise |
//! |---|---|---|
//! | user on the host | one that nobody else has | the caller |
//! | file system | `/proc`, `/dev/net/tun`, copies of the named files; read-only | the same |
//! | mounts | belong to the host's root | belong to the process, which may not call mount(2) |
//! | capabilities | CAP_NET_ADMIN and CAP_SYS_ADMIN over its own namespaces | the same |
//! | system calls | those of `calls` | the same |
//! | networks, IPC, host name | its own | the same |
//!
//! Nothing can be undone, and programs that it starts inherit everything, without the capabilities.
//! Sources: user_namespaces(7), capabilities(7), seccomp(2), pivot_root(2).

mod calls;
pub mod capabilities;
mod user;
mod view;

use std::path::PathBuf;

use nix::sched::{CloneFlags, unshare};
use nix::unistd::geteuid;

use crate::{NetError, Result, userns};

/// What the process needs inside.
#[derive(Debug, Clone, Copy)]
pub struct Needs<'a> {
    /// Files to read, by the paths with which they will be opened.
    pub files: &'a [PathBuf],
    /// Whether programs of `/usr` can be started.
    pub programs: bool,
}

/// Shuts the calling process in, which must have only one thread.
///
/// # Errors
///
/// [`NetError::Kernel`] when the kernel or a security module refuses, or a file cannot be read. The process may then be
/// shut in partly and should end.
pub fn enter(needs: Needs<'_>) -> Result<()> {
    let sources = view::open(needs.files)?;
    if geteuid().is_root() {
        // The mounts are made before the user namespace, so that they belong to the host's root.
        let user = user::unused()?;
        own(CloneFlags::CLONE_NEWNS, "mount namespace")?;
        view::replace(sources, needs.programs, Some(user))?;
        userns::enter_as(user)?;
    } else {
        userns::enter()?;
        own(CloneFlags::CLONE_NEWNS, "mount namespace")?;
        view::replace(sources, needs.programs, None)?;
    }
    let rest = CloneFlags::CLONE_NEWNET | CloneFlags::CLONE_NEWIPC | CloneFlags::CLONE_NEWUTS;
    own(rest, "namespaces of network, IPC and host name")?;
    capabilities::reduce()?;
    calls::restrict(needs.programs)
}

fn own(flags: CloneFlags, what: &str) -> Result<()> {
    unshare(flags).map_err(|errno| {
        NetError::kernel(format!("make a {what}"), errno)
            .with_hint("run as root on the host; a container needs CAP_SYS_ADMIN")
    })
}
