//! Support for the workspace's build scripts: digests of sources, the build's provenance, and the list of algorithm files.
//!
//! Nothing here is part of a running program.

#![forbid(unsafe_code)]

pub mod digest;
pub mod provenance;
pub mod script;

pub use digest::{Error, Sources, dependencies};
