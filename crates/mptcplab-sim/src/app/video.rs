//! A video's server and its player: requests travel back to the sender in no more than the delay of the reverse path.

use crate::mptcp::connection::Connection;
use crate::net::World;
use crate::net::event::NEVER;
use crate::net::record::since;
use mptcplab_model::traffic::{Chunk, Player, Watched};
use mptcplab_scenario::Video;
use mptcplab_trace::{NOT_MEASURED, TransferRow};

/// The sending end of a video flow, with the player at the other end.
pub(crate) struct VideoServer {
    player: Player,
    /// Delay of the first path and of its reverse.
    delays_ns: (u64, u64),
    /// When the player sends its next request.
    ask_ns: u64,
    /// The chunk on its way, when it was requested, and how many segments had been sent again by then.
    asked: Option<(Chunk, u64, u64)>,
}

impl VideoServer {
    pub(crate) fn new(video: Video, delays_ns: (u64, u64)) -> Self {
        Self {
            player: Player::new(video),
            delays_ns,
            ask_ns: NEVER,
            asked: None,
        }
    }

    /// The connection is established: the player knows it a path's delay later and asks for the first chunk. Returns when
    /// the request arrives.
    pub(super) fn on_open(&mut self, now: u64) -> u64 {
        self.ask_at(now + self.delays_ns.0)
    }

    fn ask_at(&mut self, ask_ns: u64) -> u64 {
        self.ask_ns = ask_ns;
        self.request_ns()
    }

    /// When the next request reaches the server.
    fn request_ns(&self) -> u64 {
        self.ask_ns.saturating_add(self.delays_ns.1)
    }

    /// A request has reached the server, if one is on its way.
    pub(super) fn on_request(&mut self, now: u64, conn: &mut Connection) {
        if self.request_ns() > now {
            return;
        }
        let asked_ns = std::mem::replace(&mut self.ask_ns, NEVER);
        let chunk = self.player.ask(asked_ns);
        conn.write_size(chunk.bytes);
        self.asked = Some((chunk, asked_ns, conn.resent_pkts()));
    }

    /// A chunk is complete at the player. Returns when the request for the next one arrives.
    pub(super) fn on_complete(&mut self, cx: &mut World, conn: &Connection) -> u64 {
        let watched = self.player.complete(cx.now);
        self.record(cx, conn, cx.now, Some(watched));
        self.asked = None;
        self.ask_at(watched.next_ns)
    }

    /// The run is over: a chunk that is on its way is recorded.
    pub(super) fn record_unfinished(&self, cx: &mut World, conn: &Connection) {
        self.record(cx, conn, NEVER, None);
    }

    fn record(&self, cx: &mut World, conn: &Connection, done_ns: u64, watched: Option<Watched>) {
        let Some((chunk, asked_ns, resent)) = self.asked else {
            return;
        };
        cx.rec.tables.transfer.push(TransferRow {
            t_ns: asked_ns,
            flow: conn.flow,
            transfer: chunk.index,
            bytes: chunk.bytes,
            media_bps: chunk.media_bps,
            first_byte_ns: since(conn.rx.first_byte_ns, asked_ns),
            completion_ns: since(done_ns, asked_ns),
            resent_pkts: conn.resent_pkts() - resent,
            stall_ns: watched.map_or(NOT_MEASURED, |w| w.stall_ns),
        });
    }
}
