//! The applications: what sends and receives inside the namespaces, each flow on threads of its own.

mod connect;
mod iperf;
mod pacing;
mod pattern;
mod receive;
mod schedule;
mod send;
mod state;
mod subflows;
mod udp;

pub(crate) use connect::{Listener, listen};
pub(crate) use iperf::Means;
pub(crate) use state::{FlowState, Life, Note, Notes, Shared};

use crate::plan::{FlowPlan, Plan};
use mptcplab_link::rng::Rng;
use mptcplab_net::mptcp::PathManager;
use mptcplab_net::{Namespace, NetError};
use mptcplab_scenario::{Flow, Run, TcpFlow, Transport};
use pattern::Pattern;
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
    /// Its own random stream, after the start was drawn from it.
    pub(crate) rng: Rng,
    pub(crate) pattern: Arc<Pattern>,
    pub(crate) state: Arc<FlowState>,
    pub(crate) shared: Arc<Shared>,
    pub(crate) notes: Notes,
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
        let start_ns = mptcplab_traffic::start(flow.start, &mut rng);
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
            rng,
            pattern: Arc::new(Pattern::new(&flow.name)),
            state: Arc::new(FlowState::new(flow.subflows().len())),
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
