//! Errors of writing and joining traces.

use std::path::{Path, PathBuf};

/// Why a trace could not be written.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// The operating system refused.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// What was tried, as in "create".
        action: &'static str,
        path: PathBuf,
        source: std::io::Error,
    },
    /// The Parquet library refused.
    #[error("cannot write {}: {source}", path.display())]
    Parquet {
        path: PathBuf,
        source: parquet::errors::ParquetError,
    },
    /// A file is no part of a trace.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        path: PathBuf,
        source: parquet::errors::ParquetError,
    },
    /// A trace of another version, whose tables have other columns.
    #[error(
        "{} was written by another version of mptcplab: its column {column} is not one of this version's, or has another type",
        path.display()
    )]
    OtherColumns { path: PathBuf, column: String },
    /// Results are never overwritten.
    #[error("{} exists and is not empty", .0.display())]
    Exists(PathBuf),
    /// Another process is writing to the same directory.
    #[error("another run is writing to {}", .0.display())]
    Busy(PathBuf),
    /// The directory of unfinished files has a file that is not part of a trace.
    #[error("{} holds a file that is not part of a trace: {}", dir.display(), file.display())]
    Foreign { dir: PathBuf, file: PathBuf },
    /// Somebody else made the directory of unfinished files, or can change it.
    #[error("{} {why}", dir.display())]
    NotOurs { dir: PathBuf, why: String },
    /// An engine wrote an index or a code that has no name: a bug of the engine.
    #[error("run {run}: table {table}, row {row}: {column} {value} has no name")]
    NoName {
        run: u32,
        table: &'static str,
        column: &'static str,
        /// From 0.
        row: usize,
        value: i64,
    },
    /// Runs were appended out of order: a bug of the caller.
    #[error("run {run} was appended after run {last}")]
    Order { run: u32, last: u32 },
}

impl TraceError {
    /// The same error about a row that was counted after so many others.
    pub(super) fn after_rows(self, before: usize) -> Self {
        match self {
            Self::NoName {
                run,
                table,
                column,
                row,
                value,
            } => Self::NoName {
                run,
                table,
                column,
                row: before + row,
                value,
            },
            other => other,
        }
    }
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
    pub(super) fn read(path: &Path) -> impl FnOnce(parquet::errors::ParquetError) -> Self {
        move |source| Self::Read {
            path: path.to_owned(),
            source,
        }
    }
}
