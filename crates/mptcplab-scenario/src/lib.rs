//! Scenario files: parses strict TOML and resolves it to runs.
//!
//! The modules are the stages of the way from a file to its runs:
//!
//! 1. `document` reads TOML to a tree whose values know their places, and applies overrides.
//! 2. `check` compares the tree with the declarations in `format`, from which the JSON Schema and the reference page are
//!    also made: every key is known, every value has its type, and a list where one value is expected is a sweep axis.
//! 3. `resolve` turns each combination of axis values into a [`Run`]: links join to paths, queue sizes become packets or
//!    bytes, defaults are filled in. It uses `units` for numbers, `registry` for algorithms and schedulers, and `files` for
//!    the files that a scenario names.
//! 4. `output` shows the result as text and as JSON.
//!
//! [`load`] runs all stages. Every mistake becomes an [`Error`] that names file, line, key and value, and says what would
//! be right. Nothing panics.
#![forbid(unsafe_code)]

mod check;
mod document;
mod error;
mod files;
mod format;
mod headers;
mod jitter;
mod load;
mod names;
mod output;
mod registry;
mod resolve;
mod run;
mod strayed;
mod units;

pub use document::{Overrides, unsupported_setting};
pub use error::{Diagnostic, Error, Origin, unknown_name};
pub use files::FileSource;
pub use format::{json_schema, reference_page};
pub use headers::{Dss, TCP_HEADER_BYTES};
pub use load::{load, parse, parse_with};
pub use output::{describe, run_json, sweep_json};
pub use run::*;
pub use units::{duration_ns, rate_bps};
