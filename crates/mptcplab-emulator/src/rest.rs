//! How soon after a link's next event a port can notice it. The thread may sleep until then, because packets enter the
//! following links at the times at which they are due, whenever that is done.

use crate::buffer::Buffer;
use crate::setup::Pair;
use mptcplab_model::link::Packet as _;

/// The shortest packet: an IPv4 header.
const SHORTEST_BYTES: u16 = 20;

/// The links that packets pass after a certain link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Rest {
    /// The same ones for all packets. They lose and reorder nothing while they are empty, so that no packet is through
    /// sooner than the one before it.
    Same(Vec<usize>),
    /// Others. The shortest packet passes the fastest of them in this time in ns.
    Various(u64),
}

impl Rest {
    /// What follows a link on the ways of the pairs, and for packets without a pair if it has a port. `keeps` says whether
    /// a link loses and reorders nothing while it is empty, and `transit_ns` how long a packet of so many bytes takes at
    /// least.
    pub(crate) fn after(
        (link, has_port): (usize, bool),
        pairs: &[Pair],
        keeps: impl Fn(usize) -> bool,
        transit_ns: impl Fn(usize, u16) -> u64,
    ) -> Self {
        let position = |pair: &Pair| pair.links.iter().position(|&one| one == link);
        let on_ways = pairs
            .iter()
            .filter_map(|pair| Some(&pair.links[position(pair)? + 1..]));
        let rests: Vec<&[usize]> = on_ways.chain(has_port.then_some(&[][..])).collect();
        let first = rests.first().copied().unwrap_or_default();
        if rests.iter().all(|rest| *rest == first) && first.iter().all(|&one| keeps(one)) {
            return Self::Same(first.to_vec());
        }
        let of_rest = |rest: &&[usize]| sum_ns(rest, SHORTEST_BYTES, &transit_ns);
        Self::Various(rests.iter().map(of_rest).min().unwrap_or(0))
    }

    /// The shortest time in ns from the link's next event until a port can notice it. `packet` is the next one that the
    /// link delivers, if that is known.
    pub(crate) fn ns(
        &self,
        packet: Option<&Buffer>,
        transit_ns: impl Fn(usize, u16) -> u64,
    ) -> u64 {
        match self {
            Self::Various(ns) => *ns,
            Self::Same(rest) => {
                let bytes = packet.and_then(|packet| u16::try_from(packet.ip_bytes()).ok());
                sum_ns(rest, bytes.unwrap_or(SHORTEST_BYTES), transit_ns)
            }
        }
    }
}

fn sum_ns(links: &[usize], bytes: u16, transit_ns: impl Fn(usize, u16) -> u64) -> u64 {
    let transits = links.iter().map(|&link| transit_ns(link, bytes));
    transits.fold(0, u64::saturating_add)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{IpAddr, Ipv4Addr};

    fn way(links: &[usize]) -> Pair {
        let address = |last| IpAddr::V4(Ipv4Addr::new(10, 0, 0, last));
        Pair {
            source: address(1),
            destination: address(2),
            links: links.to_vec(),
        }
    }

    /// Link i takes i us, and a ns per byte.
    fn transit_ns(link: usize, bytes: u16) -> u64 {
        1_000 * link as u64 + u64::from(bytes)
    }

    #[test]
    fn a_link_into_a_port_has_no_rest() {
        let rest = Rest::after((3, true), &[way(&[1, 3]), way(&[3])], |_| true, transit_ns);
        assert_eq!(rest, Rest::Same(Vec::new()));
        assert_eq!(rest.ns(None, transit_ns), 0);
        let unused = Rest::after((7, false), &[way(&[1, 3])], |_| true, transit_ns);
        assert_eq!(unused, Rest::Same(Vec::new()));
    }

    #[test]
    fn one_way_on_is_known_exactly_unless_it_may_lose_or_reorder() {
        let ways = [way(&[1, 3, 5]), way(&[2, 3, 5])];
        let rest = Rest::after((1, false), &ways, |_| true, transit_ns);
        assert_eq!(rest, Rest::Same(vec![3, 5]));
        // Of a packet that is not known, the shortest time.
        assert_eq!(rest.ns(None, transit_ns), 8_040);
        let lossy = Rest::after((1, false), &ways, |link| link != 5, transit_ns);
        assert_eq!(lossy, Rest::Various(8_040));
    }

    #[test]
    fn of_different_ways_on_the_shortest_counts() {
        let ways = [way(&[1, 4, 5]), way(&[1, 6]), way(&[9])];
        assert_eq!(
            Rest::after((1, false), &ways, |_| true, transit_ns),
            Rest::Various(6_020)
        );
        let ends = [way(&[1, 4]), way(&[1])];
        let at_port = Rest::after((1, true), &ends, |_| true, transit_ns);
        assert_eq!(at_port, Rest::Various(0));
        // A packet without a pair goes into the port.
        let strays = Rest::after((1, true), &ends[..1], |_| true, transit_ns);
        assert_eq!(strays, Rest::Various(0));
    }
}
