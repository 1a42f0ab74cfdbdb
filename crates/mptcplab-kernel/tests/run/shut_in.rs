//! What a run's processes could reach, seen from inside and from outside, and that they end with who started them.

use crate::{Lab, lab_of, ready, wait, wait_for_progress};
use serde_json::Value;
use std::collections::BTreeMap;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const SCENARIO: &str = r#"
duration = "60 s"
sample = "50 ms"
cc = "reno"
[links.neck]
from = "S"
to = "D"
rate = "3 Mbit/s"
delay = "5 ms"
queue = "20 packets"
[flows.only]
path = ["neck"]
"#;
/// CAP_NET_ADMIN (12) and CAP_SYS_ADMIN (21) of capabilities(7).
const CAPABILITIES: &str = "0000000000201000";

/// The groups of attempts with those that were not refused.
fn attempts(arguments: &[&str]) -> BTreeMap<String, Vec<String>> {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let mut outside = Command::new("sleep").arg("60").spawn().expect("sleep");
    let output = Command::new(env!("CARGO_BIN_EXE_mptcplab-kernel"))
        .args(["escape", "--process", &outside.id().to_string()])
        .args(["--port", &port.to_string()])
        .args(arguments)
        .output()
        .expect("the program");
    outside.kill().expect("sleep");
    outside.wait().expect("sleep");
    let groups: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stderr)));
    let groups = groups.as_array().expect("a list");
    let texts = |value: &Value| {
        let texts = value.as_array().expect("a list").iter();
        texts
            .map(|text| text.as_str().expect("a text").to_owned())
            .collect()
    };
    groups
        .iter()
        .map(|group| {
            (
                group["name"].as_str().expect("a name").to_owned(),
                texts(&group["reached"]),
            )
        })
        .collect()
}

#[test]
fn every_attempt_to_get_out_is_refused_and_would_be_noticed() {
    let Some(_alone) = ready("every_attempt_to_get_out_is_refused") else {
        return;
    };
    let inside = attempts(&[]);
    assert_eq!(inside.len(), 12);
    assert!(inside.values().all(Vec::is_empty), "{inside:?}");
    // The same calls reach what they are after where nothing shuts them off. What a container forbids anyway, such as
    // kernel modules, is left out.
    let outside = attempts(&["--outside"]);
    for (group, call) in [
        ("files of the host", "write /etc/passwd"),
        ("mounts", "chroot"),
        ("other processes", "ptrace"),
        ("other processes", "kill"),
        ("eBPF and tracing", "bpf"),
        ("keys of the kernel", "keyctl"),
        ("more privileges", "setresuid"),
        ("more privileges", "user 0 of the host"),
        ("other namespaces", "clone(user)"),
        ("the host's network", "connect"),
    ] {
        assert!(
            outside[group].iter().any(|one| one == call),
            "{call}: {outside:?}"
        );
    }
}

#[test]
fn a_running_lab_has_a_user_of_its_own_and_sees_nothing_of_the_host() {
    let Some(_alone) = ready("a_running_lab_has_a_user_of_its_own") else {
        return;
    };
    let lab = Lab::new(SCENARIO);
    let mut child = lab.command("{}").spawn().expect("the program");
    wait_for_progress(&mut child, 0.1);
    let inner = lab_of(child.id());
    let fields = status(inner);
    let user: u32 = fields["Uid"]
        .split_whitespace()
        .next()
        .expect("a user")
        .parse()
        .expect("a number");
    assert!((61_184..65_519).contains(&user), "{user}");
    assert_eq!(fields["Uid"].replace(&user.to_string(), "U"), "U\tU\tU\tU");
    assert_eq!(
        (fields["Uid"].as_str(), fields["Groups"].trim()),
        (fields["Gid"].as_str(), "")
    );
    for set in ["CapPrm", "CapEff", "CapBnd"] {
        assert_eq!(fields[set], CAPABILITIES, "{set}");
    }
    assert_eq!(
        (fields["NoNewPrivs"].as_str(), fields["Seccomp"].as_str()),
        ("1", "2")
    );
    // Threads have their own: they inherit it.
    let tasks = std::fs::read_dir(format!("/proc/{inner}/task")).expect("threads");
    let tasks: Vec<_> = tasks.map(|task| task.expect("a thread").path()).collect();
    assert!(tasks.len() > 2);
    for task in tasks {
        let text = std::fs::read_to_string(task.join("status")).expect("a thread");
        assert!(text.contains("\nSeccomp:\t2\n"), "{text}");
    }
    let root = format!("/proc/{inner}/root");
    assert!(Path::new(&root).join("dev/net/tun").exists());
    assert!(
        !["etc", "usr", "root", "home", "sys"]
            .iter()
            .any(|name| Path::new(&root).join(name).exists())
    );
    child.kill().expect("the program");
    child.wait().expect("the program");
}

fn status(process: u32) -> BTreeMap<String, String> {
    let text = std::fs::read_to_string(format!("/proc/{process}/status")).expect("a process");
    let line = |line: &str| {
        line.split_once(":\t")
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
    };
    text.lines().filter_map(line).collect()
}

/// A program file with capabilities loses the kernel's signal for the end of its parent.
#[test]
fn a_run_ends_with_the_process_that_asked_for_it() {
    let Some(_alone) = ready("a_run_ends_with_the_process_that_asked_for_it") else {
        return;
    };
    let lab = Lab::new(SCENARIO);
    let run = lab.command("{}");
    let mut shell = Command::new("sh");
    let words: Vec<String> = std::iter::once(run.get_program())
        .chain(run.get_args())
        .map(|word| format!("'{}'", word.to_string_lossy()))
        .collect();
    shell.args(["-c", &format!("{} --parent $$ & wait", words.join(" "))]);
    let mut shell: Child = shell.stdout(Stdio::piped()).spawn().expect("sh");
    wait_for_progress(&mut shell, 0.1);
    let supervisor = children(shell.id()).pop().expect("the program");
    shell.kill().expect("sh");
    wait(&mut shell, Duration::from_secs(5)).expect("sh");
    let deadline = Instant::now() + Duration::from_secs(5);
    while Path::new(&format!("/proc/{supervisor}")).exists() {
        assert!(Instant::now() < deadline, "the run goes on");
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(!lab.out().exists());
}

fn children(process: u32) -> Vec<u32> {
    let path = format!("/proc/{process}/task/{process}/children");
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.split_whitespace()
        .map(|word| word.parse().expect("a number"))
        .collect()
}
