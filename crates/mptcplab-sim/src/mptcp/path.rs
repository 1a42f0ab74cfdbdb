//! The simulator's subflows as schedulers see them.

use crate::tcp::state::Phase;
use crate::tcp::subflow::Subflow;
use mptcplab_cc::CaState;
use mptcplab_model::sched::Path;

impl Path for Subflow {
    #[inline]
    fn is_usable(&self) -> bool {
        self.sender.is_usable()
    }
    #[inline]
    fn is_backup(&self) -> bool {
        self.sender.mptcp.backup
    }
    #[inline]
    fn in_loss(&self) -> bool {
        self.sender.state() == CaState::Loss
    }
    #[inline]
    fn is_open(&self) -> bool {
        self.sender.state() == CaState::Open
    }
    #[inline]
    fn waits_for_pacing(&self) -> bool {
        self.sender.pacing.blocked
    }
    #[inline]
    fn cwnd(&self) -> u32 {
        self.sender.sock.tp.snd_cwnd
    }
    #[inline]
    fn inflight(&self) -> u32 {
        self.sender.inflight()
    }
    #[inline]
    fn queued(&self) -> u32 {
        self.sender.mptcp.assigned.len() as u32
    }
    #[inline]
    fn ssthresh(&self) -> u32 {
        self.sender.sock.tp.snd_ssthresh
    }
    #[inline]
    fn srtt_us8(&self) -> u32 {
        self.sender.sock.tp.srtt_us
    }
    #[inline]
    fn rttvar_us8(&self) -> u32 {
        // Linux keeps the mean deviation times 4.
        self.sender.sock.tp.mdev_us.saturating_mul(2)
    }
    #[inline]
    fn rtt_us8(&self) -> u32 {
        self.sender.rtt.latest_us.saturating_mul(8)
    }
    #[inline]
    fn min_rtt_us8(&self) -> u32 {
        if self.sender.rtt.count == 0 {
            return 0;
        }
        self.sender.sock.tp.min_rtt_us.saturating_mul(8)
    }
    #[inline]
    fn is_established(&self) -> bool {
        self.sender.phase == Phase::Established
    }
    #[inline]
    fn unacked_pkts(&self) -> u32 {
        self.sender.sock.tp.packets_out + self.queued()
    }
    #[inline]
    fn pacing_bytes_per_s(&self) -> u64 {
        self.sender.default_pacing_rate()
    }
    fn carries(&self, dsn: u32) -> bool {
        self.sender.carries(dsn)
    }
}
