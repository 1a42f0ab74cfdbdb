//! Fuzzes the scenario parser with the properties that the mutation test checks: it never panics, and every refused text
//! gets a place and a hint.
//!
//!     cargo +nightly fuzz run scenario -- -max_len=4096 -max_total_time=600
//!
//! The shipped and the faulty scenarios are a good starting corpus: `mkdir -p fuzz/corpus/scenario && cp scenarios/*.toml
//! crates/mptcplab-scenario/tests/bad/*.toml fuzz/corpus/scenario/`.
#![no_main]

#[path = "../../crates/mptcplab-scenario/tests/common/any_text.rs"]
mod any_text;

use libfuzzer_sys::fuzz_target;
use mptcplab_scenario::Overrides;

fuzz_target!(|text: &str| {
    any_text::is_valid(text, None, &Overrides::default());
});
