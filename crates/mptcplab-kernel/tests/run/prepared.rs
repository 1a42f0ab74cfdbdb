//! A kernel that is prepared before the run is known, as in a virtual machine.

use super::{Lab, finish, ready};
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, Command, Stdio};

const SCENARIO: &str = r#"
duration = "600 ms"
warmup = "100 ms"
cc = ["olia", "reno"]
[links.A]
from = "client"
to = "server"
rate = "9 Mbit/s"
delay = "3 ms"
queue = "30 packets"
[links.B]
from = "client"
to = "server"
rate = "4 Mbit/s"
delay = "7 ms"
queue = "20 packets"
[flows.mp]
paths = [["A"], ["B"]]
"#;

fn program(words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mptcplab-kernel"));
    command
        .args(words)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// What each run of the scenario needs.
fn preparations(lab: &Lab) -> Vec<String> {
    let scenario = lab.dir.path().join("scenario.toml");
    let listed = program(&[
        "preparations",
        "--scenario",
        scenario.to_str().expect("text"),
    ])
    .output()
    .expect("the program");
    assert!(listed.status.success(), "{listed:?}");
    serde_json::from_slice(&listed.stdout).expect("JSON")
}

/// A process that has prepared the kernel and waits.
fn prepare(preparation: &str) -> Child {
    let mut child = program(&["prepare", "--preparation", preparation])
        .spawn()
        .expect("the program");
    let mut stdout = BufReader::new(child.stdout.take().expect("piped"));
    let mut line = String::new();
    stdout.read_line(&mut line).expect("text");
    assert_eq!(line, "waiting\n");
    child.stdout = Some(stdout.into_inner());
    child
}

/// Gives it the command line of one of the scenario's runs.
fn go(mut child: Child, lab: &Lab, run: &str) -> Child {
    let (scenario, out) = (lab.dir.path().join("scenario.toml"), lab.out());
    let words = [
        "run",
        "--scenario",
        scenario.to_str().expect("text"),
        "--out",
        out.to_str().expect("text"),
        "--run",
        run,
    ];
    let mut stdin = child.stdin.take().expect("piped");
    stdin
        .write_all(words.join("\0").as_bytes())
        .expect("a pipe");
    drop(stdin);
    child
}

#[test]
fn a_run_takes_over_what_was_prepared_for_it() {
    let Some(_alone) = ready("a_run_takes_over_what_was_prepared_for_it") else {
        return;
    };
    let lab = Lab::new(SCENARIO);
    let [olia, reno] = preparations(&lab).try_into().expect("two runs");
    assert_ne!(olia, reno);
    let outcome = finish(go(prepare(&olia), &lab, "0"));
    assert!(matches!(outcome.code, Some(0 | 1)), "{:?}", outcome.code);
    let ran = lab.trace().run().text("subflow_cc");
    assert_eq!(ran.matches(r#""cc":"olia""#).count(), 2, "{ran}");
}

#[test]
fn a_run_that_needs_something_else_is_refused() {
    let Some(_alone) = ready("a_run_that_needs_something_else_is_refused") else {
        return;
    };
    let lab = Lab::new(SCENARIO);
    let [olia, _] = preparations(&lab).try_into().expect("two runs");
    let outcome = finish(go(prepare(&olia), &lab, "1"));
    assert_eq!(outcome.code, Some(2));
    assert!(outcome.stderr.contains("prepared for another run"));
    assert!(!lab.out().exists());
}

#[test]
fn what_no_kernel_can_run_is_refused_before_anything_is_prepared() {
    let scenario = SCENARIO.replace("[flows.mp]", "[flows.mp]\nsend_jitter = \"3 us\"");
    let lab = Lab::new(&scenario);
    let path = lab.dir.path().join("scenario.toml");
    let listed = program(&["preparations", "--scenario", path.to_str().expect("text")])
        .output()
        .expect("the program");
    assert_eq!(listed.status.code(), Some(2));
    let stderr = String::from_utf8_lossy(&listed.stderr);
    assert!(
        stderr.contains("a real kernel has its own jitter"),
        "{stderr}"
    );
    assert!(stderr.contains("scenario.toml:18"), "{stderr}");
    assert!(listed.stdout.is_empty());
}
