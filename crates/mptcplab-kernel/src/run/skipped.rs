//! Whether the kernel skipped an algorithm's program.
//!
//! A kernel that does not run a program of a struct_ops goes on with whatever is in its place, as a threshold or a
//! window: a hardened 6.18 was seen to skip programs while process 1 was on the processor, which a timer may interrupt,
//! and windows became two thousand million packets. No counter of the kernel tells, but such numbers do.

use mptcplab_bpf::tracer::Sample;
use mptcplab_cc::INFINITE_SSTHRESH;

/// More packets than any algorithm of ours gives a window (`CC_WINDOW_MAX` of algorithms/cc.h).
const WINDOW_MAX: u32 = 1 << 20;

/// What was seen of it.
#[derive(Default)]
pub(super) struct Skipped {
    /// The first: when, window and threshold.
    first: Option<(u64, u32, u32)>,
}

impl Skipped {
    pub(super) fn look(&mut self, record: &Sample) {
        let (cwnd, ssthresh) = (record.cwnd_pkts, record.ssthresh_pkts);
        if self.first.is_none() && is_impossible(cwnd, ssthresh) {
            self.first = Some((record.t_ns, cwnd, ssthresh));
        }
    }

    /// Why the run does not count.
    pub(super) fn reason(&self, zero_ns: u64) -> Option<String> {
        let (t_ns, cwnd, ssthresh) = self.first?;
        let t_s = t_ns.saturating_sub(zero_ns) as f64 / 1e9;
        Some(format!(
            "this kernel skipped an algorithm's program: at {t_s:.3} s a subflow had a window of {cwnd} and a threshold of \
             {ssthresh} packets, which no algorithm gives"
        ))
    }
}

fn is_impossible(cwnd: u32, ssthresh: u32) -> bool {
    cwnd > WINDOW_MAX || (ssthresh > WINDOW_MAX && ssthresh != INFINITE_SSTHRESH)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_numbers_that_no_algorithm_gives_are_impossible() {
        assert!(!is_impossible(10, INFINITE_SSTHRESH));
        assert!(!is_impossible(WINDOW_MAX, WINDOW_MAX));
        // Seen: the low half of an address of the kernel's, from its stack.
        assert!(is_impossible(18, 0x8110_4110));
        // A threshold of half of that, after another loss.
        assert!(is_impossible(18, 0x4088_2088));
        assert!(is_impossible(120_295_911, 9));
    }
}
