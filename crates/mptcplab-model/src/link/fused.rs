//! The fast machine: the departure of a packet is computed when it arrives.
//!
//! This works if no later event can change it: constant rate and delay, decisions on arrival (drop-tail in
//! packets or bytes, random loss, RED). One ring holds the propagating packets, the one in service and the waiting ones,
//! in this order; `serving` is the position of the one in service and is updated only on demand.
//! The queue is checked for room for several packets at a time.

use crate::link::lookahead::{LOST, Lookahead, Passing};
use crate::link::loss::LossProcess;
use crate::link::red::{IDLE_PACKET_BYTES, Red};
use crate::link::ring::Ring;
use crate::link::rng::Rng;
use crate::link::service::{Instant, Rate};
use crate::link::{Aqm, Counters, LinkConfig, LinkStats, Packet, QueueLimit, Verdict};
use std::ops::Range;

/// One check for room tries to cover so many packets, or so many.
const AT_ONCE: [u64; 2] = [64, 16];

#[derive(Debug)]
pub(crate) struct Fused<P> {
    ring: Ring<P>,
    /// Packets at positions before this one are accepted without a check: the queue and the ring have room for them, whatever
    /// has departed, and they are known not to be lost at random.
    check_at: u64,
    /// When the last accepted packet is fully serialised.
    free: Instant,
    /// Serialisation time of packets like the last one: nearly all on a link have one size.
    last: Serialisation,
    delay_ns: u64,
    /// Bytes of all packets accepted so far, as IP packets.
    accepted_ip_bytes: u64,
    /// The same for the packets before `serving`, and for those taken from the ring.
    served_ip_bytes: u64,
    /// Position in the ring of the first packet that is not known to be fully serialised; it may lag behind the ring's head.
    serving: u64,
    /// `arrived`, `delivered` and `departed_bytes` are known from the positions and are counted only for `stats` and, in
    /// debug builds, to check conservation.
    pub(crate) counters: Counters,
    /// With fewer packets than this waiting or in service there is room; 0 with RED, which decides on each arrival.
    check_from: u64,
    /// Fast, see [`Rate::is_fast`].
    rate: Rate,
    overhead_bytes: u32,
    loss: LossProcess,
    limit: QueueLimit,
    red: Option<Box<Red>>,
    /// Decides and counts where packets are known before they arrive; then the ring holds only packets that will be delivered.
    lookahead: Option<Box<Lookahead>>,
}

/// A packet length and its serialisation time.
#[derive(Debug, Clone, Copy)]
struct Serialisation {
    ip_bytes: u32,
    /// In 2^-16 ns.
    duration: u64,
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
        let check_from = match config.queue {
            _ if red.is_some() => 0,
            QueueLimit::Packets(limit) => u64::from(limit) + 1,
            QueueLimit::Bytes(_) => 1,
            QueueLimit::Unlimited => u64::MAX,
        };
        Some(Self {
            ring: Ring::new(),
            check_at: 0,
            free: Instant::ZERO,
            last: Serialisation {
                ip_bytes: 0,
                duration: rate.duration_fast(config.overhead_bytes),
            },
            delay_ns: config.delay_ns,
            accepted_ip_bytes: 0,
            served_ip_bytes: 0,
            serving: 0,
            counters: Counters::default(),
            check_from,
            rate,
            overhead_bytes: config.overhead_bytes,
            loss: LossProcess::new(config.loss, rng.fork("loss")),
            limit: config.queue,
            red,
            lookahead: None,
        })
    }

    /// Whether the fate of a packet may be decided before it arrives.
    pub(crate) fn can_look_ahead(&self) -> bool {
        // RED marks packets.
        self.red.is_none()
    }

    /// From now on packets come by [`enqueue_ahead`](Self::enqueue_ahead). There has been none.
    pub(crate) fn look_ahead(&mut self) {
        let machine = Fused {
            ring: Ring::<Passing>::new(),
            check_at: self.check_at,
            free: self.free,
            last: self.last,
            delay_ns: self.delay_ns,
            accepted_ip_bytes: 0,
            served_ip_bytes: 0,
            serving: 0,
            counters: Counters::default(),
            check_from: self.check_from,
            rate: self.rate,
            overhead_bytes: self.overhead_bytes,
            loss: self.loss.clone(),
            limit: self.limit,
            red: None,
            lookahead: None,
        };
        self.lookahead = Some(Box::new(Lookahead::new(machine)));
    }

    /// A packet arrives at `at`, which is `now` or later. Returns when it is delivered; [`LOST`] if it is dropped.
    #[inline(always)]
    pub(crate) fn enqueue_ahead(&mut self, now: u64, at: u64, ip_bytes: u16) -> u64 {
        match &mut self.lookahead {
            Some(lookahead) => lookahead.enqueue(now, at, ip_bytes),
            None => LOST,
        }
    }

    /// Keep a packet until its delivery. Returns whether it is the only one.
    #[inline(always)]
    pub(crate) fn keep(&mut self, delivery_ns: u64, packet: P, next_ns: &mut u64) -> bool {
        if self.ring.is_full() {
            self.ring.grow();
        }
        if cfg!(debug_assertions) {
            self.counters.arrived += 1;
        }
        self.ring.push(delivery_ns, packet);
        let only = *next_ns == u64::MAX;
        if only {
            *next_ns = delivery_ns;
        }
        only
    }

    #[inline]
    pub(crate) fn coming(&self, others: u64) -> Option<&P> {
        let (_, packet) = self.ring.get(self.ring.head() + others)?;
        Some(packet)
    }

    #[inline]
    pub(crate) fn fetch_ahead(&self, packets: u64) {
        let (head, tail) = (self.ring.head() + packets, self.ring.tail() + packets);
        self.ring.prefetch(head);
        self.ring.prefetch(tail);
        // For `sure`.
        self.ring.prefetch(tail.wrapping_sub(self.check_from));
    }

    #[inline]
    pub(crate) fn enqueue(&mut self, now: u64, packet: P, next_ns: &mut u64) -> Verdict {
        match self.enqueue_unchecked(now, packet, next_ns, |_| {}) {
            Ok(_) => Verdict::Queued,
            Err(packet) => self.check_and_accept(now, packet, next_ns, |_| {}),
        }
    }

    /// Accept a packet if that needs no check, else give it back. Returns when it is delivered. `note_longest` is told if no
    /// other one has waited as long.
    #[inline(always)]
    pub(crate) fn enqueue_unchecked(
        &mut self,
        now: u64,
        packet: P,
        next_ns: &mut u64,
        note_longest: impl FnOnce(u64),
    ) -> Result<u64, P> {
        if self.ring.tail() >= self.check_at {
            return Err(packet);
        }
        Ok(self.accept(now, packet, next_ns, note_longest))
    }

    /// Decide on a packet that was given back, which may be marked. If it is queued, the next one is accepted.
    #[inline]
    pub(crate) fn decide_on(&mut self, now: u64, packet: &mut P) -> Verdict {
        let verdict = self.decide(now, packet);
        if cfg!(debug_assertions) && verdict != Verdict::Queued {
            self.counters.arrived += 1;
        }
        verdict
    }

    /// Not inlined, and with its own copy of the packet, so that the usual case moves the packet once.
    #[inline(never)]
    pub(crate) fn check_and_accept(
        &mut self,
        now: u64,
        mut packet: P,
        next_ns: &mut u64,
        note_longest: impl FnOnce(u64),
    ) -> Verdict {
        let verdict = self.decide_on(now, &mut packet);
        if verdict == Verdict::Queued {
            self.accept(now, packet, next_ns, note_longest);
        }
        verdict
    }

    /// The queue and the ring have room. Returns when the packet is delivered.
    #[inline(always)]
    fn accept(
        &mut self,
        now: u64,
        packet: P,
        next_ns: &mut u64,
        note_longest: impl FnOnce(u64),
    ) -> u64 {
        // Read first: after the packet is stored, the compiler would have to read it again.
        let was_empty = *next_ns == u64::MAX;
        let ip_bytes = packet.ip_bytes();
        let start = self.free.max(Instant::from_ns(now));
        self.free = start.after(self.duration(ip_bytes));
        self.counters.waited(start.ns() - now, note_longest);
        self.accepted_ip_bytes += u64::from(ip_bytes);
        let deliver_ns = self.last_delivery_ns();
        self.ring.push(deliver_ns, packet);
        // All packets that were there before are due earlier.
        if was_empty {
            *next_ns = deliver_ns;
        }
        if cfg!(debug_assertions) {
            self.counters.arrived += 1;
            self.check();
        }
        deliver_ns
    }

    #[inline(always)]
    pub(crate) fn poll(&mut self, now: u64, next_ns: &mut u64) -> Option<P> {
        if now < *next_ns {
            return None;
        }
        let position = self.ring.head();
        let (packet, following_ns) = self.ring.pop()?;
        *next_ns = following_ns;
        if position >= self.serving {
            self.served_ip_bytes += u64::from(packet.ip_bytes());
        }
        if cfg!(debug_assertions) {
            self.counters.delivered += 1;
            self.check();
        }
        Some(packet)
    }

    pub(crate) fn stats(&mut self, now: u64) -> LinkStats {
        if let Some(lookahead) = &mut self.lookahead {
            return lookahead.stats(now);
        }
        self.advance(now);
        let accepted = self.ring.tail();
        let departed = self.serving;
        let (waiting, waiting_bytes) = (self.waiting(), self.waiting_bytes());
        let counters = &mut self.counters;
        counters.arrived = accepted + counters.dropped_random + counters.dropped_queue;
        counters.delivered = self.ring.head();
        counters.departed_bytes = self.served_ip_bytes + departed * u64::from(self.overhead_bytes);
        counters.report(waiting, waiting_bytes, departed)
    }

    pub(crate) fn in_transit(&self) -> u64 {
        let lookahead = self.lookahead.as_ref();
        lookahead.map_or(self.ring.len(), |lookahead| lookahead.in_transit())
    }

    pub(crate) fn delivered_pkts(&self) -> u64 {
        let lookahead = self.lookahead.as_ref();
        lookahead.map_or(self.ring.head(), |lookahead| lookahead.delivered())
    }

    /// When the last accepted packet is delivered.
    #[inline(always)]
    pub(crate) fn last_delivery_ns(&self) -> u64 {
        self.free.ns() + self.delay_ns
    }

    /// Delivery time and packet at a position of the ring, from its head on; `None` beyond the last one.
    #[inline(always)]
    pub(crate) fn get(&self, position: u64) -> Option<(u64, &P)> {
        if position == self.ring.tail() {
            return None;
        }
        self.ring.get(position)
    }

    /// The positions of the ring that hold packets.
    #[inline]
    pub(crate) fn positions(&self) -> Range<u64> {
        self.ring.head()..self.ring.tail()
    }

    /// The first position of a range whose delivery time and packet do not fulfil a condition that holds for all before.
    #[inline]
    pub(crate) fn partition_point(
        &self,
        range: Range<u64>,
        holds: impl Fn(u64, &P) -> bool,
    ) -> u64 {
        self.ring.partition_point(range, holds)
    }

    /// Bytes of all packets accepted so far, as IP packets.
    #[inline(always)]
    pub(crate) fn accepted_ip_bytes(&self) -> u64 {
        self.accepted_ip_bytes
    }

    /// Whether the ring has no room.
    pub(crate) fn is_full(&self) -> bool {
        self.ring.is_full()
    }

    pub(crate) fn delay_ns(&self) -> u64 {
        self.delay_ns
    }

    /// The shortest time from the arrival of a packet of this length to its delivery.
    pub(crate) fn shortest_transit_ns(&self, ip_bytes: u32) -> u64 {
        let duration = self.rate.duration_fast(ip_bytes + self.overhead_bytes);
        Instant::ZERO.after(duration).ns() + self.delay_ns
    }

    pub(crate) fn overhead_bytes(&self) -> u64 {
        u64::from(self.overhead_bytes)
    }

    /// Make more room for packets, unless most of the ring is free.
    pub(crate) fn grow_unless_free(&mut self) {
        if !self.ring.is_mostly_free() {
            self.ring.grow();
        }
    }

    /// Forget the packets before a position of the ring, which have been delivered; `ip_bytes` are those of all before it.
    pub(crate) fn forget_until(&mut self, position: u64, ip_bytes: u64)
    where
        P: Copy,
    {
        if cfg!(debug_assertions) {
            self.counters.delivered += position - self.ring.head();
        }
        self.ring.skip_to(position);
        if position > self.serving {
            self.serving = position;
            self.served_ip_bytes = ip_bytes;
        }
    }

    /// How long a packet of this length is serialised, in 2^-16 ns.
    #[inline]
    fn duration(&mut self, ip_bytes: u32) -> u64 {
        if ip_bytes != self.last.ip_bytes {
            self.remember(ip_bytes);
        }
        self.last.duration
    }

    #[cold]
    fn remember(&mut self, ip_bytes: u32) {
        let duration = self.rate.duration_fast(ip_bytes + self.overhead_bytes);
        self.last = Serialisation { ip_bytes, duration };
    }

    /// Bring `serving` up to date. From one call to the next it passes each packet once.
    fn advance(&mut self, now: u64) {
        let horizon = now + self.delay_ns;
        self.serving = self.serving.max(self.ring.head());
        while self.serving != self.ring.tail() {
            match self.ring.get(self.serving) {
                Some((deliver_ns, packet)) if deliver_ns <= horizon => {
                    self.served_ip_bytes += u64::from(packet.ip_bytes());
                    self.serving += 1;
                }
                _ => break,
            }
        }
    }

    /// Packets in service and behind it, as of the last `advance`.
    fn unsent(&self) -> u64 {
        self.ring.tail() - self.serving
    }

    /// Packets behind the one in service, as of the last `advance`.
    fn waiting(&self) -> usize {
        // Fits: they are in memory.
        self.unsent().saturating_sub(1) as usize
    }

    /// Their layer-2 bytes.
    fn waiting_bytes(&self) -> u64 {
        if self.unsent() == 0 {
            return 0;
        }
        let in_service = self.ring.get(self.serving);
        let in_service_bytes = in_service.map_or(0, |(_, packet)| u64::from(packet.ip_bytes()));
        let ip_bytes = self.accepted_ip_bytes - self.served_ip_bytes - in_service_bytes;
        ip_bytes + self.waiting() as u64 * u64::from(self.overhead_bytes)
    }

    /// The decision on an arrival that needs a check; RED may mark the packet. If it is accepted, the ring has room.
    fn decide(&mut self, now: u64, packet: &mut P) -> Verdict {
        if self.loss.is_lost() {
            self.counters.dropped_random += 1;
            return Verdict::LostRandom;
        }
        let sure = self.sure(now);
        if sure == 0 && !self.admit(now, packet) {
            self.counters.dropped_queue += 1;
            return Verdict::LostQueue;
        }
        if self.ring.is_full() {
            self.ring.grow();
        }
        let next = self.ring.tail() + 1;
        let room = (self.ring.tail() + sure).min(self.ring.end());
        // All of them arrive before the next decision.
        self.check_at = next + self.loss.pass(room.saturating_sub(next));
        Verdict::Queued
    }

    /// How many packets that arrived now would be accepted by their number alone: the packet that is `check_from` before each
    /// of them is fully serialised. There may be more.
    fn sure(&self, now: u64) -> u64 {
        let (head, tail) = (self.ring.head(), self.ring.tail());
        // Those for which it has been delivered.
        let delivered = head.saturating_add(self.check_from).saturating_sub(tail);
        if delivered >= AT_ONCE[0] {
            return delivered;
        }
        let horizon = now + self.delay_ns;
        let is_served = |nth: u64| {
            let before = self.ring.get((tail + nth).wrapping_sub(self.check_from));
            before.is_some_and(|(deliver_ns, _)| deliver_ns <= horizon)
        };
        let is_sure = |nth| nth < delivered || nth < self.check_from && is_served(nth);
        // While the queue is far from full, one look is enough.
        if let Some(many) = AT_ONCE.into_iter().find(|&many| is_sure(many - 1)) {
            return many.max(delivered);
        }
        let few = (delivered..AT_ONCE[1]).find(|&nth| !is_sure(nth));
        few.unwrap_or(AT_ONCE[1])
    }

    /// The decision that needs more than the number of packets.
    fn admit(&mut self, now: u64, packet: &mut P) -> bool {
        self.advance(now);
        let idle = self.unsent() == 0;
        let waiting = self.waiting();
        let bytes = packet.ip_bytes() + self.overhead_bytes;
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
        red.admits((waiting, idle_pkts), room, packet, marked)
    }

    #[inline]
    fn check(&self) {
        self.counters.check(self.ring.len());
    }
}
