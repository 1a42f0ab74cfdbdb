//! One run in the lab, from the supervisor's request to the final report.

use super::network::Network;
use super::readback::{self, RunningAlgorithms};
use super::sample_clock::{DueSample, SampleClock};
use super::sampler::Sampler;
use crate::failure::Failure;
use crate::plan::{self, Plan};
use crate::protocol::{FromLab, Place, Problem, ProblemKind, RunReport, RunRequest, ToLab};
use crate::traffic::{self, Context, Iperf3, Listener, Reporter, Shared, ThreadMessage};
use crate::wire::{self, Received};
use mptcplab_emulator::{Bound, Clock, Emulator, Report};
use mptcplab_scenario::Traffic::Bulk;
use mptcplab_scenario::{Overrides, Run};
use mptcplab_trace::{EventKind, EventRow, RequestRow, TransferRow};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::TimeSpec;
use std::collections::VecDeque;
use std::io::{ErrorKind, Read as _, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

/// Samples at the edges of the measured intervals may be late by this time, or if that is longer by this fraction (1/N) of
/// the measured time.
const EDGE_LATE_NS: u64 = 20_000_000;
const EDGE_LATE_SHARE: u64 = 200;

/// The socket to the supervisor.
#[derive(Debug)]
pub(super) struct SupervisorSocket {
    socket: UnixStream,
    received: Received,
}

impl SupervisorSocket {
    pub(super) fn new(socket: UnixStream) -> Self {
        Self {
            socket,
            received: Received::default(),
        }
    }

    pub(super) fn send(&mut self, message: &FromLab) -> Result<(), Failure> {
        let bytes = wire::encode(message).map_err(|error| Failure::new(format!("lab: {error}")))?;
        self.socket
            .write_all(&bytes)
            .map_err(|error| Failure::new(format!("the supervisor has ended: {error}")))
    }

    fn receive(&mut self) -> Result<ToLab, Failure> {
        let mut chunk = [0; 4096];
        loop {
            let message = self.received.take().map_err(|error| {
                Failure::new(format!(
                    "lab: the supervisor sent a malformed message: {error}"
                ))
            })?;
            if let Some(message) = message {
                return Ok(message);
            }
            match self.socket.read(&mut chunk) {
                Ok(0) => return Err(Failure::new("the supervisor has ended")),
                Ok(length) => self.received.push(&chunk[..length]),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(Failure::new(format!("lab: {error}"))),
            }
        }
    }

    /// Waits for a time. Fails if the supervisor ends meanwhile; it sends nothing during a run.
    fn pause(&self, time: Duration) -> Result<(), Failure> {
        let mut fds = [PollFd::new(self.socket.as_fd(), PollFlags::POLLIN)];
        match ppoll(&mut fds, Some(TimeSpec::from_duration(time)), None) {
            Ok(0) | Err(Errno::EINTR) => Ok(()),
            Ok(_) => Err(Failure::new("the supervisor has ended")),
            Err(errno) => Err(Failure::new(format!("lab: poll: {errno}"))),
        }
    }
}

/// Receives the run that the supervisor requests.
pub(super) fn request(supervisor: &mut SupervisorSocket) -> Result<Box<RunRequest>, Failure> {
    match supervisor.receive()? {
        ToLab::Run(request) => Ok(request),
        ToLab::Go { .. } => Err(Failure::new(
            "the supervisor's first message is not a run request",
        )),
    }
}

/// Makes the run that the supervisor requested.
pub(super) fn run(supervisor: &mut SupervisorSocket, request: &RunRequest) -> Result<(), Failure> {
    let run = resolve(request)?;
    let plan = Plan::new(&run);
    let iperf = detect_iperf3(request, &run)?;
    let network = Network::new(&plan)?;
    let listeners = run
        .flows
        .iter()
        .zip(&plan.flows)
        .map(|(flow, planned)| {
            traffic::listen(
                flow,
                planned,
                &network.namespaces[planned.to],
                iperf.as_ref(),
            )
        })
        .collect::<Result<Vec<_>, _>>()?;
    let cookies = network
        .namespaces
        .iter()
        .map(mptcplab_net::Namespace::cookie)
        .collect();
    supervisor.send(&FromLab::Ready { cookies })?;
    let ToLab::Go { zero_ns } = supervisor.receive()? else {
        return Err(Failure::new(
            "the supervisor's second message is not the start",
        ));
    };
    let mut session = Session::start(
        request,
        (run, plan),
        network,
        listeners,
        Clock::with_zero(zero_ns),
    )?;
    session.sample_to_the_end(supervisor)?;
    let report = session.finish(request.place);
    supervisor.send(&FromLab::Done(Box::new(report)))
}

/// Finds out how iperf3 can be started, if the run uses it.
fn detect_iperf3(request: &RunRequest, run: &Run) -> Result<Option<Iperf3>, Failure> {
    let Some(programs) = request.programs.clone() else {
        return Ok(None);
    };
    let needs_mptcp = run
        .flows
        .iter()
        .filter_map(plan::tcp)
        .any(|tcp| tcp.mptcp && tcp.traffic == Bulk);
    Iperf3::detect(programs, needs_mptcp).map(Some)
}

/// Resolves the requested run from the same files as the supervisor.
fn resolve(request: &RunRequest) -> Result<Run, Failure> {
    let overrides = Overrides::from_json(&request.overrides).map_err(Failure::new)?;
    let sweep = mptcplab_scenario::load(&request.scenario, &overrides)?;
    let run = sweep.runs.into_iter().find(|run| run.id == request.run);
    let same = |run: &Run| {
        let resolved = mptcplab_scenario::run_json(run, Some(plan::SCHEDULER)).to_string();
        resolved == request.resolved
    };
    run.filter(same).ok_or_else(|| {
        Failure::new(format!(
            "{} was changed during its runs",
            request.scenario.display()
        ))
        .hint("do not change scenario and delivery trace files before all runs are done")
    })
}

struct Session {
    run: Run,
    plan: Plan,
    network: Network,
    contexts: Vec<Context>,
    shared: Arc<Shared>,
    messages: Receiver<ThreadMessage>,
    emulator: Emulator,
    sampler: Sampler,
    clock: SampleClock,
    running: RunningAlgorithms,
    /// Events to be sent before the next sample.
    events: VecDeque<EventRow>,
    transfers: Vec<TransferRow>,
    requests: Vec<RequestRow>,
    problems: Vec<Problem>,
    sample_late_ns: u64,
    edge_late_ns: u64,
    ended_ns: u64,
}

impl Session {
    fn start(
        request: &RunRequest,
        (run, plan): (Run, Plan),
        network: Network,
        listeners: Vec<Listener>,
        clock: Clock,
    ) -> Result<Self, Failure> {
        let shared = Arc::new(Shared::new(clock));
        let (sender, messages) = channel();
        let contexts =
            traffic::contexts(&run, &plan, &request.algorithms, &shared, &Reporter(sender));
        // Until now this thread has the emulator's real-time priority, which the traffic must not have.
        // Spinning before a packet is due only costs time in a virtual machine: a sleep ends on time there.
        let spins = request.place == Place::Process;
        let emulator = network.emulate(&run, &plan, (clock, spins));
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
            messages,
            emulator,
            running,
            events: VecDeque::new(),
            transfers: Vec::new(),
            requests: Vec::new(),
            problems: Vec::new(),
            sample_late_ns: 0,
            edge_late_ns: 0,
            ended_ns: 0,
        })
    }

    /// Takes samples until the end of the run or the first problem.
    fn sample_to_the_end(&mut self, supervisor: &mut SupervisorSocket) -> Result<(), Failure> {
        while let Some(due) = self.clock.next() {
            self.wait(supervisor, due)?;
            self.handle_messages();
            if !self.problems.is_empty() {
                break;
            }
            self.sample(supervisor, due)?;
        }
        self.ended_ns = self.shared.clock.now_ns().min(self.run.duration_ns);
        Ok(())
    }

    /// Waits until a sample is due, or until the first problem.
    fn wait(&mut self, supervisor: &SupervisorSocket, due: DueSample) -> Result<(), Failure> {
        loop {
            let left = self.shared.until(due.at_ns);
            if left.is_zero() {
                return Ok(());
            }
            supervisor.pause(left.min(Duration::from_millis(100)))?;
            self.handle_messages();
            if !self.problems.is_empty() {
                return Ok(());
            }
        }
    }

    fn sample(&mut self, supervisor: &mut SupervisorSocket, due: DueSample) -> Result<(), Failure> {
        let began = self.shared.clock.now_ns();
        let counters = match self.emulator.sample() {
            Ok(counters) => counters,
            Err(error) => {
                self.add_problem(
                    ProblemKind::EndsRun,
                    format!("the emulator failed: {error}"),
                );
                return Ok(());
            }
        };
        for change in &counters.changes {
            let (kind, link) = (EventKind::LinkChanged as u8, change.link as i32);
            let value = change.change as u64;
            self.events.push_back(EventRow {
                t_ns: change.at_ns,
                kind,
                flow: -1,
                subflow: -1,
                link,
                value,
            });
        }
        let mut sample = self.sampler.take(self.clock.time_of(due, began), &counters);
        let ended = self.shared.clock.now_ns();
        let late_ns = ended.saturating_sub(due.at_ns);
        self.sample_late_ns = self.sample_late_ns.max(late_ns);
        if due.is_edge {
            self.edge_late_ns = self.edge_late_ns.max(late_ns);
        }
        self.handle_messages();
        for event in self.events.drain(..) {
            supervisor.send(&FromLab::Event(event))?;
        }
        sample.transfers = std::mem::take(&mut self.transfers);
        sample.requests = std::mem::take(&mut self.requests);
        supervisor.send(&FromLab::Sample(Box::new(sample)))?;
        self.clock.advance(ended);
        Ok(())
    }

    fn handle_messages(&mut self) {
        let mut opened = false;
        while let Ok(message) = self.messages.try_recv() {
            match message {
                ThreadMessage::Event(event) => self.events.push_back(event),
                ThreadMessage::Problem(problem) => self.problems.push(problem),
                ThreadMessage::Transfer(transfer) => self.transfers.push(transfer),
                ThreadMessage::Request(request) => self.requests.push(request),
                ThreadMessage::SubflowOpened => opened = true,
            }
        }
        if let Some(fault) = self.emulator.fault() {
            let reason = format!("the emulator failed: {fault}");
            self.add_problem(ProblemKind::EndsRun, reason);
        }
        if opened {
            self.read_back();
        }
    }

    /// Reads which algorithms run. The result for a subflow that no longer exists is kept.
    fn read_back(&mut self) {
        match readback::read(&self.contexts, &self.network.namespaces) {
            Err(error) => self.add_problem(
                ProblemKind::InvalidatesRun,
                format!("the algorithms cannot be read back: {error}"),
            ),
            Ok(running) => {
                for wrong in readback::mismatches(&self.contexts, &running) {
                    self.add_problem(ProblemKind::InvalidatesRun, wrong);
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

    fn add_problem(&mut self, kind: ProblemKind, reason: String) {
        let problem = Problem { kind, reason };
        if !self.problems.contains(&problem) {
            self.problems.push(problem);
        }
    }

    /// The names of the flows whose connection was not open at the end.
    fn unconnected(&self) -> Vec<String> {
        let contexts = self.contexts.iter();
        contexts
            .filter(|one| one.is_unconnected(self.ended_ns))
            .map(|one| one.flow.name.clone())
            .collect()
    }

    /// Stops everything and makes the report.
    fn finish(mut self, place: Place) -> RunReport {
        self.read_back();
        self.shared.stop();
        // Meanwhile the threads of subflows report those that have not joined.
        std::thread::sleep(Duration::from_millis(20));
        self.handle_messages();
        let unfinished = self.contexts.iter().flat_map(Context::unfinished);
        self.transfers.extend(unfinished);
        for flow in self.unconnected() {
            let reason = format!("flow {flow} had not connected when the run ended");
            self.add_problem(ProblemKind::InvalidatesRun, reason);
        }
        let open = self.contexts.iter().flat_map(Context::open_requests);
        self.requests.extend(open);
        for reason in self.network.distortions(&self.plan) {
            self.add_problem(ProblemKind::InvalidatesRun, reason);
        }
        let allowed =
            EDGE_LATE_NS.max((self.run.duration_ns - self.run.warmup_ns) / EDGE_LATE_SHARE);
        if self.edge_late_ns > allowed {
            let reason = format!(
                "the samples that bound the measured interval were up to {} ms late; {} ms are allowed",
                self.edge_late_ns / 1_000_000,
                allowed / 1_000_000
            );
            self.add_problem(ProblemKind::InvalidatesRun, reason);
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
                let reason = format!("the emulator failed: {error}");
                self.problems.push(Problem {
                    kind: ProblemKind::EndsRun,
                    reason,
                });
                None
            }
        };
        let is_invalid = self
            .problems
            .iter()
            .any(|one| one.kind == ProblemKind::InvalidatesRun);
        // A run that is invalid anyway may be too short for statistics of lateness.
        if let Some(report) = emulator.as_ref().filter(|_| !is_invalid) {
            self.problems.extend(lateness_problems(&self.run, report));
        }
        if place == Place::Thread {
            // The machine ends as a whole.
            std::mem::forget(self.network);
        }
        RunReport {
            problems: self.problems,
            algorithms: self.running,
            events: self.events.into(),
            transfers: self.transfers,
            requests: self.requests,
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

/// Describes forward and return paths whose packets came later than their links say.
fn lateness_problems(run: &Run, report: &Report) -> Vec<Problem> {
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
        .map(|reason| Problem {
            kind: ProblemKind::InvalidatesRun,
            reason,
        })
        .collect()
}
