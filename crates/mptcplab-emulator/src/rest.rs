//! How soon after a link's next event a packet can reach a port. The thread may sleep until then, because packets enter
//! the following links at the times at which they are due, whenever that is done.

use crate::buffer::Buffer;
use crate::setup::Pair;
use mptcplab_model::link::Packet as _;

/// The shortest packet: an IPv4 header.
const SHORTEST_BYTES: u16 = 20;

/// The links that packets pass after a certain link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Rest {
    /// The same ones for all packets that pass any of them. They lose and reorder nothing while they are empty, so that no
    /// packet gets through before the one ahead of it.
    Same(Vec<usize>),
    /// Others. The shortest packet passes the fastest of them in this time in ns.
    Various(u64),
}

impl Rest {
    /// What follows a link on the ways of the pairs, and for packets without a pair if it has a port. `keeps` says whether
    /// a link loses and reorders nothing while it is empty, and `transit_ns` how long a packet of so many bytes takes at
    /// least.
    pub(crate) fn after(
        link: usize,
        pairs: &[Pair],
        has_port: impl Fn(usize) -> bool,
        keeps: impl Fn(usize) -> bool,
        transit_ns: impl Fn(usize, u16) -> u64,
    ) -> Self {
        let all = rests(link, pairs, has_port(link));
        let first = all.first().copied().unwrap_or_default();
        // Packets that go elsewhere could fill a queue unseen, and the first packet would be dropped there.
        let alone = |at: usize| {
            let others = rests(first[at], pairs, has_port(first[at]));
            keeps(first[at]) && others.iter().all(|rest| *rest == &first[at + 1..])
        };
        if all.iter().all(|rest| *rest == first) && (0..first.len()).all(alone) {
            return Self::Same(first.to_vec());
        }
        let of_rest = |rest: &&[usize]| sum_ns(rest, SHORTEST_BYTES, &transit_ns);
        Self::Various(all.iter().map(of_rest).min().unwrap_or(0))
    }

    /// The shortest time in ns from the link's next event until a packet reaches a port. `packet` is the next one that the
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

/// The links that packets may still have to pass after a link.
fn rests(link: usize, pairs: &[Pair], has_port: bool) -> Vec<&[usize]> {
    let position = |pair: &Pair| pair.links.iter().position(|&one| one == link);
    let on_ways = pairs
        .iter()
        .filter_map(|pair| Some(&pair.links[position(pair)? + 1..]));
    on_ways.chain(has_port.then_some(&[][..])).collect()
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

    /// What follows a link if it and the links in `ports` have a port, and those in `lossy` lose packets.
    fn after(link: usize, ways: &[Pair], ports: &[usize], lossy: &[usize]) -> Rest {
        let has_port = |link| ports.contains(&link);
        Rest::after(
            link,
            ways,
            has_port,
            |link| !lossy.contains(&link),
            transit_ns,
        )
    }

    #[test]
    fn a_link_into_a_port_has_no_rest() {
        let rest = after(3, &[way(&[1, 3]), way(&[3])], &[3], &[]);
        assert_eq!(rest, Rest::Same(Vec::new()));
        assert_eq!(rest.ns(None, transit_ns), 0);
        let unused = after(7, &[way(&[1, 3])], &[3], &[]);
        assert_eq!(unused, Rest::Same(Vec::new()));
    }

    #[test]
    fn one_way_on_is_known_exactly_unless_it_may_lose_or_reorder() {
        let ways = [way(&[1, 3, 5]), way(&[2, 3, 5])];
        let rest = after(1, &ways, &[5], &[]);
        assert_eq!(rest, Rest::Same(vec![3, 5]));
        // Of a packet that is not known, the shortest time.
        assert_eq!(rest.ns(None, transit_ns), 8_040);
        assert_eq!(after(1, &ways, &[5], &[5]), Rest::Various(8_040));
    }

    #[test]
    fn of_different_ways_on_the_shortest_counts() {
        let ways = [way(&[1, 4, 5]), way(&[1, 6]), way(&[9])];
        assert_eq!(after(1, &ways, &[5, 6, 9], &[]), Rest::Various(6_020));
        let ends = [way(&[1, 4]), way(&[1])];
        assert_eq!(after(1, &ends, &[1, 4], &[]), Rest::Various(0));
        // A packet without a pair goes into the port.
        assert_eq!(after(1, &ends[..1], &[1, 4], &[]), Rest::Various(0));
    }

    #[test]
    fn where_others_come_in_and_go_elsewhere_the_shortest_counts() {
        let ways = [way(&[1, 3, 5]), way(&[2, 3, 6])];
        assert_eq!(after(1, &ways, &[5, 6], &[]), Rest::Various(8_040));
        assert_eq!(after(2, &ways, &[5, 6], &[]), Rest::Various(9_040));
        assert_eq!(after(5, &ways, &[5, 6], &[]), Rest::Same(Vec::new()));
    }
}
