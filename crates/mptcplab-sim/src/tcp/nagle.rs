//! Nagle's algorithm as in Linux, with Minshall's change: the last segment of what there is to send waits, if it is not full, until
//! an earlier one that was not full is acknowledged (`tcp_nagle_check`, `tcp_minshall_check`).
//!
//! All segments of the simulator are full. The data of an MPTCP connection, however, are divided among its subflows in bursts that
//! often end within a segment, because buffers and receive windows are counted in bytes. The last segment of such a burst counts
//! as one that is not full. While it waits, all that the other subflows have delivered waits for it as well.

use super::sender::Sender;

impl Sender {
    /// A burst from data sequence number `first` up to `end` follows. If it goes on with what the subflow has, the segment before is
    /// full after all: bursts to one subflow leave together (`mptcp_push_release`).
    pub(crate) fn note_burst(&mut self, now: u64, first: u32, end: u32, ends_whole: bool) {
        if self.last_sent_ns == now && self.sent_small_last() && self.last_dsn() + 1 == first {
            self.small.end = self.small.earlier_end;
        }
        self.small.burst_end = (!ends_whole).then_some(end);
    }

    fn sent_small_last(&self) -> bool {
        let tp = &self.sock.tp;
        self.small.end == tp.snd_nxt && tp.snd_nxt > tp.snd_una
    }

    fn last_dsn(&self) -> u32 {
        self.segments.get(self.sock.tp.snd_nxt - 1).dsn
    }

    /// Whether the only segment that the connection has given to this subflow waits for an ACK.
    #[inline]
    pub(crate) fn holds_small(&self) -> bool {
        self.small.end > self.sock.tp.snd_una
            && self.mptcp.assigned.len() == 1
            && self.mptcp.assigned.front().map(|dsn| dsn + 1) == self.small.burst_end
    }

    /// The segment with this data sequence number, which the connection had given to this subflow, was sent.
    #[inline]
    pub(crate) fn note_sent_assigned(&mut self, dsn: u32) {
        if self.small.burst_end == Some(dsn + 1) {
            self.small.earlier_end = self.small.end;
            self.small.end = self.sock.tp.snd_nxt;
        }
    }
}
