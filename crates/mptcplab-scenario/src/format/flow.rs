//! Flows: paths, traffic, congestion control, TCP and UDP settings.

use super::declaration::{
    ARRIVALS, DURATION, Field, LONG_DURATION, MAX_COPIES, Need, PACKETS, PERIOD, RATE, SIZE, SPAN,
    TableSpec, Type, field, fixed,
};
use crate::units::{self, Quantity};

/// `[tcp]`.
pub(crate) static TCP: TableSpec = TableSpec {
    what: "TCP settings",
    doc: "Settings of all TCP and MPTCP flows; a flow may set each of them itself.",
    groups: &[TCP_FIELDS],
};

/// `[flows.NAME]`.
pub(crate) static FLOW: TableSpec = TableSpec {
    what: "flow",
    doc: "One TCP connection, one MPTCP connection, one SCTP association or one UDP stream. Its way is given by exactly one of `path`, `paths` and `subflows`, or found by a `path_manager`.",
    groups: &[
        &[
            field(
                "transport",
                Type::Choice(&[
                    ("tcp", "one subflow without MPTCP"),
                    ("mptcp", "one or more subflows"),
                    (
                        "cmt-sctp",
                        "one SCTP association that sends over all its paths at once, each to a destination of its own; it brings its own congestion control and scheduling (simulator only)",
                    ),
                    ("udp", "a stream without feedback"),
                ]),
                Need::Optional("mptcp with several subflows or a `path_manager`, otherwise tcp"),
                "Protocol.",
            ),
            fixed(
                "from",
                Type::Name,
                Need::Optional("where the paths begin"),
                "Node that sends: checked against the paths; where a `path_manager` finds them they begin here.",
            ),
            fixed(
                "to",
                Type::Name,
                Need::Optional("where the paths end"),
                "Node that receives: checked against the paths; where a `path_manager` finds them they end here.",
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
                "One path per subflow, in opening order (SCTP: one per destination).",
            ),
            fixed(
                "subflows",
                Type::Tables(&SUBFLOW),
                Need::Optional("see `path`, `paths`"),
                "Subflows with more than a path, in opening order.",
            ),
            field(
                "path_manager",
                Type::Choice(&[
                    ("fullmesh", "a subflow on each path"),
                    (
                        "ndiffports",
                        "several subflows (`subflows_per_path`, at least 2) on the first path",
                    ),
                    ("default", "one subflow, on the first path"),
                ]),
                Need::Optional("a subflow on each path that is listed"),
                "Which subflows an MPTCP connection opens (not with `subflows`, which says so itself). The paths are those of `path` or `paths`; without \
                 them one from `from` to `to` for each pair of their interfaces (a link that begins at `from`, a link that ends at `to`): the one of \
                 the fewest links, then of the lowest delay, then named first; only over links with a way back.",
            ),
            field(
                "subflows_per_path",
                Type::Int { min: 1, max: 8 },
                Need::Optional("1; 2 with `path_manager = \"ndiffports\"`"),
                "Subflows on each path, all paths in turn (not with `subflows`).",
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
                    Type::Choice(&[
                        ("bulk", "always has data (UDP: always sends)"),
                        (
                            "video",
                            "`{ video = {} }`, adaptive video as it is by default",
                        ),
                    ]),
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
                "Congestion control: a name, or a table of name and parameters such as `{ name = \"ewtcp\", weight = \"fair\" }`, also written `\"ewtcp(weight=fair)\"`. `kernel:NAME` is the kernel's own algorithm of that name (kernel engine only).",
            ),
            field(
                "scheduler",
                Type::Scheduler,
                Need::Optional("`scheduler` of the scenario"),
                "Packet scheduler (MPTCP only): a name, or a table of name and parameters such as `{ name = \"minrtt\", penalise = false }`, also written `\"minrtt(penalise=false)\"`.",
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
        "Receive buffer, shared by all subflows (SCTP: set by the flow, not by `[tcp]`): fixed, or `{ auto = \"6 MB\" }`, which grows with the rate as Linux tunes it.",
    ),
    field(
        "mss",
        SIZE,
        Need::Optional("1448 bytes with TCP, 1428 bytes with MPTCP, 1452 bytes with SCTP"),
        "Payload of a full segment (SCTP: of a DATA chunk, one per packet; set by the flow, not by `[tcp]`).",
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
        "recovery",
        Type::Choice(&[
            (
                "sack",
                "as Linux: SACK, RACK, tail loss probes, proportional rate reduction, undo",
            ),
            (
                "tahoe",
                "three duplicate ACKs, then as after a timeout: window 1 and slow start",
            ),
            (
                "reno",
                "fast retransmit and fast recovery, which the first new ACK ends (RFC 5681)",
            ),
            (
                "newreno",
                "fast recovery until all that was in flight is acknowledged (RFC 6582)",
            ),
        ]),
        Need::Default("sack"),
        "How losses are found and repaired. All but `sack` are the textbooks': no SACK, no probes, no undo (simulator only).",
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
        "stale_after",
        Type::Int { min: 1, max: 255 },
        Need::Optional(
            "1 in the simulator, 4 with the scheduler `linger`; the kernel engine leaves the kernel's own number, 4",
        ),
        "Timeouts in a row, without progress, after which a subflow carries nothing new while another one works, until it is acknowledged again \
         (MPTCP only; Linux' `net.mptcp.stale_loss_cnt`). At that point all its data go over the others; each timeout before it sends only its \
         oldest segment there. With `linger` as in Linux: looks of the connection's own timer, one more than this, at which nothing \
         new was heard of it; then all that the connection has outstanding is sent again, and before it the oldest 32 KiB on a \
         subflow that is idle.",
    ),
    field(
        "tso",
        Type::Bool,
        Need::Optional("`false` in the simulator; a kernel does as it does"),
        "Segments leave in groups as in Linux (TSO sizing and deferral), each still a packet of its own; the last of a group carries PSH, and \
         the receiver acknowledges it as soon as the application has read everything, as Linux does since 6.6. With MPTCP only with the \
         scheduler `linger`. The kernel engine refuses `false`.",
    ),
    field(
        "comp_sack",
        Type::Bool,
        Need::Optional("`false` in the simulator; a kernel does as it does"),
        "After three segments beyond a gap, which are acknowledged at once, the receiver's ACKs wait for a twentieth of the path's round-trip \
         time, at most a millisecond, and one tells of all that came meanwhile, as in Linux since 4.18. The kernel engine refuses `false`.",
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
    doc: "One of: `size`, one transfer; `size` and `arrivals`, transfers at random times; `size` and `gap`, one transfer \
          after the other; `on` and `off`; `video`. Each of several transfers opens a connection of its own, with all \
          subflows of the flow. Sizes, times and gaps are drawn from the flow's own random stream.",
    groups: &[&[
        field(
            "size",
            Type::OneOf(&[SIZE, Type::Table(&SIZE_LAW)]),
            Need::Optional("no end"),
            "Application bytes, then the connection closes (not UDP).",
        ),
        field(
            "arrivals",
            Type::OneOf(&[ARRIVALS, Type::Table(&ARRIVAL_LEVELS)]),
            Need::Optional("one transfer"),
            "A transfer of `size` begins at each arrival of a Poisson process of this rate, from the flow's start to its stop.",
        ),
        field(
            "gap",
            PERIOD,
            Need::Optional("one transfer"),
            "A further transfer of `size` begins so long after the one before was complete.",
        ),
        field(
            "repeat",
            Type::Int {
                min: 1,
                max: 1_000_000,
            },
            Need::Optional("until the flow stops"),
            "Number of transfers with `gap`.",
        ),
        field(
            "on",
            PERIOD,
            Need::Optional("-"),
            "Length of an active period; the first begins at the start.",
        ),
        field(
            "off",
            PERIOD,
            Need::Optional("-"),
            "Length of a silent period.",
        ),
        field(
            "video",
            Type::Table(&VIDEO),
            Need::Optional("-"),
            "Video in chunks, asked for one by one, whose encoding follows the measured throughput (not UDP).",
        ),
    ]],
};

/// `size = { law = ... }`.
pub(crate) static SIZE_LAW: TableSpec = TableSpec {
    what: "law of sizes",
    doc: "Random sizes, e.g. `{ law = \"pareto\", mean = \"200 kB\", shape = 1.5 }`; with `arrivals` or `gap`.",
    groups: &[&[
        fixed(
            "law",
            Type::Choice(&[
                ("exponential", "exponential sizes"),
                (
                    "pareto",
                    "heavy-tailed sizes: P(size > x) = (min / x)^shape, with min = mean (shape - 1) / shape",
                ),
            ]),
            Need::Required,
            "Which one.",
        ),
        field(
            "mean",
            SIZE,
            Need::Required,
            "Mean size, before the cut at `most`.",
        ),
        field(
            "shape",
            Type::Number {
                above: 1.0,
                most: 10.0,
            },
            Need::Default("1.5"),
            "Exponent of the Pareto law's tail; up to 2 the variance is infinite.",
        ),
        field(
            "most",
            SIZE,
            Need::Default("1 GB"),
            "Larger sizes are cut to this, which lowers the mean a little: by less than 1 % at the defaults and a mean of 200 kB.",
        ),
    ]],
};

/// `arrivals = { levels = [...] }`.
pub(crate) static ARRIVAL_LEVELS: TableSpec = TableSpec {
    what: "alternating load",
    doc: "A Poisson process whose rate goes through levels, over and over, from the flow's start on.",
    groups: &[&[fixed(
        "levels",
        Type::Tables(&LEVEL),
        Need::Required,
        "The levels in their order.",
    )]],
};

/// An entry of `levels`.
pub(crate) static LEVEL: TableSpec = TableSpec {
    what: "level",
    doc: "A level of an alternating load, e.g. `{ rate = \"60 / s\", lasts = \"60 s\" }`.",
    groups: &[&[
        fixed("rate", ARRIVALS, Need::Required, "Rate of arrivals."),
        fixed("lasts", LONG_DURATION, Need::Required, "How long it lasts."),
    ]],
};

/// `traffic = { video = { ... } }`.
pub(crate) static VIDEO: TableSpec = TableSpec {
    what: "video",
    doc: "The next chunk is asked for when the last one is there and the buffer has room for it; the request takes the \
          way back to the sender. Its encoding is the best one whose rate is at most `safety` times the estimated \
          throughput, or the lowest. The video plays from the first complete chunk on, and stands still while the \
          buffer is empty.",
    groups: &[&[
        fixed(
            "ladder",
            Type::Quantities(Quantity::Plain(&units::RATE)),
            Need::Optional("100, 250, 500 kbit/s, 1, 2.5, 4.5 Mbit/s"),
            "Rates at which every chunk is encoded.",
        ),
        field(
            "max_rate",
            RATE,
            Need::Default("2.5 Mbit/s"),
            "Rates of the ladder above this are left out: what the screen can show (2.5 Mbit/s: a phone, 720p).",
        ),
        field(
            "chunk",
            DURATION,
            Need::Default("5 s"),
            "Playing time of a chunk.",
        ),
        field(
            "buffer",
            DURATION,
            Need::Default("30 s"),
            "Playing time that the buffer holds; at least one chunk.",
        ),
        field(
            "safety",
            Type::Fraction,
            Need::Default("0.8"),
            "Share of the estimated throughput that the encoding may need.",
        ),
        field(
            "weight",
            Type::Fraction,
            Need::Default("0.3"),
            "Weight of the newest chunk's throughput in the estimate, a moving average.",
        ),
        field(
            "first_estimate",
            RATE,
            Need::Optional("0.4 times the lowest rate on the first path"),
            "The estimate before the first chunk.",
        ),
    ]],
};

/// The ladder of a video that has none of its own, in bit/s (spec/scenarios.md App. B).
pub(crate) const VIDEO_LADDER_BPS: [u64; 6] =
    [100_000, 250_000, 500_000, 1_000_000, 2_500_000, 4_500_000];

/// Keys of TCP and MPTCP flows that SCTP flows have, too.
pub(crate) const SCTP_KEYS: [&str; 2] = ["rcv_buffer", "mss"];

/// A subflow of an MPTCP flow, or a destination of an SCTP association.
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
        fixed(
            "priority",
            Type::Tables(&PRIORITY),
            Need::Optional("stays what `backup` says"),
            "Changes of the priority (MP_PRIO) in time order, e.g. `[{ at = \"5 s\", backup = true }]`.",
        ),
    ]],
};

/// An entry of a subflow's `priority`.
pub(crate) static PRIORITY: TableSpec = TableSpec {
    what: "change of priority",
    doc: "The subflow becomes a backup or a regular one, as both ends agree on with MP_PRIO (RFC 8684 section 3.3.8). The option itself costs \
          nothing: the sender of the data changes its own mind.",
    groups: &[&[
        field("at", LONG_DURATION, Need::Required, "When."),
        field(
            "backup",
            Type::Bool,
            Need::Required,
            "`true`: a backup from then on; `false`: a regular subflow.",
        ),
    ]],
};
