//! Packet schedulers (algorithms.md section 7): which subflow carries the next segment. The decisions are functions of
//! `mptcplab_model::sched`; here they meet this engine's subflows, and have what state they keep.

mod blest;
mod delayvar;
mod ecf;
mod linger;
mod minrtt;
mod path;
mod redundant;
mod repair;
mod roundrobin;

use crate::tcp::subflow::Subflow;
use mptcplab_model::sched::{Choice, Kind, MAX_SUBFLOWS, Path};

use blest::Blest;
use delayvar::DelayVar;
use ecf::Ecf;
use linger::Linger;
use minrtt::MinRtt;
use redundant::Redundant;
use roundrobin::RoundRobin;

pub(crate) use mptcplab_model::sched::only_backups;
pub(crate) use repair::Repair;

/// What a scheduler decides: the subflow (index within the connection), and what it gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Pick {
    pub(crate) subflow: usize,
    pub(crate) what: What,
}

/// What a subflow gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum What {
    /// So many segments that no subflow has yet.
    Next(u32),
    /// A segment that another subflow already has, by its data sequence number.
    Copy(u32),
}

impl Pick {
    fn next(subflow: usize) -> Self {
        Self {
            subflow,
            what: What::Next(1),
        }
    }
}

/// What there is to send. Data sequence numbers count segments.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Demand {
    pub(crate) now: u64,
    /// Lowest one not acknowledged at connection level.
    pub(crate) una: u32,
    /// The next one that no subflow has.
    pub(crate) next: u32,
    /// The first one that the application has not written, or that the send buffer has no room for.
    pub(crate) written: u32,
    /// The first one beyond the receive window.
    pub(crate) window_end: u32,
    pub(crate) mss: u16,
}

impl Demand {
    /// Whether there is a segment that no subflow has and the window admits.
    #[inline]
    pub(crate) fn is_any(&self) -> bool {
        self.next < self.written && self.next < self.window_end
    }

    /// Segments written and given to no subflow.
    fn backlog(&self) -> u32 {
        self.written - self.next
    }

    /// Segments that the window still admits.
    fn room(&self) -> u32 {
        self.window_end.saturating_sub(self.next)
    }

    /// Segments not acknowledged at connection level.
    fn outstanding(&self) -> u32 {
        self.next - self.una
    }

    /// The backlog that a send buffer of twice the windows holds: a bulk transfer has written endlessly much.
    fn buffered(&self, subflows: &[Subflow]) -> u32 {
        let usable = subflows.iter().filter(|s| s.is_usable());
        let buffer: u32 = usable.map(|s| 2 * s.cwnd().max(MIN_BUFFER_PKTS)).sum();
        let held = buffer.saturating_sub(self.outstanding()).max(1);
        self.backlog().min(held)
    }
}

/// A subflow's send buffer is sized for a window of at least this (Linux `TCP_INIT_CWND`).
const MIN_BUFFER_PKTS: u32 = 10;

/// A packet scheduler. All state that a scheduler keeps per connection lives in it.
pub(crate) trait Schedule {
    /// The subflow for the next segment, or `None` to wait.
    fn pick(&mut self, subflows: &[Subflow], demand: &Demand) -> Option<Pick>;
}

enum Policy {
    MinRtt(MinRtt),
    RoundRobin(RoundRobin),
    Redundant(Redundant),
    Blest(Blest),
    Ecf(Ecf),
    Linger(Linger),
    DelayVar(DelayVar),
}

/// The scheduler of one connection.
pub(crate) struct Scheduler {
    policy: Policy,
    /// What to do when the receive window blocks.
    pub(crate) repair: Option<Repair>,
    /// Subflows also send what others have already sent.
    pub(crate) copies: bool,
    /// A segment that fast retransmit repairs is also sent on another subflow.
    pub(crate) copies_losses: bool,
}

impl Scheduler {
    pub(crate) fn new(choice: &Choice) -> Self {
        let policy = match choice.kind() {
            Kind::MinRtt | Kind::Backup => Policy::MinRtt(MinRtt),
            Kind::RoundRobin => Policy::RoundRobin(RoundRobin::new(choice)),
            Kind::Redundant => Policy::Redundant(Redundant::default()),
            Kind::Blest => Policy::Blest(Blest::new(choice)),
            Kind::Ecf => Policy::Ecf(Ecf::new(choice)),
            Kind::Linger => Policy::Linger(Linger::default()),
            Kind::DelayVar => Policy::DelayVar(DelayVar::new(choice)),
        };
        Self {
            policy,
            repair: Repair::new(choice),
            copies: choice.kind() == Kind::Redundant,
            copies_losses: choice.kind() == Kind::DelayVar && choice.is_set("copy_losses"),
        }
    }

    /// Upstream Linux' scheduler, whose connection has a retransmission timer.
    pub(crate) fn is_upstream(&self) -> bool {
        matches!(self.policy, Policy::Linger(_))
    }

    /// The first segment that has no room in the connection's send buffer, or that is not written; unbounded unless the
    /// scheduler assigns ahead of the window.
    #[inline]
    pub(crate) fn buffer_end(&mut self, subflows: &[Subflow], demand: &Demand) -> u32 {
        match &mut self.policy {
            Policy::Linger(s) => {
                let writable = s.writable(subflows, demand.outstanding(), demand.mss);
                demand.written.min(demand.next.saturating_add(writable))
            }
            _ => demand.written,
        }
    }

    /// Pick a subflow for the next segment(s).
    #[inline]
    pub(crate) fn pick(&mut self, subflows: &[Subflow], demand: &Demand) -> Option<Pick> {
        match &mut self.policy {
            Policy::MinRtt(s) => s.pick(subflows, demand),
            other => other.pick(subflows, demand),
        }
    }

    /// The subflow for a segment that failed on subflow `origin`: the fastest other one with room, but for the scheduler
    /// that has an order of its own. A backup takes it where `origin` is the only regular one.
    pub(crate) fn pick_for_reinjection(
        &self,
        subflows: &[Subflow],
        origin: usize,
    ) -> Option<usize> {
        let takes = |i: usize, s: &Subflow| i != origin && !s.is_backup() && s.is_usable();
        let backups = !subflows.iter().enumerate().any(|(i, s)| takes(i, s));
        let admit = |i: usize| i != origin && subflows[i].is_backup() == backups;
        match &self.policy {
            Policy::DelayVar(s) => s.first_available(subflows, admit),
            _ => mptcplab_model::sched::lowest_rtt(subflows, admit),
        }
    }

    /// The blocking segment was sent again: BLEST expects more of the fast subflow.
    pub(crate) fn note_resent(&mut self) {
        if let Policy::Blest(s) = &mut self.policy {
            s.resent = true;
        }
    }
}

impl Policy {
    #[inline(never)]
    fn pick(&mut self, subflows: &[Subflow], demand: &Demand) -> Option<Pick> {
        match self {
            Self::MinRtt(s) => s.pick(subflows, demand),
            Self::RoundRobin(s) => s.pick(subflows, demand),
            Self::Redundant(s) => s.pick(subflows, demand),
            Self::Blest(s) => s.pick(subflows, demand),
            Self::Ecf(s) => s.pick(subflows, demand),
            Self::Linger(s) => s.pick(subflows, demand),
            Self::DelayVar(s) => s.pick(subflows, demand),
        }
    }
}
