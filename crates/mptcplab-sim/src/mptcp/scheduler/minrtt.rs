//! Lowest smoothed RTT first (algorithms.md 7.1); backups only when no regular subflow is usable (7.4).

use super::{Demand, Pick, Schedule};
use crate::tcp::subflow::Subflow;

pub(crate) struct MinRtt;

impl Schedule for MinRtt {
    #[inline]
    fn pick(&mut self, subflows: &[Subflow], _demand: &Demand) -> Option<Pick> {
        mptcplab_model::sched::minrtt(subflows).map(Pick::next)
    }
}
