//! The properties of the parser for any text. The mutation test and the fuzz target check them.

use mptcplab_scenario::{Overrides, describe, parse, run_json, sweep_json};
use std::path::Path;

/// Whether the text is a valid scenario. A valid one has runs with a description; any other is refused, and each error has a
/// place and a hint.
pub(crate) fn is_valid(text: &str, base_dir: Option<&Path>, overrides: &Overrides) -> bool {
    match parse(text, "any.toml", base_dir, overrides) {
        Ok(sweep) => {
            assert!(!sweep.runs.is_empty());
            assert!(!describe(&sweep).is_empty());
            if sweep.runs.len() * sweep.runs[0].links.len().max(1) < 1000 {
                assert!(sweep_json(&sweep).is_object());
            }
            assert!(run_json(&sweep.runs[sweep.runs.len() - 1], None).is_object());
            true
        }
        Err(error) => {
            assert!(!error.diagnostics.is_empty());
            for diagnostic in &error.diagnostics {
                let text = diagnostic.to_string();
                let has_place = text.starts_with("any.toml:") || text.starts_with("command line: ");
                assert!(has_place, "{text}");
                assert!(
                    !diagnostic.message.is_empty() && diagnostic.hint.is_some(),
                    "{text}"
                );
            }
            false
        }
    }
}
