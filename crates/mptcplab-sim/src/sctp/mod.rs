//! CMT-SCTP: one association that sends over all its paths at once (Iyengar, Amer, Stewart 2006;
//! draft-tuexen-tsvwg-sctp-multipath-20; RFC 9260; spec/algorithms.md 7.9).
//!
//! A path of the scenario is a destination: it has a congestion window, a timeout and counters of its own, while TSNs and
//! the receive window are the association's. Every packet holds one full DATA chunk. Left out: heartbeats and path
//! verification, streams, bundling, ASCONF, shutdown.

mod association;
mod choose;
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

/// IP (20), SCTP common header (12) and DATA chunk header (16).
pub(crate) const DATA_HEADER_BYTES: u16 = 48;

/// The chunk of a packet, in its window field, which SCTP has no other use for. Data and requests travel forward.
mod chunk {
    pub(super) const DATA: u16 = 0;
    pub(super) const SACK: u16 = 1;
    pub(super) const INIT: u16 = 2;
    pub(super) const INIT_ACK: u16 = 3;
    pub(super) const COOKIE_ECHO: u16 = 4;
    pub(super) const COOKIE_ACK: u16 = 5;
}
