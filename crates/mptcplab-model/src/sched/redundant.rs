//! The same data on every regular subflow, each at its own pace (algorithms.md 7.3).

use crate::sched::Few;
use crate::sched::path::{Path, only_backups};

/// One pass: every available subflow sends the oldest segment of `head..tail` that it has not sent yet, in order of RTT.
/// `next` has the first segment that each has not sent; it is moved. Returns (subflow, segment).
///
/// Backups do not replicate: where only they are usable, the first of them sends.
pub fn redundant<P: Path>(
    paths: &[P],
    next: &mut [u32],
    head: u32,
    tail: u32,
) -> Few<(usize, u32)> {
    let mut sends = Few::new();
    for &i in by_rtt(paths).iter() {
        let segment = next[i].max(head);
        if paths[i].is_available() && segment < tail {
            next[i] = segment + 1;
            sends.push((i, segment));
        }
    }
    sends
}

/// The subflows that take part, lowest RTT first.
fn by_rtt<P: Path>(paths: &[P]) -> Few<usize> {
    let backups = only_backups(paths);
    let usable = (0..paths.len()).filter(|&i| paths[i].is_usable());
    let in_class = usable.filter(|&i| paths[i].is_backup() == backups);
    let mut order = Few::new();
    for i in in_class.take(if backups {
        1
    } else {
        crate::sched::MAX_SUBFLOWS
    }) {
        order.push(i);
    }
    let n = order.len;
    order.items[..n].sort_unstable_by_key(|&i| (paths[i].srtt_us8(), i));
    order
}
