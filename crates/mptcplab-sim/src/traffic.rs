//! What the sending applications do: bulk, fixed size, on and off.

use crate::connection::{Connection, DSN_MAX};
use crate::event::{NEVER, TimerKind};
use crate::net::World;
use mptcplab_link::rng::Rng;
use mptcplab_scenario::{Span, StartTime, Traffic};
use mptcplab_trace::EventKind;

/// Draw a span from a flow's own stream.
pub(crate) fn draw_span(span: Span, rng: &mut Rng) -> u64 {
    match span {
        Span::Fixed(ns) => ns,
        Span::Uniform { lo_ns, hi_ns } => lo_ns + rng.below((hi_ns - lo_ns).max(1)),
    }
}

/// Draw a start time from a flow's own stream.
pub(crate) fn draw_start(start: StartTime, rng: &mut Rng) -> u64 {
    match start {
        StartTime::At(ns) => ns,
        StartTime::Uniform { lo_ns, hi_ns } => lo_ns + rng.below((hi_ns - lo_ns).max(1)),
    }
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
    match conn.traffic {
        Traffic::Bulk => conn.written = DSN_MAX,
        Traffic::Size { bytes } => conn.write_size(bytes),
        Traffic::OnOff { on, off } => {
            conn.active = !conn.active;
            conn.written = if conn.active { DSN_MAX } else { conn.next };
            let span = if conn.active { on } else { off };
            next = next.min(cx.now + draw_span(span, rng).max(1));
        }
    }
    if next != NEVER {
        cx.timers.set(&mut conn.timer, next, TimerKind::App, index);
    }
}
