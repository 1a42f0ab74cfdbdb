//! Cost of a packet-hop: one `enqueue` and one `poll` on a link in steady state, in nanoseconds.
//!
//! `cargo bench -p mptcplab-model`, or for instruction counts the program it names under `valgrind --tool=callgrind` with
//! the arguments `<case> <packets>`: the difference of two lengths, without start-up.
use mptcplab_model::link::{Aqm, Link, LinkConfig, Loss, Packet, QueueLimit, Verdict, rng::Rng};
use std::hint::black_box;
use std::time::Instant;

/// As large as the simulator's packet.
#[derive(Clone, Copy)]
struct Small {
    sequence: u64,
    flow: u64,
    bytes: u32,
    flags: u32,
}

impl Packet for Small {
    fn ip_bytes(&self) -> u32 {
        self.bytes
    }
    fn is_ecn_capable(&self) -> bool {
        self.flags & 1 != 0
    }
    fn mark_ce(&mut self) {
        self.flags |= 2;
    }
    fn flow_hash(&self) -> u64 {
        self.flow
    }
}

/// 100 Mbit/s, 10 ms, room for 167 packets: half full in steady state.
fn droptail() -> LinkConfig {
    LinkConfig {
        rate_bps: 100_000_000,
        delay_ns: 10_000_000,
        overhead_bytes: 14,
        queue: QueueLimit::Packets(167),
        aqm: Aqm::DropTail,
        ecn: false,
        loss: Loss::None,
        reorder: None,
        schedule: Vec::new(),
        trace: None,
    }
}

fn cases() -> Vec<(&'static str, LinkConfig)> {
    let codel = Aqm::Codel {
        target_ns: 20_000_000,
        interval_ns: 100_000_000,
    };
    let fq_codel = Aqm::FqCodel {
        target_ns: 20_000_000,
        interval_ns: 100_000_000,
        flows: 1024,
        quantum_bytes: 1514,
    };
    let red = Aqm::Red {
        min_pkts: 200.0,
        max_pkts: 400.0,
        max_p: 0.1,
        weight: 0.002,
    };
    vec![
        ("droptail", droptail()),
        (
            "droptail-near",
            LinkConfig {
                queue: QueueLimit::Packets(80),
                ..droptail()
            },
        ),
        (
            "loss",
            LinkConfig {
                loss: Loss::Bernoulli { p: 0.001 },
                ..droptail()
            },
        ),
        (
            "bytes",
            LinkConfig {
                queue: QueueLimit::Bytes(250_000),
                ..droptail()
            },
        ),
        (
            "red",
            LinkConfig {
                aqm: red,
                ..droptail()
            },
        ),
        (
            "codel",
            LinkConfig {
                aqm: codel,
                ..droptail()
            },
        ),
        (
            "fq_codel",
            LinkConfig {
                aqm: fq_codel,
                ..droptail()
            },
        ),
    ]
}

/// Keeps 160 packets on the link, about 80 of them waiting or in service: each delivery is answered by an arrival.
fn run(config: &LinkConfig, packets: u64) -> u64 {
    let mut link = Link::new(config, Rng::new(1, 0, "bench", "hop"));
    let packet = |sequence| Small {
        sequence,
        flow: sequence % 8,
        bytes: 1500,
        flags: 0,
    };
    for sequence in 0..160 {
        // Faster than the link, but all before the first delivery.
        let _ = black_box(link.enqueue(sequence * 60_000, packet(sequence)));
    }
    let mut sum = 0;
    let mut delivered = 0;
    while delivered < packets {
        let now = link.next_ns();
        if let Some(arrived) = link.poll(now) {
            delivered += 1;
            sum += arrived.sequence;
            // Lost packets are sent again at once, so that the load stays.
            while link.enqueue(now, packet(arrived.sequence + 160)) == Verdict::LostRandom {}
        }
    }
    sum
}

fn main() {
    let arguments: Vec<String> = std::env::args()
        .skip(1)
        .filter(|a| !a.starts_with("--"))
        .collect();
    let wanted = arguments.first();
    let packets = arguments
        .get(1)
        .and_then(|n| n.parse().ok())
        .unwrap_or(2_000_000);
    for (name, config) in cases() {
        if wanted.is_some_and(|wanted| wanted != name) {
            continue;
        }
        let start = Instant::now();
        black_box(run(&config, packets));
        let ns = start.elapsed().as_secs_f64() * 1e9 / packets as f64;
        println!("{name:14} {ns:6.2} ns per packet-hop");
    }
}
