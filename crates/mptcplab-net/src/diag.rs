//! Every TCP socket of a namespace with its congestion control, `tcp_info` and role in an MPTCP connection.
//!
//! This shows which algorithm a subflow really runs; MPTCP's own options return only what was set. Another user's inodes and
//! addresses can be read without privileges; some details cannot.
//!
//! The requests are encoded here because `netlink-packet-sock-diag` (0.5) cannot list MPTCP sockets: its request has one byte
//! for the protocol and no attributes, but IPPROTO_MPTCP (262) needs INET_DIAG_REQ_PROTOCOL. It does not decode
//! INET_DIAG_ULP_INFO either, which contains the role of a subflow.
//! Source: sock_diag(7), include/uapi/linux/inet_diag.h.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use netlink_packet_core::{DefaultNla, NLM_F_DUMP};
use netlink_sys::protocols::NETLINK_SOCK_DIAG;

use crate::mptcp::{IPPROTO_MPTCP, MptcpInfo};
use crate::netlink::{Netlink, Raw, attributes, emit, text, u32_at, u64_at};
use crate::{Namespace, NetError, Result, TcpInfo, TcpState};

const SOCK_DIAG_BY_FAMILY: u16 = 20;
/// For protocols that do not fit into the request's byte; the attribute below then contains the protocol.
const IPPROTO_RAW: u8 = 255;
const REQ_PROTOCOL: u16 = 3;
const ALL_STATES: u32 = u32::MAX;

// Attributes of an answer; the request asks for them by bit (number - 1).
const INET_DIAG_INFO: u16 = 2;
const INET_DIAG_CONG: u16 = 4;
const INET_DIAG_ULP_INFO: u16 = 19;

const ULP_INFO_NAME: u16 = 1;
const ULP_INFO_MPTCP: u16 = 3;

const SUBFLOW_TOKEN_REM: u16 = 1;
const SUBFLOW_TOKEN_LOC: u16 = 2;
const SUBFLOW_RELWRITE_SEQ: u16 = 3;
const SUBFLOW_MAP_SEQ: u16 = 4;
const SUBFLOW_FLAGS: u16 = 8;
const SUBFLOW_ID_REM: u16 = 9;
const SUBFLOW_ID_LOC: u16 = 10;

const FLAG_JOIN_REM: u32 = 1 << 2;
const FLAG_BKUP_REM: u32 = 1 << 4;
const FLAG_BKUP_LOC: u32 = 1 << 5;
const FLAG_FULLY_ESTABLISHED: u32 = 1 << 6;

/// `struct inet_diag_req_v2` and `struct inet_diag_msg`.
const REQUEST_BYTES: usize = 56;
const MESSAGE_BYTES: usize = 72;

/// A TCP socket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TcpSocket {
    /// Address and port here.
    pub local: SocketAddr,
    /// Address and port at the peer; port 0 for a listener.
    pub remote: SocketAddr,
    pub state: TcpState,
    /// The congestion control that it runs.
    pub congestion: Option<String>,
    /// The inode of its file, as in `/proc/PID/fd`; 0 when no process has it.
    pub inode: u32,
    pub uid: u32,
    /// The kernel's cookie of the socket, never reused.
    pub cookie: u64,
    /// Bytes received and not yet read; of a listener, connections that wait to be accepted.
    pub receive_queue: u32,
    /// Bytes written and not yet acknowledged; of a listener, the backlog.
    pub send_queue: u32,
    /// Its counters; `None` for states without them, such as TIME-WAIT.
    pub tcp: Option<TcpInfo>,
    /// The upper-layer protocol: `mptcp` for subflows, `tls` for kernel TLS.
    pub ulp: Option<String>,
    /// Its role in an MPTCP connection.
    pub subflow: Option<MptcpSubflow>,
}

/// The role of a TCP socket in an MPTCP connection. Newer versions of Linux report tokens only with CAP_NET_ADMIN.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MptcpSubflow {
    /// The connection's token here.
    pub token_local: Option<u32>,
    /// The connection's token at the peer; 0 where it is not known.
    pub token_remote: Option<u32>,
    /// The number of the local address.
    pub id_local: u8,
    /// The number of the remote address.
    pub id_remote: u8,
    /// The kernel's flags, MPTCP_SUBFLOW_FLAG_*.
    pub flags: u32,
    /// Bytes written to this subflow, modulo 2^32.
    pub relwrite_seq: Option<u32>,
    /// The data sequence number of the mapping received last.
    pub map_seq: Option<u64>,
}

/// An MPTCP connection's own socket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MptcpSocket {
    /// Address and port of the first subflow here.
    pub local: SocketAddr,
    /// Address and port of the first subflow at the peer.
    pub remote: SocketAddr,
    pub state: TcpState,
    /// The inode of its file, as in `/proc/PID/fd`; 0 when no process has it.
    pub inode: u32,
    pub uid: u32,
    /// The kernel's cookie of the socket, never reused.
    pub cookie: u64,
    /// Its counters; `None` for a listener on kernels that give none.
    pub info: Option<MptcpInfo>,
}

/// Address families that a dump can have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Family {
    V4,
    V6,
}

impl MptcpSubflow {
    /// Whether it joined an existing connection.
    #[must_use]
    pub fn is_join(&self) -> bool {
        self.flags & FLAG_JOIN_REM != 0
    }

    /// Whether this side made it a backup, in the handshake or with a later MP_PRIO.
    #[must_use]
    pub fn is_backup_local(&self) -> bool {
        self.flags & FLAG_BKUP_LOC != 0
    }

    /// Whether the peer made it a backup, in the handshake or with a later MP_PRIO.
    #[must_use]
    pub fn is_backup_remote(&self) -> bool {
        self.flags & FLAG_BKUP_REM != 0
    }

    /// Whether the peer has confirmed that it uses MPTCP on this subflow, so that it cannot fall back any more.
    #[must_use]
    pub fn is_fully_established(&self) -> bool {
        self.flags & FLAG_FULLY_ESTABLISHED != 0
    }
}

/// The TCP sockets of the calling thread's namespace, both IP versions, by cookie.
///
/// # Errors
///
/// [`NetError::Kernel`] with ENOENT where the kernel lacks `tcp_diag`.
pub fn tcp_sockets() -> Result<Vec<TcpSocket>> {
    tcp_sockets_of(&mut open()?)
}

/// The MPTCP sockets of the calling thread's namespace, both IP versions, by cookie.
///
/// # Errors
///
/// [`NetError::Kernel`] with ENOENT where the kernel lacks `mptcp_diag`.
pub fn mptcp_sockets() -> Result<Vec<MptcpSocket>> {
    mptcp_sockets_of(&mut open()?)
}

impl Namespace {
    /// The TCP sockets of this namespace, both IP versions, by cookie.
    ///
    /// # Errors
    ///
    /// [`NetError::Kernel`] with ENOENT where the kernel lacks `tcp_diag`.
    pub fn tcp_sockets(&self) -> Result<Vec<TcpSocket>> {
        self.diag_request(tcp_sockets_of)
    }

    /// The MPTCP sockets of this namespace, both IP versions, by cookie.
    ///
    /// # Errors
    ///
    /// [`NetError::Kernel`] with ENOENT where the kernel lacks `mptcp_diag`.
    pub fn mptcp_sockets(&self) -> Result<Vec<MptcpSocket>> {
        self.diag_request(mptcp_sockets_of)
    }
}

/// Opens a netlink socket for queries about the sockets of the calling thread's namespace.
pub(crate) fn open() -> Result<Netlink> {
    Netlink::open(NETLINK_SOCK_DIAG, "socket diagnosis")
}

fn tcp_sockets_of(netlink: &mut Netlink) -> Result<Vec<TcpSocket>> {
    Ok(
        dump(netlink, "list TCP sockets", libc::IPPROTO_TCP, tcp_socket)?
            .into_values()
            .collect(),
    )
}

fn mptcp_sockets_of(netlink: &mut Netlink) -> Result<Vec<MptcpSocket>> {
    Ok(
        dump(netlink, "list MPTCP sockets", IPPROTO_MPTCP, mptcp_socket)?
            .into_values()
            .collect(),
    )
}

/// The inodes of all sockets that a process has open.
///
/// # Errors
///
/// [`NetError::Kernel`]: ENOENT for a process that does not exist, EACCES for another user's process.
pub fn socket_inodes(pid: u32) -> Result<BTreeSet<u32>> {
    let directory = format!("/proc/{pid}/fd");
    let failed = |error: io::Error| {
        NetError::kernel(format!("read {directory}"), error)
            .with_hint("give the id of a running process; another user's process needs root")
    };
    let mut inodes = BTreeSet::new();
    for entry in fs::read_dir(&directory).map_err(failed)? {
        // A descriptor may be closed after it was listed.
        let Ok(target) = fs::read_link(entry.map_err(failed)?.path()) else {
            continue;
        };
        let target = target.to_string_lossy();
        let inode = target
            .strip_prefix("socket:[")
            .and_then(|rest| rest.strip_suffix(']'));
        inodes.extend(inode.and_then(|digits| digits.parse::<u32>().ok()));
    }
    Ok(inodes)
}

fn dump<T>(
    netlink: &mut Netlink,
    what: &str,
    protocol: i32,
    decode: impl Fn(&str, Family, &[u8]) -> Result<(u64, T)>,
) -> Result<BTreeMap<u64, T>> {
    let mut sockets = BTreeMap::new();
    for family in [Family::V4, Family::V6] {
        let answers = netlink.request(what, request(family, protocol), NLM_F_DUMP).map_err(|error| {
            error.with_hint("the kernel needs INET_DIAG, INET_TCP_DIAG and INET_MPTCP_DIAG, or their modules")
        })?;
        for answer in &answers {
            let (cookie, socket) = decode(what, family, &answer.bytes)?;
            sockets.insert(cookie, socket);
        }
    }
    Ok(sockets)
}

fn request(family: Family, protocol: i32) -> Raw {
    let mut bytes = vec![0; REQUEST_BYTES];
    bytes[0] = match family {
        Family::V4 => libc::AF_INET as u8,
        Family::V6 => libc::AF_INET6 as u8,
    };
    bytes[1] = u8::try_from(protocol).unwrap_or(IPPROTO_RAW);
    bytes[2] = 1 << (INET_DIAG_INFO - 1) | 1 << (INET_DIAG_CONG - 1);
    bytes[4..8].copy_from_slice(&ALL_STATES.to_ne_bytes());
    if u8::try_from(protocol).is_err() {
        bytes.extend(emit(&[DefaultNla::new(
            REQ_PROTOCOL,
            protocol.to_ne_bytes().to_vec(),
        )]));
    }
    Raw {
        kind: SOCK_DIAG_BY_FAMILY,
        bytes,
    }
}

/// The fixed part of an answer, the same for TCP and MPTCP.
struct Message<'a> {
    local: SocketAddr,
    remote: SocketAddr,
    state: TcpState,
    inode: u32,
    uid: u32,
    cookie: u64,
    receive_queue: u32,
    send_queue: u32,
    attributes: BTreeMap<u16, &'a [u8]>,
}

impl<'a> Message<'a> {
    fn decode(what: &str, family: Family, bytes: &'a [u8]) -> Result<Self> {
        Self::fixed_part(family, bytes)
            .ok_or_else(|| {
                NetError::malformed(what, format_args!("{} bytes are too few", bytes.len()))
            })
            .and_then(|message| {
                Ok(Self {
                    attributes: attributes(what, &bytes[MESSAGE_BYTES..])?,
                    ..message
                })
            })
    }

    fn fixed_part(family: Family, bytes: &'a [u8]) -> Option<Self> {
        let port = |at: usize| Some(u16::from_be_bytes(bytes.get(at..at + 2)?.try_into().ok()?));
        Some(Self {
            state: TcpState::from(*bytes.get(1)?),
            local: SocketAddr::new(ip(family, bytes.get(8..24)?)?, port(4)?),
            remote: SocketAddr::new(ip(family, bytes.get(24..40)?)?, port(6)?),
            cookie: u64::from(u32_at(bytes, 44)?) | u64::from(u32_at(bytes, 48)?) << 32,
            receive_queue: u32_at(bytes, 56)?,
            send_queue: u32_at(bytes, 60)?,
            uid: u32_at(bytes, 64)?,
            inode: u32_at(bytes, 68)?,
            attributes: BTreeMap::new(),
        })
    }
}

/// Decodes an address; an IPv4-mapped IPv6 address becomes an IPv4 address.
fn ip(family: Family, bytes: &[u8]) -> Option<IpAddr> {
    match family {
        Family::V4 => Some(IpAddr::V4(Ipv4Addr::from(
            <[u8; 4]>::try_from(bytes.get(..4)?).ok()?,
        ))),
        Family::V6 => Some(Ipv6Addr::from(<[u8; 16]>::try_from(bytes).ok()?).to_canonical()),
    }
}

fn tcp_socket(what: &str, family: Family, bytes: &[u8]) -> Result<(u64, TcpSocket)> {
    let message = Message::decode(what, family, bytes)?;
    let (ulp, subflow) = match message.attributes.get(&INET_DIAG_ULP_INFO) {
        Some(bytes) => upper_layer(what, bytes)?,
        None => (None, None),
    };
    let socket = TcpSocket {
        local: message.local,
        remote: message.remote,
        state: message.state,
        congestion: message
            .attributes
            .get(&INET_DIAG_CONG)
            .map(|bytes| text(bytes)),
        inode: message.inode,
        uid: message.uid,
        cookie: message.cookie,
        receive_queue: message.receive_queue,
        send_queue: message.send_queue,
        tcp: message
            .attributes
            .get(&INET_DIAG_INFO)
            .and_then(|bytes| TcpInfo::decode(bytes)),
        ulp,
        subflow,
    };
    Ok((message.cookie, socket))
}

fn upper_layer(what: &str, bytes: &[u8]) -> Result<(Option<String>, Option<MptcpSubflow>)> {
    let found = attributes(what, bytes)?;
    let subflow = found
        .get(&ULP_INFO_MPTCP)
        .map(|bytes| subflow(what, bytes))
        .transpose()?;
    Ok((found.get(&ULP_INFO_NAME).map(|bytes| text(bytes)), subflow))
}

fn subflow(what: &str, bytes: &[u8]) -> Result<MptcpSubflow> {
    let found = attributes(what, bytes)?;
    let number = |kind| found.get(&kind).and_then(|bytes| u32_at(bytes, 0));
    let byte = |kind| found.get(&kind).and_then(|bytes| bytes.first().copied());
    let (Some(flags), Some(id_local), Some(id_remote)) = (
        number(SUBFLOW_FLAGS),
        byte(SUBFLOW_ID_LOC),
        byte(SUBFLOW_ID_REM),
    ) else {
        return Err(NetError::malformed(what, "a subflow without flags or ids"));
    };
    Ok(MptcpSubflow {
        token_local: number(SUBFLOW_TOKEN_LOC),
        token_remote: number(SUBFLOW_TOKEN_REM),
        id_local,
        id_remote,
        flags,
        relwrite_seq: number(SUBFLOW_RELWRITE_SEQ),
        map_seq: found
            .get(&SUBFLOW_MAP_SEQ)
            .and_then(|bytes| u64_at(bytes, 0)),
    })
}

fn mptcp_socket(what: &str, family: Family, bytes: &[u8]) -> Result<(u64, MptcpSocket)> {
    let message = Message::decode(what, family, bytes)?;
    let socket = MptcpSocket {
        local: message.local,
        remote: message.remote,
        state: message.state,
        inode: message.inode,
        uid: message.uid,
        cookie: message.cookie,
        info: message
            .attributes
            .get(&INET_DIAG_INFO)
            .and_then(|bytes| MptcpInfo::decode(bytes)),
    };
    Ok((message.cookie, socket))
}
