//! A TCP or MPTCP connection above its subflows: data sequence space, scheduling, reinjection and retransmission.

pub(crate) mod connection;
mod data_rtx;
mod idle_subflows;
mod path;
mod reinject;
pub(crate) mod sender;

/// The scheduler of connections that name none.
pub const DEFAULT_SCHEDULER: mptcplab_model::sched::Kind = mptcplab_model::sched::Kind::MinRtt;
