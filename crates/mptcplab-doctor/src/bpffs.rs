//! The BPF file system, in which `cc load --pin` pins algorithms.

use nix::sys::statfs::{BPF_FS_MAGIC, FsType, statfs};
use nix::sys::statvfs::{FsFlags, statvfs};
use std::path::Path;

/// Its usual mount point.
pub const MOUNT: &str = "/sys/fs/bpf";

/// What is at [`MOUNT`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum State {
    /// No BPF file system.
    #[default]
    Absent,
    /// One in which nothing can be pinned or removed. The kernel does not even say what a pin is.
    ReadOnly,
    /// One that can be written to.
    Ready,
}

/// Examines the mount point.
pub fn state() -> State {
    state_at(Path::new(MOUNT), BPF_FS_MAGIC)
}

/// The command that mounts it.
pub fn mount() -> String {
    format!("mount -t bpf -o mode=0700 bpf {MOUNT}")
}

/// The command that makes a read-only one writable.
pub fn remount() -> String {
    format!("mount -o remount,rw {MOUNT}")
}

fn state_at(path: &Path, kind: FsType) -> State {
    if !statfs(path).is_ok_and(|found| found.filesystem_type() == kind) {
        return State::Absent;
    }
    match statvfs(path) {
        Ok(found) if found.flags().contains(FsFlags::ST_RDONLY) => State::ReadOnly,
        _ => State::Ready,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::sys::statfs::PROC_SUPER_MAGIC;

    #[test]
    fn another_file_system_is_none() {
        assert_eq!(state_at(Path::new("/proc"), BPF_FS_MAGIC), State::Absent);
        assert_eq!(state_at(Path::new("/proc"), PROC_SUPER_MAGIC), State::Ready);
        assert_eq!(state_at(Path::new("/no/such"), BPF_FS_MAGIC), State::Absent);
    }
}
