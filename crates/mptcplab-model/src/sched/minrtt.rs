//! The subflow with the lowest smoothed RTT first; backups only when no regular subflow is usable (RFC 8684 section 3.3.8).

use super::declare::{Declaration, SchedulerConfig};
use super::path::{Path, lowest_rtt, only_backups};
use super::rbuf_opt::{self, RbufOpt};
use super::schedule::{Assignment, Schedule, SendQueue};

/// The scheduler has no state.
pub struct MinRtt;

impl Schedule for MinRtt {
    fn declaration() -> Declaration {
        Declaration {
            name: "minrtt",
            title: "lowest smoothed RTT first, with opportunistic retransmission and penalisation",
            sections: vec![
                (
                    "Idea",
                    "Of the subflows whose window has room, the one with the lowest smoothed RTT gets the next \
                     segment. When the shared receive window is full, the first unacknowledged segment is sent again \
                     on a faster subflow, and the slower subflows that carry it have their windows halved.",
                ),
                (
                    "Rules",
                    "Let f be the fast subflow and h a subflow that carries the segment. Penalty for h, if srtt_h > \
                     srtt_f and h is in state Open, at most once per srtt_f: cwnd = max(cwnd/2, 1) and, outside slow \
                     start, ssthresh = max(ssthresh/2, 2). Retransmission on f, unless f carries the segment itself \
                     or 4 srtt_f >= srtt_h; a subflow h with cwnd <= 4 always counts as slow.",
                ),
                (
                    "Deviations",
                    "No send buffer is modelled, so only a full receive window triggers retransmission and penalties. \
                     minrtt(opportunistic=false, penalise=false) is the rule without them.",
                ),
                (
                    "Reference",
                    "The default of the multipath-tcp.org kernels; Raiciu et al., How Hard Can It Be?, NSDI 2012, section 4.2.",
                ),
            ],
            params: rbuf_opt::params(true),
            ordered: None,
        }
    }

    fn new(_config: &SchedulerConfig) -> Self {
        Self
    }

    #[inline]
    fn pick<P: Path>(&mut self, subflows: &[P], _queue: &SendQueue) -> Option<Assignment> {
        minrtt(subflows).map(Assignment::one)
    }

    fn takes_any_room(&self) -> bool {
        true
    }

    fn rbuf_opt(config: &SchedulerConfig) -> Option<RbufOpt> {
        RbufOpt::new(config)
    }
}

/// The available subflow with the lowest smoothed RTT; ties go to the lowest index.
#[inline]
pub fn minrtt<P: Path>(paths: &[P]) -> Option<usize> {
    let backups = only_backups(paths);
    lowest_rtt(paths, |i| paths[i].is_backup() == backups)
}
