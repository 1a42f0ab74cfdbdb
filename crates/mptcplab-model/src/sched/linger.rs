//! Upstream Linux' scheduler: the subflow whose queued data would be gone first at its pacing rate (`mptcp_subflow_get_send` in
//! net/mptcp/protocol.c). It assigns bursts ahead of the congestion window.
//!
//! Assignments are bounded by send buffers, as in Linux: each subflow's grows with its window, and the connection
//! holds as much unacknowledged data as all of them together. A burst that waits on a slow subflow therefore stops the
//! fast one once the buffer is full.

use super::declare::{Declaration, SchedulerConfig};
use super::path::{MAX_SUBFLOWS, Path};
use super::schedule::{Assignment, MIN_BUFFER_PKTS, Schedule, Segments, SendQueue};

/// Largest burst that a subflow gets before the next decision (Linux `MPTCP_SEND_BURST_SIZE`).
pub const BURST_BYTES: u64 = 65_428;
/// Linux adds this to a segment when it sizes the buffer: room for headers and the shared information, rounded up with the
/// segment to a power of two, and the packet's own structure. 2304 bytes for 1428 in all, as read with `ss -tm` on
/// Linux 6.18, where every send buffer was a multiple of it.
const SEGMENT_EXTRA_BYTES: u32 = 576;
const PACKET_STRUCTURE_BYTES: u32 = 256;
/// The least send buffer of the connection, Linux' `tcp_wmem[0]`, which the subflows' come on top of.
const CONNECTION_BUFFER_BYTES: u64 = 4096;

/// Pacing rates and send buffers.
#[derive(Default)]
pub struct Linger {
    /// Average pacing rate of every subflow, bytes/s; 0 before its first burst.
    average: [u64; MAX_SUBFLOWS],
    /// Send buffer of each subflow in bytes; it never shrinks.
    buffer_bytes: [u64; MAX_SUBFLOWS],
    /// The connection's buffer was full and has not been drained since.
    full: bool,
}

impl Linger {
    /// Segments that the application may write now, while `queued` are not acknowledged at connection level.
    fn writable<P: Path>(&mut self, subflows: &[P], queued: u32, mss: u16) -> u32 {
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
    fn send_buffer<P: Path>(&mut self, subflows: &[P], mss: u16) -> u32 {
        for (buffer, subflow) in self.buffer_bytes.iter_mut().zip(subflows) {
            *buffer = (*buffer).max(wanted_buffer(subflow, mss));
        }
        let bytes = CONNECTION_BUFFER_BYTES + self.buffer_bytes.iter().sum::<u64>();
        (bytes / u64::from(mss)) as u32
    }
}

/// Linux sizes a subflow's send buffer to twice the congestion window (`tcp_sndbuf_expand`); 0 before it exists.
fn wanted_buffer<P: Path>(subflow: &P, mss: u16) -> u64 {
    if !subflow.is_established() {
        return 0;
    }
    let segment = (u32::from(mss) + SEGMENT_EXTRA_BYTES).next_power_of_two();
    let packets = u64::from(subflow.cwnd().max(MIN_BUFFER_PKTS));
    2 * packets * u64::from(segment + PACKET_STRUCTURE_BYTES)
}

impl Schedule for Linger {
    const IS_UPSTREAM: bool = true;

    fn declaration() -> Declaration {
        Declaration {
            name: "linger",
            title: "the scheduler of upstream Linux: the subflow that will have sent its queued data first",
            sections: vec![
                (
                    "Idea",
                    "The subflow whose send queue would be the first to empty, at its average pacing rate, gets the \
                     next burst of up to 64 kB. The congestion window does not limit a burst; only the send buffer \
                     does.",
                ),
                (
                    "Rules",
                    "Pick the subflow with the least queued/avg_pacing, and give it burst = min(65428, window) bytes. \
                     Then avg_pacing = (avg_pacing queued + pacing burst)/(queued + burst). Pick none while the send \
                     buffer of that subflow or of the connection is full.",
                ),
                (
                    "Deviations",
                    "The size of a send buffer follows the windows as in the kernel, but counts only payload, while \
                     the kernel also counts the memory around it. A subflow whose send buffer has any room when it is \
                     picked gets the whole burst, even if that is more than the room.",
                ),
                (
                    "Reference",
                    "Linux net/mptcp/protocol.c, mptcp_subflow_get_send.",
                ),
            ],
            params: Vec::new(),
            ordered: None,
        }
    }

    fn new(_config: &SchedulerConfig) -> Self {
        Self::default()
    }

    fn pick<P: Path>(&mut self, subflows: &[P], queue: &SendQueue) -> Option<Assignment> {
        let last = subflows.len() - 1;
        let mss = u64::from(queue.mss);
        let sockets: [Socket<'_, P>; MAX_SUBFLOWS] = std::array::from_fn(|i| Socket {
            subflow: &subflows[i.min(last)],
            mss,
            buffer_bytes: self.buffer_bytes[i],
        });
        let room = u64::from(queue.backlog().min(queue.room())) * mss;
        let (subflow, burst) = linger(&sockets[..subflows.len()], &mut self.average, room)?;
        let segments = ((burst / mss) as u32).max(1);
        Some(Assignment {
            subflow,
            segments: Segments::New(segments),
        })
    }

    fn buffer_end<P: Path>(&mut self, subflows: &[P], queue: &SendQueue) -> u32 {
        let writable = self.writable(subflows, queue.outstanding(), queue.mss);
        queue.written.min(queue.next.saturating_add(writable))
    }
}

/// A subflow's socket with its send buffer.
struct Socket<'a, P> {
    subflow: &'a P,
    mss: u64,
    buffer_bytes: u64,
}

impl<P: Path> Queue for Socket<'_, P> {
    fn is_usable(&self) -> bool {
        self.subflow.is_usable()
    }

    fn is_backup(&self) -> bool {
        self.subflow.is_backup()
    }

    fn queued_bytes(&self) -> u64 {
        u64::from(self.subflow.unacked_pkts()) * self.mss
    }

    fn pacing_bytes_per_s(&self) -> u64 {
        self.subflow.pacing_bytes_per_s()
    }

    fn has_send_memory(&self) -> bool {
        self.queued_bytes() < self.buffer_bytes
    }

    /// A subflow that failed is not usable here.
    fn is_stale(&self) -> bool {
        false
    }
}

/// A subflow's socket as the scheduler sees it: the send queue instead of the window.
pub trait Queue {
    /// Established, fourth ACK seen, not failed.
    fn is_usable(&self) -> bool;
    /// Only for when no regular subflow is usable.
    fn is_backup(&self) -> bool;
    /// Bytes in the send queue: given to the subflow and not acknowledged.
    fn queued_bytes(&self) -> u64;
    /// The socket's pacing rate in bytes/s; 0 before the first RTT sample.
    fn pacing_bytes_per_s(&self) -> u64;
    /// The send buffer has room.
    fn has_send_memory(&self) -> bool;
    /// Data had to be sent again on another subflow, and this one has not moved since.
    fn is_stale(&self) -> bool;
}

/// Pick a subflow, and how many bytes it gets before the next pick: at most `room_bytes`, what the receive window admits.
/// `average` has every subflow's average pacing rate; those of new subflows are set, that of the picked one is moved.
pub fn linger<P: Queue>(paths: &[P], average: &mut [u64], room_bytes: u64) -> Option<(usize, u64)> {
    let takes_part = |p: &P| p.is_usable() && !p.is_stale();
    let backups = !paths.iter().any(|p| takes_part(p) && !p.is_backup());
    let mut best: Option<(usize, u128, u128)> = None;
    for (i, path) in paths.iter().enumerate().filter(|(_, p)| takes_part(p)) {
        if average[i] == 0 {
            average[i] = path.pacing_bytes_per_s();
        }
        let (queued, pace) = (u128::from(path.queued_bytes()), u128::from(average[i]));
        // queued / pace < best queued / best pace, without rounding.
        let sooner = best.is_none_or(|(_, q, p)| queued * p < q * pace);
        if path.is_backup() == backups && pace > 0 && sooner {
            best = Some((i, queued, pace));
        }
    }
    let (i, queued, pace) = best?;
    if !paths[i].has_send_memory() {
        return None;
    }
    let burst = BURST_BYTES.min(room_bytes);
    if burst > 0 {
        let (burst, now) = (u128::from(burst), u128::from(paths[i].pacing_bytes_per_s()));
        // A mean of two rates lies between them.
        average[i] = ((pace * queued + now * burst) / (queued + burst)) as u64;
    }
    Some((i, burst))
}
