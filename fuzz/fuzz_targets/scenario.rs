//! Fuzzes the scenario parser: it never panics, and every refused text gets a place and a hint.
//!
//!     cargo +nightly fuzz run scenario -- -max_len=4096 -max_total_time=600
//!
//! The shipped and the faulty scenarios are a good starting corpus: `mkdir -p fuzz/corpus/scenario && cp scenarios/*.toml
//! crates/mptcplab-scenario/tests/bad/*.toml fuzz/corpus/scenario/`.
#![no_main]

use libfuzzer_sys::fuzz_target;
use mptcplab_scenario::{Overrides, describe, parse, run_json};

fuzz_target!(|text: &str| {
    match parse(text, "fuzz.toml", None, &Overrides::default()) {
        Ok(sweep) => {
            assert!(!describe(&sweep).is_empty());
            assert!(run_json(&sweep.runs[0], None).is_object());
        }
        Err(error) => {
            assert!(!error.diagnostics.is_empty());
            assert!(error.diagnostics.iter().all(|d| d.hint.is_some()));
            assert!(error.to_string().starts_with("fuzz.toml:"));
        }
    }
});
