//! Links and routes, over which packets travel from host to host.

use super::event::WinnerTree;
use super::lookahead;
use super::options::{GapTable, SackTable};
use super::packet::{Kind, Packet};
use mptcplab_model::link::{Link, LinkStats, Verdict};

/// Forward and reverse path of a subflow as ranges of [`Net::hops`].
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Route {
    forward: (u32, u32),
    reverse: (u32, u32),
}

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
    /// None: the link has no events, and its packets enter the next link as soon as they enter this one.
    pub(super) const FORWARD: u8 = 16;
}

/// A link and the [`duty`] bits of its events.
struct NetLink {
    duties: u8,
    link: Link<Packet>,
}

pub(crate) struct Net {
    links: Vec<NetLink>,
    /// Next event of every link.
    tree: WinnerTree,
    routes: Vec<Route>,
    /// Link indices of all routes, one after the other.
    hops: Vec<u32>,
    pub(crate) sacks: SackTable,
    pub(crate) gaps: GapTable,
    /// Links crossed by packets so far, apart from those by [`take_direct`](Self::take_direct).
    pub(crate) crossed: u64,
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
            sacks: SackTable::default(),
            gaps: GapTable::default(),
            crossed: 0,
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
        let start = self.hops.len() as u32;
        self.hops.extend_from_slice(forward);
        let middle = self.hops.len() as u32;
        self.hops.extend_from_slice(reverse);
        Route {
            forward: (start, middle),
            reverse: (middle, self.hops.len() as u32),
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

    /// Do without events where packets are known before they arrive, see [`lookahead`]. All routes must be known, and no packet
    /// on its way. `knows`: whether the sender of a route tells when a packet leaves before it does. Returns for every route
    /// whether it is to use [`send_ahead`](Self::send_ahead), for a run of `end_ns`.
    pub(crate) fn look_ahead(&mut self, knows: &[bool], end_ns: u64) -> Vec<bool> {
        self.end_ns = end_ns;
        let ends = self
            .routes
            .iter()
            .flat_map(|route| [route.forward, route.reverse]);
        let paths: Vec<&[u32]> = ends
            .map(|(start, end)| &self.hops[start as usize..end as usize])
            .collect();
        let sender_knows = |path: usize| path % 2 == 0 && knows.get(path / 2) == Some(&true);
        let can: Vec<bool> = self.links.iter().map(|l| l.link.can_look_ahead()).collect();
        let parts = lookahead::parts(&can, &paths, sender_knows);
        for (link, part) in self.links.iter_mut().zip(&parts) {
            if part.forwards || part.follows {
                link.link.look_ahead();
                link.duties |= if part.forwards { duty::FORWARD } else { 0 };
            }
        }
        let begins = |route: usize| {
            let entry = self.entry(route as u32)[0] as usize;
            sender_knows(2 * route) && parts[entry].follows
        };
        (0..self.routes.len()).map(begins).collect()
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
        self.enqueue_chain(now, at, packet);
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
            path.first().copied().unwrap_or(u32::MAX)
        };
        [first(route.forward), first(route.reverse)]
    }

    /// The link that follows on a packet's path, if it has not arrived.
    fn next_link(&self, packet: &Packet) -> Option<usize> {
        let (start, end) = self.range(packet);
        let path = &self.hops[start as usize..end as usize];
        path.get(packet.hop()).map(|&link| link as usize)
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
        let packet = Packet::from_words(a, b, c);
        let NetLink { duties, link } = &mut self.links[index];
        if *duties & duty::FORWARD != 0 {
            self.enqueue_chain(now, now, packet);
            return;
        }
        let before = link.next_ns();
        match link.enqueue(now, packet) {
            Verdict::Queued => {
                let after = link.next_ns();
                if after != before {
                    self.tree.set(index, after);
                }
            }
            Verdict::LostRandom | Verdict::LostQueue => self.lost(index, &packet),
        }
    }

    /// Put a packet on a link at a time from `now` on, and on all that follow it.
    fn enqueue_chain(&mut self, now: u64, mut at: u64, mut packet: Packet) {
        let (start, end) = self.range(&packet);
        let rest = start as usize + packet.hop()..end as usize;
        for &link in &self.hops[rest] {
            let index = link as usize;
            let NetLink { duties, link } = &mut self.links[index];
            let Some(arrival) = link.enqueue_ahead(now, at, packet.len()) else {
                self.release(&packet);
                return;
            };
            if *duties & duty::FORWARD == 0 {
                if link.keep(arrival, packet) {
                    self.tree.set(index, arrival);
                }
                return;
            }
            packet.advance_hop();
            at = arrival;
        }
        debug_assert!(false, "a link that forwards is the last of no path");
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
    pub(crate) fn release(&mut self, packet: &Packet) {
        match packet.kind() {
            Kind::OtherBack => self.gaps.release(packet.sack()),
            _ => self.sacks.release(packet.sack()),
        }
    }

    /// The packet that reaches its host by the next event of this link, if that is all that the event takes.
    #[inline(always)]
    pub(crate) fn take_direct(&mut self, index: usize) -> Option<Packet> {
        let NetLink { duties, link } = &mut self.links[index];
        if *duties != 0 {
            return None;
        }
        let packet = link.take_due()?;
        self.tree.set(index, link.next_ns());
        self.note_arrival();
        Some(packet)
    }

    /// Handle the next event of any link. Returns the packet that reached its host, if one did.
    pub(crate) fn step(&mut self, now: u64, index: usize) -> Option<Packet> {
        let NetLink { duties, link } = &mut self.links[index];
        let left = link.poll(now);
        self.tree.set(index, link.next_ns());
        let duties = *duties;
        if duties & duty::RELEASE_DROPPED != 0 {
            self.release_dropped(index);
        }
        let mut packet = left?;
        self.crossed += 1;
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
        if *duties & duty::FORWARD == 0 {
            self.tree.set(index, link.next_ns());
        }
        stats
    }

    /// Count the packets that crossed links without events until `now`; the number of them.
    pub(crate) fn count_forwarded(&mut self, now: u64) -> u64 {
        let mut forwarded = 0;
        for NetLink { duties, link } in &mut self.links {
            if *duties & duty::FORWARD != 0 {
                link.stats(now);
                forwarded += link.delivered_pkts();
            }
        }
        self.crossed += forwarded;
        forwarded
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
