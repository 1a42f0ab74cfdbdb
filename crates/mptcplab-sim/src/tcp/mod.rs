//! One TCP, or one subflow of an MPTCP connection: its sender and its receiver.

pub(crate) mod classic_recovery;
pub(crate) mod handshake;
pub(crate) mod rate;
pub(crate) mod receiver;
pub(crate) mod recovery;
mod retransmit;
pub(crate) mod rtt;
mod sack;
pub(crate) mod sack_compression;
pub(crate) mod scoreboard;
pub(crate) mod segments;
pub(crate) mod sender;
pub(crate) mod state;
pub(crate) mod subflow;
pub(crate) mod tso;
