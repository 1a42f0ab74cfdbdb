//! The packet-level simulator: one resolved run in, trace tables out. No I/O, no clock, no global state.

use mptcplab_scenario::Run;
use mptcplab_trace::Tables;
use std::sync::atomic::{AtomicBool, AtomicU64};

/// What a run leaves besides its samples.
#[derive(Debug, Clone, Default)]
pub struct Outcome {
    /// Samples and events.
    pub tables: Tables,
    /// Algorithm that each subflow really ran: `subflow_cc[flow][subflow]`, empty for UDP.
    pub subflow_cc: Vec<Vec<String>>,
    /// Events processed by the engine.
    pub events: u64,
    /// Packets (data, ACK, UDP) that crossed a link, times links crossed.
    pub packet_hops: u64,
}

/// Shared with the caller's thread while a run is going on.
#[derive(Debug, Default)]
pub struct Control {
    /// Set to stop the run early; [`simulate`] then returns [`SimError::Cancelled`].
    pub cancel: AtomicBool,
    /// Simulated nanoseconds done so far, over all runs that share this control.
    pub simulated_ns: AtomicU64,
}

/// Why a run could not be finished.
#[derive(Debug, thiserror::Error)]
pub enum SimError {
    /// The caller asked to stop.
    #[error("cancelled")]
    Cancelled,
    /// The scenario asks for something that this engine cannot do.
    #[error("{0}")]
    Unsupported(String),
}

/// Simulate one run.
///
/// # Errors
/// [`SimError::Cancelled`] when `control.cancel` is set, [`SimError::Unsupported`] for a scenario beyond the engine's limits.
pub fn simulate(_run: &Run, _control: &Control) -> Result<Outcome, SimError> {
    Err(SimError::Unsupported("the simulator is being built".into()))
}
