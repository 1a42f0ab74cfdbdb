//! A video's server and who watches it: requests travel back to the sender in no more than the way's delay.

use crate::engine::Engine;
use crate::net::event::{NEVER, TimerKind};
use crate::net::record::since;
use mptcplab_model::traffic::{Chunk, Player, Watched};
use mptcplab_scenario::Video;
use mptcplab_trace::{NOT_MEASURED, TransferRow};

/// A video flow.
pub(crate) struct VideoApp {
    conn: u32,
    player: Player,
    /// Delay of the first path and of its way back.
    delays_ns: (u64, u64),
    /// When the next chunk is asked for.
    ask_ns: u64,
    /// The chunk on its way, when it was asked for, and what had been sent again by then.
    asked: Option<(Chunk, u64, u64)>,
}

impl VideoApp {
    pub(crate) fn new(conn: u32, video: Video, delays_ns: (u64, u64)) -> Self {
        Self {
            conn,
            player: Player::new(video),
            delays_ns,
            ask_ns: NEVER,
            asked: None,
        }
    }
}

impl Engine<'_> {
    /// The connection is there: who watches knows it a path's delay later and asks for the first chunk.
    pub(crate) fn on_video_open(&mut self, v: usize) {
        let at = self.world.now + self.videos[v].delays_ns.0;
        self.ask_for_chunk(v, at);
    }

    /// The request reaches the sender after the delay of the way back.
    fn ask_for_chunk(&mut self, v: usize, ask_ns: u64) {
        let video = &mut self.videos[v];
        video.ask_ns = ask_ns;
        let c = video.conn as usize;
        let conn = &mut self.conns[c];
        if self.world.now >= conn.stop_ns {
            return;
        }
        let at = ask_ns.saturating_add(video.delays_ns.1).min(conn.stop_ns);
        self.world
            .timers
            .set(&mut conn.timer, at, TimerKind::App, c as u32);
    }

    /// A request has reached the sender, if one is on its way.
    pub(crate) fn on_request(&mut self, v: usize) {
        let video = &mut self.videos[v];
        let c = video.conn as usize;
        let is_due = video.ask_ns.saturating_add(video.delays_ns.1) <= self.world.now;
        if !is_due || self.world.now >= self.conns[c].stop_ns {
            return;
        }
        let asked_ns = std::mem::replace(&mut video.ask_ns, NEVER);
        let chunk = video.player.ask(asked_ns);
        self.conns[c].write_size(chunk.bytes);
        self.videos[v].asked = Some((chunk, asked_ns, self.resent(c)));
    }

    /// A chunk is complete where it is watched.
    pub(crate) fn on_chunk(&mut self, v: usize) {
        let now = self.world.now;
        let watched = self.videos[v].player.complete(now);
        self.record_chunk(v, now, Some(watched));
        self.videos[v].asked = None;
        self.ask_for_chunk(v, watched.next_ns);
    }

    pub(crate) fn record_unfinished_chunk(&mut self, v: usize) {
        self.record_chunk(v, NEVER, None);
    }

    fn record_chunk(&mut self, v: usize, done_ns: u64, watched: Option<Watched>) {
        let video = &self.videos[v];
        let Some((chunk, asked_ns, resent)) = video.asked else {
            return;
        };
        let conn = &self.conns[video.conn as usize];
        let row = TransferRow {
            t_ns: asked_ns,
            flow: conn.flow,
            transfer: chunk.index,
            bytes: chunk.bytes,
            media_bps: chunk.media_bps,
            first_byte_ns: since(conn.rx.first_byte_ns, asked_ns),
            completion_ns: since(done_ns, asked_ns),
            resent_pkts: self.resent(video.conn as usize) - resent,
            stall_ns: watched.map_or(NOT_MEASURED, |w| w.stall_ns),
        };
        self.world.rec.tables.transfer.push(row);
    }
}
