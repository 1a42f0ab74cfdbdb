//! Flows: paths, traffic, congestion control, TCP and UDP settings.

use super::{
    DURATION, Field, LONG_DURATION, MAX_COPIES, Need, PACKETS, RATE, SCHEDULERS, SIZE, SPAN,
    TableSpec, Type, field, fixed,
};

/// `[tcp]`.
pub(crate) static TCP: TableSpec = TableSpec {
    what: "TCP settings",
    doc: "Settings of all TCP and MPTCP flows; a flow may set each of them itself.",
    groups: &[TCP_FIELDS],
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
                LONG_DURATION,
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
        "Upper bound of a random delay before each packet sent, order kept; breaks phase locking if it is about the time a packet takes on the bottleneck, or more.",
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
            LONG_DURATION,
            Need::Optional("as soon as it can"),
            "Earliest time at which it opens; not for the first one.",
        ),
        field(
            "stop",
            LONG_DURATION,
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
