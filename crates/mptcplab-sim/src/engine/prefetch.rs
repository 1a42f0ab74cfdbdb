//! The state of thousands of connections does not fit into a processor's cache. A link knows which packets it delivers next, so
//! that what these need is fetched while others are handled.

use super::event_loop::Engine;
use crate::mptcp::connection::Connection;
use crate::net::packet::Kind;
use crate::tcp::subflow::Subflow;
use mptcplab_prefetch::prefetch;

/// The state of fewer connections mostly stays in the cache; then, this costs more than it gains.
const MANY: usize = 1000;
/// What a packet needs is fetched when so many others of its link come before it: the connection first, then the subflow, whose
/// address it has, then the segments, whose address that has.
const CONNECTION: u64 = 8;
const SUBFLOW: u64 = 4;
const SEGMENTS: u64 = 2;

impl Engine<'_> {
    pub(super) fn has_many_connections(&self) -> bool {
        self.apps.len() >= MANY
    }

    /// Fetch what the next packets of a link need. It changes nothing but the time that they take.
    #[inline]
    pub(super) fn fetch_ahead(&self, link: usize) {
        self.fetch_connection(link);
        self.fetch_subflow(link);
        self.fetch_segments(link);
    }

    #[inline(always)]
    fn fetch_connection(&self, link: usize) {
        let Some((conn, _, kind)) = self.coming(link, CONNECTION) else {
            return;
        };
        prefetch(&conn.subflows);
        match kind {
            Kind::Data => prefetch(&conn.rx),
            _ => prefetch(&conn.tx),
        }
    }

    #[inline(always)]
    fn fetch_subflow(&self, link: usize) {
        let coming = self.coming(link, SUBFLOW);
        let Some((subflow, kind)) =
            coming.and_then(|(conn, k, kind)| Some((conn.subflows.get(k)?, kind)))
        else {
            return;
        };
        let Subflow { sender, receiver } = subflow;
        match kind {
            Kind::Data => {
                prefetch(receiver);
                prefetch(&sender.sock.tp.srtt_us);
            }
            _ => prefetch(sender),
        }
    }

    #[inline(always)]
    fn fetch_segments(&self, link: usize) {
        let Some((conn, k, Kind::Ack)) = self.coming(link, SEGMENTS) else {
            return;
        };
        if let Some(Subflow { sender, .. }) = conn.subflows.get(k) {
            prefetch(sender.segments.get(sender.sock.tp.snd_una));
            prefetch(sender.segments.get(sender.sock.tp.snd_nxt));
        }
    }

    /// Connection, subflow and kind of the packet of a link before which so many others come.
    #[inline(always)]
    fn coming(&self, link: usize, others: u64) -> Option<(&Connection, usize, Kind)> {
        let packet = self.world.net.coming(link, others)?;
        let owner = self.owners.get(packet.subflow())?;
        let app = self.apps.get(owner.conn as usize)?;
        Some((&app.conn, owner.subflow as usize, packet.kind()))
    }
}
