//! Packet schedulers (algorithms.md section 7): which subflow carries the next segment.

mod linger;
mod minrtt;
mod roundrobin;

use crate::sender::Sender;
use linger::Linger;
use minrtt::MinRtt;
use roundrobin::RoundRobin;

/// What a scheduler decides: subflow (index within the connection) and how many segments it gets.
pub(crate) type Pick = (usize, u32);

/// A packet scheduler. All state that a scheduler keeps per connection lives in it.
pub(crate) trait Schedule {
    /// The subflow for the next segment, or `None` to wait. `backlog` and `window_room` count segments.
    fn pick(
        &mut self,
        senders: &[Sender],
        backlog: u32,
        window_room: u32,
        mss: u16,
    ) -> Option<Pick>;
}

/// The scheduler of one connection.
pub(crate) enum Scheduler {
    MinRtt(MinRtt),
    RoundRobin(RoundRobin),
    Linger(Linger),
}

impl Scheduler {
    pub(crate) fn new(choice: mptcplab_scenario::Scheduler) -> Self {
        match choice {
            mptcplab_scenario::Scheduler::MinRtt => Self::MinRtt(MinRtt),
            mptcplab_scenario::Scheduler::RoundRobin => Self::RoundRobin(RoundRobin::default()),
            mptcplab_scenario::Scheduler::Linger => Self::Linger(Linger),
        }
    }

    /// Pick a subflow for the next segment(s).
    #[inline]
    pub(crate) fn pick(
        &mut self,
        senders: &mut [Sender],
        backlog: u32,
        window_room: u32,
        mss: u16,
    ) -> Option<Pick> {
        match self {
            Self::MinRtt(s) => s.pick(senders, backlog, window_room, mss),
            Self::RoundRobin(s) => s.pick(senders, backlog, window_room, mss),
            Self::Linger(s) => {
                let pick = s.pick(senders, backlog, window_room, mss)?;
                linger::note_burst(&mut senders[pick.0], pick.1, mss);
                Some(pick)
            }
        }
    }
}

/// The subflow for a segment that failed on subflow `origin`, whatever the scheduler: the fastest other one with room.
pub(crate) fn pick_for_reinjection(senders: &[Sender], origin: usize) -> Option<usize> {
    minrtt::lowest_rtt(senders, |i| i != origin)
}

/// May carry a new segment right now (algorithms.md section 7, "available").
#[inline]
pub(crate) fn is_available(s: &Sender) -> bool {
    s.is_usable()
        && s.state() != mptcplab_cc::CaState::Loss
        && s.has_room()
        && s.assigned.is_empty()
        && !s.paced_out
}

/// Whether backup subflows may be used: no regular one is usable.
#[inline]
pub(crate) fn only_backups(senders: &[Sender]) -> bool {
    !senders.iter().any(|s| !s.backup && s.is_usable()) && senders.iter().any(|s| s.backup)
}
