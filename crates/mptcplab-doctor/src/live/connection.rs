//! Assembles live MPTCP connections from the sockets that the kernel lists.

use mptcplab_net::TcpState;
use mptcplab_net::diag::{MptcpSocket, TcpSocket};
use serde::Serialize;
use std::collections::BTreeSet;
use std::net::SocketAddr;

/// Who opened a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Role {
    Client,
    Server,
}

/// A subflow as the kernel sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Subflow {
    pub(super) local: SocketAddr,
    pub(super) remote: SocketAddr,
    /// Ids of the addresses; (0, 0) is the first subflow.
    pub(super) id_local: u8,
    pub(super) id_remote: u8,
    pub(super) state: String,
    /// The congestion control that it runs.
    pub(super) congestion: String,
    /// Whether it is a backup for this host.
    pub(super) backup_local: bool,
    /// Whether it is a backup for the peer.
    pub(super) backup_remote: bool,
    pub(super) fully_established: bool,
    pub(super) cwnd_pkts: Option<u32>,
    pub(super) ssthresh_pkts: Option<u32>,
    pub(super) srtt_us: Option<u32>,
    pub(super) bytes_acked: Option<u64>,
    pub(super) retransmitted_pkts: Option<u32>,
    pub(super) delivery_rate_bps: Option<u64>,
    /// Timeouts in a row without an answer, which show that the path does not work.
    pub(super) timeouts_in_a_row: Option<u8>,
}

/// An MPTCP connection.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Connection {
    pub(super) local: SocketAddr,
    pub(super) remote: SocketAddr,
    pub(super) token: Option<u32>,
    pub(super) role: Role,
    pub(super) state: String,
    /// Whether it fell back to plain TCP.
    pub(super) fallback: bool,
    /// Subflows beyond the first, as the kernel compares them with its limit.
    pub(super) extra_subflows: Option<u8>,
    pub(super) add_addr_accepted: Option<u8>,
    pub(super) add_addr_signalled: Option<u8>,
    pub(super) subflows: Vec<Subflow>,
}

/// Which connections to assemble.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Selection {
    /// Those with these socket inodes, which belong to a process.
    Inodes(BTreeSet<u32>),
    /// The one with a subflow between these addresses.
    Between(SocketAddr, SocketAddr),
}

/// The flag of MPTCP_INFO for a fallback.
const FLAG_FALLBACK: u32 = 1;

/// The selected connections, sorted by address.
pub(super) fn find(
    selection: &Selection,
    mptcp: &[MptcpSocket],
    tcp: &[TcpSocket],
) -> Vec<Connection> {
    let mut found: Vec<Connection> = mptcp
        .iter()
        .filter(|socket| socket.state != TcpState::Listen)
        .filter(|socket| is_selected(selection, socket, tcp))
        .map(|socket| connection(socket, tcp))
        .collect();
    found.sort_by_key(|connection| (connection.local, connection.remote));
    found
}

fn is_selected(selection: &Selection, socket: &MptcpSocket, tcp: &[TcpSocket]) -> bool {
    match selection {
        Selection::Inodes(inodes) => inodes.contains(&socket.inode),
        Selection::Between(local, remote) => {
            (socket.local, socket.remote) == (*local, *remote)
                || parts(socket, tcp).any(|part| (part.local, part.remote) == (*local, *remote))
        }
    }
}

/// TCP sockets that belong to a connection: its subflows, or the one that it fell back to.
fn parts<'a>(socket: &'a MptcpSocket, tcp: &'a [TcpSocket]) -> impl Iterator<Item = &'a TcpSocket> {
    let token = socket.info.as_ref().map(|info| info.token);
    tcp.iter().filter(move |part| {
        let same_token = part
            .subflow
            .and_then(|subflow| subflow.token_local)
            .is_some_and(|found| found != 0 && Some(found) == token);
        // Without privileges the kernel reports no tokens; then a subflow has its connection's inode, unless no process has
        // the connection open.
        let same_file = socket.inode != 0 && part.inode == socket.inode;
        let first = (part.local, part.remote) == (socket.local, socket.remote);
        part.state != TcpState::Listen && (same_token || same_file || first)
    })
}

fn connection(socket: &MptcpSocket, tcp: &[TcpSocket]) -> Connection {
    let info = socket.info.as_ref();
    let listens = tcp
        .iter()
        .any(|part| part.state == TcpState::Listen && part.local.port() == socket.local.port());
    let mut subflows: Vec<Subflow> = parts(socket, tcp).map(subflow).collect();
    subflows.sort_by_key(|s| (s.id_local, s.id_remote, s.local, s.remote));
    Connection {
        local: socket.local,
        remote: socket.remote,
        token: info.map(|info| info.token),
        role: if listens { Role::Server } else { Role::Client },
        state: format!("{:?}", socket.state),
        fallback: info.is_some_and(|info| info.flags & FLAG_FALLBACK != 0),
        extra_subflows: info.map(|info| info.extra_subflows),
        add_addr_accepted: info.map(|info| info.add_addr_accepted),
        add_addr_signalled: info.map(|info| info.add_addr_signal),
        subflows,
    }
}

fn subflow(socket: &TcpSocket) -> Subflow {
    let (role, tcp) = (socket.subflow, socket.tcp);
    Subflow {
        local: socket.local,
        remote: socket.remote,
        id_local: role.map_or(0, |role| role.id_local),
        id_remote: role.map_or(0, |role| role.id_remote),
        state: format!("{:?}", socket.state),
        congestion: socket
            .congestion
            .clone()
            .unwrap_or_else(|| "unknown".into()),
        backup_local: role.is_some_and(|role| role.is_backup_local()),
        backup_remote: role.is_some_and(|role| role.is_backup_remote()),
        fully_established: role.is_some_and(|role| role.is_fully_established()),
        cwnd_pkts: tcp.map(|tcp| tcp.snd_cwnd_pkts),
        ssthresh_pkts: tcp
            .filter(mptcplab_net::TcpInfo::has_ssthresh)
            .map(|tcp| tcp.snd_ssthresh_pkts),
        srtt_us: tcp.map(|tcp| tcp.rtt_us),
        bytes_acked: tcp.map(|tcp| tcp.bytes_acked),
        retransmitted_pkts: tcp.map(|tcp| tcp.total_retrans_pkts),
        delivery_rate_bps: tcp.map(|tcp| 8 * tcp.delivery_rate_bytes_per_s),
        timeouts_in_a_row: tcp.map(|tcp| tcp.retransmits),
    }
}

/// `SRC:PORT-DST:PORT`, IPv6 addresses in brackets.
pub(crate) fn addresses(text: &str) -> Result<(SocketAddr, SocketAddr), String> {
    let parse = |part: &str| part.trim().parse::<SocketAddr>();
    match text
        .split_once('-')
        .map(|(one, other)| (parse(one), parse(other)))
    {
        Some((Ok(local), Ok(remote))) => Ok((local, remote)),
        _ => Err(format!(
            "{text:?} is not SRC:PORT-DST:PORT (such as 10.0.0.1:40000-10.0.0.2:443)"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> SocketAddr {
        text.parse().unwrap()
    }

    #[test]
    fn addresses_are_both_ends_with_ports() {
        assert_eq!(
            addresses("10.0.0.1:4000-10.0.0.2:443"),
            Ok((at("10.0.0.1:4000"), at("10.0.0.2:443")))
        );
        assert_eq!(
            addresses("[::1]:1-[::2]:2"),
            Ok((at("[::1]:1"), at("[::2]:2")))
        );
        for bad in ["10.0.0.1:4000", "10.0.0.1-10.0.0.2", "a:1-b:2", ""] {
            assert!(addresses(bad).is_err(), "{bad}");
        }
    }

    fn tcp(local: &str, remote: &str, inode: u32, state: TcpState) -> TcpSocket {
        TcpSocket {
            local: at(local),
            remote: at(remote),
            state,
            congestion: Some("lab_olia".into()),
            inode,
            uid: 0,
            cookie: 0,
            receive_queue: 0,
            send_queue: 0,
            tcp: None,
            ulp: None,
            subflow: None,
        }
    }

    fn mptcp(local: &str, remote: &str, inode: u32) -> MptcpSocket {
        MptcpSocket {
            local: at(local),
            remote: at(remote),
            state: TcpState::Established,
            inode,
            uid: 0,
            cookie: 0,
            info: None,
        }
    }

    #[test]
    fn subflows_are_found_by_file_and_others_are_not() {
        let sockets = [
            tcp("10.0.1.1:40000", "10.0.1.2:443", 7, TcpState::Established),
            tcp("10.0.2.1:41000", "10.0.1.2:443", 7, TcpState::Established),
            tcp("10.0.1.1:42000", "10.0.1.2:443", 8, TcpState::Established),
        ];
        let connections = [
            mptcp("10.0.1.1:40000", "10.0.1.2:443", 7),
            mptcp("10.0.1.1:42000", "10.0.1.2:443", 8),
        ];
        let of_process = find(&Selection::Inodes([7].into()), &connections, &sockets);
        assert_eq!(of_process.len(), 1);
        let subflows: Vec<_> = of_process[0]
            .subflows
            .iter()
            .map(|s| s.local.port())
            .collect();
        assert_eq!(subflows, [40000, 41000]);
        // A connection is found by any of its subflows.
        let joined = Selection::Between(at("10.0.2.1:41000"), at("10.0.1.2:443"));
        assert_eq!(find(&joined, &connections, &sockets), of_process);
        let nobody = Selection::Between(at("10.0.2.1:41000"), at("10.0.1.2:444"));
        assert!(find(&nobody, &connections, &sockets).is_empty());
    }

    #[test]
    fn who_listens_on_the_port_is_the_server() {
        let sockets = [
            tcp("0.0.0.0:443", "0.0.0.0:0", 3, TcpState::Listen),
            tcp("10.0.1.2:443", "10.0.1.1:40000", 4, TcpState::Established),
        ];
        let asked = Selection::Inodes([4].into());
        let server = find(
            &asked,
            &[mptcp("10.0.1.2:443", "10.0.1.1:40000", 4)],
            &sockets,
        );
        assert_eq!(server[0].role, Role::Server);
        assert_eq!(server[0].subflows.len(), 1);
        let client = find(
            &asked,
            &[mptcp("10.0.1.1:40000", "10.0.1.2:443", 4)],
            &sockets[..1],
        );
        assert_eq!(client[0].role, Role::Client);
    }
}
