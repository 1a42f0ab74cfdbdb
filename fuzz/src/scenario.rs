//! The parser of scenarios, with the properties that its own mutation test checks.

#[path = "../../crates/mptcplab-scenario/tests/common/any_text.rs"]
mod any_text;

pub(crate) use any_text::is_valid;
use mptcplab_scenario::Overrides;

/// The text of a scenario.
pub fn scenario(bytes: &[u8]) {
    if let Ok(text) = std::str::from_utf8(bytes) {
        is_valid(text, None, &Overrides::default());
    }
}
