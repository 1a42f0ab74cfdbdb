//! The algorithms, in their native build: vectors, laws, random connections and worked numbers.
//!
//! One program for all files, because every test program is compiled and linked with the whole crate. Each file is a
//! module: `cargo test -p mptcplab-cc --test algorithms -- bbr::` runs one of them.

mod arithmetic;
mod bbr;
mod bottlenecks;
mod corner_cases;
mod cubic;
mod dialects;
mod equilibria;
mod fuzz;
mod laws;
mod load;
mod new_algorithm;
mod registry;
mod support;
mod variants;
mod vectors;
mod vegas;
mod westwood;
mod wvegas;
