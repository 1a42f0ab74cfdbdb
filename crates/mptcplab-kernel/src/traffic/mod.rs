//! The applications: what sends and receives inside the namespaces, each flow on threads of its own, however many
//! connections it has.

mod connect;
mod connection;
mod ends;
mod iperf;
mod pacing;
mod pattern;
mod receive;
mod schedule;
mod send;
mod state;
mod subflows;
mod transfers;
mod udp;
mod video;
mod waits;

pub(crate) use connect::{Listener, listen};
pub(crate) use connection::{Connection, Life};
pub(crate) use ends::{End, Told};
pub(crate) use iperf::Means;
pub(crate) use state::{FlowState, Note, Notes, Shared};

use crate::plan::{FlowPlan, Plan};
use mptcplab_model::link::rng::Rng;
use mptcplab_net::mptcp::PathManager;
use mptcplab_net::{Namespace, NetError};
use mptcplab_scenario::{Flow, Run, TcpFlow, Traffic, Transfers, Transport};
use mptcplab_trace::EventKind;
use pattern::Pattern;
use std::net::TcpListener;
use std::os::unix::net::UnixStream;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// A flow with everything that its threads need.
#[derive(Debug, Clone)]
pub(crate) struct Context {
    pub(crate) index: usize,
    pub(crate) flow: Flow,
    pub(crate) plan: FlowPlan,
    /// Kernel-visible name of its algorithm; empty for UDP.
    pub(crate) algorithm: String,
    /// When it starts, drawn if the scenario leaves it to chance.
    pub(crate) start_ns: u64,
    /// When its application stops.
    pub(crate) stop_ns: u64,
    /// The run's end.
    pub(crate) end_ns: u64,
    /// Its own random stream, after the start was drawn from it.
    pub(crate) rng: Rng,
    pub(crate) pattern: Arc<Pattern>,
    pub(crate) state: Arc<FlowState>,
    pub(crate) shared: Arc<Shared>,
    pub(crate) notes: Notes,
}

impl Context {
    /// Whether it has one connection for all of its life; otherwise every transfer has one, or it is UDP.
    pub(crate) fn has_one_connection(&self) -> bool {
        !self.flow.subflows().is_empty() && !self.plan.is_many
    }

    /// Waits for its start and tells of it: when it was, or none if it never comes.
    fn begin(&self) -> Option<u64> {
        if self.start_ns >= self.stop_ns || !self.shared.sleep_until(self.start_ns) {
            return None;
        }
        let now_ns = self.shared.clock.now_ns();
        self.notes
            .event(now_ns, EventKind::FlowStarted, self.index, 0);
        Some(now_ns)
    }

    /// Waits for its application's stop and tells of it, if it has one.
    fn stop(&self) {
        if self.flow.stop_ns.is_some() && self.shared.sleep_until(self.stop_ns) {
            let now_ns = self.shared.clock.now_ns();
            self.notes
                .event(now_ns, EventKind::FlowStopped, self.index, 0);
        }
    }
}

/// Contexts of all flows.
pub(crate) fn contexts(
    run: &Run,
    plan: &Plan,
    algorithms: &[String],
    shared: &Arc<Shared>,
    notes: &Notes,
) -> Vec<Context> {
    let context = |(index, flow): (usize, &Flow)| {
        // The simulator draws from the same stream in the same order.
        let mut rng = Rng::new(run.seed, run.rep, "flow", &flow.name);
        let start_ns = mptcplab_model::traffic::start(flow.start, &mut rng);
        let algorithm = plan.flows[index]
            .algorithm
            .and_then(|a| algorithms.get(a))
            .cloned();
        Context {
            index,
            flow: flow.clone(),
            plan: plan.flows[index].clone(),
            algorithm: algorithm.unwrap_or_default(),
            start_ns,
            stop_ns: flow.stop_ns.unwrap_or(u64::MAX).min(run.duration_ns),
            end_ns: run.duration_ns,
            rng,
            pattern: Arc::new(Pattern::new(&flow.name)),
            state: Arc::new(FlowState::new(flow)),
            shared: Arc::clone(shared),
            notes: notes.clone(),
        }
    };
    run.flows.iter().enumerate().map(context).collect()
}

/// Starts the threads of a flow: the receiver's in its namespace, the sender's and, for MPTCP, one that opens and
/// removes subflows in the other.
pub(crate) fn start(
    context: &Context,
    listener: Listener,
    [from, to]: [&Namespace; 2],
) -> Result<(), NetError> {
    match (&context.flow.transport, listener) {
        (Transport::Udp(udp), Listener::Udp(socket)) => {
            let udp = udp.clone();
            thread(context, to, "rx", move |context| {
                udp::receive(&context, &socket)
            })?;
            thread(context, from, "tx", move |context| {
                udp::send(&context, &udp)
            })
        }
        (Transport::Tcp(tcp), Listener::Iperf(means)) => {
            let (received, sent) = (tcp.clone(), tcp.clone());
            thread(context, to, "rx", move |context| {
                iperf::receive(&context, &received, means)
            })?;
            thread(context, from, "tx", move |context| {
                iperf::send(&context, &sent, means)
            })?;
            paths(context, tcp, from)
        }
        (Transport::Tcp(tcp), Listener::Tcp(listener)) => {
            if let Traffic::Transfers(law) = &tcp.traffic {
                return many(context, (tcp, law), listener, [from, to]);
            }
            let (received, sent) = (tcp.clone(), tcp.clone());
            thread(context, to, "rx", move |context| {
                receive::receive(&context, &listener, &received);
            })?;
            thread(context, from, "tx", move |context| {
                send::send(&context, &sent)
            })?;
            paths(context, tcp, from)
        }
        _ => unreachable!("listen() makes the listener of the flow's transport"),
    }
}

/// The threads of a flow of many transfers.
fn many(
    context: &Context,
    (tcp, law): (&TcpFlow, &Transfers),
    listener: TcpListener,
    [from, to]: [&Namespace; 2],
) -> Result<(), NetError> {
    let (woken, wakes) = waker(context)?;
    let (received, sent, law) = (tcp.clone(), tcp.clone(), law.clone());
    let paths = match tcp.mptcp {
        true => Some(PathManager::new(from)?),
        false => None,
    };
    thread(context, to, "rx", move |context| {
        transfers::receive(&context, &listener, &received, &wakes);
    })?;
    thread(context, from, "tx", move |context| {
        transfers::send(&context, &sent, &law, paths.as_ref(), &woken);
    })
}

/// Two ends: a byte that is written to the second wakes who polls the first.
fn waker(context: &Context) -> Result<(UnixStream, UnixStream), NetError> {
    let made = UnixStream::pair().and_then(|(one, other)| {
        one.set_nonblocking(true)?;
        other.set_nonblocking(true)?;
        Ok((one, other))
    });
    made.map_err(|source| NetError::Kernel {
        what: format!("make a socket pair for flow {}", context.flow.name),
        source,
        message: None,
        hint: None,
    })
}

/// The thread of a connection's further subflows.
fn paths(context: &Context, tcp: &TcpFlow, from: &Namespace) -> Result<(), NetError> {
    if !tcp.mptcp {
        return Ok(());
    }
    let (tcp, paths) = (tcp.clone(), PathManager::new(from)?);
    thread(context, from, "paths", move |context| {
        subflows::manage(&context, &tcp, &paths);
    })
}

/// A thread of a flow, which ends with the process at the latest. If it panics, the run is worth nothing.
fn thread(
    context: &Context,
    namespace: &Namespace,
    what: &str,
    task: impl FnOnce(Context) + Send + 'static,
) -> Result<(), NetError> {
    let name = format!("{what} {}", context.flow.name);
    let (theirs, notes) = (context.clone(), context.notes.clone());
    let thread_name = name.clone();
    namespace.spawn(&name, move || {
        let done = catch_unwind(AssertUnwindSafe(|| task(theirs)));
        if done.is_err() {
            notes.spoils(format!(
                "the thread \"{thread_name}\" broke: this is a bug of mptcplab"
            ));
        }
    })?;
    Ok(())
}
