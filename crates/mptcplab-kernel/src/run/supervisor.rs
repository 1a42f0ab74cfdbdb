//! The privileged half of a run: loads the algorithms and the tracer, starts the lab, reads tracer and lab until the run
//! ends, and decides whether the trace is valid.

use super::algorithms::Algorithms;
use super::ends::Ends;
use super::host::HostRecord;
use super::lab_handle::{LabHandle, Received};
use super::preparation::{Preparation, Prepared};
use super::rows::Rows;
use super::{Arguments, run_record};
use crate::failure::Failure;
use crate::plan::{self, Plan};
use crate::protocol::{FromLab, Place, ProblemKind, Programs, RunReport, RunRequest, ToLab};
use mptcplab_bpf::tracer::Tracer;
use mptcplab_emulator::Clock;
use mptcplab_scenario::{Run, Sweep};
use mptcplab_trace::Status;
use mptcplab_trace::parquet::{EncodedRun, Encoder, RunEncoder};
use nix::poll::PollTimeout;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Interval at which the tracer's ring is read.
const TICK: Duration = Duration::from_millis(15);
/// Time that the lab has to set everything up.
const SETUP: Duration = Duration::from_secs(60);
/// Time that the lab has for its report after the planned end of the run.
const WIND_UP: Duration = Duration::from_secs(30);
/// Time between the message to start and time 0 of the run, in which the lab starts its threads.
const LEAD_NS: u64 = 300_000_000;
/// What is the same for all runs of a sweep.
pub(super) struct Supervisor<'a> {
    pub(super) arguments: &'a Arguments,
    pub(super) sweep: &'a Sweep,
    /// The digests of all runs of the scenario, by id; empty if they are not known.
    pub(super) digests: &'a [String],
    pub(super) ends: &'a Ends,
    pub(super) programs: Option<Programs>,
    pub(super) encoder: Arc<Encoder>,
}

/// How a run ended.
pub(super) enum Outcome {
    /// There is a trace, with its status and the reason for it.
    Recorded(Box<EncodedRun>, Status, String),
    /// A signal, with the exit code that tells it.
    Interrupted(u8),
}

/// A run in progress. Fields are dropped in this order, so that the algorithms are unloaded after their sockets closed.
struct ActiveRun<'a> {
    lab: LabHandle,
    tracer: Tracer,
    algorithms: Algorithms,
    run: &'a Run,
    plan: Plan,
    rows: Rows,
    encoder: RunEncoder<'a>,
    /// Whether the process stops with what it has loaded instead of ending.
    stops: bool,
}

/// How the lab's part of a run ended.
enum RunEnd {
    Reported(Box<RunReport>),
    /// By a signal, with the exit code that tells it.
    Interrupted(u8),
    /// The lab died or did not answer; with the reason.
    LabFailed(String),
}

impl Supervisor<'_> {
    /// Makes a run. `tick` is called with the time that the run has reached.
    pub(super) fn run(
        &self,
        run: &Run,
        prepared: Option<Prepared>,
        tick: &mut dyn FnMut(u64),
    ) -> Result<Outcome, Failure> {
        let mut host = HostRecord::begin();
        let stops = prepared.is_some() && self.place() == Place::Thread;
        let plan = Plan::new(run);
        // What is bound last is dropped first.
        let Prepared {
            algorithms,
            mut tracer,
            mut lab,
            ..
        } = self.prepared(prepared, Preparation::of(run, &plan))?;
        lab.send(&ToLab::Run(Box::new(self.request(run, &algorithms))))?;
        let cookies = match self.ready(&mut lab)? {
            ControlFlow::Continue(cookies) => cookies,
            ControlFlow::Break(code) => return Ok(Outcome::Interrupted(code)),
        };
        for &cookie in &cookies {
            tracer.watch(cookie)?;
        }
        lab.grant_real_time();
        let zero_ns = Clock::monotonic_ns() + LEAD_NS;
        lab.send(&ToLab::Go { zero_ns })?;
        let rows = Rows::new(
            &plan,
            &algorithms.names,
            &cookies,
            (zero_ns, run.per_ack),
            self.arguments.traffic,
        );
        let encoder = self
            .encoder
            .start(&run_record(self.sweep, run, &[], [0; 2], None));
        let mut active = ActiveRun {
            lab,
            tracer,
            algorithms,
            run,
            plan,
            rows,
            encoder,
            stops,
        };
        let end = active.follow(self.ends, zero_ns, tick)?;
        host.end();
        active.close(self, end, host)
    }

    /// What was prepared before the run was known, or what is prepared now.
    fn prepared(
        &self,
        before: Option<Prepared>,
        preparation: Preparation,
    ) -> Result<Prepared, Failure> {
        match before {
            Some(prepared) if prepared.preparation == preparation => Ok(prepared),
            Some(prepared) => Err(Failure::new(format!(
                "the machine was prepared for another run: {:?} instead of {preparation:?}",
                prepared.preparation
            ))),
            None => Prepared::make(preparation, self.place()),
        }
    }

    fn place(&self) -> Place {
        Place::of(self.arguments.in_machine)
    }

    fn request(&self, run: &Run, algorithms: &Algorithms) -> RunRequest {
        RunRequest {
            scenario: self.arguments.scenario.clone(),
            overrides: self.arguments.overrides.clone(),
            run: run.id,
            resolved: mptcplab_scenario::run_json(run, Some(plan::SCHEDULER)).to_string(),
            algorithms: algorithms.names.clone(),
            compiled: self.arguments.algorithms.clone(),
            files: self.files(),
            programs: self.programs.clone(),
            place: self.place(),
        }
    }

    /// The scenario file and the files that it names.
    fn files(&self) -> Vec<PathBuf> {
        let scenario = &self.arguments.scenario;
        let base = scenario.parent().unwrap_or(Path::new(""));
        let named = self.sweep.files.iter().map(|name| base.join(name));
        std::iter::once(scenario.clone()).chain(named).collect()
    }

    /// Waits until the lab has set everything up. Returns the cookies of its namespaces, or the exit code after a signal.
    fn ready(&self, lab: &mut LabHandle) -> Result<ControlFlow<u8, Vec<u64>>, Failure> {
        let deadline = Instant::now() + SETUP;
        while Instant::now() < deadline {
            match lab.recv()? {
                Received::Message(FromLab::Ready { cookies }) => {
                    return Ok(ControlFlow::Continue(cookies));
                }
                Received::Message(FromLab::Failed { message, hint }) => {
                    return Err(Failure {
                        hint,
                        ..Failure::new(message)
                    });
                }
                Received::Message(_) => {
                    return Err(Failure::new(
                        "the lab sent an unexpected message before it was ready",
                    ));
                }
                Received::Closed => {
                    return Err(Failure::new(format!(
                        "the lab died during its set-up: {}",
                        lab.exit_reason()
                    )));
                }
                Received::Nothing => {
                    if let Some(code) = wait(lab, self.ends)? {
                        return Ok(ControlFlow::Break(code));
                    }
                }
            }
        }
        Err(Failure::new(format!(
            "the lab was not ready within {} s",
            SETUP.as_secs()
        ))
        .hint("the machine is too busy, or a kernel interface does not answer; try again when the machine is idle"))
    }
}

/// Waits for a message from the lab, for a tick at most. Returns the exit code if the run has to end.
fn wait(lab: &LabHandle, ends: &Ends) -> Result<Option<u8>, Failure> {
    ends.wait(
        lab,
        PollTimeout::try_from(TICK).unwrap_or(PollTimeout::ZERO),
    )
}

impl ActiveRun<'_> {
    /// Collects rows until the lab reports the end of the run, something else ends it, or the time is over.
    fn follow(
        &mut self,
        ends: &Ends,
        zero_ns: u64,
        tick: &mut dyn FnMut(u64),
    ) -> Result<RunEnd, Failure> {
        let deadline =
            Instant::now() + Duration::from_nanos(self.run.duration_ns + LEAD_NS) + WIND_UP;
        loop {
            self.drain()?;
            match self.lab.recv()? {
                Received::Message(FromLab::Event(event)) => self.rows.event(event),
                Received::Message(FromLab::Sample(sample)) => {
                    let t_ns = sample.t_ns;
                    self.rows.sample(*sample, &self.tracer)?;
                    self.encoder.write(&mut self.rows.tables)?;
                    tick(t_ns);
                }
                Received::Message(FromLab::Done(report)) => return Ok(RunEnd::Reported(report)),
                Received::Message(FromLab::Failed { message, hint }) => {
                    return Err(Failure {
                        hint,
                        ..Failure::new(message)
                    });
                }
                Received::Message(FromLab::Ready { .. }) => {
                    return Err(Failure::new("the lab reported twice that it was ready"));
                }
                Received::Closed => {
                    let at = Clock::monotonic_ns().saturating_sub(zero_ns);
                    let reason = self.lab.exit_reason();
                    return Ok(RunEnd::LabFailed(format!(
                        "the lab died after {:.1} s: {reason}",
                        at as f64 / 1e9
                    )));
                }
                Received::Nothing if Instant::now() > deadline => {
                    let most = WIND_UP.as_secs();
                    return Ok(RunEnd::LabFailed(format!(
                        "the lab had not ended {most} s after the end of the run"
                    )));
                }
                Received::Nothing => {
                    if let Some(code) = wait(&self.lab, ends)? {
                        return Ok(RunEnd::Interrupted(code));
                    }
                }
            }
        }
    }

    fn drain(&mut self) -> Result<(), Failure> {
        let rows = &mut self.rows;
        self.tracer.poll(&mut |record| rows.record(record));
        Ok(rows.aggregates.forget(&self.tracer)?)
    }

    /// Writes the last rows of all tables, and the row of the run.
    fn close(
        mut self,
        supervisor: &Supervisor<'_>,
        end: RunEnd,
        mut host: HostRecord,
    ) -> Result<Outcome, Failure> {
        let report = match end {
            RunEnd::Interrupted(code) => {
                self.lab.kill();
                return Ok(Outcome::Interrupted(code));
            }
            RunEnd::Reported(report) => {
                self.lab.wait();
                Some(report)
            }
            RunEnd::LabFailed(reason) => {
                self.lab.kill();
                host.lab_failure = Some(reason);
                None
            }
        };
        self.drain()?;
        if let Some(report) = &report {
            for &row in &report.events {
                self.rows.event(row);
            }
            for &row in &report.transfers {
                self.rows.tables.transfer.push(row);
            }
            for &row in &report.requests {
                self.rows.tables.request.push(row);
            }
        }
        self.rows.flush(self.run.duration_ns);
        host.tracer(&self.tracer, &self.rows)?;
        let mut reasons: Vec<(Status, String)> = host
            .lab_failure
            .clone()
            .map(|reason| (Status::Partial, reason))
            .into_iter()
            .collect();
        if let Some(report) = &report {
            reasons.extend(
                report
                    .problems
                    .iter()
                    .map(|problem| (status_of(problem.kind), problem.reason.clone())),
            );
        }
        let unplaced = self.algorithms.unplaced();
        if unplaced > 0 {
            reasons.push((
                Status::Invalid,
                format!("{unplaced} subflows found no place in their algorithm's table and ran uncoupled"),
            ));
        }
        let backups = self.algorithms.backups_wanted();
        if backups > 0 {
            reasons.push((
                Status::Invalid,
                format!(
                    "an algorithm tried {backups} times to make a subflow a backup, which eBPF cannot do; \
                     cmpbbr(benefit=off) does not try"
                ),
            ));
        }
        reasons.extend(
            self.unexpected_algorithms()
                .map(|reason| (Status::Invalid, reason)),
        );
        reasons.extend(
            self.rows
                .skipped_program()
                .map(|reason| (Status::Invalid, reason)),
        );
        let untraced = [host.untracked(), host.lost()];
        let untraced = untraced.into_iter().flatten();
        reasons.extend(untraced.map(|reason| (Status::Invalid, reason)));
        let ran = report
            .as_ref()
            .map(|report| self.scenario_names(&report.algorithms))
            .unwrap_or_default();
        let hops = report
            .as_ref()
            .and_then(|a| a.emulator.as_ref())
            .map_or(0, |e| e.links.iter().map(|l| l.released_pkts).sum());
        let digest = supervisor.digests.get(self.run.id as usize);
        let mut row = run_record(
            supervisor.sweep,
            self.run,
            &ran,
            [self.rows.records, hops],
            digest,
        );
        (row.status, row.status_reason) = verdict(reasons);
        row.host = host
            .to_json(
                &self.plan,
                &self.algorithms,
                report.as_deref(),
                supervisor.arguments.traffic,
            )
            .to_string();
        let (status, reason) = (row.status, row.status_reason.clone());
        let Self {
            lab,
            tracer,
            algorithms,
            encoder,
            rows,
            stops,
            ..
        } = self;
        if stops {
            std::mem::forget((lab, tracer, algorithms));
        } else {
            drop((lab, tracer, algorithms));
        }
        Ok(Outcome::Recorded(
            Box::new(encoder.finish(&row, &rows.tables)?),
            status,
            reason,
        ))
    }

    /// The algorithm that each subflow ran, as the lab or, for aggregated flows, the tracer found it.
    fn scenario_names(&self, running: &[Vec<String>]) -> Vec<Vec<String>> {
        let plans = &self.plan.algorithms;
        let name = |kernel: &String| self.algorithms.scenario_name(plans, kernel);
        let flow = |(flow, seen): (u32, &Vec<String>)| {
            let traced = self.rows.aggregates.algorithms(flow);
            traced.as_ref().unwrap_or(seen).iter().map(name).collect()
        };
        (0..).zip(running).map(flow).collect()
    }

    /// Describes the transfers that ran another algorithm than the scenario's.
    fn unexpected_algorithms(&self) -> impl Iterator<Item = String> {
        self.rows
            .aggregates
            .unexpected()
            .map(|(flow, subflow, ran, expected)| {
                let flow = &self.run.flows[flow as usize];
                let subflow = &flow.subflows()[subflow as usize].name;
                format!(
                    "flow {}: subflow {subflow} of a transfer runs {ran} instead of {expected}",
                    flow.name
                )
            })
    }
}

fn status_of(kind: ProblemKind) -> Status {
    match kind {
        ProblemKind::EndsRun => Status::Partial,
        ProblemKind::InvalidatesRun => Status::Invalid,
    }
}

/// The status of a run with all reasons: invalid if anything invalidates it, or else partial if it ended early.
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
