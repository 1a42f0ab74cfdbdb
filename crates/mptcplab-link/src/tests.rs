//! Behaviour of whole links.

use super::*;

/// A packet with an identity.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Parcel {
    id: u32,
    flow: u32,
    bytes: u32,
    ecn: bool,
    ce: bool,
}

impl Packet for Parcel {
    fn ip_bytes(&self) -> u32 {
        self.bytes
    }
    fn is_ecn_capable(&self) -> bool {
        self.ecn
    }
    fn mark_ce(&mut self) {
        self.ce = true;
    }
    fn flow_hash(&self) -> u64 {
        u64::from(self.flow)
    }
}

const MS: u64 = 1_000_000;

fn parcel(id: u32, bytes: u32) -> Parcel {
    Parcel {
        id,
        flow: 0,
        bytes,
        ecn: false,
        ce: false,
    }
}

/// 10 Mbit/s, 20 ms, Ethernet headers, 5 waiting packets: a full packet lasts 1,211,200 ns.
fn config() -> LinkConfig {
    LinkConfig {
        rate_bps: 10_000_000,
        delay_ns: 20 * MS,
        overhead_bytes: 14,
        queue: QueueLimit::Packets(5),
        aqm: Aqm::DropTail,
        ecn: false,
        loss: Loss::None,
        schedule: Vec::new(),
        trace: None,
    }
}

fn link(config: &LinkConfig) -> Link<Parcel> {
    Link::new(config, Rng::new(42, 0, "link", "test"))
}

/// Everything that comes out, with its time.
fn drain(link: &mut Link<Parcel>) -> Vec<(u64, u32)> {
    let mut out = Vec::new();
    while link.next_ns() < MAX_TIME_NS {
        let now = link.next_ns();
        out.extend(link.poll(now).map(|p| (now, p.id)));
    }
    out
}

#[test]
fn a_packet_takes_serialisation_plus_propagation() {
    let mut link = link(&config());
    assert_eq!(link.next_ns(), u64::MAX);
    assert_eq!(link.enqueue(3, parcel(1, 1500)), Verdict::Queued);
    assert_eq!(drain(&mut link), [(3 + 1_211_200 + 20 * MS, 1)]);
    assert_eq!((link.in_transit(), link.delivered_pkts()), (0, 1));
}
