//! The thread's event loop: release the packets that are due, read new ones, sleep until one may be due at a port.

use crate::buffer::{Buffer, Pool};
use crate::clock::{Clock, thread_cpu_ns};
use crate::command::{Command, Inbox};
use crate::error::Error;
use crate::histogram::Histogram;
use crate::pairs::Pairs;
use crate::report::{LinkReport, LogEntry, PortReport, Report, Scheduling};
use crate::rest::Rest;
use crate::sample::{LinkChange, Sample};
use crate::setup::{LinkSetup, Options, Pair, Port, Setup};
use crate::spin::Spin;
use crate::{header, sys};
use mptcplab_model::link::{Aqm, Link, LinkConfig, Loss, Verdict};
use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags};
use nix::sys::mman::{MlockAllFlags, mlockall};
use nix::sys::uio::readv;
use std::io::IoSliceMut;
use std::ops::ControlFlow;
use std::os::fd::OwnedFd;
use std::rc::Rc;

/// Releases in a row before ports are read, and rounds of reading before the kernel is asked.
const BATCH: usize = 16;
/// Rounds of releasing and reading before the kernel is asked about the ports that were not ready.
const BUSY_ROUNDS: u32 = 4;
/// Tag of the command queue's descriptor among the epoll events; ports have their index.
const WAKEUP: u64 = u64::MAX;
/// The largest IP packet: an IPv6 header and 65,535 bytes.
const LARGEST_PACKET: usize = 65_575;

pub(crate) struct Engine {
    clock: Clock,
    epoll: Epoll,
    events: sys::Events,
    ports: Vec<PortState>,
    links: Vec<LinkState>,
    /// When each link next has something to do: `next_ns` of every link in one array.
    due: Vec<u64>,
    /// When a packet may reach a port after that.
    deadlines: Vec<u64>,
    /// What packets pass after each link.
    rests: Vec<Rest>,
    /// Ports that may have packets.
    ready: Vec<Ready>,
    pairs: Pairs,
    pool: Rc<Pool>,
    /// Buffer for the next packet.
    memory: Box<[u8]>,
    /// Buffer for the rest of a packet that is larger than `memory`.
    rest: Box<[u8]>,
    spin: Spin,
    changes: Vec<LinkChange>,
    log: Vec<LogEntry>,
    log_entries: usize,
    scheduling: Scheduling,
    memory_locked: Result<bool, Errno>,
    wakeups: Histogram,
    /// When the ports were last polled, on `CLOCK_MONOTONIC`.
    polled_ns: u64,
    busy_rounds: u32,
    from_ns: u64,
    worst_busy_ns: u64,
    worst_write_ns: u64,
    worst_sample_ns: u64,
    /// Since the previous sample.
    lateness_max_ns: u64,
}

/// A port that may have packets.
#[derive(Debug, Clone, Copy)]
struct Ready {
    port: usize,
    /// The kernel said that there are packets, so that the port is read until there is none. Otherwise one is expected in
    /// answer to what was written, and the kernel is asked about more.
    is_reported: bool,
}

struct PortState {
    name: String,
    fd: OwnedFd,
    /// The link that its packets enter.
    link: Option<usize>,
    /// It reported an error or a hang-up: once it has no more packets, it is closed.
    hung_up: bool,
    read_pkts: u64,
    written_pkts: u64,
    malformed_pkts: u64,
    unrouted_pkts: u64,
    /// What the next packet from it may be the answer to.
    asked: Option<Asked>,
}

/// The first packet that was written to a port since it was read: the link that released it, and when it was due.
#[derive(Debug, Clone, Copy)]
struct Asked {
    link: usize,
    due_ns: u64,
}

struct LinkState {
    name: String,
    /// Where packets go that enter no other link.
    to: Option<usize>,
    config: LinkConfig,
    link: Link<Buffer>,
    /// The latest time that was passed to the link; it must not decrease.
    link_time_ns: u64,
    arrived: u64,
    changes_applied: usize,
    lateness: Histogram,
    answers: Histogram,
    write_failed_pkts: u64,
}

impl Engine {
    /// Must be called in the thread that will run the engine: the scheduling is the thread's, and the buffers stay in it.
    pub(crate) fn new(setup: Setup, inbox: &Inbox) -> Result<Self, Error> {
        let routes = setup.routes()?;
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)
            .map_err(Error::system("make an epoll instance"))?;
        let wakeup = EpollEvent::new(EpollFlags::EPOLLIN, WAKEUP);
        epoll
            .add(&*inbox.wakeup, wakeup)
            .map_err(Error::system("watch an eventfd"))?;
        let ports = prepare_ports(setup.ports, routes, &epoll)?;
        let pairs = Pairs::new(&setup.pairs, &setup.links);
        let links: Vec<LinkState> = setup.links.into_iter().map(LinkState::new).collect();
        let rests = (0..links.len()).map(|link| rest(link, &setup.pairs, &links));
        let pool = Pool::new();
        let memory = pool.take();
        let scheduling = set_scheduling(&setup.options)?;
        let memory_locked = lock_memory(&setup.options);
        let now = Clock::monotonic_ns();
        let mut spin = Spin::new(setup.options.spin_ns, setup.options.spin_percent, now);
        spin.enable(scheduling.is_real_time());
        let mut engine = Self {
            clock: setup.clock,
            epoll,
            events: sys::Events::new(),
            due: vec![u64::MAX; links.len()],
            deadlines: vec![u64::MAX; links.len()],
            rests: rests.collect(),
            ready: Vec::with_capacity(ports.len()),
            ports,
            links,
            pairs,
            pool,
            memory,
            rest: vec![0; LARGEST_PACKET].into_boxed_slice(),
            spin,
            changes: Vec::new(),
            log: Vec::with_capacity(setup.options.log_entries),
            log_entries: setup.options.log_entries,
            scheduling,
            memory_locked,
            wakeups: Histogram::new(),
            polled_ns: now,
            busy_rounds: 0,
            from_ns: setup.clock.at(now),
            worst_busy_ns: 0,
            worst_write_ns: 0,
            worst_sample_ns: 0,
            lateness_max_ns: 0,
        };
        (0..engine.links.len()).for_each(|link| engine.update_due(link));
        Ok(engine)
    }

    pub(crate) fn scheduling(&self) -> &Scheduling {
        &self.scheduling
    }

    /// Runs until it receives the command to stop.
    pub(crate) fn run(&mut self, inbox: &Inbox) -> Result<(), Error> {
        self.polled_ns = Clock::monotonic_ns();
        loop {
            self.release_due()?;
            self.read_ready()?;
            if self.poll_events(inbox)?.is_break() {
                return Ok(());
            }
        }
    }

    /// Releases the packets that are due, earliest first.
    fn release_due(&mut self) -> Result<(), Error> {
        for _ in 0..BATCH {
            let now = self.clock.now_ns();
            match self.earliest() {
                Some((link, due)) if due <= now => self.advance(link, due)?,
                _ => break,
            }
        }
        Ok(())
    }

    /// Does everything that is due up to `now`, so that no link is ahead of the packets that come to it.
    fn catch_up(&mut self, now: u64) -> Result<(), Error> {
        while let Some((link, due)) = self.earliest().filter(|(_, due)| *due <= now) {
            self.advance(link, due)?;
        }
        Ok(())
    }

    /// The link that has something to do first, and when; among links with the same time, the one with the lowest index.
    fn earliest(&self) -> Option<(usize, u64)> {
        let due = self.due.iter().copied().enumerate();
        due.min_by_key(|(_, due)| *due)
    }

    /// When a packet may next reach a port.
    fn deadline(&self) -> u64 {
        self.deadlines.iter().copied().min().unwrap_or(u64::MAX)
    }

    /// Lets the link do the one thing that was due at `due`, which is not later than now.
    fn advance(&mut self, index: usize, due: u64) -> Result<(), Error> {
        let state = &mut self.links[index];
        // The link gets the time at which this was due instead of the later time at which it is done, so that events
        // between the two are not done at once and `due` is the time of exactly this release. After a later arrival or
        // sample the link has done everything up to that time except deliveries.
        state.link_time_ns = state.link_time_ns.max(due);
        let packet = state.link.poll(state.link_time_ns);
        self.update_due(index);
        let Some(packet) = packet else {
            return Ok(());
        };
        match (self.pairs.next_link(index, &packet), self.links[index].to) {
            (Some(next), _) => {
                self.log_release(index, &packet, due, due);
                self.arrive(next, packet, due);
                Ok(())
            }
            (None, Some(port)) => self.deliver(index, port, due, &packet),
            // `route` lets no packet enter a link from which it cannot go on.
            (None, None) => Ok(()),
        }
    }

    /// Called after anything that a link did: notes when it has something to do next, and which changes took effect.
    fn update_due(&mut self, index: usize) {
        let link = &self.links[index].link;
        let transit_ns = |link: usize, bytes| self.links[link].link.shortest_transit_ns(bytes);
        let rest_ns = self.rests[index].ns(link.coming(0), transit_ns);
        self.due[index] = link.next_ns();
        self.deadlines[index] = link.next_ns().saturating_add(rest_ns);
        let state = &mut self.links[index];
        while state.changes_applied < state.link.changes_applied() {
            self.changes.push(LinkChange {
                link: index,
                change: state.changes_applied,
                at_ns: state.config.schedule[state.changes_applied].at_ns,
            });
            state.changes_applied += 1;
        }
    }

    /// Writes a packet to its destination.
    fn deliver(
        &mut self,
        index: usize,
        to: usize,
        due_ns: u64,
        packet: &Buffer,
    ) -> Result<(), Error> {
        let now = self.clock.now_ns();
        let state = &mut self.links[index];
        state.lateness.record(now - due_ns);
        self.lateness_max_ns = self.lateness_max_ns.max(now - due_ns);
        let port = &mut self.ports[to];
        let written = loop {
            match nix::unistd::write(&port.fd, packet.bytes()) {
                Err(Errno::EINTR) => {}
                result => break result,
            }
        };
        self.worst_write_ns = self.worst_write_ns.max(self.clock.now_ns() - now);
        match written {
            Ok(bytes) if bytes == packet.bytes().len() => {
                port.written_pkts += 1;
                self.pairs.delivered(packet);
                port.asked.get_or_insert(Asked {
                    link: index,
                    due_ns,
                });
                self.expect_answer(to);
            }
            // The queue is full or memory is short: the packet is lost although the model did not drop it.
            Ok(_) | Err(Errno::EAGAIN | Errno::ENOBUFS | Errno::ENOMEM) => {
                state.write_failed_pkts += 1
            }
            Err(errno) => return Err(port.failed("write a packet", errno)),
        }
        self.log_release(index, packet, due_ns, now);
        Ok(())
    }

    fn log_release(&mut self, link: usize, packet: &Buffer, due_ns: u64, at_ns: u64) {
        self.log_entry(LogEntry::Release {
            link,
            number: packet.number,
            due_ns,
            at_ns,
        });
    }

    /// The host behind a port usually answers within the write, and to read the answer costs less than to ask for it.
    fn expect_answer(&mut self, port: usize) {
        let feeds_link = self.ports[port].link.is_some();
        if feeds_link && !self.ready.iter().any(|ready| ready.port == port) {
            self.ready.push(Ready {
                port,
                is_reported: false,
            });
        }
    }

    /// Reads from the ports that may have packets, one packet from each in turn; releases that become due come first.
    fn read_ready(&mut self) -> Result<(), Error> {
        for _ in 0..BATCH {
            let mut next = 0;
            // Ports that are added meanwhile have their turn in the next round.
            for _ in 0..self.ready.len() {
                let Ready { port, is_reported } = self.ready[next];
                if self.read(port)? && is_reported {
                    next += 1;
                } else {
                    self.ready.remove(next);
                }
            }
            if self.ready.is_empty() {
                break;
            }
        }
        Ok(())
    }

    /// Reads one packet and passes it to its link, after all that was due before it came. Returns whether there was one.
    fn read(&mut self, index: usize) -> Result<bool, Error> {
        let port = &mut self.ports[index];
        let mut parts = [
            IoSliceMut::new(&mut self.memory),
            IoSliceMut::new(&mut self.rest),
        ];
        let bytes = match readv(&port.fd, &mut parts) {
            Ok(0) => return Err(port.closed()),
            Ok(bytes) => bytes,
            Err(Errno::EAGAIN) if port.hung_up => return Err(port.closed()),
            Err(Errno::EAGAIN) => {
                port.asked = None;
                return Ok(false);
            }
            Err(Errno::EINTR) => 0,
            Err(errno) => return Err(port.failed("read a packet", errno)),
        };
        if bytes > 0 {
            port.read_pkts += 1;
            let now = self.clock.now_ns();
            if let Some(Asked { link, due_ns }) = port.asked.take() {
                self.links[link].answers.record(now.saturating_sub(due_ns));
            }
            self.join_parts(bytes);
            self.catch_up(now)?;
            self.route(index, bytes, now);
        }
        Ok(true)
    }

    /// Puts the whole packet into `memory`, if part of it is in `rest`.
    fn join_parts(&mut self, bytes: usize) {
        let first = self.memory.len();
        if bytes > first {
            let mut memory = self.pool.take_larger(bytes);
            memory[..first].copy_from_slice(&self.memory);
            memory[first..bytes].copy_from_slice(&self.rest[..bytes - first]);
            self.memory = memory;
        }
    }

    /// Passes the packet in `memory` to the link that its port feeds.
    fn route(&mut self, index: usize, bytes: usize, now: u64) {
        let port = &mut self.ports[index];
        let Some(header) = header::parse(&self.memory[..bytes]) else {
            port.malformed_pkts += 1;
            return;
        };
        let link = port.link;
        let pair = link.and_then(|link| self.pairs.find(header.addresses, link));
        let goes_on = |link: &usize| pair.is_some() || self.links[*link].to.is_some();
        let Some(link) = link.filter(goes_on) else {
            port.unrouted_pkts += 1;
            return;
        };
        let memory = std::mem::replace(&mut self.memory, self.pool.take());
        let packet = Buffer::new(memory, bytes, &header, pair, &self.pool);
        self.pairs.arrived(link, &packet);
        self.arrive(link, packet, now);
    }

    fn arrive(&mut self, index: usize, mut packet: Buffer, now: u64) {
        use mptcplab_model::link::Packet;
        let state = &mut self.links[index];
        packet.number = state.arrived;
        state.arrived += 1;
        state.link_time_ns = state.link_time_ns.max(now);
        let at_ns = state.link_time_ns;
        let (number, ip_bytes, flow_hash) = (packet.number, packet.ip_bytes(), packet.flow_hash());
        let ecn_capable = packet.is_ecn_capable();
        let verdict: Verdict = state.link.enqueue(at_ns, packet);
        self.update_due(index);
        self.log_entry(LogEntry::Arrival {
            link: index,
            number,
            at_ns,
            ip_bytes,
            flow_hash,
            ecn_capable,
            verdict,
        });
    }

    fn log_entry(&mut self, entry: LogEntry) {
        if self.log.len() < self.log_entries {
            self.log.push(entry);
        }
    }

    /// Asks the kernel which ports have packets and whether there are commands; sleeps if there is nothing else to do.
    fn poll_events(&mut self, inbox: &Inbox) -> Result<ControlFlow<()>, Error> {
        let raw = Clock::monotonic_ns();
        let now = self.clock.at(raw);
        let due = self.deadline();
        let is_busy = !self.ready.is_empty() || due <= now;
        if is_busy && self.busy_rounds < BUSY_ROUNDS {
            self.busy_rounds += 1;
            return Ok(ControlFlow::Continue(()));
        }
        self.busy_rounds = 0;
        let sleep_ns = match due {
            _ if is_busy => 0,
            u64::MAX => u64::MAX,
            due => self.spin.sleep_ns(due - now, raw),
        };
        let worked_ns = raw.saturating_sub(self.polled_ns);
        self.worst_busy_ns = self.worst_busy_ns.max(worked_ns);
        self.spin.worked(worked_ns);
        let count = sys::wait(
            &self.epoll,
            &mut self.events,
            (sleep_ns != u64::MAX).then_some(sleep_ns),
        );
        self.polled_ns = Clock::monotonic_ns();
        let count = match count {
            Ok(count) => count,
            Err(Errno::EINTR) => return Ok(ControlFlow::Continue(())),
            Err(errno) => return Err(Error::system("wait for packets")(errno)),
        };
        self.record_wait(raw, sleep_ns, is_busy);
        self.handle_events(count, inbox)
    }

    /// Accounts for a wait that began at `raw` and was meant to last at most `sleep_ns`.
    fn record_wait(&mut self, raw: u64, sleep_ns: u64, is_busy: bool) {
        let waited_ns = self.polled_ns - raw;
        match waited_ns.checked_sub(sleep_ns) {
            Some(_) if is_busy => self.spin.worked(waited_ns),
            Some(_) if sleep_ns == 0 => self.spin.spun(waited_ns),
            // It counts as a late wake-up whether or not packets arrived as well.
            Some(late_ns) => self.wakeups.record(late_ns),
            // Woken by a packet, whose time of arrival is not known.
            None => {}
        }
    }

    fn handle_events(&mut self, count: usize, inbox: &Inbox) -> Result<ControlFlow<()>, Error> {
        let mut next = ControlFlow::Continue(());
        for event in 0..count {
            match self.events.get(event) {
                (WAKEUP, _) => next = self.handle_commands(inbox)?,
                (port, hung_up) => {
                    let port = port as usize;
                    self.ports[port].hung_up |= hung_up;
                    self.ready.retain(|ready| ready.port != port);
                    self.ready.push(Ready {
                        port,
                        is_reported: true,
                    });
                }
            }
        }
        Ok(next)
    }

    fn handle_commands(&mut self, inbox: &Inbox) -> Result<ControlFlow<()>, Error> {
        // Reset before the queue is read, so that no command is left in it without a wake-up.
        match inbox.wakeup.read() {
            Ok(_) | Err(Errno::EAGAIN | Errno::EINTR) => {}
            Err(errno) => return Err(Error::system("read an eventfd")(errno)),
        }
        while let Ok(command) = inbox.commands.try_recv() {
            match command {
                Command::Sample(mut sample, reply) => {
                    let now = self.clock.now_ns();
                    self.catch_up(now)?;
                    let before = Clock::monotonic_ns();
                    self.sample(&mut sample, now);
                    // The asker may have given up.
                    let _ = reply.send(sample);
                    let took_ns = Clock::monotonic_ns() - before;
                    self.worst_sample_ns = self.worst_sample_ns.max(took_ns);
                }
                Command::RefreshScheduling(reply) => {
                    self.refresh_scheduling()?;
                    let _ = reply.send(self.scheduling.clone());
                }
                Command::Stop => {
                    self.catch_up(self.clock.now_ns())?;
                    return Ok(ControlFlow::Break(()));
                }
                #[cfg(test)]
                Command::Panic => panic!("as the test wants"),
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Another process may have changed the thread's priority.
    fn refresh_scheduling(&mut self) -> Result<(), Error> {
        match sys::real_time_priority().map_err(Error::system("read the thread's scheduling"))? {
            Some(priority) => self.scheduling = Scheduling::RealTime { priority },
            None if self.scheduling.is_real_time() => {
                self.scheduling = Scheduling::Normal { refused: None }
            }
            None => {}
        }
        self.spin.enable(self.scheduling.is_real_time());
        Ok(())
    }

    fn sample(&mut self, sample: &mut Sample, now: u64) {
        sample.t_ns = now;
        for index in 0..self.links.len() {
            let state = &mut self.links[index];
            state.link_time_ns = state.link_time_ns.max(now);
            sample.links.push(state.link.stats(state.link_time_ns));
            sample.write_failed_pkts += state.write_failed_pkts;
            self.update_due(index);
        }
        sample.pairs.extend_from_slice(self.pairs.stats());
        sample.changes = std::mem::take(&mut self.changes);
        // Links are sampled one after the other, but changes are reported in the order of their times.
        sample
            .changes
            .sort_by_key(|change| (change.at_ns, change.link, change.change));
        sample.lateness_max_ns = std::mem::take(&mut self.lateness_max_ns);
    }

    pub(crate) fn report(mut self) -> Report {
        let to_ns = self.clock.now_ns();
        Report {
            scheduling: self.scheduling,
            spin_ns: self.spin.ahead_ns(),
            memory_locked: self.memory_locked == Ok(true),
            memory_refused: self.memory_locked.err().map(|errno| errno.to_string()),
            from_ns: self.from_ns,
            to_ns,
            cpu_ns: thread_cpu_ns(),
            spun_ns: self.spin.spun_ns(),
            wakeups: self.wakeups.summary(),
            worst_busy_ns: self.worst_busy_ns,
            worst_write_ns: self.worst_write_ns,
            worst_sample_ns: self.worst_sample_ns,
            links: self
                .links
                .iter_mut()
                .map(|state| state.report(to_ns))
                .collect(),
            ports: self.ports.into_iter().map(PortState::report).collect(),
            pairs: self.pairs.stats().to_vec(),
            log: self.log,
        }
    }
}

impl PortState {
    fn closed(&self) -> Error {
        let port = self.name.clone();
        Error::Closed { port }
    }

    fn failed(&self, action: &'static str, errno: Errno) -> Error {
        match errno {
            // The device was removed (EBADFD, EIO), or the other end of a socket closed.
            Errno::EBADFD
            | Errno::EPIPE
            | Errno::ECONNREFUSED
            | Errno::ECONNRESET
            | Errno::ENOTCONN => self.closed(),
            errno => Error::Port {
                port: self.name.clone(),
                action,
                errno,
            },
        }
    }

    fn report(self) -> PortReport {
        PortReport {
            name: self.name,
            read_pkts: self.read_pkts,
            written_pkts: self.written_pkts,
            malformed_pkts: self.malformed_pkts,
            unrouted_pkts: self.unrouted_pkts,
        }
    }
}

impl LinkState {
    fn new(setup: LinkSetup) -> Self {
        Self {
            name: setup.name,
            to: setup.to,
            link: Link::new(&setup.config, setup.rng),
            config: setup.config,
            link_time_ns: 0,
            arrived: 0,
            changes_applied: 0,
            lateness: Histogram::new(),
            answers: Histogram::new(),
            write_failed_pkts: 0,
        }
    }

    fn report(&mut self, now: u64) -> LinkReport {
        let stats = self.link.stats(self.link_time_ns.max(now));
        let changes = &self.config.schedule[..self.link.changes_applied()];
        let delays = changes.iter().filter_map(|change| change.delay_ns);
        LinkReport {
            name: std::mem::take(&mut self.name),
            delay_ns: delays.fold(self.config.delay_ns, u64::min),
            arrived_pkts: stats.arrived_pkts,
            dropped_random_pkts: stats.dropped_random_pkts,
            dropped_queue_pkts: stats.dropped_queue_pkts,
            marked_pkts: stats.marked_pkts,
            released_pkts: self.link.delivered_pkts(),
            in_transit_pkts: self.link.in_transit(),
            write_failed_pkts: self.write_failed_pkts,
            changes_applied: self.link.changes_applied(),
            lateness: self.lateness.summary(),
            answers: self.answers.summary(),
        }
    }
}

/// What packets pass after a link on the ways of the pairs.
fn rest(link: usize, pairs: &[Pair], links: &[LinkState]) -> Rest {
    let has_port = |link: usize| links[link].to.is_some();
    // RED may drop a packet at an empty queue, whose average is not 0 yet.
    let keeps = |link: usize| {
        let config = &links[link].config;
        config.loss == Loss::None && config.aqm == Aqm::DropTail && links[link].link.only_delivers()
    };
    let transit_ns = |link: usize, bytes| links[link].link.shortest_transit_ns(bytes);
    Rest::after(link, pairs, has_port, keeps, transit_ns)
}

/// Makes the ports non-blocking and adds them to the epoll instance.
fn prepare_ports(
    ports: Vec<Port>,
    routes: Vec<Option<usize>>,
    epoll: &Epoll,
) -> Result<Vec<PortState>, Error> {
    let prepare = |(index, (port, link)): (u64, (Port, Option<usize>))| {
        let state = PortState {
            name: port.name,
            fd: port.fd,
            link,
            hung_up: false,
            read_pkts: 0,
            written_pkts: 0,
            malformed_pkts: 0,
            unrouted_pkts: 0,
            asked: None,
        };
        let nonblocking = fcntl(&state.fd, FcntlArg::F_GETFL)
            .map(|flags| OFlag::from_bits_retain(flags) | OFlag::O_NONBLOCK)
            .and_then(|flags| fcntl(&state.fd, FcntlArg::F_SETFL(flags)));
        nonblocking.map_err(|errno| state.failed("make it non-blocking", errno))?;
        let watched = epoll.add(&state.fd, EpollEvent::new(EpollFlags::EPOLLIN, index));
        watched.map_err(|errno| state.failed("watch it", errno))?;
        Ok(state)
    };
    (0..)
        .zip(ports.into_iter().zip(routes))
        .map(prepare)
        .collect()
}

/// Asks for the priority that the options name; a refusal is not an error, but is reported.
fn set_scheduling(options: &Options) -> Result<Scheduling, Error> {
    // Without this a sleep ends up to 50 us late.
    nix::sys::prctl::set_timerslack(1).map_err(Error::system("set the timer slack"))?;
    let refused = options
        .priority
        .map(|priority| sys::set_real_time(0, priority));
    // Read what the thread has instead of what it asked for: it inherits the priority of the thread that started it.
    let priority =
        sys::real_time_priority().map_err(Error::system("read the thread's scheduling"))?;
    Ok(match priority {
        Some(priority) => Scheduling::RealTime { priority },
        None => Scheduling::Normal {
            refused: refused.and_then(Result::err).map(|errno| errno.to_string()),
        },
    })
}

fn lock_memory(options: &Options) -> Result<bool, Errno> {
    if !options.lock_memory {
        return Ok(false);
    }
    mlockall(MlockAllFlags::MCL_CURRENT | MlockAllFlags::MCL_FUTURE).map(|()| true)
}
