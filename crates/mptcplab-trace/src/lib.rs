//! Trace tables: what every engine writes and every metric reads.
//!
//! An engine fills [`Tables`], plain vectors of numbers. With the feature `parquet` this crate also turns
//! them into Arrow record batches and writes them, as a directory of Parquet files (module [`mod@parquet`]).
#![forbid(unsafe_code)]

mod describe;
mod record;
mod schema;

#[cfg(feature = "parquet")]
pub mod parquet;

pub use describe::Engine;
pub use record::*;
pub use schema::*;
