//! Counters of data packets by address pair.

use crate::buffer::Data;
use crate::handle::PairStats;
use crate::header::{Addresses, Header, address_key};
use crate::setup::{LinkSetup, Pair};
use std::collections::HashMap;

/// The tracked pairs with their counters.
#[derive(Debug)]
pub(crate) struct Pairs {
    /// A lookup only: its order is never seen.
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

    /// What to remember of a packet: its pair, if it carries data of a tracked one.
    pub(crate) fn classify(&self, header: &Header) -> Option<Data> {
        let payload_bytes = header.data_bytes?;
        let pair = *self.index.get(&header.addresses)?;
        Some(Data {
            pair,
            payload_bytes,
        })
    }

    /// A packet arrived at a link.
    pub(crate) fn arrived(&mut self, link: usize, data: Data) {
        let pair = data.pair as usize;
        self.stats[pair].sent_pkts += u64::from(self.tracked[pair].first_link == link);
    }

    /// A packet of so many bytes was delivered by a link.
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
