//! ACKs put together while segments are missing, as Linux' receiver does since 4.18 (`tcp_comp_sack` in `__tcp_ack_snd_check`).
//!
//! The first three segments beyond a gap are acknowledged at once, so that fast retransmit is as quick as ever. After them an ACK
//! waits for a twentieth of the round-trip time, at most a millisecond, and then tells of all that came meanwhile. What fills
//! a part of the gap begins anew.

/// Segments beyond a gap that are acknowledged at once: Linux' `TCP_FASTRETRANS_THRESH`.
const AT_ONCE: u32 = 3;
/// Most ACKs that are put together: Linux' `tcp_comp_sack_nr`.
const MOST_HELD: u32 = 44;
/// The wait is this part of the round-trip time,
const PART: u64 = 20;
/// at most Linux' `tcp_comp_sack_delay_ns`,
const LONGEST_NS: u64 = 1_000_000;
/// and its timer is as lax as `tcp_comp_sack_slack_ns`.
const SLACK_NS: u64 = 100_000;

/// What a receiver remembers of its ACKs since the gap began.
#[derive(Debug, Default)]
pub(crate) struct Gap {
    /// The first segment that is missing, and how many ACKs said so at once.
    missing: u32,
    told: u32,
    /// ACKs that wait.
    held: u32,
}

impl Gap {
    /// Whether the ACK of a segment beyond the gap, which begins with segment `missing`, waits.
    pub(crate) fn holds(&mut self, missing: u32) -> bool {
        if self.held >= MOST_HELD {
            return false;
        }
        if self.missing != missing {
            self.missing = missing;
            self.told = 0;
        }
        if self.told < AT_ONCE {
            self.told += 1;
            return false;
        }
        self.held += 1;
        true
    }

    /// Whether an ACK waits.
    #[inline]
    pub(crate) fn has_held(&self) -> bool {
        self.held > 0
    }

    /// One ACK waits: its timer starts.
    pub(crate) fn is_first(&self) -> bool {
        self.held == 1
    }

    /// An ACK left, which told of everything.
    #[inline]
    pub(crate) fn clear(&mut self) {
        self.held = 0;
    }
}

/// How long an ACK waits on a path with this round-trip time.
pub(crate) fn wait_ns(rtt_ns: u64) -> u64 {
    (rtt_ns / PART).min(LONGEST_NS) + SLACK_NS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_acks_of_each_gap_leave_at_once() {
        let mut gap = Gap::default();
        let held: Vec<bool> = [7, 7, 7, 7, 7, 9, 9, 9, 9].map(|m| gap.holds(m)).into();
        let (wait, sent) = (true, false);
        assert_eq!(held, [sent, sent, sent, wait, wait, sent, sent, sent, wait]);
    }

    #[test]
    fn forty_four_are_put_together_and_no_more() {
        let mut gap = Gap::default();
        let held = (0..50).filter(|_| gap.holds(3)).count();
        assert_eq!(held, 44);
        gap.clear();
        assert!(gap.holds(3) && gap.is_first());
        assert!(gap.holds(3) && !gap.is_first());
    }

    #[test]
    fn the_wait_is_a_twentieth_of_a_short_round_trip() {
        assert_eq!(wait_ns(6_000_000), 400_000);
        assert_eq!(wait_ns(90_000_000), 1_100_000);
    }
}
