//! The version of the running kernel, and the privileges of this process.

use crate::error::LoadError;
use std::path::Path;

/// Bit of a capability in /proc/PID/status (linux/capability.h).
pub const CAP_SYS_ADMIN: u32 = 21;
/// As [`CAP_SYS_ADMIN`].
pub const CAP_PERFMON: u32 = 38;
/// As [`CAP_SYS_ADMIN`].
pub const CAP_BPF: u32 = 39;

/// Release of the running kernel, such as "6.12.9-amd64".
pub fn release() -> String {
    std::fs::read_to_string("/proc/sys/kernel/osrelease")
        .map(|text| text.trim().to_owned())
        .unwrap_or_default()
}

/// Since this version the kernel unregisters a congestion control together with its link.
pub const STRUCT_OPS_LINKS: (u32, u32) = (6, 4);

/// Major and minor number of the running kernel; (0, 0) if they cannot be read.
pub fn version() -> (u32, u32) {
    parse_version(&release()).unwrap_or_default()
}

/// Major and minor number in a kernel's release string, such as "6.12.9-amd64".
pub fn parse_version(release: &str) -> Option<(u32, u32)> {
    let mut parts = release.split(|c: char| !c.is_ascii_digit());
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

/// Whether the kernel unregisters a congestion control together with its link (since 6.4).
pub fn has_struct_ops_links() -> bool {
    version() >= STRUCT_OPS_LINKS
}

/// Whether this process has, in the first user namespace, the capabilities that loading eBPF needs.
pub fn may_load() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    suffices(capabilities_in(&status)) && !in_user_namespace()
}

/// Whether this process is in another user namespace than the first, where capabilities do not count for eBPF.
pub fn in_user_namespace() -> bool {
    std::fs::read_link("/proc/self/ns/user")
        .is_ok_and(|link| link != Path::new(FIRST_USER_NAMESPACE))
}

/// PROC_USER_INIT_INO of linux/proc_ns.h.
const FIRST_USER_NAMESPACE: &str = "user:[4026531837]";

/// The effective capabilities in the text of a /proc/PID/status, as a bit set; 0 if the text has none.
pub fn capabilities_in(status: &str) -> u64 {
    status
        .lines()
        .find_map(|line| line.strip_prefix("CapEff:"))
        .and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok())
        .unwrap_or(0)
}

/// Whether these capabilities are enough to load eBPF.
pub fn suffices(capabilities: u64) -> bool {
    let has = |bit: u32| capabilities & 1 << bit != 0;
    has(CAP_SYS_ADMIN) || (has(CAP_BPF) && has(CAP_PERFMON))
}

/// Checks whether this process can load eBPF on this machine.
///
/// # Errors
/// The first obstacle.
pub fn check() -> Result<(), LoadError> {
    if version() < mptcplab_cc::OLDEST_KERNEL {
        return Err(LoadError::OldKernel { found: release() });
    }
    if !Path::new("/sys/kernel/btf/vmlinux").exists() {
        return Err(LoadError::NoBtf);
    }
    if !may_load() {
        return Err(LoadError::Privilege);
    }
    Ok(())
}

/// Length of a jiffy in nanoseconds: the resolution of the coarse clock, which ticks with them.
pub(crate) fn jiffy_ns() -> u64 {
    let mut resolution = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `resolution` is a valid place for the answer.
    unsafe { libc::clock_getres(libc::CLOCK_MONOTONIC_COARSE, &raw mut resolution) };
    // The clock exists on every Linux since 2.6.32, and its resolution is below a second.
    resolution.tv_nsec as u64
}

/// Jiffies per second.
pub(crate) fn hz() -> u32 {
    let jiffy_ns = jiffy_ns();
    ((1_000_000_000 + jiffy_ns / 2) / jiffy_ns) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jiffies_are_what_kernels_are_built_with() {
        assert!([100, 250, 300, 1000].contains(&hz()), "{}", hz());
    }

    #[test]
    fn releases_of_distributions_are_understood() {
        assert_eq!(parse_version("6.1.0-50-cloud-amd64"), Some((6, 1)));
        assert_eq!(parse_version("6.18.44"), Some((6, 18)));
        assert_eq!(parse_version("7.2"), Some((7, 2)));
        assert_eq!(parse_version("6.12-rc3"), Some((6, 12)));
        assert_eq!(parse_version("7.2-rc1+"), Some((7, 2)));
        assert_eq!(parse_version(""), None);
    }
}
