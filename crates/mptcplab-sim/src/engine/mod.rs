//! One part of a topology: built from the run, simulated event by event, sampled.

pub(crate) mod assemble;
pub(crate) mod event_loop;
mod flow_builder;
pub(crate) mod partition;
mod prefetch;
mod requests;
mod sample;
pub(crate) mod sample_clock;
mod transfer_pool;
mod transfers;
