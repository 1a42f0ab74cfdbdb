//! Trace tables: what every engine writes and every metric reads.
mod schema;
pub use schema::*;
