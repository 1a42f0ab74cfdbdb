//! A TCP or MPTCP sender: connects at the flow's start and writes as the scenario says.

use super::ends::End;
use super::schedule::Periods;
use super::waits::Wait;
use super::{Connection, Context, Life, video};
use crate::plan::SCHEDULER;
use mptcplab_net::socket::{self, Options, Transport};
use mptcplab_net::{NetError, mptcp};
use mptcplab_scenario::{TcpFlow, Traffic};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use socket2::SockRef;
use std::io::{ErrorKind, Write as _};
use std::net::{SocketAddrV4, TcpStream};
use std::time::Duration;

/// A connection that is not there after this long never will be.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(20);
/// Between two looks whether the first segment has arrived.
const LOOK: Duration = Duration::from_millis(1);
/// Longest sleep without looking whether the run is over.
const PATIENCE: Duration = Duration::from_millis(50);
/// Unsent data that a flow which will pause or stop may have: so much of its rate, for the sending thread to be late.
const UNSENT_NS: u64 = 20_000_000;
const LEAST_UNSENT_BYTES: u64 = 16 << 10;
const MOST_UNSENT_BYTES: u64 = 1 << 20;

/// The sending thread of a flow with one connection.
pub(crate) fn send(context: &Context, tcp: &TcpFlow) {
    let shared = &context.shared;
    let Some(begun_ns) = context.begin() else {
        return;
    };
    let connection = &context.state.connection;
    if let Traffic::Size { bytes } = tcp.traffic {
        let wait = Wait::new(begun_ns, bytes, connection);
        context.state.waits.begin(0, wait);
    }
    connection.set_life(0, Life::Handshake);
    let stream = match open(context, tcp) {
        Ok(stream) => stream,
        Err(error) => {
            return context
                .notes
                .ends_early(format!("flow {}: {error}", context.flow.name));
        }
    };
    if let Err(reason) = established(context, tcp, connection, &stream) {
        return context.notes.spoils(reason);
    }
    // The sampler and the thread of the subflows use the same socket.
    let stream = connection.sender.get_or_init(|| stream);
    context.notes.opened();
    let result = match &tcp.traffic {
        Traffic::Video(_) => video::serve(context, tcp, stream),
        _ => write_all(context, tcp, stream),
    };
    match result {
        Ok(()) => context.stop(),
        Err(_) if shared.is_stopped() => {}
        Err(error) => context.notes.ends_early(format!(
            "flow {}: the connection broke while data were written: {error}",
            context.flow.name
        )),
    }
}

/// The handshake of the first subflow is over: is it what the scenario says?
pub(super) fn established(
    context: &Context,
    tcp: &TcpFlow,
    connection: &Connection,
    stream: &TcpStream,
) -> Result<(), String> {
    let name = &context.flow.name;
    if tcp.mptcp {
        mptcp::info(stream)
            .map_err(|error| format!("flow {name} does not speak MPTCP: {error}"))?;
    }
    let end = End::of(Some(stream), tcp.mptcp);
    match end.as_ref().and_then(|end| end.subflows.first()) {
        Some(first) => connection.opened(0, &first.tcp),
        // It broke at once, which whoever writes will see.
        None => connection.set_life(0, Life::Open),
    }
    Ok(())
}

/// Options of every socket of a flow that connects.
pub(super) fn options(context: &Context) -> Options {
    Options {
        congestion: Some(context.algorithm.clone()),
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
        speaks(tcp),
        source,
        target,
        &options(context),
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

pub(super) fn speaks(tcp: &TcpFlow) -> Transport {
    match tcp.mptcp {
        true => Transport::Mptcp,
        false => Transport::Tcp,
    }
}

/// Paces under an algorithm of the kernel's own, if the scenario asks for it; ours do it themselves.
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

/// Whether the application will be silent while the connection lives: what it has written must leave soon then.
fn pauses(context: &Context, tcp: &TcpFlow) -> bool {
    matches!(tcp.traffic, Traffic::OnOff { .. }) || context.flow.stop_ns.is_some()
}

fn unsent_bytes(context: &Context) -> u32 {
    let bytes = u128::from(context.plan.rate_bps) * u128::from(UNSENT_NS) / 8_000_000_000;
    // At most MOST_UNSENT_BYTES, which fits.
    bytes.clamp(LEAST_UNSENT_BYTES.into(), MOST_UNSENT_BYTES.into()) as u32
}

/// Writes during the active periods; returns when there is nothing more to write.
fn write_all(context: &Context, tcp: &TcpFlow, stream: &TcpStream) -> std::io::Result<()> {
    let shared = &context.shared;
    let (spans, mut left) = match tcp.traffic {
        Traffic::Bulk => (None, u64::MAX),
        Traffic::Size { bytes } => (None, bytes),
        Traffic::OnOff { on, off } => (Some((on, off)), u64::MAX),
        Traffic::Transfers(_) | Traffic::Video(_) => unreachable!("they have threads of their own"),
    };
    let mut writer = Writer::new(context, tcp, stream);
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

/// Writes a flow's data to its only connection.
pub(super) struct Writer<'a> {
    context: &'a Context,
    tcp: &'a TcpFlow,
    stream: &'a TcpStream,
    position: u64,
}

impl<'a> Writer<'a> {
    pub(super) fn new(context: &'a Context, tcp: &'a TcpFlow, stream: &'a TcpStream) -> Self {
        Self {
            context,
            tcp,
            stream,
            position: 0,
        }
    }

    /// Writes some of the bytes that are left, or waits for room, a little while and at most until a time of the run.
    /// Returns how many bytes it wrote.
    pub(super) fn write(&mut self, left: u64, until_ns: u64) -> std::io::Result<u64> {
        let data = next_bytes(self.context, self.tcp, self.position, self.position, left);
        let mut writer = self.stream;
        let written = match writer.write(data) {
            Ok(written) => written as u64,
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                wait(
                    self.stream,
                    PollFlags::POLLOUT,
                    self.context.shared.until(until_ns),
                )?;
                0
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => 0,
            Err(error) => return Err(error),
        };
        if self.tcp.mptcp && self.position == 0 && written > 0 {
            await_first_segment(self.context, self.stream);
        }
        self.position += written;
        Ok(written)
    }
}

/// The next bytes to write: a segment at most where a connection of MPTCP begins. `place` is where the flow's pattern is
/// at this position of the connection.
pub(super) fn next_bytes<'a>(
    context: &'a Context,
    tcp: &TcpFlow,
    position: u64,
    place: u64,
    left: u64,
) -> &'a [u8] {
    let data = context.pattern.from(place);
    let most = usize::try_from(left).unwrap_or(usize::MAX).min(data.len());
    match tcp.mptcp && position == 0 {
        true => &data[..most.min(tcp.mss_bytes as usize)],
        false => &data[..most],
    }
}

/// Waits until the peer has acknowledged the first segment as MPTCP data. Until then the kernel takes a segment that
/// overtakes a lost one for a middlebox's work, and both ends fall back to TCP.
fn await_first_segment(context: &Context, stream: &TcpStream) {
    while !context.shared.is_stopped() && !is_first_acknowledged(stream) {
        std::thread::sleep(LOOK);
    }
}

/// Whether it has; also where the connection broke or fell back, which the end of the run reports.
pub(super) fn is_first_acknowledged(stream: &TcpStream) -> bool {
    !mptcp::info(stream).is_ok_and(|info| info.snd_una != info.write_seq)
}

/// Waits until a socket is ready, for so long or a little while.
pub(super) fn wait(
    stream: impl std::os::fd::AsFd,
    ready: PollFlags,
    most: Duration,
) -> std::io::Result<()> {
    let patience = most.min(PATIENCE).max(Duration::from_millis(1));
    let timeout = PollTimeout::try_from(patience).unwrap_or(PollTimeout::ZERO);
    match poll(&mut [PollFd::new(stream.as_fd(), ready)], timeout) {
        Ok(_) | Err(Errno::EINTR) => Ok(()),
        Err(errno) => Err(errno.into()),
    }
}
