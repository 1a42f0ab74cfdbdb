//! Estimates whether the emulator's thread can move the packets of a scenario in time.

use super::ways::mtu;
use super::{paths, tcp};
use mptcplab_model::link::LinkConfig;
use mptcplab_scenario::{Flow, Run, Transport};

/// Time to read a packet from one device and to write it into another, in ns (2.6 us measured).
const COPY_NS: f64 = 2_600.0;
/// Additional time in ns, because the receiver's TCP runs inside the write (8 to 9 us measured in total).
const DELIVERY_NS: f64 = 6_000.0;
/// Time for each link after the first, in ns. Paths of one and of three links took the same time (16 to 20 us for each
/// packet, waking included), so this is an upper bound.
const LINK_NS: f64 = 500.0;
/// ACKs per data packet when they are delayed.
const DELAYED_ACKS: f64 = 0.5;

/// The largest rate that a link ever has, in bit/s.
pub(super) fn peak_bps(config: &LinkConfig) -> u64 {
    let scheduled = config.schedule.iter().filter_map(|change| change.rate_bps);
    scheduled.fold(config.rate_bps, u64::max)
}

/// The share of one processor that the emulator needs if every path is as full as its links allow.
pub(crate) fn emulator_load(run: &Run) -> f64 {
    let offered: Vec<f64> = run.links.iter().map(|_| 0.0).collect();
    let mut offered = Offered { run, bps: offered };
    run.flows.iter().for_each(|flow| offered.add(flow));
    run.flows.iter().map(|flow| offered.cost(flow)).sum()
}

/// Rates that the flows could send into each link if no other link limited them.
struct Offered<'a> {
    run: &'a Run,
    bps: Vec<f64>,
}

impl Offered<'_> {
    fn add(&mut self, flow: &Flow) {
        for path in paths(flow) {
            let rate = self.wanted(flow, path);
            path.iter().for_each(|&link| self.bps[link] += rate);
        }
    }

    /// The rate that a flow could send along one path alone.
    fn wanted(&self, flow: &Flow, path: &[usize]) -> f64 {
        let narrowest = path
            .iter()
            .map(|&link| peak_bps(&self.run.links[link].config))
            .min();
        let narrowest = narrowest.unwrap_or(0) as f64;
        match &flow.transport {
            Transport::Udp(udp) => udp.rate_bps as f64,
            Transport::Tcp(_) | Transport::Sctp(_) => narrowest,
        }
    }

    /// Processor time per second for a flow's packets, if each path gets its share of its most loaded link.
    fn cost(&self, flow: &Flow) -> f64 {
        let acks = match tcp(flow) {
            None => 0.0,
            Some(_) if self.run.profile.delayed_acks() => DELAYED_ACKS,
            Some(_) => 1.0,
        };
        let packet_bits = 8.0
            * match &flow.transport {
                Transport::Udp(udp) => f64::from(udp.packet_bytes),
                Transport::Sctp(sctp) => f64::from(sctp.mss_bytes),
                Transport::Tcp(tcp) => f64::from(mtu(tcp)),
            };
        let cost = |path: &[usize]| {
            let share = |&link: &usize| {
                let room = peak_bps(&self.run.links[link].config) as f64;
                (room / self.bps[link].max(1.0)).min(1.0)
            };
            let share = path.iter().map(share).fold(1.0, f64::min);
            let packets = self.wanted(flow, path) * share / packet_bits;
            let further_links = path.len().saturating_sub(1) as f64;
            packets * (1.0 + acks) * (COPY_NS + DELIVERY_NS + LINK_NS * further_links) / 1e9
        };
        paths(flow).into_iter().map(cost).sum()
    }
}
