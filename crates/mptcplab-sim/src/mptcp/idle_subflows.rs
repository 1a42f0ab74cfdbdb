//! Idle subflows leave the coupling set, as in the kernel (`exclude_idle_siblings` in crates/mptcplab-bpf/bpf/glue.c).
//!
//! With upstream's scheduler a connection fills its send buffer while a slow subflow works on the burst that it was given, and
//! the others have nothing to send. If their windows still counted, they would slow down the subflow that all wait for.

use crate::tcp::sender::Sender;
use crate::tcp::state::Phase;
use crate::tcp::subflow::Subflow;
use mptcplab_cc::Conn as CcTable;
use mptcplab_model::sched::MAX_SUBFLOWS;

/// A subflow is idle after this time plus this many smoothed round-trip times: `IDLE_US` and `IDLE_RTTS` in glue.c.
const IDLE_NS: u64 = 1_000_000_000;
const IDLE_RTTS: u64 = 4;
/// How often a subflow checks its siblings: `IDLE_CHECK_US` in glue.c.
const CHECK_INTERVAL_NS: u64 = 250_000_000;

/// When each subflow last checked its siblings.
#[derive(Default)]
pub(crate) struct IdleSubflows([u64; MAX_SUBFLOWS]);

impl IdleSubflows {
    /// If an ACK of subflow `own` has just advanced, it belongs to the set, and it takes idle siblings out of it.
    #[inline(never)]
    pub(super) fn update_coupling_set(
        &mut self,
        subflows: &mut [Subflow],
        cc: &mut CcTable,
        own: usize,
        now: u64,
    ) {
        let sender = &mut subflows[own].sender;
        if sender.phase != Phase::Established || sender.rtx.progress_ns != now {
            return;
        }
        sender.sock.set_usable(cc, true);
        if !self.is_due(own, now) {
            return;
        }
        for (k, Subflow { sender, .. }) in subflows.iter_mut().enumerate() {
            if k != own && sender.phase == Phase::Established && is_idle(sender, now) {
                sender.sock.set_usable(cc, false);
            }
        }
    }

    fn is_due(&mut self, subflow: usize, now: u64) -> bool {
        let due = now - self.0[subflow] > CHECK_INTERVAL_NS;
        if due {
            self.0[subflow] = now;
        }
        due
    }
}

/// A retransmission counts as activity, because a timeout calls a hook of the algorithm in the kernel as well.
fn is_idle(sender: &Sender, now: u64) -> bool {
    let heard_ns = sender.rtx.progress_ns.max(sender.last_sent_ns);
    now > heard_ns + IDLE_NS + IDLE_RTTS * sender.srtt_ns()
}
