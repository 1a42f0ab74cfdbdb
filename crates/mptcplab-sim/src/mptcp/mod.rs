//! A TCP or MPTCP connection above its subflows: data sequence space, scheduling, reinjection and retransmission.

pub(crate) mod connection;
mod idle_subflows;
mod retransmit;
pub(crate) mod scheduler;
pub(crate) mod sender;
