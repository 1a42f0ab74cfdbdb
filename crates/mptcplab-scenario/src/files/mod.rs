//! Files that a scenario names: packet-delivery traces and tables of link changes.

pub(crate) mod bounded;
mod cache;
mod mahimahi;
mod schedule;

pub use cache::FileSource;
pub(crate) use cache::Files;
pub(crate) use mahimahi::{MTU_BYTES, mean_rate_bps};
