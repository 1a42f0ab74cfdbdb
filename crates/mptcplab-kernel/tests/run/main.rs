//! Runs on this machine's kernel, started as a user starts them. The tests need root and BTF, and print a clear message if
//! these are missing.
//!
//! The tests do not depend on the speed of the machine: a run whose emulation was late says so in its status, and still
//! delivers the data that were sent, over the subflows of the scenario.

mod full_disk;
mod handover;
mod prepared;
mod requests;
mod shut_in;
mod trace;
mod transfers;

use mptcplab_scenario::{Overrides, Run};
use mptcplab_sim::Control;
use mptcplab_trace::Tables;
use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, geteuid};
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tempfile::TempDir;
use trace::Trace;

/// Only one run at a time, because runs need the whole machine.
static ALONE: Mutex<()> = Mutex::new(());

/// Waits for the permission to run; `None` if runs are not possible here.
fn ready(test: &str) -> Option<MutexGuard<'static, ()>> {
    let missing = match () {
        () if !geteuid().is_root() => "root",
        () if !Path::new("/sys/kernel/btf/vmlinux").exists() => "a kernel with BTF",
        () if !Path::new("/dev/net/tun").exists() => "/dev/net/tun",
        () => return Some(ALONE.lock().unwrap_or_else(PoisonError::into_inner)),
    };
    eprintln!("SKIPPED: {test} needs {missing}");
    None
}

/// A scenario in a directory of its own.
struct Lab {
    dir: TempDir,
}

/// The output of a run.
struct Outcome {
    id: u32,
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

impl Lab {
    fn new(scenario: &str) -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        std::fs::write(dir.path().join("scenario.toml"), scenario).expect("a file");
        Self { dir }
    }

    fn out(&self) -> PathBuf {
        self.dir.path().join("out")
    }

    fn command(&self, overrides: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_mptcplab-kernel"));
        command
            .arg("run")
            .arg("--scenario")
            .arg(self.dir.path().join("scenario.toml"))
            .arg("--out")
            .arg(self.out());
        command.args(["--json-progress", "--overrides", overrides]);
        command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .stdin(Stdio::null());
        command
    }

    fn run(&self) -> Outcome {
        finish(self.command("{}").spawn().expect("the program"))
    }

    fn trace(&self) -> Trace {
        Trace::open(&self.out())
    }
}

/// Waits for the end of a run, for at most a minute.
fn finish(mut child: Child) -> Outcome {
    let status = wait(&mut child, Duration::from_secs(60)).expect("the run ended in time");
    let (mut stdout, mut stderr) = (String::new(), String::new());
    child
        .stdout
        .take()
        .expect("piped")
        .read_to_string(&mut stdout)
        .expect("text");
    child
        .stderr
        .take()
        .expect("piped")
        .read_to_string(&mut stderr)
        .expect("text");
    // For the log of a failed test.
    std::io::stderr()
        .write_all(stderr.as_bytes())
        .expect("stderr");
    Outcome {
        id: child.id(),
        code: status.code(),
        stdout,
        stderr,
    }
}

fn wait(child: &mut Child, most: Duration) -> Option<ExitStatus> {
    let deadline = Instant::now() + most;
    while Instant::now() < deadline {
        if let Some(status) = child.try_wait().expect("a child") {
            return Some(status);
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    child.kill().expect("a child");
    None
}

/// The lab of a supervisor, once the traffic flows.
fn lab_of(supervisor: u32) -> u32 {
    let deadline = Instant::now() + Duration::from_secs(20);
    while Instant::now() < deadline {
        let children = format!("/proc/{supervisor}/task/{supervisor}/children");
        let text = std::fs::read_to_string(children).unwrap_or_default();
        if let Some(child) = text
            .split_whitespace()
            .next()
            .and_then(|text| text.parse().ok())
        {
            return child;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    panic!("no lab");
}

/// Waits until a run reports that it has reached a time.
fn wait_for_progress(child: &mut Child, seconds: f64) {
    let stdout = child.stdout.take().expect("piped");
    let mut reader = std::io::BufReader::new(stdout);
    let mut line = String::new();
    loop {
        line.clear();
        let length = std::io::BufRead::read_line(&mut reader, &mut line).expect("text");
        assert!(length > 0, "the run ended before it was {seconds} s old");
        let value: serde_json::Value = serde_json::from_str(&line).expect("JSON");
        if value["done_s"].as_f64().is_some_and(|done| done >= seconds) {
            break;
        }
    }
    child.stdout = Some(reader.into_inner());
}

/// What a run could leave on the host, apart from its algorithms.
#[derive(Debug, PartialEq, Eq)]
struct Host {
    devices: Vec<String>,
    routes: String,
    settings: Vec<String>,
}

impl Host {
    fn now() -> Self {
        let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
        let mut devices: Vec<String> = std::fs::read_dir("/sys/class/net")
            .expect("sysfs")
            .map(|entry| {
                entry
                    .expect("sysfs")
                    .file_name()
                    .to_string_lossy()
                    .into_owned()
            })
            .collect();
        devices.sort();
        let settings = [
            "ipv4/ip_forward",
            "ipv4/tcp_rmem",
            "ipv4/tcp_wmem",
            "ipv4/tcp_no_metrics_save",
            "mptcp/pm_type",
        ];
        Self {
            devices,
            routes: read("/proc/net/route"),
            settings: settings
                .iter()
                .map(|key| read(&format!("/proc/sys/net/{key}")))
                .collect(),
        }
    }

    /// Checks that the host soon returns to this state, without algorithms of these supervisors. The kernel frees namespaces
    /// with a delay, and other runs may be in progress on this machine.
    #[track_caller]
    fn comes_back(&self, supervisors: &[u32]) {
        let deadline = Instant::now() + Duration::from_secs(10);
        while Instant::now() < deadline {
            if Self::now() == *self && supervisors.iter().all(|&id| algorithms(id).is_empty()) {
                return;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        assert_eq!(Self::now(), *self, "the run left something behind");
        for &id in supervisors {
            assert_eq!(algorithms(id), [""; 0], "the run left algorithms behind");
        }
    }
}

/// The loaded algorithms of a supervisor, found by the prefix that it tries first.
fn algorithms(supervisor: u32) -> Vec<String> {
    let path = "/proc/sys/net/ipv4/tcp_available_congestion_control";
    let all = std::fs::read_to_string(path).expect("IPv4");
    let mine = format!("mpl_{:04x}_", supervisor.wrapping_mul(40_503) & 0xffff);
    all.split_whitespace()
        .filter(|name| name.starts_with(&mine))
        .map(str::to_owned)
        .collect()
}

/// On a busy machine a run may be late, but this must be the only problem in its status.
#[track_caller]
fn complete_or_late(trace: &Trace, code: Option<i32>) {
    for (status, reason) in trace.statuses() {
        let late = reason.split("; ").all(|one| {
            one.contains("emulation was late")
                || one.contains("thread scheduling")
                || one.contains("were up to")
                // The second half of a reason about samples.
                || one.ends_with("ms are allowed")
        });
        match (status.as_str(), code) {
            ("complete", Some(0 | 1)) => assert_eq!(reason, ""),
            ("invalid", Some(1)) => assert!(late, "{reason}"),
            _ => panic!("{status} with exit code {code:?}: {reason}"),
        }
    }
}

/// The first run of a scenario in the simulator, with some settings.
fn simulated(scenario: &str, settings: &[(&str, &str)]) -> (Run, Tables) {
    let set = settings
        .iter()
        .map(|&(key, value)| (key.into(), value.into()));
    let overrides = Overrides {
        set: set.collect(),
        ..Overrides::default()
    };
    let parsed = mptcplab_scenario::parse(scenario, "test.toml", None, &overrides);
    let run = parsed.expect("a good scenario").runs.remove(0);
    let outcome = mptcplab_sim::simulate(&run, &Control::default()).expect("a run");
    (run, outcome.tables)
}

const TWO_PATHS: &str = r#"
title = "Two unlike paths"
duration = "5 s"
warmup = "1 s"
sample = "50 ms"
cc = "lia"
[links.wide]
from = "S"
to = "D"
rate = "12 Mbit/s"
delay = "4 ms"
queue = "60 packets"
[links.narrow]
from = "S"
to = "D"
rate = "4 Mbit/s"
delay = "13 ms"
loss = "0.3 %"
queue = "30 packets"
[flows.mp]
paths = [["wide"], ["narrow"]]
"#;

#[test]
fn an_mptcp_connection_uses_both_of_its_paths_and_every_byte_arrives() {
    let Some(_alone) = ready("an_mptcp_connection_uses_both_of_its_paths") else {
        return;
    };
    let before = Host::now();
    let lab = Lab::new(TWO_PATHS);
    let outcome = lab.run();
    let trace = lab.trace();
    complete_or_late(&trace, outcome.code);
    before.comes_back(&[outcome.id]);

    let run = trace.run();
    assert_eq!(run.text("engine"), "kernel");
    assert_eq!(run.text("scheduler"), r#"{"mp":"linger"}"#);
    let subflow =
        |name: &str| format!(r#"{{"flow":"mp","subflow":"{name}","cc":"lia","params":{{}}}}"#);
    assert_eq!(
        run.text("subflow_cc"),
        format!("[{},{}]", subflow("sf1"), subflow("sf2"))
    );
    let host: serde_json::Value = serde_json::from_str(&run.text("host")).expect("JSON");
    assert_eq!(host["algorithms"][0]["cc"], "lia");
    assert!(
        host["kernel"]
            .as_str()
            .is_some_and(|release| release.contains('.')),
        "{host}"
    );
    assert_eq!(host["emulator"]["links"][2]["link"], "narrow");
    assert_eq!(
        (&host["trace"]["lost"], &host["trace"]["untracked"]),
        (&0.into(), &0.into())
    );

    // Rows at the start, at the end of the warm-up, at the end.
    for edge in [0, 1_000_000_000, 5_000_000_000] {
        assert_eq!(trace.rows("subflow", edge), 2, "subflow rows at {edge} ns");
    }
    // 4 s of 12 and 4 Mbit/s; the rest is headers, losses and the machine.
    let gained = |name: &str| {
        let of = |t| trace.subflow("mp", name, t, "rx_payload_bytes");
        (of(5_000_000_000) - of(1_000_000_000)) as f64 * 8.0 / 4e6
    };
    let (wide, narrow) = (gained("sf1"), gained("sf2"));
    assert!(
        (6.0..12.0).contains(&wide) && (1.0..4.0).contains(&narrow),
        "{wide} and {narrow} Mbit/s"
    );
    let delivered = trace.flow("mp", 5_000_000_000, "delivered_bytes");
    assert!(delivered > 4_000_000, "{delivered} bytes");

    for name in ["sf1", "sf2"] {
        let end = |column| trace.subflow("mp", name, 5_000_000_000, column);
        let (sent, retx, lost, rx) = (
            end("sent_pkts"),
            end("retx_pkts"),
            end("lost_pkts"),
            end("rx_pkts"),
        );
        assert!(
            rx <= sent && retx <= sent && sent <= rx + lost + end("cwnd_pkts"),
            "{name}: {sent} {retx} {lost} {rx}"
        );
        // The mean payload is that of full segments, which are what the scenario says.
        let mean = end("rx_payload_bytes") as f64 / rx as f64;
        assert!(
            (1_400.0..=1_428.0).contains(&mean),
            "{name}: {mean} bytes of payload"
        );
        assert!(
            end("rtt_count") > 100 && end("acked_pkts") > 100 && end("loss_events") > 0,
            "{name}"
        );
        assert!(
            trace.events("subflow_added", "mp", Some(name)) == 1
                && trace.events("loss_event", "mp", Some(name)) > 0
        );
    }
    // RTTs are at least those of the propagation, and of the right path.
    assert!(trace.subflow("mp", "sf1", 5_000_000_000, "min_rtt_us") >= 8_000);
    assert!(trace.subflow("mp", "sf2", 5_000_000_000, "min_rtt_us") >= 26_000);
}

const MIXED: &str = r#"
title = "One of each"
duration = "5 s"
sample = "50 ms"
cc = "reno"
[links.a]
from = "S"
to = "R"
rate = "20 Mbit/s"
delay = "3 ms"
queue = "60 packets"
[links.b]
from = "R"
to = "D"
rate = "12 Mbit/s"
delay = "4 ms"
queue = "60 packets"
[links.c]
from = "S"
to = "D"
rate = "6 Mbit/s"
delay = "11 ms"
queue = "50 packets"
reverse = false
[links.back]
from = "D"
to = "S"
rate = "9 Mbit/s"
delay = "2 ms"
reverse = false
[flows.mp]
subflows = [
  { path = ["a", "b"] },
  { path = ["a", "b"], start = "1.5 s", name = "again" },
  { path = ["c"], reverse = ["back"], stop = "3 s", name = "oneway" },
  { path = ["a", "b"], backup = true, name = "spare" },
]
[flows.web]
transport = "tcp"
path = ["a", "b"]
cc = "kernel:cubic"
traffic = { on = "0.5 s", off = "0.7 s" }
start = "0.3 s"
stop = "4 s"
[flows.file]
transport = "tcp"
path = ["c"]
reverse_placeholder = 0
cc = "cubic"
traffic = { size = "300 kB" }
start = "0.5 s"
[flows.noise]
transport = "udp"
path = ["a"]
rate = "1 Mbit/s"
packet = "700 bytes"
stop = "2.5 s"
[flows.opposite]
transport = "mptcp"
path = ["b~", "a~"]
cc = "olia"
start = "1 s"
traffic = { size = "100 kB" }
"#;

#[test]
fn flows_of_every_kind_do_what_the_scenario_says() {
    let Some(_alone) = ready("flows_of_every_kind_do_what_the_scenario_says") else {
        return;
    };
    let file = "subflows = [{ path = [\"c\"], reverse = [\"back\"] }]";
    let lab = Lab::new(&MIXED.replace("path = [\"c\"]\nreverse_placeholder = 0", file));
    let outcome = lab.run();
    let trace = lab.trace();
    complete_or_late(&trace, outcome.code);
    let end = 5_000_000_000;

    // Transfers of a fixed size arrive completely, and once.
    assert_eq!(trace.flow("file", end, "delivered_bytes"), 300_000);
    assert_eq!(trace.flow("opposite", end, "delivered_bytes"), 100_000);
    for flow in ["file", "opposite"] {
        assert_eq!(trace.events("flow_completed", flow, None), 1, "{flow}");
    }
    // 1 Mbit/s for 2.5 s in packets of 700 bytes and 14 of layer 2: 437 or 438 packets.
    let sent = trace.flow("noise", end, "sent_bytes") / 672;
    assert!((436..=438).contains(&sent), "{sent} packets");
    let delivered = trace.flow("noise", end, "delivered_bytes") / 672;
    assert!(
        delivered <= sent && delivered > sent / 2,
        "{delivered} of {sent} packets"
    );
    assert_eq!(trace.events("flow_stopped", "noise", None), 1);
    assert_eq!(trace.events("flow_stopped", "web", None), 1);
    assert!(trace.flow("web", end, "delivered_bytes") > 50_000);

    let cc = trace.run().text("subflow_cc");
    for (flow, name) in [
        ("mp", "reno"),
        ("web", "kernel:cubic"),
        ("file", "cubic"),
        ("opposite", "olia"),
    ] {
        assert!(
            cc.contains(&format!(
                r#"{{"flow":"{flow}","subflow":"sf1","cc":"{name}","params":{{}}}}"#
            )),
            "{cc}"
        );
    }
    // Each subflow in its time: `again` comes late, `oneway` goes early, `spare` has nothing to do.
    let first = |name| {
        trace
            .first_event("subflow_added", "mp", name)
            .expect("an event")
    };
    assert!(
        first("sf1") < first("oneway")
            && first("oneway") < 1_500_000_000
            && first("again") >= 1_500_000_000
    );
    assert_eq!(trace.events("subflow_removed", "mp", Some("oneway")), 1);
    assert!(trace.subflow("mp", "oneway", end, "rx_pkts") > 50);
    assert!(trace.subflow("mp", "again", end, "rx_pkts") > 50);
    let (used, spare) = (
        trace.subflow("mp", "sf1", end, "rx_pkts"),
        trace.subflow("mp", "spare", end, "rx_pkts"),
    );
    assert!(
        spare < used / 20,
        "the backup carried {spare} packets beside {used}"
    );
    assert_eq!(trace.state("mp", "oneway", end), "closed");
    assert_eq!(trace.state("mp", "again", 50_000_000), "closed");
}

#[test]
fn every_ack_gets_a_row_between_the_edges_when_samples_are_off() {
    let Some(_alone) = ready("every_ack_gets_a_row") else {
        return;
    };
    let lab = Lab::new(&TWO_PATHS.replace(
        "sample = \"50 ms\"",
        "sample = \"off\"\nper_ack = true\nprofile = \"rfc\"",
    ));
    let command = lab
        .command(r#"{"duration": "2 s", "cc": ["kernel:reno"]}"#)
        .spawn()
        .expect("the program");
    let outcome = finish(command);
    let trace = lab.trace();
    complete_or_late(&trace, outcome.code);
    assert_eq!(trace.rows("flow", 2_000_000_000), 1);
    assert_eq!(trace.count("flow"), 3);
    for (name, least) in [("sf1", 300), ("sf2", 80)] {
        let rows = trace.subflow_rows("mp", name);
        // Quick ACKs: one row for each segment that arrived, but for those under way.
        let arrived = trace.subflow("mp", name, 2_000_000_000, "rx_pkts");
        assert!(
            rows as u64 > arrived * 8 / 10 && arrived > least,
            "{name}: {rows} rows for {arrived} segments"
        );
        assert!(trace.subflow_times("mp", name).is_sorted(), "{name}");
    }
}

#[test]
fn what_the_engine_cannot_honour_is_refused_with_its_line() {
    // A refusal needs neither root nor BTF.
    let lab =
        Lab::new(&TWO_PATHS.replace("cc = \"lia\"", "cc = \"lia\"\nscheduler = \"roundrobin\""));
    let outcome = lab.run();
    assert_eq!(outcome.code, Some(2));
    assert!(
        outcome
            .stderr
            .contains("scenario.toml:7:13: scheduler: \"roundrobin\": the kernel has only one"),
        "{}",
        outcome.stderr
    );
    assert!(outcome.stderr.contains("\n\nhint: "), "{}", outcome.stderr);
    assert_eq!((outcome.stdout.as_str(), lab.out().exists()), ("", false));
}

#[test]
fn an_algorithm_that_this_kernel_lacks_is_refused() {
    let lab = Lab::new(TWO_PATHS);
    let outcome = finish(
        lab.command(r#"{"cc": ["kernel:nonesuch"]}"#)
            .spawn()
            .expect("the program"),
    );
    assert_eq!(outcome.code, Some(2));
    let expected = "command line: cc: \"kernel:nonesuch\": this kernel has no such algorithm\n\nhint: available are: ";
    assert!(outcome.stderr.contains(expected), "{}", outcome.stderr);
}

#[test]
fn a_dead_lab_leaves_a_partial_trace_that_says_so() {
    let Some(_alone) = ready("a_dead_lab_leaves_a_partial_trace") else {
        return;
    };
    let before = Host::now();
    let lab = Lab::new(TWO_PATHS);
    let mut child = lab.command("{}").spawn().expect("the program");
    wait_for_progress(&mut child, 1.5);
    kill(Pid::from_raw(lab_of(child.id()) as i32), Signal::SIGKILL).expect("the lab is there");
    let outcome = finish(child);
    assert_eq!(outcome.code, Some(2));
    let trace = lab.trace();
    let [(status, reason)] = trace.statuses().try_into().expect("one run");
    assert_eq!(status, "partial");
    assert!(
        reason.starts_with("the lab died after ") && reason.contains("SIGKILL"),
        "{reason}"
    );
    assert!(
        outcome.stderr.contains("is partial: the lab died"),
        "{}",
        outcome.stderr
    );
    // What existed before remains.
    assert!(trace.rows("subflow", 1_000_000_000) == 2 && trace.rows("subflow", 5_000_000_000) == 0);
    before.comes_back(&[outcome.id]);
}

#[test]
fn ctrl_c_leaves_nothing() {
    let Some(_alone) = ready("ctrl_c_leaves_nothing") else {
        return;
    };
    let before = Host::now();
    let lab = Lab::new(TWO_PATHS);
    let mut child = lab.command("{}").spawn().expect("the program");
    wait_for_progress(&mut child, 0.5);
    let supervisor = child.id();
    let inner = lab_of(supervisor);
    assert_eq!(algorithms(supervisor).len(), 1, "the check below sees it");
    kill(Pid::from_raw(supervisor as i32), Signal::SIGINT).expect("the supervisor is there");
    assert_eq!(finish(child).code, Some(130));
    assert!(
        !Path::new(&format!("/proc/{inner}")).exists(),
        "the lab is still there"
    );
    let left: Vec<_> = std::fs::read_dir(lab.dir.path())
        .expect("a directory")
        .collect();
    assert_eq!(left.len(), 1, "only the scenario is left: {left:?}");
    before.comes_back(&[supervisor]);
}

#[test]
fn a_killed_supervisor_takes_the_lab_with_it() {
    let Some(_alone) = ready("a_killed_supervisor_takes_the_lab_with_it") else {
        return;
    };
    let before = Host::now();
    let lab = Lab::new(TWO_PATHS);
    for seconds in [0.0, 0.3, 1.1] {
        let mut child = lab.command("{}").spawn().expect("the program");
        if seconds > 0.0 {
            wait_for_progress(&mut child, seconds);
        }
        let inner = lab_of(child.id());
        child.kill().expect("the supervisor is there");
        child.wait().expect("a child");
        let deadline = Instant::now() + Duration::from_secs(5);
        while Path::new(&format!("/proc/{inner}")).exists() {
            assert!(Instant::now() < deadline, "the lab outlives its supervisor");
            std::thread::sleep(Duration::from_millis(10));
        }
        before.comes_back(&[child.id()]);
    }
}

/// Times and processes are random; a failure prints the seed with which it can be repeated.
#[test]
fn fifty_runs_killed_at_random_moments_leave_nothing() {
    let Some(_alone) = ready("fifty_runs_killed_at_random_moments_leave_nothing") else {
        return;
    };
    let seed = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .map_or(1, |age| age.subsec_nanos());
    let before = Host::now();
    let mut random = mptcplab_model::link::rng::Rng::new(u64::from(seed), 0, "kill", "moments");
    for round in 0..50 {
        let lab = Lab::new(TWO_PATHS);
        let mut child = lab.command("{}").spawn().expect("the program");
        let moment = Duration::from_micros(random.below(1_500_000));
        let at_lab = random.below(2) == 1;
        eprintln!("seed {seed}, round {round}: after {moment:?}, the lab: {at_lab}");
        std::thread::sleep(moment);
        if at_lab {
            // It may already have ended, or have started only just now.
            let _ = kill(Pid::from_raw(lab_of(child.id()) as i32), Signal::SIGKILL);
            let outcome = finish(child);
            assert_eq!(outcome.code, Some(2), "{}", outcome.stderr);
            before.comes_back(&[]);
        } else {
            let supervisor = child.id();
            child.kill().expect("the supervisor is there");
            child.wait().expect("a child");
            before.comes_back(&[supervisor]);
        }
    }
}

#[test]
fn two_runs_at_once_do_not_disturb_each_other() {
    let Some(_alone) = ready("two_runs_at_once_do_not_disturb_each_other") else {
        return;
    };
    let before = Host::now();
    let labs = [
        Lab::new(TWO_PATHS),
        Lab::new(&TWO_PATHS.replace("cc = \"lia\"", "cc = \"olia\"")),
    ];
    let children: Vec<Child> = labs
        .iter()
        .map(|lab| lab.command("{}").spawn().expect("the program"))
        .collect();
    let ids: Vec<u32> = children.iter().map(Child::id).collect();
    let outcomes: Vec<Outcome> = children.into_iter().map(finish).collect();
    let mut names = Vec::new();
    for ((lab, outcome), cc) in labs.iter().zip(outcomes).zip(["lia", "olia"]) {
        let trace = lab.trace();
        complete_or_late(&trace, outcome.code);
        let host: serde_json::Value =
            serde_json::from_str(&trace.run().text("host")).expect("JSON");
        assert_eq!(host["algorithms"][0]["cc"], cc);
        names.push(host["algorithms"][0]["kernel_name"].to_string());
        assert!(trace.flow("mp", 5_000_000_000, "delivered_bytes") > 2_000_000);
    }
    assert_ne!(names[0], names[1]);
    before.comes_back(&ids);
}

#[test]
fn a_subflow_that_never_joins_makes_the_run_invalid() {
    let Some(_alone) = ready("a_subflow_that_never_joins_makes_the_run_invalid") else {
        return;
    };
    let down = "delay = \"13 ms\"\nschedule = [{ at = \"1 us\", up = false }]";
    let lab = Lab::new(
        &TWO_PATHS
            .replace("delay = \"13 ms\"", down)
            .replace("duration = \"5 s\"", "duration = \"3 s\""),
    );
    let outcome = lab.run();
    assert_eq!(outcome.code, Some(1));
    let [(status, reason)] = lab.trace().statuses().try_into().expect("one run");
    assert_eq!(status, "invalid");
    assert!(
        reason.contains("subflow sf2 (10.1.0.2 to 10.2.0.2) had not joined when the run ended"),
        "{reason}"
    );
    assert_eq!(lab.trace().events_of_link("link_changed", "narrow"), 1);
}

#[test]
fn without_privileges_the_message_says_what_is_missing() {
    let Some(_alone) = ready("without_privileges_the_message_says_what_is_missing") else {
        return;
    };
    use std::os::unix::fs::PermissionsExt as _;
    use std::os::unix::process::CommandExt as _;
    let lab = Lab::new(TWO_PATHS);
    std::fs::set_permissions(lab.dir.path(), std::fs::Permissions::from_mode(0o777)).expect("ours");
    let outcome = match lab.command("{}").uid(65_534).gid(65_534).spawn() {
        Ok(child) => finish(child),
        // The user nobody cannot reach the program itself.
        Err(error) => {
            return eprintln!(
                "SKIPPED: nobody cannot start {}: {error}",
                env!("CARGO_BIN_EXE_mptcplab-kernel")
            );
        }
    };
    assert_eq!(outcome.code, Some(2));
    assert!(
        outcome.stderr.contains("CAP_BPF") && outcome.stderr.contains("simulator"),
        "{}",
        outcome.stderr
    );
    assert!(!lab.out().exists());
}

const BULK: &str = r#"
title = "Two plain flows"
duration = "4 s"
sample = "50 ms"
cc = "reno"
[links.neck]
from = "S"
to = "D"
rate = "10 Mbit/s"
delay = "5 ms"
queue = "60 packets"
[flows.long]
path = ["neck"]
cc = "cubic"
[flows.short]
path = ["neck"]
stop = "2.5 s"
"#;

#[test]
fn iperf3_can_make_the_traffic() {
    let Some(_alone) = ready("iperf3_can_make_the_traffic") else {
        return;
    };
    let Ok(help) = Command::new("iperf3").arg("--help").output() else {
        return eprintln!("SKIPPED: iperf3_can_make_the_traffic needs iperf3");
    };
    let before = Host::now();
    let lab = Lab::new(BULK);
    let outcome = finish(
        lab.command("{}")
            .args(["--traffic", "iperf3"])
            .spawn()
            .expect("the program"),
    );
    let trace = lab.trace();
    complete_or_late(&trace, outcome.code);
    before.comes_back(&[outcome.id]);
    let host: serde_json::Value = serde_json::from_str(&trace.run().text("host")).expect("JSON");
    assert_eq!(host["traffic"], "iperf3");
    let cc = trace.run().text("subflow_cc");
    for (flow, name) in [("long", "cubic"), ("short", "reno")] {
        assert!(
            cc.contains(&format!(
                r#"{{"flow":"{flow}","subflow":"sf1","cc":"{name}","params":{{}}}}"#
            )),
            "{cc}"
        );
        assert!(
            trace.flow(flow, 4_000_000_000, "delivered_bytes") > 200_000,
            "{flow}"
        );
        // Not that of iperf3's control connection between the same addresses.
        assert_eq!(trace.events("subflow_added", flow, Some("sf1")), 1);
    }
    // The short one is silent once what it had written has arrived.
    let late =
        [3_900_000_000, 4_000_000_000].map(|t| trace.last_flow("short", t, "delivered_bytes"));
    assert!(
        late[0] == late[1] && trace.events("flow_stopped", "short", None) == 1,
        "{late:?}"
    );

    let speaks_mptcp = [help.stdout, help.stderr].concat();
    let speaks_mptcp = String::from_utf8_lossy(&speaks_mptcp).contains("--mptcp");
    if speaks_mptcp || Command::new("mptcpize").arg("--help").output().is_ok() {
        return;
    }
    let lab = Lab::new(TWO_PATHS);
    let outcome = finish(
        lab.command("{}")
            .args(["--traffic", "iperf3"])
            .spawn()
            .expect("the program"),
    );
    assert_eq!((outcome.code, lab.out().exists()), (Some(2), false));
    assert!(
        outcome
            .stderr
            .contains("hint: install the package mptcpize"),
        "{}",
        outcome.stderr
    );
}
