//! ECF (algorithms.md 7.6).

use super::{Demand, Pick, Schedule};
use crate::tcp::sender::Sender;
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
    fn pick(&mut self, senders: &[Sender], demand: &Demand) -> Option<Pick> {
        let backlog = demand.buffered(senders);
        ecf(senders, backlog, &mut self.waiting, self.beta_milli).map(Pick::next)
    }
}
