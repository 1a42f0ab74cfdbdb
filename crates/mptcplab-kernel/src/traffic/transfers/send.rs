//! The sender of a flow in which every transfer has a connection.

use super::ready;
use crate::traffic::active_transfers::{ActiveTransfers, NEVER, Transfer, TransferState};
use crate::traffic::connection::{Connection, SubflowState};
use crate::traffic::context::Context;
use crate::traffic::pending::PendingTransfer;
use crate::traffic::send::{established, options, pace};
use crate::traffic::stream::{
    PATIENCE, is_first_segment_acknowledged, is_not_ready, next_bytes, socket_transport,
};
use crate::traffic::subflows::SubflowManager;
use crate::traffic::totals::End;
use mptcplab_model::traffic::Schedule;
use mptcplab_net::mptcp::PathManager;
use mptcplab_net::socket;
use mptcplab_scenario::{TcpFlow, Transfers};
use nix::poll::PollFlags;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddrV4, TcpStream};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Interval of checks for conditions that no descriptor signals.
const CHECK_NS: u64 = 1_000_000;
/// Ports of the senders, used in turn, so that a port is not used again while a socket may still have it.
const FIRST_PORT: u16 = 20_000;
const PORTS: u16 = 40_000;

/// Why a flow cannot continue.
enum Failure {
    /// What was recorded so far is valid.
    EndsRun(String),
    /// The whole run is invalid.
    InvalidatesRun(String),
}

/// The sending thread. `wake` becomes readable when a transfer is complete.
pub(in crate::traffic) fn send(
    context: &Context,
    tcp: &TcpFlow,
    transfers: &Transfers,
    paths: Option<&PathManager>,
    wake: &UnixStream,
) {
    let shared = &context.shared;
    if context.begin().is_none() {
        return;
    }
    let mut schedule = Schedule::new(
        transfers.clone(),
        context.rng.clone(),
        context.start_ns,
        context.stop_ns,
    );
    let due = schedule.first();
    let mut sender = Sender {
        context,
        tcp,
        paths,
        wake,
        live: &context.state.transfers,
        schedule,
        due,
        open: Vec::new(),
        has_stopped: context.flow.stop_ns.is_none(),
        next_port: 0,
    };
    while !shared.is_stopped() {
        match sender.turn() {
            Ok(()) => {}
            Err(_) if shared.is_stopped() => return,
            Err(Failure::EndsRun(reason)) => return context.reporter.end_run(reason),
            Err(Failure::InvalidatesRun(reason)) => return context.reporter.invalidate(reason),
        }
    }
}

struct Sender<'a> {
    context: &'a Context,
    tcp: &'a TcpFlow,
    paths: Option<&'a PathManager>,
    wake: &'a UnixStream,
    live: &'a ActiveTransfers,
    schedule: Schedule,
    /// The transfer that begins next.
    due: Option<mptcplab_model::traffic::Transfer>,
    open: Vec<Sending<'a>>,
    /// Whether the stop of the flow has been reported, or it has none.
    has_stopped: bool,
    next_port: u16,
}

/// An open connection.
struct Sending<'a> {
    transfer: Arc<Transfer>,
    port: u16,
    step: Step,
    position: u64,
    manager: Option<SubflowManager<'a>>,
    /// When the manager must check again.
    manage_ns: u64,
    /// Whether the next transfer of a closed loop has been scheduled.
    is_counted: bool,
}

/// The progress of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Connecting,
    /// The first segment of an MPTCP connection is in transit, alone.
    First,
    Writing,
    /// Everything is written.
    Waiting,
    Over,
}

impl Sending<'_> {
    fn stream(&self) -> &TcpStream {
        let stream = self.transfer.connection.sender.get();
        stream.unwrap_or_else(|| unreachable!("set when it was opened"))
    }

    /// The events to wait for on its socket, and when to check it in any case.
    fn waits_for(&self, now: u64) -> (PollFlags, u64) {
        let is_done = self.transfer.state.done_ns().is_some();
        let (flags, look_ns) = match self.step {
            Step::Connecting | Step::Writing => (PollFlags::POLLOUT, NEVER),
            Step::First => (PollFlags::empty(), now + CHECK_NS),
            Step::Waiting if is_done => (PollFlags::empty(), now + CHECK_NS),
            Step::Waiting | Step::Over => (PollFlags::empty(), NEVER),
        };
        (flags, look_ns.min(self.manage_ns))
    }
}

impl<'a> Sender<'a> {
    /// Does what is due, then waits for more.
    fn turn(&mut self) -> Result<(), Failure> {
        let now = self.context.shared.clock.now_ns();
        self.stop_if_due(now);
        self.begin_due(now)?;
        for index in 0..self.open.len() {
            self.step(index, now)?;
        }
        self.open.retain(|one| one.step != Step::Over);
        self.wait()
    }

    fn stop_if_due(&mut self, now: u64) {
        if !self.has_stopped && now >= self.context.stop_ns {
            self.has_stopped = true;
            self.context.stop();
        }
    }

    fn begin_due(&mut self, now: u64) -> Result<(), Failure> {
        while let Some(transfer) = self.due.take_if(|due| due.at_ns <= now) {
            if !self.schedule.is_closed_loop() {
                self.due = self.schedule.after(transfer.at_ns);
            }
            self.begin(transfer)?;
        }
        Ok(())
    }

    fn begin(&mut self, due: mptcplab_model::traffic::Transfer) -> Result<(), Failure> {
        let most = self.context.plan.max_connections as usize;
        if self.live.count() >= most {
            return Err(Failure::EndsRun(format!(
                "flow {}: {most} transfers are in progress at once, more than the kernel engine supports: they arrive \
                 faster than its paths can carry them",
                self.context.flow.name
            )));
        }
        let port = self.free_port();
        let connection = Arc::new(Connection::new(self.tcp.subflows.len()));
        connection.set_state(0, SubflowState::Handshake);
        let transfer = Arc::new(Transfer {
            connection,
            state: Arc::new(TransferState::new(due)),
        });
        // The receiver may see the connection before connect returns here.
        self.live.begin(port, &transfer);
        let begun_ns = self.context.shared.clock.now_ns();
        let late_ns = begun_ns.saturating_sub(due.at_ns);
        let state = &self.context.state;
        state.late_ns.fetch_max(late_ns, Ordering::Relaxed);
        let pending = PendingTransfer::new(begun_ns, due.bytes, &transfer.connection);
        state.pending.begin(due.index, pending);
        let stream = self
            .connect(port)
            .map_err(|error| self.early(due.index, &error))?;
        transfer.connection.sender.get_or_init(|| stream);
        self.open.push(Sending {
            transfer,
            port,
            step: Step::Connecting,
            position: 0,
            manager: None,
            manage_ns: NEVER,
            is_counted: false,
        });
        Ok(())
    }

    fn free_port(&mut self) -> u16 {
        loop {
            let port = FIRST_PORT + self.next_port;
            self.next_port = (self.next_port + 1) % PORTS;
            // The loop ends because there are more ports than transfers in progress.
            if self.live.is_free(port) {
                return port;
            }
        }
    }

    fn connect(&self, port: u16) -> Result<TcpStream, mptcplab_net::NetError> {
        let ends = self.context.plan.subflows[0];
        let (source, target) = (
            SocketAddrV4::new(ends.source, port),
            SocketAddrV4::new(ends.destination, self.context.plan.port),
        );
        let stream = socket::begin_connect(
            socket_transport(self.tcp),
            source,
            target,
            &options(self.context, self.tcp),
        )?;
        pace(self.context, self.tcp, &stream)?;
        Ok(stream)
    }

    /// Advances a connection as far as possible without waiting.
    fn step(&mut self, index: usize, now: u64) -> Result<(), Failure> {
        if self.open[index].step == Step::Connecting {
            self.establish(index, now)?;
        }
        let one = &mut self.open[index];
        if one.step == Step::First && is_first_segment_acknowledged(one.stream()) {
            one.step = Step::Writing;
        }
        if one.step == Step::Writing {
            self.write(index)?;
        }
        let one = &mut self.open[index];
        if let (Some(done_ns), false) = (one.transfer.state.done_ns(), one.is_counted) {
            one.is_counted = true;
            if self.schedule.is_closed_loop() {
                self.due = self.schedule.after(done_ns);
            }
        }
        self.close_if_over(index, now)?;
        self.manage(index, now)
    }

    /// Continues once the handshake is over.
    fn establish(&mut self, index: usize, now: u64) -> Result<(), Failure> {
        let one = &self.open[index];
        let transfer = one.transfer.state.index;
        match one.stream().take_error() {
            Ok(None) if one.stream().peer_addr().is_err() => return Ok(()),
            Ok(None) => {}
            Ok(Some(error)) | Err(error) => return Err(self.early(transfer, &error)),
        }
        let connection = Arc::clone(&one.transfer.connection);
        established(self.context, self.tcp, &connection, one.stream())
            .map_err(Failure::InvalidatesRun)?;
        let one = &mut self.open[index];
        one.step = Step::Writing;
        if let Some(paths) = self.paths.filter(|_| self.tcp.subflows.len() > 1) {
            let manager =
                SubflowManager::new(self.context, self.tcp, paths, &connection, Some(transfer));
            let manager = manager.map_err(|error| self.invalidate(transfer, &error))?;
            let one = &mut self.open[index];
            (one.manager, one.manage_ns) = (Some(manager), now);
        }
        Ok(())
    }

    fn write(&mut self, index: usize) -> Result<(), Failure> {
        loop {
            let one = &mut self.open[index];
            let left = one.transfer.state.bytes - one.position;
            if left == 0 {
                one.step = Step::Waiting;
                return Ok(());
            }
            let place = one.transfer.state.place() + one.position;
            let data = next_bytes(self.context, self.tcp, one.position, place, left);
            let mut stream = one.stream();
            match stream.write(data) {
                Ok(written) => {
                    let is_first = self.tcp.mptcp && one.position == 0;
                    one.position += written as u64;
                    if is_first && one.position < one.transfer.state.bytes {
                        one.step = Step::First;
                        return Ok(());
                    }
                }
                Err(error) if is_not_ready(&error) => return Ok(()),
                Err(error) => {
                    let transfer = one.transfer.state.index;
                    return Err(self.early(transfer, &error));
                }
            }
        }
    }

    /// Closes a connection if all of its data have arrived and are acknowledged.
    fn close_if_over(&mut self, index: usize, now: u64) -> Result<(), Failure> {
        let one = &mut self.open[index];
        if one.step != Step::Waiting || one.transfer.state.done_ns().is_none() {
            return Ok(());
        }
        let transfer = one.transfer.state.index;
        let Some(end) = End::of(Some(one.stream()), self.tcp.mptcp) else {
            return Err(Failure::InvalidatesRun(format!(
                "flow {}: transfer {transfer} fell back from MPTCP to TCP, or broke",
                self.context.flow.name
            )));
        };
        if end.is_all_acknowledged() {
            one.step = Step::Over;
            one.manager = None;
            one.transfer.state.closed_ns.store(now, Ordering::Release);
            self.live.end(one.port, self.tcp);
        }
        Ok(())
    }

    fn manage(&mut self, index: usize, now: u64) -> Result<(), Failure> {
        let one = &mut self.open[index];
        if one.manage_ns > now {
            return Ok(());
        }
        let transfer = one.transfer.state.index;
        if let Some(manager) = &mut one.manager {
            match manager.update(now) {
                Ok(next_ns) => one.manage_ns = next_ns,
                Err(error) => return Err(self.invalidate(transfer, &error)),
            }
        }
        Ok(())
    }

    /// Waits until a socket is ready or something is due.
    fn wait(&mut self) -> Result<(), Failure> {
        let shared = &self.context.shared;
        let now = shared.clock.now_ns();
        let mut next = self.due.map_or(NEVER, |due| due.at_ns);
        if !self.has_stopped {
            next = next.min(self.context.stop_ns);
        }
        let mut sockets: Vec<(&dyn AsFd, PollFlags)> = vec![(self.wake, PollFlags::POLLIN)];
        for one in &self.open {
            let (flags, look_ns) = one.waits_for(now);
            next = next.min(look_ns);
            if !flags.is_empty() {
                sockets.push((one.stream(), flags));
            }
        }
        let most = PATIENCE.min(shared.until(next));
        let ready = ready(&sockets, most).map_err(|error| {
            Failure::EndsRun(format!("flow {}: poll: {error}", self.context.flow.name))
        })?;
        if ready[0] {
            // The bytes have no content; they only wake this thread.
            let _ = (&mut &*self.wake).read(&mut [0; 64]);
        }
        Ok(())
    }

    fn early(&self, transfer: u32, error: &dyn std::fmt::Display) -> Failure {
        let name = &self.context.flow.name;
        Failure::EndsRun(format!("flow {name}: transfer {transfer}: {error}"))
    }

    fn invalidate(&self, transfer: u32, error: &dyn std::fmt::Display) -> Failure {
        let name = &self.context.flow.name;
        Failure::InvalidatesRun(format!("flow {name}: transfer {transfer}: {error}"))
    }
}
