//! Any text is refused with a place and a hint, or means something; the parser never panics.
//!
//!     cargo +nightly fuzz run scenario -- -max_len=4096 -max_total_time=600
//!
//! The corpus of bad scenarios is a good start: `mkdir -p fuzz/corpus/scenario && cp scenarios/*.toml
//! crates/mptcplab-scenario/tests/bad/*.toml fuzz/corpus/scenario/`.
#![no_main]

use libfuzzer_sys::fuzz_target;
use mptcplab_scenario::{Overrides, describe, parse, to_json};

fuzz_target!(|text: &str| {
    match parse(text, "fuzz.toml", None, &Overrides::default()) {
        Ok(sweep) => {
            assert!(!describe(&sweep).is_empty());
            assert!(to_json(&sweep.runs[0]).is_object());
        }
        Err(error) => {
            assert!(!error.diagnostics.is_empty());
            assert!(error.diagnostics.iter().all(|d| d.hint.is_some()));
            assert!(error.to_string().starts_with("fuzz.toml:"));
        }
    }
});
