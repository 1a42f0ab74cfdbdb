//! Network namespaces, TUN devices, routes and MPTCP's kernel interfaces, as plain calls.
//!
//! All calls block, run no other program and keep no state outside the kernel objects that they return: a namespace, a TUN
//! device or a socket disappears when its owner drops it or dies. Nothing here knows of scenarios or algorithms.
//!
//! | Module | Contents |
//! |---|---|
//! | [`userns`] | a new user namespace, in which the calling process is root |
//! | [`sandbox`] | shuts the calling process in: user, files, capabilities, system calls |
//! | [`Namespace`] | anonymous network namespaces: threads inside them, sysctls |
//! | [`in_every_namespace`] | runs something in every network namespace of the machine |
//! | [`tun`], [`link`] | TUN devices, veth pairs, statistics, up and down |
//! | [`address`], [`route`] | addresses; routes with their metrics |
//! | [`mptcp`] | path manager, its events, MPTCP_INFO and MPTCP_FULL_INFO |
//! | [`socket`] | listening and connected sockets of TCP and MPTCP, and their options |
//! | [`diag`] | every TCP socket of a namespace with its algorithm, `tcp_info` and MPTCP role |
//!
//! ```no_run
//! use std::net::{Ipv4Addr, SocketAddrV4};
//! use std::time::Duration;
//!
//! use mptcplab_net::mptcp::{self, Limits, LocalAddress, PathManager};
//! use mptcplab_net::route::{Metrics, Route};
//! use mptcplab_net::socket::{self, Options, Transport};
//! use mptcplab_net::{LOOPBACK_IFINDEX, Namespace};
//!
//! # fn main() -> mptcplab_net::Result<()> {
//! let (client, server) = (Namespace::new("client")?, Namespace::new("server")?);
//! let tun = client.tun("up0", 1500, 5000)?; // tun.fd: read packets here, write them to the other end's device
//! client.add_address(LOOPBACK_IFINDEX, Ipv4Addr::new(10, 0, 0, 1), 32)?;
//! let metrics = Metrics { mtu_bytes: Some(1500), initcwnd_pkts: Some(10), ..Metrics::default() };
//! client.replace_route(&Route { metrics, ..Route::host(Ipv4Addr::new(10, 0, 0, 2), tun.ifindex) })?;
//!
//! client.sysctl("net.mptcp.pm_type", 1)?; // the user-space path manager
//! PathManager::new(&server)?.set_limits(Limits { subflows: 8, add_addr_accepted: 0 })?;
//! let options = Options { congestion: Some("reno".into()), no_delay: true, ..Options::default() };
//! let target = SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, 2), 5001);
//! let source = SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, 1), 0);
//! let stream = client.run(|| {
//!     socket::connect(Transport::Mptcp, source, target, &options, Duration::from_secs(5))
//! })??;
//! let token = mptcp::info(&stream)?.token;
//! let paths = PathManager::new(&client)?;
//! let local = LocalAddress { ip: Ipv4Addr::new(10, 0, 1, 1), id: 1, ifindex: None, backup: false };
//! paths.subflow_create(token, local, SocketAddrV4::new(Ipv4Addr::new(10, 0, 1, 2), 5001))?;
//! for subflow in mptcp::full_info(&stream)?.subflows {
//!     println!("{} -> {}: cwnd {} packets", subflow.local, subflow.remote, subflow.tcp.snd_cwnd_pkts);
//! }
//! for socket in client.tcp_sockets()? {
//!     println!("{} runs {:?}", socket.local, socket.congestion);
//! }
//! # Ok(())
//! # }
//! ```
//!
//! Errors are [`NetError`]: the text names the call and its arguments, and [`NetError::hint`] says what to do.

pub mod address;
pub mod diag;
mod error;
mod every;
mod genetlink;
pub mod link;
mod lookup;
pub mod mptcp;
mod namespace;
mod netlink;
mod netstat;
pub mod route;
pub mod sandbox;
pub mod socket;
mod sockopt;
pub mod tcp_info;
pub mod tun;
pub mod userns;

pub use error::{NetError, Result};
pub use every::{InNamespace, in_every_namespace};
pub use namespace::Namespace;
pub use tcp_info::{TcpInfo, TcpState};
pub use tun::Tun;

/// The index of `lo`, the same in every network namespace.
pub const LOOPBACK_IFINDEX: u32 = 1;
