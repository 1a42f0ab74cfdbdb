//! Lowest smoothed RTT first (algorithms.md 7.1); backups only when no regular subflow is usable (7.4).

use crate::sched::path::{Path, only_backups};

/// The available subflow with the lowest smoothed RTT; ties go to the lowest index.
#[inline]
pub fn minrtt<P: Path>(paths: &[P]) -> Option<usize> {
    let backups = only_backups(paths);
    lowest_rtt(paths, |i| paths[i].is_backup() == backups)
}

/// For a segment that some subflows have already carried: one that has not, a backup if all regular ones have. When
/// every usable subflow has carried it, that is forgotten. A subflow that is only busy is waited for.
pub fn minrtt_again<P: Path>(paths: &[P], sent_on: impl Fn(usize) -> bool) -> Option<usize> {
    let usable = |backup: bool, fresh: bool| {
        let admit = |i: usize| {
            paths[i].is_usable() && paths[i].is_backup() == backup && !(fresh && sent_on(i))
        };
        (0..paths.len()).any(admit).then_some((backup, fresh))
    };
    let (backup, fresh) = usable(false, true)
        .or_else(|| usable(true, true))
        .or_else(|| usable(false, false))
        .or_else(|| usable(true, false))?;
    lowest_rtt(paths, |i| {
        paths[i].is_backup() == backup && !(fresh && sent_on(i))
    })
}

/// The available subflow with the lowest smoothed RTT among those that `admit` lets through.
#[inline]
pub fn lowest_rtt<P: Path>(paths: &[P], admit: impl Fn(usize) -> bool) -> Option<usize> {
    let mut best = None;
    for (i, path) in paths.iter().enumerate() {
        if admit(i) && path.is_available() {
            let srtt = path.srtt_us8();
            if best.is_none_or(|(_, lowest)| srtt < lowest) {
                best = Some((i, srtt));
            }
        }
    }
    best.map(|b| b.0)
}
