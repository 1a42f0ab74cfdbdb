//! Constant-rate UDP, with optional idle periods and no feedback.

use crate::net::World;
use crate::net::event::{NEVER, Timer, TimerKind};
use crate::net::packet::{Header, Kind, Packet};
use mptcplab_model::link::rng::Rng;
use mptcplab_model::traffic::duration;
use mptcplab_scenario::DurationDistribution;
use mptcplab_trace::EventKind;

pub(crate) struct UdpSource {
    pub(crate) flow: u32,
    /// Route index.
    id: u32,
    packet_bytes: u16,
    rate_bps: u64,
    /// Bits that one packet takes on the first link, layer 2 included.
    packet_bits: u64,
    on_off: Option<(DurationDistribution, DurationDistribution)>,
    start_ns: u64,
    stop_ns: u64,
    /// End of the current active period.
    active_until: u64,
    /// Nanoseconds owed times the rate: keeps the mean rate exact.
    remainder: u64,
    started: bool,
    pub(crate) timer: Timer,
    rng: Rng,
    pub(crate) sent: u64,
    pub(crate) received: u64,
}

/// Configuration of a source.
pub(crate) struct UdpConfig {
    pub(crate) flow: u32,
    pub(crate) id: u32,
    pub(crate) packet_bytes: u16,
    pub(crate) overhead_bytes: u32,
    pub(crate) rate_bps: u64,
    pub(crate) on_off: Option<(DurationDistribution, DurationDistribution)>,
    pub(crate) start_ns: u64,
    pub(crate) stop_ns: u64,
}

/// IP and UDP headers.
const HEADER_BYTES: u16 = 28;

impl UdpSource {
    pub(crate) fn new(c: UdpConfig, rng: Rng) -> Self {
        Self {
            flow: c.flow,
            id: c.id,
            packet_bytes: c.packet_bytes,
            rate_bps: c.rate_bps,
            packet_bits: (u64::from(c.packet_bytes) + u64::from(c.overhead_bytes)) * 8,
            on_off: c.on_off,
            start_ns: c.start_ns,
            stop_ns: c.stop_ns,
            active_until: 0,
            remainder: 0,
            started: false,
            timer: Timer::OFF,
            rng,
            sent: 0,
            received: 0,
        }
    }

    /// When the source first acts.
    pub(crate) fn start_ns(&self) -> u64 {
        self.start_ns
    }

    /// Payload bytes received so far.
    pub(crate) fn delivered_bytes(&self) -> u64 {
        self.received * self.payload()
    }

    /// Payload bytes sent so far.
    pub(crate) fn sent_bytes(&self) -> u64 {
        self.sent * self.payload()
    }

    fn payload(&self) -> u64 {
        u64::from(self.packet_bytes.saturating_sub(HEADER_BYTES))
    }

    /// Send the packet that is due and set the timer for the next. Returns true on the first call.
    pub(crate) fn on_timer(&mut self, cx: &mut World, index: u32) -> bool {
        let first = !std::mem::replace(&mut self.started, true);
        if cx.now >= self.stop_ns {
            cx.rec
                .flow_event(cx.now, EventKind::FlowStopped, self.flow, 0);
            return first;
        }
        if first || cx.now >= self.active_until {
            self.active_until = match self.on_off {
                Some((on, _)) => cx.now + duration(on, &mut self.rng),
                None => NEVER,
            };
        }
        let packet = Packet::new(Kind::Other, self.id, self.packet_bytes, Header::default());
        self.sent += 1;
        cx.net.send(cx.now, packet);
        let mut next = cx.now + self.interval();
        if next >= self.active_until {
            let off = self
                .on_off
                .map_or(0, |(_, off)| duration(off, &mut self.rng));
            next = next.max(self.active_until + off);
        }
        cx.timers.set(
            &mut self.timer,
            next.min(self.stop_ns),
            TimerKind::Udp,
            index,
        );
        first
    }

    fn interval(&mut self) -> u64 {
        let scaled = self.packet_bits * 1_000_000_000 + self.remainder;
        self.remainder = scaled % self.rate_bps;
        scaled / self.rate_bps
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 12,000 bits at 7.000001 Mbit/s are 1,714,285.47 ns, which no timer can wait.
    #[test]
    fn the_mean_rate_is_exact() {
        let config = UdpConfig {
            flow: 0,
            id: 0,
            packet_bytes: 1462,
            overhead_bytes: 38,
            rate_bps: 7_000_001,
            on_off: None,
            start_ns: 0,
            stop_ns: NEVER,
        };
        let mut source = UdpSource::new(config, Rng::new(3, 0, "udp", "source"));
        let intervals: Vec<u64> = (0..1000).map(|_| source.interval()).collect();
        assert_eq!(intervals.iter().min(), Some(&1_714_285));
        assert_eq!(intervals.iter().max(), Some(&1_714_286));
        let total = 1000 * 12_000 * 1_000_000_000_u64 / 7_000_001;
        assert_eq!(intervals.iter().sum::<u64>(), total);
    }
}
