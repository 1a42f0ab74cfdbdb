//! What was understood, as text for people and as JSON.

mod json;
mod text;

pub use json::{run_json, sweep_json};
pub use text::describe;
