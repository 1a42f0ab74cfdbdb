//! One subflow after the other, as `mptcp_rr` of the multipath-tcp.org kernels; the lowest index begins a round.

use super::declare::{Declaration, SchedulerConfig, number, switch};
use super::path::{MAX_SUBFLOWS, Path, only_backups};
use super::schedule::{Assignment, Schedule, SendQueue};

/// State of the current round, and the parameters.
pub struct RoundRobin {
    /// Segments that each subflow sent in this round.
    quota: [u32; MAX_SUBFLOWS],
    num_segments: u32,
    cwnd_limited: bool,
}

impl Schedule for RoundRobin {
    fn declaration() -> Declaration {
        Declaration {
            name: "roundrobin",
            title: "the subflows in turn",
            sections: vec![
                (
                    "Idea",
                    "The subflows take turns, and each sends num_segments segments in a row. If cwnd_limited is set, \
                     a subflow whose window is full is skipped. Otherwise the scheduler waits for it, so all subflows \
                     carry the same amount of data, and the slowest one limits the rate of all.",
                ),
                (
                    "Deviations",
                    "A round begins with the subflow of the lowest index; in the kernel it begins with the last \
                     subflow of the list. Backup subflows take part only when no regular subflow is usable.",
                ),
                (
                    "Reference",
                    "mptcp_rr of the multipath-tcp.org kernels, sysctls num_segments and cwnd_limited.",
                ),
            ],
            params: vec![
                number(
                    "num_segments",
                    (1, 1, 255),
                    1,
                    "Number of segments that a subflow sends in a row.",
                ),
                switch(
                    "cwnd_limited",
                    true,
                    "Skip a subflow whose window is full instead of waiting for it.",
                ),
            ],
            ordered: None,
        }
    }

    fn new(config: &SchedulerConfig) -> Self {
        Self {
            quota: [0; MAX_SUBFLOWS],
            num_segments: config.raw("num_segments"),
            cwnd_limited: config.is_set("cwnd_limited"),
        }
    }

    fn pick<P: Path>(&mut self, subflows: &[P], _queue: &SendQueue) -> Option<Assignment> {
        let (n, limited) = (self.num_segments, self.cwnd_limited);
        roundrobin(subflows, &mut self.quota, n, limited).map(Assignment::one)
    }

    fn takes_any_room(&self) -> bool {
        self.cwnd_limited
    }

    #[inline]
    fn note_only_choice(&mut self, subflow: usize) {
        let sent = &mut self.quota[subflow];
        // After a whole turn a new round begins, in which only this subflow takes part.
        *sent = *sent % self.num_segments + 1;
    }
}

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
