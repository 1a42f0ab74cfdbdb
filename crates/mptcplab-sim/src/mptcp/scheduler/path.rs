//! This engine's subflows as schedulers see them.

use crate::tcp::sender::Sender;
use mptcplab_cc::CaState;
use mptcplab_model::sched::Path;

impl Path for Sender {
    #[inline]
    fn is_usable(&self) -> bool {
        Self::is_usable(self)
    }
    #[inline]
    fn is_backup(&self) -> bool {
        self.backup
    }
    #[inline]
    fn in_loss(&self) -> bool {
        self.state() == CaState::Loss
    }
    #[inline]
    fn is_open(&self) -> bool {
        self.state() == CaState::Open
    }
    #[inline]
    fn waits_for_pacing(&self) -> bool {
        self.paced_out
    }
    #[inline]
    fn cwnd(&self) -> u32 {
        self.sock.tp.snd_cwnd
    }
    #[inline]
    fn inflight(&self) -> u32 {
        Self::inflight(self)
    }
    #[inline]
    fn queued(&self) -> u32 {
        self.assigned.len() as u32
    }
    #[inline]
    fn ssthresh(&self) -> u32 {
        self.sock.tp.snd_ssthresh
    }
    #[inline]
    fn srtt_us8(&self) -> u32 {
        self.sock.tp.srtt_us
    }
    #[inline]
    fn rttvar_us8(&self) -> u32 {
        // Linux keeps the mean deviation times 4.
        self.sock.tp.mdev_us.saturating_mul(2)
    }
    #[inline]
    fn rtt_us8(&self) -> u32 {
        self.rtt.latest_us.saturating_mul(8)
    }
    #[inline]
    fn min_rtt_us8(&self) -> u32 {
        if self.rtt.count == 0 {
            return 0;
        }
        self.sock.tp.min_rtt_us.saturating_mul(8)
    }
}
