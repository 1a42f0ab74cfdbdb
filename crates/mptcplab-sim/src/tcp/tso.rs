//! Groups of segments, as Linux sends them: the size of a group, when it waits, and the PSH flag on its last segment.
//!
//! Linux puts the segments that may leave together into one buffer, at least two and up to a millisecond of the pacing rate
//! (`tcp_tso_autosize`). If the window has room for fewer, it waits for the next ACK if that is near (`tcp_tso_should_defer`).
//! The last segment of a buffer carries PSH, also without offloads. Since Linux 6.6 a receiver acknowledges such a segment as
//! soon as the application has read everything, instead of waiting for a second segment.

use super::sender::Sender;
use super::state::TsoGroup;
use mptcplab_cc::CaState;
use std::collections::VecDeque;

/// Linux' `tcp_min_tso_segs`.
const LEAST_SEGMENTS: u32 = 2;
/// Below this rate in bytes/s, BBR's groups may be single segments: 1.2 Mbit/s, Linux' `bbr_min_tso_rate`.
const SLOW_RATE: u64 = 150_000;
/// Shift of a rate in bytes/s to about a millisecond of it: Linux' `sk_pacing_shift`.
const PACING_SHIFT: u32 = 10;
/// Every so many halvings of [`MOST_BYTES`] for 512 us of the least RTT: Linux' `tcp_tso_rtt_log`.
const RTT_LOG: u32 = 9;
/// Linux' `GSO_LEGACY_MAX_SIZE`.
const MOST_BYTES: u64 = 65_536;
/// A group waits only behind another that left so recently.
const RECENT_NS: u64 = 1_000_000;
/// The next ACK is near if it is expected this soon, and within half a round trip (since Linux 6.18).
const NEAR_NS: u64 = 1_000_000;
/// Room for so large a part of the window is not worth waiting: Linux' `tcp_tso_win_divisor`.
const WINDOW_PART: u32 = 3;

impl Sender {
    /// Whether the first of `available` segments may leave, for which the window has room.
    #[inline]
    pub(crate) fn may_send(&mut self, now: u64, available: u32) -> bool {
        !self.config.tso || self.fits_group(now, available)
    }

    /// The same for the segments that an MPTCP connection has given to this subflow. A buffer holds only data that are
    /// consecutive in the connection (`mptcp_skb_can_collapse_to`).
    #[inline]
    pub(crate) fn may_send_assigned(&mut self, now: u64) -> bool {
        !self.config.tso || self.fits_assigned(now)
    }

    /// Whether a group leaves now that is not complete.
    pub(crate) fn is_within_group(&self, now: u64) -> bool {
        self.tso.left > 0 && self.tso.begun_ns == now
    }

    #[inline(never)]
    fn fits_group(&mut self, now: u64, available: u32) -> bool {
        self.is_within_group(now) || self.begin_group(now, self.group_segments(), available)
    }

    #[inline(never)]
    fn fits_assigned(&mut self, now: u64) -> bool {
        if self.is_within_group(now) {
            return true;
        }
        let most = self.group_segments();
        let available = consecutive(&self.mptcp.assigned, most);
        self.begin_group(now, most, available)
    }

    /// Begin a group of at most so many segments, unless it waits for a larger one.
    fn begin_group(&mut self, now: u64, most: u32, available: u32) -> bool {
        let cwnd = self.sock.tp.snd_cwnd;
        let room = cwnd - self.inflight();
        self.tso.deferred = room < most && available > room && self.waits(now, room);
        if self.tso.deferred {
            return false;
        }
        let left = most.min(room).min((cwnd / 2).max(1)).min(available);
        self.tso = TsoGroup {
            left,
            begun_ns: now,
            pushes: left > 1,
            deferred: false,
        };
        true
    }

    /// A new segment leaves. Returns whether it carries PSH.
    #[inline]
    pub(crate) fn consume_from_group(&mut self) -> bool {
        if !self.config.tso || self.tso.left == 0 {
            return false;
        }
        self.tso.left -= 1;
        self.tso.left == 0 && self.tso.pushes
    }

    /// Largest group, in segments.
    fn group_segments(&self) -> u32 {
        let tp = &self.sock.tp;
        let halvings = tp.min_rtt_us >> RTT_LOG;
        let near = MOST_BYTES.checked_shr(halvings).unwrap_or(0);
        let (rate, least) = self.rate_and_least_segments();
        let bytes = (rate >> PACING_SHIFT) + near;
        let segments = bytes.min(MOST_BYTES) / u64::from(tp.mss_cache.max(1));
        (segments as u32).max(least)
    }

    /// The pacing rate in bytes/s, which may be the algorithm's own, and the segments of the smallest group.
    fn rate_and_least_segments(&self) -> (u64, u32) {
        if self.rates.is_none() {
            return (self.default_pacing_rate(), LEAST_SEGMENTS);
        }
        let rate = self.sock.tp.sk_pacing_rate;
        let least = if rate < SLOW_RATE { 1 } else { LEAST_SEGMENTS };
        (rate, least)
    }

    /// Whether an ACK is likely to come soon enough for a larger group.
    fn waits(&self, now: u64, room: u32) -> bool {
        let tp = &self.sock.tp;
        let recent = now - self.last_sent_ns <= RECENT_NS;
        let small = WINDOW_PART * room < tp.snd_cwnd;
        let repairs = matches!(self.state(), CaState::Recovery | CaState::Loss);
        if !recent || !small || repairs || tp.packets_out == 0 {
            return false;
        }
        let srtt_ns = self.srtt_ns();
        let expected_ns = self.segments.get(tp.snd_una).sent_ns + srtt_ns;
        expected_ns <= now + (srtt_ns / 2).min(NEAR_NS)
    }
}

/// How many numbers at the front follow each other; no more than `most` are looked at.
fn consecutive(numbers: &VecDeque<u32>, most: u32) -> u32 {
    let from = numbers.front().copied().unwrap_or(0);
    (from..)
        .zip(numbers)
        .take(most as usize)
        .take_while(|&(expected, &number)| number == expected)
        .count() as u32
}

#[cfg(test)]
mod tests {
    use super::consecutive;

    #[test]
    fn a_buffer_ends_where_another_subflow_got_what_follows() {
        let first = |numbers: &[u32]| consecutive(&numbers.iter().copied().collect(), 64);
        assert_eq!(first(&[]), 0);
        assert_eq!(first(&[7]), 1);
        assert_eq!(first(&[7, 8, 9, 40, 41]), 3);
        // A segment that is sent again stands for itself.
        assert_eq!(first(&[40, 9, 10]), 1);
        assert_eq!(first(&[9, 10, 11, 12]), 4);
        assert_eq!(consecutive(&[9, 10, 11, 12].into(), 3), 3);
    }
}
