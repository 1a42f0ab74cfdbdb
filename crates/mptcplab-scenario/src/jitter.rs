//! The random delay before a packet leaves its sender, which keeps the phase of drop-tail queues from deciding who loses.
//!
//! Packets that arrive in lockstep with the departures of a full queue are always dropped, or never (Floyd and Jacobson,
//! "On Traffic Phase Effects in Packet-Switched Gateways", 1992). They recommend a random processing time of up to the time
//! that a packet takes at the bottleneck. This is too little where windows decide: the packet by which a window has grown
//! follows its predecessor so closely that it still meets the queue which that one has filled. Ten packet times let any of
//! the packets around it be the one that is dropped. `docs/fidelity/fidelity.md` shows what this gives.

use crate::run::{Run, Subflow, TcpFlow};

/// `auto` in packet times of the slowest link.
const PACKET_TIMES: u64 = 10;
/// `auto` is at most this part of the base RTT, if that is more than a packet time: the increase of the round-trip time
/// that HyStart takes for a queue (RFC 9406, MIN_RTT_DIVISOR). Short of that, delay-based algorithms are not misled.
const RTT_PART: u64 = 8;
/// Upper bound of the setting, and of `host_delay`.
pub(crate) const MAX_NS: u64 = 1_000_000_000;

impl Run {
    /// Upper bound of the random delay of each packet that this subflow sends.
    pub fn send_jitter_ns(&self, flow: &TcpFlow, subflow: &Subflow) -> u64 {
        let auto = || {
            auto_ns(
                self.packet_time_ns(flow, subflow),
                self.base_rtt_ns(subflow),
            )
        };
        flow.options.send_jitter_ns.unwrap_or_else(auto)
    }

    /// The time of a full packet on the slowest link of the path, before any scheduled change.
    fn packet_time_ns(&self, flow: &TcpFlow, subflow: &Subflow) -> u64 {
        let headers = u32::from(flow.data_header_bytes());
        let times = subflow.path.iter().map(|&link| {
            let config = &self.links[link].config;
            let bits = 8 * u64::from(flow.mss_bytes + headers + config.overhead_bytes);
            // At most 2^17 bits, so that the product is below 2^47.
            (bits * 1_000_000_000)
                .checked_div(config.rate_bps)
                .unwrap_or_default()
        });
        times.max().unwrap_or(0)
    }
}

fn auto_ns(packet_time_ns: u64, base_rtt_ns: u64) -> u64 {
    packet_time_ns
        .saturating_mul(PACKET_TIMES)
        .min(packet_time_ns.max(base_rtt_ns / RTT_PART))
        .min(MAX_NS)
}

#[cfg(test)]
mod tests {
    use super::auto_ns;

    #[test]
    fn auto_is_ten_packet_times_within_an_eighth_of_the_rtt_but_never_less_than_one() {
        // 0.2 ms per packet: an RTT of 10 ms allows 1.25 ms, one of 30 ms all ten, and one of 1 ms not even one.
        assert_eq!(auto_ns(200_000, 10_000_000), 1_250_000);
        assert_eq!(auto_ns(200_000, 30_000_000), 2_000_000);
        assert_eq!(auto_ns(200_000, 1_000_000), 200_000);
        // 12 kbit/s, where a packet takes a second, and a path on which nothing passes.
        assert_eq!(auto_ns(1_200_000_000, 0), 1_000_000_000);
        assert_eq!(auto_ns(0, 30_000_000), 0);
    }
}
