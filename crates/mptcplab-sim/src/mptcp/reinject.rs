//! Data that a subflow has and others send: after a loss, a timeout or a removal, and when the connection's own timer has fired.

use super::sender::{ConnectionSender, any_other};
use crate::net::World;
use crate::tcp::sender::Sender;
use crate::tcp::state::Phase;
use crate::tcp::subflow::Subflow;
use mptcplab_cc::CaState;
use mptcplab_model::sched::linger::chunk_end;
use mptcplab_model::sched::{Assignment, Path, Scheduler, Segments, SendQueue};
use mptcplab_trace::EventKind;

/// Origin of data in the reinjection queue that no subflow has sent.
const NO_ORIGIN: u32 = u32::MAX;

/// Why a subflow's data are sent on others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cause {
    /// It timed out but has not failed yet: only its oldest segment is sent elsewhere.
    Timeout,
    /// It has timed out often enough to count as failed.
    Failed,
    /// The scenario has removed it.
    Removed,
}

impl ConnectionSender {
    /// Subflow `own` timed out or was removed: its data are to be sent again elsewhere.
    pub(super) fn reinject_from(&mut self, subflows: &mut [Subflow], own: usize, cause: Cause) {
        let asked = self.reinject_enabled || cause == Cause::Removed;
        if subflows.len() == 1 || !asked {
            return;
        }
        if self.data_rtx.is_some() {
            // Only a removal: Linux takes back everything that is not acknowledged (`__mptcp_close_ssk`).
            subflows[own].sender.mptcp.assigned.clear();
            self.take_back_all(own);
            return;
        }
        let sender = &mut subflows[own].sender;
        let most = match cause {
            Cause::Timeout => 1,
            Cause::Failed | Cause::Removed => usize::MAX,
        };
        let sent = sender.hand_over_sent(self.una, most);
        self.reinject
            .extend(sent.into_iter().map(|dsn| (dsn, own as u32)));
        if cause != Cause::Timeout {
            // Segments that were assigned but not sent may go to any subflow, this one included.
            self.reinject
                .extend(sender.mptcp.assigned.drain(..).map(|dsn| (dsn, NO_ORIGIN)));
        }
        self.reinject.make_contiguous().sort_unstable();
    }

    /// Subflow `k` timed out. If another one can take over, it counts as failed once it has timed out often enough.
    pub(super) fn note_timeout(&mut self, cx: &mut World, subflows: &mut [Subflow], k: usize) {
        if self.data_rtx.is_some() {
            return;
        }
        let others = any_other(subflows, k, Path::is_usable);
        let sender = &mut subflows[k].sender;
        if !others || sender.recovery.state != CaState::Loss {
            return;
        }
        if sender.rtx.retransmits < self.stale_after {
            self.reinject_from(subflows, k, Cause::Timeout);
            return;
        }
        if !sender.mptcp.failed {
            sender.set_failed(true);
            sender.log(cx, EventKind::SubflowFailed, sender.rtx.retransmits);
        }
        self.reinject_from(subflows, k, Cause::Failed);
        self.update_backups(subflows);
    }

    /// A subflow works again, or has joined: it can take over from those that had no other to fail over to.
    pub(super) fn take_over(&mut self, cx: &mut World, subflows: &mut [Subflow]) {
        for k in 0..subflows.len() {
            let sender = &subflows[k].sender;
            let timed_out = sender.phase == Phase::Established && sender.rtx.retransmits > 0;
            if timed_out && !sender.mptcp.failed {
                self.note_timeout(cx, subflows, k);
            }
        }
    }

    /// The segments that a subflow has lost on entering fast recovery are sent on other subflows as well.
    pub(super) fn copy_losses(&mut self, sender: &mut Sender, own: usize) {
        if sender.state() != CaState::Recovery
            || sender.mptcp.copied_losses == sender.count.loss_events
        {
            return;
        }
        sender.mptcp.copied_losses = sender.count.loss_events;
        let lost = sender.hand_over_lost(self.una);
        self.reinject
            .extend(lost.into_iter().map(|dsn| (dsn, own as u32)));
        self.reinject.make_contiguous().sort_unstable();
    }

    /// Data of failed subflows are sent first, each segment on a subflow that has not carried it if there is one.
    #[inline(never)]
    pub(super) fn push_reinjections(
        &mut self,
        scheduler: &mut Scheduler,
        cx: &mut World,
        subflows: &mut [Subflow],
    ) {
        while let Some(&(dsn, origin)) = self.reinject.front() {
            if dsn < self.una {
                self.reinject.pop_front();
                continue;
            }
            let carried = |i: usize| subflows[i].carries(dsn);
            let picked = scheduler.pick_for_reinjection(subflows, carried);
            let Some(i) = picked else {
                return;
            };
            let sender = &mut subflows[i].sender;
            if sender.is_paced_out(cx) {
                return;
            }
            self.reinject.pop_front();
            self.reinjected += u64::from(origin != NO_ORIGIN);
            let payload = self.payload(dsn);
            if let Some(rbuf_opt) = &mut scheduler.rbuf_opt {
                rbuf_opt.note_sent(dsn, i);
            }
            sender.mptcp.out_of_order = true;
            sender.send_new::<false>(cx, &mut self.cc, dsn, payload);
        }
    }

    /// Send again, in order and before anything new, what the connection has taken back from its subflows. The scheduler
    /// chooses as for new data (`__mptcp_retransmit_pending_data`).
    #[inline(never)]
    pub(super) fn send_again(
        &mut self,
        scheduler: &mut Scheduler,
        cx: &mut World,
        subflows: &mut [Subflow],
        queue: &SendQueue,
    ) {
        loop {
            let acked = self.reinject.partition_point(|&(dsn, _)| dsn < self.una);
            self.reinject.drain(..acked);
            let (Some(&(next, _)), Some(&(last, _))) =
                (self.reinject.front(), self.reinject.back())
            else {
                return;
            };
            let rest = SendQueue {
                next,
                written: last + 1,
                ..*queue
            };
            let Some(Assignment {
                subflow,
                segments: Segments::New(burst),
            }) = scheduler.pick(subflows, &rest)
            else {
                return;
            };
            let n = self
                .reinject
                .partition_point(|&(dsn, _)| dsn < next + burst);
            for (dsn, _) in self.reinject.drain(..n).collect::<Vec<_>>() {
                self.assign_copy(cx, &mut subflows[subflow].sender, dsn);
            }
        }
    }

    /// The connection's timer has fired. The caller pushes afterwards.
    pub(super) fn retransmit_data(&mut self, cx: &mut World, subflows: &mut [Subflow]) {
        let Some(data_rtx) = &mut self.data_rtx else {
            return;
        };
        let stale = data_rtx.find_stale(subflows);
        let idle = data_rtx.pick_idle(subflows);
        if let Some(i) = idle {
            self.retransmit_head(cx, &mut subflows[i].sender);
        }
        for i in (0..subflows.len()).filter(|i| stale >> i & 1 == 1) {
            self.give_up(cx, &mut subflows[i].sender, i);
        }
        if stale != 0 {
            self.update_backups(subflows);
        }
    }

    /// Send what is left of the oldest chunk.
    fn retransmit_head(&mut self, cx: &mut World, sender: &mut Sender) {
        for dsn in self.una..chunk_end(self.una, self.mss).min(self.next) {
            self.assign_copy(cx, sender, dsn);
        }
    }

    /// Subflow `own` is stale: the others send all data that are not acknowledged. Its own segments stay queued on it and are
    /// sent once it works again.
    fn give_up(&mut self, cx: &mut World, sender: &mut Sender, own: usize) {
        sender.set_failed(true);
        sender.log(cx, EventKind::SubflowFailed, sender.rtx.retransmits);
        self.take_back_all(own);
    }

    /// All data that are not acknowledged are to be sent again, because of subflow `own`.
    fn take_back_all(&mut self, own: usize) {
        self.reinject = (self.una..self.next).map(|dsn| (dsn, own as u32)).collect();
    }
}
