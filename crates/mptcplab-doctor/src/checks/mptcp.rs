//! MPTCP on this host: path manager, scheduler, limits and endpoints.

use super::super::facts::{Endpoint, Facts};
use super::super::finding::Finding;
use crate::limits;

const AREA: &str = "MPTCP on this host";
/// The kernel's own limit of subflows beyond the first.
const MAX_SUBFLOWS: u32 = 8;

pub(super) fn check(facts: &Facts) -> Vec<Finding> {
    if facts.sysctl("net.mptcp.enabled").is_none() {
        return Vec::new();
    }
    let mut lines = vec![path_manager(facts), scheduler(facts)];
    match &facts.paths {
        Some(paths) => lines.extend([
            limits_of(paths.subflows, paths.add_addr_accepted),
            endpoints(&paths.endpoints, paths.add_addr_accepted),
        ]),
        None => lines.push(
            Finding::ok(AREA, "limits", "unknown", "the path manager did not answer")
                .warn("ip mptcp limits"),
        ),
    }
    lines
}

/// Whether the path manager is in user space; two sysctls can say so.
pub(crate) fn is_path_manager_in_user_space(facts: &Facts) -> bool {
    facts.sysctl("net.mptcp.path_manager") == Some("userspace")
        || facts.number("net.mptcp.pm_type") == Some(1)
}

fn path_manager(facts: &Facts) -> Finding {
    let known = facts.words("net.mptcp.available_path_managers");
    let also = if known.is_empty() {
        String::new()
    } else {
        format!(" (available: {})", known.join(", "))
    };
    if is_path_manager_in_user_space(facts) {
        return Finding::ok(
            AREA,
            "path manager",
            format!("userspace{also}"),
            "the kernel opens no subflows by itself; a daemon such as mptcpd must do it",
        )
        .warn("sysctl -w net.mptcp.pm_type=0    # unless such a daemon runs");
    }
    Finding::ok(
        AREA,
        "path manager",
        format!("kernel{also}"),
        "the kernel opens subflows from the endpoints below",
    )
}

fn scheduler(facts: &Facts) -> Finding {
    let used = facts.sysctl("net.mptcp.scheduler").unwrap_or("default");
    let known = facts.words("net.mptcp.available_schedulers");
    let from_ebpf = facts
        .struct_ops
        .iter()
        .flatten()
        .any(|name| name == "mptcp_sched_ops");
    let meaning = if from_ebpf {
        "this kernel supports further schedulers in eBPF"
    } else {
        "this kernel supports no schedulers in eBPF; only the simulator has others"
    };
    let also = if known.len() > 1 {
        format!(" (available: {})", known.join(", "))
    } else {
        String::new()
    };
    Finding::ok(AREA, "scheduler", format!("{used}{also}"), meaning)
}

fn limits_of(subflows: u32, accepted: u32) -> Finding {
    let found = format!("subflows {subflows}, add_addr_accepted {accepted}");
    let line = |meaning: String| Finding::ok(AREA, "limits", found.clone(), meaning);
    if subflows == 0 {
        return line("connections get no second subflow".into()).warn(limits::raise());
    }
    let peers = if accepted == 0 {
        "addresses that a peer announces are not used"
    } else {
        "addresses that a peer announces are used"
    };
    let most = subflows.min(MAX_SUBFLOWS);
    line(format!(
        "up to {most} subflows per connection beyond the first; {peers}"
    ))
}

fn endpoints(endpoints: &[Endpoint], accepted: u32) -> Finding {
    if endpoints.is_empty() {
        return Finding::ok(
            AREA,
            "endpoints",
            "none",
            if accepted == 0 {
                "connections that this host opens have only one subflow"
            } else {
                "connections that this host opens have only one subflow unless the peer announces addresses"
            },
        )
        .warn("ip mptcp endpoint add ADDRESS dev DEVICE subflow    # for every further address");
    }
    let listed: Vec<String> = endpoints.iter().map(shown).collect();
    let opens = endpoints
        .iter()
        .filter(|e| e.flags.contains(&"subflow") || e.flags.contains(&"fullmesh"))
        .count();
    let announces = endpoints
        .iter()
        .filter(|e| e.flags.contains(&"signal"))
        .count();
    Finding::ok(
        AREA,
        "endpoints",
        listed.join("; "),
        format!(
            "{opens} {} subflows, {announces} {} announced to peers",
            if opens == 1 { "opens" } else { "open" },
            if announces == 1 { "is" } else { "are" },
        ),
    )
}

fn shown(endpoint: &Endpoint) -> String {
    let device = endpoint
        .device
        .as_ref()
        .map(|device| format!(" dev {device}"))
        .unwrap_or_default();
    let flags: String = endpoint
        .flags
        .iter()
        .map(|flag| format!(" {flag}"))
        .collect();
    format!("{} id {}{device}{flags}", endpoint.address, endpoint.id)
}

#[cfg(test)]
mod tests {
    use super::super::super::facts::PathManagement;
    use super::super::super::finding::Status;
    use super::super::tests::{healthy, healthy_except, line};
    use super::*;

    #[test]
    fn either_setting_can_hand_path_management_to_user_space() {
        for (name, value) in [
            ("net.mptcp.pm_type", "1"),
            ("net.mptcp.path_manager", "userspace"),
        ] {
            let found = check(&healthy_except(|facts| {
                drop(facts.sysctls.insert(name, value.into()))
            }));
            assert_eq!(line(&found, "path manager").status, Status::Warn, "{name}");
        }
        assert_eq!(line(&check(&healthy()), "path manager").found, "kernel");
    }

    #[test]
    fn endpoints_are_shown_as_ip_mptcp_takes_them() {
        assert_eq!(
            line(&check(&healthy()), "endpoints").found,
            "192.0.2.7 id 5 dev wlan0 subflow backup"
        );
        assert_eq!(
            line(&check(&healthy()), "endpoints").meaning,
            "1 opens subflows, 0 are announced to peers"
        );
    }

    #[test]
    fn limits_that_leave_one_subflow_are_a_warning() {
        let found = check(&healthy_except(|facts| {
            facts.paths = Some(PathManagement {
                subflows: 0,
                add_addr_accepted: 2,
                ..PathManagement::default()
            });
        }));
        assert_eq!(line(&found, "limits").remedy, Some(limits::raise()));
        assert_eq!(line(&found, "endpoints").status, Status::Warn);
        assert!(
            line(&found, "endpoints")
                .meaning
                .ends_with("unless the peer announces addresses")
        );
        // The line above said that such addresses are not used.
        let deaf = check(&healthy_except(|facts| {
            facts.paths = Some(PathManagement::default());
        }));
        assert!(line(&deaf, "endpoints").meaning.ends_with("one subflow"));
        let many = check(&healthy_except(|facts| {
            facts.paths.as_mut().unwrap().subflows = 20
        }));
        assert!(
            line(&many, "limits")
                .meaning
                .starts_with("up to 8 subflows")
        );
    }

    #[test]
    fn schedulers_from_ebpf_are_recognised_by_btf() {
        let found = check(&healthy_except(|facts| {
            facts
                .struct_ops
                .as_mut()
                .unwrap()
                .push("mptcp_sched_ops".into())
        }));
        assert!(
            line(&found, "scheduler")
                .meaning
                .contains("supports further")
        );
        assert!(
            line(&check(&healthy()), "scheduler")
                .meaning
                .contains("supports no")
        );
    }

    #[test]
    fn a_kernel_without_mptcp_has_no_lines_here() {
        assert!(
            check(&healthy_except(|facts| drop(
                facts.sysctls.remove("net.mptcp.enabled")
            )))
            .is_empty()
        );
    }
}
