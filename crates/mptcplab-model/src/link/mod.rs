//! The link model shared by the simulator and the kernel engine's emulator.
//!
//! A link is directed. An arriving packet (1) may be lost at random, (2) is dropped when the queue is full or the AQM says
//! so, (3) waits, (4) is serialised, (5) propagates. Packets keep their order except under flow queueing and where
//! [`Reorder`] delays them on the wire. There is no I/O and no clock, and nothing that decides when a packet moves uses
//! floating point: time is passed in as integer nanoseconds since the start, and randomness comes from the stream that the
//! link owns.
//!
//! [`Link`] is one of two state machines that give the same results: `fused` computes the departure of a packet when it
//! arrives (constant rate and delay, decisions on arrival), `general` steps through queue, transmitter and propagation
//! (AQM on departure, schedules, delivery traces, reordering).

mod codel;
mod config;
mod fifo;
mod fq_codel;
mod fused;
mod general;
mod lookahead;
mod loss;
mod opportunities;
mod red;
mod ring;
pub mod rng;
mod service;
mod transmitter;
mod wire;

pub use config::*;
pub use service::MAX_TIME_NS;

use fused::Fused;
use general::General;
use lookahead::LOST;
use rng::Rng;

/// A packet, as a link sees it.
///
/// Implemented by the simulator's packet (24 bytes, moved by value) and by the emulator's buffer. `ip_bytes` must not
/// change while the link holds the packet.
pub trait Packet {
    /// Length of the IP packet in bytes, header included.
    fn ip_bytes(&self) -> u32;
    /// Whether the ECN field says ECT(0), ECT(1) or CE (RFC 3168 section 5).
    fn is_ecn_capable(&self) -> bool;
    /// Set the ECN field to CE.
    fn mark_ce(&mut self);
    /// A number that is equal for packets of one flow, for flow queueing.
    fn flow_hash(&self) -> u64;
}

/// The fate of an arriving packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Verdict {
    /// Accepted; an AQM may still drop it later.
    Queued,
    /// Lost at random, or because the link is down.
    LostRandom,
    /// Dropped by a full queue or an AQM.
    LostQueue,
}

/// Counters of a link; the columns of the trace's `link` table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LinkStats {
    /// Packets waiting now, the one in service not counted.
    pub queue_pkts: u32,
    /// Bytes waiting now, layer-2 overhead included.
    pub queue_bytes: u64,
    /// Packets that arrived so far.
    pub arrived_pkts: u64,
    /// Random losses so far, outages included.
    pub dropped_random_pkts: u64,
    /// Drops by a full queue or an AQM so far.
    pub dropped_queue_pkts: u64,
    /// ECN marks so far.
    pub marked_pkts: u64,
    /// Packets fully serialised so far.
    pub departed_pkts: u64,
    /// Their layer-2 bytes.
    pub departed_bytes: u64,
    /// Sum over accepted packets of the time from arrival to the start of service, in ns. A packet is counted when this
    /// time becomes known: on arrival on a link of constant rate, at the start of its service otherwise.
    pub queue_delay_sum_ns: u64,
    /// Largest such time since the previous sample, in ns.
    pub queue_delay_max_ns: u64,
}

/// Counters that both machines maintain.
#[derive(Debug, Clone, Default)]
struct Counters {
    arrived: u64,
    dropped_random: u64,
    dropped_queue: u64,
    marked: u64,
    delivered: u64,
    departed_bytes: u64,
    queue_delay_sum_ns: u64,
    queue_delay_max_ns: u64,
}

impl Counters {
    /// A packet starts its service after waiting this long; `note_longest` is told if no other one has waited as long.
    #[inline]
    fn waited(&mut self, wait_ns: u64, note_longest: impl FnOnce(u64)) {
        self.queue_delay_sum_ns += wait_ns;
        // A branch that is seldom taken is cheaper than a store for every packet.
        if wait_ns > self.queue_delay_max_ns {
            self.queue_delay_max_ns = wait_ns;
            note_longest(wait_ns);
        }
    }

    /// Packet conservation: every packet that arrived was delivered, was dropped, or is `elsewhere`: still on the link, or
    /// counted in another place.
    #[inline]
    fn check(&self, elsewhere: u64) {
        debug_assert_eq!(
            self.arrived,
            self.delivered + self.dropped_random + self.dropped_queue + elsewhere,
            "packet conservation"
        );
    }

    /// Report, and begin a new interval for the maximum.
    fn report(&mut self, queue_pkts: usize, queue_bytes: u64, departed_pkts: u64) -> LinkStats {
        LinkStats {
            queue_pkts: u32::try_from(queue_pkts).unwrap_or(u32::MAX),
            queue_bytes,
            arrived_pkts: self.arrived,
            dropped_random_pkts: self.dropped_random,
            dropped_queue_pkts: self.dropped_queue,
            marked_pkts: self.marked,
            departed_pkts,
            departed_bytes: self.departed_bytes,
            queue_delay_sum_ns: self.queue_delay_sum_ns,
            queue_delay_max_ns: std::mem::take(&mut self.queue_delay_max_ns),
        }
    }
}

/// One directed link with all packets on it.
///
/// The owner calls [`enqueue`](Self::enqueue) when a packet arrives and [`poll`](Self::poll) when
/// [`next_ns`](Self::next_ns) has come. Times passed in must not decrease and stay below [`MAX_TIME_NS`].
#[derive(Debug)]
pub struct Link<P> {
    next_ns: u64,
    machine: Machine<P>,
}

// Not boxed: the fused machine is used for every packet of nearly all links.
#[allow(clippy::large_enum_variant)]
#[derive(Debug)]
enum Machine<P> {
    Fused(Fused<P>),
    General(Box<General<P>>),
}

impl<P: Packet> Link<P> {
    /// An empty link at time 0 that draws its random numbers from `rng`.
    pub fn new(config: &LinkConfig, rng: Rng) -> Self {
        match Fused::new(config, &rng) {
            Some(fused) => Self {
                next_ns: u64::MAX,
                machine: Machine::Fused(fused),
            },
            None => Self::new_general(config, &rng),
        }
    }

    /// As [`new`](Self::new), but never the fused machine: the reference that tests compare with.
    fn new_general(config: &LinkConfig, rng: &Rng) -> Self {
        let general = Box::new(General::new(config, rng));
        Self {
            next_ns: general.next_ns(),
            machine: Machine::General(general),
        }
    }

    /// A packet arrives at time `now` (ns).
    #[inline]
    pub fn enqueue(&mut self, now: u64, packet: P) -> Verdict {
        match &mut self.machine {
            Machine::Fused(fused) => fused.enqueue(now, packet, &mut self.next_ns),
            Machine::General(general) => general.enqueue(now, packet, &mut self.next_ns),
        }
    }

    /// As [`enqueue`](Self::enqueue) where that is sure to accept the packet without looking at the queue; elsewhere the packet
    /// comes back, and nothing has happened. Short enough to be inlined wherever packets are sent.
    #[inline(always)]
    pub fn enqueue_unchecked(&mut self, now: u64, packet: P) -> Result<(), P> {
        match &mut self.machine {
            Machine::Fused(fused) => fused
                .enqueue_unchecked(now, packet, &mut self.next_ns, |_| {})
                .map(|_| ()),
            Machine::General(_) => Err(packet),
        }
    }

    /// Decide on a packet that [`enqueue_unchecked`](Self::enqueue_unchecked) gave back; the link's AQM may mark it. After
    /// [`Verdict::Queued`], that accepts the packet. `None` where only [`enqueue`](Self::enqueue) decides.
    #[inline]
    pub fn decide_on(&mut self, now: u64, packet: &mut P) -> Option<Verdict> {
        match &mut self.machine {
            Machine::Fused(fused) => Some(fused.decide_on(now, packet)),
            Machine::General(_) => None,
        }
    }

    /// Whether packets may come by [`enqueue_ahead`](Self::enqueue_ahead): where all that happens to a packet is decided on its
    /// arrival.
    pub fn can_look_ahead(&self) -> bool {
        matches!(&self.machine, Machine::Fused(fused) if fused.can_look_ahead())
    }

    /// The delay in ns of all packets; 0 if it may change.
    pub fn delay_ns(&self) -> u64 {
        match &self.machine {
            Machine::Fused(fused) => fused.delay_ns(),
            Machine::General(_) => 0,
        }
    }

    /// The shortest time in ns from the arrival of a packet of this length to its delivery; 0 if rate or delay may change.
    pub fn shortest_transit_ns(&self, ip_bytes: u16) -> u64 {
        match &self.machine {
            Machine::Fused(fused) => fused.shortest_transit_ns(u32::from(ip_bytes)),
            Machine::General(_) => 0,
        }
    }

    /// From now on all packets come by [`enqueue_ahead`](Self::enqueue_ahead). Only for a link that
    /// [can look ahead](Self::can_look_ahead) and has had no packet.
    pub fn look_ahead(&mut self) {
        if let Machine::Fused(fused) = &mut self.machine {
            fused.look_ahead();
        }
    }

    /// A packet of this length arrives at time `at` (ns), which is `now` or later and not before those of earlier calls.
    /// Returns when it reaches the far end; `None` if it is lost or dropped. The counters follow when the time has come. Only
    /// after [`look_ahead`](Self::look_ahead).
    #[inline(always)]
    pub fn enqueue_ahead(&mut self, now: u64, at: u64, ip_bytes: u16) -> Option<u64> {
        let delivery_ns = match &mut self.machine {
            Machine::Fused(fused) => fused.enqueue_ahead(now, at, ip_bytes),
            Machine::General(_) => LOST,
        };
        Some(delivery_ns).filter(|&ns| ns != LOST)
    }

    /// Keep the packet that the last [`enqueue_ahead`](Self::enqueue_ahead) was about, for [`poll`](Self::poll) at the time that
    /// it returned. Returns whether it is the only one that is kept.
    #[inline(always)]
    pub fn keep(&mut self, delivery_ns: u64, packet: P) -> bool {
        match &mut self.machine {
            Machine::Fused(fused) => fused.keep(delivery_ns, packet, &mut self.next_ns),
            Machine::General(_) => false,
        }
    }

    /// Time in ns of the next event of this link, a delivery or an internal step; `u64::MAX` when there is none.
    /// Any call with `&mut self` may change it.
    #[inline]
    pub fn next_ns(&self) -> u64 {
        self.next_ns
    }

    /// Handle one event that is due at `now`. Returns the packet that arrives at the far end, or `None` after an internal step
    /// or when nothing is due. Call it until `next_ns() > now`.
    #[inline(always)]
    pub fn poll(&mut self, now: u64) -> Option<P> {
        match &mut self.machine {
            Machine::Fused(fused) => fused.poll(now, &mut self.next_ns),
            Machine::General(general) => general.poll(now, &mut self.next_ns),
        }
    }

    /// Whether every event of this link is the delivery of a packet that [`take_due`](Self::take_due) returns.
    #[inline]
    pub fn only_delivers(&self) -> bool {
        matches!(self.machine, Machine::Fused(_))
    }

    /// As [`poll`](Self::poll) at [`next_ns`](Self::next_ns), for a link that [`only_delivers`](Self::only_delivers); `None` on
    /// any other. It calls nothing that returns a packet in memory, so that a small packet stays in registers.
    #[inline(always)]
    pub fn take_due(&mut self) -> Option<P> {
        let now = self.next_ns;
        match &mut self.machine {
            Machine::Fused(fused) => fused.poll(now, &mut self.next_ns),
            Machine::General(_) => None,
        }
    }

    /// The packet that the link delivers after so many others, if it knows that already.
    #[inline]
    pub fn coming(&self, others: u64) -> Option<&P> {
        match &self.machine {
            Machine::Fused(fused) => fused.coming(others),
            Machine::General(_) => None,
        }
    }

    /// Have what the next packets need of the link fetched into the processor's cache, up to that which comes after so many.
    #[inline]
    pub fn fetch_ahead(&self, packets: u64) {
        if let Machine::Fused(fused) = &self.machine {
            fused.fetch_ahead(packets);
        }
    }

    /// The counters at time `now`; starts a new interval for `queue_delay_max_ns`.
    pub fn stats(&mut self, now: u64) -> LinkStats {
        match &mut self.machine {
            Machine::Fused(fused) => fused.stats(now),
            Machine::General(general) => {
                let stats = general.stats(now);
                self.next_ns = general.next_ns();
                stats
            }
        }
    }

    /// Packets that the link holds: waiting, in service or propagating; as of the last [`stats`](Self::stats) where it looks
    /// ahead.
    pub fn in_transit(&self) -> u64 {
        match &self.machine {
            Machine::Fused(fused) => fused.in_transit(),
            Machine::General(general) => general.in_transit(),
        }
    }

    /// Packets that have reached the far end; as of the last [`stats`](Self::stats) where the link looks ahead.
    pub fn delivered_pkts(&self) -> u64 {
        match &self.machine {
            Machine::Fused(fused) => fused.delivered_pkts(),
            Machine::General(general) => general.delivered_pkts(),
        }
    }

    /// Keep packets that are dropped after [`enqueue`](Self::enqueue) returned [`Verdict::Queued`], for an owner that calls
    /// [`take_dropped`](Self::take_dropped); otherwise they are only counted.
    pub fn keep_dropped(&mut self) {
        if let Machine::General(general) = &mut self.machine {
            general.keep_dropped();
        }
    }

    /// The oldest packet that was dropped after it had been accepted (CoDel, FQ-CoDel) and not yet taken. `enqueue`,
    /// `poll` and `stats` may drop packets; without [`keep_dropped`](Self::keep_dropped) there is never one here.
    pub fn take_dropped(&mut self) -> Option<P> {
        match &mut self.machine {
            Machine::Fused(_) => None,
            Machine::General(general) => general.take_dropped(),
        }
    }

    /// Number of entries of the schedule that have taken effect. They do so inside `enqueue`, `poll` and `stats`, in time order
    /// and before whatever else happens at the same nanosecond; `next_ns` includes their times.
    pub fn changes_applied(&self) -> usize {
        match &self.machine {
            Machine::Fused(_) => 0,
            Machine::General(general) => general.changes_applied(),
        }
    }
}

#[cfg(test)]
mod tests;
