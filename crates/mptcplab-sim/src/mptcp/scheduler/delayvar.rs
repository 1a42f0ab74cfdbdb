//! The delay-variation scheduler (algorithms.md 7.8).

use super::{Demand, Pick, Schedule};
use crate::tcp::subflow::Subflow;
use mptcplab_model::sched::{Choice, Path, delayvar, delayvar_order};

pub(crate) struct DelayVar {
    threshold_milli: u32,
}

impl DelayVar {
    pub(super) fn new(choice: &Choice) -> Self {
        Self {
            threshold_milli: choice.raw("threshold"),
        }
    }

    /// The first subflow of the order that has room and that `admit` lets through.
    pub(super) fn first_available(
        &self,
        subflows: &[Subflow],
        admit: impl Fn(usize) -> bool,
    ) -> Option<usize> {
        let order = delayvar_order(subflows, self.threshold_milli);
        let mut candidates = order.iter().copied();
        candidates.find(|&i| admit(i) && subflows[i].is_available())
    }
}

impl Schedule for DelayVar {
    fn pick(&mut self, subflows: &[Subflow], demand: &Demand) -> Option<Pick> {
        let backlog = demand.buffered(subflows);
        delayvar(subflows, self.threshold_milli, backlog).map(Pick::next)
    }
}
