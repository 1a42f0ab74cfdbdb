//! The delay-variation scheduler of Kushwah and Kumar (SCPE 2024), in the reading that its declaration gives.

use super::declare::{Declaration, SchedulerConfig, number, switch};
use super::path::{Path, only_backups};
use super::schedule::{Assignment, Schedule, SendQueue, SubflowList};
use std::cmp::Reverse;

pub struct DelayVar {
    threshold_milli: u32,
    copy_losses: bool,
}

impl Schedule for DelayVar {
    fn declaration() -> Declaration {
        Declaration {
            name: "delayvar",
            title: "subflows with a steady delay first",
            sections: vec![
                (
                    "Idea",
                    "A subflow is stable while its RTT exceeds its minimum by no more than a threshold. Stable \
                     subflows come before unstable ones, and among each kind the subflow with the largest cwnd/RTT \
                     comes first. An unstable subflow is not used if a stable one would deliver the backlog earlier. \
                     A lost segment is also sent on the first available subflow.",
                ),
                (
                    "Rules",
                    "mu = (rtt - rtt_min)/rtt_min; a subflow is stable if mu <= threshold. If the first available \
                     subflow u is unstable, wait if rtt_s ceil(backlog/cwnd_s) + rtt_s/2 < rtt_u/2 for any stable \
                     subflow s.",
                ),
                (
                    "Deviations",
                    "The paper does not define mu, the threshold or its adaptive fast retransmit; the rules above \
                     fill these gaps. The paper's rule for the window is the congestion control algorithm `delayvar`; \
                     to run what the paper describes, use both: cc = \"delayvar\", scheduler = \"delayvar\". The \
                     backlog is limited as for ECF.",
                ),
                (
                    "Reference",
                    "Kushwah and Kumar, A new path scheduling approach for MPTCP, SCPE 2024.",
                ),
            ],
            params: vec![
                number(
                    "threshold",
                    (500, 0, 100_000),
                    1000,
                    "Largest value of (rtt - rtt_min)/rtt_min at which a subflow is stable.",
                ),
                switch(
                    "copy_losses",
                    true,
                    "When fast retransmit sends a segment again, also send it on the first available subflow.",
                ),
            ],
            ordered: None,
        }
    }

    fn new(config: &SchedulerConfig) -> Self {
        Self {
            threshold_milli: config.raw("threshold"),
            copy_losses: config.is_set("copy_losses"),
        }
    }

    fn pick<P: Path>(&mut self, subflows: &[P], queue: &SendQueue) -> Option<Assignment> {
        let backlog = queue.buffered(subflows);
        delayvar(subflows, self.threshold_milli, backlog).map(Assignment::one)
    }

    /// The first subflow of the order that has room.
    fn pick_for_reinjection<P: Path>(
        &self,
        subflows: &[P],
        admit: impl Fn(usize) -> bool,
    ) -> Option<usize> {
        let order = delayvar_order(subflows, self.threshold_milli);
        let mut candidates = order.iter().copied();
        candidates.find(|&i| admit(i) && subflows[i].is_available())
    }

    fn copies_losses(&self) -> bool {
        self.copy_losses
    }
}

/// Whether the RTT is close to its minimum: mu = (rtt - rtt_min)/rtt_min is at most the threshold.
///
/// In doubles of seconds, as the model behind the test vectors: an RTT of exactly 1 + threshold times the minimum is stable or not
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
pub fn delayvar_order<P: Path>(paths: &[P], threshold_milli: u32) -> SubflowList<usize> {
    let mut order = SubflowList::new();
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
    let backups = only_backups(paths);
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
