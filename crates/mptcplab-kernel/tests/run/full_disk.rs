//! A disk that fills up during runs.

use crate::trace::Trace;
use crate::{Lab, complete_or_late, finish, ready};
use std::process::{Command, Stdio};

/// A sample at 0, 4, ... 8,000 ms, and with it a row per subflow: some 100 kB a run.
const LONG_TRACE: &str = r#"
duration = "8 s"
sample = "4 ms"
cc = "reno"
repetitions = 6
[links.wide]
from = "S"
to = "D"
rate = "12 Mbit/s"
delay = "4 ms"
queue = "50 packets"
[links.narrow]
from = "S"
to = "D"
rate = "5 Mbit/s"
delay = "9 ms"
queue = "30 packets"
[flows.f]
paths = [["wide"], ["narrow"]]
"#;

const SAMPLES: u64 = 2001;

/// Runs in a separate mount namespace with a small disk, whose content is copied out at the end.
const ON_A_SMALL_DISK: &str = r#"
mount -t tmpfs -o size="$1" tmpfs "$2/disk" || exit 99
"$3" run --scenario "$2/scenario.toml" --out "$2/disk/out"
code=$?
if [ -e "$2/disk/out" ]; then cp -r "$2/disk/out" "$2/out"; fi
exit $code
"#;

fn run_on_a_disk_of(lab: &Lab, size: &str) -> crate::Outcome {
    let dir = lab.dir.path();
    std::fs::create_dir(dir.join("disk")).expect("a directory");
    let child = Command::new("unshare")
        .args(["--mount", "sh", "-c", ON_A_SMALL_DISK, "sh", size])
        .args([dir, env!("CARGO_BIN_EXE_mptcplab-kernel").as_ref()])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("unshare");
    finish(child)
}

#[test]
fn a_full_disk_ends_the_runs_and_keeps_what_was_measured() {
    let Some(_alone) = ready("a_full_disk_ends_the_runs") else {
        return;
    };
    let lab = Lab::new(LONG_TRACE);
    // 16 MB are reserved; 120 kB remain for the runs.
    let outcome = run_on_a_disk_of(&lab, "16504k");
    assert_eq!(outcome.code, Some(2));
    assert!(
        outcome.stderr.contains("the disk is full: "),
        "{}",
        outcome.stderr
    );
    let trace = Trace::open(&lab.out());
    let runs = trace.statuses().len();
    assert!((1..6).contains(&runs), "{runs} of 6 runs");
    // A busy machine leaves out samples that follow each other closely, and says how many: any number of them.
    let taken = |host: serde_json::Value| match host["samples"]["skipped"].as_u64() {
        Some(skipped) => SAMPLES - skipped,
        None => panic!("no number of skipped samples in {host}"),
    };
    let taken: u64 = trace.hosts().into_iter().map(taken).sum();
    assert!(taken > 0, "no samples");
    assert!(trace.count("subflow") as u64 >= 2 * taken);
    assert_eq!(trace.rows("subflow", 8_000_000_000), 2 * runs);
    let said = "hint: free some space; this run was still written";
    assert!(outcome.stderr.contains(said), "{}", outcome.stderr);
    let last = lab.out().join(format!("{runs:06}"));
    assert!(last.is_dir() && !last.join("reserve").exists());
}

/// It was an error, after which a complete result had its runs beside it, as an unfinished one has.
#[test]
fn a_disk_that_the_last_run_fills_up_is_a_warning() {
    let Some(_alone) = ready("a_disk_that_the_last_run_fills_up") else {
        return;
    };
    let lab = Lab::new(&LONG_TRACE.replace("repetitions = 6", "repetitions = 1"));
    // 16 MB are reserved; 16 kB remain for the run.
    let outcome = run_on_a_disk_of(&lab, "16400k");
    complete_or_late(&Trace::open(&lab.out()), outcome.code);
    assert!(
        outcome
            .stderr
            .contains("warning: run 0 (repetition 0): the disk is full: "),
        "{}",
        outcome.stderr
    );
}

#[test]
fn a_disk_without_room_is_refused_before_anything_runs() {
    let Some(_alone) = ready("a_disk_without_room_is_refused") else {
        return;
    };
    let lab = Lab::new(LONG_TRACE);
    let outcome = run_on_a_disk_of(&lab, "8M");
    assert_eq!((outcome.code, lab.out().exists()), (Some(2), false));
    assert!(
        outcome.stderr.contains("cannot set 16 MB aside in "),
        "{}",
        outcome.stderr
    );
}
