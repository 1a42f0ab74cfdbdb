//! Errors of reading sources.

use std::io;
use std::path::PathBuf;

/// The error of sources that cannot be listed or read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file or directory that is part of the sources.
    #[error("cannot read {path}: {source}")]
    Read { path: PathBuf, source: io::Error },
    /// A file that had to be parsed.
    #[error("not UTF-8: {path}")]
    NotText { path: PathBuf },
    /// An `#include` that cannot be followed.
    #[error("{file}:{line}: cannot follow #include {operand}: {why}")]
    Include {
        file: String,
        /// From 1.
        line: usize,
        operand: String,
        /// The reason, and the correct form.
        why: &'static str,
    },
    /// A file name that is not UTF-8 and therefore has no name in the digest.
    #[error("not UTF-8: file name {path}")]
    Name { path: PathBuf },
}
