//! The general machine: queue, transmitter and propagation as separate stages that are stepped through in time order.

use crate::link::codel::{AqmCounters, Codel, Params};
use crate::link::fifo::{Fifo, QueuedPacket};
use crate::link::fq_codel::FqCodel;
use crate::link::loss::LossProcess;
use crate::link::opportunities::Opportunities;
use crate::link::red::{IDLE_PACKET_BYTES, Red};
use crate::link::rng::Rng;
use crate::link::transmitter::{RateTransmitter, TraceTransmitter};
use crate::link::wire::Wire;
use crate::link::{Aqm, Change, Counters, LinkConfig, LinkStats, Packet, QueueLimit, Verdict};

#[derive(Debug)]
pub(crate) struct General<P> {
    stages: Stages<P>,
    transmitter: Transmitter<P>,
    loss: LossProcess,
    red: Option<Red>,
    limit: QueueLimit,
    overhead_bytes: u32,
    up: bool,
    schedule: Vec<Change>,
    changes_applied: usize,
}

/// The stages before and after the transmitter.
#[derive(Debug)]
struct Stages<P> {
    queue: Queue<P>,
    wire: Wire<P>,
    counters: Counters,
    /// Drops and marks after acceptance, which `counters` does not include.
    aqm_counters: AqmCounters<P>,
}

#[derive(Debug)]
enum Queue<P> {
    Fifo(Fifo<P>),
    Codel(Fifo<P>, Codel, Params),
    FqCodel(FqCodel<P>),
}

#[derive(Debug)]
enum Transmitter<P> {
    Rate(RateTransmitter<P>),
    Trace(TraceTransmitter<P>),
}

impl<P: Packet> General<P> {
    pub(crate) fn new(config: &LinkConfig, rng: &Rng) -> Self {
        Self {
            stages: Stages {
                queue: Queue::new(config, rng),
                wire: Wire::new(config.delay_ns, config.reorder, rng),
                counters: Counters::default(),
                aqm_counters: AqmCounters::new(),
            },
            transmitter: match &config.trace {
                Some(trace) => Transmitter::Trace(TraceTransmitter::new(Opportunities::new(trace))),
                None => Transmitter::Rate(RateTransmitter::new(config.rate_bps)),
            },
            loss: LossProcess::new(config.loss, rng.fork("loss")),
            red: Red::new(config, rng),
            limit: config.queue,
            overhead_bytes: config.overhead_bytes,
            up: true,
            schedule: config.schedule.clone(),
            changes_applied: 0,
        }
    }

    /// Not inlined: it would cost the callers of the fused machine registers.
    #[inline(never)]
    pub(crate) fn enqueue(&mut self, now: u64, packet: P, next_ns: &mut u64) -> Verdict {
        self.advance(now);
        self.stages.counters.arrived += 1;
        let verdict = self.accept(now, packet);
        match verdict {
            Verdict::Queued => {}
            Verdict::LostRandom => self.stages.counters.dropped_random += 1,
            Verdict::LostQueue => self.stages.counters.dropped_queue += 1,
        }
        self.check();
        *next_ns = self.next_ns();
        verdict
    }

    pub(crate) fn next_ns(&self) -> u64 {
        let arrival_ns = self.stages.wire.next_ns();
        arrival_ns
            .min(self.next_step_ns())
            .min(self.next_change_ns())
    }

    /// Not inlined, as `enqueue`.
    #[inline(never)]
    pub(crate) fn poll(&mut self, now: u64, next_ns: &mut u64) -> Option<P> {
        self.advance(now);
        let packet = self.deliver(now);
        *next_ns = self.next_ns();
        packet
    }

    fn deliver(&mut self, now: u64) -> Option<P> {
        let packet = self.stages.wire.arrive(now)?;
        self.stages.counters.delivered += 1;
        self.check();
        Some(packet)
    }

    pub(crate) fn stats(&mut self, now: u64) -> LinkStats {
        self.advance(now);
        let stages = &mut self.stages;
        let (packets, bytes) = (stages.queue.len(), stages.queue.bytes());
        let departed_pkts = stages.wire.departed_pkts();
        let mut stats = stages.counters.report(packets, bytes, departed_pkts);
        stats.dropped_queue_pkts += stages.aqm_counters.dropped;
        stats.marked_pkts += stages.aqm_counters.marked;
        stats
    }

    /// Keep the packets that are dropped after acceptance.
    pub(crate) fn keep_dropped(&mut self) {
        self.stages
            .aqm_counters
            .dropped_packets
            .get_or_insert_default();
    }

    /// The oldest of these packets.
    pub(crate) fn take_dropped(&mut self) -> Option<P> {
        self.stages
            .aqm_counters
            .dropped_packets
            .as_mut()?
            .pop_front()
    }

    pub(crate) fn in_transit(&self) -> u64 {
        let serving = usize::from(!self.transmitter.is_idle());
        (self.stages.queue.len() + serving + self.stages.wire.len()) as u64
    }

    pub(crate) fn delivered_pkts(&self) -> u64 {
        self.stages.counters.delivered
    }

    pub(crate) fn changes_applied(&self) -> usize {
        self.changes_applied
    }

    /// Do what is due up to `now` in time order. A transmission that ends at the time of a change ends first.
    fn advance(&mut self, now: u64) {
        loop {
            let (step, change) = (self.next_step_ns(), self.next_change_ns());
            if step.min(change) > now {
                return;
            }
            if step <= change {
                self.step(step);
            } else {
                self.change();
            }
        }
    }

    /// When the transmitter has something to do.
    fn next_step_ns(&self) -> u64 {
        match &self.transmitter {
            Transmitter::Rate(rate) => rate.next_ns(),
            Transmitter::Trace(trace) if trace.is_idle() && self.stages.queue.len() == 0 => {
                u64::MAX
            }
            Transmitter::Trace(trace) => trace.next_ns(),
        }
    }

    fn next_change_ns(&self) -> u64 {
        self.schedule
            .get(self.changes_applied)
            .map_or(u64::MAX, |change| change.at_ns)
    }

    fn step(&mut self, now: u64) {
        match &mut self.transmitter {
            Transmitter::Rate(rate) => {
                if let Some(waiting) = rate.complete() {
                    self.stages.depart(now, waiting);
                }
            }
            Transmitter::Trace(trace) => trace.use_opportunity(
                &mut self.stages,
                |stages| stages.next(now),
                |stages, waiting| stages.depart(now, waiting),
            ),
        }
        self.start_idle(now);
    }

    /// A transmitter at a rate takes the next packet as soon as it is idle.
    fn start_idle(&mut self, now: u64) {
        match &mut self.transmitter {
            Transmitter::Rate(rate) if rate.is_idle() => {
                if let Some(waiting) = self.stages.next(now) {
                    rate.start(waiting);
                }
            }
            _ => {}
        }
    }

    /// The next entry of the schedule takes effect.
    fn change(&mut self) {
        let Some(change) = self.schedule.get(self.changes_applied) else {
            return;
        };
        let now = change.at_ns;
        self.changes_applied += 1;
        match &mut self.transmitter {
            Transmitter::Rate(rate) => {
                if let Some(bps) = change.rate_bps {
                    rate.set_rate(now, bps);
                }
                if let Some(up) = change.up {
                    rate.set_up(now, up);
                }
            }
            Transmitter::Trace(trace) => {
                if let Some(up) = change.up {
                    trace.set_up(now, up);
                }
            }
        }
        self.up = change.up.unwrap_or(self.up);
        self.stages.wire.delay_ns = change.delay_ns.unwrap_or(self.stages.wire.delay_ns);
        if let Some(loss) = change.loss {
            self.loss.change(loss);
        }
    }

    fn accept(&mut self, now: u64, mut packet: P) -> Verdict {
        // The loss is drawn on a link that is down as well, so that an outage does not change the draws of later packets.
        if self.loss.is_lost() | !self.up {
            return Verdict::LostRandom;
        }
        let bytes = packet.ip_bytes() + self.overhead_bytes;
        let room = self.room(bytes);
        if !self.red_admits(now, room, &mut packet) {
            return Verdict::LostQueue;
        }
        match &mut self.transmitter {
            Transmitter::Trace(trace) if trace.is_idle() && self.stages.queue.len() == 0 => {
                trace.pass_to(now);
            }
            _ => {}
        }
        let waiting = QueuedPacket {
            packet,
            bytes,
            arrived_ns: now,
        };
        match &mut self.stages.queue {
            Queue::FqCodel(flows) => {
                let bucket = flows.push(waiting);
                if !room && self.limit_flows(bucket) {
                    return Verdict::LostQueue;
                }
            }
            _ if !room => return Verdict::LostQueue,
            Queue::Fifo(fifo) | Queue::Codel(fifo, ..) => fifo.push(waiting),
        }
        self.start_idle(now);
        Verdict::Queued
    }

    /// Drop from the fattest flow queues until they are within the limit; whether the packet that has just entered
    /// `bucket` was dropped, which `enqueue` counts.
    fn limit_flows(&mut self, bucket: u32) -> bool {
        let Queue::FqCodel(flows) = &mut self.stages.queue else {
            return false;
        };
        while !self.limit.holds(flows.len(), flows.bytes()) {
            match flows.pop_from_fattest(bucket) {
                Some((packet, false)) => self.stages.aqm_counters.drop(packet),
                Some((_, true)) => return true,
                None => return false,
            }
        }
        false
    }

    /// Whether one more packet may wait. A packet that finds nothing waiting and the transmitter idle needs no room; on a
    /// trace every packet waits for its opportunity, so there is always room for one.
    fn room(&self, bytes: u32) -> bool {
        let queue = &self.stages.queue;
        if queue.len() == 0 && self.transmitter.is_idle() {
            return true;
        }
        self.limit
            .holds(queue.len() + 1, queue.bytes() + u64::from(bytes))
    }

    /// RED's decision, if there is RED; it may mark the packet.
    fn red_admits(&mut self, now: u64, room: bool, packet: &mut P) -> bool {
        let Some(red) = &mut self.red else {
            return true;
        };
        let idle_pkts = match &self.transmitter {
            Transmitter::Rate(rate) if rate.is_idle() => rate.idle_packets(now, IDLE_PACKET_BYTES),
            _ => 0,
        };
        let waiting = self.stages.queue.len();
        let marked = &mut self.stages.counters.marked;
        red.admits((waiting, idle_pkts), room, packet, marked)
    }

    fn check(&self) {
        self.stages
            .counters
            .check(self.in_transit() + self.stages.aqm_counters.dropped);
    }
}

impl<P: Packet> Stages<P> {
    /// The packet that the queue discipline sends next; its wait ends here.
    fn next(&mut self, now: u64) -> Option<QueuedPacket<P>> {
        let waiting = self.queue.pop(now, &mut self.aqm_counters)?;
        self.counters.waited(now - waiting.arrived_ns, |_| {});
        Some(waiting)
    }

    /// A packet is fully serialised and propagates.
    fn depart(&mut self, now: u64, waiting: QueuedPacket<P>) {
        self.counters.departed_bytes += u64::from(waiting.bytes);
        self.wire.depart(now, waiting.packet);
    }
}

impl<P: Packet> Queue<P> {
    fn new(config: &LinkConfig, rng: &Rng) -> Self {
        let params = |target_ns, interval_ns| Params {
            target_ns,
            interval_ns,
            ecn: config.ecn,
        };
        match config.aqm {
            Aqm::DropTail | Aqm::Red { .. } => Self::Fifo(Fifo::new()),
            Aqm::Codel {
                target_ns,
                interval_ns,
            } => Self::Codel(
                Fifo::new(),
                Codel::default(),
                params(target_ns, interval_ns),
            ),
            Aqm::FqCodel {
                target_ns,
                interval_ns,
                flows,
                quantum_bytes,
            } => Self::FqCodel(FqCodel::new(
                flows,
                quantum_bytes,
                params(target_ns, interval_ns),
                rng.fork("fq").next_u64(),
            )),
        }
    }

    fn len(&self) -> usize {
        match self {
            Self::Fifo(fifo) | Self::Codel(fifo, ..) => fifo.len(),
            Self::FqCodel(flows) => flows.len(),
        }
    }

    fn bytes(&self) -> u64 {
        match self {
            Self::Fifo(fifo) | Self::Codel(fifo, ..) => fifo.bytes(),
            Self::FqCodel(flows) => flows.bytes(),
        }
    }

    fn pop(&mut self, now: u64, aqm_counters: &mut AqmCounters<P>) -> Option<QueuedPacket<P>> {
        match self {
            Self::Fifo(fifo) => fifo.pop(),
            Self::Codel(fifo, codel, params) => codel.dequeue(fifo, now, params, aqm_counters),
            Self::FqCodel(flows) => flows.pop(now, aqm_counters),
        }
    }
}

impl<P> Transmitter<P> {
    fn is_idle(&self) -> bool {
        match self {
            Self::Rate(rate) => rate.is_idle(),
            Self::Trace(trace) => trace.is_idle(),
        }
    }
}
