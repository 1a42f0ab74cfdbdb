//! The state of thousands of connections does not fit into a processor's cache. A link knows which packets it delivers next, so
//! that what these need is fetched while others are handled.

use super::event_loop::Engine;
use crate::mptcp::connection::Connection;
use crate::net::event::{TimerEntry, TimerKind};
use crate::net::packet::Kind;
use crate::tcp::subflow::Subflow;
use mptcplab_prefetch::{prefetch, use_large_pages};

/// The state of fewer connections mostly stays in the cache; then, this costs more than it gains.
const MANY: usize = 1000;
/// What a packet needs is fetched when so many others of its link come before it. The packet itself comes first, and then what
/// tells its connection. The connection has the address of the subflow, and the subflow those of the segments.
const PACKET: u64 = 16;
const OWNER: u64 = 12;
const CONNECTION: u64 = 8;
const SUBFLOW: u64 = 6;
const RECOVERY: u64 = 4;
const SEGMENTS: u64 = 2;

impl Engine<'_> {
    pub(super) fn has_many_connections(&self) -> bool {
        self.apps.len() >= MANY
    }

    /// Put the state of connections and subflows into large pages.
    pub(super) fn use_large_pages(&self) {
        use_large_pages(self.apps.iter());
        use_large_pages(self.apps.iter().flat_map(|app| &app.conn.subflows));
    }

    /// Fetch what the next packets of a link need. It changes nothing but the time that they take.
    #[inline]
    pub(super) fn fetch_ahead(&self, link: usize) {
        self.world.net.fetch_ahead(link, PACKET);
        self.fetch_owner(link);
        self.fetch_connection(link);
        self.fetch_subflow(link);
        self.fetch_recovery(link);
        self.fetch_segments(link);
    }

    #[inline(always)]
    fn fetch_owner(&self, link: usize) {
        let Some(packet) = self.world.net.coming(link, OWNER) else {
            return;
        };
        if let Some(owner) = self.owners.get(packet.subflow()) {
            prefetch(owner);
        }
        if packet.kind() == Kind::Ack {
            self.world.net.sacks.prefetch(packet.sack());
        }
    }

    #[inline(always)]
    fn fetch_connection(&self, link: usize) {
        let Some((conn, _, kind)) = self.coming(link, CONNECTION) else {
            return;
        };
        prefetch(&conn.subflows);
        match kind {
            Kind::Data => conn.rx.prefetch(),
            _ => conn.tx.prefetch(),
        }
    }

    #[inline(always)]
    fn fetch_subflow(&self, link: usize) {
        let Some((conn, subflow, kind)) = self.coming_to(link, SUBFLOW) else {
            return;
        };
        if kind != Kind::Data {
            subflow.sender.prefetch();
            return;
        }
        prefetch(&subflow.receiver);
        if conn.rx.room().is_limited() {
            subflow.sender.prefetch_rtts();
        }
    }

    #[inline(always)]
    fn fetch_recovery(&self, link: usize) {
        if let Some((_, subflow, Kind::Ack)) = self.coming_to(link, RECOVERY) {
            subflow.sender.prefetch_recovery();
        }
    }

    #[inline(always)]
    fn fetch_segments(&self, link: usize) {
        let Some((conn, subflow, kind)) = self.coming_to(link, SEGMENTS) else {
            return;
        };
        match kind {
            Kind::Data => {
                subflow.receiver.order.prefetch();
                conn.rx.prefetch_segments();
            }
            _ => subflow.sender.prefetch_segments(),
        }
    }

    /// Fetch what the next timers of subflows need: the connection of those that come soon, the subflow of the next one.
    #[inline]
    pub(super) fn fetch_for_timers(&self) {
        let [first, others @ ..] = self.world.timers.coming();
        for (conn, ..) in others.into_iter().filter_map(|e| self.timed(e?)) {
            prefetch(&conn.subflows);
        }
        let Some((conn, k, kind)) = first.and_then(|e| self.timed(e)) else {
            return;
        };
        let Some(subflow) = conn.subflows.get(k) else {
            return;
        };
        if kind == TimerKind::DelayedAck {
            conn.rx.prefetch();
            prefetch(&subflow.receiver);
        } else {
            prefetch(&subflow.sender.rtx.timer);
        }
    }

    /// Connection, index of the subflow and kind of a timer for which it pays.
    #[inline(always)]
    fn timed(&self, entry: &TimerEntry) -> Option<(&Connection, usize, TimerKind)> {
        let &(_, kind, index) = entry;
        if !matches!(kind, TimerKind::Retransmit | TimerKind::DelayedAck) {
            return None;
        }
        let (conn, k) = self.owning(index as usize)?;
        Some((conn, k, kind))
    }

    /// Connection, subflow and kind of the packet of a link before which so many others come.
    #[inline(always)]
    fn coming_to(&self, link: usize, others: u64) -> Option<(&Connection, &Subflow, Kind)> {
        let (conn, k, kind) = self.coming(link, others)?;
        Some((conn, conn.subflows.get(k)?, kind))
    }

    /// Connection, index of the subflow and kind of the packet of a link before which so many others come.
    #[inline(always)]
    fn coming(&self, link: usize, others: u64) -> Option<(&Connection, usize, Kind)> {
        let packet = self.world.net.coming(link, others)?;
        let (conn, k) = self.owning(packet.subflow())?;
        Some((conn, k, packet.kind()))
    }

    /// Connection and index of the subflow that a route belongs to, if it is TCP's.
    #[inline(always)]
    fn owning(&self, route: usize) -> Option<(&Connection, usize)> {
        let owner = self.owners.get(route)?;
        let app = self.apps.get(owner.conn as usize)?;
        Some((&app.conn, owner.subflow as usize))
    }
}
