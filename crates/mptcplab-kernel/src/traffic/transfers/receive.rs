//! The receiver of a flow in which every transfer has a connection.

use super::ready;
use crate::traffic::active_transfers::{ActiveTransfers, NEVER, TransferState};
use crate::traffic::context::Context;
use crate::traffic::receive::{accept_now, broken, check_protocol};
use crate::traffic::stream::{BUFFER_BYTES, PATIENCE, StreamReader};
use mptcplab_scenario::TcpFlow;
use nix::poll::PollFlags;
use std::io::{Error, ErrorKind, Result, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// A connection is also closed this long after its sender closed it, because the reset may have been lost.
const RESET_LOST_NS: u64 = 2_000_000_000;

/// The receiving thread. It wakes the sender's thread through `wake` when a transfer is complete.
pub(in crate::traffic) fn receive(
    context: &Context,
    listener: &TcpListener,
    tcp: &TcpFlow,
    wake: &UnixStream,
) {
    let mut receiver = Receiver {
        context,
        listener,
        tcp,
        wake,
        live: &context.state.transfers,
        open: Vec::new(),
        buffer: vec![0; BUFFER_BYTES],
    };
    while !context.shared.is_stopped() {
        if let Err(error) = receiver.turn() {
            if !context.shared.is_stopped() {
                broken(context, &error);
            }
            return;
        }
    }
}

struct Receiver<'a> {
    context: &'a Context,
    listener: &'a TcpListener,
    tcp: &'a TcpFlow,
    wake: &'a UnixStream,
    live: &'a ActiveTransfers,
    open: Vec<Receiving>,
    buffer: Vec<u8>,
}

/// An accepted connection.
struct Receiving {
    transfer: Arc<TransferState>,
    reader: StreamReader,
    is_over: bool,
}

impl Receiving {
    fn stream(&self) -> &TcpStream {
        let stream = self.transfer.receiver.get();
        stream.unwrap_or_else(|| unreachable!("set when it was accepted"))
    }
}

impl Receiver<'_> {
    /// Waits for sockets to become ready and handles them.
    fn turn(&mut self) -> Result<()> {
        let mut sockets: Vec<(&dyn AsFd, PollFlags)> = vec![(self.listener, PollFlags::POLLIN)];
        let streams = self.open.iter().map(|one| one.stream() as &dyn AsFd);
        sockets.extend(streams.map(|stream| (stream, PollFlags::POLLIN)));
        let ready = ready(&sockets, PATIENCE)?;
        for (index, _) in ready
            .iter()
            .skip(1)
            .enumerate()
            .filter(|(_, ready)| **ready)
        {
            self.read(index)?;
        }
        if ready[0] {
            self.accept()?;
        }
        let now = self.context.shared.clock.now_ns();
        self.open.retain(|one| {
            let closed_ns = one.transfer.closed_ns().unwrap_or(NEVER);
            !one.is_over && now < closed_ns.saturating_add(RESET_LOST_NS)
        });
        Ok(())
    }

    fn accept(&mut self) -> Result<()> {
        while let Some(stream) = accept_now(self.listener)? {
            check_protocol(self.context, self.tcp, &stream)
                .map_err(|reason| Error::new(ErrorKind::InvalidData, reason))?;
            let SocketAddr::V4(peer) = stream.peer_addr()? else {
                unreachable!("the listener is IPv4");
            };
            let Some(transfer) = self.live.by_port(peer.port()) else {
                let what =
                    format!("a connection was accepted from {peer}, which no transfer opened");
                return Err(Error::new(ErrorKind::InvalidData, what));
            };
            transfer.receiver.get_or_init(|| stream);
            self.open.push(Receiving {
                reader: StreamReader::new(transfer.place()),
                transfer,
                is_over: false,
            });
            // Its data may already have arrived.
            self.read(self.open.len() - 1)?;
        }
        Ok(())
    }

    fn read(&mut self, index: usize) -> Result<()> {
        let one = &mut self.open[index];
        let stream = one.transfer.receiver.get();
        let stream = stream.unwrap_or_else(|| unreachable!("set when it was accepted"));
        let before = one.reader.position;
        match one.reader.read(self.context, stream, &mut self.buffer) {
            Ok(false) => return Ok(()),
            Ok(true) => {}
            // This is the sender's reset.
            Err(_) if before == one.transfer.bytes => {
                one.is_over = true;
                return Ok(());
            }
            Err(error) => {
                let what = format!("transfer {}: {error}", one.transfer.index);
                return Err(Error::new(error.kind(), what));
            }
        }
        let now = self.context.shared.clock.now_ns();
        let (state, index) = (&self.context.state, one.transfer.index);
        let position = one.reader.position;
        if before == 0 {
            state.pending.first_byte(index, now);
        }
        state
            .delivered
            .fetch_add(position - before, Ordering::AcqRel);
        if position > one.transfer.bytes {
            let what = format!(
                "transfer {index}: {position} bytes were received instead of {}",
                one.transfer.bytes
            );
            return Err(Error::new(ErrorKind::InvalidData, what));
        }
        if position == one.transfer.bytes {
            self.context.complete(self.tcp, index, now, None);
            one.transfer.done_ns.store(now, Ordering::Release);
            // If the buffer is full, the sender will wake up anyway.
            let _ = (&mut &*self.wake).write(&[0]);
        }
        Ok(())
    }
}
