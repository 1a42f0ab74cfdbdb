//! A TCP or MPTCP receiver: takes the connection, reads as fast as data come, checks every byte.

use super::Context;
use super::send::wait;
use mptcplab_net::socket;
use mptcplab_scenario::{TcpFlow, Traffic};
use mptcplab_trace::EventKind;
use nix::poll::PollFlags;
use std::io::{ErrorKind, Read as _};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::Ordering;
use std::time::Duration;

const BUFFER_BYTES: usize = 256 << 10;
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
    match socket::is_mptcp_fallback(&stream) {
        Ok(true) if tcp.mptcp => {
            return context
                .notes
                .spoils(format!("flow {name} fell back from MPTCP to TCP"));
        }
        Ok(_) => {}
        Err(error) => return context.notes.spoils(format!("flow {name}: {error}")),
    }
    let stream = context.state.receiver.get_or_init(|| stream);
    match read_all(context, stream, &tcp.traffic) {
        Ok(()) => {}
        Err(_) if context.shared.is_stopped() => {}
        Err(error) if error.kind() == ErrorKind::InvalidData => {
            context.notes.spoils(format!("flow {name}: {error}"))
        }
        Err(error) => context.notes.ends_early(format!(
            "flow {name}: the connection broke while data were read: {error}"
        )),
    }
}

/// The flow's connection, or none when the run is over before it came.
fn accept(context: &Context, listener: &TcpListener) -> std::io::Result<Option<TcpStream>> {
    while !context.shared.is_stopped() {
        match listener.accept() {
            Ok((stream, _)) => {
                stream.set_nonblocking(true)?;
                socket::set_reset_on_close(&stream).map_err(std::io::Error::other)?;
                return Ok(Some(stream));
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                wait(listener, PollFlags::POLLIN, PATIENCE)?
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(None)
}

fn read_all(context: &Context, stream: &TcpStream, traffic: &Traffic) -> std::io::Result<()> {
    let mut buffer = vec![0; BUFFER_BYTES];
    let mut position = 0;
    let mut reader = stream;
    while !context.shared.is_stopped() {
        let length = match reader.read(&mut buffer) {
            Ok(0) => {
                return Err(std::io::Error::new(
                    ErrorKind::UnexpectedEof,
                    "the sender closed it",
                ));
            }
            Ok(length) => length,
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                wait(stream, PollFlags::POLLIN, PATIENCE)?;
                continue;
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        let now = context.shared.clock.now_ns();
        context.pattern.check(position, &buffer[..length]).map_err(|wrong| {
            let what = format!(
                "byte {} arrived as {:#04x} instead of {:#04x}: the network did not deliver what was sent",
                wrong.position, wrong.found, wrong.expected
            );
            std::io::Error::new(ErrorKind::InvalidData, what)
        })?;
        if position == 0 {
            context
                .notes
                .event(now, EventKind::FirstByte, context.index, 0);
        }
        position += length as u64;
        context.state.delivered.store(position, Ordering::Release);
        if let Traffic::Size { bytes } = traffic {
            if position == *bytes {
                context
                    .notes
                    .event(now, EventKind::FlowCompleted, context.index, *bytes);
            }
        }
    }
    Ok(())
}
