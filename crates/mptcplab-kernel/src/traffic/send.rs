//! The sender of a TCP or MPTCP flow: connects at the flow's start and writes as the scenario says.

use super::connection::{Connection, SubflowState};
use super::context::Context;
use super::pending::PendingTransfer;
use super::periods::Periods;
use super::requests;
use super::stream::{StreamWriter, socket_transport};
use super::totals::End;
use super::video;
use crate::plan::SCHEDULER;
use mptcplab_net::socket::{self, Options};
use mptcplab_net::{NetError, mptcp};
use mptcplab_scenario::{TcpFlow, Traffic};
use socket2::SockRef;
use std::net::{SocketAddrV4, TcpStream};
use std::time::Duration;

/// The kernel gives up first, after more than two minutes (`net.ipv4.tcp_syn_retries`). In a queue that is nearly always
/// full, several SYN segments in a row can be dropped, and an application would wait.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(600);
/// Unsent data that a flow with pauses or a stop may have: this long at its rate, so that the sending thread may be late.
const UNSENT_NS: u64 = 20_000_000;
const MIN_UNSENT_BYTES: u64 = 16 << 10;
const MAX_UNSENT_BYTES: u64 = 1 << 20;

/// The sending thread of a flow with one connection.
pub(crate) fn send(context: &Context, tcp: &TcpFlow) {
    let shared = &context.shared;
    let Some(begun_ns) = context.begin() else {
        return;
    };
    let connection = &context.state.connection;
    if let Traffic::Size { bytes } = tcp.traffic {
        let pending = PendingTransfer::new(begun_ns, bytes, connection);
        context.state.pending.begin(0, pending);
    }
    connection.set_state(0, SubflowState::Handshake);
    let stream = match open(context, tcp) {
        Ok(stream) => stream,
        Err(_) if shared.is_stopped() => return,
        Err(error) => {
            return context
                .reporter
                .end_run(format!("flow {}: {error}", context.flow.name));
        }
    };
    if let Err(reason) = established(context, tcp, connection, &stream) {
        return context.reporter.invalidate(reason);
    }
    // The sampler and the thread that manages subflows use the same socket.
    let stream = connection.sender.get_or_init(|| stream);
    context.reporter.opened();
    let result = match &tcp.traffic {
        Traffic::Video(_) => video::serve(context, tcp, stream),
        Traffic::Requests(asked) => requests::at_sender(context, tcp, stream, asked),
        _ => write_all(context, tcp, stream),
    };
    match result {
        Ok(()) => context.stop(),
        Err(_) if shared.is_stopped() => {}
        Err(error) => context.reporter.end_run(format!(
            "flow {}: the connection broke while data were written: {error}",
            context.flow.name
        )),
    }
}

/// Called after the handshake of the first subflow: checks that the connection uses the protocol of the scenario.
pub(super) fn established(
    context: &Context,
    tcp: &TcpFlow,
    connection: &Connection,
    stream: &TcpStream,
) -> Result<(), String> {
    let name = &context.flow.name;
    if tcp.mptcp {
        mptcp::info(stream).map_err(|error| format!("flow {name} does not use MPTCP: {error}"))?;
    }
    let end = End::of(Some(stream), tcp.mptcp);
    match end.as_ref().and_then(|end| end.subflows.first()) {
        Some(first) => connection.opened(0, &first.tcp),
        // The connection broke at once, which the next write will report.
        None => connection.set_state(0, SubflowState::Open),
    }
    Ok(())
}

/// Options of a flow's connecting sockets.
pub(super) fn options(context: &Context, tcp: &TcpFlow) -> Options {
    Options {
        congestion: Some(context.algorithm.clone()),
        no_delay: !tcp.waits_to_fill_segments(),
        reset_on_close: true,
        ..Options::default()
    }
}

fn open(context: &Context, tcp: &TcpFlow) -> Result<TcpStream, NetError> {
    let ends = context.plan.subflows[0];
    let (source, target) = (
        SocketAddrV4::new(ends.source, 0),
        SocketAddrV4::new(ends.destination, context.plan.port),
    );
    let stream = socket::connect(
        socket_transport(tcp),
        source,
        target,
        &options(context, tcp),
        CONNECT_TIMEOUT,
    )?;
    stream
        .set_nonblocking(true)
        .map_err(|error| refused(context, "O_NONBLOCK", error))?;
    if pauses(context, tcp) {
        SockRef::from(&stream)
            .set_tcp_notsent_lowat(unsent_bytes(context))
            .map_err(|error| refused(context, "TCP_NOTSENT_LOWAT", error))?;
    }
    pace(context, tcp, &stream)?;
    debug_assert!(!tcp.mptcp || tcp.scheduler.is_none_or(|named| named.kind() == SCHEDULER));
    Ok(stream)
}

/// Enables pacing under an algorithm of the kernel, if the scenario asks for it; this project's algorithms do it themselves.
pub(super) fn pace(context: &Context, tcp: &TcpFlow, stream: &TcpStream) -> Result<(), NetError> {
    if tcp.options.pacing && tcp.cc.kernel_name().is_some() {
        super::pacing::pace(stream)
            .map_err(|error| refused(context, "SO_MAX_PACING_RATE", error))?;
    }
    Ok(())
}

fn refused(context: &Context, option: &str, source: std::io::Error) -> NetError {
    NetError::Kernel {
        what: format!("set {option} of flow {}", context.flow.name),
        source,
        message: None,
        hint: None,
    }
}

/// Whether the application pauses while the connection is open. Data that it has written must then be sent soon.
fn pauses(context: &Context, tcp: &TcpFlow) -> bool {
    match tcp.traffic {
        Traffic::OnOff { .. } => true,
        // What was asked for is always delivered.
        Traffic::Requests(_) => false,
        _ => context.flow.stop_ns.is_some(),
    }
}

fn unsent_bytes(context: &Context) -> u32 {
    let bytes = u128::from(context.plan.rate_bps) * u128::from(UNSENT_NS) / 8_000_000_000;
    // At most MAX_UNSENT_BYTES, which fits.
    bytes.clamp(MIN_UNSENT_BYTES.into(), MAX_UNSENT_BYTES.into()) as u32
}

/// Writes during the active periods; returns when everything is written.
fn write_all(context: &Context, tcp: &TcpFlow, stream: &TcpStream) -> std::io::Result<()> {
    let shared = &context.shared;
    let (spans, mut left) = match tcp.traffic {
        Traffic::Bulk => (None, u64::MAX),
        Traffic::Size { bytes } => (None, bytes),
        Traffic::OnOff { on, off } => (Some((on, off)), u64::MAX),
        Traffic::Transfers(_) | Traffic::Video(_) | Traffic::Requests(_) => {
            unreachable!("they are sent elsewhere")
        }
    };
    let mut writer = StreamWriter::new(context, tcp, stream);
    for (begin, end) in Periods::new(
        spans,
        context.rng.clone(),
        context.start_ns,
        context.stop_ns,
    ) {
        if !shared.sleep_until(begin) {
            return Ok(());
        }
        while left > 0 && !shared.is_stopped() && shared.clock.now_ns() < end {
            left -= writer.write(left, end)?;
        }
    }
    Ok(())
}
