//! Resolved sweeps and runs as text and as JSON.

mod json;
mod text;

pub use json::{run_json, sweep_json};
pub use text::describe;
