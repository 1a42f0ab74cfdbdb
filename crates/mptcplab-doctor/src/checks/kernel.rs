//! The kernel: its version, MPTCP, and the features that congestion control in eBPF needs.

use super::super::facts::Facts;
use super::super::finding::Finding;
use super::super::{bpffs, command};
use mptcplab_bpf::system::STRUCT_OPS_LINKS;
use mptcplab_cc::OLDEST_KERNEL;

const AREA: &str = "Kernel";

pub(super) fn check(facts: &Facts) -> Vec<Finding> {
    vec![
        version(facts),
        mptcp(facts),
        btf(facts),
        struct_ops(facts),
        bpf_file_system(facts),
    ]
}

fn bpf_file_system(facts: &Facts) -> Finding {
    let line = |found: &str, meaning: &str| Finding::ok(AREA, "BPF file system", found, meaning);
    let load = format!("`{} cc load --pin`", command::name());
    let at = bpffs::MOUNT;
    match facts.bpffs {
        bpffs::State::Ready => line(at, &format!("{load} pins algorithms there")),
        bpffs::State::ReadOnly => line(
            &format!("{at}, read-only"),
            &format!("{load} cannot pin algorithms, and `cc unload` cannot unload them; runs do not need it"),
        )
        .warn(bpffs::remount()),
        bpffs::State::Absent => line(
            &format!("none at {at}"),
            &format!("{load} cannot pin algorithms; runs do not need it"),
        )
        .warn(bpffs::mount()),
    }
}

fn version(facts: &Facts) -> Finding {
    let line = |meaning: &str| Finding::ok(AREA, "version", shown(&facts.release), meaning);
    match facts.version() {
        Some(version) if version >= STRUCT_OPS_LINKS => {
            line("since 6.4 the kernel unloads an algorithm when the process that loaded it ends")
        }
        Some(version) if version >= OLDEST_KERNEL => line(
            "algorithms can be loaded, but before 6.4 one stays registered if the process that loaded it is killed",
        )
        .warn(format!(
            "{} cc list    # after such a kill; `cc unload` removes it",
            command::as_root()
        )),
        _ => line("older than 6.1, the oldest kernel that the algorithms support")
            .missing("apt-get install linux-image-amd64    # of Debian 12 or newer; Ubuntu: linux-generic-hwe-24.04"),
    }
}

fn shown(text: &str) -> &str {
    if text.is_empty() { "unknown" } else { text }
}

fn mptcp(facts: &Facts) -> Finding {
    let line = |found: &str, meaning: &str| Finding::ok(AREA, "MPTCP", found, meaning);
    match facts.sysctl("net.mptcp.enabled") {
        Some("1") => line("enabled", "applications can open MPTCP sockets"),
        Some(value) => line(
            &format!("net.mptcp.enabled = {value}"),
            "disabled: applications cannot open MPTCP sockets",
        )
        .missing("sysctl -w net.mptcp.enabled=1"),
        None => line("none", "this kernel was built without MPTCP (CONFIG_MPTCP)")
            .missing("apt-get install linux-image-amd64    # Debian's kernels have it"),
    }
}

fn btf(facts: &Facts) -> Finding {
    let line = |found: &str, meaning: &str| Finding::ok(AREA, "BTF", found, meaning);
    match &facts.struct_ops {
        Some(_) => line(
            "/sys/kernel/btf/vmlinux",
            "the kernel describes its types, so that compiled algorithms can be adapted to it",
        ),
        None => line(
            "none",
            "without type information (/sys/kernel/btf/vmlinux) no algorithm can be adapted to this kernel",
        )
        .missing(
            "apt-get install linux-image-amd64    # Debian's kernels have CONFIG_DEBUG_INFO_BTF; in a container: mount /sys",
        ),
    }
}

fn struct_ops(facts: &Facts) -> Finding {
    let line = |found: &str, meaning: &str| Finding::ok(AREA, "struct_ops", found, meaning);
    let known = facts
        .struct_ops
        .iter()
        .flatten()
        .any(|name| name == "tcp_congestion_ops");
    match &facts.load {
        _ if facts.struct_ops.is_none() => line(
            "not known",
            "which structures eBPF can implement is part of BTF",
        )
        .missing(format!(
            "{} doctor    # again, after the problem above is fixed",
            command::name()
        )),
        _ if !known => line(
            "none",
            "this kernel does not support congestion control in eBPF",
        )
        .missing("apt-get install linux-image-amd64    # Debian's kernels do"),
        Some(Ok(())) => line(
            "works",
            "a congestion control was just loaded, registered and unloaded as a test",
        ),
        Some(Err(error)) => line(
            &format!("refused: {error}"),
            "no congestion control can be loaded",
        )
        .missing(format!(
            "{} cc load reno    # shows the kernel's full error message",
            command::as_root()
        )),
        None if facts.may_load() => line(
            "supported by the kernel",
            "loading was not tested: the test could not be run",
        )
        .warn_without_remedy(),
        None => line(
            "supported by the kernel",
            "loading was not tested: it needs privileges that this process lacks",
        )
        .warn(format!("{} doctor", command::as_root())),
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::finding::Status;
    use super::super::tests::{healthy_except, line};
    use super::*;

    #[test]
    fn the_version_has_three_grades() {
        let status = |release: &str| {
            line(
                &check(&healthy_except(|facts| facts.release = release.into())),
                "version",
            )
            .status
        };
        assert_eq!(status("6.4.0"), Status::Ok);
        assert_eq!(status("7.0.1"), Status::Ok);
        assert_eq!(status("6.3.9"), Status::Warn);
        assert_eq!(status("6.1.0-50-cloud-amd64"), Status::Warn);
        assert_eq!(status("6.0.19"), Status::Missing);
        assert_eq!(status("5.15.0-91-generic"), Status::Missing);
    }

    #[test]
    fn mptcp_off_is_not_mptcp_absent() {
        let off = check(&healthy_except(|facts| {
            drop(facts.sysctls.insert("net.mptcp.enabled", "0".into()))
        }));
        assert_eq!(
            line(&off, "MPTCP").remedy.as_deref(),
            Some("sysctl -w net.mptcp.enabled=1")
        );
        let absent = check(&healthy_except(|facts| {
            drop(facts.sysctls.remove("net.mptcp.enabled"))
        }));
        assert!(line(&absent, "MPTCP").meaning.contains("CONFIG_MPTCP"));
    }

    #[test]
    fn a_refused_load_carries_the_kernels_reason() {
        let refused = check(&healthy_except(|facts| {
            facts.load = Some(Err("Operation not permitted".into()))
        }));
        let found = line(&refused, "struct_ops");
        assert_eq!(found.status, Status::Missing);
        assert!(found.found.contains("Operation not permitted"));
    }

    #[test]
    fn what_was_not_tried_is_not_called_missing() {
        let untried = check(&healthy_except(|facts| {
            facts.load = None;
            facts.capabilities = 0;
        }));
        assert_eq!(line(&untried, "struct_ops").status, Status::Warn);
        let unknown = check(&healthy_except(|facts| {
            facts.struct_ops = Some(vec!["bpf_dummy_ops".into()])
        }));
        assert_eq!(line(&unknown, "struct_ops").status, Status::Missing);
    }

    #[test]
    fn a_file_system_in_which_nothing_can_be_pinned_is_a_warning() {
        for (state, status, remedy) in [
            (bpffs::State::Ready, Status::Ok, None),
            (bpffs::State::ReadOnly, Status::Warn, Some(bpffs::remount())),
            (bpffs::State::Absent, Status::Warn, Some(bpffs::mount())),
        ] {
            let found = check(&healthy_except(|facts| facts.bpffs = state));
            let found = line(&found, "BPF file system");
            assert_eq!((found.status, found.remedy.clone()), (status, remedy));
        }
    }

    /// The line said that the kernel does not support eBPF, which nobody can know without BTF.
    #[test]
    fn without_btf_nothing_is_claimed_of_struct_ops() {
        let without = check(&healthy_except(|facts| facts.struct_ops = None));
        let found = line(&without, "struct_ops");
        assert_eq!(
            (found.status, found.found.as_str()),
            (Status::Missing, "not known")
        );
        assert!(
            found
                .remedy
                .as_deref()
                .unwrap()
                .contains("doctor    # again")
        );
    }
}
