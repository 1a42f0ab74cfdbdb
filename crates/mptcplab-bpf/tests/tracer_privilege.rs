//! The tracer needs two capabilities but no particular user id.

use std::process::{Command, Output};

use mptcplab_bpf::LoadError;
use mptcplab_bpf::tracer::{Tracer, TracerConfig, TracerError};

/// Set in the process that runs with other privileges.
const CHILD: &str = "TRACER_CHILD";
/// Exit codes of that process. Other codes are those of the test harness.
const STARTED: i32 = 40;
const NOT_PRIVILEGED: i32 = 41;

#[test]
fn two_capabilities_are_enough_and_without_them_the_message_names_them() {
    if std::env::var_os(CHILD).is_some() {
        child();
    }
    if let Err(error) = mptcplab_bpf::system::check() {
        eprintln!("SKIPPED: {error}");
        return;
    }
    let Some(with) = as_nobody("+bpf,+perfmon") else {
        eprintln!("SKIPPED: setpriv of util-linux is missing");
        return;
    };
    assert_eq!(with.status.code(), Some(STARTED), "{with:?}");
    for missing in ["+bpf", "+perfmon", "+net_admin"] {
        let without = as_nobody(missing).expect("setpriv was there");
        assert_eq!(
            without.status.code(),
            Some(NOT_PRIVILEGED),
            "{missing}: {without:?}"
        );
        let said = String::from_utf8_lossy(&without.stderr).into_owned();
        assert!(said.contains("CAP_BPF and CAP_PERFMON"), "{said}");
    }
}

/// Runs this test as uid 65534 with these capabilities only.
fn as_nobody(capabilities: &str) -> Option<Output> {
    let own = std::env::current_exe().unwrap();
    let name = "two_capabilities_are_enough_and_without_them_the_message_names_them";
    Command::new("setpriv")
        .args([
            "--reuid=65534",
            "--regid=65534",
            "--clear-groups",
            "--no-new-privs",
        ])
        .arg(format!("--inh-caps=-all,{capabilities}"))
        .arg(format!("--ambient-caps=-all,{capabilities}"))
        .arg(own)
        .args(["--exact", name, "--nocapture"])
        .env(CHILD, "1")
        .output()
        .ok()
}

fn child() -> ! {
    match Tracer::start(&TracerConfig {
        cookies: &[1],
        ..TracerConfig::default()
    }) {
        Ok(mut tracer) => {
            assert_eq!(tracer.poll(&mut |_| {}), 0);
            assert_eq!(tracer.lost().unwrap(), 0);
            assert!(tracer.sockets().unwrap().is_empty());
            assert_eq!(tracer.missed().unwrap(), 0);
            std::process::exit(STARTED)
        }
        Err(error @ TracerError::Load(LoadError::Privilege)) => {
            eprintln!("{error}");
            std::process::exit(NOT_PRIVILEGED)
        }
        Err(error) => panic!("{error}"),
    }
}
