//! Lowest smoothed RTT first (algorithms.md 7.1); backups only when no regular subflow is usable (7.4).

use super::{Pick, Schedule, is_available, only_backups};
use crate::sender::Sender;

pub(crate) struct MinRtt;

impl Schedule for MinRtt {
    #[inline]
    fn pick(
        &mut self,
        senders: &[Sender],
        _backlog: u32,
        _window_room: u32,
        _mss: u16,
    ) -> Option<Pick> {
        lowest_rtt(senders, |_| true).map(|i| (i, 1))
    }
}

/// The available subflow of the right class with the lowest srtt; ties go to the lowest index.
#[inline]
pub(crate) fn lowest_rtt(senders: &[Sender], admit: impl Fn(usize) -> bool) -> Option<usize> {
    let backups = only_backups(senders);
    let mut best = None;
    for (i, s) in senders.iter().enumerate() {
        if s.backup == backups && admit(i) && is_available(s) {
            let srtt = s.sock.tp.srtt_us;
            if best.is_none_or(|(_, lowest)| srtt < lowest) {
                best = Some((i, srtt));
            }
        }
    }
    best.map(|b| b.0)
}
