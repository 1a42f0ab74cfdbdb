//! The receiving end: in-order delivery, and the time and content of SACKs (RFC 9260 section 6.2).
//!
//! SACKs are delayed also while data are missing, and say how many packets arrived since the last one (DAC). They return
//! over the path of the packet that made them due; one that the timer sends, over that of the latest packet.

use super::chunk::{DATA_HEADER_BYTES, kind};
use crate::net::World;
use crate::net::event::{NEVER, Timer, TimerKind};
use crate::net::packet::{Header, Kind, Packet};
use crate::stream::receiver::ConnectionReceiver;
use mptcplab_scenario::RcvBuffer;
use mptcplab_trace::EventKind;

/// Longest delay of a SACK (`SACK.Delay`, RFC 9260 section 16).
const SACK_DELAY_NS: u64 = 200_000_000;
/// A SACK at least for every second packet.
const SACK_EVERY: u32 = 2;
/// IP (20), SCTP common header (12) and SACK chunk without blocks (16).
const SACK_BYTES: u16 = 48;
/// A gap block.
const BLOCK_BYTES: u16 = 4;
/// The window field is 32 bits; its largest value stands for a receive buffer without limit.
pub(super) const WINDOW_UNLIMITED: u32 = u32::MAX;

/// Counters of arrivals over one path.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Arrived {
    pub(super) packets: u64,
    pub(super) ip_bytes: u64,
    pub(super) payload_bytes: u64,
}

pub(super) struct Receiver {
    index: u32,
    pub(super) data: ConnectionReceiver,
    /// Bytes for data that wait for others; `None` is without limit.
    buffer: Option<u64>,
    /// Gap blocks that fit into a packet.
    max_blocks: usize,
    /// Packets since the last SACK, and the path of the latest.
    pending: u32,
    pub(super) latest: usize,
    pub(super) timer: Timer,
    pub(super) arrived: Vec<Arrived>,
    blocks: Vec<(u32, u32)>,
}

impl Receiver {
    pub(super) fn new(index: u32, buffer: RcvBuffer, mss: u16, paths: usize) -> Self {
        let room = mss + DATA_HEADER_BYTES - SACK_BYTES;
        Self {
            index,
            data: ConnectionReceiver::new(buffer, mss, true),
            buffer: match buffer {
                RcvBuffer::Unlimited => None,
                RcvBuffer::Fixed(bytes)
                | RcvBuffer::FixedMemory(bytes)
                | RcvBuffer::Auto {
                    max_bytes: bytes, ..
                } => Some(bytes),
            },
            max_blocks: usize::from(room / BLOCK_BYTES),
            pending: 0,
            latest: 0,
            timer: Timer::OFF,
            arrived: vec![Arrived::default(); paths],
            blocks: Vec::new(),
        }
    }

    /// The transfer ends with this many chunks, the last one of this payload.
    pub(super) fn expect(&mut self, chunks: u32, last: u16) {
        self.data.expect(chunks, last);
    }

    /// Room for more data beyond the next TSN expected: the application reads at once what is in order.
    pub(super) fn window(&self) -> Option<u64> {
        self.buffer
            .map(|all| all.saturating_sub(self.data.ooo_bytes()))
    }

    pub(super) fn data(&self) -> &ConnectionReceiver {
        &self.data
    }

    /// Longest wait and largest depth of what was delivered since this was asked last.
    pub(super) fn take_largest_wait(&mut self) -> (u64, u64) {
        self.data.reordering.take_largest()
    }

    /// Take in a packet; returns whether a SACK is due now.
    pub(super) fn receive(
        &mut self,
        cx: &mut World,
        flow: u32,
        path: usize,
        packet: &Packet,
    ) -> bool {
        let arrived = &mut self.arrived[path];
        arrived.packets += 1;
        arrived.ip_bytes += u64::from(packet.len());
        arrived.payload_bytes += u64::from(packet.len() - DATA_HEADER_BYTES);
        let duplicates = self.data.duplicates;
        if self.data.on_data(cx, flow, packet.seq()) {
            let bytes = self.data.delivered_bytes();
            cx.rec
                .flow_event(cx.now, EventKind::FlowCompleted, flow, bytes);
        }
        // Chunks out of order count as full ones, also the last one of a transfer.
        let bound = |all| self.data.ooo_bytes() < all + u64::from(self.data.mss());
        debug_assert!(
            self.buffer.is_none_or(bound),
            "the sender keeps to the receiver's window"
        );
        self.pending += 1;
        self.latest = path;
        self.pending >= SACK_EVERY || self.data.duplicates > duplicates
    }

    /// The SACK of the present state, on its way.
    pub(super) fn send_sack(&mut self, cx: &mut World, id: u32) {
        self.blocks.clear();
        self.data.blocks(&mut self.blocks);
        self.blocks.truncate(self.max_blocks);
        let handle = match self.blocks.as_slice() {
            [] => 0,
            blocks => cx.net.gaps.store(blocks),
        };
        let window = self.window().map_or(WINDOW_UNLIMITED, |bytes| {
            bytes.min(u64::from(WINDOW_UNLIMITED - 1)) as u32
        });
        let header = Header {
            seq: self.data.next(),
            dsn: window,
            ts: self.pending,
            sack: handle,
            wnd: kind::SACK,
        };
        let bytes = SACK_BYTES + BLOCK_BYTES * self.blocks.len() as u16;
        cx.net
            .send(cx.now, Packet::new(Kind::OtherBack, id, bytes, header));
        self.pending = 0;
        self.timer.deadline = NEVER;
    }

    pub(super) fn delay_sack(&mut self, cx: &mut World) {
        if self.timer.deadline == NEVER {
            let at = cx.now + SACK_DELAY_NS;
            cx.timers
                .set(&mut self.timer, at, TimerKind::DelayedSack, self.index);
        }
    }
}
