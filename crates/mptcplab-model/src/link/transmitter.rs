//! The transmitter of the general machine: at a rate, or at the opportunities of a trace.

use crate::link::fifo::QueuedPacket;
use crate::link::opportunities::{OPPORTUNITY_BYTES, Opportunities};
use crate::link::service::{Instant, Rate, Work, work};

/// Sends one packet at a time at a rate that may change inside a packet.
#[derive(Debug)]
pub(crate) struct RateTransmitter<P> {
    /// Rate of an up link.
    rate: Rate,
    up: bool,
    /// When the last packet ended.
    free: Instant,
    serving: Option<Service<P>>,
}

/// The packet in service.
#[derive(Debug)]
struct Service<P> {
    waiting: QueuedPacket<P>,
    /// The work that was left at `since`.
    left: Work,
    since: Instant,
    /// When it ends if nothing changes.
    finish: Instant,
}

impl<P> RateTransmitter<P> {
    pub(crate) fn new(bps: u64) -> Self {
        Self {
            rate: Rate::new(bps),
            up: true,
            free: Instant::ZERO,
            serving: None,
        }
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.serving.is_none()
    }

    /// When the packet in service ends.
    pub(crate) fn next_ns(&self) -> u64 {
        match &self.serving {
            Some(service) if service.finish != Instant::NEVER => service.finish.ns(),
            _ => u64::MAX,
        }
    }

    /// Begin with a packet, back to back with the last one if it was there in time; the transmitter must be idle.
    pub(crate) fn start(&mut self, waiting: QueuedPacket<P>) {
        debug_assert!(self.is_idle(), "one packet at a time");
        let since = self.free.max(Instant::from_ns(waiting.arrived_ns));
        self.serving = Some(Service {
            left: work(waiting.bytes),
            since,
            finish: self.effective_rate().finish(since, waiting.bytes),
            waiting,
        });
    }

    /// The packet in service has ended.
    pub(crate) fn complete(&mut self) -> Option<QueuedPacket<P>> {
        let service = self.serving.take()?;
        self.free = service.finish;
        Some(service.waiting)
    }

    /// Change the rate from `now` on; the part of the packet in service that was sent remains sent.
    pub(crate) fn set_rate(&mut self, now: u64, bps: u64) {
        self.change(now, |transmitter| transmitter.rate = Rate::new(bps));
    }

    /// Freeze (`false`) or go on.
    pub(crate) fn set_up(&mut self, now: u64, up: bool) {
        self.change(now, |transmitter| transmitter.up = up);
    }

    /// How long the link has been idle, in packets of this length.
    pub(crate) fn idle_packets(&self, now: u64, bytes: u32) -> u64 {
        let idle_ns = now.saturating_sub(self.free.ns());
        self.effective_rate().packets_within(idle_ns, bytes)
    }

    fn effective_rate(&self) -> Rate {
        if self.up { self.rate } else { Rate::new(0) }
    }

    fn change(&mut self, now: u64, apply: impl FnOnce(&mut Self)) {
        let before = self.effective_rate();
        apply(self);
        let after = self.effective_rate();
        if let Some(service) = &mut self.serving {
            let now = Instant::from_ns(now).max(service.since);
            let done = before.done(now.since(service.since));
            service.left = service.left.saturating_sub(done);
            service.since = now;
            service.finish = after.finish_work(now, service.left);
        }
    }
}

/// Sends at the opportunities of a trace, each good for [`OPPORTUNITY_BYTES`], as mm-link does: small packets share an
/// opportunity, a large one spans several, and what cannot be used is lost.
#[derive(Debug)]
pub(crate) struct TraceTransmitter<P> {
    opportunities: Opportunities,
    up: bool,
    /// The packet that has begun to leave, and how many of its bytes have not.
    serving: Option<(QueuedPacket<P>, u32)>,
}

impl<P> TraceTransmitter<P> {
    pub(crate) fn new(opportunities: Opportunities) -> Self {
        Self {
            opportunities,
            up: true,
            serving: None,
        }
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.serving.is_none()
    }

    /// The next opportunity, whether or not there is something to send.
    pub(crate) fn next_ns(&self) -> u64 {
        if self.up {
            self.opportunities.current_ns()
        } else {
            u64::MAX
        }
    }

    /// Opportunities up to `now` are lost: there was nothing to send.
    pub(crate) fn pass_to(&mut self, now: u64) {
        self.opportunities.skip_to_after(now);
    }

    /// Opportunities of a link that is down are lost.
    pub(crate) fn set_up(&mut self, now: u64, up: bool) {
        if up && !self.up {
            self.opportunities.skip_to_after(now);
        }
        self.up = up;
    }

    /// Use the current opportunity for packets from `next`, and hand over those that have left completely to `depart`.
    pub(crate) fn use_opportunity<Q>(
        &mut self,
        queue: &mut Q,
        next: impl Fn(&mut Q) -> Option<QueuedPacket<P>>,
        depart: impl Fn(&mut Q, QueuedPacket<P>),
    ) {
        self.opportunities.step();
        let mut budget = OPPORTUNITY_BYTES;
        while budget > 0 {
            let Some((waiting, left)) = self.serving.take().or_else(|| {
                let waiting = next(queue)?;
                let bytes = waiting.bytes;
                Some((waiting, bytes))
            }) else {
                return;
            };
            let sent = budget.min(left);
            budget -= sent;
            if sent == left {
                depart(queue, waiting);
            } else {
                self.serving = Some((waiting, left - sent));
            }
        }
    }
}
