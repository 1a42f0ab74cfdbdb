//! Behaviour of whole links.

use super::*;

mod aqm;
mod equivalence;
mod lookahead;
mod reorder;
mod schedule;
mod timing;
mod trace;

/// A packet with an identity.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Parcel {
    pub(crate) id: u32,
    pub(crate) flow: u32,
    pub(crate) bytes: u32,
    pub(crate) ecn: bool,
    pub(crate) ce: bool,
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

pub(crate) fn parcel(id: u32, bytes: u32) -> Parcel {
    Parcel {
        id,
        flow: 0,
        bytes,
        ecn: false,
        ce: false,
    }
}

/// 10 Mbit/s, 20 ms, Ethernet headers, 5 waiting packets: a full packet lasts 1,211,200 ns.
pub(crate) fn config() -> LinkConfig {
    LinkConfig {
        rate_bps: 10_000_000,
        delay_ns: 20 * MS,
        overhead_bytes: 14,
        queue: QueueLimit::Packets(5),
        aqm: Aqm::DropTail,
        ecn: false,
        loss: Loss::None,
        reorder: None,
        schedule: Vec::new(),
        trace: None,
    }
}

fn link(config: &LinkConfig) -> Link<Parcel> {
    Link::new(config, Rng::new(42, 0, "link", "test"))
}

/// Everything that comes out until and at `until`, with its time.
fn run_until(link: &mut Link<Parcel>, until: u64) -> Vec<(u64, Parcel)> {
    let mut out = Vec::new();
    while link.next_ns() <= until {
        let now = link.next_ns();
        out.extend(link.poll(now).map(|parcel| (now, parcel)));
    }
    out
}

/// Everything that comes out, as (time, id).
fn drain(link: &mut Link<Parcel>) -> Vec<(u64, u32)> {
    let out = run_until(link, MAX_TIME_NS);
    out.into_iter()
        .map(|(now, parcel)| (now, parcel.id))
        .collect()
}

/// Enqueue full-size packets with these ids at `now`; the verdicts.
fn burst(link: &mut Link<Parcel>, now: u64, ids: std::ops::Range<u32>) -> Vec<Verdict> {
    ids.map(|id| link.enqueue(now, parcel(id, 1500))).collect()
}
