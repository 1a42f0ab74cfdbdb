//! Two hosts with emulated paths between them, and MPTCP connections over all of the paths: the smallest network on which
//! an eBPF algorithm can be tested and measured. Scenarios are run by `mptcplab-kernel` instead.
//!
//! Everything is in network namespaces of its own and disappears when the [`Testbed`] is dropped. Every failure is a
//! panic, as is usual in tests and benchmarks.

use crate::clock::Clock;
use crate::handle::{Emulator, start};
use crate::setup::{LinkSetup, Options, Port, Setup};
use mptcplab_model::link::rng::Rng;
use mptcplab_model::link::{Aqm, LinkConfig, Loss, QueueLimit};
use mptcplab_net::mptcp::{self, Limits, LocalAddress, PathManager};
use mptcplab_net::route::Route;
use mptcplab_net::socket::{self, Transport};
use mptcplab_net::{LOOPBACK_IFINDEX, Namespace};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddrV4, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

/// How long a connection or a subflow may take to be established.
const PATIENCE: Duration = Duration::from_secs(10);

/// One path, the same in both directions but for the loss.
#[derive(Debug, Clone, Copy)]
pub struct Path {
    pub rate_mbps: u64,
    pub delay_ms: u64,
    /// Loss of data packets, 0 to 1.
    pub loss: f64,
    /// Length of the queue.
    pub queue_pkts: u32,
}

/// Two hosts and the paths between them.
#[derive(Debug)]
pub struct Testbed {
    pub client: Namespace,
    pub server: Namespace,
    paths: usize,
    _emulator: Emulator,
}

/// Both ends of a connection.
#[derive(Debug)]
pub struct Connection {
    pub client: TcpStream,
    pub server: TcpStream,
}

/// Why this machine cannot have a testbed, if it cannot.
pub fn missing() -> Option<String> {
    let probe = Namespace::new("probe").and_then(|namespace| namespace.tun("probe", 1500, 10));
    probe.err().map(|error| error.to_string())
}

impl Testbed {
    /// Two hosts with these paths between them, each path over a network interface of its own.
    pub fn new(paths: &[Path]) -> Self {
        let host = |name| Namespace::new(name).expect("a network namespace");
        let (client, server) = (host("client"), host("server"));
        let (mut ports, mut links) = (Vec::new(), Vec::new());
        for (index, path) in paths.iter().enumerate() {
            ports.extend([end(&client, index, 1), end(&server, index, 2)]);
            let data = Loss::Bernoulli { p: path.loss };
            links.push(link("data", index, (2 * index, 2 * index + 1), path, data));
            links.push(link(
                "ack",
                index,
                (2 * index + 1, 2 * index),
                path,
                Loss::None,
            ));
        }
        client
            .sysctl("net.mptcp.pm_type", 1)
            .expect("the user-space path manager");
        let limits = Limits {
            subflows: 8,
            add_addr_accepted: 0,
        };
        let manager = PathManager::new(&server).expect("a path manager");
        manager.set_limits(limits).expect("limits");
        let setup = Setup {
            clock: Clock::starting_now(),
            ports,
            links,
            pairs: Vec::new(),
            options: Options::default(),
        };
        Self {
            client,
            server,
            paths: paths.len(),
            _emulator: start(setup).expect("an emulator"),
        }
    }

    /// An MPTCP connection from the client to `port` of the server with one subflow per path, under a congestion control.
    /// One byte has been sent over it.
    pub fn connect(&self, port: u16, congestion: &str) -> Connection {
        let options = socket::Options {
            congestion: Some(congestion.to_owned()),
            reset_on_close: true,
            ..socket::Options::default()
        };
        let anywhere = SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, port);
        let listen = || socket::listen(Transport::Mptcp, anywhere, &options);
        let listener = self
            .server
            .run(listen)
            .expect("the server")
            .expect("a listener");
        let accepting =
            thread::spawn(move || listener.accept().map(|(stream, _)| (stream, listener)));
        let (source, target) = (
            SocketAddrV4::new(address(0, 1), 0),
            SocketAddrV4::new(address(0, 2), port),
        );
        let connect = || socket::connect(Transport::Mptcp, source, target, &options, PATIENCE);
        let mut client = self
            .client
            .run(connect)
            .expect("the client")
            .expect("a connection");
        let accepted = accepting.join().expect("the accepting thread");
        // Joins need the listener.
        let (mut server, _listener) = accepted.expect("an accepted connection");
        // The server accepts joins once it has seen data of the first subflow.
        client.write_all(b"?").expect("a first byte");
        server.read_exact(&mut [0]).expect("the first byte");
        for path in 1..self.paths {
            self.join(&client, &server, path, port);
        }
        Connection { client, server }
    }

    fn join(&self, client: &TcpStream, server: &TcpStream, path: usize, port: u16) {
        let manager = PathManager::new(&self.client).expect("a path manager");
        let token = mptcp::info(client).expect("MPTCP").token;
        let id = u8::try_from(path).expect("few paths");
        let local = LocalAddress {
            ip: address(path, 1),
            id,
            ifindex: None,
            backup: false,
        };
        let begin = Instant::now();
        // The server lists a subflow once its handshake is over; until then the handshake needs the listener.
        let joined = || mptcp::full_info(server).is_ok_and(|info| info.subflows.len() > path);
        let remote = SocketAddrV4::new(address(path, 2), port);
        let mut created = Err(None);
        while !joined() {
            // ENOTCONN until the peer has acknowledged the first byte.
            if created.is_err() {
                created = manager.subflow_create(token, local, remote).map_err(Some);
            }
            assert!(
                begin.elapsed() < PATIENCE,
                "subflow {path} did not join: {created:?}"
            );
            thread::sleep(Duration::from_millis(10));
        }
    }
}

/// Address of an end (1: client, 2: server) of a path.
pub fn address(path: usize, end: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 8, u8::try_from(path + 1).expect("few paths"), end)
}

fn end(namespace: &Namespace, path: usize, end: u8) -> Port {
    let tun = namespace
        .tun(&format!("p{path}"), 1500, 5000)
        .expect("a TUN device");
    namespace
        .add_address(LOOPBACK_IFINDEX, address(path, end), 32)
        .expect("an address");
    let route = Route {
        source: Some(address(path, end)),
        ..Route::host(address(path, 3 - end), tun.ifindex)
    };
    namespace.replace_route(&route).expect("a route");
    Port {
        name: format!("{path}.{end}"),
        fd: tun.fd,
    }
}

fn link(
    name: &str,
    index: usize,
    (from, to): (usize, usize),
    path: &Path,
    loss: Loss,
) -> LinkSetup {
    LinkSetup {
        name: format!("{name}{index}"),
        from: Some(from),
        to: Some(to),
        config: LinkConfig {
            rate_bps: path.rate_mbps * 1_000_000,
            delay_ns: path.delay_ms * 1_000_000,
            overhead_bytes: 14,
            queue: QueueLimit::Packets(path.queue_pkts),
            aqm: Aqm::DropTail,
            ecn: false,
            loss,
            reorder: None,
            schedule: Vec::new(),
            trace: None,
        },
        rng: Rng::new(5, index as u32, "link", name),
    }
}
