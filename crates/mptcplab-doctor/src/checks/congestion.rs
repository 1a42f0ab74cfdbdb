//! Congestion control on this host: which algorithms exist, who may use them, and whether the default is coupled.

use super::super::command;
use super::super::defaults;
use super::super::facts::{Facts, Loaded};
use super::super::finding::Finding;
use mptcplab_bpf::registered::{OPERATOR_PREFIX, RUN_PREFIX, operator_name};

const AREA: &str = "Congestion control";
/// Coupled algorithms of the former out-of-tree MPTCP kernel, by their names there.
const COUPLED_ELSEWHERE: &[&str] = &["lia", "olia", "balia", "wvegas"];

pub(super) fn check(facts: &Facts) -> Vec<Finding> {
    let available = facts.words("net.ipv4.tcp_available_congestion_control");
    let mut lines = vec![
        list(&available),
        allowed(facts, &available),
        default(facts, &available),
        loaded(facts, &available),
    ];
    lines.extend(of_runs(facts, &available));
    lines
}

/// What an algorithm does with the subflows of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Coupling {
    Coupled,
    Uncoupled,
    /// It is not in this build: it was loaded from a C file, or by another version.
    Unknown,
}

/// That of the algorithm with this kernel-visible name.
pub(crate) fn coupling_of(name: &str) -> Coupling {
    let known = match name.starts_with(OPERATOR_PREFIX) {
        false => Some(COUPLED_ELSEWHERE.contains(&name)),
        true => mptcplab_cc::algorithms()
            .iter()
            .find(|algorithm| operator_name(algorithm.name()) == name)
            .map(mptcplab_cc::Algorithm::coupled),
    };
    match known {
        Some(true) => Coupling::Coupled,
        Some(false) => Coupling::Uncoupled,
        None => Coupling::Unknown,
    }
}

fn list(available: &[&str]) -> Finding {
    Finding::ok(
        AREA,
        "available",
        some(available),
        "scenarios can use the kernel's own algorithms as \"kernel:NAME\"",
    )
}

fn some(names: &[&str]) -> String {
    if names.is_empty() {
        "none".into()
    } else {
        names.join(" ")
    }
}

fn allowed(facts: &Facts, available: &[&str]) -> Finding {
    let allowed = facts.words("net.ipv4.tcp_allowed_congestion_control");
    let line = Finding::ok(
        AREA,
        "allowed",
        some(&allowed),
        "processes without CAP_NET_ADMIN may choose these",
    );
    let restricted: Vec<&str> = available
        .iter()
        .copied()
        .filter(|name| name.starts_with(OPERATOR_PREFIX) && !allowed.contains(name))
        .collect();
    if restricted.is_empty() {
        return line;
    }
    let all: Vec<&str> = allowed.iter().chain(&restricted).copied().collect();
    let meaning = format!(
        "only processes with CAP_NET_ADMIN may choose: {}",
        restricted.join(" ")
    );
    Finding { meaning, ..line }.warn(format!(
        "sysctl -w net.ipv4.tcp_allowed_congestion_control=\"{}\"",
        all.join(" ")
    ))
}

fn default(facts: &Facts, available: &[&str]) -> Finding {
    let name = facts
        .sysctl("net.ipv4.tcp_congestion_control")
        .unwrap_or("unknown");
    if name.starts_with(OPERATOR_PREFIX) && !available.contains(&name) {
        return Finding::ok(
            AREA,
            "default",
            format!("{name} (unloaded)"),
            "new sockets go on using an algorithm that was unloaded, although no list shows it",
        )
        .warn(defaults::set_another(&[]));
    }
    let (kind, meaning) = match coupling_of(name) {
        Coupling::Coupled => (
            "coupled",
            "the subflows of a connection through one bottleneck together take the share of one connection",
        ),
        Coupling::Uncoupled => (
            "uncoupled",
            "each subflow takes the share of a whole connection, which is unfair only at a shared bottleneck",
        ),
        Coupling::Unknown => (
            "coupling unknown",
            "it is not an algorithm of this program, but one from a C file or from another version",
        ),
    };
    Finding::ok(AREA, "default", format!("{name} ({kind})"), meaning)
}

fn loaded(facts: &Facts, available: &[&str]) -> Finding {
    let ours: Vec<String> = available
        .iter()
        .filter(|name| name.starts_with(OPERATOR_PREFIX))
        .map(|name| shown(facts, name))
        .collect();
    if ours.is_empty() {
        return Finding::ok(
            AREA,
            "of mptcplab",
            "none loaded",
            format!(
                "`{} cc load olia --pin` loads an algorithm for all applications",
                command::name()
            ),
        );
    }
    let full: Vec<String> = facts
        .loaded
        .iter()
        .flatten()
        .filter(|one| one.name.starts_with(OPERATOR_PREFIX) && one.uncoupled > 0)
        .map(|one| format!("{} of {}", one.uncoupled, one.name))
        .collect();
    if !full.is_empty() {
        let meaning = format!(
            "subflows found the table of their algorithm full and ran uncoupled: {}",
            full.join(", ")
        );
        return Finding::ok(AREA, "of mptcplab", ours.join(", "), meaning).warn(format!(
            "{command} cc unload NAME && {command} cc load NAME --pin --connections N    # N larger than before",
            command = command::as_root()
        ));
    }
    Finding::ok(
        AREA,
        "of mptcplab",
        ours.join(", "),
        format!(
            "applications can choose these; `{command} cc list` and `{command} cc unload` manage them",
            command = command::name()
        ),
    )
}

fn shown(facts: &Facts, name: &str) -> String {
    known(facts, name).map_or_else(
        || name.to_owned(),
        |one| format!("{name} ({}, sockets: {})", one.held, one.sockets),
    )
}

fn known<'a>(facts: &'a Facts, name: &str) -> Option<&'a Loaded> {
    facts.loaded.iter().flatten().find(|one| one.name == name)
}

/// A run unloads its algorithms when it ends, so these belong to a run in progress or are leftovers on an old kernel.
fn of_runs(facts: &Facts, available: &[&str]) -> Option<Finding> {
    let names: Vec<&str> = available
        .iter()
        .copied()
        .filter(|name| name.starts_with(RUN_PREFIX))
        .collect();
    if names.is_empty() {
        return None;
    }
    let line = |meaning: &str| Finding::ok(AREA, "of runs", names.join(" "), meaning.to_owned());
    let leftover = names
        .iter()
        .any(|name| known(facts, name).is_some_and(|one| one.leftover));
    Some(if leftover {
        line("left by a run that was killed, because kernels before 6.4 keep its algorithms; they do no harm")
            .warn("systemctl reboot    # when convenient")
    } else {
        line("a run of the kernel engine is in progress")
    })
}

#[cfg(test)]
mod tests {
    use super::super::super::finding::Status;
    use super::super::tests::{healthy, healthy_except, line};
    use super::*;

    #[test]
    fn coupling_comes_from_the_algorithm_itself() {
        for (name, expected) in [
            ("lab_olia", Coupling::Coupled),
            ("olia", Coupling::Coupled),
            // Names with a dash, and those that the kernel cuts, were called uncoupled.
            ("lab_adw_balia", Coupling::Coupled),
            ("lab_template_co", Coupling::Coupled),
            ("lab_reno", Coupling::Uncoupled),
            ("cubic", Coupling::Uncoupled),
            // So was a coupled algorithm of one's own.
            ("lab_mine", Coupling::Unknown),
        ] {
            assert_eq!(coupling_of(name), expected, "{name}");
        }
    }

    #[test]
    fn the_default_is_judged_by_name() {
        assert_eq!(
            line(&check(&healthy()), "default").found,
            "cubic (uncoupled)"
        );
        let coupled = check(&healthy_except(|facts| {
            drop(
                facts
                    .sysctls
                    .insert("net.ipv4.tcp_congestion_control", "lab_olia".into()),
            )
        }));
        assert_eq!(line(&coupled, "default").found, "lab_olia (coupled)");
        let own = check(&healthy_except(|facts| {
            for key in [
                "net.ipv4.tcp_available_congestion_control",
                "net.ipv4.tcp_congestion_control",
            ] {
                facts.sysctls.insert(key, "lab_mine".into());
            }
        }));
        assert_eq!(line(&own, "default").found, "lab_mine (coupling unknown)");
    }

    #[test]
    fn a_loaded_algorithm_that_is_not_for_everybody_is_a_warning_with_the_whole_list() {
        let found = check(&healthy_except(|facts| {
            facts.sysctls.insert(
                "net.ipv4.tcp_allowed_congestion_control",
                "reno cubic".into(),
            );
        }));
        let line = line(&found, "allowed");
        assert_eq!(line.status, Status::Warn);
        assert_eq!(
            line.remedy.as_deref(),
            Some("sysctl -w net.ipv4.tcp_allowed_congestion_control=\"reno cubic lab_olia\"")
        );
    }

    #[test]
    fn who_holds_an_algorithm_is_shown_where_it_is_known() {
        let found = check(&healthy_except(|facts| {
            facts.sysctls.insert(
                "net.ipv4.tcp_available_congestion_control",
                "reno lab_olia lab_lia".into(),
            );
        }));
        assert_eq!(
            line(&found, "of mptcplab").found,
            "lab_olia (pinned, sockets: 3), lab_lia"
        );
    }

    #[test]
    fn a_default_that_was_unloaded_is_a_warning() {
        let found = check(&healthy_except(|facts| {
            for (name, value) in [
                ("net.ipv4.tcp_available_congestion_control", "reno cubic"),
                ("net.ipv4.tcp_congestion_control", "lab_olia"),
            ] {
                facts.sysctls.insert(name, value.into());
            }
        }));
        let line = line(&found, "default");
        assert_eq!(
            (line.status, line.found.as_str()),
            (Status::Warn, "lab_olia (unloaded)")
        );
        assert!(line.remedy.as_deref().unwrap().starts_with("sysctl -w"));
    }

    #[test]
    fn subflows_without_a_place_in_the_table_are_a_warning() {
        let found = check(&healthy_except(|facts| {
            facts.loaded.as_mut().unwrap()[0].uncoupled = 38;
        }));
        let line = line(&found, "of mptcplab");
        assert_eq!(line.status, Status::Warn);
        assert!(line.meaning.ends_with("ran uncoupled: 38 of lab_olia"));
    }

    #[test]
    fn algorithms_of_runs_are_leftovers_only_if_nothing_holds_them() {
        let with_run = |leftover| {
            check(&healthy_except(|facts| {
                facts.sysctls.insert(
                    "net.ipv4.tcp_available_congestion_control",
                    "reno mpl_1a2b_0".into(),
                );
                facts.loaded = Some(vec![Loaded {
                    name: "mpl_1a2b_0".into(),
                    sockets: 0,
                    users: 0,
                    uncoupled: 0,
                    held: "held by nobody",
                    leftover,
                }]);
            }))
        };
        assert_eq!(line(&with_run(false), "of runs").status, Status::Ok);
        assert_eq!(line(&with_run(true), "of runs").status, Status::Warn);
        assert!(
            check(&healthy())
                .iter()
                .all(|finding| finding.name != "of runs")
        );
    }
}
