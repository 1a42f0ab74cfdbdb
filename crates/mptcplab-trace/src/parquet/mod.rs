//! Traces as Arrow record batches and as a directory of Parquet files, one file per table.
//!
//! A run is encoded on the thread that simulates it ([`Encoder`]) and appended by one [`TraceWriter`] in the order of run
//! ids, one row group per run and table. The files have the same bytes for any number of jobs.
//!
//! On disk each table has an additional first column `run`. The metadata of a field has its unit and its description.

mod batch;
mod error;
mod merge;
mod reserve;
pub(crate) mod view;
mod writer;

#[cfg(test)]
mod tests;

pub use batch::{record_batches, schemas};
pub use error::TraceError;
pub use merge::{Part, merge};
pub use writer::{EncodedRun, Encoder, FILES, RunEncoder, TraceWriter};
