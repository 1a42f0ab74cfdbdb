//! The simulator as a whole: every file simulates scenarios and compares what comes out with a rule.
//!
//! One program for all files, because every test program is compiled and linked with the whole crate. Each file is a
//! module: `cargo test -p mptcplab-sim --test simulations -- acking::` runs one of them.

mod acking;
mod aftermath;
mod bbr;
mod classic_recovery;
mod common;
mod comp_sack;
mod corners;
mod cubic;
mod estimates;
mod fairness;
mod handover;
mod handshake;
mod host_delay;
mod independence;
mod integrity;
mod layers;
mod lookahead;
mod many;
mod multipath;
mod multipath_variants;
mod nagle;
mod profiles;
mod recovery;
mod reduction;
mod requests;
mod schedulers;
mod sctp;
mod single_path;
mod threads;
mod transfers;
mod tso;
mod windows;
