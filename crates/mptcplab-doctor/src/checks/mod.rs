//! The checks: each turns facts into findings and uses nothing else.

mod buffers;
mod congestion;
mod kernel;
mod machine;
mod mptcp;
mod privileges;

use super::facts::Facts;
use super::finding::Finding;

pub(super) use buffers::TargetBdp;
pub(super) use congestion::{Coupling, coupling_of};
pub(super) use mptcp::is_path_manager_in_user_space;

/// Every check, in the order of the table.
pub(super) fn all(facts: &Facts, target_bdp: Option<TargetBdp>) -> Vec<Finding> {
    [
        kernel::check(facts),
        privileges::check(facts),
        mptcp::check(facts),
        congestion::check(facts),
        buffers::check(facts, target_bdp),
        machine::check(facts),
    ]
    .concat()
}

#[cfg(test)]
mod tests {
    use super::super::bpffs::State;
    use super::super::facts::{Endpoint, Facts, Iperf3, Loaded, PathManagement, Processors};
    use super::super::finding::{Finding, Status, worst};
    use super::super::probe::ProbeResults;
    use super::all;

    /// A machine on which everything runs.
    pub(super) fn healthy() -> Facts {
        Facts {
            release: "6.12.107-cloud-amd64".into(),
            sysctls: [
                (
                    "net.ipv4.tcp_allowed_congestion_control",
                    "reno cubic lab_olia",
                ),
                (
                    "net.ipv4.tcp_available_congestion_control",
                    "reno cubic lab_olia",
                ),
                ("net.ipv4.tcp_congestion_control", "cubic"),
                ("net.ipv4.tcp_rmem", "4096 131072 6291456"),
                ("net.ipv4.tcp_wmem", "4096 16384 4194304"),
                ("net.mptcp.available_schedulers", "default"),
                ("net.mptcp.enabled", "1"),
                ("net.mptcp.pm_type", "0"),
                ("net.mptcp.scheduler", "default"),
                ("user.max_user_namespaces", "15000"),
            ]
            .map(|(name, value)| (name, value.to_owned()))
            .into(),
            struct_ops: Some(vec!["tcp_congestion_ops".into()]),
            capabilities: u64::MAX,
            in_user_namespace: false,
            load: Some(Ok(())),
            probe: ProbeResults {
                user: Some(Ok(())),
                network: Some(Ok(())),
                tun_node: Some(Ok(())),
                tun: Some(Ok(())),
                realtime: Some(Ok(())),
            },
            escape: Some(Ok(Vec::new())),
            is_root: true,
            tun_node: true,
            bpffs: State::Ready,
            paths: Some(PathManagement {
                subflows: 4,
                add_addr_accepted: 3,
                endpoints: vec![Endpoint {
                    address: [192, 0, 2, 7].into(),
                    id: 5,
                    flags: vec!["subflow", "backup"],
                    device: Some("wlan0".into()),
                }],
            }),
            loaded: Some(vec![Loaded {
                name: "lab_olia".into(),
                sockets: 3,
                users: 3,
                uncoupled: 0,
                held: "pinned",
                leftover: false,
            }]),
            clang: Some("Debian clang version 14.0.6".into()),
            iperf3: Some(Iperf3 {
                version: "3.18".into(),
                mptcp: true,
            }),
            mptcpize: false,
            processors: Processors {
                count: 4,
                idle: 0.9,
                load: 0.3,
            },
        }
    }

    /// The same machine after a change.
    pub(super) fn healthy_except(change: impl FnOnce(&mut Facts)) -> Facts {
        let mut facts = healthy();
        change(&mut facts);
        facts
    }

    /// The finding of that name.
    pub(super) fn line<'a>(findings: &'a [Finding], name: &str) -> &'a Finding {
        findings
            .iter()
            .find(|finding| finding.name == name)
            .unwrap_or_else(|| panic!("no line {name:?} in {findings:#?}"))
    }

    #[test]
    fn a_healthy_machine_has_nothing_to_mend() {
        for finding in all(&healthy(), None) {
            assert_eq!(finding.status, Status::Ok, "{finding:?}");
            assert_eq!(finding.remedy, None, "{finding:?}");
            assert!(
                !finding.found.is_empty() && !finding.meaning.is_empty(),
                "{finding:?}"
            );
        }
    }

    #[test]
    fn an_empty_machine_lacks_what_the_engine_needs_and_breaks_nothing() {
        let findings = all(&Facts::default(), None);
        assert_eq!(worst(&findings), Status::Missing);
        for name in [
            "version",
            "MPTCP",
            "BTF",
            "eBPF privileges",
            "user namespaces",
            "TUN device",
        ] {
            assert_eq!(line(&findings, name).status, Status::Missing, "{name}");
        }
        for finding in findings.iter().filter(|f| f.status == Status::Missing) {
            assert!(finding.remedy.is_some(), "{finding:?}");
        }
    }

    /// Remedies named `.venv/bin/mptcplab`, which whoever has only the program does not have.
    #[test]
    fn no_line_names_a_command_that_the_user_does_not_have() {
        let denied = healthy_except(|facts| {
            facts.release = "6.3.9".into();
            facts.load = None;
            facts.capabilities = 0;
            facts.is_root = false;
            facts.escape = Some(Err("no seccomp".into()));
            facts.probe = ProbeResults {
                user: Some(Err(1)),
                network: None,
                tun_node: Some(Ok(())),
                tun: Some(Err(1)),
                realtime: Some(Err(1)),
            };
            facts
                .sysctls
                .insert("net.ipv4.tcp_available_congestion_control", "reno".into());
        });
        let refused = healthy_except(|facts| {
            facts.load = Some(Err("no".into()));
            facts.bpffs = State::Absent;
            facts.loaded.as_mut().unwrap()[0].uncoupled = 38;
        });
        let machines = [healthy(), denied, refused, Facts::default()];
        for finding in machines.iter().flat_map(|facts| all(facts, None)) {
            let text = format!(
                "{}\n{}",
                finding.meaning,
                finding.remedy.as_deref().unwrap_or_default()
            );
            assert!(!text.contains(".venv"), "{finding:?}");
            for command in ["cc", "doctor", "run"] {
                assert!(
                    !text.contains(&format!("mptcplab {command}")),
                    "{finding:?}"
                );
            }
        }
    }

    #[test]
    fn names_are_unique() {
        let findings = all(&healthy(), None);
        let mut names: Vec<_> = findings.iter().map(|f| f.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), findings.len());
    }
}
