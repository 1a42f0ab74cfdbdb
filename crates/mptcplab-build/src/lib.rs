//! Support for the workspace's build scripts: digests of sources, the build's provenance, the list of algorithm files, their
//! header comments and declarations.
//!
//! A running program uses it only for algorithms that are compiled at run time.

#![forbid(unsafe_code)]

pub mod declarations;
pub mod digest;
pub mod header;
pub mod provenance;
pub mod script;

pub use digest::{Error, Sources, dependencies};
