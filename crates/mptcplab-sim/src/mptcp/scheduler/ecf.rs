//! ECF (algorithms.md 7.6).

use super::{Demand, Pick, Schedule};
use crate::tcp::subflow::Subflow;
use mptcplab_model::sched::{Choice, ecf};

pub(crate) struct Ecf {
    waiting: bool,
    beta_milli: u32,
}

impl Ecf {
    pub(super) fn new(choice: &Choice) -> Self {
        Self {
            waiting: false,
            beta_milli: choice.raw("beta"),
        }
    }
}

impl Schedule for Ecf {
    fn pick(&mut self, subflows: &[Subflow], demand: &Demand) -> Option<Pick> {
        let backlog = demand.buffered(subflows);
        ecf(subflows, backlog, &mut self.waiting, self.beta_milli).map(Pick::next)
    }
}
