//! The configuration of a directed link, as plain data with explicit units.
//!
//! The scenario crate fills these in, the simulator and the kernel engine's emulator run them.

/// One direction of a link.
#[derive(Debug, Clone, PartialEq)]
pub struct LinkConfig {
    /// Serialisation rate in bit/s; 0 means that nothing leaves (an outage). Ignored when `trace` is set.
    pub rate_bps: u64,
    /// One-way propagation delay.
    pub delay_ns: u64,
    /// Layer-2 bytes added to every packet before it is serialised and counted (14 on Ethernet).
    pub overhead_bytes: u32,
    /// Room for waiting packets; the packet in service does not count.
    pub queue: QueueLimit,
    /// Queue management.
    pub aqm: Aqm,
    /// Whether an AQM marks ECN-capable packets instead of dropping them.
    pub ecn: bool,
    /// Random loss, decided on arrival, before the queue.
    pub loss: Loss,
    /// Packets that propagate for longer than the others, so that later ones overtake them.
    pub reorder: Option<Reorder>,
    /// Changes in time order; each takes effect at once, also inside a packet in service.
    pub schedule: Vec<Change>,
    /// Mahimahi packet-delivery opportunities, which replace `rate_bps`.
    pub trace: Option<DeliveryTrace>,
}

/// Capacity of the waiting room. BDP and milliseconds are resolved by the scenario crate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QueueLimit {
    /// At most this many waiting packets.
    Packets(u32),
    /// At most this many waiting bytes (layer-2 overhead included).
    Bytes(u64),
    /// Never drops.
    Unlimited,
}

impl QueueLimit {
    /// Whether this many waiting packets with this many layer-2 bytes are within the limit.
    pub(crate) fn holds(self, packets: usize, bytes: u64) -> bool {
        match self {
            Self::Packets(limit) => packets <= limit as usize,
            Self::Bytes(limit) => bytes <= limit,
            Self::Unlimited => true,
        }
    }
}

/// Queue management.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Aqm {
    /// FIFO that drops arrivals when full.
    DropTail,
    /// Random early detection (Floyd & Jacobson 1993), gentle variant, on the average queue in packets.
    Red {
        /// Below this average nothing is dropped.
        min_pkts: f64,
        /// At this average the probability is `max_p`; it rises to 1 at twice this.
        max_pkts: f64,
        /// Probability at `max_pkts`.
        max_p: f64,
        /// EWMA weight of a new sample.
        weight: f64,
    },
    /// CoDel (RFC 8289).
    Codel {
        /// Acceptable standing queue delay (5 ms).
        target_ns: u64,
        /// Sliding minimum window (100 ms).
        interval_ns: u64,
    },
    /// FQ-CoDel (RFC 8290).
    FqCodel {
        /// As in CoDel.
        target_ns: u64,
        /// As in CoDel.
        interval_ns: u64,
        /// Number of hash buckets (1024).
        flows: u32,
        /// DRR quantum (1514 bytes).
        quantum_bytes: u32,
    },
}

/// Random loss.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Loss {
    /// No random loss.
    None,
    /// Independent loss with probability `p`.
    Bernoulli {
        /// Loss probability, 0 to 1.
        p: f64,
    },
    /// Two-state Markov loss (Gilbert-Elliott); transitions are drawn per packet, before the loss.
    GilbertElliott {
        /// P(good -> bad) per packet.
        p: f64,
        /// P(bad -> good) per packet.
        r: f64,
        /// Loss probability in the good state.
        loss_good: f64,
        /// Loss probability in the bad state.
        loss_bad: f64,
    },
}

/// Reordering, as by parallel lanes of which some are slower: each packet is chosen independently when it is fully
/// serialised. A chosen packet propagates for longer, by a time drawn uniformly from `min_extra_delay_ns` to
/// `max_extra_delay_ns`; equal bounds make it fixed. The others keep their order and their times; queue and serialisation
/// are not affected. (`tc netem reorder` is the other way round: there the chosen packets skip the delay.)
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Reorder {
    /// Probability that a packet is held up, 0 to 1. With 1 and a minimum of 0 this is `tc netem`'s uniform jitter.
    pub probability: f64,
    /// Shortest addition to the propagation delay, in ns.
    pub min_extra_delay_ns: u64,
    /// Longest addition to the propagation delay, in ns; at least the shortest.
    pub max_extra_delay_ns: u64,
}

/// One entry of a link's schedule; `None` leaves the property as it is.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    /// Simulated time of the change.
    pub at_ns: u64,
    /// New rate in bit/s (0: frozen).
    pub rate_bps: Option<u64>,
    /// New one-way delay. A shorter one does not let packets overtake those before them.
    pub delay_ns: Option<u64>,
    /// New random loss.
    pub loss: Option<Loss>,
    /// `Some(false)`: the link is down, arrivals are lost and nothing leaves; `Some(true)`: up again.
    pub up: Option<bool>,
}

/// Packet-delivery opportunities in the Mahimahi format: each lets one MTU (1504 bytes, as mm-link counts) leave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeliveryTrace {
    /// Name of the file, for the record.
    pub name: String,
    /// Opportunity times since the start of the trace, non-decreasing.
    pub opportunities_ns: std::sync::Arc<[u64]>,
    /// The trace repeats after this time (the last timestamp of the file).
    pub period_ns: u64,
}
