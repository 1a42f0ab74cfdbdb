//! The sender of a flow of many transfers.

use super::{Arrival, Live, NEVER, PATIENCE, Transfer, ready};
use crate::traffic::ends::End;
use crate::traffic::receive::is_not_yet;
use crate::traffic::send::{established, is_first_acknowledged, next_bytes, options, pace, speaks};
use crate::traffic::subflows::Manager;
use crate::traffic::waits::Wait;
use crate::traffic::{Connection, Context, Life};
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

/// Between two looks at something that no descriptor tells.
const LOOK_NS: u64 = 1_000_000;
/// Ports of the senders, used one after the other: none comes again while anybody remembers it.
const FIRST_PORT: u16 = 20_000;
const PORTS: u16 = 40_000;

/// Why a flow cannot go on.
enum Failure {
    /// What was recorded is right.
    EndsEarly(String),
    Spoils(String),
}

/// The sending thread. `wake` becomes readable when a transfer is complete.
pub(in crate::traffic) fn send(
    context: &Context,
    tcp: &TcpFlow,
    law: &Transfers,
    paths: Option<&PathManager>,
    wake: &UnixStream,
) {
    let shared = &context.shared;
    if context.begin().is_none() {
        return;
    }
    let mut schedule = Schedule::new(
        law.clone(),
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
            Err(Failure::EndsEarly(reason)) => return context.notes.ends_early(reason),
            Err(Failure::Spoils(reason)) => return context.notes.spoils(reason),
        }
    }
}

struct Sender<'a> {
    context: &'a Context,
    tcp: &'a TcpFlow,
    paths: Option<&'a PathManager>,
    wake: &'a UnixStream,
    live: &'a Live,
    schedule: Schedule,
    /// The transfer that begins next.
    due: Option<mptcplab_model::traffic::Transfer>,
    open: Vec<Sending<'a>>,
    /// Whether the flow's stop has been told, or there is none.
    has_stopped: bool,
    next_port: u16,
}

/// A connection that was opened.
struct Sending<'a> {
    transfer: Arc<Transfer>,
    port: u16,
    step: Step,
    position: u64,
    manager: Option<Manager<'a>>,
    /// When the manager wants to look.
    manage_ns: u64,
    /// A closed loop's next transfer has been planned.
    is_counted: bool,
}

/// How far it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Connecting,
    /// MPTCP's first segment is on its way, alone.
    First,
    Writing,
    /// All is written.
    Waiting,
    Over,
}

impl Sending<'_> {
    fn stream(&self) -> &TcpStream {
        let stream = self.transfer.connection.sender.get();
        stream.unwrap_or_else(|| unreachable!("set when it was opened"))
    }

    /// What its socket is waited for, and when to look at it anyway.
    fn waits_for(&self, now: u64) -> (PollFlags, u64) {
        let is_done = self.transfer.arrival.done_ns().is_some();
        let (flags, look_ns) = match self.step {
            Step::Connecting | Step::Writing => (PollFlags::POLLOUT, NEVER),
            Step::First => (PollFlags::empty(), now + LOOK_NS),
            Step::Waiting if is_done => (PollFlags::empty(), now + LOOK_NS),
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
        let most = self.context.plan.at_once as usize;
        if self.live.count() >= most {
            return Err(Failure::EndsEarly(format!(
                "flow {}: {most} transfers are under way at once, more than the kernel engine has room for: its \
                 arrivals are more than its paths carry",
                self.context.flow.name
            )));
        }
        let port = self.free_port();
        let connection = Arc::new(Connection::new(self.tcp.subflows.len()));
        connection.set_life(0, Life::Handshake);
        let transfer = Arc::new(Transfer {
            connection,
            arrival: Arc::new(Arrival::new(due)),
        });
        // The receiver may see the connection before connect returns here.
        self.live.begin(port, &transfer);
        let begun_ns = self.context.shared.clock.now_ns();
        let late_ns = begun_ns.saturating_sub(due.at_ns);
        let state = &self.context.state;
        state.late_ns.fetch_max(late_ns, Ordering::Relaxed);
        let wait = Wait::new(begun_ns, due.bytes, &transfer.connection);
        state.waits.begin(due.index, wait);
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
            // Ends: fewer transfers are under way than there are ports.
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
        let stream =
            socket::begin_connect(speaks(self.tcp), source, target, &options(self.context))?;
        pace(self.context, self.tcp, &stream)?;
        Ok(stream)
    }

    /// Goes on with a connection as far as possible without waiting.
    fn step(&mut self, index: usize, now: u64) -> Result<(), Failure> {
        if self.open[index].step == Step::Connecting {
            self.establish(index, now)?;
        }
        let one = &mut self.open[index];
        if one.step == Step::First && is_first_acknowledged(one.stream()) {
            one.step = Step::Writing;
        }
        if one.step == Step::Writing {
            self.write(index)?;
        }
        let one = &mut self.open[index];
        if let (Some(done_ns), false) = (one.transfer.arrival.done_ns(), one.is_counted) {
            one.is_counted = true;
            if self.schedule.is_closed_loop() {
                self.due = self.schedule.after(done_ns);
            }
        }
        self.close_if_over(index, now)?;
        self.manage(index, now)
    }

    /// Whether the handshake is over.
    fn establish(&mut self, index: usize, now: u64) -> Result<(), Failure> {
        let one = &self.open[index];
        let transfer = one.transfer.arrival.index;
        match one.stream().take_error() {
            Ok(None) if one.stream().peer_addr().is_err() => return Ok(()),
            Ok(None) => {}
            Ok(Some(error)) | Err(error) => return Err(self.early(transfer, &error)),
        }
        let connection = Arc::clone(&one.transfer.connection);
        established(self.context, self.tcp, &connection, one.stream()).map_err(Failure::Spoils)?;
        let one = &mut self.open[index];
        one.step = Step::Writing;
        if let Some(paths) = self.paths.filter(|_| self.tcp.subflows.len() > 1) {
            let manager = Manager::new(self.context, self.tcp, paths, &connection, Some(transfer));
            let manager = manager.map_err(|error| self.spoils(transfer, &error))?;
            let one = &mut self.open[index];
            (one.manager, one.manage_ns) = (Some(manager), now);
        }
        Ok(())
    }

    fn write(&mut self, index: usize) -> Result<(), Failure> {
        loop {
            let one = &mut self.open[index];
            let left = one.transfer.arrival.bytes - one.position;
            if left == 0 {
                one.step = Step::Waiting;
                return Ok(());
            }
            let place = one.transfer.arrival.place() + one.position;
            let data = next_bytes(self.context, self.tcp, one.position, place, left);
            let mut stream = one.stream();
            match stream.write(data) {
                Ok(written) => {
                    let is_first = self.tcp.mptcp && one.position == 0;
                    one.position += written as u64;
                    if is_first && one.position < one.transfer.arrival.bytes {
                        one.step = Step::First;
                        return Ok(());
                    }
                }
                Err(error) if is_not_yet(&error) => return Ok(()),
                Err(error) => {
                    let transfer = one.transfer.arrival.index;
                    return Err(self.early(transfer, &error));
                }
            }
        }
    }

    /// Closes a connection of which all has arrived and is acknowledged.
    fn close_if_over(&mut self, index: usize, now: u64) -> Result<(), Failure> {
        let one = &mut self.open[index];
        if one.step != Step::Waiting || one.transfer.arrival.done_ns().is_none() {
            return Ok(());
        }
        let transfer = one.transfer.arrival.index;
        let Some(end) = End::of(Some(one.stream()), self.tcp.mptcp) else {
            return Err(Failure::Spoils(format!(
                "flow {}: transfer {transfer} fell back from MPTCP to TCP, or broke",
                self.context.flow.name
            )));
        };
        if end.is_all_acknowledged() {
            one.step = Step::Over;
            one.manager = None;
            one.transfer.arrival.closed_ns.store(now, Ordering::Release);
            self.live.end(one.port, self.tcp);
        }
        Ok(())
    }

    fn manage(&mut self, index: usize, now: u64) -> Result<(), Failure> {
        let one = &mut self.open[index];
        if one.manage_ns > now {
            return Ok(());
        }
        let transfer = one.transfer.arrival.index;
        if let Some(manager) = &mut one.manager {
            match manager.look(now) {
                Ok(next_ns) => one.manage_ns = next_ns,
                Err(error) => return Err(self.spoils(transfer, &error)),
            }
        }
        Ok(())
    }

    /// Until a socket is ready or a time has come.
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
            Failure::EndsEarly(format!("flow {}: poll: {error}", self.context.flow.name))
        })?;
        if ready[0] {
            // What it says is only that something happened.
            let _ = (&mut &*self.wake).read(&mut [0; 64]);
        }
        Ok(())
    }

    fn early(&self, transfer: u32, error: &dyn std::fmt::Display) -> Failure {
        let name = &self.context.flow.name;
        Failure::EndsEarly(format!("flow {name}: transfer {transfer}: {error}"))
    }

    fn spoils(&self, transfer: u32, error: &dyn std::fmt::Display) -> Failure {
        let name = &self.context.flow.name;
        Failure::Spoils(format!("flow {name}: transfer {transfer}: {error}"))
    }
}
