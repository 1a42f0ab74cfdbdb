//! The kernel's event notifications about the MPTCP connections and subflows of a namespace.
//!
//! Source: multicast group `mptcp_pm_events`, include/uapi/linux/mptcp.h.

use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::AsFd;
use std::time::Duration;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use crate::genetlink::HEADER_BYTES;
use crate::netlink::{Netlink, Raw, attributes, u32_at};
use crate::{NetError, Result};

const ATTR_TOKEN: u16 = 1;
const ATTR_LOC_ID: u16 = 3;
const ATTR_REM_ID: u16 = 4;
const ATTR_SADDR4: u16 = 5;
const ATTR_DADDR4: u16 = 7;
const ATTR_SPORT: u16 = 9;
const ATTR_DPORT: u16 = 10;
const ATTR_BACKUP: u16 = 11;
const ATTR_ERROR: u16 = 12;

/// The kind of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventKind {
    /// A connection's handshake began.
    Created,
    /// A connection can take more subflows.
    Established,
    /// A connection was closed.
    Closed,
    /// The peer announced an address.
    Announced,
    /// The peer withdrew an address.
    Removed,
    /// A further subflow is usable.
    SubflowEstablished,
    /// A subflow was closed.
    SubflowClosed,
    /// A subflow became a backup or a regular one.
    SubflowPriority,
    /// Another, by the kernel's number.
    Other(u8),
}

/// An event. Values that its kind does not report are `None`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event {
    /// The kind of the event.
    pub kind: EventKind,
    /// The connection's token in this namespace; 0 for events of no connection.
    pub token: u32,
    /// The subflow's address here.
    pub local: Option<SocketAddrV4>,
    /// Its address at the peer.
    pub remote: Option<SocketAddrV4>,
    /// The number of the local address.
    pub local_id: Option<u8>,
    /// The number of the remote address.
    pub remote_id: Option<u8>,
    /// Whether the peer wants the subflow to be a backup; the wish of this side is not reported.
    pub backup: Option<bool>,
    /// The error that closed a subflow, such as 111 (refused).
    pub error: Option<u8>,
}

/// The events of a namespace since [`PathManager::events`](super::PathManager::events).
#[derive(Debug)]
pub struct Events {
    netlink: Netlink,
    what: String,
    waiting: std::collections::VecDeque<Event>,
}

impl Events {
    pub(crate) fn join(mut netlink: Netlink, what: String, group: u32) -> Result<Self> {
        netlink.join(&what, group)?;
        Ok(Self {
            netlink,
            what,
            waiting: std::collections::VecDeque::new(),
        })
    }

    /// The next event, or `None` when none came within `timeout`.
    ///
    /// # Errors
    ///
    /// [`NetError::Kernel`] with ENOBUFS when events were lost because they were not read in time.
    pub fn next(&mut self, timeout: Duration) -> Result<Option<Event>> {
        if self.waiting.is_empty() && self.is_readable(timeout)? {
            for message in self
                .netlink
                .receive::<Raw>(&self.what, libc::MSG_DONTWAIT)?
            {
                if let netlink_packet_core::NetlinkPayload::InnerMessage(raw) = message.payload {
                    self.waiting.push_back(decode(&self.what, &raw)?);
                }
            }
        }
        Ok(self.waiting.pop_front())
    }

    fn is_readable(&self, timeout: Duration) -> Result<bool> {
        let milliseconds = PollTimeout::try_from(timeout).unwrap_or(PollTimeout::MAX);
        let mut fds = [PollFd::new(
            self.netlink.as_raw().as_fd(),
            PollFlags::POLLIN,
        )];
        match poll(&mut fds, milliseconds) {
            Ok(ready) => Ok(ready > 0),
            Err(nix::errno::Errno::EINTR) => Ok(false),
            Err(errno) => Err(NetError::kernel(&self.what, io::Error::from(errno))),
        }
    }
}

fn decode(what: &str, raw: &Raw) -> Result<Event> {
    let command = *raw
        .bytes
        .first()
        .ok_or_else(|| NetError::malformed(what, "an empty event"))?;
    let found = attributes(what, raw.bytes.get(HEADER_BYTES..).unwrap_or_default())?;
    let byte = |kind| found.get(&kind).and_then(|bytes| bytes.first().copied());
    let address = |ip, port| {
        let ip = <[u8; 4]>::try_from(*found.get(&ip)?).ok()?;
        let port = <[u8; 2]>::try_from(*found.get(&port)?).ok()?;
        Some(SocketAddrV4::new(
            Ipv4Addr::from(ip),
            u16::from_be_bytes(port),
        ))
    };
    Ok(Event {
        kind: EventKind::from(command),
        token: found
            .get(&ATTR_TOKEN)
            .and_then(|bytes| u32_at(bytes, 0))
            .unwrap_or(0),
        local: address(ATTR_SADDR4, ATTR_SPORT),
        remote: address(ATTR_DADDR4, ATTR_DPORT),
        local_id: byte(ATTR_LOC_ID),
        remote_id: byte(ATTR_REM_ID),
        backup: byte(ATTR_BACKUP).map(|value| value != 0),
        error: byte(ATTR_ERROR),
    })
}

impl From<u8> for EventKind {
    fn from(command: u8) -> Self {
        match command {
            1 => Self::Created,
            2 => Self::Established,
            3 => Self::Closed,
            6 => Self::Announced,
            7 => Self::Removed,
            10 => Self::SubflowEstablished,
            11 => Self::SubflowClosed,
            13 => Self::SubflowPriority,
            other => Self::Other(other),
        }
    }
}
