//! Links and routes, over which packets travel from host to host.

use super::event::WinnerTree;
use super::lookahead::{self, Ability, Input, Plan};
use super::merge::Merges;
use super::options::{GapTable, SackTable};
use super::packet::{Kind, Packet};
use mptcplab_model::link::{Link, LinkStats, Verdict};

/// Forward and reverse path of a subflow as ranges of [`Net::hops`].
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Route {
    forward: (u32, u32),
    reverse: (u32, u32),
}

/// A link of a path, or its end.
#[derive(Debug, Clone, Copy)]
struct Hop {
    link: u32,
    /// How packets come to the link on this path: [`ON_ARRIVAL`], [`AHEAD`], or by a feed of [`Merges`].
    feed: u32,
}

/// See [`Input`]. At the end of a path, packets come to the host on their arrival.
const ON_ARRIVAL: u32 = u32::MAX;
const AHEAD: u32 = u32::MAX - 1;

const END_OF_PATH: Hop = Hop {
    link: u32::MAX,
    feed: ON_ARRIVAL,
};

/// What may have to be done for an event of a link, beyond passing the packet to its host.
mod duty {
    /// A path goes on after this link.
    pub(super) const PASS_ON: u8 = 1;
    /// The link may have dropped packets that it had accepted.
    pub(super) const RELEASE_DROPPED: u8 = 2;
    /// The engine checks the event.
    pub(super) const CHECK: u8 = 4;
    /// The event may be an internal step of the link.
    pub(super) const POLL: u8 = 8;
    /// None, for some packets: they enter the next link, or wait to be merged there, as soon as they enter this one.
    pub(super) const FORWARD: u8 = 16;
    /// The engine fetches ahead what the next packets need.
    pub(super) const FETCH: u8 = 32;
}

/// A link and the [`duty`] bits of its events.
struct NetLink {
    duties: u8,
    link: Link<Packet>,
}

/// A source of packets that are merged, in the order of packets that arrive at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Source {
    Link(u32),
    /// At the beginning of this path.
    Sender(usize),
}

/// IP bytes of the shortest packet.
const SHORTEST_PACKET_BYTES: u16 = 20;

fn ability(link: &Link<Packet>) -> Ability {
    Ability {
        can_look_ahead: link.can_look_ahead(),
        transit_ns: link.shortest_transit_ns(SHORTEST_PACKET_BYTES),
        delay_ns: link.delay_ns(),
    }
}

pub(crate) struct Net {
    links: Vec<NetLink>,
    /// Next event of every link, and behind them of `merges`, if there is any.
    tree: WinnerTree,
    routes: Vec<Route>,
    /// The paths of all routes, one after the other.
    hops: Vec<Hop>,
    merges: Merges,
    pub(crate) sacks: SackTable,
    pub(crate) gaps: GapTable,
    /// Links crossed by packets so far, apart from those by [`take_direct`](Self::take_direct).
    pub(crate) crossed: u64,
    /// Those that crossed a link that forwards, and did so by an event.
    not_forwarded: u64,
    /// When the run ends, for [`send_ahead`](Self::send_ahead).
    end_ns: u64,
    /// Packets that hosts put on a path, and that reached a host (debug builds).
    sent: u64,
    arrived: u64,
}

impl Net {
    /// `late_drops`: some link's AQM may drop a packet after it was accepted.
    pub(crate) fn new(mut links: Vec<Link<Packet>>, late_drops: bool) -> Self {
        if late_drops {
            links.iter_mut().for_each(Link::keep_dropped);
        }
        let late_drops = if late_drops { duty::RELEASE_DROPPED } else { 0 };
        let poll = |link: &Link<Packet>| if link.only_delivers() { 0 } else { duty::POLL };
        let mut tree = WinnerTree::new(links.len());
        for (i, link) in links.iter().enumerate() {
            tree.set(i, link.next_ns());
        }
        let with_duties = |link| NetLink {
            duties: late_drops | poll(&link),
            link,
        };
        Self {
            links: links.into_iter().map(with_duties).collect(),
            tree,
            routes: Vec::new(),
            hops: Vec::new(),
            merges: Merges::new(u64::MAX),
            sacks: SackTable::default(),
            gaps: GapTable::default(),
            crossed: 0,
            not_forwarded: 0,
            end_ns: u64::MAX,
            sent: 0,
            arrived: 0,
        }
    }

    /// The next subflow takes these paths; returns its index.
    pub(crate) fn add_route(&mut self, route: Route) -> u32 {
        self.routes.push(route);
        (self.routes.len() - 1) as u32
    }

    /// Paths for subflows.
    pub(crate) fn make_route(&mut self, forward: &[u32], reverse: &[u32]) -> Route {
        for &link in forward
            .iter()
            .rev()
            .skip(1)
            .chain(reverse.iter().rev().skip(1))
        {
            self.links[link as usize].duties |= duty::PASS_ON;
        }
        let hop = |&link: &u32| Hop {
            link,
            feed: ON_ARRIVAL,
        };
        let mut add = |path: &[u32]| {
            let start = self.hops.len() as u32;
            self.hops.extend(path.iter().map(hop));
            let end = self.hops.len() as u32;
            self.hops.push(END_OF_PATH);
            (start, end)
        };
        Route {
            forward: add(forward),
            reverse: add(reverse),
        }
    }

    /// Reserve this many indices for later subflows; the next route follows them.
    pub(crate) fn reserve_routes(&mut self, routes: usize) {
        let wanted = self.routes.len() + routes;
        self.routes.resize(wanted, Route::default());
    }

    /// Number of indices, reserved ones included.
    pub(crate) fn routes(&self) -> usize {
        self.routes.len()
    }

    /// Give paths to a reserved index.
    pub(crate) fn set_route(&mut self, index: usize, route: Route) {
        self.routes[index] = route;
    }

    /// From now on no link is direct: the engine checks every event.
    pub(crate) fn check_all(&mut self) {
        for link in &mut self.links {
            link.duties |= duty::CHECK;
        }
    }

    /// From now on the engine fetches ahead, and packets come by [`take_fetched`](Self::take_fetched).
    pub(crate) fn fetch_for_all(&mut self) {
        for link in &mut self.links {
            link.duties |= duty::FETCH;
        }
    }

    /// The packet that a link delivers after so many others, if it knows that already.
    #[inline]
    pub(crate) fn coming(&self, link: usize, others: u64) -> Option<&Packet> {
        self.links.get(link)?.link.coming(others)
    }

    /// Have what the next packets need of a link fetched into the processor's cache, up to that which comes after so many.
    #[inline]
    pub(crate) fn fetch_ahead(&self, link: usize, packets: u64) {
        if let Some(NetLink { link, .. }) = self.links.get(link) {
            link.fetch_ahead(packets);
        }
    }

    /// Do without events where packets are known before they arrive, see [`lookahead`]. All routes must be known, and no packet
    /// on its way. `knows`: whether the sender of a route tells when a packet leaves before it does. Returns for every route
    /// whether it is to use [`send_ahead`](Self::send_ahead), for a run of `end_ns`.
    pub(crate) fn look_ahead(&mut self, knows: &[bool], end_ns: u64) -> Vec<bool> {
        self.end_ns = end_ns;
        let ends: Vec<(u32, u32)> = (self.routes.iter())
            .flat_map(|route| [route.forward, route.reverse])
            .collect();
        let of_hops: Vec<u32> = self.hops.iter().map(|hop| hop.link).collect();
        let paths: Vec<&[u32]> = (ends.iter())
            .map(|&(start, end)| &of_hops[start as usize..end as usize])
            .collect();
        let sender_knows = |path: usize| path % 2 == 0 && knows.get(path / 2) == Some(&true);
        let abilities: Vec<Ability> = self.links.iter().map(|l| ability(&l.link)).collect();
        let plan = lookahead::plan(&abilities, &paths, sender_knows);
        let waits = |link: u32| plan.inputs[link as usize] != Input::OnArrival;
        let pairs = paths.iter().flat_map(|path| path.windows(2));
        for pair in pairs.filter(|pair| waits(pair[1])) {
            self.links[pair[0] as usize].duties |= duty::FORWARD;
        }
        for (link, input) in self.links.iter_mut().zip(&plan.inputs) {
            if *input == Input::Ahead || link.duties & duty::FORWARD != 0 {
                link.link.look_ahead();
            }
        }
        for hop in &mut self.hops {
            if plan.inputs.get(hop.link as usize) == Some(&Input::Ahead) {
                hop.feed = AHEAD;
            }
        }
        self.make_merges(&plan, &abilities, &ends);
        let begins = |route: usize| sender_knows(2 * route) && waits(self.entry(route as u32)[0]);
        (0..self.routes.len()).map(begins).collect()
    }

    fn make_merges(&mut self, plan: &Plan, abilities: &[Ability], ends: &[(u32, u32)]) {
        if plan.merging.is_empty() {
            return;
        }
        // Of every merging link: its sources in their order, and the shortest time to a host.
        let mut sources: Vec<Vec<Source>> = vec![Vec::new(); self.links.len()];
        let mut to_host_ns = vec![u64::MAX; self.links.len()];
        let mut hops = Vec::new();
        for (path, &(start, end)) in ends.iter().enumerate() {
            let mut rest_ns = 0;
            for hop in (start as usize..end as usize).rev() {
                let link = self.hops[hop].link as usize;
                let ability = &abilities[link];
                if plan.inputs[link] == Input::Merged {
                    let is_first = hop == start as usize;
                    let source = if is_first {
                        Source::Sender(path)
                    } else {
                        Source::Link(self.hops[hop - 1].link)
                    };
                    sources[link].push(source);
                    to_host_ns[link] = to_host_ns[link].min(rest_ns + ability.delay_ns);
                    hops.push((hop, source));
                }
                rest_ns += ability.transit_ns;
            }
        }
        self.merges = Merges::new(plan.window_ns);
        let mut first_feeds = vec![0; self.links.len()];
        for &link in &plan.merging {
            sources[link].sort_unstable();
            sources[link].dedup();
            first_feeds[link] = self.merges.add(link, to_host_ns[link], sources[link].len());
        }
        for (hop, source) in hops {
            let hop = &mut self.hops[hop];
            let link = hop.link as usize;
            let place = sources[link].partition_point(|&other| other < source);
            hop.feed = first_feeds[link] + place as u32;
        }
        self.tree = WinnerTree::new(self.links.len() + 1);
        for (i, link) in self.links.iter().enumerate() {
            self.tree.set(i, link.link.next_ns());
        }
    }

    /// When the run ends.
    pub(crate) fn end_ns(&self) -> u64 {
        self.end_ns
    }

    /// A host sends a packet that leaves at `at`, or later than the run ends.
    #[inline]
    pub(crate) fn send_ahead(&mut self, now: u64, at: u64, packet: Packet) {
        if at > self.end_ns {
            return;
        }
        if cfg!(debug_assertions) {
            self.sent += 1;
        }
        let (first, _) = self.range(&packet);
        match self.hops[first as usize].feed {
            AHEAD => {
                let [a, b, c] = packet.words();
                self.enqueue_chain(now, at, a, b, c);
            }
            feed => self.merge(feed, at, packet),
        }
    }

    /// A packet arrives at a link where packets are merged.
    #[inline(always)]
    fn merge(&mut self, feed: u32, at: u64, packet: Packet) {
        let [a, b, c] = packet.words();
        if self.merges.push(feed, at, a, b, c) {
            self.note_due();
        }
    }

    /// Packets wait to be merged: that is an event of its own, just before the first of them might reach a host.
    #[inline]
    fn note_due(&mut self) {
        self.tree.set(self.links.len(), self.merges.due_ns - 1);
    }

    /// Merge all packets that arrive before `end`.
    fn merge_until(&mut self, end: u64) {
        loop {
            let round = self.merges.round(end);
            for merging in 0..self.merges.len() {
                while let Some((at, packet)) = self.merges.take(merging, round) {
                    let index = self.merges.link(merging);
                    if self.links[index].duties & duty::FORWARD != 0 {
                        let [a, b, c] = packet.words();
                        self.enqueue_chain(at, at, a, b, c);
                    } else {
                        self.enqueue(index, at, packet);
                    }
                }
            }
            self.merges.finish_round(round);
            if round == end {
                break;
            }
        }
        self.merges.finish();
        self.note_due();
    }

    /// Merge all packets that have arrived until now, when nothing of this time is still to come but timers after the release
    /// of held packets.
    pub(crate) fn settle(&mut self, now: u64) {
        if self.merges.len() > 0 {
            self.merge_until(now + 1);
        }
    }

    /// How often packets were merged, each time by an event.
    pub(crate) fn merge_events(&self) -> u64 {
        self.merges.times
    }

    /// See [`Link::changes_applied`].
    pub(crate) fn changes_applied(&self, index: usize) -> usize {
        self.links[index].link.changes_applied()
    }

    /// Time and link of the next event.
    #[inline]
    pub(crate) fn first(&self) -> (u64, usize) {
        self.tree.first()
    }

    /// A host sends a packet.
    #[inline]
    pub(crate) fn send(&mut self, now: u64, packet: Packet) {
        let first = self.next_link(&packet);
        debug_assert!(first.is_some(), "a path has at least one link");
        if let Some(link) = first {
            self.send_on(link, now, packet);
        }
    }

    /// A host sends a packet and knows the first link of its path.
    #[inline(always)]
    pub(crate) fn send_on(&mut self, link: usize, now: u64, packet: Packet) {
        if cfg!(debug_assertions) {
            self.sent += 1;
        }
        self.enqueue(link, now, packet);
    }

    /// First link of a subflow's forward and reverse path.
    pub(crate) fn entry(&self, subflow: u32) -> [u32; 2] {
        let route = &self.routes[subflow as usize];
        let first = |(start, end): (u32, u32)| {
            let path = &self.hops[start as usize..end as usize];
            path.first().map_or(u32::MAX, |hop| hop.link)
        };
        [first(route.forward), first(route.reverse)]
    }

    /// The link that follows on a packet's path, if it has not arrived.
    fn next_link(&self, packet: &Packet) -> Option<usize> {
        let (start, end) = self.range(packet);
        let path = &self.hops[start as usize..end as usize];
        path.get(packet.hop()).map(|hop| hop.link as usize)
    }

    /// The packet's path, as a range of `hops`.
    fn range(&self, packet: &Packet) -> (u32, u32) {
        let route = &self.routes[packet.subflow()];
        if packet.is_forward() {
            route.forward
        } else {
            route.reverse
        }
    }

    #[inline(always)]
    fn enqueue(&mut self, index: usize, now: u64, packet: Packet) {
        let link = &mut self.links[index].link;
        let was_idle = link.next_ns() == u64::MAX;
        match link.enqueue_unchecked(now, packet) {
            Ok(()) if was_idle => self.tree.set(index, link.next_ns()),
            Ok(()) => {}
            Err(packet) => {
                let [a, b, c] = packet.words();
                self.enqueue_words(index, now, a, b, c);
            }
        }
    }

    /// The packet comes in registers.
    #[inline(never)]
    fn enqueue_words(&mut self, index: usize, now: u64, a: u64, b: u64, c: u64) {
        let mut packet = Packet::from_words(a, b, c);
        let NetLink { duties, link } = &mut self.links[index];
        if *duties & duty::FORWARD != 0 {
            self.enqueue_chain(now, now, a, b, c);
            return;
        }
        let before = link.next_ns();
        let verdict = match link.decide_on(now, &mut packet) {
            Some(Verdict::Queued) => {
                // From the registers it goes to the queue sooner than from memory, to which it has just been written.
                let [a, b, c] = if packet.is_ce() {
                    packet.words()
                } else {
                    [a, b, c]
                };
                let accepted = link.enqueue_unchecked(now, Packet::from_words(a, b, c));
                debug_assert!(accepted.is_ok(), "there is room");
                Verdict::Queued
            }
            Some(lost) => lost,
            None => link.enqueue(now, packet),
        };
        match verdict {
            Verdict::Queued => {
                let after = link.next_ns();
                if after != before {
                    self.tree.set(index, after);
                }
            }
            Verdict::LostRandom | Verdict::LostQueue => self.lost(index, &packet),
        }
    }

    /// Put a packet, which comes in registers, on a link at a time from `now` on, and on all that follow it.
    #[inline(never)]
    fn enqueue_chain(&mut self, now: u64, mut at: u64, a: u64, b: u64, c: u64) {
        let mut packet = Packet::from_words(a, b, c);
        let mut hop = self.range(&packet).0 as usize + packet.hop();
        loop {
            let index = self.hops[hop].link as usize;
            let link = &mut self.links[index].link;
            let Some(arrival) = link.enqueue_ahead(now, at, packet.len()) else {
                self.release(&packet);
                return;
            };
            hop += 1;
            let feed = self.hops[hop].feed;
            if feed == ON_ARRIVAL {
                if link.keep(arrival, packet) {
                    self.tree.set(index, arrival);
                }
                return;
            }
            packet.advance_hop();
            if feed != AHEAD {
                self.merge(feed, arrival, packet);
                return;
            }
            at = arrival;
        }
    }

    #[cold]
    fn lost(&mut self, index: usize, packet: &Packet) {
        self.release(packet);
        self.tree.set(index, self.links[index].link.next_ns());
    }

    /// Release the SACK options of ACKs that an AQM dropped after accepting them.
    #[cold]
    fn release_dropped(&mut self, index: usize) {
        while let Some(packet) = self.links[index].link.take_dropped() {
            self.release(&packet);
        }
    }

    /// Release the options of a packet that was lost.
    #[inline(always)]
    pub(crate) fn release(&mut self, packet: &Packet) {
        self.release_options(packet.kind(), packet.sack());
    }

    #[inline(never)]
    fn release_options(&mut self, kind: Kind, handle: u32) {
        match kind {
            Kind::OtherBack => self.gaps.release(handle),
            _ => self.sacks.release(handle),
        }
    }

    /// The packet that reaches its host by the next event of this link, if that is all that the event takes.
    #[inline(always)]
    pub(crate) fn take_direct(&mut self, index: usize) -> Option<Packet> {
        self.take_where::<0>(index)
    }

    /// The same after fetching ahead.
    #[inline(always)]
    pub(crate) fn take_fetched(&mut self, index: usize) -> Option<Packet> {
        self.take_where::<{ duty::FETCH }>(index)
    }

    #[inline(always)]
    fn take_where<const DUTIES: u8>(&mut self, index: usize) -> Option<Packet> {
        // Beyond the links, packets are to be merged.
        let NetLink { duties, link } = self.links.get_mut(index)?;
        if *duties != DUTIES {
            return None;
        }
        let packet = link.take_due()?;
        self.tree.set(index, link.next_ns());
        self.note_arrival();
        Some(packet)
    }

    /// Handle the next event of any link. Returns the packet that reached its host, if one did.
    pub(crate) fn step(&mut self, now: u64, index: usize) -> Option<Packet> {
        if index == self.links.len() {
            self.merges.times += 1;
            self.merge_until(now);
            return None;
        }
        let NetLink { duties, link } = &mut self.links[index];
        let left = link.poll(now);
        self.tree.set(index, link.next_ns());
        let duties = *duties;
        if duties & duty::RELEASE_DROPPED != 0 {
            self.release_dropped(index);
        }
        let mut packet = left?;
        // Counted at the end, see `count_forwarded`.
        let is_counted = duties & duty::FORWARD != 0;
        self.crossed += u64::from(!is_counted);
        self.not_forwarded += u64::from(is_counted);
        if duties & duty::PASS_ON != 0 && self.pass_on(now, &mut packet) {
            return None;
        }
        self.note_arrival();
        Some(packet)
    }

    #[inline(always)]
    fn note_arrival(&mut self) {
        if cfg!(debug_assertions) {
            self.arrived += 1;
        }
    }

    /// Put a packet on the next link of its path, if there is one. Returns whether there is.
    fn pass_on(&mut self, now: u64, packet: &mut Packet) -> bool {
        packet.advance_hop();
        let next = self.next_link(packet);
        if let Some(link) = next {
            self.enqueue(link, now, *packet);
        }
        next.is_some()
    }

    /// Counters of a link.
    pub(crate) fn link_stats(&mut self, index: usize, now: u64) -> LinkStats {
        let NetLink { duties, link } = &mut self.links[index];
        let stats = link.stats(now);
        if *duties & duty::POLL != 0 {
            self.tree.set(index, link.next_ns());
        }
        stats
    }

    /// Count the packets that crossed links that forward until `now`. Returns how many did so without an event.
    pub(crate) fn count_forwarded(&mut self, now: u64) -> u64 {
        let mut forwarded = 0;
        for NetLink { duties, link } in &mut self.links {
            if *duties & duty::FORWARD != 0 {
                link.stats(now);
                forwarded += link.delivered_pkts();
            }
        }
        self.crossed += forwarded;
        forwarded - self.not_forwarded
    }

    /// Check that every packet that hosts sent has arrived, was dropped, or is on a link.
    pub(crate) fn check_conservation(&mut self, now: u64) {
        let mut accounted = self.arrived;
        for NetLink { link, .. } in &mut self.links {
            let s = link.stats(now);
            accounted += s.dropped_random_pkts + s.dropped_queue_pkts + link.in_transit();
        }
        assert_eq!(self.sent, accounted, "packets sent by hosts");
    }
}
