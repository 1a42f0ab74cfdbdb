//! The scenario format, declared once: the parser, the JSON Schema and the documentation are made from these tables.

use crate::units::{self, Dimension, UnitError};

/// A table of the format.
#[derive(Debug)]
pub(crate) struct TableSpec {
    /// For headings and messages: "link".
    pub(crate) what: &'static str,
    pub(crate) doc: &'static str,
    /// Keys in groups that several tables may share.
    pub(crate) groups: &'static [&'static [Field]],
}

impl TableSpec {
    pub(crate) fn fields(&self) -> impl Iterator<Item = &'static Field> {
        self.groups.iter().flat_map(|group| group.iter())
    }

    pub(crate) fn field(&self, key: &str) -> Option<&'static Field> {
        self.fields().find(|f| f.key == key)
    }
}

/// A key of a table.
#[derive(Debug)]
pub(crate) struct Field {
    pub(crate) key: &'static str,
    pub(crate) ty: Type,
    pub(crate) need: Need,
    /// Whether a list of values makes a sweep axis.
    pub(crate) sweep: bool,
    pub(crate) doc: &'static str,
}

/// What happens without the key.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Need {
    Required,
    /// Says what holds then.
    Optional(&'static str),
    /// The value that holds then, as it would be written.
    Default(&'static str),
}

/// What a value may be.
#[derive(Debug)]
pub(crate) enum Type {
    Text,
    /// Name of a scenario, node, link, flow or subflow.
    Name,
    Bool,
    Int {
        min: u64,
        max: u64,
    },
    /// A plain number in (0, 1].
    Fraction,
    Quantity(Quantity),
    /// One of these words; each with its meaning.
    Choice(&'static [(&'static str, &'static str)]),
    /// A list of names.
    Names,
    /// A list of paths; a path is a list of link names.
    Paths,
    Table(&'static TableSpec),
    /// A list of tables.
    Tables(&'static TableSpec),
    /// A table whose keys are names given by the user.
    Map(&'static TableSpec),
    /// An algorithm: its name, or a table of `name` and parameters.
    Algorithm,
    OneOf(&'static [Self]),
}

/// Text with a unit.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Quantity {
    Plain(&'static Dimension),
    Percent,
    Queue,
    Span,
}

impl Quantity {
    pub(crate) fn what(self) -> &'static str {
        match self {
            Self::Plain(d) => d.what,
            Self::Percent => "a percentage",
            Self::Queue => "a queue size",
            Self::Span => "a duration or a random span",
        }
    }

    pub(crate) fn examples(self) -> String {
        match self {
            Self::Plain(d) => format!("\"{}\"", d.example),
            Self::Percent => format!("\"{}\"", units::PERCENT_EXAMPLE),
            Self::Queue => units::QUEUE_EXAMPLES.to_string(),
            Self::Span => format!("\"1 s\" or \"{}\"", units::UNIFORM_EXAMPLE),
        }
    }

    /// What to write for a number without its unit.
    pub(crate) fn for_bare_number(self, number: &str) -> String {
        match self {
            Self::Plain(d) => format!("\"{}\"", d.with_unit(number)),
            Self::Percent => format!("\"{number} %\""),
            Self::Queue | Self::Span => self.examples(),
        }
    }

    pub(crate) fn check(self, text: &str) -> Result<(), UnitError> {
        match self {
            Self::Plain(d) => d.parse(text).map(drop),
            Self::Percent => units::percent(text).map(drop),
            Self::Queue => units::queue(text).map(drop),
            Self::Span => units::span(text).map(drop),
        }
    }

    pub(crate) fn pattern(self) -> String {
        match self {
            Self::Plain(d) => d.pattern(),
            Self::Percent => units::percent_pattern(),
            Self::Queue => units::queue_pattern(),
            Self::Span => units::span_pattern(),
        }
    }
}

const DURATION: Type = Type::Quantity(Quantity::Plain(&units::DURATION));
const RATE: Type = Type::Quantity(Quantity::Plain(&units::RATE));
const SIZE: Type = Type::Quantity(Quantity::Plain(&units::SIZE));
const PACKETS: Type = Type::Quantity(Quantity::Plain(&units::PACKETS));
const PERCENT: Type = Type::Quantity(Quantity::Percent);
const SPAN: Type = Type::Quantity(Quantity::Span);

/// A key whose value may be a sweep axis.
const fn field(key: &'static str, ty: Type, need: Need, doc: &'static str) -> Field {
    Field {
        key,
        ty,
        need,
        sweep: true,
        doc,
    }
}

/// A key with one value for all runs.
const fn fixed(key: &'static str, ty: Type, need: Need, doc: &'static str) -> Field {
    Field {
        key,
        ty,
        need,
        sweep: false,
        doc,
    }
}

pub(crate) const MAX_REPETITIONS: u64 = 100_000;
pub(crate) const MAX_COPIES: u64 = 10_000;

const PROFILES: Type = Type::Choice(&[
    (
        "rfc",
        "one ACK per segment, growth per acknowledged segment (papers' formulas, ns-2)",
    ),
    (
        "linux-acked",
        "delayed ACKs, growth per acknowledged segment (upstream Linux)",
    ),
    (
        "linux-legacy",
        "delayed ACKs, coupled algorithms grow once per ACK (multipath-tcp.org kernels 0.91-0.95)",
    ),
    (
        "linux-pre4",
        "delayed ACKs, every algorithm grows once per ACK (kernels before 4.0)",
    ),
]);

const SCHEDULERS: Type = Type::Choice(&[
    ("minrtt", "lowest smoothed RTT first"),
    ("roundrobin", "one packet on each subflow in turn"),
    (
        "linger",
        "upstream Linux: the subflow whose queued data leave first",
    ),
]);

/// The whole file.
pub(crate) static SCENARIO: TableSpec = TableSpec {
    what: "scenario",
    doc: "",
    groups: &[&[
        fixed(
            "name",
            Type::Name,
            Need::Optional("the file's name without `.toml`"),
            "Name of the scenario and of its result folder.",
        ),
        fixed(
            "title",
            Type::Text,
            Need::Optional("the name"),
            "One line for people.",
        ),
        fixed(
            "source",
            Type::Text,
            Need::Optional("empty"),
            "Where the scenario comes from: paper, section, issue.",
        ),
        field("duration", DURATION, Need::Required, "Simulated time."),
        field(
            "warmup",
            DURATION,
            Need::Default("0 s"),
            "Time at the start that metrics leave out.",
        ),
        fixed(
            "repetitions",
            Type::Int {
                min: 1,
                max: MAX_REPETITIONS,
            },
            Need::Default("1"),
            "Runs of every combination of axis values, each with its own random numbers. Repetition i of every combination sees the same ones.",
        ),
        fixed(
            "seed",
            Type::Int {
                min: 0,
                max: i64::MAX as u64,
            },
            Need::Default("1"),
            "Where all random numbers come from.",
        ),
        fixed(
            "sample",
            Type::OneOf(&[
                DURATION,
                Type::Choice(&[(
                    "off",
                    "no samples between the start, the end of the warm-up and the end",
                )]),
            ]),
            Need::Default("10 ms"),
            "Interval of the samples in the trace.",
        ),
        fixed(
            "per_ack",
            Type::Bool,
            Need::Default("false"),
            "Whether the trace also has a row for every ACK.",
        ),
        field(
            "profile",
            PROFILES,
            Need::Default("linux-acked"),
            "How ACKs are sent and counted.",
        ),
        field(
            "cc",
            Type::Algorithm,
            Need::Optional("every flow names its own"),
            "Congestion control of all flows without a `cc` of their own.",
        ),
        field(
            "scheduler",
            SCHEDULERS,
            Need::Default("minrtt"),
            "Packet scheduler of all MPTCP flows without a `scheduler` of their own.",
        ),
        fixed(
            "nodes",
            Type::Names,
            Need::Optional("the nodes that links name"),
            "Names of the nodes. Where given, a link between others is an error.",
        ),
        fixed(
            "tcp",
            Type::Table(&TCP),
            Need::Optional("no common settings"),
            "Settings of all TCP and MPTCP flows that don't set them themselves.",
        ),
        fixed(
            "links",
            Type::Map(&LINK),
            Need::Required,
            "The links by name, each a table `[links.NAME]`.",
        ),
        fixed(
            "flows",
            Type::Map(&FLOW),
            Need::Required,
            "The flows by name, each a table `[flows.NAME]`.",
        ),
    ]],
};

/// `[tcp]`.
pub(crate) static TCP: TableSpec = TableSpec {
    what: "TCP settings",
    doc: "Settings of all TCP and MPTCP flows; a flow may set each of them itself.",
    groups: &[TCP_FIELDS],
};

/// `[links.NAME]`.
pub(crate) static LINK: TableSpec = TableSpec {
    what: "link",
    doc: "A link `X` from one node to another, and back as `X~` unless `reverse = false`. A packet that arrives is \
          lost at random, dropped if the queue is full, waits, is serialised and propagates; it never overtakes another.",
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
        &[fixed(
            "reverse",
            Type::OneOf(&[Type::Table(&REVERSE), Type::Bool]),
            Need::Optional("same rate and delay, 1000 packets, no loss"),
            "The direction from `to` to `from`, named `X~`; `false`: there is none.",
        )],
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
        "overhead",
        SIZE,
        Need::Optional("14 bytes (Ethernet); on the reverse direction as forward"),
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
        "trace",
        Type::Text,
        Need::Optional("a constant rate"),
        "File of packet-delivery opportunities (Mahimahi format: one time in ms per line, 1504 bytes each), relative to the scenario. Replaces `rate`.",
    ),
];

/// Layer-2 bytes of an Ethernet frame as netem counts it on a veth (spec/scenarios.md 0.1).
pub(crate) const DEFAULT_OVERHEAD_BYTES: u32 = 14;

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
        field("at", DURATION, Need::Required, "When, in simulated time."),
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

/// `[flows.NAME]`.
pub(crate) static FLOW: TableSpec = TableSpec {
    what: "flow",
    doc: "One TCP connection, one MPTCP connection or one UDP stream. Its way is given by exactly one of `path`, `paths` and `subflows`.",
    groups: &[
        &[
            fixed(
                "transport",
                Type::Choice(&[
                    ("tcp", "one subflow without MPTCP"),
                    ("mptcp", "one or more subflows"),
                    ("udp", "a stream without feedback"),
                ]),
                Need::Optional("mptcp with several paths, tcp with one"),
                "Protocol.",
            ),
            fixed(
                "from",
                Type::Name,
                Need::Optional("where the paths begin"),
                "Node that sends; only checked against the paths.",
            ),
            fixed(
                "to",
                Type::Name,
                Need::Optional("where the paths end"),
                "Node that receives; only checked against the paths.",
            ),
            fixed(
                "path",
                Type::Names,
                Need::Optional("see `paths`, `subflows`"),
                "The links of the only path, e.g. `[\"B1\", \"e1\"]`. `X~` is link X backwards. `X-{}` is the copy of X with this flow's number, counted round.",
            ),
            fixed(
                "paths",
                Type::Paths,
                Need::Optional("see `path`, `subflows`"),
                "One path per subflow, in opening order.",
            ),
            fixed(
                "subflows",
                Type::Tables(&SUBFLOW),
                Need::Optional("see `path`, `paths`"),
                "Subflows with more than a path, in opening order.",
            ),
            fixed(
                "count",
                Type::Int {
                    min: 1,
                    max: MAX_COPIES,
                },
                Need::Optional("one flow, without a number"),
                "Makes the flows `NAME-1` ... `NAME-n` of the same kind.",
            ),
            field("start", SPAN, Need::Default("0 s"), "When the flow starts."),
            field(
                "stop",
                DURATION,
                Need::Optional("the end of the run"),
                "When the application stops sending.",
            ),
            field(
                "traffic",
                Type::OneOf(&[
                    Type::Choice(&[("bulk", "always has data (UDP: always sends)")]),
                    Type::Table(&TRAFFIC),
                ]),
                Need::Default("bulk"),
                "What the application does.",
            ),
        ],
        &[
            field(
                "cc",
                Type::Algorithm,
                Need::Optional("`cc` of the scenario"),
                "Congestion control: a name, or a table of name and parameters such as `{ name = \"ewtcp\", variant = \"fair\" }`, also written `\"ewtcp(variant=fair)\"`.",
            ),
            field(
                "scheduler",
                SCHEDULERS,
                Need::Optional("`scheduler` of the scenario"),
                "Packet scheduler (MPTCP only).",
            ),
        ],
        TCP_FIELDS,
        UDP_FIELDS,
    ],
};

/// Keys of TCP and MPTCP flows that `[tcp]` may set for all.
pub(crate) const TCP_FIELDS: &[Field] = &[
    field(
        "rcv_buffer",
        Type::OneOf(BUFFER_TYPES),
        Need::Default("unlimited"),
        "Receive buffer, shared by all subflows: fixed, or `{ auto = \"6 MB\" }`, which grows with the rate as Linux tunes it.",
    ),
    field(
        "mss",
        SIZE,
        Need::Optional("1448 bytes with TCP, 1428 bytes with MPTCP"),
        "Payload of a full segment.",
    ),
    field(
        "initial_cwnd",
        PACKETS,
        Need::Default("10 packets"),
        "Initial window (RFC 6928).",
    ),
    field(
        "initial_ssthresh",
        Type::OneOf(&[
            PACKETS,
            Type::Choice(&[(
                "infinite",
                "slow start ends with the first loss, or where the algorithm says",
            )]),
        ]),
        Need::Default("infinite"),
        "Initial slow-start threshold.",
    ),
    field(
        "cwnd_clamp",
        Type::OneOf(&[PACKETS, Type::Choice(&[("none", "no bound")])]),
        Need::Default("none"),
        "Largest window.",
    ),
    field(
        "ecn",
        Type::Bool,
        Need::Default("false"),
        "Negotiate ECN (RFC 3168).",
    ),
    field(
        "pacing",
        Type::Bool,
        Need::Default("false"),
        "Pace at Linux' default gains even if the algorithm does not ask for it.",
    ),
    field(
        "slow_start_after_idle",
        Type::Bool,
        Need::Default("true"),
        "Reduce the window after an idle period of one RTO (RFC 2861).",
    ),
    field(
        "reinject",
        Type::Bool,
        Need::Default("true"),
        "Send the data of a subflow that timed out again on another one (MPTCP only).",
    ),
    field(
        "send_jitter",
        DURATION,
        Need::Default("0 s"),
        "Upper bound of a random delay before each packet sent, order kept; breaks phase locking (`\"100 us\"` does).",
    ),
];

/// Keys of UDP streams.
pub(crate) const UDP_FIELDS: &[Field] = &[
    field(
        "rate",
        RATE,
        Need::Optional("required with UDP"),
        "Rate of a UDP stream on the wire, headers included.",
    ),
    field(
        "packet",
        SIZE,
        Need::Optional("1500 bytes"),
        "IP packet size of a UDP stream.",
    ),
];

/// IP packet size of a UDP stream that does not give one: a full Ethernet payload.
pub(crate) const DEFAULT_UDP_PACKET_BYTES: u32 = 1500;

const BUFFER_TYPES: &[Type] = &[
    SIZE,
    Type::Choice(&[("unlimited", "the window never limits the sender")]),
    Type::Table(&AUTO_BUFFER),
];

/// `rcv_buffer = { auto = ... }`.
static AUTO_BUFFER: TableSpec = TableSpec {
    what: "automatic receive buffer",
    doc: "A buffer that starts at 128 KiB and grows with the measured rate.",
    groups: &[&[field(
        "auto",
        SIZE,
        Need::Required,
        "Upper bound (Linux `tcp_rmem[2]`).",
    )]],
};

/// `traffic = { ... }`.
pub(crate) static TRAFFIC: TableSpec = TableSpec {
    what: "traffic",
    doc: "Either `size`, or both `on` and `off`.",
    groups: &[&[
        field(
            "size",
            SIZE,
            Need::Optional("no end"),
            "Application bytes, then the connection closes (not UDP).",
        ),
        field(
            "on",
            SPAN,
            Need::Optional("-"),
            "Length of an active period; the first begins at the start.",
        ),
        field(
            "off",
            SPAN,
            Need::Optional("-"),
            "Length of a silent period.",
        ),
    ]],
};

/// A subflow of an MPTCP flow.
pub(crate) static SUBFLOW: TableSpec = TableSpec {
    what: "subflow",
    doc: "One subflow; the first one opens the connection at the flow's start, the others join when it is established.",
    groups: &[&[
        fixed(
            "name",
            Type::Name,
            Need::Optional("`sf1`, `sf2`, ..."),
            "Name in traces and reports.",
        ),
        fixed(
            "path",
            Type::Names,
            Need::Required,
            "Links from the sender to the receiver.",
        ),
        fixed(
            "reverse",
            Type::Names,
            Need::Optional("the same links backwards"),
            "Links of the ACKs, from the receiver to the sender.",
        ),
        field(
            "start",
            DURATION,
            Need::Optional("as soon as it can"),
            "Earliest time at which it opens; not for the first one.",
        ),
        field(
            "stop",
            DURATION,
            Need::Optional("stays"),
            "When it is removed; its data in flight go over the others.",
        ),
        field(
            "backup",
            Type::Bool,
            Need::Default("false"),
            "Used only while no other subflow is usable.",
        ),
    ]],
};
