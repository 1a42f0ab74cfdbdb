//! Scenario files: strict TOML in, resolved runs out.
//!
//! A file is read in two passes. The first holds it against the declarations in `spec` (which also make the JSON
//! Schema and the documentation): every key known, every value of its kind, lists of scalars taken as sweep axes. The
//! second resolves each combination of axis values against the network: paths join, queues become packets or bytes.
//! Every mistake is an [`Error`] that names file, line, key and value, and what would be right; nothing panics.
#![forbid(unsafe_code)]

mod check;
mod document;
mod error;
mod files;
mod format;
mod load;
mod names;
mod output;
mod registry;
mod resolve;
mod run;
mod units;

pub use document::{Overrides, refusal};
pub use error::{Diagnostic, Error, Origin};
pub use format::{json_schema, reference_page};
pub use load::{load, parse};
pub use output::{describe, run_json, sweep_json};
pub use run::*;
pub use units::{duration_ns, rate_bps};
