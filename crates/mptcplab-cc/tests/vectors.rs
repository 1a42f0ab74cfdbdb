//! The public test vectors, and the errors that a bad vector file gives.

use mptcplab_cc::vectors::{Report, run_file, run_text};
use std::path::Path;

fn public() -> Report {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/vectors.json");
    run_file(&path).expect("the public vectors are well formed")
}

#[test]
fn every_public_vector_of_a_native_algorithm_passes() {
    let report = public();
    for algorithm in &report.algorithms {
        let worst = algorithm.worst.as_ref();
        println!(
            "{:12} passed {:4} failed {:3} skipped {:3} {} worst {:?}",
            algorithm.name,
            algorithm.passed,
            algorithm.failures.len(),
            algorithm.skipped,
            algorithm.skip_reason,
            worst.map(|w| (w.ratio(), &w.id, &w.what)),
        );
        for failure in algorithm.failures.iter().take(5) {
            println!("    {} {:?}", failure.id, failure.deviations.first());
        }
    }
    assert!(report.algorithms.iter().all(|a| a.failures.is_empty()));
}
