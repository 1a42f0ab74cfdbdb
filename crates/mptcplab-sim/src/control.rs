//! The caller's side of a run: progress, cancellation, and rows handed over while the run goes on.

use mptcplab_trace::Tables;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Shared with the caller's thread while a run is going on.
#[derive(Debug, Default)]
pub struct Control {
    /// Set to stop the run early; [`simulate`](crate::simulate) then returns [`SimError::Cancelled`].
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
    /// A thread of [`simulate_on_threads`](crate::simulate_on_threads) panicked, with this message.
    #[error("panicked: {0}")]
    Panicked(String),
}

/// The caller, as the engine sees it.
pub(crate) struct Caller<'a> {
    pub(crate) control: &'a Control,
    /// Parts of the topology: each contributes its share of the simulated time.
    pub(crate) share: u64,
    pub(crate) receiver: Receiver<'a>,
}

/// Who takes the rows while a run goes on; the functions return whether it does.
pub(crate) enum Receiver<'a> {
    /// Nobody: they stay in memory.
    Nobody,
    /// Takes pieces of enough rows.
    Sink(&'a mut dyn FnMut(&mut Tables) -> bool),
    /// Is called each time that rows are offered, and takes them or not.
    Offers(&'a mut dyn FnMut(&mut Tables) -> bool),
}

/// Rows that make a piece worth handing over, and still fit the cache.
pub(crate) const SINK_ROWS: usize = 8192;

impl Caller<'_> {
    /// Count simulated time, and check whether to stop.
    pub(crate) fn report(&self, simulated_ns: u64) -> Result<(), SimError> {
        self.control
            .simulated_ns
            .fetch_add(simulated_ns / self.share, Ordering::Relaxed);
        if self.control.cancel.load(Ordering::Relaxed) {
            return Err(SimError::Cancelled);
        }
        Ok(())
    }

    /// Hand over the rows if there are enough.
    pub(crate) fn offer(&mut self, tables: &mut Tables) -> Result<(), SimError> {
        let go_on = match &mut self.receiver {
            Receiver::Nobody => true,
            Receiver::Sink(sink) => tables.len() < SINK_ROWS || sink(tables),
            Receiver::Offers(offer) => offer(tables),
        };
        if go_on {
            Ok(())
        } else {
            Err(SimError::Cancelled)
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use mptcplab_trace::EventRow;

    /// So many rows of events.
    pub(crate) fn rows(count: usize) -> Tables {
        let mut tables = Tables::default();
        for value in 0..count as u64 {
            tables.event.push(EventRow {
                t_ns: 5,
                kind: 1,
                flow: 2,
                subflow: 3,
                link: -1,
                value,
            });
        }
        tables
    }

    #[test]
    fn rows_are_handed_over_once_there_are_enough() {
        for (count, is_enough) in [(SINK_ROWS - 1, false), (SINK_ROWS, true)] {
            let mut tables = rows(count);
            let mut taken = 0;
            let mut sink = |tables: &mut Tables| {
                taken += tables.len();
                true
            };
            let control = Control::default();
            let mut caller = Caller {
                control: &control,
                share: 1,
                receiver: Receiver::Sink(&mut sink),
            };
            assert!(caller.offer(&mut tables).is_ok());
            assert_eq!(taken, if is_enough { count } else { 0 });
        }
    }
}
