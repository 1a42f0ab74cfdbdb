//! Live MPTCP connections of this machine: what their subflows run, and why one is missing.

mod connection;
mod counters;
mod explain;
mod host;

use super::checks::userspace;
use super::facts::{Facts, PathManagement};
use super::finding::Finding;
use crate::error::Error;
use connection::{Asked, Connection};
use counters::Counters;
use host::Host;
use mptcplab_net::diag::{self, TcpSocket};
use mptcplab_net::{Namespace, TcpState};
use nix::sched::{CloneFlags, setns};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs::{self, File};

pub(super) use connection::addresses;

/// What was asked about: a process, or one connection by its addresses.
#[derive(Debug, Clone, Copy)]
pub(super) enum Question {
    Process(u32),
    Between(std::net::SocketAddr, std::net::SocketAddr),
}

/// The connections, and the lines about them.
#[derive(Debug)]
pub(super) struct Answer {
    /// As JSON: nothing here works on them any more.
    pub(super) connections: Value,
    pub(super) findings: Vec<Finding>,
}

/// Go into the network namespace of a process, for good: everything that is looked at from then on is its.
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

/// Look at the connections asked about.
pub(super) fn look(question: Question, facts: &Facts) -> Result<Answer, Error> {
    let asked = match question {
        Question::Process(pid) => Asked::Inodes(diag::socket_inodes(pid)?),
        Question::Between(local, remote) => Asked::Between(local, remote),
    };
    let (mptcp, tcp) = (diag::mptcp_sockets()?, diag::tcp_sockets()?);
    let connections = connection::find(&asked, &mptcp, &tcp);
    if connections.is_empty() {
        return Ok(Answer {
            connections: json!([]),
            findings: vec![none(question, &asked, &tcp)],
        });
    }
    let host = host(facts, &connections)?;
    let findings = connections
        .iter()
        .flat_map(|connection| explain::explain(connection, &host))
        .collect();
    Ok(Answer {
        connections: json!(connections),
        findings,
    })
}

fn host(facts: &Facts, connections: &[Connection]) -> Result<Host, Error> {
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
    Ok(Host {
        addresses: host::addresses().map_err(Error::Addresses)?,
        paths,
        userspace: userspace(facts),
        counters: Counters::read(),
        no_route,
    })
}

/// Why nothing was found: no such thing, or plain TCP.
fn none(question: Question, asked: &Asked, tcp: &[TcpSocket]) -> Finding {
    let plain: Vec<&TcpSocket> = tcp
        .iter()
        .filter(|socket| socket.state != TcpState::Listen)
        .filter(|socket| match asked {
            Asked::Inodes(inodes) => inodes.contains(&socket.inode),
            Asked::Between(local, remote) => (socket.local, socket.remote) == (*local, *remote),
        })
        .collect();
    let (area, what) = match question {
        Question::Process(pid) => (format!("Connections of process {pid}"), "this process"),
        Question::Between(local, remote) => (format!("Connection {local} -> {remote}"), "it"),
    };
    let line = |found: &str, meaning: String| {
        Finding::ok(area.clone(), "MPTCP", found.to_owned(), meaning)
    };
    if plain.is_empty() {
        return line(
            "none",
            format!("no TCP or MPTCP connection of {what} is in this network namespace"),
        )
        .missing("ss -tnpM    # lists all connections, with their processes");
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
            "; this host has counted fallbacks: {}",
            fallbacks.join("; ")
        )
    };
    line(
        &format!("{} plain TCP, runs {}", plain.len(), algorithms.join(", ")),
        format!("the application opened no MPTCP socket, or the peer accepted none{why}"),
    )
    .missing("mptcpize run PROGRAM    # makes a program open MPTCP sockets")
}
