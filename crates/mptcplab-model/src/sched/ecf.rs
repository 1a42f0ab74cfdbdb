//! ECF: leave a slow subflow alone if waiting for the fast one completes earlier (Lim et al., CoNEXT 2017, in the form of
//! `mptcp_ecf` of the multipath-tcp.org kernels).

use super::declare::{Declaration, SchedulerConfig, number};
use super::minrtt::minrtt;
use super::path::{Path, fastest};
use super::rbuf_opt::{self, RbufOpt};
use super::schedule::{Assignment, Schedule, SendQueue};

/// Whether the scheduler is waiting for the fast subflow.
pub struct Ecf {
    waiting: bool,
    beta_milli: u32,
}

impl Schedule for Ecf {
    fn declaration() -> Declaration {
        let mut params = rbuf_opt::params(true);
        params.push(number(
            "beta",
            (250, 0, 10_000),
            1000,
            "Hysteresis: once ECF has waited, it accepts that the fast subflow is later by this fraction.",
        ));
        Declaration {
            name: "ecf",
            title: "does not use a slow subflow if the fast one would finish earlier",
            sections: vec![
                (
                    "Idea",
                    "If the fastest subflow f, after a wait, would complete the backlog of k segments before the \
                     slower subflow s, ECF waits for f.",
                ),
                (
                    "Rules",
                    "n = 1 + max(k/cwnd_f, 1), delta = max(rttvar_f, rttvar_s). waiting is 0 at first. If n srtt_f < \
                     (1 + waiting beta)(srtt_s + delta), then wait and set waiting = 1 if max(k/cwnd_s, 1) srtt_s >= \
                     2 srtt_f + delta, and use s if not. Otherwise set waiting = 0 and use s.",
                ),
                (
                    "Deviations",
                    "rttvar is the measured mean deviation; the kernel's rttvar is at least 200 ms. A backup subflow \
                     that is not in use never counts as the fastest subflow. The backlog is limited to what a send \
                     buffer of twice the windows would hold, because a bulk transfer has an endless backlog, with \
                     which ECF would never wait.",
                ),
                (
                    "Reference",
                    "Lim et al., ECF: An MPTCP Path Scheduler to Manage Heterogeneous Paths, CoNEXT 2017; mptcp_ecf \
                     of the multipath-tcp.org kernels (which retransmits and penalises like their default scheduler).",
                ),
            ],
            params,
            ordered: None,
        }
    }

    fn new(config: &SchedulerConfig) -> Self {
        Self {
            waiting: false,
            beta_milli: config.raw("beta"),
        }
    }

    fn pick<P: Path>(&mut self, subflows: &[P], queue: &SendQueue) -> Option<Assignment> {
        let backlog = queue.buffered(subflows);
        ecf(subflows, backlog, &mut self.waiting, self.beta_milli).map(Assignment::one)
    }

    fn rbuf_opt(config: &SchedulerConfig) -> Option<RbufOpt> {
        RbufOpt::new(config)
    }
}

/// minRTT's pick, or `None` to wait for the fastest subflow of the class in use. `unassigned` counts the segments that no
/// subflow has yet; `waiting` is the scheduler's memory; `beta_milli` the hysteresis in thousandths.
pub fn ecf<P: Path>(
    paths: &[P],
    unassigned: u32,
    waiting: &mut bool,
    beta_milli: u32,
) -> Option<usize> {
    let pick = minrtt(paths)?;
    let first = fastest(paths)?;
    if pick == first {
        return Some(pick);
    }
    let (fast, slow) = (&paths[first], &paths[pick]);
    let srtt_fast = u128::from(fast.srtt_us8());
    let srtt_slow = u128::from(slow.srtt_us8());
    let delta = u128::from(fast.rttvar_us8().max(slow.rttvar_us8()));
    let cwnd_fast = u128::from(fast.cwnd().max(1));
    let cwnd_slow = u128::from(slow.cwnd().max(1));
    let backlog = u128::from(unassigned);
    // n srtt_f < (1 + waiting beta) (srtt_s + delta) with n = 1 + max(k / cwnd_f, 1), times 1000 cwnd_f.
    let hysteresis = 1000 + if *waiting { u128::from(beta_milli) } else { 0 };
    let by_waiting = (cwnd_fast + backlog.max(cwnd_fast)) * srtt_fast * 1000;
    if by_waiting >= cwnd_fast * hysteresis * (srtt_slow + delta) {
        *waiting = false;
        return Some(pick);
    }
    // max(k / cwnd_s, 1) srtt_s >= 2 srtt_f + delta, times cwnd_s.
    if backlog.max(cwnd_slow) * srtt_slow >= cwnd_slow * (2 * srtt_fast + delta) {
        *waiting = true;
        return None;
    }
    Some(pick)
}
