//! The simulator for a page in a browser: the text of a scenario goes in, samples come out in chunks while the run goes on.
//!
//! - `session` parses scenarios and simulates their runs, with the crates that the command line uses, so that the samples are
//!   the same to the last bit;
//! - `chunk` lays samples out as bytes that JavaScript reads as typed arrays;
//! - `catalog` describes the build: algorithms, schedulers, the tables' columns;
//! - `abi` has the functions that the page calls, and is compiled for WebAssembly only. Everything `unsafe` is there.

#![cfg_attr(not(target_family = "wasm"), forbid(unsafe_code))]

#[cfg(target_family = "wasm")]
mod abi;
pub mod catalog;
pub mod chunk;
pub mod session;
