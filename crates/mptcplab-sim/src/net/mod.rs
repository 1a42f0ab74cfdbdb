//! The simulated network: packets, links, routes, the clock with its timers, and the recorder of the trace.

pub(crate) mod event;
mod links;
mod lookahead;
mod merge;
mod options;
pub(crate) mod packet;
pub(crate) mod record;
mod timer_queue;

pub(crate) use links::{Net, Route};
pub(crate) use options::{MAX_BLOCKS, SackBlocks, WINDOW_UPDATE};

use event::Timers;
use record::Recorder;

/// The state that all endpoints share: time, links, timers and the trace.
pub(crate) struct World {
    pub(crate) now: u64,
    pub(crate) net: Net,
    pub(crate) timers: Timers,
    pub(crate) rec: Recorder,
}
