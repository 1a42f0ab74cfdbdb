//! Propagation: packets on their way to the far end, in order except for those that [`Reorder`] delays.

use crate::link::Reorder;
use crate::link::rng::{Probability, Rng};
use std::collections::{BTreeMap, VecDeque};

/// The packets that are fully serialised and have not arrived.
#[derive(Debug)]
pub(crate) struct Wire<P> {
    /// One-way delay of packets that leave from now on.
    pub(crate) delay_ns: u64,
    /// Packets that keep their order, with their times of arrival, non-decreasing.
    ordered: VecDeque<(u64, P)>,
    /// Delayed packets, by time of arrival and then by order of departure.
    late: BTreeMap<(u64, u64), P>,
    reorderer: Option<Reorderer>,
    departed_pkts: u64,
}

impl<P> Wire<P> {
    /// `rng` is the link's: what is drawn here leaves its other streams as they are.
    pub(crate) fn new(delay_ns: u64, reorder: Option<Reorder>, rng: &Rng) -> Self {
        Self {
            delay_ns,
            ordered: VecDeque::new(),
            late: BTreeMap::new(),
            reorderer: reorder.map(|reorder| Reorderer::new(reorder, rng)),
            departed_pkts: 0,
        }
    }

    /// A packet is fully serialised at `now`. A shorter delay does not let it overtake.
    pub(crate) fn depart(&mut self, now: u64, packet: P) {
        let last_ns = self.ordered.back().map_or(0, |(at, _)| *at);
        let arrival_ns = (now + self.delay_ns).max(last_ns);
        match self.reorderer.as_mut().map_or(0, Reorderer::extra_delay_ns) {
            0 => self.ordered.push_back((arrival_ns, packet)),
            extra_ns => {
                let key = (arrival_ns.saturating_add(extra_ns), self.departed_pkts);
                self.late.insert(key, packet);
            }
        }
        self.departed_pkts += 1;
    }

    /// When the next packet arrives.
    pub(crate) fn next_ns(&self) -> u64 {
        self.next_ordered_ns().min(self.next_late_ns())
    }

    /// The packet that arrives next, if its time has come. Of two that arrive at the same time a delayed one comes first,
    /// because it left earlier.
    pub(crate) fn arrive(&mut self, now: u64) -> Option<P> {
        if self.next_ns() > now {
            return None;
        }
        if self.next_late_ns() <= self.next_ordered_ns() {
            self.late.pop_first().map(|(_, packet)| packet)
        } else {
            self.ordered.pop_front().map(|(_, packet)| packet)
        }
    }

    /// Packets on the wire.
    pub(crate) fn len(&self) -> usize {
        self.ordered.len() + self.late.len()
    }

    /// Packets that have left so far.
    pub(crate) fn departed_pkts(&self) -> u64 {
        self.departed_pkts
    }

    fn next_ordered_ns(&self) -> u64 {
        self.ordered.front().map_or(u64::MAX, |(at, _)| *at)
    }

    fn next_late_ns(&self) -> u64 {
        self.late
            .first_key_value()
            .map_or(u64::MAX, |((at, _), _)| *at)
    }
}

/// Decides which packets are delayed and for how long. Choices and delays have separate random streams, so that the choice for
/// the n-th packet does not depend on the delays.
#[derive(Debug)]
struct Reorderer {
    chosen: Probability,
    shortest_ns: u64,
    /// How many delays there are to choose from.
    choices: u64,
    choices_rng: Rng,
    delays_rng: Rng,
}

impl Reorderer {
    fn new(reorder: Reorder, rng: &Rng) -> Self {
        Self {
            chosen: Probability::new(reorder.probability),
            shortest_ns: reorder.min_extra_delay_ns,
            choices: (reorder.max_extra_delay_ns)
                .saturating_sub(reorder.min_extra_delay_ns)
                .saturating_add(1),
            choices_rng: rng.fork("reorder"),
            delays_rng: rng.fork("reorder delay"),
        }
    }

    /// 0 for a packet that is not chosen.
    fn extra_delay_ns(&mut self) -> u64 {
        match self.choices_rng.chance(self.chosen) {
            true => self
                .shortest_ns
                .saturating_add(self.delays_rng.below(self.choices)),
            false => 0,
        }
    }
}
