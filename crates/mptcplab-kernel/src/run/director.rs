//! One run: loads what needs privilege, starts the lab, reads tracer and lab until the end, and says what the trace
//! is worth.

use super::algorithms::Algorithms;
use super::child::{Heard, Lab};
use super::host::Host;
use super::rows::Rows;
use super::{Arguments, record};
use crate::failure::Failure;
use crate::lab::wire::{Account, FromLab, Order, ToLab, TroubleKind};
use crate::plan::{self, FlowPlan, Plan};
use mptcplab_bpf::tracer::{Tracer, TracerConfig};
use mptcplab_emulator::Clock;
use mptcplab_scenario::{Run, Sweep};
use mptcplab_trace::Status;
use mptcplab_trace::parquet::{EncodedRun, Encoder, RunEncoder};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signalfd::SignalFd;
use std::os::fd::AsFd as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Between two looks into the tracer's ring.
const TICK: Duration = Duration::from_millis(15);
/// From the order to the lab's readiness, and from the run's planned end to its account.
const SETUP: Duration = Duration::from_secs(60);
const WIND_UP: Duration = Duration::from_secs(30);
/// Between "go" and the run's zero: the lab starts its threads.
const LEAD_NS: u64 = 300_000_000;
/// Rows that make a piece worth encoding.
const PIECE_ROWS: usize = 8192;
/// Sockets that the tracer may have to remember: both ends of every subflow, with room for handshakes.
const SOCKETS_PER_SUBFLOW: u32 = 8;
/// The same for a subflow of one of many transfers, with room for those that closed since the last look into the ring.
const SOCKETS_PER_TRANSFER: u32 = 3;

/// What all runs of a sweep share.
pub(super) struct Director<'a> {
    pub(super) arguments: &'a Arguments,
    pub(super) sweep: &'a Sweep,
    pub(super) signals: &'a SignalFd,
    pub(super) encoder: Arc<Encoder>,
}

/// How a run ended.
pub(super) enum Ended {
    /// There is a trace, whatever it is worth.
    Recorded(Box<EncodedRun>, Status, String),
    /// Ctrl-C.
    Interrupted,
}

/// A run that is going on. Fields are dropped in this order: the algorithms after their sockets.
struct Going<'a> {
    lab: Lab,
    tracer: Tracer,
    algorithms: Algorithms,
    run: &'a Run,
    plan: Plan,
    rows: Rows,
    encoder: RunEncoder<'a>,
}

/// What ended it.
enum Cause {
    Account(Box<Account>),
    Interrupted,
    /// The lab is gone or silent.
    Broken(String),
}

impl Director<'_> {
    /// Makes a run. `tick` hears how far it is.
    pub(super) fn run(&self, run: &Run, tick: &mut dyn FnMut(u64)) -> Result<Ended, Failure> {
        let mut host = Host::begin();
        let plan = Plan::new(run);
        let algorithms = Algorithms::load(&plan.algorithms)?;
        let config = TracerConfig {
            sockets: sockets(&plan),
            every_ack: run.per_ack,
            ..TracerConfig::default()
        };
        let mut tracer = Tracer::start(&config)?;
        let mut lab = Lab::start()?;
        lab.send(&ToLab::Run(Box::new(self.order(run, &algorithms))))?;
        let Some(cookies) = self.ready(&mut lab)? else {
            return Ok(Ended::Interrupted);
        };
        for &cookie in &cookies {
            tracer.watch(cookie)?;
        }
        lab.prioritise();
        let zero_ns = Clock::monotonic_ns() + LEAD_NS;
        lab.send(&ToLab::Go { zero_ns })?;
        let rows = Rows::new(&plan, &algorithms.names, &cookies, (zero_ns, run.per_ack));
        let encoder = self.encoder.start(record(self.sweep, run, &[], [0; 2]));
        let mut going = Going {
            lab,
            tracer,
            algorithms,
            run,
            plan,
            rows,
            encoder,
        };
        let cause = going.follow(self.signals, zero_ns, tick)?;
        host.end();
        going.close(self, cause, host)
    }

    fn order(&self, run: &Run, algorithms: &Algorithms) -> Order {
        Order {
            scenario: self.arguments.scenario.clone(),
            overrides: self.arguments.overrides.clone(),
            run: run.id,
            resolved: mptcplab_scenario::run_json(run, Some(plan::SCHEDULER)).to_string(),
            algorithms: algorithms.names.clone(),
            traffic: self.arguments.traffic,
        }
    }

    /// Waits for the lab to set everything up: the cookies of its namespaces, or none after Ctrl-C.
    fn ready(&self, lab: &mut Lab) -> Result<Option<Vec<u64>>, Failure> {
        let deadline = Instant::now() + SETUP;
        while Instant::now() < deadline {
            match lab.hear()? {
                Heard::Message(FromLab::Ready { cookies }) => return Ok(Some(cookies)),
                Heard::Message(FromLab::Failed { message, hint }) => {
                    return Err(Failure {
                        hint,
                        ..Failure::new(message)
                    });
                }
                Heard::Message(_) => {
                    return Err(Failure::new("the lab said something before it was ready"));
                }
                Heard::Gone => {
                    return Err(Failure::new(format!(
                        "the lab died while it was set up: {}",
                        how(lab)
                    )));
                }
                Heard::Silence if wait(lab, self.signals)? => return Ok(None),
                Heard::Silence => {}
            }
        }
        Err(Failure::new(format!(
            "the lab was not ready within {} s",
            SETUP.as_secs()
        ))
        .hint("the machine is too busy, or a kernel interface hangs; try again on a quiet machine"))
    }
}

/// Sockets that the tracer may have to remember.
fn sockets(plan: &Plan) -> u32 {
    let of_flow = |flow: &FlowPlan| {
        let subflows = u32::try_from(flow.subflows.len()).unwrap_or(u32::MAX);
        SOCKETS_PER_SUBFLOW.saturating_mul(subflows).max(
            SOCKETS_PER_TRANSFER
                .saturating_mul(subflows)
                .saturating_mul(flow.at_once),
        )
    };
    plan.flows
        .iter()
        .map(of_flow)
        .fold(0, u32::saturating_add)
        .max(1024)
}

/// Waits for the lab or a signal, a tick at most; true after a signal.
fn wait(lab: &Lab, signals: &SignalFd) -> Result<bool, Failure> {
    let mut fds = [
        PollFd::new(lab.as_fd(), PollFlags::POLLIN),
        PollFd::new(signals.as_fd(), PollFlags::POLLIN),
    ];
    let timeout = PollTimeout::try_from(TICK).unwrap_or(PollTimeout::ZERO);
    match poll(&mut fds, timeout) {
        Ok(_) | Err(nix::errno::Errno::EINTR) => {}
        Err(errno) => return Err(Failure::new(format!("poll: {errno}"))),
    }
    let signal = signals
        .read_signal()
        .map_err(|errno| Failure::new(format!("signals: {errno}")))?;
    Ok(signal.is_some())
}

/// How the lab ended.
fn how(lab: &mut Lab) -> String {
    lab.end().map_or_else(
        || "for an unknown reason".to_owned(),
        |status| status.to_string(),
    )
}

impl Going<'_> {
    /// Until the lab's account, or whatever else ends it; bounded in any case.
    fn follow(
        &mut self,
        signals: &SignalFd,
        zero_ns: u64,
        tick: &mut dyn FnMut(u64),
    ) -> Result<Cause, Failure> {
        let deadline =
            Instant::now() + Duration::from_nanos(self.run.duration_ns + LEAD_NS) + WIND_UP;
        loop {
            self.drain()?;
            match self.lab.hear()? {
                Heard::Message(FromLab::Event(event)) => self.rows.event(&event),
                Heard::Message(FromLab::Sample(sample)) => {
                    let t_ns = sample.t_ns;
                    self.rows.sample(*sample, &self.tracer)?;
                    if self.rows.tables.len() >= PIECE_ROWS {
                        self.encode()?;
                    }
                    tick(t_ns);
                }
                Heard::Message(FromLab::Done(account)) => return Ok(Cause::Account(account)),
                Heard::Message(FromLab::Failed { message, hint }) => {
                    return Err(Failure {
                        hint,
                        ..Failure::new(message)
                    });
                }
                Heard::Message(FromLab::Ready { .. }) => {
                    return Err(Failure::new("the lab was ready twice"));
                }
                Heard::Gone => {
                    let at = Clock::monotonic_ns().saturating_sub(zero_ns);
                    let how = how(&mut self.lab);
                    return Ok(Cause::Broken(format!(
                        "the lab died after {:.1} s: {how}",
                        at as f64 / 1e9
                    )));
                }
                Heard::Silence if Instant::now() > deadline => {
                    let most = WIND_UP.as_secs();
                    return Ok(Cause::Broken(format!(
                        "the lab had not ended {most} s after the end of the run"
                    )));
                }
                Heard::Silence if wait(&self.lab, signals)? => return Ok(Cause::Interrupted),
                Heard::Silence => {}
            }
        }
    }

    fn drain(&mut self) -> Result<(), Failure> {
        let rows = &mut self.rows;
        self.tracer.poll(&mut |record| rows.record(record));
        Ok(rows.sums.forget(&self.tracer)?)
    }

    fn encode(&mut self) -> Result<(), Failure> {
        self.encoder.write(&self.rows.tables)?;
        self.rows.tables.clear();
        Ok(())
    }

    /// The run's row, and the last rows of the others.
    fn close(
        mut self,
        director: &Director<'_>,
        cause: Cause,
        mut host: Host,
    ) -> Result<Ended, Failure> {
        let account = match cause {
            Cause::Interrupted => {
                self.lab.end();
                return Ok(Ended::Interrupted);
            }
            Cause::Account(account) => {
                self.lab.wait();
                Some(account)
            }
            Cause::Broken(reason) => {
                self.lab.end();
                host.broken = Some(reason);
                None
            }
        };
        self.drain()?;
        if let Some(account) = &account {
            for row in &account.transfers {
                self.rows.transfer(row);
            }
        }
        self.rows.flush(self.run.duration_ns);
        self.encode()?;
        host.tracer(&self.tracer, &self.rows)?;
        let mut reasons: Vec<(Status, String)> = host
            .broken
            .clone()
            .map(|reason| (Status::Partial, reason))
            .into_iter()
            .collect();
        if let Some(account) = &account {
            reasons.extend(
                account
                    .troubles
                    .iter()
                    .map(|trouble| (worth(trouble.kind), trouble.reason.clone())),
            );
        }
        let unplaced = self.algorithms.unplaced();
        if unplaced > 0 {
            reasons.push((
                Status::Invalid,
                format!(
                    "{unplaced} subflows found no room in their algorithm's table and ran uncoupled"
                ),
            ));
        }
        let kept = self.algorithms.backups_wanted();
        if kept > 0 {
            reasons.push((
                Status::Invalid,
                format!(
                    "an algorithm wanted a subflow to become a backup {kept} times, which eBPF cannot do; \
                     with cmpbbr(benefit=off) it does not want to"
                ),
            ));
        }
        reasons.extend(
            self.wrong_algorithms()
                .map(|reason| (Status::Invalid, reason)),
        );
        reasons.extend(self.rows.skipped().map(|reason| (Status::Invalid, reason)));
        reasons.extend(host.untracked().map(|reason| (Status::Invalid, reason)));
        let ran = account
            .as_ref()
            .map(|account| self.scenario_names(&account.algorithms))
            .unwrap_or_default();
        let hops = account
            .as_ref()
            .and_then(|a| a.emulator.as_ref())
            .map_or(0, |e| e.links.iter().map(|l| l.released_pkts).sum());
        let mut row = record(director.sweep, self.run, &ran, [self.rows.records, hops]);
        (row.status, row.status_reason) = verdict(reasons);
        row.host = host
            .to_json(
                &self.plan,
                &self.algorithms,
                account.as_deref(),
                director.arguments.traffic,
            )
            .to_string();
        let (status, reason) = (row.status, row.status_reason.clone());
        let Self {
            lab,
            tracer,
            algorithms,
            encoder,
            ..
        } = self;
        drop((lab, tracer, algorithms));
        Ok(Ended::Recorded(
            Box::new(encoder.finish(row)?),
            status,
            reason,
        ))
    }

    /// What every subflow ran: as the lab saw it or, of flows of many transfers, the tracer.
    fn scenario_names(&self, running: &[Vec<String>]) -> Vec<Vec<String>> {
        let plans = &self.plan.algorithms;
        let name = |kernel: &String| self.algorithms.scenario_name(plans, kernel);
        let flow = |(flow, seen): (u32, &Vec<String>)| {
            let traced = self.rows.sums.algorithms(flow);
            traced.as_ref().unwrap_or(seen).iter().map(name).collect()
        };
        (0..).zip(running).map(flow).collect()
    }

    /// Transfers that ran another algorithm than they should.
    fn wrong_algorithms(&self) -> impl Iterator<Item = String> {
        self.rows.sums.wrong().map(|(flow, subflow, ran, wanted)| {
            let flow = &self.run.flows[flow as usize];
            let subflow = &flow.subflows()[subflow as usize].name;
            format!(
                "flow {}: subflow {subflow} of a transfer runs {ran} instead of {wanted}",
                flow.name
            )
        })
    }
}

fn worth(kind: TroubleKind) -> Status {
    match kind {
        TroubleKind::EndsEarly => Status::Partial,
        TroubleKind::Spoils => Status::Invalid,
    }
}

/// Partial as soon as something ended the run early, or else invalid if anything spoilt it; with all reasons.
fn verdict(reasons: Vec<(Status, String)>) -> (Status, String) {
    let has = |wanted| reasons.iter().any(|(status, _)| *status == wanted);
    let status = match () {
        () if has(Status::Invalid) => Status::Invalid,
        () if has(Status::Partial) => Status::Partial,
        () => Status::Complete,
    };
    let texts: Vec<String> = reasons.into_iter().map(|(_, reason)| reason).collect();
    (status, texts.join("; "))
}
