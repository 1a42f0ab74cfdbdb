//! The fast machine: the departure of a packet is computed when it arrives.
//!
//! Works where nothing that happens later can change it: constant rate and delay, decisions on arrival (drop-tail in
//! packets or bytes, random loss, RED). One ring holds the propagating packets, the one in service and the waiting ones,
//! in this order; `serving` is the position of the one in service and is brought up to date only when someone asks.

use crate::loss::LossProcess;
use crate::red::{IDLE_PACKET_BYTES, Red};
use crate::ring::Ring;
use crate::rng::Rng;
use crate::service::{Instant, Rate};
use crate::{Aqm, Counters, LinkConfig, LinkStats, Packet, QueueLimit, Verdict};

#[derive(Debug)]
pub(crate) struct Fused<P> {
    /// With fewer packets than this waiting or in service there is room, and nobody need ask; all the more with fewer in
    /// the ring, whatever has departed.
    ask_from: usize,
    ring: Ring<P>,
    /// A fast one.
    rate: Rate,
    /// When the last accepted packet is fully serialised.
    free: Instant,
    delay_ns: u64,
    overhead_bytes: u32,
    /// Position in the ring of the first packet that is not known to be fully serialised.
    serving: usize,
    counters: Counters,
    loss: LossProcess,
    limit: QueueLimit,
    /// Layer-2 bytes of the packets in service and waiting.
    backlog_bytes: u64,
    red: Option<Box<Red>>,
}

impl<P: Packet> Fused<P> {
    /// `None` where the configuration needs the general machine.
    pub(crate) fn new(config: &LinkConfig, rng: &Rng) -> Option<Self> {
        let on_arrival = matches!(config.aqm, Aqm::DropTail | Aqm::Red { .. });
        let in_order = config.reorder.is_none();
        if !on_arrival || !in_order || !config.schedule.is_empty() || config.trace.is_some() {
            return None;
        }
        let rate = Rate::new(config.rate_bps);
        if !rate.is_fast() {
            return None;
        }
        let red = Red::new(config, rng).map(Box::new);
        let ask_from = match config.queue {
            _ if red.is_some() => 0,
            QueueLimit::Packets(limit) => limit as usize + 1,
            QueueLimit::Bytes(_) => 1,
            QueueLimit::Unlimited => usize::MAX,
        };
        Some(Self {
            ask_from,
            ring: Ring::new(),
            rate,
            free: Instant::ZERO,
            delay_ns: config.delay_ns,
            overhead_bytes: config.overhead_bytes,
            serving: 0,
            counters: Counters::default(),
            loss: LossProcess::new(config.loss, rng.fork("loss")),
            limit: config.queue,
            backlog_bytes: 0,
            red,
        })
    }

    #[inline]
    pub(crate) fn enqueue(&mut self, now: u64, mut packet: P, next_ns: &mut u64) -> Verdict {
        self.counters.arrived += 1;
        if self.loss.loses() {
            self.counters.dropped_random += 1;
            return Verdict::LostRandom;
        }
        let bytes = self.bytes(&packet);
        if self.ring.len() >= self.ask_from && !self.has_room(now, bytes, &mut packet) {
            self.counters.dropped_queue += 1;
            return Verdict::LostQueue;
        }
        let start = self.free.max(Instant::from_ns(now));
        self.free = self.rate.finish_fast(start, bytes);
        self.counters.waited(start.ns() - now);
        self.backlog_bytes += u64::from(bytes);
        let deliver_ns = self.free.ns() + self.delay_ns;
        *next_ns = deliver_ns.min(*next_ns);
        self.ring.push(deliver_ns, packet);
        self.check();
        Verdict::Queued
    }

    #[inline]
    pub(crate) fn poll(&mut self, now: u64, next_ns: &mut u64) -> Option<P> {
        if now < *next_ns {
            return None;
        }
        let position = self.ring.head();
        let packet = self.ring.pop()?;
        self.counters.delivered += 1;
        if position == self.serving {
            self.serve_next(self.bytes(&packet));
        }
        *next_ns = self.ring.next_ns();
        self.check();
        Some(packet)
    }

    pub(crate) fn stats(&mut self, now: u64) -> LinkStats {
        self.advance(now);
        let propagating = self.ring.len() - self.unsent();
        let departed_pkts = self.counters.delivered + propagating as u64;
        let (waiting, waiting_bytes) = (self.waiting(), self.waiting_bytes());
        self.counters.report(waiting, waiting_bytes, departed_pkts)
    }

    pub(crate) fn in_transit(&self) -> u64 {
        self.ring.len() as u64
    }

    pub(crate) fn delivered_pkts(&self) -> u64 {
        self.counters.delivered
    }

    /// Layer-2 length.
    #[inline]
    fn bytes(&self, packet: &P) -> u32 {
        packet.ip_bytes() + self.overhead_bytes
    }

    /// The packet in service, of this length, has ended.
    #[inline]
    fn serve_next(&mut self, bytes: u32) {
        self.backlog_bytes -= u64::from(bytes);
        self.counters.departed_bytes += u64::from(bytes);
        self.serving = self.serving.wrapping_add(1);
    }

    /// Bring `serving` up to date.
    #[inline]
    fn advance(&mut self, now: u64) {
        let horizon = now + self.delay_ns;
        while self.serving != self.ring.tail()
            && let Some((deliver_ns, packet)) = self.ring.get(self.serving)
            && deliver_ns <= horizon
        {
            self.serve_next(self.bytes(packet));
        }
    }

    /// Packets in service and behind it, as of the last `advance`.
    #[inline]
    fn unsent(&self) -> usize {
        self.ring.tail().wrapping_sub(self.serving)
    }

    /// Packets behind the one in service, as of the last `advance`.
    fn waiting(&self) -> usize {
        self.unsent().saturating_sub(1)
    }

    /// Their layer-2 bytes.
    fn waiting_bytes(&self) -> u64 {
        let in_service = if self.unsent() == 0 {
            None
        } else {
            self.ring.get(self.serving)
        };
        self.backlog_bytes - in_service.map_or(0, |(_, packet)| u64::from(self.bytes(packet)))
    }

    /// Whether the queue takes this packet now; RED may mark it.
    #[inline]
    fn has_room(&mut self, now: u64, bytes: u32, packet: &mut P) -> bool {
        self.advance(now);
        self.unsent() < self.ask_from || self.admit(now, bytes, packet)
    }

    /// The decision that needs more than the number of packets.
    #[inline(never)]
    fn admit(&mut self, now: u64, bytes: u32, packet: &mut P) -> bool {
        let idle = self.unsent() == 0;
        let waiting = self.waiting();
        let room = idle
            || self
                .limit
                .holds(waiting + 1, self.waiting_bytes() + u64::from(bytes));
        let Some(red) = &mut self.red else {
            return room;
        };
        let idle_ns = now.saturating_sub(self.free.ns());
        let idle_pkts = if idle {
            self.rate.packets_within(idle_ns, IDLE_PACKET_BYTES)
        } else {
            0
        };
        let marked = &mut self.counters.marked;
        red.lets_in((waiting, idle_pkts), room, packet, marked)
    }

    #[inline]
    fn check(&self) {
        self.counters.check(self.ring.len() as u64);
    }
}
