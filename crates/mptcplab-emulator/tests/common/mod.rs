//! An emulator between Unix sockets, which behave like TUN devices and need no privileges.
#![allow(dead_code, unreachable_pub, missing_docs)]

pub mod packet;
pub mod replay;

use mptcplab_emulator::{Clock, LinkSetup, Options, Pair, Port, Setup};
use mptcplab_model::link::rng::Rng;
use mptcplab_model::link::{Aqm, LinkConfig, Loss, QueueLimit};
use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, Shutdown, SockFlag, SockType, setsockopt, shutdown, socketpair, sockopt,
};
use std::net::Ipv4Addr;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

pub const MS: u64 = 1_000_000;

/// A port and its outer end, which behaves as a host's network stack would: one packet per read and write, and whatever
/// comes is taken at once.
pub fn port(name: &str) -> (Port, Host) {
    let (port, outer) = unread_port(name);
    // A reader that does not run for a moment must not cost packets. What the kernel allows without privileges covers
    // some hundred of them.
    if setsockopt(&port.fd, sockopt::SndBufForce, &8_000_000).is_err() {
        setsockopt(&port.fd, sockopt::SndBuf, &8_000_000).expect("a larger buffer");
    }
    let outer = Arc::new(outer);
    let (sender, packets) = channel();
    let socket = Arc::clone(&outer);
    std::thread::spawn(move || take(&socket, &sender));
    let packets = Mutex::new(packets);
    (port, Host { outer, packets })
}

/// A port and an outer end that nobody reads.
pub fn unread_port(name: &str) -> (Port, OwnedFd) {
    let (inner, outer) = socketpair(
        AddressFamily::Unix,
        SockType::SeqPacket,
        None,
        SockFlag::SOCK_CLOEXEC,
    )
    .expect("a pair of sockets");
    let name = name.to_owned();
    (Port { name, fd: inner }, outer)
}

/// Until the emulator closes the port, or the host goes.
fn take(socket: &OwnedFd, packets: &Sender<Vec<u8>>) {
    let mut memory = vec![0; 70_000];
    while let Some(packet) = read(socket, &mut memory) {
        if packets.send(packet.to_vec()).is_err() {
            return;
        }
    }
}

/// The next packet; `None` if the other end is closed.
pub fn read<'a>(socket: &OwnedFd, memory: &'a mut [u8]) -> Option<&'a [u8]> {
    match nix::unistd::read(socket, memory) {
        // A reset tells that the other end closed without having read all that was sent to it.
        Ok(0) | Err(Errno::ECONNRESET) => None,
        Ok(bytes) => Some(&memory[..bytes]),
        Err(errno) => panic!("read: {errno}"),
    }
}

/// The outer end of a port. Dropping it closes it.
#[derive(Debug)]
pub struct Host {
    outer: Arc<OwnedFd>,
    packets: Mutex<Receiver<Vec<u8>>>,
}

impl Host {
    /// Send one packet; waits while the emulator has not read enough.
    pub fn send(&self, packet: &[u8]) {
        assert_eq!(nix::unistd::write(&*self.outer, packet), Ok(packet.len()));
    }

    /// Take no packet any more, without the emulator noticing before it writes one.
    pub fn close_for_reading(&self) {
        shutdown(self.outer.as_raw_fd(), Shutdown::Read).expect("an open socket");
    }

    /// The next packet; `None` if none comes for so many milliseconds, or the emulator has closed the port.
    pub fn receive(&self, patience_ms: u64) -> Option<Vec<u8>> {
        let packets = self.packets.lock().expect("no panic");
        packets
            .recv_timeout(Duration::from_millis(patience_ms))
            .ok()
    }

    /// Whether the emulator closes the port, or has closed it.
    pub fn is_closed(&self) -> bool {
        let packets = self.packets.lock().expect("no panic");
        packets.recv_timeout(Duration::from_secs(20)) == Err(RecvTimeoutError::Disconnected)
    }

    /// This many packets, in their order.
    pub fn receive_all(&self, count: usize) -> Vec<Vec<u8>> {
        let packets: Vec<_> = std::iter::from_fn(|| self.receive(10_000))
            .take(count)
            .collect();
        assert_eq!(packets.len(), count, "packets came");
        packets
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        // Also ends the thread, which holds the socket open. Fails if the emulator has closed its end.
        let _ = shutdown(self.outer.as_raw_fd(), Shutdown::Both);
    }
}

/// 50 Mbit/s, 3 ms, Ethernet headers, room for 1000 packets: loses nothing in these tests.
pub fn config() -> LinkConfig {
    LinkConfig {
        rate_bps: 50_000_000,
        delay_ns: 3 * MS,
        overhead_bytes: 14,
        queue: QueueLimit::Packets(1000),
        aqm: Aqm::DropTail,
        ecn: false,
        loss: Loss::None,
        reorder: None,
        schedule: Vec::new(),
        trace: None,
    }
}

/// The random stream of a link in these tests.
pub fn rng(name: &str) -> Rng {
    Rng::new(11, 3, "link", name)
}

/// Between two ports, or other links where there is none.
pub fn link(
    name: &str,
    from: impl Into<Option<usize>>,
    to: impl Into<Option<usize>>,
    config: LinkConfig,
) -> LinkSetup {
    LinkSetup {
        name: name.to_owned(),
        from: from.into(),
        to: to.into(),
        config,
        rng: rng(name),
    }
}

/// Normal scheduling, so that tests do not starve each other; everything is logged.
pub fn setup(ports: Vec<Port>, links: Vec<LinkSetup>, pairs: Vec<Pair>) -> Setup {
    Setup {
        clock: Clock::starting_now(),
        ports,
        links,
        pairs,
        options: Options {
            priority: None,
            log_entries: 1_000_000,
            ..Options::default()
        },
    }
}

/// Host number `host` on network number `net`.
pub fn address(net: u8, host: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 7, net, host)
}

/// A UDP packet of `bytes` bytes in flow `flow` with a serial number.
pub fn numbered(flow: u16, number: u32, bytes: usize, ecn: u8) -> Vec<u8> {
    let mut data = vec![0x5a; bytes - 28];
    data[..4].copy_from_slice(&number.to_be_bytes());
    let datagram = packet::udp(40_000 + flow, 9, &data);
    packet::ipv4(address(1, 1), address(2, 2), packet::UDP, ecn, &datagram)
}

/// The serial number of such a packet.
pub fn number(packet: &[u8]) -> u32 {
    u32::from_be_bytes(packet[28..32].try_into().expect("4 bytes"))
}
