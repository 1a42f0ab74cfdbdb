//! Every public vector of a scheduler passes, by the functions that the simulator calls.

use mptcplab_model::sched::vectors::{run, run_file};
use serde_json::{Value, json};
use std::path::Path;

#[test]
fn every_public_vector_passes() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../mptcplab-cc/tests/data/vectors.json");
    let report = run_file(&path).unwrap();
    for (name, vectors) in [
        ("minrtt", 40),
        ("rbuf-opt", 30),
        ("rr", 24),
        ("redundant", 20),
        ("blest", 30),
        ("ecf", 40),
        ("linger", 30),
        ("delayvar", 36),
        ("cmt-rr", 16),
    ] {
        let found = report.algorithms.iter().rfind(|a| a.name == name).unwrap();
        assert_eq!(
            (found.passed, found.failures.as_slice(), found.skipped),
            (vectors, &[][..], 0),
            "{name}"
        );
    }
}

fn minrtt(expected: &Value) -> Value {
    json!({
        "id": "m",
        "kind": "sched",
        "sub": [{"srtt": 0.03, "cwnd": 4, "inflight": 1}, {"srtt": 0.02, "cwnd": 9, "inflight": 8}],
        "args": {},
        "expect": {"pick": expected},
    })
}

#[test]
fn a_wrong_pick_fails() {
    let outcome = |expected| {
        let report = run("minrtt", &[minrtt(&expected)]).unwrap().unwrap();
        (report.passed, report.failures.len())
    };
    assert_eq!(outcome(json!(1)), (1, 0));
    assert_eq!(outcome(json!(0)), (0, 1));
    assert_eq!(outcome(Value::Null), (0, 1));
    assert_eq!(outcome(json!("1")), (0, 1));
}

#[test]
fn a_subflow_that_does_not_exist_is_an_error_with_its_place() {
    let mut vector = minrtt(&json!(1));
    vector["args"] = json!({"sent_on": [2]});
    let error = run("minrtt", &[vector]).unwrap().unwrap_err();
    assert_eq!(error, "schedulers.minrtt[0]: subflow 2 of 2");
    assert!(run("nosuch", &[]).is_none());
}
