//! Round robin over subflows (algorithms.md 7.2).

use super::{Demand, MAX_SUBFLOWS, Pick, Schedule};
use crate::tcp::subflow::Subflow;
use mptcplab_model::sched::{Choice, roundrobin};

pub(crate) struct RoundRobin {
    /// Segments that each subflow sent in this round.
    quota: [u32; MAX_SUBFLOWS],
    num_segments: u32,
    cwnd_limited: bool,
}

impl RoundRobin {
    pub(super) fn new(choice: &Choice) -> Self {
        Self {
            quota: [0; MAX_SUBFLOWS],
            num_segments: choice.raw("num_segments"),
            cwnd_limited: choice.is_set("cwnd_limited"),
        }
    }
}

impl Schedule for RoundRobin {
    fn pick(&mut self, subflows: &[Subflow], _demand: &Demand) -> Option<Pick> {
        let (n, limited) = (self.num_segments, self.cwnd_limited);
        roundrobin(subflows, &mut self.quota, n, limited).map(Pick::next)
    }
}
