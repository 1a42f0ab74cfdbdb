//! The delay-variation scheduler of Kushwah and Kumar 2024 (algorithms.md 7.8, choice C22: our complete reading).

use crate::sched::Few;
use crate::sched::path::Path;
use std::cmp::Reverse;

/// Whether the RTT is close to its minimum: mu = (rtt - rtt_min)/rtt_min is at most the threshold.
///
/// In doubles of seconds, as the specification's model: an RTT of exactly 1 + threshold times the minimum is stable or not
/// as the quotient rounds, and its vectors have such RTTs. (Whole microseconds over 10^6 is the double that the decimal
/// number is read as.)
pub fn is_stable<P: Path>(path: &P, threshold_milli: u32) -> bool {
    let seconds = |us8: u32| f64::from(us8) / 8e6;
    let (rtt, min) = (seconds(path.rtt_us8()), seconds(path.min_rtt_us8()));
    // Without a sample there is no variation.
    min == 0.0 || (rtt - min) / min <= f64::from(threshold_milli) / 1e3
}

/// Usable subflows, stable ones first, within a class by capacity cwnd/RTT, largest first; RTT is the minimum of a stable
/// and the latest of an unstable one.
pub fn delayvar_order<P: Path>(paths: &[P], threshold_milli: u32) -> Few<usize> {
    let mut order = Few::new();
    for i in (0..paths.len()).filter(|&i| paths[i].is_usable()) {
        order.push(i);
    }
    let n = order.len;
    order.items[..n].sort_by(|&a, &b| {
        let (stable_a, stable_b) = (
            is_stable(&paths[a], threshold_milli),
            is_stable(&paths[b], threshold_milli),
        );
        Reverse(stable_a).cmp(&Reverse(stable_b)).then_with(|| {
            let (rtt_a, rtt_b) = (
                typical_rtt(&paths[a], stable_a),
                typical_rtt(&paths[b], stable_b),
            );
            // cwnd_b / rtt_b against cwnd_a / rtt_a: the larger one comes first.
            (u64::from(paths[b].cwnd()) * rtt_a).cmp(&(u64::from(paths[a].cwnd()) * rtt_b))
        })
    });
    order
}

fn typical_rtt<P: Path>(path: &P, stable: bool) -> u64 {
    u64::from(if stable {
        path.min_rtt_us8()
    } else {
        path.rtt_us8()
    })
}

/// The first available subflow of the order, or `None` to wait: where that one is unstable and a stable one would get
/// `backlog` segments through earlier. Backups take part only if no regular subflow is usable.
pub fn delayvar<P: Path>(paths: &[P], threshold_milli: u32, backlog: u32) -> Option<usize> {
    let backups = crate::sched::only_backups(paths);
    let order = delayvar_order(paths, threshold_milli);
    let in_class = || {
        order
            .iter()
            .copied()
            .filter(|&i| paths[i].is_backup() == backups)
    };
    let pick = in_class().find(|&i| paths[i].is_available())?;
    if is_stable(&paths[pick], threshold_milli) {
        return Some(pick);
    }
    let unstable_rtt = u128::from(paths[pick].rtt_us8());
    // rtt ceil(backlog / cwnd) + rtt/2 < rtt_u/2, times two.
    let sooner = |p: &P| {
        let rounds = u128::from(backlog.div_ceil(p.cwnd().max(1)));
        u128::from(p.rtt_us8()) * (2 * rounds + 1) < unstable_rtt
    };
    let mut stable = in_class().filter(|&i| is_stable(&paths[i], threshold_milli));
    if stable.any(|i| sooner(&paths[i])) {
        None
    } else {
        Some(pick)
    }
}
