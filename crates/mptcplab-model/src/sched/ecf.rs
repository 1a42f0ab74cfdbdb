//! ECF: leave a slow subflow alone if waiting for the fast one completes earlier (algorithms.md 7.6, choice C21: the
//! kernel's form of Lim et al. 2017).

use crate::sched::minrtt::minrtt;
use crate::sched::path::{Path, fastest};

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
