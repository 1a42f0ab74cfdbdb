//! An adaptive video over one connection: the client requests every chunk with a message on the connection, and the server
//! writes the chunk.

use super::context::Context;
use super::pending::PendingTransfer;
use super::stream::{BUFFER_BYTES, PATIENCE, StreamReader, StreamWriter, is_not_ready, wait};
use mptcplab_model::traffic::{Chunk, Player};
use mptcplab_scenario::{TcpFlow, Video};
use mptcplab_trace::EventKind;
use nix::poll::PollFlags;
use std::io::{Error, ErrorKind, Read as _, Result, Write as _};
use std::net::TcpStream;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Size of a request, which contains the size of the chunk in bytes.
const REQUEST_BYTES: usize = 8;

/// The server: writes the requested chunks until the flow stops.
pub(super) fn serve(context: &Context, tcp: &TcpFlow, stream: &TcpStream) -> Result<()> {
    let shared = &context.shared;
    let mut writer = StreamWriter::new(context, tcp, stream);
    let mut request = Vec::with_capacity(REQUEST_BYTES);
    let mut left = 0;
    while !shared.is_stopped() && shared.clock.now_ns() < context.stop_ns {
        if left > 0 {
            left -= writer.write(left, context.stop_ns)?;
        } else if let Some(bytes) = next_request(stream, &mut request)? {
            left = bytes;
        } else {
            wait(stream, PollFlags::POLLIN, shared.until(context.stop_ns))?;
        }
    }
    Ok(())
}

/// Reads the next request; `None` until all of it has arrived.
fn next_request(mut stream: &TcpStream, request: &mut Vec<u8>) -> Result<Option<u64>> {
    let mut rest = [0; REQUEST_BYTES];
    match stream.read(&mut rest[request.len()..]) {
        Ok(0) => {
            return Err(Error::new(
                ErrorKind::UnexpectedEof,
                "the client closed the connection",
            ));
        }
        Ok(length) => {
            let from = request.len();
            request.extend_from_slice(&rest[from..from + length]);
        }
        Err(error) if is_not_ready(&error) => return Ok(None),
        Err(error) => return Err(error),
    }
    let whole = <[u8; REQUEST_BYTES]>::try_from(request.as_slice()).ok();
    if whole.is_some() {
        request.clear();
    }
    Ok(whole.map(u64::from_le_bytes))
}

/// The client: requests and reads chunks, and models the player.
pub(super) fn play(
    context: &Context,
    tcp: &TcpFlow,
    stream: &TcpStream,
    video: &Video,
) -> Result<()> {
    let shared = &context.shared;
    let mut buffer = vec![0; BUFFER_BYTES];
    let mut reader = StreamReader::new(0);
    let mut client = VideoClient {
        context,
        tcp,
        stream,
        player: Player::new(video.clone()),
        request_ns: shared.clock.now_ns(),
        requested: None,
        end: 0,
    };
    while !shared.is_stopped() {
        client.request_if_due(shared.clock.now_ns())?;
        let before = reader.position;
        if reader.read(context, stream, &mut buffer)? {
            client.received(before, reader.position)?;
        } else {
            let patience = client.patience();
            wait(stream, PollFlags::POLLIN, patience)?;
        }
    }
    Ok(())
}

struct VideoClient<'a> {
    context: &'a Context,
    tcp: &'a TcpFlow,
    stream: &'a TcpStream,
    player: Player,
    /// When to request the next chunk, if none is in transit.
    request_ns: u64,
    /// The chunk in transit.
    requested: Option<Chunk>,
    /// Position in the connection at which the last requested chunk ends.
    end: u64,
}

impl VideoClient<'_> {
    fn request_if_due(&mut self, now: u64) -> Result<()> {
        if self.requested.is_some() || now < self.request_ns || now >= self.context.stop_ns {
            return Ok(());
        }
        let chunk = self.player.ask(now);
        let connection = &self.context.state.connection;
        let before = connection.resent_pkts(self.tcp).unwrap_or(0);
        let pending =
            PendingTransfer::new(now, chunk.bytes, connection).chunk(chunk.media_bps, before);
        self.context.state.pending.begin(chunk.index, pending);
        self.requested = Some(chunk);
        self.end += chunk.bytes;
        // So few bytes always fit into the send buffer: nothing else is sent in this direction.
        let mut stream = self.stream;
        stream.write_all(&chunk.bytes.to_le_bytes())
    }

    /// Handles data that were received from one position of the connection to another.
    fn received(&mut self, from: u64, to: u64) -> Result<()> {
        let now = self.context.shared.clock.now_ns();
        let state = &self.context.state;
        if from == 0 {
            self.context
                .reporter
                .event(now, EventKind::FirstByte, self.context.index, 0);
        }
        state.delivered.store(to, Ordering::Release);
        let Some(chunk) = self.requested.filter(|_| to <= self.end) else {
            let what = format!(
                "{to} bytes were received, but only {} were requested",
                self.end
            );
            return Err(Error::new(ErrorKind::InvalidData, what));
        };
        state.pending.first_byte(chunk.index, now);
        if to == self.end {
            let watched = self.player.complete(now);
            self.context
                .complete(self.tcp, chunk.index, now, Some(watched.stall_ns));
            self.requested = None;
            self.request_ns = watched.next_ns;
        }
        Ok(())
    }

    /// How long to wait for data: at most until the next request, if there is one.
    fn patience(&self) -> Duration {
        match self.requested {
            None if self.request_ns < self.context.stop_ns => {
                PATIENCE.min(self.context.shared.until(self.request_ns))
            }
            _ => PATIENCE,
        }
    }
}
