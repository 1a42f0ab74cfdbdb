//! Reading, writing and waiting on the stream of one connection.

use super::context::Context;
use mptcplab_net::mptcp;
use mptcplab_net::socket::Transport;
use mptcplab_scenario::TcpFlow;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::TcpStream;
use std::os::fd::AsFd;
use std::time::Duration;

/// Size of a read buffer.
pub(super) const BUFFER_BYTES: usize = 256 << 10;
/// Longest wait before checking whether the run has ended.
pub(super) const PATIENCE: Duration = Duration::from_millis(50);
/// Pause between two checks whether the first segment has been acknowledged.
const CHECK_INTERVAL: Duration = Duration::from_millis(1);

/// The kind of socket that a flow needs.
pub(super) fn socket_transport(tcp: &TcpFlow) -> Transport {
    match tcp.mptcp {
        true => Transport::Mptcp,
        false => Transport::Tcp,
    }
}

/// Reads the data of a connection and checks every byte.
#[derive(Debug)]
pub(super) struct StreamReader {
    /// Bytes read so far.
    pub(super) position: u64,
    /// Whether the last read took all that there was.
    pub(super) is_drained: bool,
    /// Where in the flow's pattern the data begin.
    first: u64,
}

impl StreamReader {
    pub(super) fn new(first: u64) -> Self {
        Self {
            position: 0,
            is_drained: false,
            first,
        }
    }

    /// Reads what is available; returns false if nothing is.
    pub(super) fn read(
        &mut self,
        context: &Context,
        mut stream: &TcpStream,
        buffer: &mut [u8],
    ) -> std::io::Result<bool> {
        let length = match stream.read(buffer) {
            Ok(0) => {
                return Err(std::io::Error::new(
                    ErrorKind::UnexpectedEof,
                    "the sender closed the connection",
                ));
            }
            Ok(length) => length,
            Err(error) if is_not_ready(&error) => 0,
            Err(error) => return Err(error),
        };
        self.is_drained = length < buffer.len();
        if length == 0 {
            return Ok(false);
        }
        let place = self.first + self.position;
        let checked = context.pattern.check(place, &buffer[..length]);
        checked.map_err(|wrong| {
            let what = format!(
                "byte {} arrived as {:#04x} instead of {:#04x}: the network did not deliver what was sent",
                wrong.position - self.first, wrong.found, wrong.expected
            );
            std::io::Error::new(ErrorKind::InvalidData, what)
        })?;
        self.position += length as u64;
        Ok(true)
    }
}

/// Writes a flow's data to its only connection.
pub(super) struct StreamWriter<'a> {
    context: &'a Context,
    tcp: &'a TcpFlow,
    stream: &'a TcpStream,
    position: u64,
    /// The send buffer was full, and the kernel has not said since that it can be written to. It says so when a third is free,
    /// like to a program that blocks; to try earlier would keep the buffer fuller than that program's.
    is_full: bool,
}

impl<'a> StreamWriter<'a> {
    pub(super) fn new(context: &'a Context, tcp: &'a TcpFlow, stream: &'a TcpStream) -> Self {
        Self {
            context,
            tcp,
            stream,
            position: 0,
            is_full: false,
        }
    }

    /// Writes some of the remaining bytes, or waits for buffer space until `until_ns` or for a short time. Returns the number
    /// of bytes written.
    pub(super) fn write(&mut self, left: u64, until_ns: u64) -> std::io::Result<u64> {
        if self.is_full {
            let most = self.context.shared.until(until_ns);
            if !wait(self.stream, PollFlags::POLLOUT, most)? {
                return Ok(0);
            }
            self.is_full = false;
        }
        let data = next_bytes(self.context, self.tcp, self.position, self.position, left);
        let mut writer = self.stream;
        let written = match writer.write(data) {
            Ok(written) => written as u64,
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                self.is_full = true;
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

/// The next bytes to write: at most one segment at the beginning of an MPTCP connection. `place` is the position in the
/// flow's pattern that corresponds to `position` in the connection.
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

/// Waits until the peer has acknowledged the first segment at the data level. Until then the kernel takes a segment that
/// overtakes a lost one for interference by a middlebox, and both ends fall back to TCP.
fn await_first_segment(context: &Context, stream: &TcpStream) {
    while !context.shared.is_stopped() && !is_first_segment_acknowledged(stream) {
        std::thread::sleep(CHECK_INTERVAL);
    }
}

/// Whether the first segment is acknowledged, or the connection broke or fell back, which is reported elsewhere.
pub(super) fn is_first_segment_acknowledged(stream: &TcpStream) -> bool {
    !mptcp::info(stream).is_ok_and(|info| info.snd_una != info.write_seq)
}

/// Whether the error only means that the socket is not ready.
pub(super) fn is_not_ready(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}

/// Waits until a socket is ready, but no longer than `most` or `PATIENCE`; returns whether it is.
pub(super) fn wait(stream: impl AsFd, ready: PollFlags, most: Duration) -> std::io::Result<bool> {
    let patience = most.min(PATIENCE).max(Duration::from_millis(1));
    let timeout = PollTimeout::try_from(patience).unwrap_or(PollTimeout::ZERO);
    match poll(&mut [PollFd::new(stream.as_fd(), ready)], timeout) {
        Ok(count) => Ok(count > 0),
        Err(Errno::EINTR) => Ok(false),
        Err(errno) => Err(errno.into()),
    }
}
