//! CMT-SCTP: one association that sends over all its paths at once (Iyengar, Amer, Stewart 2006;
//! draft-tuexen-tsvwg-sctp-multipath-20; RFC 9260; spec/algorithms.md 7.9).
//!
//! A path of the scenario is a destination: it has a congestion window, a timeout and counters of its own, while TSNs and
//! the receive window are the association's. Every packet holds one full DATA chunk. Left out: heartbeats and path
//! verification, streams, bundling, ASCONF, shutdown.

mod association;
mod choose;
mod chunk;
mod handshake;
mod missing;
mod outstanding;
mod receiver;
mod rto;
mod sample;
mod sender;
mod window;

pub(crate) use association::{Association, AssociationConfig, DestinationConfig};

/// What every subflow row's algorithm is called in the trace: SCTP has its own.
pub(crate) const ALGORITHM: &str = mptcplab_scenario::CMT_SCTP;
