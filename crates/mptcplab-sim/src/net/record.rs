//! The recorder of samples and events: the trace's tables, with the indices of the whole run.

use super::event::NEVER;
use mptcplab_trace::{EventKind, EventRow, NOT_MEASURED, Tables};
use std::ops::Range;

/// Rows so far, and what the indices of this part of the topology are called in the run.
pub(crate) struct Recorder {
    pub(crate) tables: Tables,
    /// (flow, subflow) of every sender.
    names: Vec<(u32, u32)>,
    /// Senders of short transfers. Their events would fill the trace, which has sums over them instead.
    quiet: Range<usize>,
}

impl Recorder {
    pub(crate) fn new() -> Self {
        Self {
            tables: Tables::default(),
            names: Vec::new(),
            quiet: 0..0,
        }
    }

    /// The next `senders` ones are those of short transfers, without events and rows of their own.
    pub(crate) fn add_quiet_senders(&mut self, senders: usize) {
        let first = self.names.len();
        self.names.resize(first + senders, (u32::MAX, u32::MAX));
        self.quiet = first..self.names.len();
    }

    /// Register the next sender.
    pub(crate) fn add_sender(&mut self, flow: u32, subflow: u32) {
        self.names.push((flow, subflow));
    }

    /// Flow and subflow of a sender.
    pub(crate) fn name(&self, sender: u32) -> (u32, u32) {
        self.names[sender as usize]
    }

    /// Something happened to a subflow.
    pub(crate) fn event(&mut self, t_ns: u64, kind: EventKind, sender: u32, value: u64) {
        if self.quiet.contains(&(sender as usize)) {
            return;
        }
        let (flow, subflow) = self.name(sender);
        self.push(EventRow {
            t_ns,
            kind: kind as u8,
            flow: flow as i32,
            subflow: subflow as i32,
            link: -1,
            value,
        });
    }

    /// Something happened to a flow.
    pub(crate) fn flow_event(&mut self, t_ns: u64, kind: EventKind, flow: u32, value: u64) {
        self.push(EventRow {
            t_ns,
            kind: kind as u8,
            flow: flow as i32,
            subflow: -1,
            link: -1,
            value,
        });
    }

    /// Something happened to a link.
    pub(crate) fn link_event(&mut self, t_ns: u64, kind: EventKind, link: u32, value: u64) {
        self.push(EventRow {
            t_ns,
            kind: kind as u8,
            flow: -1,
            subflow: -1,
            link: link as i32,
            value,
        });
    }

    fn push(&mut self, row: EventRow) {
        self.tables.event.push(row);
    }
}

/// Time from the beginning, for the trace.
pub(crate) fn since(at_ns: u64, begun_ns: u64) -> u64 {
    match at_ns {
        NEVER => NOT_MEASURED,
        at_ns => at_ns - begun_ns,
    }
}
