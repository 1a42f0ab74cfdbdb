//! The receiving end of a byte stream, for TCP, MPTCP and SCTP: reassembly, delivery in order, and statistics of reordering.

pub(crate) mod messages;
pub(crate) mod reassembly;
mod receive_memory;
pub(crate) mod receive_window;
pub(crate) mod receiver;
pub(crate) mod reordering;
pub(crate) mod seq_ring;

pub(crate) use mptcplab_model::sched::DSN_MAX;
