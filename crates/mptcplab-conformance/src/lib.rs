//! Conformance scripts, in the manner of packetdrill: what a TCP sends packet by packet, and the state that it is in then.
//!
//! The simulator's own tests play the scripts of `tests/conformance` against its sender and receiver, and
//! `tests/kernels/player` plays the same files against the kernel on which it runs. [`script`] is their format, [`text`] writes
//! what was sent in it.

#![forbid(unsafe_code)]

pub mod script;
pub mod text;
