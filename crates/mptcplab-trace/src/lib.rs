//! Trace tables: every engine writes them, and every metric reads them.
//!
//! An engine fills [`Tables`], which are plain vectors of numbers. With the feature `parquet` this crate also turns them
//! into Arrow record batches and writes them as a directory of Parquet files (module [`mod@parquet`]).
#![forbid(unsafe_code)]

mod from_scenario;
mod link_row;
mod run_table;
mod schema;
mod view;

#[cfg(feature = "parquet")]
pub mod parquet;

pub use from_scenario::{EngineInfo, texts_of_sweep};
pub use run_table::*;
pub use schema::*;
pub use view::{TableView, Values};
