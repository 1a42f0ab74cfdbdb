//! The paths of a full-mesh path manager: one for each pair of interfaces of the two ends.
//!
//! An interface of the sender is a link that begins at it, and an interface of the receiver is a link that ends at it.
//! Between them, routing takes the path with the fewest links; among those the one with the lowest delay; and among those
//! the one whose links come first in the file. Links without a reverse direction are not used.

use crate::resolve::network::Network;
use std::collections::BTreeMap;

/// The paths from one node to another, one for each pair of interfaces, ordered by the sender's interface in the file.
pub(super) fn paths(network: &Network, from: usize, to: usize) -> Vec<Vec<usize>> {
    let outgoing = outgoing(network, from);
    let firsts = outgoing.get(&from).into_iter().flatten();
    firsts
        .flat_map(|&first| paths_over(network, &outgoing, first, to))
        .collect()
}

/// The usable links by the node where they begin. No link leads back to `from`.
fn outgoing(network: &Network, from: usize) -> BTreeMap<usize, Vec<usize>> {
    let mut outgoing: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (index, link) in network.links.iter().enumerate() {
        if link.to != from && network.opposite(index).is_some() {
            outgoing.entry(link.from).or_default().push(index);
        }
    }
    outgoing
}

/// The paths that begin with the link `first`, one for each last link.
fn paths_over(
    network: &Network,
    outgoing: &BTreeMap<usize, Vec<usize>>,
    first: usize,
    to: usize,
) -> Vec<Vec<usize>> {
    if network.links[first].to == to {
        return vec![vec![first]];
    }
    let arrival = arrivals(network, outgoing, first, to);
    let last = |&link: &usize| network.links[link].to == to;
    let lasts: std::collections::BTreeSet<usize> =
        outgoing.values().flatten().copied().filter(last).collect();
    lasts
        .into_iter()
        .filter_map(|last| {
            let mut path = vec![last];
            while path.last() != Some(&first) {
                let node = network.links[*path.last()?].from;
                path.push(arrival.get(&node)?.1);
            }
            path.reverse();
            Some(path)
        })
        .collect()
}

/// The delay so far and the last link, for each node that packets can reach over `first` without passing `to`.
fn arrivals(
    network: &Network,
    outgoing: &BTreeMap<usize, Vec<usize>>,
    first: usize,
    to: usize,
) -> BTreeMap<usize, (u64, usize)> {
    let delay = |link: usize| network.links[link].config.delay_ns;
    let mut arrival = BTreeMap::from([(network.links[first].to, (delay(first), first))]);
    let mut frontier = vec![network.links[first].to];
    while !frontier.is_empty() {
        let mut next: BTreeMap<usize, (u64, usize)> = BTreeMap::new();
        for node in frontier {
            for &link in outgoing.get(&node).into_iter().flatten() {
                let end = network.links[link].to;
                let so_far = arrival[&node].0 + delay(link);
                let better = next.get(&end).is_none_or(|best| (so_far, link) < *best);
                if end != to && !arrival.contains_key(&end) && better {
                    next.insert(end, (so_far, link));
                }
            }
        }
        frontier = next.keys().copied().collect();
        arrival.extend(next);
    }
    arrival
}
