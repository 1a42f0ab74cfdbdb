//! Traces as Arrow record batches and as a directory of Parquet files, one file per table.
//!
//! A run is encoded on the thread that simulates it ([`Encoder`]) and appended by one [`TraceWriter`] in the order of run
//! ids. A table with many rows of a run has a row group of its own, and short runs share one. The files have the same
//! bytes for any number of jobs, and whether runs come from memory or from other traces ([`merge()`], [`KeptRuns`]).
//!
//! On disk each table has an additional first column `run`. The metadata of a field has its unit and its description.

mod batch;
mod checksums;
mod encode;
mod error;
mod kept;
mod merge;
mod purpose;
mod reserve;
mod scratch;
mod stored;
mod writer;

#[cfg(test)]
mod tests;

pub use batch::schemas;
pub use encode::{EncodedRun, Encoder, RunEncoder};
pub use error::TraceError;
pub use kept::{KeptRuns, next_kept};
pub use merge::{Part, merge};
pub use scratch::ScratchRuns;
pub use writer::{FILES, TraceWriter};
