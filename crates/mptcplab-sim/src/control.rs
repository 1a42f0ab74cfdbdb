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
    /// Set when nobody waits for this part of the run any more.
    pub(crate) abandoned: Option<&'a AtomicBool>,
}

/// Who takes the rows while a run goes on.
pub(crate) enum Receiver<'a> {
    /// Nobody: they stay in memory.
    Nobody,
    /// Takes rows when there are enough.
    Sink(Sink<'a>),
}

/// Takes rows. Those that it wants to see again, together with later ones, it leaves in the tables.
pub(crate) struct Sink<'a> {
    /// Returns whether the run goes on.
    take: &'a mut dyn FnMut(&mut Tables) -> bool,
    /// Rows that it left.
    left: usize,
}

/// New rows that are worth a call.
pub(crate) const SINK_ROWS: usize = 8192;

impl<'a> Sink<'a> {
    pub(crate) fn new(take: &'a mut dyn FnMut(&mut Tables) -> bool) -> Self {
        Self { take, left: 0 }
    }

    /// Hands the rows over if there are enough new ones. Returns whether the run goes on.
    pub(crate) fn offer(&mut self, tables: &mut Tables) -> bool {
        if tables.len() < self.left + SINK_ROWS {
            return true;
        }
        let goes_on = (self.take)(tables);
        self.left = tables.len();
        goes_on
    }
}

impl Caller<'_> {
    /// Count simulated time, and check whether to stop.
    pub(crate) fn report(&self, simulated_ns: u64) -> Result<(), SimError> {
        self.control
            .simulated_ns
            .fetch_add(simulated_ns / self.share, Ordering::Relaxed);
        let is_abandoned = self
            .abandoned
            .is_some_and(|flag| flag.load(Ordering::Relaxed));
        if is_abandoned || self.control.cancel.load(Ordering::Relaxed) {
            return Err(SimError::Cancelled);
        }
        Ok(())
    }

    /// Hand over the rows if there are enough.
    pub(crate) fn offer(&mut self, tables: &mut Tables) -> Result<(), SimError> {
        let goes_on = match &mut self.receiver {
            Receiver::Nobody => true,
            Receiver::Sink(sink) => sink.offer(tables),
        };
        if goes_on {
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
    fn rows_are_handed_over_once_there_are_enough_new_ones() {
        let mut calls = Vec::new();
        // Leaves seven rows.
        let mut take = |tables: &mut Tables| {
            calls.push(tables.len());
            *tables = rows(7);
            calls.len() < 2
        };
        let mut sink = Sink::new(&mut take);
        let mut offered = |count| {
            let mut tables = rows(count);
            (sink.offer(&mut tables), tables.len())
        };
        assert_eq!(offered(SINK_ROWS - 1), (true, SINK_ROWS - 1));
        assert_eq!(offered(SINK_ROWS), (true, 7));
        assert_eq!(offered(SINK_ROWS + 6), (true, SINK_ROWS + 6));
        assert_eq!(offered(SINK_ROWS + 7), (false, 7));
        assert_eq!(calls, [SINK_ROWS, SINK_ROWS + 7]);
    }

    #[test]
    fn a_sink_that_says_stop_cancels_the_run() {
        for goes_on in [true, false] {
            let (control, mut take) = (Control::default(), |_: &mut Tables| goes_on);
            let mut caller = Caller {
                control: &control,
                share: 1,
                receiver: Receiver::Sink(Sink::new(&mut take)),
                abandoned: None,
            };
            assert!(caller.offer(&mut rows(SINK_ROWS - 1)).is_ok());
            assert_eq!(caller.offer(&mut rows(SINK_ROWS)).is_ok(), goes_on);
        }
    }
}
