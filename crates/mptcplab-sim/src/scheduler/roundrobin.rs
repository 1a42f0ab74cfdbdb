//! Round robin over subflows with room, one segment each (algorithms.md 7.2, quota 1, cwnd-limited).

use super::{Pick, Schedule, is_available, only_backups};
use crate::sender::Sender;

#[derive(Default)]
pub(crate) struct RoundRobin {
    /// Bit i: subflow i had its turn in this round.
    served: u64,
}

impl Schedule for RoundRobin {
    fn pick(
        &mut self,
        senders: &[Sender],
        _backlog: u32,
        _window_room: u32,
        _mss: u16,
    ) -> Option<Pick> {
        let backups = only_backups(senders);
        let available = |i: &usize| senders[*i].backup == backups && is_available(&senders[*i]);
        let candidates = (0..senders.len()).filter(available);
        let mut first = None;
        for i in candidates {
            if self.served & (1 << i) == 0 {
                self.served |= 1 << i;
                return Some((i, 1));
            }
            first.get_or_insert(i);
        }
        // Everyone with room had its turn: a new round begins.
        let i = first?;
        self.served = 1 << i;
        Some((i, 1))
    }
}
