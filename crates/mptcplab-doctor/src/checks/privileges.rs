//! The privileges of this process: loading eBPF, real-time priority, namespaces and TUN devices.

use super::super::command;
use super::super::facts::Facts;
use super::super::facts::capability::{BPF, NET_ADMIN, PERFMON};
use super::super::finding::Finding;
use super::super::probe::Step;

const AREA: &str = "Privileges";

pub(super) fn check(facts: &Facts) -> Vec<Finding> {
    vec![
        ebpf(facts),
        net_admin(facts),
        realtime(facts),
        user_namespaces(facts),
        network_namespaces(facts),
        tun(facts),
        sandbox(facts),
    ]
}

fn ebpf(facts: &Facts) -> Finding {
    let line = |found: &str, meaning: &str| Finding::ok(AREA, "eBPF privileges", found, meaning);
    if facts.may_load() {
        return line(
            "CAP_BPF and CAP_PERFMON",
            "this process can load congestion control and tracing",
        );
    }
    if facts.in_user_namespace {
        return line(
            "those of a user namespace",
            "capabilities in a user namespace, such as that of a rootless container, do not count for loading eBPF",
        )
        .missing(format!(
            "{} ...    # outside of the user namespace",
            command::as_root()
        ));
    }
    let lacking: Vec<&str> = [(BPF, "CAP_BPF"), (PERFMON, "CAP_PERFMON")]
        .into_iter()
        .filter_map(|(bit, name)| (!facts.may(bit)).then_some(name))
        .collect();
    line(
        &format!("no {}", lacking.join(", no ")),
        "this process cannot load algorithms or the tracer; the simulator needs neither",
    )
    .missing(command::run_as_root())
}

fn net_admin(facts: &Facts) -> Finding {
    let line = |found: &str, meaning: &str| Finding::ok(AREA, "CAP_NET_ADMIN", found, meaning);
    if facts.may(NET_ADMIN) {
        return line(
            "yes",
            "this process can change network settings and MPTCP endpoints",
        );
    }
    line(
        "no",
        "this process cannot change sysctls and MPTCP endpoints of the host; runs do not need to",
    )
    .warn("sudo ip mptcp ...    # and sudo sysctl -w ...")
}

fn realtime(facts: &Facts) -> Finding {
    let line = |found: &str, meaning: &str| Finding::ok(AREA, "real-time priority", found, meaning);
    match facts.probe.realtime {
        Some(Ok(())) => line("yes", "the link emulator has priority over ordinary processes"),
        Some(Err(errno)) => line(
            &format!("no ({})", reason(errno)),
            "the link emulator competes with other processes; runs in which it was too late are marked invalid",
        )
        .warn(command::run_as_root()),
        None => line("unknown", "the test could not be run").warn_without_remedy(),
    }
}

fn user_namespaces(facts: &Facts) -> Finding {
    let line = |found: &str, meaning: &str| Finding::ok(AREA, "user namespaces", found, meaning);
    let meaning =
        "runs isolate themselves in a user namespace, so that they cannot affect the host";
    match facts.probe.user {
        Some(Ok(())) => line("yes", meaning),
        Some(Err(errno)) => {
            line(&format!("no ({})", reason(errno)), meaning).missing(allow_users(facts, errno))
        }
        None => line("unknown", "the test could not be run")
            .missing("ulimit -u    # shows how many processes are allowed"),
    }
}

/// The command that allows user namespaces on this machine.
fn allow_users(facts: &Facts, errno: i32) -> String {
    if facts.number("user.max_user_namespaces") == Some(0) || errno == libc::ENOSPC {
        return "sysctl -w user.max_user_namespaces=15000".into();
    }
    if facts.number("kernel.unprivileged_userns_clone") == Some(0) {
        return "sysctl -w kernel.unprivileged_userns_clone=1".into();
    }
    allow_in_apparmor(facts).unwrap_or_else(command::run_as_root)
}

/// Ubuntu lets everybody create a user namespace, but without privileges in it.
fn allow_in_apparmor(facts: &Facts) -> Option<String> {
    let restricted = facts.number("kernel.apparmor_restrict_unprivileged_userns") == Some(1);
    restricted.then(|| "sysctl -w kernel.apparmor_restrict_unprivileged_userns=0".into())
}

fn network_namespaces(facts: &Facts) -> Finding {
    let line = |found: &str, meaning: &str| Finding::ok(AREA, "network namespaces", found, meaning);
    let meaning = "every node where flows begin or end is a network namespace";
    match facts.probe.network {
        Some(Ok(())) => line("yes", meaning),
        Some(Err(errno)) => {
            let full = facts.number("user.max_net_namespaces") == Some(0) || errno == libc::ENOSPC;
            let remedy = if full {
                "sysctl -w user.max_net_namespaces=15000".into()
            } else {
                allow_in_apparmor(facts).unwrap_or_else(command::run_as_root)
            };
            line(&format!("no ({})", reason(errno)), meaning).missing(remedy)
        }
        None => not_reached(line("not tried", meaning)),
    }
}

fn tun(facts: &Facts) -> Finding {
    let line = |found: &str| {
        Finding::ok(
            AREA,
            "TUN device",
            found,
            "the ends of emulated links are TUN devices",
        )
    };
    if !facts.tun_node {
        return line("no /dev/net/tun").missing(
            "modprobe tun || { mkdir -p /dev/net && mknod -m 666 /dev/net/tun c 10 200; }",
        );
    }
    let steps: [Step; 2] = [facts.probe.tun_node, facts.probe.tun];
    match steps {
        [Some(Ok(())), Some(Ok(()))] => line("/dev/net/tun"),
        [Some(Err(errno)), _] if errno == libc::EACCES => {
            line("no permission to open /dev/net/tun").missing("chmod 666 /dev/net/tun")
        }
        [Some(Err(errno)), _] => {
            line(&format!("/dev/net/tun: {}", reason(errno))).missing("modprobe tun")
        }
        [_, Some(Err(errno))] => line(&format!("no device can be created ({})", reason(errno)))
            .missing(allow_in_apparmor(facts).unwrap_or_else(command::run_as_root)),
        _ => not_reached(line("not tried")),
    }
}

/// What somebody could reach who had a run's processes under control.
fn sandbox(facts: &Facts) -> Finding {
    let line = |found: &str, meaning: &str| Finding::ok(AREA, "sandbox", found, meaning);
    match &facts.escape {
        Some(Ok(groups)) => {
            let all: usize = groups.iter().map(|group| group.attempts).sum();
            let reached: Vec<String> = groups
                .iter()
                .filter(|group| !group.reached.is_empty())
                .map(|group| format!("{} ({})", group.name, group.reached.join(", ")))
                .collect();
            if reached.is_empty() {
                return line(
                    &format!("{all} of {all} attempts to get out are refused"),
                    "the processes of a run can reach nothing but the networks that they make",
                );
            }
            let reached = line(
                &format!("not shut off: {}", reached.join("; ")),
                "beside the networks that they make, the processes of a run can reach these",
            );
            if facts.is_root {
                return reached.warn_without_remedy();
            }
            // Without root a run has the user of the doctor, who may do this to its own processes.
            reached.warn(command::run_as_root())
        }
        Some(Err(why)) => line(
            &format!("none: {why}"),
            "runs need it for the processes that handle their traffic",
        )
        .missing(command::run_as_root()),
        None => not_reached(line("not tried", "runs need it")),
    }
}

/// A step after one that failed, whose remedy comes first.
fn not_reached(line: Finding) -> Finding {
    line.missing(format!(
        "{} doctor    # again, after the problem above is fixed",
        command::name()
    ))
}

fn reason(errno: i32) -> &'static str {
    nix::errno::Errno::from_raw(errno).desc()
}

#[cfg(test)]
mod tests {
    use super::super::super::escape::Group;
    use super::super::super::finding::Status;
    use super::super::tests::{healthy_except, line};
    use super::*;

    #[test]
    fn what_a_sandbox_does_not_shut_off_is_named() {
        let group = |name: &str, reached: &[&str]| Group {
            name: name.into(),
            attempts: 3,
            reached: reached.iter().map(|&call| call.into()).collect(),
        };
        let found = |groups, is_root| {
            let found = check(&healthy_except(|facts| {
                facts.escape = Some(Ok(groups));
                facts.is_root = is_root;
            }));
            let line = line(&found, "sandbox");
            // It said so beside what a run could reach.
            assert_eq!(
                line.meaning.contains("nothing but"),
                line.status == Status::Ok
            );
            (line.status, line.found.clone(), line.remedy.is_some())
        };
        assert_eq!(
            found(vec![group("mounts", &[]), group("keys", &[])], true),
            (
                Status::Ok,
                "6 of 6 attempts to get out are refused".into(),
                false
            )
        );
        let open = vec![
            group("mounts", &[]),
            group("other processes", &["kill", "ptrace"]),
        ];
        let said = "not shut off: other processes (kill, ptrace)";
        assert_eq!(
            found(open.clone(), true),
            (Status::Warn, said.into(), false)
        );
        assert_eq!(found(open, false), (Status::Warn, said.into(), true));
        let none = check(&healthy_except(|facts| {
            facts.escape = Some(Err("no seccomp".into()))
        }));
        assert_eq!(line(&none, "sandbox").status, Status::Missing);
    }

    #[test]
    fn bpf_alone_is_not_enough_and_the_missing_one_is_named() {
        let found = check(&healthy_except(|facts| facts.capabilities = 1 << BPF));
        let ebpf = line(&found, "eBPF privileges");
        assert_eq!(
            (ebpf.status, ebpf.found.as_str()),
            (Status::Missing, "no CAP_PERFMON")
        );
        let both = check(&healthy_except(|facts| {
            facts.capabilities = 1 << BPF | 1 << PERFMON
        }));
        assert_eq!(line(&both, "eBPF privileges").status, Status::Ok);
        assert_eq!(line(&both, "CAP_NET_ADMIN").status, Status::Warn);
        let old = check(&healthy_except(|facts| {
            facts.capabilities = 1 << mptcplab_bpf::system::CAP_SYS_ADMIN
        }));
        assert_eq!(line(&old, "eBPF privileges").status, Status::Ok);
    }

    #[test]
    fn capabilities_of_a_user_namespace_do_not_count() {
        let found = check(&healthy_except(|facts| facts.in_user_namespace = true));
        let ebpf = line(&found, "eBPF privileges");
        assert_eq!(ebpf.status, Status::Missing);
        assert!(ebpf.meaning.contains("do not count"));
    }

    #[test]
    fn ubuntu_refuses_the_second_step_and_the_remedy_is_its_own() {
        let found = check(&healthy_except(|facts| {
            facts
                .sysctls
                .insert("kernel.apparmor_restrict_unprivileged_userns", "1".into());
            facts.probe.network = Some(Err(libc::EPERM));
            facts.probe.tun_node = None;
            facts.probe.tun = None;
        }));
        assert_eq!(line(&found, "user namespaces").status, Status::Ok);
        let network = line(&found, "network namespaces");
        assert_eq!(
            network.remedy.as_deref(),
            Some("sysctl -w kernel.apparmor_restrict_unprivileged_userns=0")
        );
        assert_eq!(line(&found, "TUN device").status, Status::Missing);
    }

    #[test]
    fn a_limit_of_zero_user_namespaces_is_named() {
        let found = check(&healthy_except(|facts| {
            facts.sysctls.insert("user.max_user_namespaces", "0".into());
            facts.probe.user = Some(Err(libc::ENOSPC));
            facts.probe.network = None;
        }));
        assert_eq!(
            line(&found, "user namespaces").remedy.as_deref(),
            Some("sysctl -w user.max_user_namespaces=15000")
        );
        let debian = check(&healthy_except(|facts| {
            facts
                .sysctls
                .insert("kernel.unprivileged_userns_clone", "0".into());
            facts.probe.user = Some(Err(libc::EPERM));
        }));
        assert_eq!(
            line(&debian, "user namespaces").remedy.as_deref(),
            Some("sysctl -w kernel.unprivileged_userns_clone=1")
        );
    }

    #[test]
    fn the_tun_node_can_be_absent_closed_or_useless() {
        let absent = check(&healthy_except(|facts| facts.tun_node = false));
        assert!(
            line(&absent, "TUN device")
                .remedy
                .as_deref()
                .unwrap()
                .contains("mknod")
        );
        let closed = check(&healthy_except(|facts| {
            facts.probe.tun_node = Some(Err(libc::EACCES));
            facts.probe.tun = None;
        }));
        assert_eq!(
            line(&closed, "TUN device").remedy.as_deref(),
            Some("chmod 666 /dev/net/tun")
        );
        let useless = check(&healthy_except(|facts| {
            facts.probe.tun_node = Some(Err(libc::ENODEV))
        }));
        assert_eq!(
            line(&useless, "TUN device").remedy.as_deref(),
            Some("modprobe tun")
        );
    }

    #[test]
    fn without_real_time_the_engine_still_runs() {
        let found = check(&healthy_except(|facts| {
            facts.probe.realtime = Some(Err(libc::EPERM))
        }));
        assert_eq!(line(&found, "real-time priority").status, Status::Warn);
    }
}
