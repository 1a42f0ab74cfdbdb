//! Golden numbers: what the simulator does in the cases of `tests/golden/cases.txt`, to the last bit. A change of the simulator that
//! is meant to change nothing changes none of them; one that is meant to is accepted with its reason (`make golden REASON="..."`).
//!
//! The crate compiles this module into its unit tests, as the conformance scripts: a changed source is then compiled once, which is
//! most of the time of `make mutants`.

use crate::{Control, simulate};
use mptcplab_scenario::{Overrides, Run, parse};
use mptcplab_trace::{EventKind, NOT_MEASURED, Tables};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{Debug, Write};
use std::fs;
use std::path::{Path, PathBuf};

/// With a reason in it, the numbers that changed are written, and the reason into their history.
const ACCEPT: &str = "MPTCPLAB_GOLDEN_REASON";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

struct Case {
    name: String,
    file: String,
    set: Vec<(String, String)>,
}

fn cases() -> Vec<Case> {
    let text = fs::read_to_string(root().join("tests/golden/cases.txt")).unwrap();
    let mut found: Vec<Case> = Vec::new();
    for line in text
        .lines()
        .filter(|line| !line.starts_with('#') && !line.trim().is_empty())
    {
        if let Some(head) = line.strip_prefix("case ") {
            let (name, file) = head.split_once(' ').unwrap();
            found.push(Case {
                name: name.to_owned(),
                file: file.to_owned(),
                set: Vec::new(),
            });
        } else {
            let (key, value) = line.split_once('=').unwrap();
            let pair = (key.trim().to_owned(), value.trim().to_owned());
            found.last_mut().unwrap().set.push(pair);
        }
    }
    found
}

fn first_run(case: &Case) -> Run {
    let golden = root().join("tests/golden").join(&case.file);
    let path = if golden.exists() {
        golden
    } else {
        root().join(&case.file)
    };
    let overrides = Overrides {
        set: case.set.clone(),
        ..Overrides::default()
    };
    let text = fs::read_to_string(&path).unwrap();
    let sweep = parse(&text, &case.file, path.parent(), &overrides);
    let mut sweep = sweep.unwrap_or_else(|e| panic!("case {}: {e}", case.name));
    sweep.runs.swap_remove(0)
}

/// FNV-1a of all columns with their names, 64 bits. It need not withstand anybody.
fn digest(table: &impl Debug) -> String {
    struct Hash(u64);
    impl Write for Hash {
        fn write_str(&mut self, text: &str) -> std::fmt::Result {
            for byte in text.bytes() {
                self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
            }
            Ok(())
        }
    }
    let mut hash = Hash(0xcbf2_9ce4_8422_2325);
    write!(hash, "{table:?}").unwrap();
    format!("{:016x}", hash.0)
}

/// The numbers of a run that tell a reader what changed: sums of the counters' last values, means of samples, digests.
fn numbers(run: &Run, tables: &Tables) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut note = |key: String, value: String| assert!(found.insert(key, value).is_none());
    let flow = &tables.flow;
    for (f, name) in run.flows.iter().map(|flow| &flow.name).enumerate() {
        if let Some(i) = (0..flow.len()).rev().find(|&i| flow.flow[i] == f as u32) {
            note(
                format!("{name}.delivered_bytes"),
                flow.delivered_bytes[i].to_string(),
            );
            note(
                format!("{name}.reinjected_pkts"),
                flow.reinjected_pkts[i].to_string(),
            );
        }
        let subflow = &tables.subflow;
        let rows: Vec<usize> = (0..subflow.len())
            .filter(|&i| subflow.flow[i] == f as u32)
            .collect();
        let last: BTreeMap<u32, usize> = rows.iter().map(|&i| (subflow.subflow[i], i)).collect();
        if last.is_empty() {
            continue;
        }
        let sum = |column: &[u64]| last.values().map(|&i| column[i]).sum::<u64>().to_string();
        note(format!("{name}.sent_pkts"), sum(&subflow.sent_pkts));
        note(format!("{name}.retx_pkts"), sum(&subflow.retx_pkts));
        note(format!("{name}.lost_pkts"), sum(&subflow.lost_pkts));
        note(format!("{name}.loss_events"), sum(&subflow.loss_events));
        note(format!("{name}.ecn_events"), sum(&subflow.ecn_events));
        note(format!("{name}.rto_count"), sum(&subflow.rto_count));
        note(format!("{name}.undo_count"), sum(&subflow.undo_count));
        for k in last.keys() {
            let mine = rows.iter().filter(|&&i| subflow.subflow[i] == *k);
            let known = |value: u64| (value < u64::from(u32::MAX)).then_some(value);
            let mean = |column: &[u32]| {
                let values: Vec<u64> = mine
                    .clone()
                    .filter_map(|&i| known(u64::from(column[i])))
                    .collect();
                (values.iter().sum::<u64>() / values.len().max(1) as u64).to_string()
            };
            note(format!("{name}/{k}.mean_srtt_us"), mean(&subflow.srtt_us));
            note(
                format!("{name}/{k}.mean_cwnd_pkts"),
                mean(&subflow.cwnd_pkts),
            );
        }
    }
    let link = &tables.link;
    for (l, name) in run.links.iter().map(|link| &link.name).enumerate() {
        if let Some(i) = (0..link.len()).rev().find(|&i| link.link[i] == l as u32) {
            let dropped = link.dropped_queue_pkts[i];
            if dropped != NOT_MEASURED && dropped > 0 {
                note(format!("{name}.dropped_queue_pkts"), dropped.to_string());
            }
        }
    }
    for kind in [
        EventKind::TlpSent,
        EventKind::RecoveryEnded,
        EventKind::SlowStartExit,
    ] {
        let count = tables
            .event
            .kind
            .iter()
            .filter(|k| **k == kind as u8)
            .count();
        note(format!("events.{kind:?}"), count.to_string());
    }
    note("digest.flow".into(), digest(flow));
    note("digest.subflow".into(), digest(&tables.subflow));
    note("digest.link".into(), digest(link));
    note("digest.event".into(), digest(&tables.event));
    note("digest.transfer".into(), digest(&tables.transfer));
    if !tables.request.is_empty() {
        note("digest.request".into(), digest(&tables.request));
    }
    found
}

type Golden = BTreeMap<String, BTreeMap<String, String>>;

fn read(path: &Path) -> Golden {
    let mut found = Golden::new();
    for line in fs::read_to_string(path).unwrap_or_default().lines() {
        let words: Vec<&str> = line.split(' ').collect();
        if let [case, key, value] = words[..] {
            let entry = found.entry(case.to_owned()).or_default();
            entry.insert(key.to_owned(), value.to_owned());
        }
    }
    found
}

/// What changed in a case: a line per number, with the difference in percent.
fn changes(before: &BTreeMap<String, String>, after: &BTreeMap<String, String>) -> Vec<String> {
    let keys: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    let of = |numbers: &BTreeMap<String, String>, key: &String| {
        numbers.get(key).map_or("absent", String::as_str).to_owned()
    };
    let changed = keys
        .into_iter()
        .filter(|key| before.get(*key) != after.get(*key));
    changed
        .map(|key| {
            let (old, new) = (of(before, key), of(after, key));
            let percent = match (old.parse::<f64>(), new.parse::<f64>()) {
                (Ok(a), Ok(b)) if a != 0.0 && !key.starts_with("digest") => {
                    format!(" ({:+.2} %)", 100.0 * (b - a) / a)
                }
                _ => String::new(),
            };
            format!("    {key}: {old} -> {new}{percent}")
        })
        .collect()
}

#[test]
fn the_numbers_are_those_that_were_accepted() {
    let folder = root().join("tests/golden");
    let (file, history) = (folder.join("numbers.txt"), folder.join("history.md"));
    let cases = cases();
    let names: BTreeSet<&String> = cases.iter().map(|case| &case.name).collect();
    assert_eq!(names.len(), cases.len(), "two cases have one name");
    let accepted = read(&file);
    let mut found = Golden::new();
    for case in &cases {
        let run = first_run(case);
        let outcome = simulate(&run, &Control::default()).unwrap();
        found.insert(case.name.clone(), numbers(&run, &outcome.tables));
    }
    let none = BTreeMap::new();
    let all: BTreeSet<&String> = accepted.keys().chain(found.keys()).collect();
    let mut report = String::new();
    let mut changed = Vec::new();
    for name in all {
        let lines = changes(
            accepted.get(name).unwrap_or(&none),
            found.get(name).unwrap_or(&none),
        );
        if !lines.is_empty() {
            changed.push(name.as_str());
            let _ = writeln!(report, "{name}:\n{}", lines.join("\n"));
        }
    }
    if changed.is_empty() {
        return;
    }
    let reason = std::env::var(ACCEPT).unwrap_or_default();
    if reason.trim().is_empty() {
        panic!(
            "{} of {} golden cases changed:\n{report}\nhint: if the change is meant, `make golden REASON=\"why\"` accepts it",
            changed.len(),
            cases.len()
        );
    }
    let lines = found.iter().flat_map(|(case, numbers)| {
        numbers
            .iter()
            .map(move |(key, value)| format!("{case} {key} {value}\n"))
    });
    fs::write(&file, lines.collect::<String>()).unwrap();
    let before = fs::read_to_string(&history).unwrap_or_default();
    let entry = format!("- {} Changed: {}.\n", reason.trim(), changed.join(", "));
    fs::write(&history, before + &entry).unwrap();
    println!("{report}");
}
