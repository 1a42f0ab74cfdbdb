//! A link whose packets are known before they arrive.
//!
//! If all packets of a link come from one other link, and that one decides on arrival, then everything that will happen to
//! them is known when they enter the first: no event is needed between the two. Packets are counted when they are decided
//! about; a sample then takes those away whose arrival or departure is still to come.

use crate::link::fused::Fused;
use crate::link::{Counters, LinkStats, Packet, Verdict};
use std::collections::VecDeque;
use std::ops::Range;

/// What is known of a packet that passes, and the counters before it, from which those at any time follow.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Passing {
    arrives_ns: u64,
    /// Sum of the waiting times of all packets before.
    waited_ns: u64,
    /// IP bytes of all packets before, modulo 2^48, and in the low 16 bits those of this one.
    bytes: u64,
}

/// Bits of [`Passing::bytes`] that hold the length of the packet.
const LENGTH_BITS: u32 = 16;

impl Passing {
    fn length(&self) -> u64 {
        self.bytes & ((1 << LENGTH_BITS) - 1)
    }

    /// IP bytes of this packet and all after it, given those of all packets until now.
    fn bytes_from(&self, all: u64) -> u64 {
        (all << LENGTH_BITS).wrapping_sub(self.bytes - self.length()) >> LENGTH_BITS
    }
}

impl Packet for Passing {
    fn ip_bytes(&self) -> u32 {
        self.length() as u32
    }
    fn is_ecn_capable(&self) -> bool {
        false
    }
    fn mark_ce(&mut self) {}
    fn flow_hash(&self) -> u64 {
        0
    }
}

/// A packet that was, or will be, dropped on arrival.
#[derive(Debug, Clone, Copy)]
struct Dropped {
    arrives_ns: u64,
    at_random: bool,
}

/// A packet that waits longer than all before it since the last sample.
#[derive(Debug, Clone, Copy)]
struct LongestWait {
    arrives_ns: u64,
    wait_ns: u64,
}

/// Instead of a delivery time: the packet is lost or dropped.
pub(crate) const LOST: u64 = u64::MAX;
/// In place of when the next packet is to be polled. Only [`enqueue`](Lookahead::enqueue) tells when packets are delivered.
const NOT_POLLED: u64 = 0;

#[derive(Debug)]
pub(crate) struct Lookahead {
    /// Decides at once about packets that arrive later, and counts them.
    machine: Fused<Passing>,
    /// Those that may be still to come.
    dropped: VecDeque<Dropped>,
    /// In the order of arrival, each longer than the one before. Of those that have arrived, the last one counts.
    longest: VecDeque<LongestWait>,
    /// The time of the last [`stats`](Self::stats), and the packets that had arrived, and departed.
    counted_ns: u64,
    arrived: u64,
    departed: u64,
}

/// Of the packets so far, the one that arrives at `at` waits longest.
#[cold]
#[inline(never)]
fn note_longest(longest: &mut VecDeque<LongestWait>, now: u64, at: u64, wait_ns: u64) {
    while longest.get(1).is_some_and(|l| l.arrives_ns <= now) {
        longest.pop_front();
    }
    longest.push_back(LongestWait {
        arrives_ns: at,
        wait_ns,
    });
}

/// Counters before a position of the ring.
struct Before {
    ip_bytes: u64,
    waited_ns: u64,
    /// Of the packet there; 0 if there is none.
    length: u64,
}

impl Lookahead {
    /// `machine` has had no packet.
    pub(crate) fn new(machine: Fused<Passing>) -> Self {
        Self {
            machine,
            dropped: VecDeque::new(),
            longest: VecDeque::new(),
            counted_ns: 0,
            arrived: 0,
            departed: 0,
        }
    }

    /// A packet arrives at `at`. Returns when it is delivered; [`LOST`] if it is dropped.
    #[inline(always)]
    pub(crate) fn enqueue(&mut self, now: u64, at: u64, ip_bytes: u16) -> u64 {
        let packet = Passing {
            arrives_ns: at,
            waited_ns: self.machine.counters.queue_delay_sum_ns,
            bytes: self.machine.accepted_ip_bytes() << LENGTH_BITS | u64::from(ip_bytes),
        };
        let longest = &mut self.longest;
        let note = |wait_ns| note_longest(longest, now, at, wait_ns);
        match self
            .machine
            .enqueue_unchecked(at, packet, &mut { NOT_POLLED }, note)
        {
            Ok(delivery_ns) => delivery_ns,
            Err(packet) => self.check(now, packet),
        }
    }

    #[inline(never)]
    fn check(&mut self, now: u64, packet: Passing) -> u64 {
        if self.machine.is_full() {
            self.forget(now);
            // Otherwise it might be full again with the next packet.
            self.machine.grow_unless_free();
        }
        let at = packet.arrives_ns;
        let longest = &mut self.longest;
        let note = |wait_ns| note_longest(longest, now, at, wait_ns);
        match self
            .machine
            .check_and_accept(at, packet, &mut { NOT_POLLED }, note)
        {
            Verdict::Queued => self.machine.last_delivery_ns(),
            lost => {
                self.forget_dropped(now);
                self.dropped.push_back(Dropped {
                    arrives_ns: at,
                    at_random: lost == Verdict::LostRandom,
                });
                LOST
            }
        }
    }

    /// Packets that are delivered until a time, of which those that are forgotten have been.
    fn delivered_until(&self, ns: u64) -> u64 {
        let positions = self.machine.positions();
        self.machine
            .partition_point(positions, |delivery_ns, _| delivery_ns <= ns)
    }

    /// Forget the packets that were delivered until now.
    fn forget(&mut self, now: u64) {
        let first = self.delivered_until(now);
        let bytes = self.before(first).ip_bytes;
        self.machine.forget_until(first, bytes);
    }

    fn forget_dropped(&mut self, now: u64) {
        while self.dropped.front().is_some_and(|d| d.arrives_ns <= now) {
            self.dropped.pop_front();
        }
    }

    /// The counters before a position of the ring.
    #[inline]
    fn before(&self, position: u64) -> Before {
        let all = self.machine.accepted_ip_bytes();
        match self.machine.get(position) {
            Some((_, packet)) => Before {
                ip_bytes: all - packet.bytes_from(all),
                waited_ns: packet.waited_ns,
                length: packet.length(),
            },
            None => Before {
                ip_bytes: all,
                waited_ns: self.machine.counters.queue_delay_sum_ns,
                length: 0,
            },
        }
    }

    /// The longest wait of the packets that have arrived since the last call; from then on, only those from this position on
    /// count, which have not, and before which packets waited for so long.
    #[inline]
    fn take_longest_ns(&mut self, now: u64, arrived: u64, waited_ns: u64) -> u64 {
        let longest_ns = if self.longest.is_empty() {
            0
        } else {
            self.longest_of_arrived_ns(now)
        };
        self.machine.counters.queue_delay_max_ns = 0;
        // Usually none of them waits, and there may be many.
        if waited_ns < self.machine.counters.queue_delay_sum_ns {
            self.find_longest(arrived, waited_ns);
        }
        longest_ns
    }

    #[inline(never)]
    fn longest_of_arrived_ns(&mut self, now: u64) -> u64 {
        let arrivals = self.longest.iter().take_while(|l| l.arrives_ns <= now);
        let longest_ns = arrivals.last().map_or(0, |l| l.wait_ns);
        self.longest.clear();
        longest_ns
    }

    /// Note the waits of packets from a position on, before which packets waited for so long.
    #[inline(never)]
    fn find_longest(&mut self, mut position: u64, mut waited_ns: u64) {
        let all_waited_ns = self.machine.counters.queue_delay_sum_ns;
        while waited_ns < all_waited_ns {
            let after_ns = self.before(position + 1).waited_ns;
            let wait_ns = after_ns - waited_ns;
            let packet = self.machine.get(position);
            let longest_ns = self.machine.counters.queue_delay_max_ns;
            if let Some((_, packet)) = packet.filter(|_| wait_ns > longest_ns) {
                self.longest.push_back(LongestWait {
                    arrives_ns: packet.arrives_ns,
                    wait_ns,
                });
                self.machine.counters.queue_delay_max_ns = wait_ns;
            }
            waited_ns = after_ns;
            position += 1;
        }
    }

    /// Packets that arrive until a time, which is not before that of the last call of [`stats`](Self::stats).
    #[inline]
    fn arrived_until(&self, ns: u64) -> u64 {
        let Range { start, end } = self.machine.positions();
        let new = self.arrived.max(start)..end;
        self.machine
            .partition_point(new, |_, packet| packet.arrives_ns <= ns)
    }

    /// Of the packets that have `arrived` at a time, those that have departed. Where no packet waits, these are all.
    #[inline]
    fn departed_until(&self, ns: u64, arrived: u64) -> u64 {
        let first = self.departed.max(self.machine.positions().start);
        let horizon = ns + self.machine.delay_ns();
        let has_departed = |delivery_ns: u64, _: &Passing| delivery_ns <= horizon;
        if arrived == first {
            return arrived;
        }
        let last = self.machine.get(arrived - 1);
        if last.is_some_and(|(delivery_ns, packet)| has_departed(delivery_ns, packet)) {
            return arrived;
        }
        self.machine
            .partition_point(first..arrived - 1, has_departed)
    }

    /// Packets that will be dropped, at random and by the queue, when they arrive.
    #[inline]
    fn dropped_later(&self) -> (u64, u64) {
        if self.dropped.is_empty() {
            return (0, 0);
        }
        let at_random = self.dropped.iter().filter(|d| d.at_random).count() as u64;
        (at_random, self.dropped.len() as u64 - at_random)
    }

    /// The counters at time `now`; starts a new interval for the maximum.
    pub(crate) fn stats(&mut self, now: u64) -> LinkStats {
        self.forget_dropped(now);
        let arrived = self.arrived_until(now);
        let departed = self.departed_until(now, arrived);
        self.counted_ns = now;
        self.arrived = arrived;
        self.departed = departed;
        let of_arrived = self.before(arrived);
        let of_departed = self.before(departed);
        let unsent = arrived - departed;
        let in_service_bytes = if unsent > 0 { of_departed.length } else { 0 };
        let waiting = unsent.saturating_sub(1);
        let overhead_bytes = self.machine.overhead_bytes();
        let waiting_bytes = of_arrived.ip_bytes - of_departed.ip_bytes - in_service_bytes
            + waiting * overhead_bytes;
        let (at_random, at_queue) = self.dropped_later();
        let counted = &self.machine.counters;
        let (dropped_random, dropped_queue) = (
            counted.dropped_random - at_random,
            counted.dropped_queue - at_queue,
        );
        let mut counters = Counters {
            arrived: arrived + dropped_random + dropped_queue,
            dropped_random,
            dropped_queue,
            departed_bytes: of_departed.ip_bytes + departed * overhead_bytes,
            queue_delay_sum_ns: of_arrived.waited_ns,
            queue_delay_max_ns: self.take_longest_ns(now, arrived, of_arrived.waited_ns),
            ..Counters::default()
        };
        counters.report(waiting as usize, waiting_bytes, departed)
    }

    /// Packets that had been delivered at the last [`stats`](Self::stats).
    pub(crate) fn delivered(&self) -> u64 {
        self.delivered_until(self.counted_ns)
    }

    /// Packets that had arrived, and had not been delivered, at the last [`stats`](Self::stats).
    pub(crate) fn in_transit(&self) -> u64 {
        self.arrived - self.delivered()
    }
}
