//! A link whose packets are known before they arrive.
//!
//! If all packets of a link come from one other link, and that one decides on arrival, then everything that will happen to
//! them is known when they enter the first: no event is needed between the two. The counters must not run ahead of the
//! time, though, so that every packet is counted when its arrival and its departure have come.

use crate::link::fused::Fused;
use crate::link::{Counters, LinkStats, Packet, Verdict};
use std::collections::VecDeque;

/// What is known of a packet that passes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Passing {
    arrives_ns: u64,
    ip_bytes: u32,
}

impl Packet for Passing {
    fn ip_bytes(&self) -> u32 {
        self.ip_bytes
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

#[derive(Debug)]
pub(crate) struct Lookahead {
    /// Decides at once about packets that arrive later. Its own counters run ahead and are not used.
    machine: Fused<Passing>,
    /// When the machine's first packet is delivered.
    next_ns: u64,
    dropped: VecDeque<Dropped>,
    /// Positions in the machine's ring of the first packets that have not arrived, and not been serialised, as far as they were
    /// counted: at least those that the ring no longer has.
    arrived: u64,
    departed: u64,
    /// When the packet before `arrived` is fully serialised.
    last_end_ns: u64,
    /// Bytes of the packets before these positions, as IP packets.
    arrived_ip_bytes: u64,
    departed_ip_bytes: u64,
    counters: Counters,
}

impl Lookahead {
    /// `machine` has had no packet.
    pub(crate) fn new(machine: Fused<Passing>) -> Self {
        Self {
            machine,
            next_ns: u64::MAX,
            dropped: VecDeque::new(),
            arrived: 0,
            departed: 0,
            last_end_ns: 0,
            arrived_ip_bytes: 0,
            departed_ip_bytes: 0,
            counters: Counters::default(),
        }
    }

    /// A packet arrives at `at`. Returns when it is delivered; `None` if it is dropped.
    #[inline(always)]
    pub(crate) fn enqueue(&mut self, now: u64, at: u64, ip_bytes: u32) -> Option<u64> {
        let packet = Passing {
            arrives_ns: at,
            ip_bytes,
        };
        match self
            .machine
            .enqueue_unchecked(at, packet, &mut self.next_ns)
        {
            Ok(()) => Some(self.machine.last_delivery_ns()),
            Err(packet) => self.check(now, packet),
        }
    }

    #[inline(never)]
    fn check(&mut self, now: u64, packet: Passing) -> Option<u64> {
        if self.machine.is_full() {
            self.forget(now);
        }
        let at = packet.arrives_ns;
        match self.machine.check_and_accept(at, packet, &mut self.next_ns) {
            Verdict::Queued => Some(self.machine.last_delivery_ns()),
            lost => {
                self.dropped.push_back(Dropped {
                    arrives_ns: at,
                    at_random: lost == Verdict::LostRandom,
                });
                None
            }
        }
    }

    /// Forget the packets that were delivered until now, and count what happened to them. That of the others can wait.
    fn forget(&mut self, now: u64) {
        loop {
            let (position, delivery_ns) = (self.machine.delivered_pkts(), self.next_ns);
            let Some(packet) = self.machine.poll(now, &mut self.next_ns) else {
                break;
            };
            if position >= self.arrived {
                self.count_arrival(delivery_ns, packet);
            }
            if position >= self.departed {
                self.count_departure(packet);
            }
        }
        while let Some(first) = self.dropped.front() {
            if first.arrives_ns > now {
                break;
            }
            if first.at_random {
                self.counters.dropped_random += 1;
            } else {
                self.counters.dropped_queue += 1;
            }
            self.dropped.pop_front();
        }
    }

    /// Count what happened until now.
    fn update(&mut self, now: u64) {
        self.forget(now);
        while let Some((delivery_ns, &packet)) = self.machine.get(self.arrived) {
            if packet.arrives_ns > now {
                break;
            }
            self.count_arrival(delivery_ns, packet);
        }
        let horizon = now + self.machine.delay_ns();
        while let Some((delivery_ns, &packet)) = self.machine.get(self.departed) {
            if delivery_ns > horizon {
                break;
            }
            self.count_departure(packet);
        }
    }

    #[inline]
    fn count_arrival(&mut self, delivery_ns: u64, packet: Passing) {
        let wait_ns = self.last_end_ns.saturating_sub(packet.arrives_ns);
        self.counters.waited(wait_ns);
        self.last_end_ns = delivery_ns - self.machine.delay_ns();
        self.arrived_ip_bytes += u64::from(packet.ip_bytes);
        self.arrived += 1;
    }

    #[inline]
    fn count_departure(&mut self, packet: Passing) {
        self.departed_ip_bytes += u64::from(packet.ip_bytes);
        self.departed += 1;
    }

    /// The counters at time `now`; starts a new interval for the maximum.
    pub(crate) fn stats(&mut self, now: u64) -> LinkStats {
        self.update(now);
        let overhead_bytes = self.machine.overhead_bytes();
        let unsent = self.arrived - self.departed;
        let in_service_bytes = match self.machine.get(self.departed) {
            Some((_, packet)) if unsent > 0 => u64::from(packet.ip_bytes),
            _ => 0,
        };
        let waiting = unsent.saturating_sub(1);
        let waiting_bytes = self.arrived_ip_bytes - self.departed_ip_bytes - in_service_bytes
            + waiting * overhead_bytes;
        let counters = &mut self.counters;
        counters.arrived = self.arrived + counters.dropped_random + counters.dropped_queue;
        counters.departed_bytes = self.departed_ip_bytes + self.departed * overhead_bytes;
        counters.report(waiting as usize, waiting_bytes, self.departed)
    }

    /// Packets that had been delivered at the last [`stats`](Self::stats).
    pub(crate) fn delivered(&self) -> u64 {
        self.machine.delivered_pkts()
    }

    /// Packets that had arrived, and had not been delivered, at the last [`stats`](Self::stats).
    pub(crate) fn in_transit(&self) -> u64 {
        self.arrived - self.delivered()
    }
}
