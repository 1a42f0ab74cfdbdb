//! One subflow's receiver: in-order tracking, SACK and D-SACK blocks, delayed ACKs, ECN echo.

use crate::event::{NEVER, Timer, TimerKind};
use crate::net::{MAX_BLOCKS, SackBlocks, World};
use crate::packet::{Header, Kind, Packet};
use crate::reassembly::{Arrival, Reassembly};

/// Longest delay of an ACK, Linux' `TCP_DELACK_MIN`.
const DELAYED_ACK_NS: u64 = 40_000_000;
/// Segments acknowledged at once at the start of a connection, Linux' `TCP_MAX_QUICKACKS`.
const QUICK_ACKS: u32 = 16;

/// Constants of a receiver.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ReceiverConfig {
    /// Every second segment and a timer, instead of every segment.
    pub(crate) delayed_acks: bool,
    /// IP bytes of an ACK without SACK blocks.
    pub(crate) ack_bytes: u16,
    /// SACK blocks that fit beside the other options.
    pub(crate) max_blocks: u8,
    /// Bytes of a data packet that are not payload.
    pub(crate) data_header: u16,
    /// Index of the connection.
    pub(crate) conn: u32,
    /// First link of the reverse path.
    pub(crate) entry: u32,
}

pub(crate) struct Receiver {
    pub(crate) order: Reassembly,
    pub(crate) config: ReceiverConfig,
    id: u32,
    /// Blocks above `order.next()`, most recently changed first.
    blocks: [(u32, u32); MAX_BLOCKS],
    n_blocks: usize,
    duplicate: Option<u32>,
    /// Timestamp to echo (RFC 7323 section 4.3).
    ts_recent: u32,
    last_ack_sent: u32,
    unacked: u32,
    quick_acks: u32,
    pub(crate) timer: Timer,
    /// Echo congestion until the sender says that it reduced.
    echo: bool,
    pub(crate) packets: u64,
    pub(crate) ip_bytes: u64,
    pub(crate) payload_bytes: u64,
}

/// Whether an ACK is due now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AckPolicy {
    Now,
    Later,
}

impl Receiver {
    pub(crate) fn new(id: u32, config: ReceiverConfig) -> Self {
        Self {
            order: Reassembly::default(),
            config,
            id,
            blocks: [(0, 0); MAX_BLOCKS],
            n_blocks: 0,
            duplicate: None,
            ts_recent: 0,
            last_ack_sent: 0,
            unacked: 0,
            quick_acks: QUICK_ACKS,
            timer: Timer::OFF,
            echo: false,
            packets: 0,
            ip_bytes: 0,
            payload_bytes: 0,
        }
    }

    /// Take in a data packet at subflow level.
    #[inline]
    pub(crate) fn on_data(&mut self, packet: &Packet) -> AckPolicy {
        self.packets += 1;
        self.ip_bytes += u64::from(packet.len());
        self.payload_bytes += u64::from(packet.len() - self.config.data_header);
        let news = packet.has_ecn_news() && self.note_ecn(packet);
        if packet.seq() <= self.last_ack_sent {
            self.ts_recent = packet.ts();
        }
        let had_gap = self.order.held() > 0;
        match self.order.insert(packet.seq()) {
            Arrival::InOrder(_) => {
                if had_gap {
                    self.forget_blocks_in_order();
                    return AckPolicy::Now;
                }
                self.unacked += 1;
                if !self.config.delayed_acks || self.unacked >= 2 || news {
                    return AckPolicy::Now;
                }
                if self.quick_acks > 0 {
                    self.quick_acks -= 1;
                    return AckPolicy::Now;
                }
                AckPolicy::Later
            }
            Arrival::OutOfOrder => {
                self.note_block(packet.seq());
                AckPolicy::Now
            }
            Arrival::Duplicate => {
                self.duplicate = Some(packet.seq());
                AckPolicy::Now
            }
        }
    }

    /// Congestion marks and the sender's answer to them (RFC 3168 section 6.1.3). Returns whether an echo begins.
    fn note_ecn(&mut self, packet: &Packet) -> bool {
        let begins = packet.is_ce() && !self.echo;
        if packet.is_ce() {
            self.echo = true;
        } else if packet.echo() {
            self.echo = false;
        }
        begins
    }

    /// Start the delayed ACK timer unless it runs.
    #[inline]
    pub(crate) fn delay_ack(&mut self, cx: &mut World) {
        if self.timer.deadline == NEVER {
            cx.timers.set(
                &mut self.timer,
                cx.now + DELAYED_ACK_NS,
                TimerKind::DelayedAck,
                self.id,
            );
        }
    }

    /// Build the ACK for the current state.
    #[inline]
    pub(crate) fn make_ack(&mut self, cx: &mut World, data_ack: u32, window: u16) -> Packet {
        let next = self.order.next();
        let (sack, sack_bytes) = if self.n_blocks > 0 || self.duplicate.is_some() {
            self.store_blocks(cx)
        } else {
            (0, 0)
        };
        let header = Header {
            seq: next,
            dsn: data_ack,
            ts: self.ts_recent,
            sack,
            wnd: window,
        };
        let mut ack = Packet::new(
            Kind::Ack,
            self.id,
            self.config.ack_bytes + sack_bytes,
            header,
        );
        if self.echo {
            ack.set_echo();
        }
        self.last_ack_sent = next;
        self.unacked = 0;
        self.timer.deadline = NEVER;
        ack
    }

    /// Put the SACK option into the side table; returns its handle and its length.
    fn store_blocks(&mut self, cx: &mut World) -> (u32, u16) {
        let mut sack = SackBlocks::default();
        if let Some(seq) = self.duplicate.take() {
            sack.push((seq, seq + 1));
            sack.dsack = true;
        }
        for &block in &self.blocks[..self.n_blocks] {
            if sack.len < self.config.max_blocks {
                sack.push(block);
            }
        }
        // RFC 2018: kind, length and two no-ops, then 8 bytes a block.
        let bytes = 4 + 8 * u16::from(sack.len);
        (cx.net.sacks.store(sack), bytes)
    }

    /// A segment arrived beyond a gap: its block comes first (RFC 2018 section 4).
    fn note_block(&mut self, seq: u32) {
        let mut merged = (seq, seq + 1);
        let mut kept = [(0, 0); MAX_BLOCKS];
        let mut n = 0;
        for &(start, end) in &self.blocks[..self.n_blocks] {
            if start <= merged.1 && merged.0 <= end {
                merged = (merged.0.min(start), merged.1.max(end));
            } else {
                kept[n] = (start, end);
                n += 1;
            }
        }
        self.blocks[0] = merged;
        let room = n.min(MAX_BLOCKS - 1);
        self.blocks[1..=room].copy_from_slice(&kept[..room]);
        self.n_blocks = 1 + room;
    }

    /// Blocks now below the cumulative ACK are not reported any more.
    fn forget_blocks_in_order(&mut self) {
        let next = self.order.next();
        let mut n = 0;
        for i in 0..self.n_blocks {
            if self.blocks[i].1 > next {
                self.blocks[n] = self.blocks[i];
                n += 1;
            }
        }
        self.n_blocks = n;
    }
}
