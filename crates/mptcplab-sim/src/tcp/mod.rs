//! One TCP, or one subflow of an MPTCP connection: its sender and its receiver, as Linux implements them.
//!
//! `sender.rs` has the sender with the fast path of an ACK, `state.rs` the groups of its state. What happens off the fast path
//! is in `recovery.rs` (congestion states, RFC 6937, F-RTO, undo), `sack.rs` (SACK and RACK), `rtx_timer.rs` (timeout, tail loss
//! probe), `nagle.rs` (segments that are not full) and, for Tahoe, Reno and NewReno, `classic_recovery.rs`.

pub(crate) mod classic_recovery;
pub(crate) mod handshake;
mod nagle;
pub(crate) mod rate_sample;
pub(crate) mod receiver;
pub(crate) mod recovery;
pub(crate) mod rtt;
mod rtx_timer;
mod sack;
pub(crate) mod sack_compression;
pub(crate) mod scoreboard;
pub(crate) mod segments;
pub(crate) mod sender;
pub(crate) mod state;
pub(crate) mod subflow;
pub(crate) mod tso;
