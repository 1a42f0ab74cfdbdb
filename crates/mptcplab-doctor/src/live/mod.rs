//! Examines live MPTCP connections: which algorithms their subflows run, and why an expected subflow is missing.

mod connection;
mod counters;
mod explain;
mod host;

use super::checks::is_path_manager_in_user_space;
use super::facts::{self, Facts, Loaded, PathManagement};
use super::finding::Finding;
use crate::error::Error;
use connection::{Connection, Selection};
use counters::Counters;
use host::Host;
use mptcplab_net::diag::{self, TcpSocket};
use mptcplab_net::{Namespace, TcpState};
use nix::sched::{CloneFlags, setns};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs::{self, File};

pub(super) use connection::addresses;

/// The connections to examine: those of a process, or one by its addresses.
#[derive(Debug, Clone, Copy)]
pub(super) enum Target {
    Process(u32),
    Connection(std::net::SocketAddr, std::net::SocketAddr),
}

/// The examined connections and the findings about them.
#[derive(Debug)]
pub(super) struct LiveReport {
    /// The connections as JSON.
    pub(super) connections: Value,
    pub(super) findings: Vec<Finding>,
}

/// Enters the network namespace of a process, in which everything is read from then on.
pub(super) fn enter_namespace_of(pid: u32) -> Result<(), Error> {
    let path = format!("/proc/{pid}/ns/net");
    let failed = |source: std::io::Error| Error::Namespace {
        pid,
        path: path.clone(),
        source,
    };
    let theirs = fs::read_link(&path).map_err(failed)?;
    if fs::read_link("/proc/self/ns/net").is_ok_and(|ours| ours == theirs) {
        return Ok(());
    }
    let namespace = File::open(&path).map_err(failed)?;
    setns(namespace, CloneFlags::CLONE_NEWNET).map_err(|errno| failed(errno.into()))
}

/// Examines the target's connections.
pub(super) fn examine(target: Target, facts: &Facts) -> Result<LiveReport, Error> {
    let selection = match target {
        Target::Process(pid) => Selection::Inodes(diag::socket_inodes(pid)?),
        Target::Connection(local, remote) => Selection::Between(local, remote),
    };
    let (mptcp, tcp) = (diag::mptcp_sockets()?, diag::tcp_sockets()?);
    let connections = connection::find(&selection, &mptcp, &tcp);
    if connections.is_empty() {
        return Ok(LiveReport {
            connections: json!([]),
            findings: vec![no_connection(target, &selection, &tcp)],
        });
    }
    let host = host(facts, &connections, &tcp)?;
    let findings = connections
        .iter()
        .flat_map(|connection| explain::explain(connection, &host))
        .collect();
    Ok(LiveReport {
        connections: json!(connections),
        findings,
    })
}

fn host(facts: &Facts, connections: &[Connection], tcp: &[TcpSocket]) -> Result<Host, Error> {
    let paths: PathManagement = facts.paths.clone().unwrap_or_default();
    let namespace = Namespace::current()?;
    let mut no_route = BTreeMap::new();
    for connection in connections {
        for endpoint in &paths.endpoints {
            if let Err(errno) = host::route(&namespace, endpoint, connection.remote.ip()) {
                no_route.insert((endpoint.address, connection.remote.ip()), errno);
            }
        }
    }
    // Read again, because sockets that were opened in between would count as those of an earlier load.
    let before = facts.loaded.clone().unwrap_or_default();
    let after = facts::loaded_algorithms().unwrap_or_default();
    Ok(Host {
        older_loads: older_loads(tcp, &before, &after),
        uncoupled: uncoupled(&after),
        addresses: host::addresses().map_err(Error::Addresses)?,
        paths,
        userspace: is_path_manager_in_user_space(facts),
        counters: Counters::read(),
        no_route,
    })
}

/// Algorithms that sockets run which were loaded earlier under the same name: more sockets of this network namespace name
/// it than the kernel counts for what is loaded now.
fn older_loads(tcp: &[TcpSocket], before: &[Loaded], after: &[Loaded]) -> Vec<String> {
    let named = |name: &str| {
        let sockets = tcp.iter().filter(|s| s.congestion.as_deref() == Some(name));
        sockets.count() as u64
    };
    let users = |of: &[Loaded], name: &str| {
        let found = of.iter().find(|one| one.name == name);
        found.map_or(0, |one| one.users)
    };
    after
        .iter()
        .filter(|one| named(&one.name) > users(before, &one.name).max(one.users))
        .map(|one| one.name.clone())
        .collect()
}

fn uncoupled(loaded: &[Loaded]) -> BTreeMap<String, u64> {
    let some = loaded.iter().filter(|one| one.uncoupled > 0);
    some.map(|one| (one.name.clone(), one.uncoupled)).collect()
}

/// The finding if there is no MPTCP connection: there is no connection at all, or only plain TCP.
fn no_connection(target: Target, selection: &Selection, tcp: &[TcpSocket]) -> Finding {
    let plain: Vec<&TcpSocket> = tcp
        .iter()
        .filter(|socket| socket.state != TcpState::Listen)
        .filter(|socket| match selection {
            Selection::Inodes(inodes) => inodes.contains(&socket.inode),
            Selection::Between(local, remote) => (socket.local, socket.remote) == (*local, *remote),
        })
        .collect();
    let (area, what) = match target {
        Target::Process(pid) => (format!("Connections of process {pid}"), "this process"),
        Target::Connection(local, remote) => {
            (format!("Connection {local} -> {remote}"), "these addresses")
        }
    };
    let line = |found: &str, meaning: String| {
        Finding::ok(area.clone(), "MPTCP", found.to_owned(), meaning)
    };
    if plain.is_empty() {
        return line(
            "none",
            format!("there is no TCP or MPTCP connection of {what} in this network namespace"),
        )
        .missing("ss -tnpM    # lists all connections with their processes");
    }
    let mut algorithms: Vec<&str> = plain
        .iter()
        .filter_map(|s| s.congestion.as_deref())
        .collect();
    algorithms.sort_unstable();
    algorithms.dedup();
    let fallbacks = Counters::read().fallbacks();
    let why = if fallbacks.is_empty() {
        String::new()
    } else {
        format!(
            "; this host's counters show fallbacks: {}",
            fallbacks.join("; ")
        )
    };
    line(
        &format!("{} plain TCP, runs {}", plain.len(), algorithms.join(", ")),
        format!(
            "the application did not open an MPTCP socket, or the peer did not accept MPTCP{why}"
        ),
    )
    .missing("mptcpize run PROGRAM    # makes the program open MPTCP sockets")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_sockets_than_users_are_those_of_an_earlier_load() {
        let tcp: Vec<TcpSocket> = ["lab_olia", "lab_olia", "lab_lia", "cubic"]
            .iter()
            .map(|name| TcpSocket {
                local: ([10, 0, 1, 1], 40_000).into(),
                remote: ([10, 0, 1, 2], 443).into(),
                state: TcpState::Established,
                congestion: Some((*name).into()),
                inode: 7,
                uid: 0,
                cookie: 0,
                receive_queue: 0,
                send_queue: 0,
                tcp: None,
                ulp: None,
                subflow: None,
            })
            .collect();
        let loaded = |olia, lia| {
            [("lab_olia", olia), ("lab_lia", lia)].map(|(name, users)| Loaded {
                name: name.into(),
                sockets: users,
                users,
                uncoupled: 0,
                held: "pinned",
                leftover: false,
            })
        };
        assert_eq!(
            older_loads(&tcp, &loaded(1, 1), &loaded(1, 3)),
            ["lab_olia"]
        );
        // One was opened or closed between the readings.
        assert!(older_loads(&tcp, &loaded(2, 1), &loaded(1, 1)).is_empty());
        assert!(older_loads(&tcp, &loaded(1, 1), &loaded(2, 1)).is_empty());
    }
}
