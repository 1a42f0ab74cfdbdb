//! Scenario files: strict TOML in, resolved runs out.
mod model;
pub use model::*;
