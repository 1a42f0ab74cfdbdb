//! Listening and connected IPv4 sockets of TCP and MPTCP, with the options that experiments set.
//!
//! A socket belongs to the namespace of the thread that creates it, so call these functions inside [`Namespace::run`](crate::Namespace::run).

use std::io;
use std::net::{SocketAddr, SocketAddrV4, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::time::Duration;

use socket2::{Domain, Protocol, SockRef, Socket, Type};

use crate::{NetError, Result, mptcp, netlink, sockopt};

const BACKLOG: i32 = 128;
/// TCP_CA_NAME_MAX, with the zero at its end.
const NAME_BYTES: usize = 16;

/// The protocol of a socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    Tcp,
    /// MPTCP; it may fall back to TCP, see [`is_mptcp_fallback`].
    Mptcp,
}

/// Options set before a socket connects or listens; accepted sockets and subflows inherit them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Options {
    /// The congestion control of all subflows; `None` for the kernel's default.
    pub congestion: Option<String>,
    /// Send buffer, in bytes; `None` for the kernel's auto-tuning.
    pub send_buffer_bytes: Option<usize>,
    /// Receive buffer, in bytes; `None` for the kernel's auto-tuning.
    pub receive_buffer_bytes: Option<usize>,
    /// Send small segments at once.
    pub no_delay: bool,
    /// Reset the connection on close: an orphaned socket on a dead path would keep its namespace for a minute.
    pub reset_on_close: bool,
}

/// Listens on `address`; port 0 lets the kernel choose.
///
/// # Errors
///
/// [`NetError::Kernel`]: EADDRINUSE, EADDRNOTAVAIL, ENOENT for an unknown congestion control, ENOPROTOOPT without MPTCP.
pub fn listen(
    transport: Transport,
    address: SocketAddrV4,
    options: &Options,
) -> Result<TcpListener> {
    let socket = open(transport)?;
    let step = |result: io::Result<()>| {
        result.map_err(|error| {
            NetError::kernel(format!("listen on {address} ({transport:?})"), error)
        })
    };
    step(socket.set_reuse_address(true))?;
    apply(&socket, options)?;
    step(socket.bind(&SocketAddr::V4(address).into()))?;
    step(socket.listen(BACKLOG))?;
    Ok(socket.into())
}

/// Connects from `source` (port 0 lets the kernel choose) to `target`.
///
/// # Errors
///
/// [`NetError::Kernel`]: ECONNREFUSED, ETIMEDOUT after `timeout`, EADDRNOTAVAIL, ENOENT for an unknown congestion
/// control, EPERM for one that needs CAP_NET_ADMIN, ENOPROTOOPT without MPTCP.
pub fn connect(
    transport: Transport,
    source: SocketAddrV4,
    target: SocketAddrV4,
    options: &Options,
    timeout: Duration,
) -> Result<TcpStream> {
    let ends = (transport, source, target);
    let socket = bound(ends, options)?;
    socket
        .connect_timeout(&SocketAddr::V4(target).into(), timeout)
        .map_err(|error| NetError::kernel(connecting(ends), with_number(error)))?;
    Ok(socket.into())
}

/// Starts connecting as [`connect`] does, but does not wait. The socket is non-blocking. It becomes writable when it is
/// connected; if connecting fails, `take_error` returns the reason.
///
/// # Errors
///
/// As for [`connect`], except for errors that the peer causes.
pub fn begin_connect(
    transport: Transport,
    source: SocketAddrV4,
    target: SocketAddrV4,
    options: &Options,
) -> Result<TcpStream> {
    let ends = (transport, source, target);
    let socket = bound(ends, options)?;
    let begun = socket
        .set_nonblocking(true)
        .and_then(|()| socket.connect(&SocketAddr::V4(target).into()));
    match begun {
        Err(error) if error.raw_os_error() != Some(libc::EINPROGRESS) => {
            Err(NetError::kernel(connecting(ends), error))
        }
        _ => Ok(socket.into()),
    }
}

type Ends = (Transport, SocketAddrV4, SocketAddrV4);

fn connecting((transport, source, target): Ends) -> String {
    format!("connect {source} to {target} ({transport:?})")
}

/// A socket with its options and source.
fn bound(ends: Ends, options: &Options) -> Result<Socket> {
    let (transport, source, _) = ends;
    let socket = open(transport)?;
    apply(&socket, options)?;
    socket
        .bind(&SocketAddr::V4(source).into())
        .map_err(|error| NetError::kernel(connecting(ends), error))?;
    Ok(socket)
}

/// Gives a timeout detected here the kernel's error number, so that callers have to check only one.
fn with_number(error: io::Error) -> io::Error {
    match (error.raw_os_error(), error.kind()) {
        (None, io::ErrorKind::TimedOut) => io::Error::from_raw_os_error(libc::ETIMEDOUT),
        _ => error,
    }
}

fn open(transport: Transport) -> Result<Socket> {
    let protocol = match transport {
        Transport::Tcp => Protocol::TCP,
        Transport::Mptcp => Protocol::MPTCP,
    };
    Socket::new(Domain::IPV4, Type::STREAM, Some(protocol)).map_err(|error| {
        NetError::kernel(format!("open a socket ({transport:?})"), error)
            .with_hint("MPTCP needs CONFIG_MPTCP in the kernel and the sysctl net.mptcp.enabled=1")
    })
}

fn apply(socket: &Socket, options: &Options) -> Result<()> {
    if let Some(name) = &options.congestion {
        set_congestion(socket, name)?;
    }
    if let Some(bytes) = options.send_buffer_bytes {
        set_send_buffer(socket, bytes)?;
    }
    if let Some(bytes) = options.receive_buffer_bytes {
        set_receive_buffer(socket, bytes)?;
    }
    if options.no_delay {
        set_no_delay(socket, true)?;
    }
    if options.reset_on_close {
        set_reset_on_close(socket)?;
    }
    Ok(())
}

/// Sets the congestion control; for an MPTCP connection that of all its subflows. This is possible at any time.
///
/// # Errors
///
/// [`NetError::Kernel`]: ENOENT for an unknown one, EPERM for one that is restricted, without CAP_NET_ADMIN.
pub fn set_congestion(socket: impl AsFd, name: &str) -> Result<()> {
    if name.is_empty() || name.len() >= NAME_BYTES || name.contains('\0') {
        return Err(NetError::invalid(
            "congestion control",
            format!("\"{name}\""),
            "a name of 1 to 15 bytes",
        ));
    }
    sockopt::write(
        socket,
        libc::IPPROTO_TCP,
        libc::TCP_CONGESTION,
        name.as_bytes(),
    )
    .map_err(|error| {
        let hint = match error.raw_os_error() {
            Some(libc::ENOENT) => {
                "the sysctl net.ipv4.tcp_available_congestion_control lists those that are loaded"
            }
            Some(libc::EPERM) => {
                "it is not in net.ipv4.tcp_allowed_congestion_control: CAP_NET_ADMIN is needed"
            }
            _ => "the socket must be a TCP or MPTCP one",
        };
        NetError::kernel(format!("set the congestion control {name}"), error).with_hint(hint)
    })
}

/// The congestion control of a socket; for an MPTCP connection the one that was set last. [`diag`](crate::diag) reports that
/// of each subflow.
///
/// # Errors
///
/// [`NetError::Kernel`] if it is not a TCP or MPTCP socket.
pub fn congestion(socket: impl AsFd) -> Result<String> {
    let mut bytes = [0; NAME_BYTES];
    let length = sockopt::read(socket, libc::IPPROTO_TCP, libc::TCP_CONGESTION, &mut bytes)
        .map_err(|error| NetError::kernel("read TCP_CONGESTION", error))?;
    Ok(netlink::text(&bytes[..length]))
}

/// Makes closing the socket send a reset and drop unsent data, so that nothing of the connection remains.
///
/// # Errors
///
/// [`NetError::Kernel`] if it is not a socket.
pub fn set_reset_on_close(socket: impl AsFd) -> Result<()> {
    SockRef::from(&socket)
        .set_linger(Some(Duration::ZERO))
        .map_err(|error| NetError::kernel("set SO_LINGER to 0 s", error))
}

/// Sets whether small segments are sent at once (TCP_NODELAY).
///
/// # Errors
///
/// [`NetError::Kernel`] if it is not a TCP or MPTCP socket.
pub fn set_no_delay(socket: impl AsFd, is_on: bool) -> Result<()> {
    SockRef::from(&socket)
        .set_tcp_nodelay(is_on)
        .map_err(|error| NetError::kernel(format!("set TCP_NODELAY to {is_on}"), error))
}

/// Fixes the send buffer at `bytes` of payload and bookkeeping.
///
/// # Errors
///
/// [`NetError::Invalid`] above the machine's `net.core.wmem_max`, where the kernel would silently grant less.
pub fn set_send_buffer(socket: impl AsFd, bytes: usize) -> Result<()> {
    let socket = SockRef::from(&socket);
    let set = socket
        .set_send_buffer_size(bytes)
        .and_then(|()| socket.send_buffer_size());
    granted(
        "send buffer",
        bytes,
        set,
        "net.core.wmem_max",
        "net.ipv4.tcp_wmem",
    )
}

/// Fixes the receive buffer at `bytes` of payload and bookkeeping. Set it before connecting, for the window's scale.
///
/// # Errors
///
/// [`NetError::Invalid`] above the machine's `net.core.rmem_max`, where the kernel would silently grant less.
pub fn set_receive_buffer(socket: impl AsFd, bytes: usize) -> Result<()> {
    let socket = SockRef::from(&socket);
    let set = socket
        .set_recv_buffer_size(bytes)
        .and_then(|()| socket.recv_buffer_size());
    granted(
        "receive buffer",
        bytes,
        set,
        "net.core.rmem_max",
        "net.ipv4.tcp_rmem",
    )
}

/// The kernel doubles the size for its bookkeeping.
fn granted(
    name: &str,
    asked: usize,
    doubled: io::Result<usize>,
    host_key: &str,
    key: &str,
) -> Result<()> {
    let doubled =
        doubled.map_err(|error| NetError::kernel(format!("set the {name} to {asked} B"), error))?;
    if doubled / 2 >= asked {
        return Ok(());
    }
    let expected = format!(
        "at most {} B by the machine's {host_key}; the namespace's {key} has no such bound",
        doubled / 2
    );
    Err(NetError::invalid(name, format_args!("{asked} B"), expected))
}

/// Whether a connected socket is, or has become, plain TCP instead of MPTCP.
///
/// # Errors
///
/// [`NetError::Kernel`] if it is neither a TCP nor an MPTCP socket, or not connected.
pub fn is_mptcp_fallback(socket: impl AsFd) -> Result<bool> {
    let what = "read SO_PROTOCOL";
    let protocol = sockopt::read_i32(&socket, libc::SOL_SOCKET, libc::SO_PROTOCOL)
        .map_err(|error| NetError::kernel(what, error))?;
    match protocol {
        libc::IPPROTO_TCP => Ok(true),
        mptcp::IPPROTO_MPTCP => match mptcp::info(socket) {
            Ok(_) => Ok(false),
            Err(NetError::Fallback { .. }) => Ok(true),
            Err(error) => Err(error),
        },
        other => Err(NetError::invalid(what, other, "6 (TCP) or 262 (MPTCP)")),
    }
}
