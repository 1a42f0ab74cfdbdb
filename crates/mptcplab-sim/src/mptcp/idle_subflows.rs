//! Subflows that say nothing leave the coupling set, as the kernel's glue has it (crates/mptcplab-bpf/bpf/glue.c, `drop_silent`).
//!
//! With upstream's scheduler a connection fills its send buffer while a slow subflow works on the chunk that it was given, and
//! the others have nothing to send. Counted with the windows they had they would hold back the one that everything waits for.

use crate::tcp::sender::Sender;
use crate::tcp::state::Phase;
use crate::tcp::subflow::Subflow;
use mptcplab_cc::Conn as CcTable;
use mptcplab_model::sched::MAX_SUBFLOWS;

/// A subflow is silent after this long, and after so many smoothed round-trip times: the glue's `SILENT_US` and `SILENT_RTTS`.
const SILENT_NS: u64 = 1_000_000_000;
const SILENT_RTTS: u64 = 4;
/// Time between two looks of one subflow at its siblings: the glue's `LOOK_AROUND_US`.
const LOOK_AROUND_NS: u64 = 250_000_000;

/// When each subflow last looked at its siblings.
#[derive(Default)]
pub(crate) struct Looks([u64; MAX_SUBFLOWS]);

impl Looks {
    /// If something new of subflow `own` was acknowledged now, it belongs to the set, and it looks for siblings that do not.
    #[inline(never)]
    pub(super) fn look_around(
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
            if k != own && sender.phase == Phase::Established && is_silent(sender, now) {
                sender.sock.set_usable(cc, false);
            }
        }
    }

    fn is_due(&mut self, subflow: usize, now: u64) -> bool {
        let due = now - self.0[subflow] > LOOK_AROUND_NS;
        if due {
            self.0[subflow] = now;
        }
        due
    }
}

/// A timeout calls a hook in the kernel, too: what it sends again counts as a sign of life.
fn is_silent(sender: &Sender, now: u64) -> bool {
    let heard_ns = sender.rtx.progress_ns.max(sender.last_sent_ns);
    now > heard_ns + SILENT_NS + SILENT_RTTS * sender.srtt_ns()
}
