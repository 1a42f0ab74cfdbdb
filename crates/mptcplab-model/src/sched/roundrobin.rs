//! Round robin (algorithms.md 7.2, choice C19: the lowest index first).

use crate::sched::path::{Path, only_backups};

/// The subflow whose turn it is. `quota` counts what each sent in this round, `burst` is what each may send in a row.
/// With `cwnd_limited` full subflows are passed over; without, the one whose turn it is is waited for.
pub fn roundrobin<P: Path>(
    paths: &[P],
    quota: &mut [u32],
    burst: u32,
    cwnd_limited: bool,
) -> Option<usize> {
    let backups = only_backups(paths);
    let takes_part = |i: usize| {
        let p = &paths[i];
        let blocked = p.free() == 0 || p.waits_for_pacing();
        p.is_usable() && !p.in_loss() && p.is_backup() == backups && !(cwnd_limited && blocked)
    };
    let turn = (0..paths.len())
        .find(|&i| takes_part(i) && (1..burst).contains(&quota[i]))
        .or_else(|| (0..paths.len()).find(|&i| takes_part(i) && quota[i] == 0))
        .or_else(|| new_round(paths.len(), takes_part, quota))?;
    if paths[turn].free() == 0 || paths[turn].waits_for_pacing() {
        return None;
    }
    quota[turn] += 1;
    Some(turn)
}

/// Everyone who takes part had its turn: begin again. Returns the first.
fn new_round(n: usize, takes_part: impl Fn(usize) -> bool, quota: &mut [u32]) -> Option<usize> {
    for i in (0..n).filter(|&i| takes_part(i)) {
        quota[i] = 0;
    }
    (0..n).find(|&i| takes_part(i))
}
