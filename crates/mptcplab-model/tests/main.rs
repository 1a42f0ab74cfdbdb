//! The packet schedulers: vectors, laws and corners.
//!
//! One program for all files, because every test program is compiled and linked with the whole crate. Each file is a
//! module: `cargo test -p mptcplab-model --test schedulers -- scheduler_corners::` runs one of them.

mod scheduler_corners;
mod scheduler_laws;
mod scheduler_vectors;
