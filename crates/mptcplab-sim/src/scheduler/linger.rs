//! Upstream Linux' default: the subflow whose queued data would be gone first at its pacing rate
//! (algorithms.md 7.7). It assigns bursts ahead of the congestion window.

use super::{Pick, Schedule, only_backups};
use crate::sender::Sender;

/// Largest burst in bytes.
const BURST_BYTES: u32 = 65_428;

pub(crate) struct Linger;

impl Schedule for Linger {
    fn pick(
        &mut self,
        senders: &[Sender],
        backlog: u32,
        window_room: u32,
        mss: u16,
    ) -> Option<Pick> {
        let backups = only_backups(senders);
        let mut best: Option<(usize, u128, u128)> = None;
        for (i, s) in senders
            .iter()
            .enumerate()
            .filter(|(_, s)| s.backup == backups && s.is_usable())
        {
            let (queued, pace) = (u128::from(queued_bytes(s, mss)), u128::from(pacing(s)));
            // queued / pace < best queued / best pace, without rounding.
            if pace > 0 && best.is_none_or(|(_, q, p)| queued * p < q * pace) {
                best = Some((i, queued, pace));
            }
        }
        let (i, ..) = best?;
        if !has_send_memory(&senders[i]) {
            return None;
        }
        let burst = (BURST_BYTES / u32::from(mss))
            .max(1)
            .min(backlog)
            .min(window_room);
        (burst > 0).then_some((i, burst))
    }
}

/// Move the average pacing rate of the subflow that was picked.
pub(super) fn note_burst(sender: &mut Sender, segments: u32, mss: u16) {
    let queued = u128::from(queued_bytes(sender, mss));
    let burst = u128::from(segments) * u128::from(mss);
    let (average, now) = (
        u128::from(pacing(sender)),
        u128::from(sender.default_pacing_rate()),
    );
    sender.avg_pacing = ((average * queued + now * burst) / (queued + burst).max(1)) as u64;
}

/// Bytes in the subflow's send queue: in flight and assigned.
fn queued_bytes(s: &Sender, mss: u16) -> u64 {
    (u64::from(s.sock.tp.packets_out) + s.assigned.len() as u64) * u64::from(mss)
}

/// The smoothed rate, or the current one before the first burst.
fn pacing(s: &Sender) -> u64 {
    if s.avg_pacing > 0 {
        s.avg_pacing
    } else {
        s.default_pacing_rate()
    }
}

/// Linux sizes the send buffer to twice the congestion window.
fn has_send_memory(s: &Sender) -> bool {
    let queued = s.sock.tp.packets_out as usize + s.assigned.len();
    queued < 2 * s.sock.tp.snd_cwnd.max(10) as usize
}
