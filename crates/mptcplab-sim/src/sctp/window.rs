//! Congestion window of one destination (RFC 9260 section 7.2), in bytes.
//!
//! A packet counts with its IP length, so that one MTU is one full packet. The RFC counts DATA chunks, 32 bytes less,
//! and a window of one MTU would admit a second packet.

/// Before the first loss (RFC 9260 section 7.2.1: arbitrarily high).
pub(crate) const SSTHRESH_INFINITE: u32 = u32::MAX;
/// Least ssthresh after a loss, in MTUs.
const MIN_SSTHRESH_MTUS: u32 = 4;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Window {
    pub(crate) cwnd: u32,
    pub(crate) ssthresh: u32,
    /// Bytes acknowledged towards the next step of congestion avoidance.
    partial_acked: u32,
    mtu: u32,
}

impl Window {
    /// The initial window, `min(4 MTU, max(2 MTU, 4380 bytes))`.
    pub(crate) fn new(mtu: u32) -> Self {
        Self {
            cwnd: (4 * mtu).min((2 * mtu).max(4380)),
            ssthresh: SSTHRESH_INFINITE,
            partial_acked: 0,
            mtu,
        }
    }

    /// A SACK that moved the destination's pseudo-cumulative ACK acknowledged `bytes` of it. `was_full`: before it, at
    /// least a window of data was outstanding. Not called in fast recovery.
    pub(crate) fn grow(&mut self, bytes: u32, was_full: bool) {
        if self.cwnd <= self.ssthresh {
            if was_full {
                self.cwnd = self.cwnd.saturating_add(bytes.min(self.mtu));
            }
            return;
        }
        self.partial_acked = self.partial_acked.saturating_add(bytes);
        if self.partial_acked >= self.cwnd {
            if was_full {
                self.partial_acked -= self.cwnd;
                self.cwnd = self.cwnd.saturating_add(self.mtu);
            } else {
                self.partial_acked = self.cwnd;
            }
        }
    }

    /// All data sent there were acknowledged (section 7.2.2).
    pub(crate) fn all_acked(&mut self) {
        self.partial_acked = 0;
    }

    /// Fast retransmit (section 7.2.3).
    pub(crate) fn on_loss(&mut self) {
        self.reduce_ssthresh();
        self.cwnd = self.ssthresh;
    }

    /// T3-rtx expired (section 7.2.3).
    pub(crate) fn on_timeout(&mut self) {
        self.reduce_ssthresh();
        self.cwnd = self.mtu;
    }

    fn reduce_ssthresh(&mut self) {
        self.ssthresh = (self.cwnd / 2).max(MIN_SSTHRESH_MTUS * self.mtu);
        self.partial_acked = 0;
    }

    /// Nothing was sent there for this many RTOs (section 7.2.1): half of what is above 4 MTU goes with each.
    pub(crate) fn after_idle(&mut self, rtos: u64) {
        for _ in 0..rtos.min(32) {
            let halved = (self.cwnd / 2).max(MIN_SSTHRESH_MTUS * self.mtu);
            self.cwnd = self.cwnd.min(halved);
        }
    }

    /// The window in packets: how many full ones it admits, as the last one may exceed it.
    pub(crate) fn packets(&self) -> u32 {
        self.cwnd.div_ceil(self.mtu)
    }

    /// ssthresh in packets, in the trace's terms.
    pub(crate) fn ssthresh_packets(&self) -> u32 {
        match self.ssthresh {
            SSTHRESH_INFINITE => i32::MAX as u32,
            bytes => bytes.div_ceil(self.mtu),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn initial_windows_of_large_middle_and_small_packets() {
        assert_eq!(Window::new(1500).cwnd, 4380);
        assert_eq!(Window::new(1500).packets(), 3);
        assert_eq!(
            Window::new(1048).cwnd,
            4192,
            "four packets are less than 4380 bytes"
        );
        assert_eq!(Window::new(4400).cwnd, 8800, "two packets are more");
    }

    #[test]
    fn slow_start_adds_at_most_a_packet_a_sack_and_only_when_full() {
        let mut w = Window::new(1500);
        w.grow(3000, false);
        assert_eq!(w.cwnd, 4380);
        w.grow(3000, true);
        assert_eq!(w.cwnd, 5880);
        w.grow(700, true);
        assert_eq!(w.cwnd, 6580);
    }

    #[test]
    fn congestion_avoidance_adds_a_packet_a_window() {
        let mut w = Window {
            cwnd: 12_000,
            ssthresh: 6000,
            partial_acked: 0,
            mtu: 1500,
        };
        for _ in 0..3 {
            w.grow(3000, true);
        }
        assert_eq!((w.cwnd, w.partial_acked), (12_000, 9000));
        w.grow(4500, true);
        assert_eq!((w.cwnd, w.partial_acked), (13_500, 1500));
        // Not full: what was acknowledged is worth one step at most.
        w.grow(30_000, false);
        assert_eq!((w.cwnd, w.partial_acked), (13_500, 13_500));
        w.grow(1500, true);
        assert_eq!((w.cwnd, w.partial_acked), (15_000, 1500));
        w.all_acked();
        assert_eq!(w.partial_acked, 0);
    }

    #[test]
    fn losses_timeouts_and_idle_periods() {
        let mut w = Window {
            cwnd: 30_000,
            ssthresh: SSTHRESH_INFINITE,
            partial_acked: 7,
            mtu: 1500,
        };
        w.on_loss();
        assert_eq!((w.cwnd, w.ssthresh, w.partial_acked), (15_000, 15_000, 0));
        w.on_timeout();
        assert_eq!((w.cwnd, w.ssthresh, w.packets()), (1500, 7500, 1));
        w.on_loss();
        assert_eq!((w.cwnd, w.ssthresh), (6000, 6000), "never below 4 MTU");
        w.cwnd = 40_000;
        w.after_idle(1);
        assert_eq!(w.cwnd, 20_000);
        w.after_idle(9);
        assert_eq!(w.cwnd, 6000);
        w.cwnd = 1500;
        w.after_idle(1);
        assert_eq!(w.cwnd, 1500, "an idle period never raises the window");
    }
}
