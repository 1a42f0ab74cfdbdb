//! MPTCP's path manager in one network namespace: limits, endpoints, and single subflows of a live connection.
//!
//! Subflows are created one by one with the user-space path manager, which the client's namespace needs
//! (`net.mptcp.pm_type=1`, set before its first connection). The peer must listen on the subflow's address, preferably on
//! 0.0.0.0, and must accept the subflow: the kernel's path manager does within its limits, the user-space one while a process
//! listens to its events. Source: generic netlink family `mptcp_pm`, Documentation/netlink/specs/mptcp_pm.yaml of the kernel.

use std::net::{IpAddr, Ipv4Addr, SocketAddrV4};
use std::sync::{Mutex, PoisonError};

use netlink_packet_core::{DefaultNla, NLM_F_DUMP};
use netlink_sys::protocols::NETLINK_GENERIC;

use super::events::Events;
use crate::genetlink::{self, Family, HEADER_BYTES};
use crate::netlink::{Netlink, Raw, attributes, nested, u16_at, u32_at};
use crate::{Namespace, NetError, Result};

const FAMILY: &str = "mptcp_pm";
const VERSION: u8 = 1;
const EVENTS_GROUP: &str = "mptcp_pm_events";

// Commands.
const ADD_ADDR: u8 = 1;
const DEL_ADDR: u8 = 2;
const GET_ADDR: u8 = 3;
const FLUSH_ADDRS: u8 = 4;
const SET_LIMITS: u8 = 5;
const GET_LIMITS: u8 = 6;
const SET_FLAGS: u8 = 7;
const SUBFLOW_CREATE: u8 = 10;
const SUBFLOW_DESTROY: u8 = 11;

// Attributes of a message.
const ATTR_ADDR: u16 = 1;
const ATTR_RCV_ADD_ADDRS: u16 = 2;
const ATTR_SUBFLOWS: u16 = 3;
const ATTR_TOKEN: u16 = 4;
const ATTR_ADDR_REMOTE: u16 = 6;

// Attributes of an address.
const ADDR_FAMILY: u16 = 1;
const ADDR_ID: u16 = 2;
const ADDR_ADDR4: u16 = 3;
const ADDR_ADDR6: u16 = 4;
const ADDR_PORT: u16 = 5;
const ADDR_FLAGS: u16 = 6;
const ADDR_IF_IDX: u16 = 7;

const FLAG_SIGNAL: u32 = 1;
const FLAG_SUBFLOW: u32 = 1 << 1;
const FLAG_BACKUP: u32 = 1 << 2;
const FLAG_FULLMESH: u32 = 1 << 3;

/// The largest value of either limit.
const MAX_LIMIT: u32 = 8;

/// The path manager of one namespace. It keeps the namespace alive.
#[derive(Debug)]
pub struct PathManager {
    netlink: Mutex<Netlink>,
    namespace: Namespace,
    family: Family,
}

/// How many subflows a connection may have beyond its first; both peers' limits count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Extra subflows, 0 to 8.
    pub subflows: u32,
    /// Addresses accepted from the peer, 0 to 8.
    pub add_addr_accepted: u32,
}

/// The local end of a new subflow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LocalAddress {
    /// Its source address.
    pub ip: Ipv4Addr,
    /// The address's id, 1 to 255: one id per address of a connection. 0 is the address of the first subflow.
    pub id: u8,
    /// Binds the subflow to a device. Linux 6.1 ignores it.
    pub ifindex: Option<u32>,
    /// Whether it carries data only while no other subflow can. Linux 6.1 ignores this: after the subflow is established,
    /// read [`is_backup_local`](crate::diag::MptcpSubflow::is_backup_local) and, if need be, call
    /// [`PathManager::set_backup`].
    pub backup: bool,
}

/// An address that the kernel's own path manager uses or announces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Endpoint {
    pub ip: IpAddr,
    /// Its id; `None` lets the kernel choose.
    pub id: Option<u8>,
    /// The device that its subflows are bound to.
    pub ifindex: Option<u32>,
    /// Announce it to peers.
    pub signal: bool,
    /// Start subflows from it.
    pub subflow: bool,
    /// Its subflows are backups.
    pub backup: bool,
    /// Start subflows from it to every address of the peer.
    pub fullmesh: bool,
    /// A port of its own. [`PathManager::endpoint_add`] refuses it, because the kernel's listener for it would keep the
    /// namespace forever (at least from 6.1 to 7.2).
    pub port: Option<u16>,
}

impl PathManager {
    /// The path manager of `namespace`.
    ///
    /// # Errors
    ///
    /// [`NetError::Kernel`] with ENOENT where the kernel has no MPTCP.
    pub fn new(namespace: &Namespace) -> Result<Self> {
        let (netlink, family) = open(namespace)?;
        Ok(Self {
            netlink: Mutex::new(netlink),
            namespace: namespace.clone(),
            family,
        })
    }

    /// The limits of new connections.
    pub fn limits(&self) -> Result<Limits> {
        let what = "read MPTCP's limits";
        let answers = self.request(what, GET_LIMITS, &[], 0)?;
        let found = attributes(what, body(&answers, what)?)?;
        let number = |kind| found.get(&kind).and_then(|bytes| u32_at(bytes, 0));
        match (number(ATTR_SUBFLOWS), number(ATTR_RCV_ADD_ADDRS)) {
            (Some(subflows), Some(add_addr_accepted)) => Ok(Limits {
                subflows,
                add_addr_accepted,
            }),
            _ => Err(NetError::malformed(what, "a limit is missing")),
        }
    }

    /// Sets the limits of new connections.
    ///
    /// # Errors
    ///
    /// [`NetError::Invalid`] above 8; [`NetError::Kernel`] without CAP_NET_ADMIN.
    pub fn set_limits(&self, limits: Limits) -> Result<()> {
        for (name, value) in [
            ("subflows", limits.subflows),
            ("add_addr_accepted", limits.add_addr_accepted),
        ] {
            if value > MAX_LIMIT {
                return Err(NetError::invalid(
                    format!("MPTCP limit {name}"),
                    value,
                    "0 to 8, the kernel's maximum",
                ));
            }
        }
        let attributes = [
            number(ATTR_RCV_ADD_ADDRS, limits.add_addr_accepted),
            number(ATTR_SUBFLOWS, limits.subflows),
        ];
        self.request(
            &format!("set MPTCP's limits to {limits:?}"),
            SET_LIMITS,
            &attributes,
            0,
        )?;
        Ok(())
    }

    /// Adds a subflow to a live connection; it is usable once its handshake is over, about one round-trip time later.
    ///
    /// # Errors
    ///
    /// [`NetError::Kernel`] with the kernel's explanation: there is no connection with that token, the user-space path manager
    /// is not in use (`net.mptcp.pm_type`), the connection is not established yet, the address has two ids, or there is no
    /// route.
    pub fn subflow_create(
        &self,
        token: u32,
        local: LocalAddress,
        remote: SocketAddrV4,
    ) -> Result<()> {
        let mut from = ip(local.ip.into());
        from.push(DefaultNla::new(ADDR_ID, vec![local.id]));
        if local.backup {
            from.push(number(ADDR_FLAGS, FLAG_BACKUP));
        }
        if let Some(ifindex) = local.ifindex {
            from.push(number(ADDR_IF_IDX, ifindex));
        }
        let attributes = [
            number(ATTR_TOKEN, token),
            nested(ATTR_ADDR, &from),
            socket(ATTR_ADDR_REMOTE, remote),
        ];
        let what = format!(
            "add a subflow from {} (id {}) to {remote} to connection {token:#010x}",
            local.ip, local.id
        );
        self.request(&what, SUBFLOW_CREATE, &attributes, 0).map_err(|error| {
            error.with_hint(
                "the namespace needs net.mptcp.pm_type=1 before the connection starts, each address one id per \
                 connection, and the connection must be established",
            )
        })?;
        Ok(())
    }

    /// Resets one subflow of a live connection; its unacknowledged data are sent over the others.
    ///
    /// # Errors
    ///
    /// [`NetError::Kernel`] with ESRCH where the connection has no such subflow.
    pub fn subflow_destroy(
        &self,
        token: u32,
        local: SocketAddrV4,
        remote: SocketAddrV4,
    ) -> Result<()> {
        let attributes = [
            number(ATTR_TOKEN, token),
            socket(ATTR_ADDR, local),
            socket(ATTR_ADDR_REMOTE, remote),
        ];
        let what =
            format!("remove the subflow from {local} to {remote} of connection {token:#010x}");
        self.request(&what, SUBFLOW_DESTROY, &attributes, 0)?;
        Ok(())
    }

    /// Makes a live subflow a backup or a regular one, on both sides (MP_PRIO).
    ///
    /// # Errors
    ///
    /// [`NetError::Kernel`] with EINVAL or ESRCH where the connection has no such subflow.
    pub fn set_backup(
        &self,
        token: u32,
        local: SocketAddrV4,
        remote: SocketAddrV4,
        backup: bool,
    ) -> Result<()> {
        let flags = if backup { FLAG_BACKUP } else { 0 };
        let mut from = address(local);
        from.push(number(ADDR_FLAGS, flags));
        let attributes = [
            number(ATTR_TOKEN, token),
            nested(ATTR_ADDR, &from),
            socket(ATTR_ADDR_REMOTE, remote),
        ];
        let what = format!(
            "set backup={backup} for the subflow from {local} to {remote} of connection {token:#010x}"
        );
        self.request(&what, SET_FLAGS, &attributes, 0)?;
        Ok(())
    }

    /// Adds an endpoint of the kernel's own path manager.
    ///
    /// # Errors
    ///
    /// [`NetError::Invalid`] for one with a port; [`NetError::Kernel`] with EEXIST for an address that is there.
    pub fn endpoint_add(&self, endpoint: &Endpoint) -> Result<()> {
        if let Some(port) = endpoint.port {
            let expected =
                "no port: the kernel's listener for it would keep the network namespace forever";
            return Err(NetError::invalid(
                format!("port of the MPTCP endpoint {}", endpoint.ip),
                port,
                expected,
            ));
        }
        let mut attributes = ip(endpoint.ip);
        attributes.push(number(ADDR_FLAGS, endpoint.flags()));
        attributes.extend(endpoint.id.map(|id| DefaultNla::new(ADDR_ID, vec![id])));
        attributes.extend(endpoint.ifindex.map(|ifindex| number(ADDR_IF_IDX, ifindex)));
        let what = format!("add the MPTCP endpoint {}", endpoint.ip);
        self.request(&what, ADD_ADDR, &[nested(ATTR_ADDR, &attributes)], 0)?;
        Ok(())
    }

    /// Removes an endpoint by its id; its subflows are reset.
    ///
    /// # Errors
    ///
    /// [`NetError::Kernel`] with EINVAL if there is none with that id.
    pub fn endpoint_remove(&self, id: u8) -> Result<()> {
        // Without a family, because with one the kernel also requires the address.
        let attributes = [DefaultNla::new(ADDR_ID, vec![id])];
        self.request(
            &format!("remove the MPTCP endpoint {id}"),
            DEL_ADDR,
            &[nested(ATTR_ADDR, &attributes)],
            0,
        )?;
        Ok(())
    }

    /// Removes all endpoints.
    ///
    /// # Errors
    ///
    /// [`NetError::Kernel`] without CAP_NET_ADMIN.
    pub fn endpoints_flush(&self) -> Result<()> {
        self.request("remove all MPTCP endpoints", FLUSH_ADDRS, &[], 0)?;
        Ok(())
    }

    /// All endpoints, in the order of their ids.
    pub fn endpoints(&self) -> Result<Vec<Endpoint>> {
        let what = "list MPTCP's endpoints";
        let answers = self.request(what, GET_ADDR, &[], NLM_F_DUMP)?;
        let mut endpoints = Vec::new();
        for answer in &answers {
            let found = attributes(what, answer.bytes.get(HEADER_BYTES..).unwrap_or_default())?;
            if let Some(bytes) = found.get(&ATTR_ADDR) {
                endpoints.push(Endpoint::decode(what, bytes)?);
            }
        }
        endpoints.sort_by_key(|endpoint| endpoint.id);
        Ok(endpoints)
    }

    /// Subscribes to the events of the namespace's connections and subflows.
    ///
    /// # Errors
    ///
    /// [`NetError::Kernel`] without CAP_NET_ADMIN.
    pub fn events(&self) -> Result<Events> {
        let (netlink, family) = open(&self.namespace)?;
        let what = format!("listen to MPTCP's events in {}", self.namespace.name());
        let group = family.groups.get(EVENTS_GROUP);
        let group = group
            .ok_or_else(|| NetError::malformed(&what, format_args!("no group {EVENTS_GROUP}")))?;
        Events::join(netlink, what, *group)
    }

    fn request(
        &self,
        what: &str,
        command: u8,
        attributes: &[DefaultNla],
        flags: u16,
    ) -> Result<Vec<Raw>> {
        let message = genetlink::message(self.family.id, command, VERSION, attributes);
        // A panic while the lock was held leaves at worst unread answers, which the sequence number tells apart.
        let mut netlink = self.netlink.lock().unwrap_or_else(PoisonError::into_inner);
        netlink.request(
            &format!("{what} in {}", self.namespace.name()),
            message,
            flags,
        )
    }
}

impl Endpoint {
    /// An endpoint with nothing set.
    #[must_use]
    pub fn new(ip: impl Into<IpAddr>) -> Self {
        Self {
            ip: ip.into(),
            id: None,
            ifindex: None,
            signal: false,
            subflow: false,
            backup: false,
            fullmesh: false,
            port: None,
        }
    }

    fn flags(&self) -> u32 {
        [
            (self.signal, FLAG_SIGNAL),
            (self.subflow, FLAG_SUBFLOW),
            (self.backup, FLAG_BACKUP),
            (self.fullmesh, FLAG_FULLMESH),
        ]
        .into_iter()
        .map(|(is_set, flag)| if is_set { flag } else { 0 })
        .sum()
    }

    fn decode(what: &str, bytes: &[u8]) -> Result<Self> {
        let found = attributes(what, bytes)?;
        let v4 = || <[u8; 4]>::try_from(*found.get(&ADDR_ADDR4)?).ok();
        let v6 = || <[u8; 16]>::try_from(*found.get(&ADDR_ADDR6)?).ok();
        let ip = v4()
            .map(IpAddr::from)
            .or_else(|| v6().map(IpAddr::from))
            .ok_or_else(|| NetError::malformed(what, "an endpoint without an address"))?;
        let flags = found
            .get(&ADDR_FLAGS)
            .and_then(|bytes| u32_at(bytes, 0))
            .unwrap_or(0);
        Ok(Self {
            ip,
            id: found.get(&ADDR_ID).and_then(|bytes| bytes.first().copied()),
            ifindex: found
                .get(&ADDR_IF_IDX)
                .and_then(|bytes| u32_at(bytes, 0))
                .filter(|&ifindex| ifindex != 0),
            signal: flags & FLAG_SIGNAL != 0,
            subflow: flags & FLAG_SUBFLOW != 0,
            backup: flags & FLAG_BACKUP != 0,
            fullmesh: flags & FLAG_FULLMESH != 0,
            port: found
                .get(&ADDR_PORT)
                .and_then(|bytes| u16_at(bytes, 0))
                .filter(|&port| port != 0),
        })
    }
}

fn open(namespace: &Namespace) -> Result<(Netlink, Family)> {
    let mut netlink =
        namespace.run(|| Netlink::open(NETLINK_GENERIC, "MPTCP's path manager"))??;
    let family = genetlink::family(&mut netlink, FAMILY)
        .map_err(|error| error.with_hint("the kernel needs CONFIG_MPTCP, Linux 6.1 or newer"))?;
    Ok((netlink, family))
}

fn body<'a>(answers: &'a [Raw], what: &str) -> Result<&'a [u8]> {
    let body = answers
        .first()
        .and_then(|answer| answer.bytes.get(HEADER_BYTES..));
    body.ok_or_else(|| NetError::malformed(what, "it is empty"))
}

fn number(kind: u16, value: u32) -> DefaultNla {
    DefaultNla::new(kind, value.to_ne_bytes().to_vec())
}

/// An address with its family.
fn ip(ip: IpAddr) -> Vec<DefaultNla> {
    let (family, kind, octets) = match ip {
        IpAddr::V4(ip) => (libc::AF_INET, ADDR_ADDR4, ip.octets().to_vec()),
        IpAddr::V6(ip) => (libc::AF_INET6, ADDR_ADDR6, ip.octets().to_vec()),
    };
    let family = (family as u16).to_ne_bytes().to_vec();
    vec![
        DefaultNla::new(ADDR_FAMILY, family),
        DefaultNla::new(kind, octets),
    ]
}

/// The port is in the host's byte order, unlike everywhere else.
fn address(address: SocketAddrV4) -> Vec<DefaultNla> {
    let port = DefaultNla::new(ADDR_PORT, address.port().to_ne_bytes().to_vec());
    let mut attributes = ip((*address.ip()).into());
    attributes.push(port);
    attributes
}

fn socket(kind: u16, at: SocketAddrV4) -> DefaultNla {
    nested(kind, &address(at))
}
