//! Data in sequence at the receiver, for TCP, MPTCP and SCTP: reassembly, delivery, and statistics of reordering.

pub(crate) mod reassembly;
pub(crate) mod receiver;
pub(crate) mod reordering;

/// No data sequence number is ever this large.
pub(crate) const DSN_MAX: u32 = u32::MAX >> 1;
