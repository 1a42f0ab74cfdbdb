//! The receiver of a TCP or MPTCP flow: accepts the connection, reads data as fast as they arrive, checks every byte.

use super::context::Context;
use super::requests;
use super::stream::{BUFFER_BYTES, PATIENCE, StreamReader, is_not_ready, wait};
use super::video;
use mptcplab_net::socket;
use mptcplab_scenario::{TcpFlow, Traffic};
use mptcplab_trace::EventKind;
use nix::poll::PollFlags;
use std::io::ErrorKind;
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::Ordering;

/// The receiving thread of a flow.
pub(crate) fn receive(context: &Context, listener: &TcpListener, tcp: &TcpFlow) {
    let name = &context.flow.name;
    let stream = match accept(context, listener) {
        Ok(Some(stream)) => stream,
        Ok(None) => return,
        Err(error) => {
            return context
                .reporter
                .end_run(format!("flow {name}: its receiver cannot accept: {error}"));
        }
    };
    if let Err(reason) = check_protocol(context, tcp, &stream) {
        return context.reporter.invalidate(reason);
    }
    let stream = context.state.receiver.get_or_init(|| stream);
    let result = match &tcp.traffic {
        Traffic::Video(video) => video::play(context, tcp, stream, video),
        Traffic::Requests(asked) => {
            no_delay(stream).and_then(|()| requests::at_receiver(context, tcp, stream, asked))
        }
        _ => read_all(context, stream, tcp),
    };
    match result {
        Err(error) if !context.shared.is_stopped() => broken(context, &error),
        _ => {}
    }
}

/// Checks that an accepted connection uses the protocol of the scenario; the error says why not.
pub(super) fn check_protocol(
    context: &Context,
    tcp: &TcpFlow,
    stream: &TcpStream,
) -> Result<(), String> {
    let name = &context.flow.name;
    match socket::is_mptcp_fallback(stream) {
        Ok(true) if tcp.mptcp => Err(format!("flow {name} fell back from MPTCP to TCP")),
        Ok(_) => Ok(()),
        Err(error) => Err(format!("flow {name}: {error}")),
    }
}

/// Reports that a connection broke, or delivered other data than were sent.
pub(super) fn broken(context: &Context, error: &std::io::Error) {
    let name = &context.flow.name;
    match error.kind() {
        ErrorKind::InvalidData => context.reporter.invalidate(format!("flow {name}: {error}")),
        _ => context.reporter.end_run(format!(
            "flow {name}: the connection broke while data were read: {error}"
        )),
    }
}

/// Waits for the flow's connection; `None` if the run ends before.
fn accept(context: &Context, listener: &TcpListener) -> std::io::Result<Option<TcpStream>> {
    while !context.shared.is_stopped() {
        if let Some(stream) = accept_now(listener)? {
            return Ok(Some(stream));
        }
        wait(listener, PollFlags::POLLIN, PATIENCE)?;
    }
    Ok(None)
}

/// Accepts a connection, if one is waiting.
pub(super) fn accept_now(listener: &TcpListener) -> std::io::Result<Option<TcpStream>> {
    match listener.accept() {
        Ok((stream, _)) => {
            stream.set_nonblocking(true)?;
            socket::set_reset_on_close(&stream).map_err(std::io::Error::other)?;
            Ok(Some(stream))
        }
        Err(error) if is_not_ready(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Without Nagle's algorithm. A socket does not inherit this from the one that listens.
fn no_delay(stream: &TcpStream) -> std::io::Result<()> {
    stream.set_nodelay(true)
}

fn read_all(context: &Context, stream: &TcpStream, tcp: &TcpFlow) -> std::io::Result<()> {
    let mut buffer = vec![0; BUFFER_BYTES];
    let mut reader = StreamReader::new(0);
    while !context.shared.is_stopped() {
        if reader.is_drained && !wait(stream, PollFlags::POLLIN, PATIENCE)? {
            continue;
        }
        let before = reader.position;
        if !reader.read(context, stream, &mut buffer)? {
            continue;
        }
        let now = context.shared.clock.now_ns();
        let position = reader.position;
        if before == 0 {
            context
                .reporter
                .event(now, EventKind::FirstByte, context.index, 0);
            context.state.pending.first_byte(0, now);
        }
        context.state.delivered.store(position, Ordering::Release);
        if tcp.traffic == (Traffic::Size { bytes: position }) {
            context
                .reporter
                .event(now, EventKind::FlowCompleted, context.index, position);
            context.complete(tcp, 0, now, None);
        }
    }
    Ok(())
}
