//! The same data on every regular subflow, each at its own pace (algorithms.md 7.3).

use super::{Demand, MAX_SUBFLOWS, Pick, Schedule, What};
use crate::tcp::subflow::Subflow;
use mptcplab_model::sched::{Few, redundant};

#[derive(Default)]
pub(crate) struct Redundant {
    /// First segment that each subflow has not sent.
    next: [u32; MAX_SUBFLOWS],
    /// What is left of a pass over the subflows: each sends one segment, which takes no room from another.
    pass: Option<Few<(usize, u32)>>,
    taken: usize,
}

impl Schedule for Redundant {
    fn pick(&mut self, subflows: &[Subflow], demand: &Demand) -> Option<Pick> {
        let tail = demand.written.min(demand.window_end);
        let over = self.pass.is_none_or(|pass| self.taken >= pass.len());
        if over {
            let head = demand.una;
            self.pass = Some(redundant(subflows, &mut self.next, head, tail));
            self.taken = 0;
        }
        let &(subflow, dsn) = self.pass.as_ref()?.get(self.taken)?;
        self.taken += 1;
        let what = if dsn < demand.next {
            What::Copy(dsn)
        } else {
            What::Next(1)
        };
        Some(Pick { subflow, what })
    }
}
