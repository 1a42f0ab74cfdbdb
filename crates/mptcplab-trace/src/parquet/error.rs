//! What can go wrong between tables in memory and a finished directory.

use std::path::{Path, PathBuf};

/// Why a trace could not be written.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// The operating system refused.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// On which file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The Parquet library refused.
    #[error("cannot write {}: {source}", path.display())]
    Parquet {
        /// File that was being written.
        path: PathBuf,
        /// What the library said.
        source: parquet::errors::ParquetError,
    },
    /// Results are never overwritten.
    #[error("{} exists and is not empty", .0.display())]
    Exists(PathBuf),
    /// Two writers for one directory.
    #[error("another run is writing to {}", .0.display())]
    Busy(PathBuf),
    /// The directory of unfinished files holds something that no trace has.
    #[error("{} holds a file that is not part of a trace: {}", dir.display(), file.display())]
    Foreign {
        /// Directory of unfinished files.
        dir: PathBuf,
        /// The file that is not ours.
        file: PathBuf,
    },
    /// An engine wrote an index or a code that has no name: a bug of the engine.
    #[error("run {run}: table {table}, row {row}: {column} {value} has no name")]
    NoName {
        /// Run id.
        run: u32,
        /// Table.
        table: &'static str,
        /// Column.
        column: &'static str,
        /// Row, from 0.
        row: usize,
        /// The value without a name.
        value: i64,
    },
    /// Runs came out of order: a bug of the caller.
    #[error("run {run} was appended after run {last}")]
    Order {
        /// Run that came too late.
        run: u32,
        /// Run before it.
        last: u32,
    },
}

impl TraceError {
    pub(super) fn io(action: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> Self {
        move |source| Self::Io {
            action,
            path: path.to_owned(),
            source,
        }
    }

    pub(super) fn parquet(path: &Path) -> impl FnOnce(parquet::errors::ParquetError) -> Self {
        move |source| Self::Parquet {
            path: path.to_owned(),
            source,
        }
    }
}
