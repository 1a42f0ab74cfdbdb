//! One connection between a socket of the kernel and a peer that only the script moves, over a TUN device in a network namespace
//! of its own.

use super::packet::{self, Route, Segment};
use super::setup::{SEGMENT_BYTES, Setup};
use mptcplab_net::route::{Metrics, Route as KernelRoute};
use mptcplab_net::socket::{self, Options, Transport};
use mptcplab_net::tcp_info::TcpInfo;
use mptcplab_net::tun::Tun;
use mptcplab_net::{LOOPBACK_IFINDEX, Namespace, mptcp};
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::{TimeSpec, TimeValLike as _};
use nix::time::{ClockId, clock_getres, clock_gettime};
use std::error::Error;
use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddrV4, TcpListener, TcpStream};
use std::os::fd::AsFd as _;

pub(crate) type Result<T> = std::result::Result<T, Box<dyn Error>>;

const KERNEL: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(10, 64, 0, 1), 5001);
const PEER: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(10, 64, 0, 2), 6002);
const MTU_BYTES: u32 = 1500;
const QUEUE_PKTS: u32 = 1000;
/// The peer's first sequence number, and its timestamp when the SYN leaves.
const FIRST_SEQ: u32 = 70_000;
const FIRST_STAMP: u32 = 4_000_000;
const NETSTAT: &str = "/proc/thread-self/net/netstat";

/// The socket under test.
enum End {
    Listening(TcpListener),
    Open(TcpStream),
}

pub(crate) struct Peer {
    end: End,
    tun: Tun,
    setup: Setup,
    /// When the SYN left.
    start_ns: u64,
    /// What the application still writes; `None` without a limit.
    left_bytes: Option<u64>,
    /// The kernel's first sequence number, and its timestamp then.
    kernel_seq: u32,
    kernel_stamp: u32,
    kernel_shift: u8,
    /// The last timestamp of the kernel, which answers echo.
    recent: u32,
    // The device and the socket are in it; it goes last.
    _namespace: Namespace,
}

impl Peer {
    /// The kernel sends: its socket has sent a SYN. Or it receives: its socket listens, and the peer has sent one.
    pub(crate) fn new(setup: Setup, is_receiver: bool) -> Result<Self> {
        let namespace = Namespace::new("conformance")?;
        namespace.enter()?;
        // 1 asks for ECN; 0 is without.
        namespace.sysctl("net.ipv4.tcp_ecn", u8::from(setup.ecn))?;
        let tun = namespace.tun("peer", MTU_BYTES, QUEUE_PKTS)?;
        // The scripts' sender neither groups segments nor waits until it can.
        namespace.set_gso_max_segs(tun.ifindex, 1)?;
        namespace.add_address(LOOPBACK_IFINDEX, *KERNEL.ip(), 32)?;
        let metrics = Metrics {
            initcwnd_pkts: setup.initial_cwnd,
            ..Metrics::default()
        };
        namespace.add_route(&KernelRoute {
            metrics,
            ..KernelRoute::host(*PEER.ip(), tun.ifindex)
        })?;
        let options = Options {
            congestion: Some(setup.congestion.clone()),
            no_delay: true,
            reset_on_close: true,
            ..Options::default()
        };
        let start_ns = now_ns()?;
        let end = if is_receiver {
            let listener = socket::listen(Transport::Tcp, KERNEL, &options)?;
            listener.set_nonblocking(true)?;
            End::Listening(listener)
        } else {
            End::Open(socket::begin_connect(
                Transport::Tcp,
                KERNEL,
                PEER,
                &options,
            )?)
        };
        let peer = Self {
            end,
            tun,
            left_bytes: setup.size_bytes,
            setup,
            start_ns,
            kernel_seq: 0,
            kernel_stamp: 0,
            kernel_shift: 0,
            recent: 0,
            _namespace: namespace,
        };
        if is_receiver {
            peer.send(&peer.handshake(packet::SYN, 0))?;
        }
        Ok(peer)
    }

    /// The kernel's SYN, or its answer to the peer's, has arrived.
    pub(crate) fn note_handshake(&mut self, segment: &Segment) {
        self.kernel_seq = segment.seq;
        self.kernel_stamp = segment.stamps.0;
        self.kernel_shift = segment.window_shift.unwrap_or(0);
        self.recent = segment.stamps.0;
    }

    /// Finish the handshake.
    pub(crate) fn shake_hands(&mut self) -> Result<()> {
        let segment = match self.end {
            End::Listening(_) => self.segment(packet::ACK),
            End::Open(_) => self.handshake(packet::SYN | packet::ACK, self.kernel_seq + 1),
        };
        self.send(&segment)?;
        if let End::Listening(listener) = &self.end {
            let (stream, _) = listener.accept()?;
            stream.set_nonblocking(true)?;
            self.end = End::Open(stream);
        }
        Ok(())
    }

    fn handshake(&self, flags: u8, ack: u32) -> Segment {
        let asks = flags & packet::ACK == 0;
        let ecn = match (self.setup.ecn, asks) {
            (false, _) => 0,
            (true, true) => packet::ECE | packet::CWR,
            (true, false) => packet::ECE,
        };
        Segment {
            seq: FIRST_SEQ,
            ack,
            flags: flags | ecn,
            // Not scaled in a SYN.
            window: u16::try_from(self.setup.window * SEGMENT_BYTES).unwrap_or(u16::MAX),
            stamps: (FIRST_STAMP, self.recent),
            window_shift: Some(packet::WINDOW_SHIFT),
            ..Segment::default()
        }
    }

    /// A segment without data that acknowledges nothing new.
    pub(crate) fn segment(&self, flags: u8) -> Segment {
        Segment {
            seq: FIRST_SEQ + 1,
            ack: self.kernel_seq + 1,
            flags,
            window: self.window(self.setup.window),
            stamps: (self.stamp_at(self.elapsed_ns()), self.recent),
            ..Segment::default()
        }
    }

    /// The field of a window of so many segments.
    pub(crate) fn window(&self, segments: u32) -> u16 {
        let bytes = segments * SEGMENT_BYTES;
        u16::try_from(bytes >> packet::WINDOW_SHIFT).unwrap_or(u16::MAX)
    }

    /// The peer's timestamp at a time since the start.
    pub(crate) fn stamp_at(&self, at_ns: u64) -> u32 {
        FIRST_STAMP + (at_ns / 1_000_000) as u32
    }

    /// The time in ms of a timestamp of the peer.
    pub(crate) fn stamp_ms(&self, stamp: u32) -> u64 {
        u64::from(stamp.wrapping_sub(FIRST_STAMP))
    }

    /// The kernel's timestamp at a time since the start; it counts milliseconds.
    pub(crate) fn kernel_stamp_at(&self, at_ns: u64) -> u32 {
        self.kernel_stamp.wrapping_add((at_ns / 1_000_000) as u32)
    }

    /// Sequence numbers of the kernel's segments, and of the peer's.
    pub(crate) fn kernel_seq(&self, segment: u32) -> u32 {
        self.kernel_seq.wrapping_add(1 + segment * SEGMENT_BYTES)
    }

    pub(crate) fn own_seq(&self, segment: u32) -> u32 {
        FIRST_SEQ.wrapping_add(1 + segment * SEGMENT_BYTES)
    }

    /// The other way round; a part of a segment counts as none.
    pub(crate) fn kernel_segment(&self, seq: u32) -> u32 {
        seq.wrapping_sub(self.kernel_seq + 1) / SEGMENT_BYTES
    }

    pub(crate) fn own_segment(&self, seq: u32) -> u32 {
        seq.wrapping_sub(FIRST_SEQ + 1) / SEGMENT_BYTES
    }

    /// The kernel's window in segments, of the field of a segment.
    pub(crate) fn kernel_window(&self, field: u16) -> u32 {
        (u32::from(field) << self.kernel_shift).div_ceil(SEGMENT_BYTES)
    }

    pub(crate) fn send(&self, segment: &Segment) -> Result<()> {
        let ends = |address: SocketAddrV4| (*address.ip(), address.port());
        let route = Route {
            from: ends(PEER),
            to: ends(KERNEL),
        };
        nix::unistd::write(&self.tun.fd, &segment.bytes(route))?;
        Ok(())
    }

    /// The application writes a piece that is larger than any window of the scripts.
    pub(crate) fn write(&mut self) -> Result<()> {
        static PIECE: [u8; 65_536] = [0; 65_536];
        let End::Open(stream) = &mut self.end else {
            return Ok(());
        };
        let most = self.left_bytes.unwrap_or(u64::MAX).min(PIECE.len() as u64) as usize;
        if most == 0 {
            return Ok(());
        }
        match stream.write(&PIECE[..most]) {
            Ok(count) => self.left_bytes = self.left_bytes.map(|left| left - count as u64),
            Err(error) if is_later(&error) => {}
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }

    /// The application reads what has arrived.
    pub(crate) fn read(&mut self) -> Result<()> {
        let mut buffer = [0; 65_536];
        let End::Open(stream) = &mut self.end else {
            return Ok(());
        };
        loop {
            match stream.read(&mut buffer) {
                Ok(0) => return Err("the kernel closed the connection".into()),
                Ok(_) => {}
                Err(error) if is_later(&error) => return Ok(()),
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// The next packet of the kernel that is there or comes until a time, with the time when it was seen.
    pub(crate) fn next(&self, until_ns: u64) -> Result<Option<(u64, Segment)>> {
        let mut buffer = [0; MTU_BYTES as usize];
        loop {
            match nix::unistd::read(&self.tun.fd, &mut buffer) {
                Ok(length) => {
                    if let Some(segment) = Segment::parse(&buffer[..length]) {
                        return Ok(Some((self.elapsed_ns(), segment)));
                    }
                    continue;
                }
                Err(nix::Error::EAGAIN) => {}
                Err(errno) => return Err(errno.into()),
            }
            let now_ns = self.elapsed_ns();
            if now_ns >= until_ns {
                return Ok(None);
            }
            let wait = TimeSpec::nanoseconds((until_ns - now_ns) as i64);
            ppoll(
                &mut [PollFd::new(self.tun.fd.as_fd(), PollFlags::POLLIN)],
                Some(wait),
                None,
            )?;
        }
    }

    /// Nanoseconds since the SYN left.
    pub(crate) fn elapsed_ns(&self) -> u64 {
        now_ns().map_or(0, |now| now - self.start_ns)
    }

    /// What the kernel says about the socket.
    pub(crate) fn info(&self) -> Result<TcpInfo> {
        match &self.end {
            End::Open(stream) => Ok(mptcp::tcp_info(stream)?),
            End::Listening(_) => Err("there is no connection".into()),
        }
    }
}

fn is_later(error: &std::io::Error) -> bool {
    // Before the handshake is complete, a socket that connects is not connected.
    matches!(
        error.kind(),
        ErrorKind::WouldBlock | ErrorKind::NotConnected
    )
}

fn now_ns() -> Result<u64> {
    Ok(clock_gettime(ClockId::CLOCK_MONOTONIC)?.num_nanoseconds() as u64)
}

/// The kernel's tick, in which TCP's timers count.
pub(crate) fn tick_ns() -> Result<u64> {
    Ok(clock_getres(ClockId::CLOCK_MONOTONIC_COARSE)?.num_nanoseconds() as u64)
}

/// The sum of counters of the namespace, such as `TCPTimeouts`.
pub(crate) fn count(names: &[&str]) -> Result<u64> {
    let text = fs::read_to_string(NETSTAT)?;
    let mut lines = text.lines().filter(|line| line.starts_with("TcpExt:"));
    let (Some(keys), Some(values)) = (lines.next(), lines.next()) else {
        return Err(format!("{NETSTAT}: no TcpExt").into());
    };
    let mut sum = 0;
    for (key, value) in keys.split_whitespace().zip(values.split_whitespace()) {
        if names.contains(&key) {
            sum += value.parse::<u64>()?;
        }
    }
    Ok(sum)
}
