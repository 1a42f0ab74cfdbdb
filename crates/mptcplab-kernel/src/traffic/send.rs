//! A TCP or MPTCP sender: connects at the flow's start and writes as the scenario says.

use super::schedule::Periods;
use super::{Context, Life};
use crate::plan::SCHEDULER;
use mptcplab_net::socket::{self, Options, Transport};
use mptcplab_net::{NetError, mptcp};
use mptcplab_scenario::{TcpFlow, Traffic};
use mptcplab_trace::EventKind;
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

/// The sending thread of a flow.
pub(crate) fn send(context: &Context, tcp: &TcpFlow) {
    let shared = &context.shared;
    if context.start_ns >= context.stop_ns || !shared.sleep_until(context.start_ns) {
        return;
    }
    context.notes.event(
        shared.clock.now_ns(),
        EventKind::FlowStarted,
        context.index,
        0,
    );
    context.state.set_life(0, Life::Handshake);
    let stream = match open(context, tcp) {
        Ok(stream) => stream,
        Err(error) => {
            return context
                .notes
                .ends_early(format!("flow {}: {error}", context.flow.name));
        }
    };
    if tcp.mptcp {
        if let Err(error) = mptcp::info(&stream) {
            return context.notes.spoils(format!(
                "flow {} does not speak MPTCP: {error}",
                context.flow.name
            ));
        }
    }
    context.state.set_life(0, Life::Open);
    // The sampler and the thread of the subflows use the same socket.
    let stream = context.state.sender.get_or_init(|| stream);
    context.notes.opened();
    let result = write_all(context, tcp, stream);
    if let Err(error) = result {
        if !shared.is_stopped() {
            let name = &context.flow.name;
            context.notes.ends_early(format!(
                "flow {name}: the connection broke while data were written: {error}"
            ));
        }
    }
}

fn open(context: &Context, tcp: &TcpFlow) -> Result<TcpStream, NetError> {
    let transport = if tcp.mptcp {
        Transport::Mptcp
    } else {
        Transport::Tcp
    };
    let options = Options {
        congestion: Some(context.algorithm.clone()),
        reset_on_close: true,
        ..Options::default()
    };
    let ends = context.plan.subflows[0];
    let (source, target) = (
        SocketAddrV4::new(ends.source, 0),
        SocketAddrV4::new(ends.destination, context.plan.port),
    );
    let stream = socket::connect(transport, source, target, &options, CONNECT_TIMEOUT)?;
    let step = |what: &str, result: std::io::Result<()>| {
        let what = format!("{what} of flow {}", context.flow.name);
        result.map_err(|source| NetError::Kernel {
            what,
            source,
            message: None,
            hint: None,
        })
    };
    step("set O_NONBLOCK", stream.set_nonblocking(true))?;
    if pauses(context, tcp) {
        step(
            "set TCP_NOTSENT_LOWAT",
            SockRef::from(&stream).set_tcp_notsent_lowat(unsent_bytes(context)),
        )?;
    }
    if tcp.options.pacing && tcp.cc.kernel_name().is_some() {
        step("set SO_MAX_PACING_RATE", super::pacing::pace(&stream))?;
    }
    debug_assert!(!tcp.mptcp || tcp.scheduler.is_none_or(|named| named.kind() == SCHEDULER));
    Ok(stream)
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
        Traffic::Transfers(_) | Traffic::Video(_) => unreachable!("the plan refuses them"),
    };
    let mut position = 0;
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
            let data = context.pattern.from(position);
            let mut most = usize::try_from(left).unwrap_or(usize::MAX).min(data.len());
            if tcp.mptcp && position == 0 {
                most = most.min(tcp.mss_bytes as usize);
            }
            let mut writer = stream;
            match writer.write(&data[..most]) {
                Ok(written) => {
                    if tcp.mptcp && position == 0 {
                        await_first_segment(context, stream);
                    }
                    position += written as u64;
                    left -= written as u64;
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    wait(stream, PollFlags::POLLOUT, shared.until(end))?
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
    if context.flow.stop_ns.is_some() && shared.sleep_until(context.stop_ns) {
        context.notes.event(
            shared.clock.now_ns(),
            EventKind::FlowStopped,
            context.index,
            0,
        );
    }
    Ok(())
}

/// Waits until the peer has acknowledged the first segment as MPTCP data. Until then the kernel takes a segment that
/// overtakes a lost one for a middlebox's work, and both ends fall back to TCP.
fn await_first_segment(context: &Context, stream: &TcpStream) {
    // A fallback is what the end of the run reports.
    while !context.shared.is_stopped()
        && mptcp::info(stream).is_ok_and(|info| info.snd_una != info.write_seq)
    {
        std::thread::sleep(LOOK);
    }
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
