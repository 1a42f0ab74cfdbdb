//! Errors of reading sources.

use std::io;
use std::path::PathBuf;

/// Why the sources of a result could not be listed or read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file or directory that is part of the sources.
    #[error("cannot read {path}: {source}")]
    Read {
        /// File or directory.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// A file that had to be parsed.
    #[error("not UTF-8: {path}")]
    NotText {
        /// The file.
        path: PathBuf,
    },
    /// An `#include` that cannot be followed.
    #[error("{file}:{line}: cannot follow #include {operand}: {why}")]
    Include {
        /// Name of the C file.
        file: String,
        /// Line, from 1.
        line: usize,
        /// As written.
        operand: String,
        /// The reason, and the correct form.
        why: &'static str,
    },
    /// A directory of a crate with a name that is not UTF-8, which has no name in the digest.
    #[error("not UTF-8: file name {path}")]
    Name {
        /// The path.
        path: PathBuf,
    },
}
