//! One run in the lab, from the director's order to the account at its end.

use super::clock::{Due, SampleClock};
use super::network::Network;
use super::readback::{self, Running};
use super::sample::Sampler;
use super::wire::{
    Account, FromLab, Happening, Order, ToLab, Traffic, TransferSample, Trouble, TroubleKind,
};
use crate::failure::Failure;
use crate::plan::{self, Plan};
use crate::traffic::{self, Context, Listener, Means, Note, Notes, Shared};
use mptcplab_emulator::{Bound, Clock, Emulator, Report};
use mptcplab_scenario::Traffic::Bulk;
use mptcplab_scenario::{Overrides, Run};
use mptcplab_trace::EventKind;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::TimeSpec;
use std::collections::VecDeque;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

/// The edges of what is measured may be read so much late at most, or this share of the run.
const EDGE_LATE_NS: u64 = 20_000_000;
const EDGE_LATE_SHARE: u64 = 200;

/// The connection to the director.
#[derive(Debug)]
pub(super) struct Link {
    reader: BufReader<UnixStream>,
    writer: UnixStream,
}

impl Link {
    pub(super) fn new(socket: UnixStream) -> Result<Self, Failure> {
        let writer = socket
            .try_clone()
            .map_err(|error| Failure::new(format!("lab: {error}")))?;
        Ok(Self {
            reader: BufReader::new(socket),
            writer,
        })
    }

    pub(super) fn send(&mut self, message: &FromLab) -> Result<(), Failure> {
        // Plain data: there is nothing that JSON could not say.
        let mut line =
            serde_json::to_vec(message).map_err(|error| Failure::new(format!("lab: {error}")))?;
        line.push(b'\n');
        self.writer
            .write_all(&line)
            .map_err(|error| Failure::new(format!("the director is gone: {error}")))
    }

    fn receive(&mut self) -> Result<ToLab, Failure> {
        let mut line = String::new();
        match self.reader.read_line(&mut line) {
            Ok(0) => Err(Failure::new("the director is gone")),
            Ok(_) => serde_json::from_str(&line)
                .map_err(|error| Failure::new(format!("lab: {error}: {line}"))),
            Err(error) => Err(Failure::new(format!("lab: {error}"))),
        }
    }

    /// Waits so long; fails when the director is gone, who says nothing during a run.
    fn pause(&self, time: Duration) -> Result<(), Failure> {
        let mut fds = [PollFd::new(
            self.reader.get_ref().as_fd(),
            PollFlags::POLLIN,
        )];
        match ppoll(&mut fds, Some(TimeSpec::from_duration(time)), None) {
            Ok(0) | Err(Errno::EINTR) => Ok(()),
            Ok(_) => Err(Failure::new("the director is gone")),
            Err(errno) => Err(Failure::new(format!("lab: poll: {errno}"))),
        }
    }
}

/// Does what the director orders.
pub(super) fn run(link: &mut Link) -> Result<(), Failure> {
    let ToLab::Run(order) = link.receive()? else {
        return Err(Failure::new("the director's first message is no order"));
    };
    let run = resolve(&order)?;
    let plan = Plan::new(&run);
    let iperf = means(&order, &run)?;
    let network = Network::new(&plan)?;
    let listeners = run
        .flows
        .iter()
        .zip(&plan.flows)
        .map(|(flow, planned)| {
            traffic::listen(flow, planned, &network.namespaces[planned.to], iperf)
        })
        .collect::<Result<Vec<_>, _>>()?;
    let cookies = network
        .namespaces
        .iter()
        .map(mptcplab_net::Namespace::cookie)
        .collect();
    link.send(&FromLab::Ready { cookies })?;
    let ToLab::Go { zero_ns } = link.receive()? else {
        return Err(Failure::new("the director's second message is no start"));
    };
    let mut session = Session::start(
        &order,
        (run, plan),
        network,
        listeners,
        Clock::with_zero(zero_ns),
    )?;
    session.sample_to_the_end(link)?;
    let account = session.finish();
    link.send(&FromLab::Done(Box::new(account)))
}

/// How iperf3 can be started, if it is wanted.
fn means(order: &Order, run: &Run) -> Result<Option<Means>, Failure> {
    if order.traffic == Traffic::Own {
        return Ok(None);
    }
    let needs_mptcp = run
        .flows
        .iter()
        .filter_map(plan::tcp)
        .any(|tcp| tcp.mptcp && tcp.traffic == Bulk);
    let found = Means::find(needs_mptcp);
    found
        .map(Some)
        .map_err(|(message, hint)| Failure::new(message).hint(hint))
}

/// The run that the director means, from the same files.
fn resolve(order: &Order) -> Result<Run, Failure> {
    let overrides = Overrides::from_json(&order.overrides).map_err(Failure::new)?;
    let sweep = mptcplab_scenario::load(&order.scenario, &overrides)?;
    let run = sweep.runs.into_iter().find(|run| run.id == order.run);
    let same = |run: &Run| {
        let resolved = mptcplab_scenario::run_json(run, Some(plan::SCHEDULER)).to_string();
        resolved == order.resolved
    };
    run.filter(same).ok_or_else(|| {
        Failure::new(format!(
            "{} was changed while its runs were going on",
            order.scenario.display()
        ))
        .hint("leave scenario and trace files alone until all runs are done")
    })
}

struct Session {
    run: Run,
    plan: Plan,
    network: Network,
    contexts: Vec<Context>,
    shared: Arc<Shared>,
    notes: Receiver<Note>,
    emulator: Emulator,
    sampler: Sampler,
    clock: SampleClock,
    running: Running,
    /// Events that wait for the next sample.
    events: VecDeque<Happening>,
    transfers: Vec<TransferSample>,
    troubles: Vec<Trouble>,
    sample_late_ns: u64,
    edge_late_ns: u64,
    ended_ns: u64,
}

impl Session {
    fn start(
        order: &Order,
        (run, plan): (Run, Plan),
        mut network: Network,
        listeners: Vec<Listener>,
        clock: Clock,
    ) -> Result<Self, Failure> {
        let shared = Arc::new(Shared::new(clock));
        let (sender, notes) = channel();
        let contexts = traffic::contexts(&run, &plan, &order.algorithms, &shared, &Notes(sender));
        // This thread has the emulator's priority until now, and the traffic must not.
        let emulator = network.emulate(&run, &plan, clock);
        crate::priority::drop_own()
            .map_err(|errno| Failure::new(format!("lab: scheduling: {errno}")))?;
        let emulator = emulator?;
        for (context, listener) in contexts.iter().zip(listeners) {
            let ends = [context.plan.from, context.plan.to].map(|node| &network.namespaces[node]);
            // The threads end with the process.
            traffic::start(context, listener, ends)?;
        }
        let running = contexts
            .iter()
            .map(|one| vec![String::new(); one.flow.subflows().len()])
            .collect();
        Ok(Self {
            clock: SampleClock::new(&run),
            sampler: Sampler::new(contexts.clone()),
            run,
            plan,
            network,
            contexts,
            shared,
            notes,
            emulator,
            running,
            events: VecDeque::new(),
            transfers: Vec::new(),
            troubles: Vec::new(),
            sample_late_ns: 0,
            edge_late_ns: 0,
            ended_ns: 0,
        })
    }

    /// Until the run's end, or the first trouble.
    fn sample_to_the_end(&mut self, link: &mut Link) -> Result<(), Failure> {
        while let Some(due) = self.clock.next() {
            self.wait(link, due)?;
            self.take_notes();
            if !self.troubles.is_empty() {
                break;
            }
            self.sample(link, due)?;
        }
        self.ended_ns = self.shared.clock.now_ns().min(self.run.duration_ns);
        Ok(())
    }

    /// Waits for a sample's time, or less if something goes wrong.
    fn wait(&mut self, link: &Link, due: Due) -> Result<(), Failure> {
        loop {
            let left = self.shared.until(due.at_ns);
            if left.is_zero() {
                return Ok(());
            }
            link.pause(left.min(Duration::from_millis(100)))?;
            self.take_notes();
            if !self.troubles.is_empty() {
                return Ok(());
            }
        }
    }

    fn sample(&mut self, link: &mut Link, due: Due) -> Result<(), Failure> {
        let began = self.shared.clock.now_ns();
        let counters = match self.emulator.sample() {
            Ok(counters) => counters,
            Err(error) => {
                self.trouble(
                    TroubleKind::EndsEarly,
                    format!("the emulator broke: {error}"),
                );
                return Ok(());
            }
        };
        for change in &counters.changes {
            let (kind, link) = (EventKind::LinkChanged as u8, change.link as i32);
            let value = change.change as u64;
            self.events.push_back(Happening {
                t_ns: change.at_ns,
                kind,
                flow: -1,
                subflow: -1,
                link,
                value,
            });
        }
        // An edge is where the scenario has it; what lies between says when it was really read.
        let t_ns = if due.is_edge { due.at_ns } else { began };
        let mut sample = self.sampler.take(t_ns, &counters);
        let ended = self.shared.clock.now_ns();
        sample.late_ns = ended.saturating_sub(due.at_ns);
        self.sample_late_ns = self.sample_late_ns.max(sample.late_ns);
        if due.is_edge {
            self.edge_late_ns = self.edge_late_ns.max(sample.late_ns);
        }
        self.take_notes();
        for event in self.events.drain(..) {
            link.send(&FromLab::Event(event))?;
        }
        sample.transfers = std::mem::take(&mut self.transfers);
        link.send(&FromLab::Sample(Box::new(sample)))?;
        self.clock.advance(ended);
        Ok(())
    }

    fn take_notes(&mut self) {
        let mut opened = false;
        while let Ok(note) = self.notes.try_recv() {
            match note {
                Note::Event(event) => self.events.push_back(event),
                Note::Trouble(trouble) => self.troubles.push(trouble),
                Note::Transfer(transfer) => self.transfers.push(transfer),
                Note::Opened => opened = true,
            }
        }
        if let Some(fault) = self.emulator.fault() {
            let reason = format!("the emulator broke: {fault}");
            self.trouble(TroubleKind::EndsEarly, reason);
        }
        if opened {
            self.read_back();
        }
    }

    /// Looks which algorithms run; what was seen of a subflow that is gone stays.
    fn read_back(&mut self) {
        match readback::read(&self.contexts, &self.network.namespaces) {
            Err(error) => self.trouble(
                TroubleKind::Spoils,
                format!("the algorithms cannot be read back: {error}"),
            ),
            Ok(running) => {
                for wrong in readback::wrong(&self.contexts, &running) {
                    self.trouble(TroubleKind::Spoils, wrong);
                }
                for (known, now) in self
                    .running
                    .iter_mut()
                    .flatten()
                    .zip(running.into_iter().flatten())
                {
                    if !now.is_empty() {
                        *known = now;
                    }
                }
            }
        }
    }

    fn trouble(&mut self, kind: TroubleKind, reason: String) {
        let trouble = Trouble { kind, reason };
        if !self.troubles.contains(&trouble) {
            self.troubles.push(trouble);
        }
    }

    /// The end: stops everything and says how it went.
    fn finish(mut self) -> Account {
        self.read_back();
        self.shared.stop();
        // The threads of subflows say what had not joined.
        std::thread::sleep(Duration::from_millis(20));
        self.take_notes();
        let unfinished = self.contexts.iter().flat_map(Context::unfinished);
        self.transfers.extend(unfinished);
        match self.network.device_drops(&self.plan) {
            Ok(drops) => drops
                .into_iter()
                .for_each(|reason| self.trouble(TroubleKind::Spoils, reason)),
            Err(error) => self.trouble(TroubleKind::Spoils, error.to_string()),
        }
        let allowed =
            EDGE_LATE_NS.max((self.run.duration_ns - self.run.warmup_ns) / EDGE_LATE_SHARE);
        if self.edge_late_ns > allowed {
            let reason = format!(
                "the samples that bound the measurement were up to {} ms late, allowed are {} ms",
                self.edge_late_ns / 1_000_000,
                allowed / 1_000_000
            );
            self.trouble(TroubleKind::Spoils, reason);
        }
        let sysctls = self.network.settings(&self.plan);
        let late_ns = |is_udp: bool| {
            let flows = self.contexts.iter();
            let mine = flows.filter(|one| one.flow.subflows().is_empty() == is_udp);
            let late = mine.map(|one| one.state.late_ns.load(Ordering::Relaxed));
            late.max().unwrap_or(0)
        };
        let (udp_late_ns, transfer_late_ns) = (late_ns(true), late_ns(false));
        let emulator = match self.emulator.stop() {
            Ok(report) => Some(report),
            Err(error) => {
                let reason = format!("the emulator broke: {error}");
                self.troubles.push(Trouble {
                    kind: TroubleKind::EndsEarly,
                    reason,
                });
                None
            }
        };
        let is_spoilt = self
            .troubles
            .iter()
            .any(|one| one.kind == TroubleKind::Spoils);
        // A run that is worth nothing anyway may be too short to say anything about lateness.
        if let Some(report) = emulator.as_ref().filter(|_| !is_spoilt) {
            self.troubles.extend(late(&self.run, report));
        }
        Account {
            troubles: self.troubles,
            algorithms: self.running,
            transfers: self.transfers,
            emulator,
            sysctls,
            sample_late_ns: self.sample_late_ns,
            edge_late_ns: self.edge_late_ns,
            samples_skipped: self.clock.skipped,
            udp_late_ns,
            transfer_late_ns,
            ended_ns: self.ended_ns,
        }
    }
}

/// Whether packets came later than the links say, on the way there or on the way back.
fn late(run: &Run, report: &Report) -> Vec<Trouble> {
    let mut paths: Vec<Vec<usize>> = run
        .flows
        .iter()
        .flat_map(plan::paths)
        .map(<[usize]>::to_vec)
        .collect();
    paths.extend(
        run.flows
            .iter()
            .flat_map(|flow| flow.subflows())
            .map(|subflow| subflow.reverse.clone()),
    );
    paths.sort();
    paths.dedup();
    let problems = report.judge(&Bound::default(), &paths).problems;
    problems
        .into_iter()
        .map(|reason| Trouble {
            kind: TroubleKind::Spoils,
            reason,
        })
        .collect()
}
