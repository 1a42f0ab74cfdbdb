//! A TCP or MPTCP receiver: takes the connection, reads as fast as data come, checks every byte.

use super::send::wait;
use super::{Context, video};
use mptcplab_net::socket;
use mptcplab_scenario::{TcpFlow, Traffic};
use mptcplab_trace::EventKind;
use nix::poll::PollFlags;
use std::io::{ErrorKind, Read as _};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::Ordering;
use std::time::Duration;

pub(super) const BUFFER_BYTES: usize = 256 << 10;
const PATIENCE: Duration = Duration::from_millis(50);

/// The receiving thread of a flow.
pub(crate) fn receive(context: &Context, listener: &TcpListener, tcp: &TcpFlow) {
    let name = &context.flow.name;
    let stream = match accept(context, listener) {
        Ok(Some(stream)) => stream,
        Ok(None) => return,
        Err(error) => {
            return context
                .notes
                .ends_early(format!("flow {name}: its receiver cannot accept: {error}"));
        }
    };
    if let Err(reason) = check_protocol(context, tcp, &stream) {
        return context.notes.spoils(reason);
    }
    let stream = context.state.receiver.get_or_init(|| stream);
    let result = match &tcp.traffic {
        Traffic::Video(law) => video::watch(context, tcp, stream, law),
        _ => read_all(context, stream, tcp),
    };
    match result {
        Err(error) if !context.shared.is_stopped() => broken(context, &error),
        _ => {}
    }
}

/// Whether an accepted connection speaks what the scenario says; why not.
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

/// A connection broke, or delivered what was not sent.
pub(super) fn broken(context: &Context, error: &std::io::Error) {
    let name = &context.flow.name;
    match error.kind() {
        ErrorKind::InvalidData => context.notes.spoils(format!("flow {name}: {error}")),
        _ => context.notes.ends_early(format!(
            "flow {name}: the connection broke while data were read: {error}"
        )),
    }
}

/// The flow's connection, or none when the run is over before it came.
fn accept(context: &Context, listener: &TcpListener) -> std::io::Result<Option<TcpStream>> {
    while !context.shared.is_stopped() {
        if let Some(stream) = accept_now(listener)? {
            return Ok(Some(stream));
        }
        wait(listener, PollFlags::POLLIN, PATIENCE)?;
    }
    Ok(None)
}

/// A connection that waits, if there is one.
pub(super) fn accept_now(listener: &TcpListener) -> std::io::Result<Option<TcpStream>> {
    match listener.accept() {
        Ok((stream, _)) => {
            stream.set_nonblocking(true)?;
            socket::set_reset_on_close(&stream).map_err(std::io::Error::other)?;
            Ok(Some(stream))
        }
        Err(error) if is_not_yet(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Whether to try again.
pub(super) fn is_not_yet(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}

fn read_all(context: &Context, stream: &TcpStream, tcp: &TcpFlow) -> std::io::Result<()> {
    let mut buffer = vec![0; BUFFER_BYTES];
    let mut intake = Intake::new(0);
    while !context.shared.is_stopped() {
        let before = intake.position;
        if !intake.take(context, stream, &mut buffer)? {
            wait(stream, PollFlags::POLLIN, PATIENCE)?;
            continue;
        }
        let now = context.shared.clock.now_ns();
        let position = intake.position;
        if before == 0 {
            context
                .notes
                .event(now, EventKind::FirstByte, context.index, 0);
            context.state.waits.first_byte(0, now);
        }
        context.state.delivered.store(position, Ordering::Release);
        if tcp.traffic == (Traffic::Size { bytes: position }) {
            context
                .notes
                .event(now, EventKind::FlowCompleted, context.index, position);
            context.complete(tcp, 0, now, None);
        }
    }
    Ok(())
}

/// Reads a connection's data and checks every byte.
#[derive(Debug)]
pub(super) struct Intake {
    /// Bytes read so far.
    pub(super) position: u64,
    /// Where in the flow's pattern the data begin.
    first: u64,
}

impl Intake {
    pub(super) fn new(first: u64) -> Self {
        Self { position: 0, first }
    }

    /// Takes what is there, if anything is.
    pub(super) fn take(
        &mut self,
        context: &Context,
        mut stream: &TcpStream,
        buffer: &mut [u8],
    ) -> std::io::Result<bool> {
        let length = match stream.read(buffer) {
            Ok(0) => {
                return Err(std::io::Error::new(
                    ErrorKind::UnexpectedEof,
                    "the sender closed it",
                ));
            }
            Ok(length) => length,
            Err(error) if is_not_yet(&error) => return Ok(false),
            Err(error) => return Err(error),
        };
        let place = self.first + self.position;
        let checked = context.pattern.check(place, &buffer[..length]);
        checked.map_err(|wrong| {
            let what = format!(
                "byte {} arrived as {:#04x} instead of {:#04x}: the network did not deliver what was sent",
                wrong.position - self.first, wrong.found, wrong.expected
            );
            std::io::Error::new(ErrorKind::InvalidData, what)
        })?;
        self.position += length as u64;
        Ok(true)
    }
}
