//! Missing reports of CMT-SCTP, which decide when a gap is a loss (Iyengar, Amer, Stewart 2006).
//!
//! Split fast retransmit (section 3.1, SFR): a packet is reported missing only by a SACK that newly acknowledges a packet
//! sent later *to the same destination*. Paths of different delay reorder packets between destinations, never within one.
//! Delayed ACKs (section 3.3, DAC): SACKs are delayed also while packets are missing, and say how many packets arrived
//! since the last one, which stands for as many reports where all of them came over the packet's own path.
//!
//! "Later" refers to the order of sending, not to TSNs: both are the same for data sent once, and a
//! retransmission with a low TSN is not reported missing by packets that left before it.

/// Reports that make a loss (RFC 9260 section 7.2.4).
pub(crate) const MISSING_REPORTS: u32 = 3;

/// Range of the transmissions to one destination that a SACK newly acknowledged, as places in the order of sending.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NewlyAcked {
    pub(crate) oldest: u64,
    pub(crate) newest: u64,
}

/// Properties of a SACK that its missing reports depend on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SackInfo {
    /// It newly acknowledges packets of more than one destination.
    pub(crate) mixed: bool,
    /// Packets that arrived since the SACK before it, as it says itself.
    pub(crate) packets: u32,
}

/// Reports against a packet sent as number `order` to the destination of which the SACK newly acknowledges `acked`.
pub(crate) fn reports(order: u64, acked: NewlyAcked, sack: SackInfo) -> u32 {
    if acked.newest <= order {
        return 0;
    }
    // Some packets left before it or over another path: how many came after it is not known.
    if sack.mixed || acked.oldest < order {
        return 1;
    }
    sack.packets.max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE_PATH: SackInfo = SackInfo {
        mixed: false,
        packets: 2,
    };

    fn acked(oldest: u64, newest: u64) -> NewlyAcked {
        NewlyAcked { oldest, newest }
    }

    #[test]
    fn packets_sent_before_report_nothing() {
        assert_eq!(reports(10, acked(3, 9), ONE_PATH), 0);
    }

    #[test]
    fn a_delayed_sack_of_one_path_counts_its_packets() {
        assert_eq!(reports(10, acked(11, 12), ONE_PATH), 2);
        assert_eq!(
            reports(10, acked(9, 12), ONE_PATH),
            1,
            "one of the two left before"
        );
    }

    #[test]
    fn a_sack_for_several_paths_counts_once() {
        let mixed = SackInfo {
            mixed: true,
            packets: 2,
        };
        assert_eq!(reports(10, acked(11, 12), mixed), 1);
    }
}
