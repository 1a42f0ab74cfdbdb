//! Two hosts with two paths between them, and a check whether this machine allows creating them.

#![allow(dead_code, unreachable_pub, reason = "each test file uses a part")]

use std::io::{self, Write};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpListener, TcpStream};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::{Duration, Instant};

use libc::EPERM;
use mptcplab_net::diag::TcpSocket;
use mptcplab_net::mptcp::{Limits, LocalAddress, PathManager};
use mptcplab_net::route::{Metrics, Route};
use mptcplab_net::socket::{self, Options, Transport};
use mptcplab_net::{LOOPBACK_IFINDEX, Namespace, userns};

/// Timeout of all waits. It is far longer than a busy machine needs, because no test checks speed.
pub const PATIENCE: Duration = Duration::from_secs(20);
pub const PORT: u16 = 5201;

/// One subflow of the tests: its number, its addresses, its path (0 or 1).
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    pub id: u8,
    pub local: Ipv4Addr,
    pub remote: Ipv4Addr,
    pub path: usize,
    pub backup: bool,
}

/// The first begins the connection; the second and third share a path; the last is a backup.
pub const PLANS: [Plan; 4] = [
    Plan {
        id: 0,
        local: Ipv4Addr::new(10, 1, 0, 1),
        remote: Ipv4Addr::new(10, 2, 0, 21),
        path: 0,
        backup: false,
    },
    Plan {
        id: 11,
        local: Ipv4Addr::new(10, 1, 0, 2),
        remote: Ipv4Addr::new(10, 2, 0, 22),
        path: 1,
        backup: false,
    },
    Plan {
        id: 12,
        local: Ipv4Addr::new(10, 1, 0, 3),
        remote: Ipv4Addr::new(10, 2, 0, 23),
        path: 1,
        backup: false,
    },
    Plan {
        id: 13,
        local: Ipv4Addr::new(10, 1, 0, 4),
        remote: Ipv4Addr::new(10, 2, 0, 24),
        path: 0,
        backup: true,
    },
];

/// The MTUs of the paths. They differ, so that a route over the wrong path shows.
pub const MTU_BYTES: [u32; 2] = [1500, 1400];

/// Whether tests can run here. If not, prints why `test` is skipped.
pub fn can_run(test: &str) -> bool {
    match Namespace::new("probe") {
        Ok(_) => true,
        Err(error) => {
            skipped(test, &format!("{error}; {}", error.hint().unwrap_or("")));
            false
        }
    }
}

/// Whether the running kernel is of this version or a later one.
pub fn kernel_is_at_least(major: u32, minor: u32) -> bool {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    let mut numbers = release
        .split(['.', '-'])
        .map(|part| part.parse::<u32>().unwrap_or(0));
    (numbers.next().unwrap(), numbers.next().unwrap()) >= (major, minor)
}

/// Prints that a test is skipped. It bypasses the test harness, which hides the output of passing tests.
pub fn skipped(test: &str, reason: &str) {
    let line = format!("SKIPPED {test}: {reason}\n");
    io::stderr().write_all(line.as_bytes()).unwrap();
}

/// Two hosts with a veth pair per path and all addresses and routes of [`PLANS`].
pub struct Hosts {
    pub client: Namespace,
    pub server: Namespace,
    /// The client's device of each path.
    pub client_devices: [u32; 2],
    pub server_devices: [u32; 2],
}

impl Hosts {
    pub fn new() -> Self {
        let (client, server) = (
            Namespace::new("client").unwrap(),
            Namespace::new("server").unwrap(),
        );
        let pairs = [0, 1].map(|path| {
            client
                .veth(
                    &format!("c{path}"),
                    &server,
                    &format!("s{path}"),
                    MTU_BYTES[path],
                )
                .unwrap()
        });
        let hosts = Self {
            client,
            server,
            client_devices: pairs.map(|pair| pair.0),
            server_devices: pairs.map(|pair| pair.1),
        };
        for plan in PLANS {
            hosts
                .client
                .add_address(LOOPBACK_IFINDEX, plan.local, 32)
                .unwrap();
            hosts
                .server
                .add_address(LOOPBACK_IFINDEX, plan.remote, 32)
                .unwrap();
            let forth = Route {
                source: Some(plan.local),
                metrics: Metrics {
                    initcwnd_pkts: Some(4 + u32::from(plan.id)),
                    ..Metrics::default()
                },
                ..Route::host(plan.remote, hosts.client_devices[plan.path])
            };
            hosts.client.add_route(&forth).unwrap();
            hosts
                .server
                .add_route(&Route::host(plan.local, hosts.server_devices[plan.path]))
                .unwrap();
        }
        hosts.client.sysctl("net.mptcp.pm_type", 1).unwrap();
        let limits = Limits {
            subflows: 7,
            add_addr_accepted: 3,
        };
        PathManager::new(&hosts.server)
            .unwrap()
            .set_limits(limits)
            .unwrap();
        hosts
    }

    /// A connection of the first plan: the client's end, the server's end, and the listener that the joins need.
    pub fn connect(&self, congestion: &str) -> Connection {
        let options = options(congestion);
        let listener = self
            .server
            .run(|| {
                socket::listen(
                    Transport::Mptcp,
                    SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, PORT),
                    &options,
                )
            })
            .unwrap()
            .unwrap();
        let client = self
            .client
            .run(|| {
                socket::connect(
                    Transport::Mptcp,
                    source(PLANS[0]),
                    target(PLANS[0]),
                    &options,
                    PATIENCE,
                )
            })
            .unwrap()
            .unwrap();
        let (server, _) = listener.accept().unwrap();
        for stream in [&client, &server] {
            stream.set_read_timeout(Some(PATIENCE)).unwrap();
            stream.set_write_timeout(Some(PATIENCE)).unwrap();
        }
        Connection {
            client,
            server,
            listener,
        }
    }
}

pub struct Connection {
    pub client: TcpStream,
    pub server: TcpStream,
    pub listener: TcpListener,
}

pub fn options(congestion: &str) -> Options {
    Options {
        congestion: Some(congestion.into()),
        no_delay: true,
        reset_on_close: true,
        ..Options::default()
    }
}

pub fn source(plan: Plan) -> SocketAddrV4 {
    SocketAddrV4::new(plan.local, 0)
}

pub fn target(plan: Plan) -> SocketAddrV4 {
    SocketAddrV4::new(plan.remote, PORT)
}

pub fn local_address(plan: Plan) -> LocalAddress {
    LocalAddress {
        ip: plan.local,
        id: plan.id,
        ifindex: None,
        backup: plan.backup,
    }
}

/// Calls `question` until it returns a value.
pub fn wait_for<T>(what: &str, mut question: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(answer) = question() {
            return answer;
        }
        assert!(
            Instant::now() < deadline,
            "waited {PATIENCE:?} in vain for {what}"
        );
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The subflow sockets of a namespace towards or from `peer`.
pub fn socket_from(sockets: &[TcpSocket], local: Ipv4Addr) -> Option<&TcpSocket> {
    sockets
        .iter()
        .find(|socket| socket.local.ip() == local && socket.remote.port() != 0)
}

pub fn v4(address: SocketAddr) -> SocketAddrV4 {
    match address {
        SocketAddr::V4(address) => address,
        SocketAddr::V6(address) => panic!("{address} is not IPv4"),
    }
}

/// Set in the process that runs a test file's tests once more inside a user namespace.
const IN_USER_NAMESPACE: &str = "MPTCPLAB_NET_TEST_IN_USER_NAMESPACE";

/// Runs all tests of this file once more, in a process that is root in a user namespace of its own and has no privileges
/// outside it. `caller` is the calling test.
pub fn run_all_in_a_user_namespace(caller: &str) {
    if std::env::var_os(IN_USER_NAMESPACE).is_some() {
        assert_powerless_over_the_host();
        return;
    }
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.arg("--test-threads=2").env(IN_USER_NAMESPACE, "1");
    // SAFETY: between fork and exec the child only enters the namespace and writes three files of /proc. It allocates,
    // which glibc allows there although POSIX does not. It uses nothing else that belongs to other threads.
    unsafe {
        command.pre_exec(|| userns::enter().map_err(|error| io::Error::other(error.to_string())))
    };
    let output = match command.output() {
        Ok(output) => output,
        // The machine's policy forbids it, which a test cannot change.
        Err(error) => {
            skipped(caller, &format!("no user namespace here: {error}"));
            return;
        }
    };
    let text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}\n{errors}");
    assert!(
        text.contains(&format!("test {caller} ... ok")),
        "the tests ran there: {text}"
    );
    for line in errors
        .lines()
        .filter_map(|line| line.strip_prefix("SKIPPED "))
    {
        skipped("in a user namespace", line);
    }
}

fn assert_powerless_over_the_host() {
    let map = std::fs::read_to_string("/proc/self/uid_map").unwrap();
    assert_eq!(
        map.split_whitespace().last(),
        Some("1"),
        "only one user is mapped: {map}"
    );
    let host = Namespace::current().unwrap();
    let error = host.set_link_up(LOOPBACK_IFINDEX, true).unwrap_err();
    assert_eq!(error.errno(), Some(EPERM), "{error}");
}
