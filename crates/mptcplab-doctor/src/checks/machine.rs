//! External programs, and whether the processors have enough time for emulation.

use super::super::facts::Facts;
use super::super::finding::Finding;

const AREA: &str = "Tools and machine";
/// With fewer processors the emulator and the end hosts wait for each other.
const WANTED_PROCESSORS: usize = 2;
/// With less idle time, other work delays packets.
const WANTED_IDLE: f64 = 0.5;

pub(super) fn check(facts: &Facts) -> Vec<Finding> {
    vec![clang(facts), iperf3(facts), processors(facts)]
}

fn clang(facts: &Facts) -> Finding {
    let line = |found: &str, meaning: &str| Finding::ok(AREA, "clang", found, meaning);
    match &facts.clang {
        Some(version) => line(version, "mptcplab can be built from source"),
        None => line(
            "none",
            "needed only to build mptcplab: the algorithms of this program are already compiled",
        )
        .warn("apt-get install clang pkg-config libbpf-dev libelf-dev zlib1g-dev"),
    }
}

fn iperf3(facts: &Facts) -> Finding {
    let line = |found: &str, meaning: &str| Finding::ok(AREA, "iperf3", found, meaning);
    let none = "needed only for --traffic iperf3; the engine has its own sender";
    match &facts.iperf3 {
        None => line("none", none).warn("apt-get install iperf3 mptcpize"),
        Some(iperf3) if iperf3.mptcp => line(&iperf3.version, "opens MPTCP connections (--mptcp)"),
        Some(iperf3) if facts.mptcpize => line(
            &format!("{} and mptcpize", iperf3.version),
            "opens MPTCP connections under `mptcpize run`",
        ),
        Some(iperf3) => line(
            &format!("{}, no mptcpize", iperf3.version),
            "this iperf3 has no --mptcp, so it can only send plain TCP",
        )
        .warn("apt-get install mptcpize"),
    }
}

fn processors(facts: &Facts) -> Finding {
    let now = facts.processors;
    let found = format!(
        "{}, {:.0} % idle, load {:.2}",
        now.count,
        100.0 * now.idle,
        now.load
    );
    let line = |meaning: &str| Finding::ok(AREA, "processors", found.clone(), meaning);
    if now.count < WANTED_PROCESSORS {
        return line("the emulator and the end hosts share the only processor: packets will be late above a few Mbit/s")
            .warn_without_remedy();
    }
    if now.idle < WANTED_IDLE {
        return line(
            "other work delays emulated packets; runs in which they were too late are marked invalid",
        )
        .warn("top    # shows what is running");
    }
    line("enough time to emulate links")
}

#[cfg(test)]
mod tests {
    use super::super::super::facts::Processors;
    use super::super::super::finding::Status;
    use super::super::tests::{healthy_except, line};
    use super::*;

    #[test]
    fn an_old_iperf3_needs_mptcpize() {
        let old = |mptcpize| {
            check(&healthy_except(|facts| {
                facts.iperf3.as_mut().unwrap().mptcp = false;
                facts.mptcpize = mptcpize;
            }))
        };
        assert_eq!(line(&old(true), "iperf3").status, Status::Ok);
        assert_eq!(
            line(&old(false), "iperf3").remedy.as_deref(),
            Some("apt-get install mptcpize")
        );
        assert_eq!(
            line(
                &check(&healthy_except(|facts| facts.iperf3 = None)),
                "iperf3"
            )
            .status,
            Status::Warn
        );
    }

    #[test]
    fn a_busy_or_single_processor_is_a_warning() {
        let with = |count, idle| {
            line(
                &check(&healthy_except(|facts| {
                    facts.processors = Processors {
                        count,
                        idle,
                        load: 1.5,
                    }
                })),
                "processors",
            )
            .status
        };
        assert_eq!(with(2, 0.51), Status::Ok);
        assert_eq!(with(2, 0.49), Status::Warn);
        assert_eq!(with(1, 0.99), Status::Warn);
    }
}
