//! Puts packets in order that come to a link from several others, or from several senders that hold packets back.
//!
//! Each of these sources tells in order when its packets arrive, but not before all packets of another one. They wait here
//! until a packet might reach a host, and are then taken in the order in which events would have brought them: by time, of equal
//! times those of links first, by their indices, then those of senders, by the indices of the subflows.

use super::event::{HORIZON, NEVER, WinnerTree};
use super::packet::Packet;
use std::collections::VecDeque;

/// The packets of one source.
#[derive(Debug)]
struct Feed {
    /// With their times of arrival.
    packets: VecDeque<(u64, Packet)>,
    /// The merging link, as an index of [`Merges::links`], and the source among its sources.
    merging: u32,
    source: u32,
}

/// A link with merged input.
#[derive(Debug)]
pub(super) struct Merging {
    pub(super) link: usize,
    /// Shortest time from an arrival here to one at a host.
    to_host_ns: u64,
    first_feed: usize,
    /// The first packet of each source.
    first: WinnerTree,
}

#[derive(Debug)]
pub(super) struct Merges {
    links: Vec<Merging>,
    feeds: Vec<Feed>,
    window_ns: u64,
    /// All packets that arrive before were taken.
    done_ns: u64,
    /// By when the waiting packets have to be taken.
    pub(super) due_ns: u64,
    /// How often that happened.
    pub(super) times: u64,
}

impl Merges {
    pub(super) fn new(window_ns: u64) -> Self {
        Self {
            links: Vec::new(),
            feeds: Vec::new(),
            window_ns,
            done_ns: 0,
            due_ns: NEVER,
            times: 0,
        }
    }

    /// The next merging link, with so many sources. Returns the feed of the first one, which those of the others follow.
    pub(super) fn add(&mut self, link: usize, to_host_ns: u64, sources: usize) -> u32 {
        let (merging, first_feed) = (self.links.len() as u32, self.feeds.len());
        self.links.push(Merging {
            link,
            to_host_ns,
            first_feed,
            first: WinnerTree::new(sources),
        });
        self.feeds.extend((0..sources as u32).map(|source| Feed {
            packets: VecDeque::new(),
            merging,
            source,
        }));
        first_feed as u32
    }

    pub(super) fn len(&self) -> usize {
        self.links.len()
    }

    pub(super) fn link(&self, merging: usize) -> usize {
        self.links[merging].link
    }

    /// A packet, which comes in registers, arrives at `at`, not before the last one of its feed. Returns whether
    /// [`due_ns`](Self::due_ns) has changed.
    #[inline(never)]
    pub(super) fn push(&mut self, feed: u32, at: u64, a: u64, b: u64, c: u64) -> bool {
        let packet = Packet::from_words(a, b, c);
        let feed = &mut self.feeds[feed as usize];
        let is_first = feed.packets.is_empty();
        feed.packets.push_back((at, packet));
        let (merging, source) = (feed.merging, feed.source);
        is_first && self.begin(merging, source, at)
    }

    /// A source has another first packet.
    fn begin(&mut self, merging: u32, source: u32, at: u64) -> bool {
        let merging = &mut self.links[merging as usize];
        merging.first.set(source as usize, at);
        let due_ns = at + merging.to_host_ns;
        let is_earlier = due_ns < self.due_ns;
        if is_earlier {
            self.due_ns = due_ns;
        }
        is_earlier
    }

    /// The packet that arrives next at a merging link, if that is before `end`.
    #[inline]
    pub(super) fn take(&mut self, merging: usize, end: u64) -> Option<(u64, Packet)> {
        let merging = &mut self.links[merging];
        let (at, source) = merging.first.first();
        if at >= end {
            return None;
        }
        let feed = &mut self.feeds[merging.first_feed + source];
        let taken = feed.packets.pop_front();
        let next = feed.packets.front().map_or(NEVER, |(at, _)| *at);
        merging.first.set(source, next);
        taken
    }

    /// The end of the next round, in which all packets are taken that arrive before it; `end` is that of the last one.
    pub(super) fn round(&self, end: u64) -> u64 {
        let first = self.first_ns().max(self.done_ns);
        first.saturating_add(self.window_ns).min(end)
    }

    /// A round is over.
    pub(super) fn finish_round(&mut self, end: u64) {
        self.done_ns = end;
    }

    /// All packets were taken that arrive before some time.
    pub(super) fn finish(&mut self) {
        let due = |m: &Merging| match m.first.first().0 {
            HORIZON => NEVER,
            at => at + m.to_host_ns,
        };
        self.due_ns = self.links.iter().map(due).min().unwrap_or(NEVER);
    }

    /// When the first packet arrives that was not taken.
    fn first_ns(&self) -> u64 {
        let firsts = self.links.iter().map(|m| m.first.first().0);
        firsts.min().unwrap_or(NEVER)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::packet::{Header, Kind};

    fn packet(subflow: u32) -> Packet {
        Packet::new(Kind::Data, subflow, 1500, Header::default())
    }

    fn push(merges: &mut Merges, feed: u32, at: u64, packet: Packet) -> bool {
        let [a, b, c] = packet.words();
        merges.push(feed, at, a, b, c)
    }

    fn taken(merges: &mut Merges, merging: usize, end: u64) -> Vec<(u64, usize)> {
        let packets = std::iter::from_fn(|| merges.take(merging, end));
        packets.map(|(at, packet)| (at, packet.subflow())).collect()
    }

    #[test]
    fn packets_are_taken_by_time_and_then_by_source() {
        let mut merges = Merges::new(u64::MAX);
        let (first, second) = (merges.add(7, 100, 3), merges.add(4, 30, 2));
        assert_eq!((first, second, merges.link(1)), (0, 3, 4));
        assert!(push(&mut merges, 2, 50, packet(1)));
        assert!(!push(&mut merges, 2, 60, packet(2)));
        // Its first one is earlier, the next is not the first of its source, and that one arrives together with others.
        assert!(push(&mut merges, 1, 40, packet(3)));
        assert!(!push(&mut merges, 1, 50, packet(4)));
        assert!(!push(&mut merges, 0, 50, packet(5)));
        assert_eq!(merges.due_ns, 140);
        // The other link is nearer to a host.
        assert!(push(&mut merges, 4, 70, packet(6)));
        assert_eq!(merges.due_ns, 100);
        assert_eq!(taken(&mut merges, 0, 50), [(40, 3)]);
        assert_eq!(taken(&mut merges, 0, 60), [(50, 5), (50, 4), (50, 1)]);
        merges.finish();
        assert_eq!(merges.due_ns, 100);
        assert_eq!(taken(&mut merges, 1, 71), [(70, 6)]);
        merges.finish();
        assert_eq!(merges.due_ns, 160);
        assert_eq!(taken(&mut merges, 0, 1000), [(60, 2)]);
        merges.finish();
        assert_eq!(merges.due_ns, NEVER);
    }

    #[test]
    fn a_round_is_no_longer_than_the_window() {
        let mut merges = Merges::new(10);
        let feed = merges.add(0, 100, 1);
        push(&mut merges, feed, 500, packet(0));
        // Nothing arrives before the first packet.
        assert_eq!(merges.round(600), 510);
        merges.finish_round(510);
        assert_eq!((merges.round(600), merges.round(515)), (520, 515));
    }
}
