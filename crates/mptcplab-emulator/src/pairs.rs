//! Address pairs: the way of their packets from link to link, and counters of their data packets.

use crate::buffer::Buffer;
use crate::header::{Addresses, address_key};
use crate::sample::PairStats;
use crate::setup::{LinkSetup, Pair};
use std::collections::HashMap;

/// The pairs with their counters.
#[derive(Debug)]
pub(crate) struct Pairs {
    /// Used for lookups only, so its order has no effect.
    index: HashMap<Addresses, u32>,
    ways: Vec<Way>,
    stats: Vec<PairStats>,
}

#[derive(Debug)]
struct Way {
    links: Vec<usize>,
    /// Layer-2 bytes that the last link adds to a packet.
    overhead_bytes: u32,
}

impl Pairs {
    /// The pairs of a set-up that was found consistent.
    pub(crate) fn new(pairs: &[Pair], links: &[LinkSetup]) -> Self {
        let key = |pair: &Pair| (address_key(pair.source), address_key(pair.destination));
        let overhead_bytes = |pair: &Pair| {
            let last = pair.links.last();
            last.map_or(0, |&link| links[link].config.overhead_bytes)
        };
        Self {
            index: (0..)
                .zip(pairs)
                .map(|(index, pair)| (key(pair), index))
                .collect(),
            stats: vec![PairStats::default(); pairs.len()],
            ways: pairs
                .iter()
                .map(|pair| Way {
                    overhead_bytes: overhead_bytes(pair),
                    links: pair.links.clone(),
                })
                .collect(),
        }
    }

    /// The pair with these addresses, if its packets pass the link.
    pub(crate) fn find(&self, addresses: Addresses, link: usize) -> Option<u32> {
        let pair = *self.index.get(&addresses)?;
        self.ways[pair as usize]
            .links
            .contains(&link)
            .then_some(pair)
    }

    /// The link that a packet enters when it leaves `link`; `None` if it goes to a port.
    pub(crate) fn next_link(&self, link: usize, packet: &Buffer) -> Option<usize> {
        let links = &self.ways[packet.pair? as usize].links;
        let hop = links.iter().position(|&one| one == link)?;
        links.get(hop + 1).copied()
    }

    /// Counts a packet that arrived at a link.
    pub(crate) fn arrived(&mut self, link: usize, packet: &Buffer) {
        if let (Some(pair), Some(_)) = (packet.pair, packet.data_bytes) {
            let is_first = self.ways[pair as usize].links.first() == Some(&link);
            self.stats[pair as usize].sent_pkts += u64::from(is_first);
        }
    }

    /// Counts a packet that the last link of its way delivered.
    pub(crate) fn delivered(&mut self, packet: &Buffer) {
        if let (Some(pair), Some(data_bytes)) = (packet.pair, packet.data_bytes) {
            let stats = &mut self.stats[pair as usize];
            let wire_bytes =
                packet.bytes().len() as u64 + u64::from(self.ways[pair as usize].overhead_bytes);
            stats.rx_pkts += 1;
            stats.rx_wire_bytes += wire_bytes;
            stats.rx_payload_bytes += u64::from(data_bytes);
        }
    }

    pub(crate) fn stats(&self) -> &[PairStats] {
        &self.stats
    }
}
