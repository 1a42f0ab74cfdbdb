//! The interface of a scheduler: the send queue that it sees, its decision, and what else it may define.

use super::declare::{Declaration, SchedulerConfig};
use super::path::{MAX_SUBFLOWS, Path, lowest_rtt};
use super::rbuf_opt::RbufOpt;

/// No data sequence number is ever this large. As the end of a window it means that there is no limit.
pub const DSN_MAX: u32 = u32::MAX >> 1;

/// A subflow's send buffer is sized for a window of at least this (Linux `TCP_INIT_CWND`).
pub(super) const MIN_BUFFER_PKTS: u32 = 10;

/// A packet scheduler. The type holds all state that it keeps for a connection.
pub trait Schedule: Sized {
    /// Whether it also gives a subflow segments that another one has, and so works when there is nothing new.
    const SENDS_COPIES: bool = false;
    /// Whether it is upstream Linux' own, which comes with a retransmission timer of the connection.
    const IS_UPSTREAM: bool = false;

    /// Name, parameters and documentation.
    fn declaration() -> Declaration;

    /// The scheduler of a new connection.
    fn new(config: &SchedulerConfig) -> Self;

    /// The subflow for the next segments, or `None` to wait.
    fn pick<P: Path>(&mut self, subflows: &[P], queue: &SendQueue) -> Option<Assignment>;

    /// The first data sequence number that has no room in the connection's send buffer or is not written.
    #[inline]
    fn buffer_end<P: Path>(&mut self, _subflows: &[P], queue: &SendQueue) -> u32 {
        queue.written
    }

    /// An event of this subflow has been handled, and everything that may be sent has been.
    #[inline]
    fn note_pushed<P: Path>(&mut self, _index: usize, _subflow: &P, _mss: u16) {}

    /// The subflow for a segment that failed on another one, among those that `admit` lets through.
    fn pick_for_reinjection<P: Path>(
        &self,
        subflows: &[P],
        admit: impl Fn(usize) -> bool,
    ) -> Option<usize> {
        lowest_rtt(subflows, admit)
    }

    /// The receive-buffer optimisation, if the scheduler has it.
    fn rbuf_opt(_config: &SchedulerConfig) -> Option<RbufOpt> {
        None
    }

    /// The segment that blocked the receive window was sent again.
    fn note_rbuf_retransmission(&mut self) {}

    /// Whether the scheduler always finds a subflow for the next segment if a regular one is available, one segment at a time,
    /// so that it need not be asked where only one is.
    fn takes_any_room(&self) -> bool {
        false
    }

    /// This subflow was the only one available and gets the next segment. Only where it [takes any
    /// room](Self::takes_any_room).
    #[inline]
    fn note_only_choice(&mut self, _subflow: usize) {}

    /// Whether a segment that fast retransmit repairs is also sent on another subflow.
    fn copies_losses(&self) -> bool {
        false
    }
}

/// A decision: the subflow, as an index within the connection, and the segments that it gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Assignment {
    /// Index of the subflow.
    pub subflow: usize,
    pub segments: Segments,
}

/// The segments that a subflow gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Segments {
    /// This many that no subflow has yet.
    New(u32),
    /// One that another subflow already has, by its data sequence number.
    Copy(u32),
}

impl Assignment {
    /// One new segment.
    #[inline]
    pub(super) fn one(subflow: usize) -> Self {
        Self {
            subflow,
            segments: Segments::New(1),
        }
    }
}

/// The connection's send queue. Data sequence numbers count segments.
#[derive(Debug, Clone, Copy)]
pub struct SendQueue {
    pub now_ns: u64,
    /// Lowest number that is not acknowledged at connection level.
    pub una: u32,
    /// Next number that no subflow has.
    pub next: u32,
    /// First number that the application has not written, or that the send buffer has no room for.
    pub written: u32,
    /// First number beyond the receive window, or [`DSN_MAX`].
    pub window_end: u32,
    /// Payload of a full segment, bytes.
    pub mss: u16,
}

impl SendQueue {
    /// Whether there is a segment that no subflow has and the window admits.
    #[inline]
    pub fn has_sendable(&self) -> bool {
        self.next < self.written && self.next < self.window_end
    }

    /// Segments written and given to no subflow.
    pub fn backlog(&self) -> u32 {
        self.written - self.next
    }

    /// Segments that the window still admits.
    pub(super) fn room(&self) -> u32 {
        self.window_end.saturating_sub(self.next)
    }

    /// Segments not acknowledged at connection level.
    pub(super) fn outstanding(&self) -> u32 {
        self.next - self.una
    }

    /// The backlog that a send buffer of twice the windows holds: a bulk transfer has written endlessly much.
    pub(super) fn buffered<P: Path>(&self, subflows: &[P]) -> u32 {
        let usable = subflows.iter().filter(|s| s.is_usable());
        let buffer: u32 = usable.map(|s| 2 * s.cwnd().max(MIN_BUFFER_PKTS)).sum();
        let free = buffer.saturating_sub(self.outstanding()).max(1);
        self.backlog().min(free)
    }
}

/// A list of at most one entry per subflow, kept in place: decisions are made for every packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SubflowList<T> {
    pub(super) items: [T; MAX_SUBFLOWS],
    pub(super) len: usize,
}

impl<T: Copy + Default> SubflowList<T> {
    pub(super) fn new() -> Self {
        Self {
            items: [T::default(); MAX_SUBFLOWS],
            len: 0,
        }
    }

    pub(super) fn push(&mut self, item: T) {
        self.items[self.len] = item;
        self.len += 1;
    }
}

impl<T> std::ops::Deref for SubflowList<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.items[..self.len]
    }
}
