//! The counters of an MPTCP connection and its subflows, read through the connection's own descriptor.
//!
//! This needs no privilege. The structures have the lengths of the running kernel. Source: include/uapi/linux/mptcp.h.

use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::AsFd;

use crate::netlink::{u16_at, u32_at, u64_at};
use crate::{NetError, Result, TcpInfo, sockopt};

const SOL_MPTCP: i32 = 284;
const MPTCP_INFO: i32 = 1;
const MPTCP_TCPINFO: i32 = 2;
const MPTCP_SUBFLOW_ADDRS: i32 = 3;
const MPTCP_FULL_INFO: i32 = 4;

/// Up to `mptcpi_rcv_nxt`, which every kernel with the option has.
const LEAST_INFO_BYTES: usize = 43;
/// Linux 6.1 pads its 48 bytes where later kernels count retransmissions.
const PADDED_INFO_BYTES: usize = 48;
const FLAG_FALLBACK: u32 = 1;

const FULL_INFO: &str = "read MPTCP_FULL_INFO";

/// Initial room for subflows. The kernel's own path manager creates at most 9; one in user space may create any number.
const USUAL_SUBFLOWS: usize = 16;
/// Two `sockaddr_storage`.
const ADDRESSES_BYTES: usize = 256;
/// A number, padding and the addresses.
const SUBFLOW_INFO_BYTES: usize = 8 + ADDRESSES_BYTES;
/// More than the longest known structure, which has 280 bytes on Linux 7.2; the kernel returns what it has.
const TCP_INFO_BYTES: usize = 512;
/// `struct mptcp_subflow_data`.
const SUBFLOW_DATA_BYTES: usize = 16;
/// `struct mptcp_full_info` before its `mptcp_info`.
const FULL_INFO_HEAD_BYTES: usize = 40;
const MPTCP_INFO_BYTES: usize = 256;
/// Attempts to read the subflows; one fails if they change meanwhile.
const TRIES: u32 = 10;

/// A connection's counters, `struct mptcp_info`. `None` where the kernel is too old.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MptcpInfo {
    /// Subflows beyond the first.
    pub extra_subflows: u8,
    /// Addresses announced to the peer.
    pub add_addr_signal: u8,
    /// Addresses accepted from the peer.
    pub add_addr_accepted: u8,
    /// The limit of extra subflows.
    pub subflows_max: u8,
    /// Bit 0: fallen back to TCP; bit 1: the peer's key has arrived.
    pub flags: u32,
    /// The connection's token in its namespace.
    pub token: u32,
    /// The data sequence number of the next byte written.
    pub write_seq: u64,
    /// The first data sequence number that the peer has not acknowledged.
    pub snd_una: u64,
    /// The next data sequence number expected.
    pub rcv_nxt: u64,
    /// Local addresses in use.
    pub local_addr_used: u8,
    /// Whether data carry a checksum.
    pub csum_enabled: bool,
    /// Retransmissions at the connection's level (timeouts). Linux 6.5.
    pub retransmits: Option<u32>,
    /// Payload that the connection sent again, in bytes. Linux 6.5.
    pub bytes_retrans: Option<u64>,
    /// Payload sent for the first time, in bytes. Linux 6.5.
    pub bytes_sent: Option<u64>,
    /// Payload received in order, in bytes. Linux 6.5.
    pub bytes_received: Option<u64>,
    /// Payload acknowledged, in bytes. Linux 6.5.
    pub bytes_acked: Option<u64>,
    /// All subflows, the first included. Linux 6.8.
    pub subflows_total: Option<u8>,
    /// Milliseconds since data were sent. Linux 6.10.
    pub last_data_sent_ms: Option<u32>,
    /// Milliseconds since data arrived. Linux 6.10.
    pub last_data_recv_ms: Option<u32>,
    /// Milliseconds since an acknowledgement arrived. Linux 6.10.
    pub last_ack_recv_ms: Option<u32>,
}

/// One subflow of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Subflow {
    /// The kernel's number of the subflow, 1 for the first, never reused. `None` without MPTCP_FULL_INFO (before Linux
    /// 6.6): the addresses and ports identify it.
    pub id: Option<u32>,
    /// Address and port here.
    pub local: SocketAddrV4,
    /// Address and port at the peer.
    pub remote: SocketAddrV4,
    /// Its counters. Backup and other flags are in [`diag`](crate::diag).
    pub tcp: TcpInfo,
}

/// A connection with all its subflows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FullInfo {
    pub mptcp: MptcpInfo,
    /// Its subflows, oldest first.
    pub subflows: Vec<Subflow>,
}

/// Reads a connection's counters.
///
/// # Errors
///
/// [`NetError::Fallback`] if the connection is plain TCP, from its beginning or after a fallback; [`NetError::Kernel`] if it
/// is not a stream socket.
pub fn info(socket: impl AsFd) -> Result<MptcpInfo> {
    let what = "read MPTCP_INFO";
    let mut bytes = [0; MPTCP_INFO_BYTES];
    let length = read(&socket, MPTCP_INFO, what, &mut bytes)?;
    let info = MptcpInfo::decode(&bytes[..length]).ok_or_else(|| malformed_length(what, length))?;
    match info.flags & FLAG_FALLBACK {
        0 => Ok(info),
        _ => Err(NetError::Fallback { what: what.into() }),
    }
}

/// Reads a connection's counters and those of all its subflows; since Linux 6.6 with a single call.
///
/// # Errors
///
/// As for [`info`]; [`NetError::Unsteady`] on an older kernel where the subflows change each time they are read.
pub fn full_info(socket: impl AsFd) -> Result<FullInfo> {
    match full_info_in_one(&socket) {
        Err(NetError::Kernel { source, .. }) if is_unknown(&source) => full_info_in_parts(&socket),
        outcome => outcome,
    }
}

/// Reads `tcp_info` of a plain TCP socket.
///
/// # Errors
///
/// [`NetError::Kernel`] if it is not a TCP socket.
pub fn tcp_info(socket: impl AsFd) -> Result<TcpInfo> {
    let what = "read TCP_INFO";
    let mut bytes = [0; TCP_INFO_BYTES];
    let length = sockopt::read(socket, libc::IPPROTO_TCP, libc::TCP_INFO, &mut bytes)
        .map_err(|error| NetError::kernel(what, error))?;
    TcpInfo::decode(&bytes[..length]).ok_or_else(|| malformed_length(what, length))
}

fn full_info_in_one(socket: &impl AsFd) -> Result<FullInfo> {
    with_room(FULL_INFO, |room| full_info_of(socket, room))
}

/// The connection with up to `room` subflows, and how many it has.
fn full_info_of(socket: &impl AsFd, room: usize) -> Result<(FullInfo, usize)> {
    let what = FULL_INFO;
    let mut subflows = vec![0_u8; room * SUBFLOW_INFO_BYTES];
    let mut tcp_infos = vec![0_u8; room * TCP_INFO_BYTES];
    let mut argument = [0_u8; FULL_INFO_HEAD_BYTES + MPTCP_INFO_BYTES];
    put_u32(&mut argument, 4, TCP_INFO_BYTES);
    put_u32(&mut argument, 12, SUBFLOW_INFO_BYTES);
    put_u32(&mut argument, 20, room);
    put_address(&mut argument, 24, &mut subflows);
    put_address(&mut argument, 32, &mut tcp_infos);
    // SAFETY: the kernel writes to the two addresses `room` elements of the sizes given above at most, which is what the
    // two vectors hold; both are alive until after the call and are not touched meanwhile.
    let length = unsafe {
        sockopt::read_through_pointers(socket, SOL_MPTCP, MPTCP_FULL_INFO, &mut argument)
    };
    let length = length.map_err(|error| refusal(socket, MPTCP_FULL_INFO, what, error))?;
    let mptcp = argument
        .get(FULL_INFO_HEAD_BYTES..length)
        .and_then(MptcpInfo::decode);
    let mptcp = mptcp.ok_or_else(|| malformed_length(what, length))?;
    // Both strides are the shorter of the kernel's and ours, as written back.
    let field = |at| u32_at(&argument, at).map_or(0, |value| value as usize);
    let (tcp_stride, subflow_stride, count) = (field(4), field(12), field(16));
    let decode = |index: usize| {
        let subflow = element(&subflows, index, subflow_stride)?;
        let (local, remote) = addresses(subflow.get(8..)?)?;
        let tcp = TcpInfo::decode(element(&tcp_infos, index, tcp_stride)?)?;
        Some(Subflow {
            id: u32_at(subflow, 0),
            local,
            remote,
            tcp,
        })
    };
    let subflows: Option<Vec<Subflow>> = (0..count.min(room)).map(decode).collect();
    Ok((
        FullInfo {
            mptcp,
            subflows: subflows.ok_or_else(|| malformed_subflow(what))?,
        },
        count,
    ))
}

/// Repeats the call with more room while the connection has more subflows than fit.
fn with_room<T>(what: &str, ask: impl Fn(usize) -> Result<(T, usize)>) -> Result<T> {
    let mut room = USUAL_SUBFLOWS;
    for _ in 0..TRIES {
        let (answer, count) = ask(room)?;
        if count <= room {
            return Ok(answer);
        }
        room = 2 * count;
    }
    Err(NetError::Unsteady {
        what: what.into(),
        tries: TRIES,
    })
}

/// Reads the connection, the addresses and the counters with three calls. The result is accepted if the subflows are the same
/// before and after.
fn full_info_in_parts(socket: &impl AsFd) -> Result<FullInfo> {
    for _ in 0..TRIES {
        let mptcp = info(socket)?;
        let before = subflow_addresses(socket)?;
        let tcp = subflow_infos(socket)?;
        if before.len() == tcp.len() && before == subflow_addresses(socket)? {
            let subflows = before
                .into_iter()
                .zip(tcp)
                .map(|((local, remote), tcp)| Subflow {
                    id: None,
                    local,
                    remote,
                    tcp,
                })
                .collect();
            return Ok(FullInfo { mptcp, subflows });
        }
    }
    Err(NetError::Unsteady {
        what: "read MPTCP_SUBFLOW_ADDRS and MPTCP_TCPINFO".into(),
        tries: TRIES,
    })
}

fn subflow_addresses(socket: &impl AsFd) -> Result<Vec<(SocketAddrV4, SocketAddrV4)>> {
    let what = "read MPTCP_SUBFLOW_ADDRS";
    array(
        socket,
        MPTCP_SUBFLOW_ADDRS,
        what,
        ADDRESSES_BYTES,
        addresses,
    )
}

fn subflow_infos(socket: &impl AsFd) -> Result<Vec<TcpInfo>> {
    array(
        socket,
        MPTCP_TCPINFO,
        "read MPTCP_TCPINFO",
        TCP_INFO_BYTES,
        TcpInfo::decode,
    )
}

/// Reads an option that returns `struct mptcp_subflow_data` and one element per subflow.
fn array<T>(
    socket: &impl AsFd,
    option: i32,
    what: &str,
    element_bytes: usize,
    decode: impl Fn(&[u8]) -> Option<T>,
) -> Result<Vec<T>> {
    with_room(what, |room| {
        let mut bytes = vec![0; SUBFLOW_DATA_BYTES + room * element_bytes];
        put_u32(&mut bytes, 0, SUBFLOW_DATA_BYTES);
        put_u32(&mut bytes, 12, element_bytes);
        read(socket, option, what, &mut bytes)?;
        let field = |at| u32_at(&bytes, at).map_or(0, |value| value as usize);
        let (count, stride) = (field(4), field(8).min(field(12)));
        let elements = &bytes[SUBFLOW_DATA_BYTES..];
        let decoded: Option<Vec<T>> = (0..count.min(room))
            .map(|index| decode(element(elements, index, stride)?))
            .collect();
        Ok((decoded.ok_or_else(|| malformed_subflow(what))?, count))
    })
}

fn read(socket: &impl AsFd, option: i32, what: &str, buffer: &mut [u8]) -> Result<usize> {
    sockopt::read(socket, SOL_MPTCP, option, buffer)
        .map_err(|error| refusal(socket, option, what, error))
}

/// The error for an option that the kernel refuses, which it does for all of them on plain TCP.
fn refusal(socket: &impl AsFd, option: i32, what: &str, error: io::Error) -> NetError {
    // Telling plain TCP from an option that this kernel does not know: MPTCP_INFO is known to all.
    if is_unknown(&error) && (option == MPTCP_INFO || is_plain_tcp(socket)) {
        return NetError::Fallback { what: what.into() };
    }
    NetError::kernel(what, error).with_hint("the socket must be an IPPROTO_MPTCP one")
}

fn is_plain_tcp(socket: &impl AsFd) -> bool {
    let mut bytes = [0; MPTCP_INFO_BYTES];
    sockopt::read(socket, SOL_MPTCP, MPTCP_INFO, &mut bytes).is_err_and(|error| is_unknown(&error))
}

fn is_unknown(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::EOPNOTSUPP)
}

impl MptcpInfo {
    /// Decodes as many bytes as the kernel returned.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        if bytes.len() < LEAST_INFO_BYTES {
            return None;
        }
        let young = if bytes.len() > PADDED_INFO_BYTES {
            bytes
        } else {
            &[]
        };
        Some(Self {
            extra_subflows: bytes[0],
            add_addr_signal: bytes[1],
            add_addr_accepted: bytes[2],
            subflows_max: bytes[3],
            flags: u32_at(bytes, 8)?,
            token: u32_at(bytes, 12)?,
            write_seq: u64_at(bytes, 16)?,
            snd_una: u64_at(bytes, 24)?,
            rcv_nxt: u64_at(bytes, 32)?,
            local_addr_used: bytes[40],
            csum_enabled: bytes[42] != 0,
            retransmits: u32_at(young, 44),
            bytes_retrans: u64_at(young, 48),
            bytes_sent: u64_at(young, 56),
            bytes_received: u64_at(young, 64),
            bytes_acked: u64_at(young, 72),
            subflows_total: young.get(80).copied(),
            last_data_sent_ms: u32_at(young, 84),
            last_data_recv_ms: u32_at(young, 88),
            last_ack_recv_ms: u32_at(young, 92),
        })
    }
}

/// The local and the remote address of one subflow, each in a `sockaddr_storage`.
fn addresses(bytes: &[u8]) -> Option<(SocketAddrV4, SocketAddrV4)> {
    Some((
        address(bytes.get(..ADDRESSES_BYTES / 2)?)?,
        address(bytes.get(ADDRESSES_BYTES / 2..)?)?,
    ))
}

fn address(bytes: &[u8]) -> Option<SocketAddrV4> {
    if i32::from(u16_at(bytes, 0)?) != libc::AF_INET {
        return None;
    }
    let port = u16::from_be_bytes(bytes.get(2..4)?.try_into().ok()?);
    let ip: [u8; 4] = bytes.get(4..8)?.try_into().ok()?;
    Some(SocketAddrV4::new(Ipv4Addr::from(ip), port))
}

fn element(bytes: &[u8], index: usize, stride: usize) -> Option<&[u8]> {
    bytes.get(index * stride..(index + 1) * stride)
}

fn put_u32(bytes: &mut [u8], at: usize, value: usize) {
    let value = u32::try_from(value)
        .unwrap_or_else(|_| unreachable!("sizes and counts of this file are small"));
    bytes[at..at + 4].copy_from_slice(&value.to_ne_bytes());
}

fn put_address(bytes: &mut [u8], at: usize, target: &mut [u8]) {
    let address = target.as_mut_ptr().expose_provenance() as u64;
    bytes[at..at + 8].copy_from_slice(&address.to_ne_bytes());
}

fn malformed_subflow(what: &str) -> NetError {
    NetError::malformed(what, "a subflow that is not IPv4, or a short one")
}

fn malformed_length(what: &str, length: usize) -> NetError {
    NetError::malformed(
        what,
        format_args!("{length} bytes are too few; Linux 6.1 or newer is needed"),
    )
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpStream;
    use std::time::{Duration, Instant};

    use super::*;
    use crate::Namespace;
    use crate::mptcp::{LocalAddress, PathManager};
    use crate::socket::{Options, Transport, connect, listen};

    fn bytes(length: usize) -> Vec<u8> {
        (0..length).map(|at| at as u8).collect()
    }

    #[test]
    fn fields_lie_where_the_kernels_header_puts_them() {
        let info = MptcpInfo::decode(&bytes(96)).unwrap();
        assert_eq!(
            (info.extra_subflows, info.subflows_max, info.local_addr_used),
            (0, 3, 40)
        );
        assert_eq!(info.token, u32::from_ne_bytes([12, 13, 14, 15]));
        assert_eq!(
            info.snd_una,
            u64::from_ne_bytes([24, 25, 26, 27, 28, 29, 30, 31])
        );
        assert_eq!(
            info.bytes_acked,
            Some(u64::from_ne_bytes([72, 73, 74, 75, 76, 77, 78, 79]))
        );
        assert_eq!(info.subflows_total, Some(80));
        assert_eq!(
            info.last_ack_recv_ms,
            Some(u32::from_ne_bytes([92, 93, 94, 95]))
        );
    }

    #[test]
    fn padding_of_an_older_kernel_is_not_taken_for_a_counter() {
        let info = MptcpInfo::decode(&bytes(48)).unwrap();
        assert_eq!(
            (info.retransmits, info.bytes_retrans, info.subflows_total),
            (None, None, None)
        );
        assert_eq!(MptcpInfo::decode(&bytes(42)), None);
    }

    /// The way of kernels before 6.6 is there on all; where both are, they must tell the same.
    #[test]
    fn subflows_read_in_parts_are_those_read_in_one() {
        let Ok(namespace) = Namespace::new("parts") else {
            skipped("subflows_read_in_parts_are_those_read_in_one");
            return;
        };
        let (client, _server, _events) = connection(&namespace, 2);
        let parts = full_info_in_parts(&client).unwrap();
        assert_eq!(parts.subflows.len(), 2);
        assert_eq!(*parts.subflows[1].remote.ip(), Ipv4Addr::new(127, 0, 0, 3));
        match full_info_in_one(&client) {
            Ok(one) => {
                assert_eq!(without_ids(&one.subflows), without_ids(&parts.subflows));
                assert_eq!(one.mptcp.token, parts.mptcp.token);
                assert_eq!(
                    one.subflows
                        .iter()
                        .map(|subflow| subflow.id)
                        .collect::<Vec<_>>(),
                    [Some(1), Some(2)]
                );
            }
            Err(error) => assert_eq!(error.errno(), Some(libc::EOPNOTSUPP), "{error}"),
        }
    }

    #[test]
    fn none_of_many_subflows_is_left_out() {
        let Ok(namespace) = Namespace::new("many") else {
            skipped("none_of_many_subflows_is_left_out");
            return;
        };
        let (client, _server, _events) = connection(&namespace, 21);
        for info in [
            full_info(&client).unwrap(),
            full_info_in_parts(&client).unwrap(),
        ] {
            assert_eq!((info.subflows.len(), info.mptcp.extra_subflows), (21, 20));
            let last = info.subflows.last().unwrap();
            assert_eq!(*last.remote.ip(), Ipv4Addr::new(127, 0, 0, 22));
        }
    }

    fn skipped(test: &str) {
        let line = format!("SKIPPED {test}: network namespaces need root\n");
        io::stderr().write_all(line.as_bytes()).unwrap();
    }

    /// What does not change between two calls.
    fn without_ids(subflows: &[Subflow]) -> Vec<(SocketAddrV4, SocketAddrV4, u64, u64, u32)> {
        let fields = |subflow: &Subflow| {
            let tcp = &subflow.tcp;
            (
                subflow.local,
                subflow.remote,
                tcp.bytes_sent,
                tcp.bytes_received,
                tcp.snd_wnd_bytes,
            )
        };
        subflows.iter().map(fields).collect()
    }

    /// A connection over `lo`; its further subflows, the first included `count`, go from 127.0.0.1 to 127.0.0.3 and so on.
    fn connection(
        namespace: &Namespace,
        count: u8,
    ) -> (TcpStream, TcpStream, crate::mptcp::Events) {
        namespace.sysctl("net.mptcp.pm_type", 1).unwrap();
        let paths = PathManager::new(namespace).unwrap();
        let events = paths.events().unwrap();
        let ip = |last| Ipv4Addr::new(127, 0, 0, last);
        let (patience, options) = (Duration::from_secs(20), Options::default());
        let any = SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 5301);
        let listener = namespace
            .run(|| listen(Transport::Mptcp, any, &options))
            .unwrap()
            .unwrap();
        let (here, there) = (SocketAddrV4::new(ip(1), 0), SocketAddrV4::new(ip(1), 5301));
        let open = || connect(Transport::Mptcp, here, there, &options, patience);
        let mut client = namespace.run(open).unwrap().unwrap();
        let (mut server, _) = listener.accept().unwrap();
        client.write_all(b"four").unwrap();
        server.read_exact(&mut [0; 4]).unwrap();
        server.write_all(b"seven b").unwrap();
        client.read_exact(&mut [0; 7]).unwrap();
        let token = info(&client).unwrap().token;
        let deadline = Instant::now() + patience;
        for extra in 1..count {
            let local = LocalAddress {
                ip: ip(2),
                id: 4,
                ifindex: None,
                backup: false,
            };
            paths
                .subflow_create(token, local, SocketAddrV4::new(ip(2 + extra), 5301))
                .unwrap();
            while info(&server).unwrap().extra_subflows < extra {
                assert!(Instant::now() < deadline, "subflow {extra} never came");
                std::thread::sleep(Duration::from_millis(2));
            }
        }
        (client, server, events)
    }
}
