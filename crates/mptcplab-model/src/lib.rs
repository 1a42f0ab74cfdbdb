//! The parts of a network that every engine shares: links, packet schedulers and traffic.
//!
//! Each module is a set of pure functions and state machines. There is no I/O and no clock here: time is an argument, and
//! randomness comes from a stream that the caller owns. The simulator and the emulator therefore behave alike.
#![forbid(unsafe_code)]

pub mod link;
pub mod sched;
pub mod traffic;
