//! Counters of data packets by address pair.

use crate::buffer::Data;
use crate::header::{Addresses, Header, address_key};
use crate::sample::PairStats;
use crate::setup::{LinkSetup, Pair};
use std::collections::HashMap;

/// The tracked pairs with their counters.
#[derive(Debug)]
pub(crate) struct Pairs {
    /// Used for lookups only, so its order has no effect.
    index: HashMap<Addresses, u32>,
    tracked: Vec<Tracked>,
    stats: Vec<PairStats>,
}

#[derive(Debug)]
struct Tracked {
    first_link: usize,
    last_link: usize,
    /// Layer-2 bytes that the last link adds to a packet.
    overhead_bytes: u32,
}

impl Pairs {
    pub(crate) fn new(pairs: &[Pair], links: &[LinkSetup]) -> Self {
        let key = |pair: &Pair| (address_key(pair.source), address_key(pair.destination));
        Self {
            index: (0..)
                .zip(pairs)
                .map(|(index, pair)| (key(pair), index))
                .collect(),
            tracked: pairs
                .iter()
                .map(|pair| Tracked {
                    first_link: pair.first_link,
                    last_link: pair.last_link,
                    overhead_bytes: links[pair.last_link].config.overhead_bytes,
                })
                .collect(),
            stats: vec![PairStats::default(); pairs.len()],
        }
    }

    /// The pair and payload of a packet that carries data of a tracked pair; `None` for other packets.
    pub(crate) fn classify(&self, header: &Header) -> Option<Data> {
        let payload_bytes = header.data_bytes?;
        let pair = *self.index.get(&header.addresses)?;
        Some(Data {
            pair,
            payload_bytes,
        })
    }

    /// Counts a packet that arrived at a link.
    pub(crate) fn arrived(&mut self, link: usize, data: Data) {
        let pair = data.pair as usize;
        self.stats[pair].sent_pkts += u64::from(self.tracked[pair].first_link == link);
    }

    /// Counts a packet of `ip_bytes` that a link delivered.
    pub(crate) fn delivered(&mut self, link: usize, data: Data, ip_bytes: u32) {
        let pair = data.pair as usize;
        let tracked = &self.tracked[pair];
        if tracked.last_link == link {
            let stats = &mut self.stats[pair];
            stats.rx_pkts += 1;
            stats.rx_wire_bytes += u64::from(ip_bytes + tracked.overhead_bytes);
            stats.rx_payload_bytes += u64::from(data.payload_bytes);
        }
    }

    pub(crate) fn stats(&self) -> &[PairStats] {
        &self.stats
    }
}
