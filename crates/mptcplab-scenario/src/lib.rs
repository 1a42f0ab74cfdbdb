//! Scenario files: strict TOML in, resolved runs out.
//!
//! A file is read in two passes. The first holds it against the declarations in `spec` (which also make the JSON
//! Schema and the documentation): every key known, every value of its kind, lists of scalars taken as sweep axes. The
//! second resolves each combination of axis values against the network: paths join, queues become packets or bytes.
//! Every mistake is an [`Error`] that names file, line, key and value, and what would be right; nothing panics.
#![forbid(unsafe_code)]

mod algorithm;
mod changes;
mod choice;
mod describe;
mod document;
mod error;
mod expand;
mod files;
mod format;
mod json;
mod locate;
mod mahimahi;
mod model;
mod overrides;
mod resolve;
mod scheduler;
mod schema;
mod spec;
mod table;
mod units;
mod validate;
mod value;

pub use describe::describe;
pub use document::format_doc;
pub use error::{Diagnostic, Error, Origin};
pub use expand::{load, parse};
pub use json::{sweep_json, to_json};
pub use locate::refusal;
pub use model::*;
pub use overrides::Overrides;
pub use schema::json_schema;
pub use units::{duration_ns, rate_bps};
