//! SACK compression: while segments are missing, ACKs are combined, as in Linux since 4.18 (`__tcp_ack_snd_check`).
//!
//! The first three segments beyond a gap are acknowledged at once, so that fast retransmit is not delayed. After them an ACK
//! waits for a part of the round-trip time, at most a millisecond, and then reports everything that has arrived. A segment that
//! fills a part of the gap starts the count anew.

use mptcplab_scenario::CompSack;

/// Segments beyond a gap that are acknowledged at once: Linux' `TCP_FASTRETRANS_THRESH`.
const AT_ONCE: u32 = 3;
/// Most ACKs that are combined: Linux' `tcp_comp_sack_nr`.
const MOST_DEFERRED: u32 = 44;
/// Longest wait: Linux' `tcp_comp_sack_delay_ns`.
const LONGEST_NS: u64 = 1_000_000;

/// The ACKs since the current gap began.
#[derive(Debug, Default)]
pub(crate) struct SackCompression {
    /// The first segment that is missing, and how many ACKs said so at once.
    missing: u32,
    acked_at_once: u32,
    /// ACKs that wait.
    deferred: u32,
}

impl SackCompression {
    /// Whether the ACK of a segment beyond the gap, which begins with segment `missing`, waits.
    pub(crate) fn defers(&mut self, missing: u32) -> bool {
        if self.deferred >= MOST_DEFERRED {
            return false;
        }
        if self.missing != missing {
            self.missing = missing;
            self.acked_at_once = 0;
        }
        if self.acked_at_once < AT_ONCE {
            self.acked_at_once += 1;
            return false;
        }
        self.deferred += 1;
        true
    }

    /// Whether an ACK waits.
    #[inline]
    pub(crate) fn has_deferred(&self) -> bool {
        self.deferred > 0
    }

    /// One ACK waits: its timer starts.
    pub(crate) fn is_first(&self) -> bool {
        self.deferred == 1
    }

    /// An ACK left; it reports everything.
    #[inline]
    pub(crate) fn clear(&mut self) {
        self.deferred = 0;
    }
}

/// How long an ACK waits on a path with this round-trip time: a part of it (`tcp_comp_sack_rtt_percent`), and as long again as the
/// timer may be late (`tcp_comp_sack_slack_ns`). `None` if it does not wait.
pub(crate) fn wait_ns(how: CompSack, rtt_ns: u64) -> Option<u64> {
    let (percent, slack_ns) = match how {
        CompSack::Off => return None,
        CompSack::Linux4_18 => (5, 100_000),
        CompSack::Linux6_19 => (33, 10_000),
    };
    Some((rtt_ns * percent / 100).min(LONGEST_NS) + slack_ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_acks_of_each_gap_leave_at_once() {
        let mut compression = SackCompression::default();
        let deferred: Vec<bool> = [7, 7, 7, 7, 7, 9, 9, 9, 9]
            .map(|m| compression.defers(m))
            .into();
        let (wait, sent) = (true, false);
        assert_eq!(
            deferred,
            [sent, sent, sent, wait, wait, sent, sent, sent, wait]
        );
    }

    #[test]
    fn forty_four_are_put_together_and_no_more() {
        let mut compression = SackCompression::default();
        let deferred = (0..50).filter(|_| compression.defers(3)).count();
        assert_eq!(deferred, 44);
        compression.clear();
        assert!(compression.defers(3) && compression.is_first());
        assert!(compression.defers(3) && !compression.is_first());
    }

    #[test]
    fn the_wait_is_a_part_of_a_short_round_trip() {
        let old = |rtt_ns| wait_ns(CompSack::Linux4_18, rtt_ns);
        assert_eq!(old(6_000_000), Some(400_000));
        assert_eq!(old(90_000_000), Some(1_100_000));
        let new = |rtt_ns| wait_ns(CompSack::Linux6_19, rtt_ns);
        assert_eq!(new(2_000_000), Some(670_000));
        assert_eq!(new(6_000_000), Some(1_010_000));
        assert_eq!(wait_ns(CompSack::Off, 6_000_000), None);
    }
}
