//! In its steady state the emulator allocates nothing for a packet. An allocation can cause a page fault, or wait for a
//! lock that a thread without real-time priority holds.
//!
//! This file has one test only, because it counts the allocations of the whole process.

use mptcplab_emulator::{Clock, LinkSetup, Options, Pair, Port, Setup, start};
use mptcplab_model::link::rng::Rng;
use mptcplab_model::link::{Aqm, LinkConfig, Loss, QueueLimit};
use nix::sys::socket::{AddressFamily, SockFlag, SockType, socketpair};
use std::alloc::{GlobalAlloc, Layout, System};
use std::net::Ipv4Addr;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering};

#[allow(dead_code, unreachable_pub)]
#[path = "common/packet.rs"]
mod packet;

/// The system's allocator, counting.
struct Counting;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

// SAFETY: every call goes to the system's allocator as it is.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::SeqCst);
        // SAFETY: the caller keeps the contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the contract, and all memory came from there.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const ADDRESSES: [Ipv4Addr; 2] = [Ipv4Addr::new(10, 7, 1, 1), Ipv4Addr::new(10, 7, 2, 2)];

/// Links of both machines, with losses, drops and marks.
fn configs() -> [LinkConfig; 3] {
    let base = LinkConfig {
        rate_bps: 80_000_000,
        delay_ns: 2_000_000,
        overhead_bytes: 14,
        queue: QueueLimit::Packets(5),
        aqm: Aqm::DropTail,
        ecn: true,
        loss: Loss::Bernoulli { p: 0.05 },
        reorder: None,
        schedule: Vec::new(),
        trace: None,
    };
    let codel = LinkConfig {
        rate_bps: 30_000_000,
        queue: QueueLimit::Packets(300),
        aqm: Aqm::Codel {
            target_ns: 1_000_000,
            interval_ns: 5_000_000,
        },
        ..base.clone()
    };
    let fq_codel = LinkConfig {
        rate_bps: 20_000_000,
        aqm: Aqm::FqCodel {
            target_ns: 1_000_000,
            interval_ns: 5_000_000,
            flows: 16,
            quantum_bytes: 1514,
        },
        ..codel.clone()
    };
    [base, codel, fq_codel]
}

#[test]
fn packets_are_moved_without_an_allocation_each() {
    let pair = || {
        let kind = SockType::SeqPacket;
        socketpair(AddressFamily::Unix, kind, None, SockFlag::SOCK_CLOEXEC)
            .expect("a pair of sockets")
    };
    let (mut ports, mut hosts, mut links) = (Vec::new(), Vec::new(), Vec::new());
    for (index, config) in configs().into_iter().enumerate() {
        let ((inner_from, from), (inner_to, to)) = (pair(), pair());
        for fd in [inner_from, inner_to] {
            let name = format!("port {}", ports.len());
            ports.push(Port { name, fd });
        }
        let name = format!("link {index}");
        links.push(LinkSetup {
            rng: Rng::new(9, 0, "link", &name),
            name,
            from: Some(2 * index),
            to: Some(2 * index + 1),
            config,
        });
        hosts.push((from, to));
    }
    let emulator = start(Setup {
        clock: Clock::starting_now(),
        ports,
        links,
        pairs: vec![Pair {
            source: ADDRESSES[0].into(),
            destination: ADDRESSES[1].into(),
            links: vec![0],
        }],
        options: Options {
            priority: None,
            ..Options::default()
        },
    })
    .expect("an emulator");
    let packets = [1500, 80, 700].map(|bytes| {
        let datagram = packet::udp(9, 10, &vec![0; bytes - 28]);
        packet::ipv4(
            ADDRESSES[0],
            ADDRESSES[1],
            packet::UDP,
            packet::ECT0,
            &datagram,
        )
    });
    // Queues and rings grow to what they need. The sockets take what nobody reads until they are full, which makes the
    // writes fail from then on: as good as any for this.
    send(&hosts, &packets, 600);
    let before = ALLOCATIONS.load(Ordering::SeqCst);
    send(&hosts, &packets, 1500);
    let allocations = ALLOCATIONS.load(Ordering::SeqCst) - before;
    let sample = emulator.sample().expect("it runs");
    let report = emulator.stop().expect("no error");
    assert!(
        sample.links.iter().all(|link| link.arrived_pkts > 4000),
        "{sample:?}"
    );
    assert!(
        report
            .links
            .iter()
            .all(|link| link.dropped_random_pkts > 100),
        "{report:?}"
    );
    assert!(report.links[0].dropped_queue_pkts > 100, "{report:?}");
    // A queue that becomes longer than ever before doubles its memory; that ends.
    assert!(
        allocations < 20,
        "{allocations} for {} packets",
        3 * 1500 * packets.len()
    );
}

/// So many rounds of all packets on every link. `write` waits while the emulator is behind.
fn send(hosts: &[(OwnedFd, OwnedFd)], packets: &[Vec<u8>], rounds: u32) {
    for _ in 0..rounds {
        for packet in packets {
            for (from, _) in hosts {
                assert_eq!(nix::unistd::write(from, packet), Ok(packet.len()));
            }
        }
    }
}
