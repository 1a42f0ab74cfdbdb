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
            "Hysteresis: once waiting, the fast subflow may be later by this part.",
        ));
        Declaration {
            name: "ecf",
            title: "leaves a slow subflow alone if the fast one would be done earlier",
            sections: vec![
                (
                    "Idea",
                    "With a backlog of k segments: if waiting for the fastest subflow f completes them before the slower \
                     one s would, wait.",
                ),
                (
                    "Rules",
                    "n = 1 + max(k/cwnd_f, 1), delta = max(rttvar_f, rttvar_s). If n srtt_f < (1 + waiting beta)(srtt_s + \
                     delta): wait if max(k/cwnd_s, 1) srtt_s >= 2 srtt_f + delta, else use s; otherwise stop waiting and \
                     use s.",
                ),
                (
                    "Deviations",
                    "rttvar is the measured mean deviation; the kernel's has a floor of 200 ms. An idle backup never counts \
                     as the fastest subflow. The backlog is what a send buffer of twice the windows would hold: that of a bulk \
                     transfer is endless, and ECF would never wait.",
                ),
                (
                    "Reference",
                    "Lim et al., ECF: An MPTCP Path Scheduler to Manage Heterogeneous Paths, CoNEXT 2017; mptcp_ecf of the \
                     multipath-tcp.org kernels (retransmits and penalises as its default).",
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
