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
                    "A segment goes to the subflow with the lowest smoothed RTT whose window has room. When the shared \
                     receive window blocks, the segment that everything waits for is sent again on a faster subflow, and \
                     the slower ones that hold it are slowed down.",
                ),
                (
                    "Rules",
                    "Penalty: cwnd = max(cwnd/2, 1), and outside slow start ssthresh = max(ssthresh/2, 2), once per srtt of the \
                     fast subflow f, for holders h with srtt_h > srtt_f in state Open. Retransmission on f unless f holds \
                     the segment or 4 srtt_f >= srtt_h; a holder with cwnd <= 4 always counts as slow.",
                ),
                (
                    "Deviations",
                    "No send buffer is modelled, so only the receive window makes it act. minrtt(opportunistic=false, \
                     penalise=false) is the plain rule.",
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
