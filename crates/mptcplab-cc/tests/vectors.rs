//! The public test vectors, and files with other contents.

use mptcplab_cc::vectors::{Report, run_file, run_text};
use std::path::Path;

fn public_path() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/vectors.json")
}

fn file(vectors: &str) -> String {
    format!(
        r#"{{"schema": "mptcplab-vectors-1", "algorithms": {{{vectors}}}, "schedulers": {{}}}}"#
    )
}

/// One LIA increase of two different paths: w = 10, 30 and RTT = 20, 60 ms give 10/20^2 against 30/60^2 per
/// (10/20 + 30/60)^2 = 1, so 0.025 per packet.
fn lia_ack(id: &str, cwnd: f64) -> String {
    format!(
        r#"{{"id": "{id}", "kind": "ack", "r": 1, "acked": 2, "paths": [
            {{"cwnd": 10, "srtt": 0.02, "ssthresh": 1}}, {{"cwnd": 30, "srtt": 0.06, "ssthresh": 1}}],
            "expect": {{"inc_per_pkt": 0.025, "delta": 0.05, "cwnd": {cwnd}}}}}"#
    )
}

fn run(vectors: &str) -> Report {
    run_text("test.json", &file(vectors)).expect("a well formed file")
}

#[test]
fn every_public_vector_of_a_native_algorithm_passes() {
    let report = run_file(&public_path()).expect("the public vectors are well formed");
    for algorithm in &report.algorithms {
        assert_eq!(algorithm.failures, [], "{}", algorithm.name);
        assert_eq!(
            algorithm.skipped > 0,
            !algorithm.skip_reason.is_empty(),
            "{}",
            algorithm.name
        );
    }
    let native: Vec<(&str, usize)> = report
        .algorithms
        .iter()
        .filter(|a| a.passed > 0)
        .map(|a| (a.name.as_str(), a.passed))
        .collect();
    for wanted in [
        ("reno", 102),
        ("lia", 101),
        ("olia", 108),
        ("wvegas", 74),
        ("cubic", 48),
        ("cmpbbr", 52),
        ("balia", 100),
        ("lia-subset", 97),
        ("dlia", 92),
        ("dolia", 116),
        ("adw-balia", 101),
        ("mcompound", 56),
        ("group-lia", 72),
    ] {
        assert!(native.contains(&wanted), "{wanted:?} not in {native:?}");
    }
    let (passed, failed, skipped) = report.totals();
    assert_eq!((passed > 800, failed), (true, 0));
    let file: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(public_path()).unwrap()).unwrap();
    let in_file: usize = ["algorithms", "schedulers"]
        .iter()
        .flat_map(|part| file[part].as_object().unwrap().values())
        .map(|vectors| vectors.as_array().unwrap().len())
        .sum();
    assert_eq!(
        passed + failed + skipped,
        in_file,
        "every vector is accounted for"
    );
}

#[test]
fn a_wrong_number_fails_and_says_which() {
    let report = run(&format!(
        r#""lia": [{}, {}]"#,
        lia_ack("good", 30.05),
        lia_ack("bad", 30.06)
    ));
    let lia = &report.algorithms[0];
    assert_eq!((lia.passed, lia.failures.len()), (1, 1));
    let failure = &lia.failures[0];
    assert_eq!((failure.id.as_str(), failure.deviations.len()), ("bad", 1));
    let deviation = &failure.deviations[0];
    assert_eq!(
        (deviation.what.as_str(), deviation.expected),
        ("cwnd", 30.06)
    );
    assert!((deviation.got - 30.05).abs() < 1e-4 && deviation.ratio() > 1.0);
    assert_eq!(lia.worst.as_ref().map(|w| w.id.as_str()), Some("bad"));
}

#[test]
fn what_the_build_lacks_is_skipped_by_name() {
    let report = run(r#""lia": [{"kind": "sbd", "id": "s"}], "nosuch": [{}, {}]"#);
    let lia = &report.algorithms[0];
    assert_eq!(
        (lia.passed, lia.skipped, lia.skip_reason.as_str()),
        (0, 1, "1 of kind sbd")
    );
    let nosuch = &report.algorithms[1];
    assert_eq!(
        (nosuch.passed, nosuch.skipped, nosuch.skip_reason.as_str()),
        (0, 2, "not in this build")
    );
    assert_eq!(report.totals(), (0, 0, 3));
}

#[test]
fn malformed_files_name_the_place() {
    let path = r#"{"cwnd": 3, "srtt": 0.01}"#;
    let ack = |paths: &str, rest: &str| {
        file(&format!(
            r#""lia": [{{"id": "x", "kind": "ack", "paths": [{paths}], "expect": {{"cwnd": 3}} {rest}}}]"#
        ))
    };
    let seq = |ops: &str| {
        ack(path, &format!(r#", "kind": "seq", "ops": [{ops}]"#)).replace(r#""kind": "ack", "#, "")
    };
    for (text, wanted) in [
        ("{".to_owned(), "EOF"),
        ("[]".to_owned(), "wanted an object with \"schema\""),
        (
            r#"{"schema": "other", "algorithms": {}}"#.to_owned(),
            "schema \"other\"",
        ),
        (
            r#"{"schema": "mptcplab-vectors-1"}"#.to_owned(),
            "algorithms",
        ),
        (file(r#""lia": [{}]"#), "algorithms.lia[0]: no \"kind\""),
        (
            file(r#""lia": [{"kind": "ack", "id": "x", "expect": {"cwnd": 1}}]"#),
            "missing field `paths`",
        ),
        (ack("", ""), "0 paths"),
        (ack(path, r#", "r": 1"#), "r = 1, but there are 1 paths"),
        (ack(r#"{"cwnd": 0, "srtt": 0.01}"#, ""), "paths[0]: cwnd 0"),
        (ack(r#"{"cwnd": 3, "srtt": -1}"#, ""), "paths[0]: srtt -1"),
        (
            ack(r#"{"cwnd": 3, "srtt": 0.1, "st": {"l1": 4}}"#, ""),
            "paths[0].st.l1",
        ),
        (
            ack(path, r#", "params": {"variant": "fair"}"#),
            "lia has no parameter variant (it has: dialect)",
        ),
        (seq(r#"["jump", 0]"#), "ops[0]: unknown operation \"jump\""),
        (
            seq(r#"["loss", 0], ["ack", 4, 1]"#),
            "ops[1]: argument 1: 4, wanted the index of a path",
        ),
        (seq(r#"["ack", 0]"#), "ops[0]: argument 2 is missing"),
        (seq(r#"["ack", 0, -1]"#), "ops[0]: argument 2: -1"),
        (seq(r#"["srtt", 0, "x"]"#), "ops[0]: argument 2: \"x\""),
    ] {
        let error = run_text("bad.json", &text).expect_err(&text).to_string();
        assert!(
            error.starts_with("not a vector file: bad.json: "),
            "{error}"
        );
        assert!(error.contains(wanted), "{error}\nwanted: {wanted}");
    }
    let error = run_file(Path::new("/nonexistent/v.json"))
        .unwrap_err()
        .to_string();
    assert!(
        error.starts_with("cannot read the vector file: /nonexistent/v.json: "),
        "{error}"
    );
}
