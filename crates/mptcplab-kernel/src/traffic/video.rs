//! An adaptive video over one connection: who watches asks for every chunk with a message of its own, which travels back
//! over the connection, and the server writes it.

use super::Context;
use super::receive::{BUFFER_BYTES, Intake, is_not_yet};
use super::send::{Writer, wait};
use super::waits::Wait;
use mptcplab_model::traffic::{Chunk, Player};
use mptcplab_scenario::{TcpFlow, Video};
use mptcplab_trace::EventKind;
use nix::poll::PollFlags;
use std::io::{Error, ErrorKind, Read as _, Result, Write as _};
use std::net::TcpStream;
use std::sync::atomic::Ordering;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_millis(50);
/// A request is the chunk's size in bytes.
const REQUEST_BYTES: usize = 8;

/// The server: writes what it is asked for, until the flow stops.
pub(super) fn serve(context: &Context, tcp: &TcpFlow, stream: &TcpStream) -> Result<()> {
    let shared = &context.shared;
    let mut writer = Writer::new(context, tcp, stream);
    let mut request = Vec::with_capacity(REQUEST_BYTES);
    let mut left = 0;
    while !shared.is_stopped() && shared.clock.now_ns() < context.stop_ns {
        if left > 0 {
            left -= writer.write(left, context.stop_ns)?;
        } else if let Some(bytes) = requested(stream, &mut request)? {
            left = bytes;
        } else {
            wait(stream, PollFlags::POLLIN, shared.until(context.stop_ns))?;
        }
    }
    Ok(())
}

/// The next request, once all of it is there.
fn requested(mut stream: &TcpStream, request: &mut Vec<u8>) -> Result<Option<u64>> {
    let mut rest = [0; REQUEST_BYTES];
    match stream.read(&mut rest[request.len()..]) {
        Ok(0) => return Err(Error::new(ErrorKind::UnexpectedEof, "the player closed it")),
        Ok(length) => {
            let from = request.len();
            request.extend_from_slice(&rest[from..from + length]);
        }
        Err(error) if is_not_yet(&error) => return Ok(None),
        Err(error) => return Err(error),
    }
    let whole = <[u8; REQUEST_BYTES]>::try_from(request.as_slice()).ok();
    if whole.is_some() {
        request.clear();
    }
    Ok(whole.map(u64::from_le_bytes))
}

/// Who watches: asks, reads, plays.
pub(super) fn watch(
    context: &Context,
    tcp: &TcpFlow,
    stream: &TcpStream,
    law: &Video,
) -> Result<()> {
    let shared = &context.shared;
    let mut buffer = vec![0; BUFFER_BYTES];
    let mut intake = Intake::new(0);
    let mut viewer = Viewer {
        context,
        tcp,
        stream,
        player: Player::new(law.clone()),
        ask_ns: shared.clock.now_ns(),
        asked: None,
        end: 0,
    };
    while !shared.is_stopped() {
        viewer.ask_if_due(shared.clock.now_ns())?;
        let before = intake.position;
        if intake.take(context, stream, &mut buffer)? {
            viewer.took(before, intake.position)?;
        } else {
            let patience = viewer.patience();
            wait(stream, PollFlags::POLLIN, patience)?;
        }
    }
    Ok(())
}

struct Viewer<'a> {
    context: &'a Context,
    tcp: &'a TcpFlow,
    stream: &'a TcpStream,
    player: Player,
    /// When the next chunk is to be asked for, once none is on its way.
    ask_ns: u64,
    /// The chunk on its way.
    asked: Option<Chunk>,
    /// Where in the connection's data the last chunk that was asked for ends.
    end: u64,
}

impl Viewer<'_> {
    fn ask_if_due(&mut self, now: u64) -> Result<()> {
        if self.asked.is_some() || now < self.ask_ns || now >= self.context.stop_ns {
            return Ok(());
        }
        let chunk = self.player.ask(now);
        let connection = &self.context.state.connection;
        let before = connection.resent_pkts(self.tcp).unwrap_or(0);
        let wait = Wait::new(now, chunk.bytes, connection).chunk(chunk.media_bps, before);
        self.context.state.waits.begin(chunk.index, wait);
        self.asked = Some(chunk);
        self.end += chunk.bytes;
        // So little always fits: nothing else is sent this way.
        let mut stream = self.stream;
        stream.write_all(&chunk.bytes.to_le_bytes())
    }

    /// Data came: from one position of the connection to another.
    fn took(&mut self, from: u64, to: u64) -> Result<()> {
        let now = self.context.shared.clock.now_ns();
        let state = &self.context.state;
        if from == 0 {
            self.context
                .notes
                .event(now, EventKind::FirstByte, self.context.index, 0);
        }
        state.delivered.store(to, Ordering::Release);
        let Some(chunk) = self.asked.filter(|_| to <= self.end) else {
            let what = format!("{to} bytes came, asked for were {}", self.end);
            return Err(Error::new(ErrorKind::InvalidData, what));
        };
        state.waits.first_byte(chunk.index, now);
        if to == self.end {
            let watched = self.player.complete(now);
            self.context
                .complete(self.tcp, chunk.index, now, Some(watched.stall_ns));
            self.asked = None;
            self.ask_ns = watched.next_ns;
        }
        Ok(())
    }

    /// How long to wait for data: not beyond the next request, if there will be one.
    fn patience(&self) -> Duration {
        match self.asked {
            None if self.ask_ns < self.context.stop_ns => {
                PATIENCE.min(self.context.shared.until(self.ask_ns))
            }
            _ => PATIENCE,
        }
    }
}
