//! Upstream Linux' default (algorithms.md 7.7). It assigns bursts ahead of the congestion window.
//!
//! What it may assign is bounded by send buffers, as in Linux: each subflow's grows with its window, and the connection
//! holds as much unacknowledged data as all of them together. A burst that waits on a slow subflow therefore stops the
//! fast one once the buffer is full.

use super::{Demand, MAX_SUBFLOWS, MIN_BUFFER_PKTS, Pick, Schedule, What};
use crate::tcp::sender::Sender;
use crate::tcp::state::Phase;
use crate::tcp::subflow::Subflow;
use mptcplab_model::sched::{Queue, linger};

/// What Linux adds to a segment when it sizes the buffer: the headers' room and the shared information, rounded up with
/// the segment to a power of two, and the packet's own structure. 2304 bytes for 1428 in all, as read with `ss -tm` on
/// Linux 6.18, where every send buffer was a multiple of it.
const SEGMENT_EXTRA_BYTES: u32 = 576;
const PACKET_STRUCTURE_BYTES: u32 = 256;
/// The least send buffer of the connection, Linux' `tcp_wmem[0]`, which the subflows' come on top of.
const CONNECTION_BUFFER_BYTES: u64 = 4096;

#[derive(Default)]
pub(crate) struct Linger {
    /// Average pacing rate of every subflow, bytes/s; 0 before its first burst.
    average: [u64; MAX_SUBFLOWS],
    /// Send buffer of each subflow in bytes; it never shrinks.
    buffer_bytes: [u64; MAX_SUBFLOWS],
    /// The connection's buffer was full and has not been drained since.
    full: bool,
}

impl Linger {
    /// Segments that the application may write now, while `queued` are not acknowledged at connection level.
    pub(super) fn writable(&mut self, subflows: &[Subflow], queued: u32, mss: u16) -> u32 {
        let buffer = self.send_buffer(subflows, mss);
        // Linux wakes the writer when a third is free (`sk_stream_is_writeable`).
        if queued >= buffer {
            self.full = true;
        } else if queued + queued / 2 <= buffer {
            self.full = false;
        }
        if self.full { 0 } else { buffer - queued }
    }

    /// Segments that the connection's send buffer holds, after the subflows' have followed their windows.
    fn send_buffer(&mut self, subflows: &[Subflow], mss: u16) -> u32 {
        for (buffer, subflow) in self.buffer_bytes.iter_mut().zip(subflows) {
            *buffer = (*buffer).max(wanted_buffer(&subflow.sender, mss));
        }
        let bytes = CONNECTION_BUFFER_BYTES + self.buffer_bytes.iter().sum::<u64>();
        (bytes / u64::from(mss)) as u32
    }
}

/// Linux sizes a subflow's send buffer to twice the congestion window (`tcp_sndbuf_expand`); 0 before it exists.
fn wanted_buffer(s: &Sender, mss: u16) -> u64 {
    if s.phase != Phase::Established {
        return 0;
    }
    let segment = (u32::from(mss) + SEGMENT_EXTRA_BYTES).next_power_of_two();
    let packets = u64::from(s.sock.tp.snd_cwnd.max(MIN_BUFFER_PKTS));
    2 * packets * u64::from(segment + PACKET_STRUCTURE_BYTES)
}

impl Schedule for Linger {
    fn pick(&mut self, subflows: &[Subflow], demand: &Demand) -> Option<Pick> {
        let last = subflows.len() - 1;
        let paths: [Socket; MAX_SUBFLOWS] = std::array::from_fn(|i| Socket {
            sender: &subflows[i.min(last)].sender,
            mss: demand.mss,
            buffer_bytes: self.buffer_bytes[i],
        });
        let mss = u64::from(demand.mss);
        let room = u64::from(demand.backlog().min(demand.room())) * mss;
        let (subflow, burst) = linger(&paths[..subflows.len()], &mut self.average, room)?;
        let segments = ((burst / mss) as u32).max(1);
        Some(Pick {
            subflow,
            what: What::Next(segments),
        })
    }
}

/// A subflow's socket.
struct Socket<'a> {
    sender: &'a Sender,
    mss: u16,
    buffer_bytes: u64,
}

impl Queue for Socket<'_> {
    fn is_usable(&self) -> bool {
        self.sender.is_usable()
    }

    fn is_backup(&self) -> bool {
        self.sender.mptcp.backup
    }

    fn queued_bytes(&self) -> u64 {
        let packets =
            u64::from(self.sender.sock.tp.packets_out) + self.sender.mptcp.assigned.len() as u64;
        packets * u64::from(self.mss)
    }

    fn pacing_bytes_per_s(&self) -> u64 {
        self.sender.default_pacing_rate()
    }

    fn has_send_memory(&self) -> bool {
        self.queued_bytes() < self.buffer_bytes
    }

    /// A subflow that failed is not usable here.
    fn is_stale(&self) -> bool {
        false
    }
}
