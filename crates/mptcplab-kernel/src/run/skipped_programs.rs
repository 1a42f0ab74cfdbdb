//! Detects that the kernel skipped an algorithm's program.
//!
//! A kernel that does not run a program of a struct_ops uses whatever value is in the place of its result, as a threshold
//! or a window. A hardened Linux 6.18 was observed to skip programs while process 1 was running, which a timer may
//! interrupt, and windows became two thousand million packets. The kernel has no counter for this, but such values reveal
//! it.

use mptcplab_bpf::tracer::Sample;
use mptcplab_cc::INFINITE_SSTHRESH;

/// The largest window that an algorithm can set (`CC_WINDOW_MAX` in algorithms/cc.h).
const WINDOW_MAX: u32 = 1 << 20;

/// Looks for impossible values in the tracer's records.
#[derive(Default)]
pub(super) struct SkippedPrograms {
    /// The first impossible values: time, window and threshold.
    first: Option<(u64, u32, u32)>,
}

impl SkippedPrograms {
    pub(super) fn check(&mut self, record: &Sample) {
        let (cwnd, ssthresh) = (record.cwnd_pkts, record.ssthresh_pkts);
        if self.first.is_none() && is_impossible(cwnd, ssthresh) {
            self.first = Some((record.t_ns, cwnd, ssthresh));
        }
    }

    /// Why the run is invalid, if impossible values were found.
    pub(super) fn reason(&self, zero_ns: u64) -> Option<String> {
        let (t_ns, cwnd, ssthresh) = self.first?;
        let t_s = t_ns.saturating_sub(zero_ns) as f64 / 1e9;
        Some(format!(
            "this kernel skipped an algorithm's program: at {t_s:.3} s a subflow had a window of {cwnd} and a threshold of \
             {ssthresh} packets, which no algorithm sets"
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
        // Observed: the low half of a kernel address, from the stack.
        assert!(is_impossible(18, 0x8110_4110));
        // A threshold of half of that, after another loss.
        assert!(is_impossible(18, 0x4088_2088));
        assert!(is_impossible(120_295_911, 9));
    }
}
