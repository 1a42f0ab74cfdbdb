//! What the out-of-tree kernel's schedulers do when the shared receive window blocks: opportunistic retransmission of the
//! segment that everything waits for, and penalisation of the subflows that hold it (algorithms.md 7.1, choice C18).

use crate::sched::path::Path;

/// The least slow start threshold that a penalty leaves.
const MIN_SSTHRESH: u32 = 2;
/// A window up to which a holder never counts as quick enough.
const TINY_CWND: u32 = 4;

/// Whether subflow `fast`, which has room, shall send the blocking segment, which `holders` carry, in this order.
pub fn may_resend<P: Path>(
    paths: &[P],
    fast: usize,
    holders: impl IntoIterator<Item = usize> + Clone,
) -> bool {
    if holders.clone().into_iter().any(|h| h == fast) {
        return false;
    }
    let srtt_fast = u64::from(paths[fast].srtt_us8());
    let mut go = false;
    for h in holders {
        if paths[h].cwnd() <= TINY_CWND {
            return true;
        }
        if 4 * srtt_fast >= u64::from(paths[h].srtt_us8()) {
            return false;
        }
        go = true;
    }
    go
}

/// Whether `holder`, which carries the blocking segment, is penalised for the sake of `fast`.
pub fn must_slow_down<P: Path>(paths: &[P], fast: usize, holder: usize) -> bool {
    let h = &paths[holder];
    holder != fast && paths[fast].srtt_us8() < h.srtt_us8() && h.is_open() && !h.in_loss()
}

/// Window and threshold after a penalty; in slow start the threshold stays.
pub fn slowed_down(cwnd: u32, ssthresh: u32) -> (u32, u32) {
    let halved = if cwnd >= ssthresh {
        (ssthresh / 2).max(MIN_SSTHRESH)
    } else {
        ssthresh
    };
    ((cwnd / 2).max(1), halved)
}
