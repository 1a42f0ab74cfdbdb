//! Links: both directions, loss, queue management, changes.

use super::declaration::{
    DURATION, Field, LONG_DURATION, MAX_COPIES, Need, PACKETS, PERCENT, RATE, SIZE, SPAN,
    TableSpec, Type, field, fixed,
};
use crate::units::Quantity;

/// `[links.NAME]`.
pub(crate) static LINK: TableSpec = TableSpec {
    what: "link",
    doc: "A link `X` from one node to another, and back as `X~` unless `reverse = false`. A packet that arrives is \
          lost at random, dropped if the queue is full, waits, is serialised and propagates; it overtakes another only \
          with `reorder` or flow queueing.",
    groups: &[
        &[
            fixed(
                "from",
                Type::Name,
                Need::Required,
                "Node at which the link begins. `{}` stands for the number of the copy (see `count`).",
            ),
            fixed(
                "to",
                Type::Name,
                Need::Required,
                "Node at which it ends; `{}` as in `from`.",
            ),
            fixed(
                "count",
                Type::Int {
                    min: 1,
                    max: MAX_COPIES,
                },
                Need::Optional("one link, without a number"),
                "Makes the links `NAME-1` ... `NAME-n` of the same kind.",
            ),
            field(
                "rate",
                RATE,
                Need::Optional("required, unless `trace` is given"),
                "Serialisation rate.",
            ),
            field(
                "delay",
                DURATION,
                Need::Required,
                "One-way propagation delay.",
            ),
        ],
        DIRECTION_FIELDS,
        &[
            field(
                "loss_both",
                Type::Bool,
                Need::Default("false"),
                "Whether packets are lost at random on the way back, too, as often and with the same changes, each direction by a coin of its own. ACKs are lost then.",
            ),
            fixed(
                "reverse",
                Type::OneOf(&[Type::Table(&REVERSE), Type::Bool]),
                Need::Optional("same rate and delay, 1000 packets, no loss"),
                "The direction from `to` to `from`, named `X~`; `false`: there is none.",
            ),
        ],
    ],
};

/// `reverse` of a link.
pub(crate) static REVERSE: TableSpec = TableSpec {
    what: "reverse direction",
    doc: "The way back over a link. What is not given: rate, delay, overhead and the forward schedule's changes of \
          rate, delay and up/down are those of the way there; the rest has the usual defaults (no random loss).",
    groups: &[
        &[
            field(
                "rate",
                RATE,
                Need::Optional("as forward; required if only the forward direction has a `trace`"),
                "Serialisation rate.",
            ),
            field(
                "delay",
                DURATION,
                Need::Optional("as forward"),
                "One-way propagation delay.",
            ),
        ],
        DIRECTION_FIELDS,
    ],
};

/// What both directions of a link have.
const DIRECTION_FIELDS: &[Field] = &[
    field(
        "queue",
        Type::OneOf(&[
            Type::Quantity(Quantity::Queue),
            Type::Choice(&[("unlimited", "never drops")]),
        ]),
        Need::Default("1000 packets"),
        "Room for waiting packets (the one in service does not count), in packets, bytes, drain time at the link's rate, or bandwidth-delay \
         products. 1 BDP = ceil(rate x base RTT / (8 x (1500 + overhead))) packets, with the largest base RTT (sum of propagation delays, \
         there and back) of the TCP paths that cross this direction.",
    ),
    field(
        "loss",
        Type::OneOf(LOSS_TYPES),
        Need::Default("0 %"),
        "Random loss: independent per packet, or Gilbert-Elliott.",
    ),
    field(
        "reorder",
        Type::Table(&REORDER),
        Need::Optional("packets keep their order"),
        "Holds up some packets on the wire, so that later ones overtake them, e.g. `{ probability = \"1 %\", delay = \"5 ms\" }`.",
    ),
    field(
        "overhead",
        SIZE,
        Need::Optional(
            "14 bytes (Ethernet), with a `trace` 4 bytes (the TUN header of mm-link: a 1500-byte packet needs exactly one opportunity); \
             the reverse direction takes over what the forward one has instead of its default",
        ),
        "Layer-2 bytes added to every packet.",
    ),
    field(
        "aqm",
        Type::OneOf(AQM_TYPES),
        Need::Default("drop-tail"),
        "Who decides which packets are dropped or marked; a table sets its parameters.",
    ),
    field(
        "ecn",
        Type::Bool,
        Need::Default("false"),
        "Whether the AQM marks ECN-capable packets instead of dropping them.",
    ),
    fixed(
        "schedule",
        Type::Tables(&CHANGE),
        Need::Optional("nothing changes"),
        "Changes in time order, e.g. `[{ at = \"10 s\", rate = \"5 Mbit/s\" }, { at = \"20 s\", up = false }]`.",
    ),
    field(
        "schedule_file",
        Type::Text,
        Need::Optional("nothing changes"),
        "The changes in a file, relative to the scenario: CSV whose heading names `at_ms` and any of `rate_bps`, `delay_us`, `loss_ppm` and `up` \
         (0 or 1), then one line of whole numbers per change, in time order; an empty field leaves a property as it is, `#` begins a comment. \
         `{rep}` in the name is the number of the repetition, from 0. `mptcplab walk` writes such files.",
    ),
    field(
        "trace",
        Type::Text,
        Need::Optional("a constant rate"),
        "File of packet-delivery opportunities, relative to the scenario. Replaces `rate`. Mahimahi format: one time in ms per line, none before \
         the line above, each letting 1504 bytes leave, overhead included; it repeats after the last time, which is above 0. `{rep}` in the name is the number of the \
         repetition, from 0.",
    ),
];

/// Layer-2 bytes of an Ethernet frame as netem counts it on a veth (spec/scenarios.md 0.1).
pub(crate) const DEFAULT_OVERHEAD_BYTES: u32 = 14;

/// What mm-link counts in addition to the IP packet: the header of a TUN device (`PACKET_SIZE` 1504 in its
/// `link_queue.hh`; Netravali et al. 2015).
pub(crate) const TRACE_OVERHEAD_BYTES: u32 = 4;

/// `reorder = { ... }`.
pub(crate) static REORDER: TableSpec = TableSpec {
    what: "reordering",
    doc: "Reordering on the wire. Each packet is chosen independently when it is fully serialised; a chosen one propagates for longer and is \
          overtaken by those behind it, while the others keep their times and their order.",
    groups: &[&[
        field(
            "probability",
            PERCENT,
            Need::Required,
            "Share of the packets that are held up.",
        ),
        field(
            "delay",
            SPAN,
            Need::Required,
            "How much longer they propagate: a fixed time, or a new one for each packet as in `\"uniform(0 ms, 5 ms)\"` (jitter, with \
             `probability = \"100 %\"`). At most 1 h.",
        ),
    ]],
};

/// `loss = { gilbert_elliott = ... }`.
static LOSS: TableSpec = TableSpec {
    what: "loss model",
    doc: "Random loss with a memory.",
    groups: &[&[fixed(
        "gilbert_elliott",
        Type::Table(&GILBERT_ELLIOTT),
        Need::Required,
        "Two-state Markov loss.",
    )]],
};

const LOSS_TYPES: &[Type] = &[PERCENT, Type::Table(&LOSS)];

/// Gilbert-Elliott parameters.
pub(crate) static GILBERT_ELLIOTT: TableSpec = TableSpec {
    what: "Gilbert-Elliott model",
    doc: "Two-state Markov loss (Gilbert 1960, Elliott 1963); the state may change with every packet, before its loss is drawn.",
    groups: &[&[
        field(
            "p",
            PERCENT,
            Need::Required,
            "Probability of a step from the good to the bad state.",
        ),
        field(
            "r",
            PERCENT,
            Need::Required,
            "Probability of a step from the bad to the good state.",
        ),
        field(
            "loss_good",
            PERCENT,
            Need::Default("0 %"),
            "Loss in the good state.",
        ),
        field(
            "loss_bad",
            PERCENT,
            Need::Default("100 %"),
            "Loss in the bad state.",
        ),
    ]],
};

const AQM_NAMES: Type = Type::Choice(&[
    ("drop-tail", "FIFO that drops arrivals when full"),
    (
        "red",
        "random early detection (Floyd & Jacobson 1993), gentle",
    ),
    ("codel", "CoDel (RFC 8289)"),
    ("fq-codel", "FQ-CoDel (RFC 8290)"),
]);

const AQM_TYPES: &[Type] = &[AQM_NAMES, Type::Table(&AQM)];

/// Keys that set the parameters of RED.
pub(crate) const RED_FIELDS: &[Field] = &[
    field(
        "min",
        PACKETS,
        Need::Default("5 packets"),
        "RED: average queue below which nothing is dropped.",
    ),
    field(
        "max",
        PACKETS,
        Need::Default("15 packets"),
        "RED: average queue at which the probability is `max_p`; it rises to 100 % at twice this.",
    ),
    field(
        "max_p",
        PERCENT,
        Need::Default("10 %"),
        "RED: probability at `max`.",
    ),
    field(
        "weight",
        Type::Fraction,
        Need::Default("0.002"),
        "RED: weight of a new sample in the average.",
    ),
];

/// Keys that set the parameters of CoDel and FQ-CoDel.
pub(crate) const CODEL_FIELDS: &[Field] = &[
    field(
        "target",
        DURATION,
        Need::Default("5 ms"),
        "CoDel and FQ-CoDel: acceptable standing delay.",
    ),
    field(
        "interval",
        DURATION,
        Need::Default("100 ms"),
        "CoDel and FQ-CoDel: window of the minimum.",
    ),
];

/// Keys that set the parameters of FQ-CoDel.
pub(crate) const FQ_FIELDS: &[Field] = &[
    field(
        "flows",
        Type::Int {
            min: 1,
            max: 65_536,
        },
        Need::Default("1024"),
        "FQ-CoDel: number of hash buckets.",
    ),
    field(
        "quantum",
        SIZE,
        Need::Default("1514 bytes"),
        "FQ-CoDel: bytes per round of the deficit round robin.",
    ),
];

/// `aqm = { name = ..., ... }`.
pub(crate) static AQM: TableSpec = TableSpec {
    what: "queue management",
    doc: "A queue management with parameters, e.g. `{ name = \"codel\", target = \"10 ms\" }`.",
    groups: &[
        &[fixed("name", AQM_NAMES, Need::Required, "Which one.")],
        RED_FIELDS,
        CODEL_FIELDS,
        FQ_FIELDS,
    ],
};

/// An entry of a link's schedule.
pub(crate) static CHANGE: TableSpec = TableSpec {
    what: "change",
    doc: "A change of a link; it takes effect at once, also inside a packet. At least one property besides `at`.",
    groups: &[&[
        field(
            "at",
            LONG_DURATION,
            Need::Required,
            "When, in simulated time.",
        ),
        field(
            "rate",
            RATE,
            Need::Optional("stays"),
            "New rate; `\"0 bit/s\"` freezes the queue.",
        ),
        field(
            "delay",
            DURATION,
            Need::Optional("stays"),
            "New one-way delay.",
        ),
        field(
            "loss",
            Type::OneOf(LOSS_TYPES),
            Need::Optional("stays"),
            "New random loss.",
        ),
        field(
            "up",
            Type::Bool,
            Need::Optional("stays"),
            "`false`: the link goes down, what arrives is lost and nothing leaves; `true`: it comes back.",
        ),
    ]],
};
