//! Traces as Arrow record batches and as a directory of Parquet files, one file per table.
//!
//! A run is encoded where it was simulated ([`Encoder`], any thread) and appended by one [`TraceWriter`] in
//! the order of run ids, one row group per run and table: the files are the same bytes for any number of jobs.
//!
//! On disk the tables gain a first column `run`; indices become names, codes become words, and values that
//! mean "none" become null. Each field's metadata carries its unit and its meaning.

mod batch;
mod error;
mod spare;
mod writer;

#[cfg(test)]
mod tests;

pub use batch::{record_batches, schemas};
pub use error::TraceError;
pub use writer::{EncodedRun, Encoder, FILES, RunEncoder, TraceWriter};
