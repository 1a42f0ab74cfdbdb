//! Upstream Linux' scheduler: the subflow whose queued data would be gone first at its pacing rate (`mptcp_subflow_get_send` in
//! net/mptcp/protocol.c). It assigns bursts ahead of the congestion window.
//!
//! Assignments are bounded by send buffers, as in Linux: each subflow's grows with the window that it does not fill, and the
//! connection holds as much unacknowledged data as all of them together. A burst that waits on a slow subflow therefore stops the
//! fast one once the buffer is full. The application writes, and a subflow gets, whole chunks: both buffers may take one that
//! they only have room to begin.

use super::declare::{Declaration, SchedulerConfig};
use super::path::{MAX_SUBFLOWS, Path};
use super::schedule::{Assignment, DSN_MAX, MIN_BUFFER_PKTS, Schedule, Segments, SendQueue};

/// Largest burst that a subflow gets before the next decision (Linux `MPTCP_SEND_BURST_SIZE`).
pub const BURST_BYTES: u64 = 65_428;
/// Bytes of a chunk: Linux keeps application data in page fragments of 32,768 bytes, each behind a `struct mptcp_data_frag`.
pub const CHUNK_BYTES: u64 = 32_768 - 40;
/// Linux adds this to a segment when it sizes the buffer: room for headers and the shared information, rounded up with the
/// segment to a power of two, and the packet's own structure. 2304 bytes for 1428 in all, as read with `ss -tm` on
/// Linux 6.18, where every send buffer was a multiple of it.
const SEGMENT_EXTRA_BYTES: u32 = 576;
const PACKET_STRUCTURE_BYTES: u32 = 256;
/// Memory that Linux counts for a sent buffer besides its data (`truesize`): on Linux 7.3, socket diagnostics showed 320 to 560
/// bytes for each segment that was sent, in buffers of two and three.
const BUFFER_EXTRA_BYTES: u64 = 960;
/// The least send buffer of the connection, Linux' `tcp_wmem[0]`, which the subflows' come on top of.
const CONNECTION_BUFFER_BYTES: u64 = 4096;

/// Pacing rates and send buffers.
#[derive(Default)]
pub struct Linger {
    /// Average pacing rate of every subflow, bytes/s; 0 before its first burst.
    average: [u64; MAX_SUBFLOWS],
    /// Send buffer of each subflow in bytes; it never shrinks while the subflow exists.
    buffer_bytes: [u64; MAX_SUBFLOWS],
    /// First data sequence number that the application has not written.
    written: u32,
    /// The application found the connection's buffer full, and waits until a third of it is free.
    waits: bool,
    /// It still waited when it could last have been woken up (Linux `SOCK_NOSPACE`).
    has_no_space: bool,
}

impl Linger {
    /// The application writes chunks until the connection's send buffer is full, but not before Linux wakes it
    /// (`sk_stream_is_writeable`).
    fn write<P: Path>(&mut self, subflows: &[P], queue: &SendQueue) {
        let buffer = self.send_buffer(subflows, queue.mss);
        let queued = |end: u32| u64::from(end.saturating_sub(queue.una)) * u64::from(queue.mss);
        self.written = self.written.clamp(queue.next, queue.written);
        self.waits &= queued(self.written) * 3 > buffer * 2;
        self.has_no_space = self.waits;
        while !self.waits && self.written < queue.written {
            self.waits = queued(self.written) >= buffer;
            if !self.waits {
                self.written = chunk_end(self.written, queue.mss).min(queue.written);
            }
        }
    }

    /// Bytes that the connection's send buffer holds.
    fn send_buffer<P: Path>(&mut self, subflows: &[P], mss: u16) -> u64 {
        for (buffer, subflow) in self.buffer_bytes.iter_mut().zip(subflows) {
            *buffer = if subflow.is_established() {
                (*buffer).max(buffer_for(MIN_BUFFER_PKTS, mss))
            } else {
                // Before it exists, and once it has been removed (`__mptcp_sync_sndbuf`).
                0
            };
        }
        CONNECTION_BUFFER_BYTES + self.buffer_bytes.iter().sum::<u64>()
    }
}

/// The first data sequence number after the chunk that contains this one.
pub fn chunk_end(dsn: u32, mss: u16) -> u32 {
    first_of_chunk(chunk(dsn, mss) + 1, mss)
}

/// The number of the chunk that contains this data sequence number.
fn chunk(dsn: u32, mss: u16) -> u64 {
    u64::from(dsn) * u64::from(mss) / CHUNK_BYTES
}

/// The first data sequence number that begins in a chunk.
fn first_of_chunk(chunk: u64, mss: u16) -> u32 {
    (chunk * CHUNK_BYTES)
        .div_ceil(mss.into())
        .min(DSN_MAX.into()) as u32
}

/// Linux sizes a subflow's send buffer to twice the congestion window (`tcp_sndbuf_expand`).
fn buffer_for(cwnd: u32, mss: u16) -> u64 {
    let segment = (u32::from(mss) + SEGMENT_EXTRA_BYTES).next_power_of_two();
    let packets = u64::from(cwnd.max(MIN_BUFFER_PKTS));
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
                     next burst, two chunks of 32 kB. The congestion window does not limit a burst; only the send \
                     buffer does.",
                ),
                (
                    "Rules",
                    "Pick the subflow with the least queued/avg_pacing, and give it burst = min(65428, window) bytes. \
                     Then avg_pacing = (avg_pacing queued + pacing burst)/(queued + burst). The burst ends with the \
                     chunk (32728 bytes) that completes it or that fills the subflow's send buffer. Pick none while \
                     that buffer is full. It is sized for twice the largest window with which the subflow had too \
                     little to send while the application waited. The application writes chunks until the \
                     connection's send buffer, the sum of the subflows', is full, and then waits until a third of \
                     it is free.",
                ),
                (
                    "Deviations",
                    "The memory around data that have been sent is that of buffers of full size, and the connection's \
                     buffer has none.",
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
        let room = u64::from(queue.room()) * mss;
        let (subflow, burst) = linger(&sockets[..subflows.len()], &mut self.average, room)?;
        Some(Assignment {
            subflow,
            segments: Segments::New(sockets[subflow].end_of_burst(burst, queue) - queue.next),
        })
    }

    fn buffer_end<P: Path>(&mut self, subflows: &[P], queue: &SendQueue) -> u32 {
        self.write(subflows, queue);
        self.written
    }

    /// A subflow's send buffer follows its window only while the application waits for room, and the subflow has too little to
    /// fill its window (`tcp_should_expand_sndbuf`): while it works on a backlog, its window may grow beyond the buffer.
    #[inline]
    fn note_pushed<P: Path>(&mut self, index: usize, subflow: &P, mss: u16) {
        if self.has_no_space && subflow.is_established() && subflow.inflight() < subflow.cwnd() {
            let buffer = &mut self.buffer_bytes[index];
            *buffer = (*buffer).max(buffer_for(subflow.cwnd(), mss));
        }
    }
}

/// A subflow's socket with its send buffer.
struct Socket<'a, P> {
    subflow: &'a P,
    mss: u64,
    buffer_bytes: u64,
}

impl<P: Path> Socket<'_, P> {
    /// Where a burst of so many bytes ends: with a chunk (`__subflow_push_pending`).
    fn end_of_burst(&self, burst: u64, queue: &SendQueue) -> u32 {
        // In bytes of chunks: two of them are a burst, though the 45 segments that may begin in them are less.
        let first = first_of_chunk(chunk(queue.next, queue.mss), queue.mss);
        let begun = u64::from(queue.next - first) * self.mss;
        let (mut end, mut chunks_bytes) = (queue.next, 0);
        loop {
            end = chunk_end(end, queue.mss);
            chunks_bytes += CHUNK_BYTES;
            let given = chunks_bytes - begun;
            let full = self.queued_bytes() + given >= self.buffer_bytes;
            if given >= burst || full || end >= queue.written {
                return end;
            }
        }
    }
}

impl<P: Path> Queue for Socket<'_, P> {
    fn is_usable(&self) -> bool {
        self.subflow.is_usable()
    }

    fn is_backup(&self) -> bool {
        self.subflow.is_backup()
    }

    /// What is queued, and the memory around what has been sent, which is in buffers of at least two segments and up to a
    /// millisecond of the pacing rate.
    fn queued_bytes(&self) -> u64 {
        let buffer_segments = ((self.pacing_bytes_per_s() >> 10) / self.mss).max(2);
        let around = u64::from(self.subflow.inflight()) * BUFFER_EXTRA_BYTES / buffer_segments;
        u64::from(self.subflow.unacked_pkts()) * self.mss + around
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
