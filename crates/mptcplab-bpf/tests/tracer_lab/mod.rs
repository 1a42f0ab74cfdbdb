//! Two hosts connected by paths of TUN devices, with a thread in between that delays, drops, reorders and marks packets.

#![allow(dead_code, unreachable_pub, reason = "each test file uses a part")]

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddrV4, TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use mptcplab_bpf::tracer::{Sample, SocketKey, Tracer, TracerConfig, TracerError};
use mptcplab_net::mptcp::{Limits, PathManager};
use mptcplab_net::route::Route;
use mptcplab_net::socket::{self, Options, Transport};
use mptcplab_net::{LOOPBACK_IFINDEX, Namespace, TcpInfo};

/// Timeout of all waits. It is far longer than a busy machine needs, because no test checks speed.
pub const PATIENCE: Duration = Duration::from_secs(30);
pub const PORT: u16 = 5301;

/// The treatment of a packet.
pub enum Fate {
    Pass,
    Drop,
    /// Deliver it this much later, so that others overtake it.
    Hold(Duration),
}

/// A packet in transit.
pub struct Packet<'a> {
    pub path: usize,
    /// From the client to the server.
    pub forth: bool,
    /// Packets with payload in this direction of this path so far, this one included if it has some.
    pub data: u64,
    pub bytes: &'a mut [u8],
}

impl Packet<'_> {
    fn tcp(&self) -> &[u8] {
        &self.bytes[usize::from(self.bytes[0] & 15) * 4..]
    }

    pub fn has_payload(&self) -> bool {
        let tcp = self.tcp();
        tcp.len() > usize::from(tcp[12] >> 4) * 4
    }

    pub fn is_syn(&self) -> bool {
        self.tcp()[13] & 2 != 0
    }

    /// Acknowledged sequence number.
    pub fn acknowledges(&self) -> Option<u32> {
        let tcp = self.tcp();
        let flags = tcp[13];
        (flags & 0x10 != 0).then(|| u32::from_be_bytes([tcp[8], tcp[9], tcp[10], tcp[11]]))
    }

    pub fn is_ecn_capable(&self) -> bool {
        self.bytes[1] & 3 != 0
    }

    /// "Congestion experienced", with the checksum changed to match (RFC 1624).
    pub fn mark(&mut self) {
        let old = u16::from_be_bytes([self.bytes[0], self.bytes[1]]);
        self.bytes[1] |= 3;
        let new = u16::from_be_bytes([self.bytes[0], self.bytes[1]]);
        let sum = u16::from_be_bytes([self.bytes[10], self.bytes[11]]);
        let mut total = u32::from(!sum) + u32::from(!old) + u32::from(new);
        total = (total & 0xffff) + (total >> 16);
        total = (total & 0xffff) + (total >> 16);
        let bytes = (!(total as u16)).to_be_bytes();
        self.bytes[10..12].copy_from_slice(&bytes);
    }
}

pub type Policy = Box<dyn FnMut(&mut Packet<'_>) -> Fate + Send>;

/// Every packet passes.
pub fn clean() -> Policy {
    Box::new(|_| Fate::Pass)
}

/// The counters of the thread between the hosts.
#[derive(Debug, Default)]
pub struct Seen {
    /// ACKs towards the client that acknowledged something new.
    pub advancing_acks: AtomicU64,
    /// Packets with payload towards the server, retransmissions included.
    pub data_forth: AtomicU64,
    /// Packets in transit.
    pub underway: AtomicUsize,
}

/// Two hosts and their paths.
pub struct Lab {
    pub client: Namespace,
    pub server: Namespace,
    pub seen: Arc<Seen>,
    stop: Arc<AtomicBool>,
    wire: Option<JoinHandle<()>>,
}

pub fn client_address(path: usize) -> Ipv4Addr {
    Ipv4Addr::new(10, 51, path as u8, 1)
}

pub fn server_address(path: usize) -> Ipv4Addr {
    Ipv4Addr::new(10, 62, path as u8, 2)
}

impl Lab {
    /// One path per delay (one way, both directions the same).
    pub fn new(delays: &[Duration], policy: Policy) -> Self {
        let client = Namespace::new("client").unwrap();
        let server = Namespace::new("server").unwrap();
        let mut ends = Vec::new();
        for (path, &delay) in delays.iter().enumerate() {
            let near = client.tun(&format!("c{path}"), 1500, 5000).unwrap();
            let far = server.tun(&format!("s{path}"), 1500, 5000).unwrap();
            join(
                &client,
                near.ifindex,
                client_address(path),
                server_address(path),
            );
            join(
                &server,
                far.ifindex,
                server_address(path),
                client_address(path),
            );
            ends.push((File::from(near.fd), File::from(far.fd), delay));
        }
        // Everything fits into the send buffer, so that no writer holds the socket while ACKs arrive. Otherwise the
        // kernel would queue and merge some of them, and fewer ACKs would be processed than were sent.
        for host in [&client, &server] {
            host.sysctl("net.ipv4.tcp_wmem", "4096 16000000 32000000")
                .unwrap();
        }
        client.sysctl("net.mptcp.pm_type", 1).unwrap();
        let limits = Limits {
            subflows: 8,
            add_addr_accepted: 0,
        };
        PathManager::new(&server)
            .unwrap()
            .set_limits(limits)
            .unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let seen = Arc::new(Seen::default());
        let wire = Wire {
            ends,
            policy,
            seen: Arc::clone(&seen),
            stop: Arc::clone(&stop),
            data: BTreeMap::new(),
            acknowledged: BTreeMap::new(),
            waiting: BTreeMap::new(),
            order: 0,
        };
        let wire = Some(thread::spawn(move || wire.run()));
        Self {
            client,
            server,
            seen,
            stop,
            wire,
        }
    }

    pub fn cookies(&self) -> [u64; 2] {
        [self.client.cookie(), self.server.cookie()]
    }

    /// A connection over the first path: the client's end, the server's, and the listener.
    pub fn connect(&self, transport: Transport, congestion: &str) -> Connection {
        let options = Options {
            congestion: Some(congestion.into()),
            no_delay: true,
            reset_on_close: true,
            ..Options::default()
        };
        let any = SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, PORT);
        let listener = self
            .server
            .run(|| socket::listen(transport, any, &options))
            .unwrap()
            .unwrap();
        let source = SocketAddrV4::new(client_address(0), 0);
        let target = SocketAddrV4::new(server_address(0), PORT);
        let client = self
            .client
            .run(|| socket::connect(transport, source, target, &options, PATIENCE))
            .unwrap()
            .unwrap();
        let (server, _) = listener.accept().unwrap();
        Connection {
            client,
            server,
            listener,
        }
    }

    /// The kernel's TCP_INFO of the client's subflow over `path`.
    pub fn info(&self, path: usize) -> TcpInfo {
        let local = client_address(path);
        let sockets = self.client.tcp_sockets().unwrap();
        let socket = sockets
            .iter()
            .find(|s| s.local.ip() == local && s.remote.port() == PORT);
        socket
            .expect("the client's socket")
            .tcp
            .expect("its tcp_info")
    }

    /// A statistic of the client's namespace, by its name in /proc/net/netstat.
    pub fn statistic(&self, name: &str) -> u64 {
        let text = self
            .client
            .run(|| std::fs::read_to_string("/proc/thread-self/net/netstat"))
            .unwrap()
            .unwrap();
        let lines: Vec<&str> = text
            .lines()
            .filter(|line| line.starts_with("TcpExt:"))
            .collect();
        let index = lines[0].split(' ').position(|n| n == name);
        let value = lines[1]
            .split(' ')
            .nth(index.unwrap_or_else(|| panic!("no statistic {name}")));
        value.unwrap().parse().unwrap()
    }

    /// Waits until no packet is in transit, including late duplicates and the packets that they cause.
    pub fn settle(&self, path: usize) -> TcpInfo {
        self.drain(path);
        let mut quiet = 0;
        wait_for("quiet on the wire", || {
            let busy = self.seen.underway.load(Ordering::Relaxed) > 0;
            quiet = if busy { 0 } else { quiet + 1 };
            (quiet == 20).then_some(())
        });
        self.drain(path)
    }

    /// Waits until everything that the client sent is acknowledged.
    pub fn drain(&self, path: usize) -> TcpInfo {
        wait_for("the last acknowledgement", || {
            let info = self.info(path);
            (info.unacked_pkts == 0 && info.notsent_bytes == 0).then_some(info)
        })
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let ended = self.wire.take().map(JoinHandle::join);
        assert!(
            !matches!(ended, Some(Err(_))) || thread::panicking(),
            "the wire's thread failed"
        );
    }
}

fn join(host: &Namespace, device: u32, own: Ipv4Addr, peer: Ipv4Addr) {
    host.add_address(LOOPBACK_IFINDEX, own, 32).unwrap();
    let route = Route {
        source: Some(own),
        ..Route::host(peer, device)
    };
    host.add_route(&route).unwrap();
}

pub struct Connection {
    pub client: TcpStream,
    pub server: TcpStream,
    pub listener: TcpListener,
}

impl Connection {
    /// Sends this many bytes from the client to the server, and compares what arrives.
    pub fn transfer(&mut self, bytes: usize) {
        thread::scope(|scope| {
            let mut server = self.server.try_clone().unwrap();
            server.set_read_timeout(Some(PATIENCE)).unwrap();
            let reader = scope.spawn(move || {
                let mut buffer = vec![0; 1 << 16];
                let mut at = 0;
                while at < bytes {
                    let n = server.read(&mut buffer).expect("the transfer stalled");
                    assert_ne!(n, 0, "the connection ended after {at} of {bytes} bytes");
                    for (i, &b) in buffer[..n].iter().enumerate() {
                        assert_eq!(b, pattern(at + i), "byte {}", at + i);
                    }
                    at += n;
                }
            });
            let data: Vec<u8> = (0..bytes).map(pattern).collect();
            self.client.write_all(&data).unwrap();
            reader.join().unwrap();
        });
    }

    /// The client's socket as the tracer names it, if it goes over the first path.
    pub fn key(&self, lab: &Lab) -> SocketKey {
        let std::net::SocketAddr::V4(local) = self.client.local_addr().unwrap() else {
            panic!("not IPv4");
        };
        SocketKey {
            cookie: lab.client.cookie(),
            local,
            remote: SocketAddrV4::new(server_address(0), PORT),
        }
    }
}

fn pattern(at: usize) -> u8 {
    (at % 251) as u8
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
        thread::sleep(Duration::from_millis(5));
    }
}

struct Wire {
    ends: Vec<(File, File, Duration)>,
    policy: Policy,
    seen: Arc<Seen>,
    stop: Arc<AtomicBool>,
    data: BTreeMap<(usize, bool), u64>,
    acknowledged: BTreeMap<usize, u32>,
    /// By time of arrival and order: path, direction, bytes.
    waiting: BTreeMap<(Instant, u64), (usize, bool, Vec<u8>)>,
    order: u64,
}

impl Wire {
    fn run(mut self) {
        let mut buffer = vec![0; 2000];
        while !self.stop.load(Ordering::Relaxed) {
            self.wait();
            for path in 0..self.ends.len() {
                for forth in [true, false] {
                    while let Some(bytes) = self.read(path, forth, &mut buffer) {
                        self.accept(path, forth, &mut buffer[..bytes]);
                    }
                }
            }
            self.release();
            self.seen
                .underway
                .store(self.waiting.len(), Ordering::Relaxed);
        }
    }

    fn wait(&self) {
        let mut fds: Vec<libc::pollfd> = self
            .ends
            .iter()
            .flat_map(|(near, far, _)| [near.as_raw_fd(), far.as_raw_fd()])
            .map(|fd| libc::pollfd {
                fd,
                events: libc::POLLIN,
                revents: 0,
            })
            .collect();
        let timeout = if self.waiting.is_empty() { 20 } else { 1 };
        // SAFETY: `fds` is a valid array of its length.
        unsafe { libc::poll(fds.as_mut_ptr(), fds.len() as libc::nfds_t, timeout) };
    }

    fn read(&self, path: usize, forth: bool, buffer: &mut [u8]) -> Option<usize> {
        let (near, far, _) = &self.ends[path];
        let mut end = if forth { near } else { far };
        match end.read(buffer) {
            Ok(n) => Some(n),
            Err(e) if e.kind() == ErrorKind::WouldBlock => None,
            Err(e) => panic!("read the TUN of path {path}: {e}"),
        }
    }

    fn accept(&mut self, path: usize, forth: bool, bytes: &mut [u8]) {
        let data = self.data.entry((path, forth)).or_default();
        let mut packet = Packet {
            path,
            forth,
            data: *data,
            bytes,
        };
        if packet.has_payload() {
            *data += 1;
            packet.data = *data;
            if forth {
                self.seen.data_forth.fetch_add(1, Ordering::Relaxed);
            }
        }
        let later = match (self.policy)(&mut packet) {
            Fate::Drop => return,
            Fate::Pass => Duration::ZERO,
            Fate::Hold(time) => time,
        };
        if let Some(ack) = packet.acknowledges().filter(|_| !forth) {
            self.note_ack(path, ack);
        }
        self.order += 1;
        let at = Instant::now() + self.ends[path].2 + later;
        self.waiting
            .insert((at, self.order), (path, forth, bytes.to_vec()));
    }

    /// The first one is the SYN/ACK.
    fn note_ack(&mut self, path: usize, ack: u32) {
        let highest = self.acknowledged.entry(path).or_insert(ack);
        if (ack.wrapping_sub(*highest) as i32) > 0 {
            *highest = ack;
            self.seen.advancing_acks.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn release(&mut self) {
        while let Some(entry) = self.waiting.first_entry() {
            if entry.key().0 > Instant::now() {
                return;
            }
            let (path, forth, bytes) = entry.remove();
            let (near, far, _) = &self.ends[path];
            let mut end = if forth { far } else { near };
            end.write_all(&bytes)
                .unwrap_or_else(|e| panic!("write to path {path}: {e}"));
        }
    }
}

/// Starts the tracer. If this machine does not allow loading eBPF, prints why the test is skipped. Other errors fail the
/// test.
pub fn tracer(test: &str, config: &TracerConfig<'_>) -> Option<Tracer> {
    match Tracer::start(config) {
        Ok(tracer) => Some(tracer),
        Err(TracerError::Load(error)) if !mptcplab_bpf::system::may_load() => {
            eprintln!("SKIPPED {test}: {error}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// Whether this machine allows creating namespaces and loading eBPF. If not, prints why the test is skipped.
pub fn can_run(test: &str) -> bool {
    if let Err(error) = mptcplab_bpf::system::check() {
        eprintln!("SKIPPED {test}: {error}");
        return false;
    }
    let tun = Namespace::new("probe").and_then(|host| host.tun("probe", 1500, 10));
    if let Err(error) = &tun {
        eprintln!("SKIPPED {test}: {error}");
    }
    tun.is_ok()
}

/// All records that are in the ring.
pub fn records(tracer: &mut Tracer) -> Vec<Sample> {
    let mut all = Vec::new();
    tracer.poll(&mut |sample| all.push(*sample));
    all
}
