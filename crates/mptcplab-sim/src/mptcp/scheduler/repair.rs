//! What the out-of-tree kernel's schedulers do when the receive window blocks (algorithms.md 7.1): its memory. The rules
//! are functions of `mptcplab_model::sched`, the sending is the connection's.

use super::MAX_SUBFLOWS;
use crate::tcp::subflow::Subflow;
use mptcplab_model::sched::{Choice, Kind, Path, may_resend, must_slow_down};

/// No segment has this number.
const NONE: u32 = u32::MAX;

pub(crate) struct Repair {
    pub(crate) opportunistic: bool,
    penalise: bool,
    /// Only the first holder is penalised, as in older kernels.
    first_only: bool,
    /// When a subflow last had others penalised for its sake.
    penalised_ns: [Option<u64>; MAX_SUBFLOWS],
    /// The segment that everything waits for, and which subflows carry it: bit i for subflow i.
    head: u32,
    holders: u8,
}

impl Repair {
    /// Nothing for schedulers that do not do it, or are told not to.
    pub(super) fn new(choice: &Choice) -> Option<Self> {
        if !matches!(choice.kind(), Kind::MinRtt | Kind::Blest | Kind::Ecf) {
            return None;
        }
        let repair = Self {
            opportunistic: choice.is_set("opportunistic"),
            penalise: choice.is_set("penalise"),
            first_only: choice.is_set("holders"),
            penalised_ns: [None; MAX_SUBFLOWS],
            head: NONE,
            holders: 0,
        };
        (repair.opportunistic || repair.penalise).then_some(repair)
    }

    /// Take note of the segment that everything waits for.
    pub(crate) fn look_at(&mut self, subflows: &[Subflow], head: u32) {
        if self.head == head {
            return;
        }
        self.head = head;
        self.holders = 0;
        for (i, subflow) in subflows.iter().enumerate() {
            self.holders |= u8::from(subflow.sender.carries(head)) << i;
        }
    }

    /// The blocking segment was given to one more subflow.
    pub(crate) fn note_sent(&mut self, dsn: u32, subflow: usize) {
        if self.head == dsn {
            self.holders |= 1 << subflow;
        }
    }

    /// Whether `fast` shall send the blocking segment.
    pub(crate) fn resends(&self, subflows: &[Subflow], fast: usize) -> bool {
        self.opportunistic && may_resend(subflows, fast, self.holding())
    }

    /// Whom to penalise for the sake of `fast`, bit i for subflow i; at most once per its RTT.
    pub(crate) fn penalised(&mut self, subflows: &[Subflow], fast: usize, now: u64) -> u8 {
        let rtt_ns = u64::from(subflows[fast].srtt_us8() >> 3) * 1000;
        let due = self.penalised_ns[fast].is_none_or(|last| now - last >= rtt_ns);
        if !self.penalise || !due {
            return 0;
        }
        let most = if self.first_only { 1 } else { MAX_SUBFLOWS };
        let slow = self.holding().take(most);
        let mask = slow
            .filter(|&h| must_slow_down(subflows, fast, h))
            .fold(0, |mask, h| mask | 1 << h);
        if mask != 0 {
            self.penalised_ns[fast] = Some(now);
        }
        mask
    }

    fn holding(&self) -> impl Iterator<Item = usize> + Clone + use<> {
        let holders = self.holders;
        (0..MAX_SUBFLOWS).filter(move |i| holders & (1 << i) != 0)
    }
}
