//! CMT-SCTP: one association that sends over all its paths at once (Iyengar, Amer, Stewart 2006;
//! draft-tuexen-tsvwg-sctp-multipath-20; RFC 9260).
//!
//! A path of the scenario is a destination: it has a congestion window, a timeout and counters of its own, while TSNs and
//! the receive window are the association's. Every packet holds one full DATA chunk. Left out: heartbeats and path
//! verification, streams, bundling, ASCONF, shutdown.

mod association;
mod chunk;
mod handshake;
mod missing_reports;
mod outstanding;
mod receiver;
mod rto;
mod rtx_destination;
mod sample;
mod sender;
mod window;

pub(crate) use association::{Association, AssociationConfig, DestinationConfig};

/// Name of the algorithm in the trace: SCTP has its own congestion control.
pub(crate) const ALGORITHM: &str = mptcplab_scenario::CMT_SCTP;
