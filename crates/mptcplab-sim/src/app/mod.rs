//! What the sending applications do: bulk, fixed size, on and off. Many transfers and video have files of their own.

pub(crate) mod udp;
pub(crate) mod video;

use crate::mptcp::connection::Connection;
use crate::net::World;
use crate::net::event::{NEVER, TimerKind};
use crate::stream::DSN_MAX;
use mptcplab_model::link::rng::Rng;
use mptcplab_model::traffic::span;
use mptcplab_scenario::Span;
use mptcplab_trace::EventKind;

/// The application of a connection.
#[derive(Debug, Clone, Copy)]
pub(crate) enum App {
    /// Always has data.
    Bulk,
    /// This many bytes, then close.
    Size { bytes: u64 },
    /// Data without limit during `on`, nothing during `off`.
    OnOff { on: Span, off: Span },
    /// One of many transfers: index of its pool, and its number there.
    Transfer { pool: u32, index: u32 },
    /// Index of its player's server.
    Video { video: u32 },
}

/// The application's timer fired: start, switch or stop. `index` is the connection's.
pub(crate) fn on_app_timer(cx: &mut World, conn: &mut Connection, index: u32, rng: &mut Rng) {
    if cx.now >= conn.stop_ns {
        // Nothing new is written; what was written is still delivered.
        conn.written = conn.written.min(conn.next);
        conn.active = false;
        cx.rec
            .flow_event(cx.now, EventKind::FlowStopped, conn.flow, 0);
        return;
    }
    let mut next = conn.stop_ns;
    match conn.app {
        App::Bulk => conn.written = DSN_MAX,
        App::Size { bytes } => conn.write_size(bytes),
        App::OnOff { on, off } => {
            conn.active = !conn.active;
            conn.written = if conn.active { DSN_MAX } else { conn.next };
            let span = if conn.active { on } else { off };
            next = next.min(cx.now + self::span(span, rng).max(1));
        }
        // They are told by their pool, and by who watches.
        App::Transfer { .. } | App::Video { .. } => {}
    }
    if next != NEVER {
        cx.timers.set(&mut conn.timer, next, TimerKind::App, index);
    }
}
