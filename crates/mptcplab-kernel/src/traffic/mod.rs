//! The applications that send and receive inside the namespaces. Each flow has its own threads, one at each end, however
//! many connections it has.

mod active_transfers;
mod connection;
mod context;
mod iperf;
mod listen;
mod open_requests;
mod pacing;
mod payload_pattern;
mod pending;
mod periods;
mod receive;
mod requests;
mod send;
mod state;
mod stream;
mod subflows;
mod totals;
mod transfers;
mod udp;
mod video;

pub(crate) use connection::SubflowState;
pub(crate) use context::{Context, contexts};
pub(crate) use iperf::Iperf3;
pub(crate) use listen::{Listener, listen};
pub(crate) use state::{Reporter, Shared, ThreadMessage};
pub(crate) use totals::{End, FlowTotals};

use mptcplab_net::mptcp::PathManager;
use mptcplab_net::{Namespace, NetError};
use mptcplab_scenario::{TcpFlow, Traffic, Transfers, Transport};
use std::net::TcpListener;
use std::os::unix::net::UnixStream;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Starts the threads of a flow: the receiver in the namespace where the flow ends; the sender and, for MPTCP, a thread
/// that opens and removes subflows in the namespace where it begins.
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
        (Transport::Tcp(tcp), Listener::Iperf(iperf3)) => {
            let (received, sent) = (tcp.clone(), tcp.clone());
            let sender = iperf3.clone();
            thread(context, to, "rx", move |context| {
                iperf::receive(&context, &received, &iperf3)
            })?;
            thread(context, from, "tx", move |context| {
                iperf::send(&context, &sent, &sender)
            })?;
            paths(context, tcp, from)
        }
        (Transport::Tcp(tcp), Listener::Tcp(listener)) => {
            if let Traffic::Transfers(transfers) = &tcp.traffic {
                return start_transfers(context, (tcp, transfers), listener, [from, to]);
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

/// Starts the threads of a flow in which every transfer has a connection.
fn start_transfers(
    context: &Context,
    (tcp, transfers): (&TcpFlow, &Transfers),
    listener: TcpListener,
    [from, to]: [&Namespace; 2],
) -> Result<(), NetError> {
    let (woken, wakes) = waker(context)?;
    let (received, sent, transfers) = (tcp.clone(), tcp.clone(), transfers.clone());
    let paths = match tcp.mptcp {
        true => Some(PathManager::new(from)?),
        false => None,
    };
    thread(context, to, "rx", move |context| {
        transfers::receive(&context, &listener, &received, &wakes);
    })?;
    thread(context, from, "tx", move |context| {
        transfers::send(&context, &sent, &transfers, paths.as_ref(), &woken);
    })
}

/// A socket pair: a byte written to the second socket wakes a thread that polls the first.
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

/// Starts the thread that manages a connection's further subflows.
fn paths(context: &Context, tcp: &TcpFlow, from: &Namespace) -> Result<(), NetError> {
    if !tcp.mptcp {
        return Ok(());
    }
    let (tcp, paths) = (tcp.clone(), PathManager::new(from)?);
    thread(context, from, "paths", move |context| {
        subflows::manage(&context, &tcp, &paths);
    })
}

/// Starts a thread of a flow, which ends with the process at the latest. If it panics, the run is invalid.
fn thread(
    context: &Context,
    namespace: &Namespace,
    what: &str,
    task: impl FnOnce(Context) + Send + 'static,
) -> Result<(), NetError> {
    let name = format!("{what} {}", context.flow.name);
    let (theirs, reporter) = (context.clone(), context.reporter.clone());
    let thread_name = name.clone();
    namespace.spawn(&name, move || {
        let done = catch_unwind(AssertUnwindSafe(|| task(theirs)));
        if done.is_err() {
            reporter.invalidate(format!(
                "the thread \"{thread_name}\" panicked: this is a bug in mptcplab"
            ));
        }
    })?;
    Ok(())
}
