//! The parser of scenarios: what a file means, and what is refused.
//!
//! One program for all files, because every test program is compiled and linked with the whole crate. Each file is a
//! module: `cargo test -p mptcplab-scenario --test scenarios -- bad::` runs one of them.

#[path = "common/any_text.rs"]
mod any_text;
mod bad;
mod good;
mod meaning;
mod mutation;
mod path_manager;
mod reference;
mod requests;
mod schedule_file;
