//! Declarations of links: both directions, loss, queue management, changes.

use super::declaration::{
    DURATION, Field, LONG_DURATION, MAX_COPIES, Need, PACKETS, PERCENT, RATE, SIZE, SPAN,
    TableSpec, Type, field, fixed, int, keys,
};
use crate::units::Quantity;

/// `[links.NAME]`.
pub(crate) static LINK: TableSpec = TableSpec {
    what: "link",
    doc: "A link `X` from one node to another and, unless `reverse = false`, the reverse direction `X~`. An arriving packet may be \
          lost at random or dropped by a full queue; otherwise it waits, is serialised and propagates. Packets overtake each \
          other only with `reorder` or flow queueing.",
    groups: &[
        keys! {
            /// Node at which the link begins. `{}` stands for the number of the copy (see `count`).
            from: fixed(Type::Name, Need::Required),
            /// Node at which the link ends; `{}` as in `from`.
            to: fixed(Type::Name, Need::Required),
            /// Number of links of the same kind, named `NAME-1` ... `NAME-n`.
            count: fixed(int(1, MAX_COPIES), Need::Optional("one link, without a number")),
            /// Serialisation rate.
            rate: field(RATE, Need::Optional("required, unless `trace` is given")),
            /// One-way propagation delay.
            delay: field(DURATION, Need::Required),
        },
        DIRECTION_FIELDS,
        keys! {
            /// Whether the reverse direction has the same random loss, with the same changes but independent random
            /// numbers. ACKs are then lost as well.
            loss_both: field(Type::Bool, Need::Default("false")),
            /// The direction from `to` to `from`, named `X~`; `false` for none.
            reverse: fixed(
                Type::OneOf(&[Type::Table(&REVERSE), Type::Bool]),
                Need::Optional("same rate and delay, a queue of 1000 packets, no loss"),
            ),
        },
    ],
};

/// `reverse` of a link.
pub(crate) static REVERSE: TableSpec = TableSpec {
    what: "reverse direction",
    doc: "The reverse direction of a link. Rate, delay, overhead and scheduled changes of rate, delay and `up` are those of \
          the forward direction unless they are set here; all other keys have the defaults below, so there is no random loss.",
    groups: &[
        keys! {
            /// Serialisation rate.
            rate: field(RATE, Need::Optional("as forward; required if only the forward direction has a `trace`")),
            /// One-way propagation delay.
            delay: field(DURATION, Need::Optional("as forward")),
        },
        DIRECTION_FIELDS,
    ],
};

/// Keys of both directions of a link.
const DIRECTION_FIELDS: &[Field] = keys! {
    /// Space for waiting packets, not counting the packet in service, in packets, bytes, drain time at the link's rate,
    /// or bandwidth-delay products. 1 BDP = ceil(rate x base RTT / (8 x (1500 + overhead))) packets, where the base RTT
    /// is the largest sum of propagation delays in both directions among the TCP paths that cross this direction.
    queue: field(
        Type::OneOf(&[Type::Quantity(Quantity::Queue), Type::Choice(&[("unlimited", "never drops")])]),
        Need::Default("1000 packets"),
    ),
    /// Random loss: independent per packet, or Gilbert-Elliott.
    loss: field(Type::OneOf(LOSS_TYPES), Need::Default("0 %")),
    /// Delays some packets on the wire, so that later packets overtake them, e.g.
    /// `{ probability = "1 %", delay = "5 ms" }`.
    reorder: field(Type::Table(&REORDER), Need::Optional("packets stay in order")),
    /// Layer-2 bytes added to every packet.
    overhead: field(
        SIZE,
        Need::Optional(
            "14 bytes (Ethernet); with a `trace` 4 bytes (the TUN header of mm-link, so that a 1500-byte packet needs exactly one opportunity); \
             the reverse direction inherits a value that is set for the forward one",
        ),
    ),
    /// Queue management, which decides which packets are dropped or marked; a table sets its parameters.
    aqm: field(Type::OneOf(AQM_TYPES), Need::Default("drop-tail")),
    /// Whether the AQM marks ECN-capable packets instead of dropping them.
    ecn: field(Type::Bool, Need::Default("false")),
    /// Changes of the link in time order, e.g. `[{ at = "10 s", rate = "5 Mbit/s" }, { at = "20 s", up = false }]`.
    schedule: fixed(Type::Tables(&CHANGE), Need::Optional("nothing changes")),
    /// Path of a file with the changes, relative to the scenario: CSV whose heading names `at_ms` and any of
    /// `rate_bps`, `delay_us`, `loss_ppm` and `up` (0 or 1), followed by one line of whole numbers per change, in time
    /// order. An empty field leaves a property unchanged, and `#` begins a comment. `{rep}` in the name is the number
    /// of the repetition, from 0. `mptcplab walk` writes such files.
    schedule_file: field(Type::Text, Need::Optional("nothing changes")),
    /// Path of a file with packet-delivery opportunities, relative to the scenario; it replaces `rate`. In the Mahimahi
    /// format each line is a time in ms, not before the time in the line above, at which 1504 bytes may leave, overhead
    /// included. The trace repeats after the last time, which is above 0. `{rep}` in the name is the number of the
    /// repetition, from 0.
    trace: field(Type::Text, Need::Optional("a constant rate")),
};

/// Bytes of an Ethernet header, which netem counts on a veth device.
pub(crate) const DEFAULT_OVERHEAD_BYTES: u32 = 14;

/// Bytes that mm-link counts in addition to the IP packet: the header of a TUN device (`PACKET_SIZE` is 1504 in Mahimahi's
/// `link_queue.hh`; Netravali et al., USENIX ATC 2015).
pub(crate) const TRACE_OVERHEAD_BYTES: u32 = 4;

/// `reorder = { ... }`.
pub(crate) static REORDER: TableSpec = TableSpec {
    what: "reordering",
    doc: "Reordering on the wire. Each packet is chosen independently when it is fully serialised. A chosen packet propagates longer and is \
          overtaken by packets behind it; the others keep their times and their order.",
    groups: &[keys! {
        /// Share of the packets that are delayed.
        probability: field(PERCENT, Need::Required),
        /// Additional propagation delay: a fixed time, or a random time for each packet as in `"uniform(0 ms, 5 ms)"`,
        /// which is jitter with `probability = "100 %"`. At most 1 h.
        delay: field(SPAN, Need::Required),
    }],
};

/// `loss = { gilbert_elliott = ... }`.
static LOSS: TableSpec = TableSpec {
    what: "loss model",
    doc: "Random loss with memory.",
    groups: &[keys! {
        /// Two-state Markov loss.
        gilbert_elliott: fixed(Type::Table(&GILBERT_ELLIOTT), Need::Required),
    }],
};

const LOSS_TYPES: &[Type] = &[PERCENT, Type::Table(&LOSS)];

/// Gilbert-Elliott parameters.
pub(crate) static GILBERT_ELLIOTT: TableSpec = TableSpec {
    what: "Gilbert-Elliott model",
    doc: "Two-state Markov loss (Gilbert 1960, Elliott 1963). The state may change with every packet, before its loss is drawn.",
    groups: &[keys! {
        /// Probability of a transition from the good to the bad state.
        p: field(PERCENT, Need::Required),
        /// Probability of a transition from the bad to the good state.
        r: field(PERCENT, Need::Required),
        /// Loss probability in the good state.
        loss_good: field(PERCENT, Need::Default("0 %")),
        /// Loss probability in the bad state.
        loss_bad: field(PERCENT, Need::Default("100 %")),
    }],
};

const AQM_NAMES: Type = Type::Choice(&[
    (
        "drop-tail",
        "a FIFO that drops arriving packets when it is full",
    ),
    (
        "red",
        "random early detection (Floyd and Jacobson 1993), gentle variant",
    ),
    ("codel", "CoDel (RFC 8289)"),
    ("fq-codel", "FQ-CoDel (RFC 8290)"),
]);

const AQM_TYPES: &[Type] = &[AQM_NAMES, Type::Table(&AQM)];

/// Keys that set the parameters of RED.
pub(crate) const RED_FIELDS: &[Field] = keys! {
    /// RED: average queue below which no packet is dropped.
    min: field(PACKETS, Need::Default("5 packets")),
    /// RED: average queue at which the drop probability is `max_p`; at twice this length it is 100 %.
    max: field(PACKETS, Need::Default("15 packets")),
    /// RED: drop probability at `max`.
    max_p: field(PERCENT, Need::Default("10 %")),
    /// RED: weight of a new sample in the average.
    weight: field(Type::Fraction, Need::Default("0.002")),
};

/// Keys that set the parameters of CoDel and FQ-CoDel.
pub(crate) const CODEL_FIELDS: &[Field] = keys! {
    /// CoDel and FQ-CoDel: acceptable standing delay.
    target: field(DURATION, Need::Default("5 ms")),
    /// CoDel and FQ-CoDel: time window of the minimum delay.
    interval: field(DURATION, Need::Default("100 ms")),
};

/// Keys that set the parameters of FQ-CoDel.
pub(crate) const FQ_FIELDS: &[Field] = keys! {
    /// FQ-CoDel: number of hash buckets.
    flows: field(int(1, 65_536), Need::Default("1024")),
    /// FQ-CoDel: bytes per round of deficit round robin.
    quantum: field(SIZE, Need::Default("1514 bytes")),
};

/// `aqm = { name = ..., ... }`.
pub(crate) static AQM: TableSpec = TableSpec {
    what: "queue management",
    doc: "Queue management with parameters, e.g. `{ name = \"codel\", target = \"10 ms\" }`.",
    groups: &[
        keys! {
            /// Name of the queue management.
            name: fixed(AQM_NAMES, Need::Required),
        },
        RED_FIELDS,
        CODEL_FIELDS,
        FQ_FIELDS,
    ],
};

/// An entry of a link's schedule.
pub(crate) static CHANGE: TableSpec = TableSpec {
    what: "change",
    doc: "A change of a link, which takes effect immediately, even while a packet is being serialised. It has at least one key besides `at`.",
    groups: &[keys! {
        /// Time of the change since the start of the run.
        at: field(LONG_DURATION, Need::Required),
        /// New rate; `"0 bit/s"` stops the queue.
        rate: field(RATE, Need::Optional("unchanged")),
        /// New one-way delay.
        delay: field(DURATION, Need::Optional("unchanged")),
        /// New random loss.
        loss: field(Type::OneOf(LOSS_TYPES), Need::Optional("unchanged")),
        /// `false`: the link goes down; arriving packets are lost and nothing leaves. `true`: it comes up again.
        up: field(Type::Bool, Need::Optional("unchanged")),
    }],
};
