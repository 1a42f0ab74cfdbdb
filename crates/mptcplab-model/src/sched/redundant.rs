//! The same data on every regular subflow, each at its own pace, as `mptcp_redundant` of the multipath-tcp.org kernels.

use super::declare::{Declaration, SchedulerConfig};
use super::path::{MAX_SUBFLOWS, Path, only_backups};
use super::schedule::{Assignment, Schedule, Segments, SendQueue, SubflowList};

/// How far each subflow has come.
#[derive(Default)]
pub struct Redundant {
    /// First segment that each subflow has not sent.
    next: [u32; MAX_SUBFLOWS],
    /// The current pass over the subflows, in which each sends one segment.
    pass: Option<SubflowList<(usize, u32)>>,
    taken: usize,
}

impl Schedule for Redundant {
    const SENDS_COPIES: bool = true;

    fn declaration() -> Declaration {
        Declaration {
            name: "redundant",
            title: "the same data on every subflow: lower delay at the cost of capacity",
            sections: vec![
                (
                    "Idea",
                    "Every regular subflow sends, at its own rate, the first segment that it has not sent yet and \
                     that is not acknowledged at connection level. The first copy that arrives is used, so a loss or \
                     a slow path causes no delay as long as another subflow delivers the segment.",
                ),
                (
                    "Deviations",
                    "Backup subflows send no copies: if no regular subflow is usable, one backup subflow sends alone. \
                     As TCP requires, a subflow retransmits what it lost even if another subflow has delivered the \
                     data in the meantime.",
                ),
                (
                    "Reference",
                    "mptcp_redundant of the multipath-tcp.org kernels (0.94 and later); Frömmgen et al., ICC 2016.",
                ),
            ],
            params: Vec::new(),
            ordered: None,
        }
    }

    fn new(_config: &SchedulerConfig) -> Self {
        Self::default()
    }

    fn pick<P: Path>(&mut self, subflows: &[P], queue: &SendQueue) -> Option<Assignment> {
        let tail = queue.written.min(queue.window_end);
        let is_over = self.pass.is_none_or(|pass| self.taken >= pass.len());
        if is_over {
            let head = queue.una;
            self.pass = Some(redundant(subflows, &mut self.next, head, tail));
            self.taken = 0;
        }
        let &(subflow, dsn) = self.pass.as_ref()?.get(self.taken)?;
        self.taken += 1;
        let segments = if dsn < queue.next {
            Segments::Copy(dsn)
        } else {
            Segments::New(1)
        };
        Some(Assignment { subflow, segments })
    }
}

/// One pass: every available subflow sends the oldest segment of `head..tail` that it has not sent yet, in order of RTT.
/// `next` has the first segment that each has not sent; it is moved. Returns (subflow, segment).
///
/// Backups do not replicate: where only they are usable, the first of them sends.
pub fn redundant<P: Path>(
    paths: &[P],
    next: &mut [u32],
    head: u32,
    tail: u32,
) -> SubflowList<(usize, u32)> {
    let mut sends = SubflowList::new();
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
fn by_rtt<P: Path>(paths: &[P]) -> SubflowList<usize> {
    let backups = only_backups(paths);
    let usable = (0..paths.len()).filter(|&i| paths[i].is_usable());
    let in_class = usable.filter(|&i| paths[i].is_backup() == backups);
    let mut order = SubflowList::new();
    for i in in_class.take(if backups { 1 } else { MAX_SUBFLOWS }) {
        order.push(i);
    }
    let n = order.len;
    order.items[..n].sort_unstable_by_key(|&i| (paths[i].srtt_us8(), i));
    order
}
