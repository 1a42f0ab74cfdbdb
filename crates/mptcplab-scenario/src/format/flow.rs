//! Declarations of flows: paths, traffic, congestion control, settings of TCP and UDP.

use super::declaration::{
    ARRIVALS, DURATION, Field, LONG_DURATION, LONG_SPAN, MAX_COPIES, Need, PACKETS, PERIOD, RATE,
    SIZE, TableSpec, Type, field, fixed, int, keys, number,
};
use crate::units::{self, Quantity};

/// `[tcp]`.
pub(crate) static TCP: TableSpec = TableSpec {
    what: "TCP settings",
    doc: "Common settings of TCP and MPTCP flows; a flow may override each of them.",
    groups: &[TCP_FIELDS],
};

/// `[flows.NAME]`.
pub(crate) static FLOW: TableSpec = TableSpec {
    what: "flow",
    doc: "A TCP connection, an MPTCP connection, an SCTP association or a UDP stream. Exactly one of `path`, `paths` and `subflows` gives its paths, unless a `path_manager` finds them.",
    groups: &[
        keys! {
            /// Transport protocol.
            transport: field(
                Type::Choice(&[
                    ("tcp", "one subflow without MPTCP"),
                    ("mptcp", "one or more subflows"),
                    (
                        "cmt-sctp",
                        "an SCTP association that sends on all its paths at once, each to a destination of its own, with its own congestion control and scheduling (only in the simulator)",
                    ),
                    ("udp", "a stream without feedback"),
                ]),
                Need::Optional("mptcp with several subflows or a `path_manager`, otherwise tcp"),
            ),
            /// Sending node. Given paths must begin here, and so do the paths that a `path_manager` finds.
            from: fixed(Type::Name, Need::Optional("the node where the paths begin")),
            /// Receiving node. Given paths must end here, and so do the paths that a `path_manager` finds.
            to: fixed(Type::Name, Need::Optional("the node where the paths end")),
            /// The links of the only path, e.g. `["B1", "e1"]`. `X~` is the reverse direction of link X. `X-{}` is the
            /// copy of X with this flow's number, modulo the number of copies.
            path: fixed(Type::Names, Need::Optional("see `paths`, `subflows`")),
            /// One path per subflow in opening order; with SCTP, one path per destination.
            paths: fixed(Type::Paths, Need::Optional("see `path`, `subflows`")),
            /// Subflows with further settings, in opening order.
            subflows: fixed(Type::Tables(&SUBFLOW), Need::Optional("see `path`, `paths`")),
            /// Which subflows an MPTCP connection opens; not together with `subflows`. The paths are those of `path` or
            /// `paths`. Without these keys, there is a path for each pair of interfaces, that is, of a link that begins
            /// at `from` and a link that ends at `to`: the path with the fewest links, then with the lowest delay, then
            /// the one named first in the file. Only links with a reverse direction are used.
            path_manager: field(
                Type::Choice(&[
                    ("fullmesh", "a subflow on each path"),
                    ("ndiffports", "several subflows (`subflows_per_path`, at least 2) on the first path"),
                    ("default", "one subflow, on the first path"),
                ]),
                Need::Optional("a subflow on each path that is given"),
            ),
            /// Number of subflows on each path, opened on all paths in turn; not together with `subflows`.
            subflows_per_path: field(int(1, 8), Need::Optional("1; 2 with `path_manager = \"ndiffports\"`")),
            /// Number of flows of the same kind, named `NAME-1` ... `NAME-n`.
            count: fixed(int(1, MAX_COPIES), Need::Optional("one flow, without a number")),
            /// Time at which the flow starts.
            start: field(LONG_SPAN, Need::Default("0 s")),
            /// Time at which the application stops sending.
            stop: field(LONG_DURATION, Need::Optional("the end of the run")),
            /// Traffic of the application.
            traffic: field(
                Type::OneOf(&[
                    Type::Choice(&[
                        ("bulk", "unlimited data (UDP: sends all the time)"),
                        ("video", "`{ video = {} }`, adaptive video with its defaults"),
                    ]),
                    Type::Table(&TRAFFIC),
                ]),
                Need::Default("bulk"),
            ),
        },
        keys! {
            /// Congestion control: a name, or a table with a name and parameters such as
            /// `{ name = "ewtcp", weight = "fair" }`, also written `"ewtcp(weight=fair)"`. `kernel:NAME` is the
            /// kernel's own algorithm of that name (only with the kernel engine).
            cc: field(Type::Algorithm, Need::Optional("`cc` of the scenario")),
            /// Packet scheduler (MPTCP only): a name, or a table with a name and parameters such as
            /// `{ name = "minrtt", penalise = false }`, also written `"minrtt(penalise=false)"`.
            scheduler: field(Type::Scheduler, Need::Optional("`scheduler` of the scenario")),
        },
        TCP_FIELDS,
        UDP_FIELDS,
    ],
};

/// Keys of TCP and MPTCP flows that `[tcp]` may set for all flows.
pub(crate) const TCP_FIELDS: &[Field] = keys! {
    /// Receive buffer, shared by all subflows: a fixed size, or `{ auto = "6 MB" }`, which grows with the rate as in
    /// Linux. SCTP flows set it themselves; `[tcp]` does not apply to them.
    rcv_buffer: field(Type::OneOf(BUFFER_TYPES), Need::Default("unlimited")),
    /// Payload of a full segment; with SCTP, of a DATA chunk, one per packet. SCTP flows set it themselves; `[tcp]`
    /// does not apply to them.
    mss: field(SIZE, Need::Optional("1448 bytes with TCP, 1428 bytes with MPTCP, 1452 bytes with SCTP")),
    /// Initial window (RFC 6928).
    initial_cwnd: field(PACKETS, Need::Default("10 packets")),
    /// Initial slow-start threshold.
    initial_ssthresh: field(
        Type::OneOf(&[
            PACKETS,
            Type::Choice(&[("infinite", "slow start ends with the first loss, or when the algorithm ends it")]),
        ]),
        Need::Default("infinite"),
    ),
    /// Upper bound of the window.
    cwnd_clamp: field(Type::OneOf(&[PACKETS, Type::Choice(&[("none", "no upper bound")])]), Need::Default("none")),
    /// Whether ECN is negotiated (RFC 3168).
    ecn: field(Type::Bool, Need::Default("false")),
    /// How losses are detected and repaired. All values but `sack` are the classic recoveries without SACK, probes and
    /// undo (only in the simulator).
    recovery: field(
        Type::Choice(&[
            ("sack", "as in Linux: SACK, RACK, tail loss probes, proportional rate reduction, undo"),
            ("tahoe", "after three duplicate ACKs as after a timeout: slow start from a window of 1"),
            ("reno", "fast retransmit, and fast recovery until the first new ACK (RFC 5681)"),
            ("newreno", "fast recovery until everything that was in flight is acknowledged (RFC 6582)"),
        ]),
        Need::Default("sack"),
    ),
    /// Whether packets are paced with Linux' default gains even if the algorithm does not ask for pacing.
    pacing: field(Type::Bool, Need::Default("false")),
    /// Whether the window is reduced after an idle period of one RTO (RFC 2861).
    slow_start_after_idle: field(Type::Bool, Need::Default("true")),
    /// Whether the data of a subflow that timed out is sent again on another subflow (MPTCP only).
    reinject: field(Type::Bool, Need::Default("true")),
    /// Number of timeouts in a row without progress after which a subflow is stale (MPTCP only; Linux'
    /// `net.mptcp.stale_loss_cnt`). A stale subflow gets no new data while another one works, until it receives an ACK
    /// again. When it becomes stale, all its data is sent again on the others; each timeout before that only sends its
    /// oldest segment there. With `linger`, as in Linux, the number counts expiries of the connection's own timer
    /// without an ACK on the subflow (in the simulator, without one that acknowledges data): after one more than this
    /// number, everything that the connection has outstanding is sent again, and before that the oldest 32 KiB on an
    /// idle subflow.
    stale_after: field(
        int(1, 255),
        Need::Optional(
            "1 in the simulator, or 4 with the scheduler `linger`; the kernel engine keeps the kernel's default, 4",
        ),
    ),
    /// Whether segments leave in bursts as in Linux (TSO sizing and deferral), each as a packet of its own. The last
    /// segment of a burst has the flag PSH, and the receiver acknowledges it as soon as the application has read
    /// everything, as Linux does since 6.6. MPTCP needs the scheduler `linger` for it. The kernel engine refuses
    /// `false`.
    tso: field(Type::Bool, Need::Optional("`false` in the simulator; the kernel's own behaviour in the kernel engine")),
    /// Whether a segment that is not full waits until earlier ones that were not full are acknowledged (Nagle's algorithm
    /// with Minshall's change, as in Linux); `false` is the socket option `TCP_NODELAY`, which flows with `requests`
    /// or `messages` always have. In the simulator, where all segments are full, the last segment of an MPTCP burst waits
    /// with `tso` if the burst ends within a segment in Linux, unless the receive buffer has a fixed size.
    nagle: field(Type::Bool, Need::Default("true")),
    /// Whether the receiver compresses ACKs as in Linux since 4.18. The first three segments beyond a gap are
    /// acknowledged at once; after them an ACK waits for a third of the path's round-trip time (since Linux 6.19;
    /// a twentieth with `like = "linux-6.18"`), at most a millisecond, and acknowledges everything that arrived
    /// meanwhile. The kernel engine refuses `false`.
    comp_sack: field(
        Type::Bool,
        Need::Optional("`false` in the simulator; the kernel's own behaviour in the kernel engine"),
    ),
    /// Kernel whose behaviour the simulator has where a flow does not say otherwise.
    like: field(
        Type::Choice(&[
            ("none", "every setting has its own default"),
            (
                "linux-6.18",
                "the scheduler `linger`, `tso` and `comp_sack`, which is what the kernel engine has on Linux 6.6 and newer, \
                 `rcv_buffer = { auto = \"32 MiB\" }`, the default of Linux since 6.16, a timeout of an unanswered \
                 SYN that begins to double with the sixth, as it does since Linux 6.5, and MPTCP's options with 64-bit \
                 numbers: a data packet is 76 bytes longer than its payload and an ACK takes 64 (72 and 60 otherwise), \
                 which leaves room for one SACK block (two otherwise)",
            ),
            (
                "linux-7.3",
                "the same, but `comp_sack` is that of Linux 6.19; the automatic receive buffer of an MPTCP connection grows with what the application reads in \
                 the shortest of the last five round-trip times that its subflows had, and not with what waits out of order; \
                 of the receive buffer of such a connection, half of the memory is announced at first, and then what full \
                 segments can use of it",
            ),
        ]),
        Need::Default("none"),
    ),
    /// Upper bound of a random delay before each packet is sent; the order is kept. Without it, the phase of a full
    /// drop-tail queue decides whose packets are dropped. The kernel engine, whose noise is real, refuses all durations
    /// but `"0 s"`, and the run record has the bound of every subflow.
    send_jitter: field(
        Type::OneOf(&[
            DURATION,
            Type::Choice(&[(
                "auto",
                "ten times what a full packet takes on the slowest link of the subflow's path, but at most an eighth of \
                 the path's base RTT unless a packet takes longer than that; none in the kernel and the fluid engine",
            )]),
        ]),
        Need::Default("auto"),
    ),
    /// Time that the hosts at both ends take, together, to process a packet and answer it: a constant delay before each
    /// data packet is sent, to which `send_jitter` is added. A few microseconds decide in which phase packets reach a full
    /// drop-tail queue; `agree` sets what a kernel's hosts took. The kernel engine, whose hosts take time, refuses all
    /// durations but `"0 s"`.
    host_delay: field(DURATION, Need::Default("0 s")),
};

/// Keys of UDP streams.
pub(crate) const UDP_FIELDS: &[Field] = keys! {
    /// Rate of a UDP stream on the wire, including headers.
    rate: field(RATE, Need::Optional("required with UDP")),
    /// IP packet size of a UDP stream.
    packet: field(SIZE, Need::Optional("1500 bytes")),
};

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
    doc: "A receive buffer that starts at 128 KiB and grows with the measured rate.",
    groups: &[keys! {
        /// Upper bound (Linux `tcp_rmem[2]`).
        auto: field(SIZE, Need::Required),
    }],
};

/// `traffic = { ... }`.
pub(crate) static TRAFFIC: TableSpec = TableSpec {
    what: "traffic",
    doc: "One of these combinations of keys: `size`, for one transfer; `size` and `arrivals`, for transfers at random times; \
          `size` and `gap`, for one transfer after the other; `on` and `off`; `video`; `requests`; `messages`. With several \
          transfers each opens a connection of its own with all subflows of the flow; requests and messages share one lasting \
          connection. Sizes, times and gaps are drawn from the flow's own random stream.",
    groups: &[keys! {
        /// Application bytes, after which the connection closes (not UDP).
        size: field(Type::OneOf(&[SIZE, Type::Table(&SIZE_LAW)]), Need::Optional("no end")),
        /// A transfer of `size` begins at each arrival of a Poisson process with this rate, from the flow's start to
        /// its stop.
        arrivals: field(Type::OneOf(&[ARRIVALS, Type::Table(&ARRIVAL_LEVELS)]), Need::Optional("one transfer")),
        /// Time from the end of a transfer of `size` to the beginning of the next.
        gap: field(PERIOD, Need::Optional("one transfer")),
        /// Number of transfers, with `gap`.
        repeat: field(int(1, 1_000_000), Need::Optional("until the flow stops")),
        /// Length of an active period; the first one begins at the flow's start.
        on: field(PERIOD, Need::Optional("-")),
        /// Length of a silent period.
        off: field(PERIOD, Need::Optional("-")),
        /// Video in chunks, which are requested one by one and whose encoding follows the measured throughput (not
        /// UDP).
        video: field(Type::Table(&VIDEO), Need::Optional("-")),
        /// Requests of the receiving node and responses of the sending node on one lasting connection (TCP and MPTCP
        /// only).
        requests: field(Type::Table(&REQUESTS), Need::Optional("-")),
        /// Small messages of the sending node on one lasting connection, answered or just delivered (TCP and MPTCP
        /// only).
        messages: field(Type::Table(&MESSAGES), Need::Optional("-")),
    }],
};

/// `traffic = { requests = { ... } }`.
pub(crate) static REQUESTS: TableSpec = TableSpec {
    what: "flow of requests",
    doc: "Requests and responses on one connection that lasts, as between a web client that keeps its connection alive and its server, \
          or between the ends of a remote procedure call (RPC). The flow's receiving node (`to`) is the client: it sends \
          requests on the reverse path. The sending node (`from`) is the server, which writes the response as soon as it has the \
          whole request; responses keep the order of the requests. The response time is the time from the request to the \
          last byte of its response at the client. Exactly one of `think` and `arrivals` says when requests are sent: the \
          first one when the connection is established, or after the first random time. The server opens the \
          connection at the flow's start. Both ends send without Nagle's algorithm (`TCP_NODELAY`). Requests are controlled by \
          Reno; `cc` is the server's.",
    groups: &[keys! {
        /// Size of a response.
        response: field(Type::OneOf(&[SIZE, Type::Table(&SIZE_LAW)]), Need::Required),
        /// Size of a request.
        request: field(Type::OneOf(&[SIZE, Type::Table(&SIZE_LAW)]), Need::Default("400 bytes")),
        /// Time from the end of a response to the next request (a closed loop: one request at a time).
        think: field(PERIOD, Need::Optional("see `arrivals`")),
        /// Requests are sent at the arrivals of a Poisson process with this rate, whether or not earlier ones have
        /// their responses (an open loop: requests and responses may queue).
        arrivals: field(Type::OneOf(&[ARRIVALS, Type::Table(&ARRIVAL_LEVELS)]), Need::Optional("see `think`")),
        /// Number of requests.
        repeat: field(int(1, 1_000_000), Need::Optional("until the flow stops")),
        /// A response that takes longer than this is late; the share of late responses is a metric.
        bound: field(DURATION, Need::Optional("none is late")),
    }],
};

/// `traffic = { messages = { ... } }`.
pub(crate) static MESSAGES: TableSpec = TableSpec {
    what: "flow of messages",
    doc: "Small messages on one connection that lasts, as of a terminal, a game or the signalling of a call. The flow's sending node \
          (`from`) sends them. With `answer`, the receiving node (`to`) answers each as soon as it has all of it, and the \
          delay of a message is the time until the last byte of its answer is back (an echo). Without, the delay is the time \
          until its last byte is delivered. Messages and answers keep their order, so that one that is lost \
          or takes a slow subflow holds up those behind it. Exactly one of `interval` and `arrivals` says when messages are \
          sent; none waits for earlier ones. Both ends send without Nagle's algorithm (`TCP_NODELAY`). Answers are controlled \
          by Reno; `cc` is that of the messages.",
    groups: &[keys! {
        /// Size of a message.
        size: field(Type::OneOf(&[SIZE, Type::Table(&SIZE_LAW)]), Need::Required),
        /// Size of an answer.
        answer: field(Type::OneOf(&[SIZE, Type::Table(&SIZE_LAW)]), Need::Optional("messages are not answered")),
        /// Time from one message to the next; the first one is sent when the connection is established.
        interval: field(PERIOD, Need::Optional("see `arrivals`")),
        /// Messages are sent at the arrivals of a Poisson process with this rate.
        arrivals: field(Type::OneOf(&[ARRIVALS, Type::Table(&ARRIVAL_LEVELS)]), Need::Optional("see `interval`")),
        /// Number of messages.
        repeat: field(int(1, 1_000_000), Need::Optional("until the flow stops")),
        /// A message whose delay is longer is late, and the share of late messages is a metric. The default is what R. B.
        /// Miller asks of the echo of a key press ("Response time in man-computer conversational transactions", 1968: 0.1
        /// to 0.2 s).
        bound: field(DURATION, Need::Default("100 ms")),
    }],
};

/// `size = { law = ... }`.
pub(crate) static SIZE_LAW: TableSpec = TableSpec {
    what: "distribution of sizes",
    doc: "Random sizes, e.g. `{ law = \"pareto\", mean = \"200 kB\", shape = 1.5 }`, together with `arrivals` or `gap`.",
    groups: &[keys! {
        /// The probability distribution.
        law: fixed(
            Type::Choice(&[
                ("exponential", "exponential sizes"),
                ("pareto", "heavy-tailed sizes: P(size > x) = (min / x)^shape, with min = mean (shape - 1) / shape"),
            ]),
            Need::Required,
        ),
        /// Mean size before truncation at `most`.
        mean: field(SIZE, Need::Required),
        /// Exponent of the tail of the Pareto distribution; up to 2 the variance is infinite.
        shape: field(number(1.0, 10.0), Need::Default("1.5")),
        /// Largest size. Larger ones are set to this value, which lowers the mean a little: by less than 1 % with the
        /// defaults and a mean of 200 kB.
        most: field(SIZE, Need::Default("1 GB")),
    }],
};

/// `arrivals = { levels = [...] }`.
pub(crate) static ARRIVAL_LEVELS: TableSpec = TableSpec {
    what: "alternating load",
    doc: "A Poisson process whose rate cycles through levels from the flow's start on.",
    groups: &[keys! {
        /// The levels in order.
        levels: fixed(Type::Tables(&LEVEL), Need::Required),
    }],
};

/// An entry of `levels`.
pub(crate) static LEVEL: TableSpec = TableSpec {
    what: "level",
    doc: "A level of an alternating load, e.g. `{ rate = \"60 / s\", lasts = \"60 s\" }`.",
    groups: &[keys! {
        /// Rate of arrivals.
        rate: fixed(ARRIVALS, Need::Required),
        /// Duration of the level.
        lasts: fixed(LONG_DURATION, Need::Required),
    }],
};

/// `traffic = { video = { ... } }`.
pub(crate) static VIDEO: TableSpec = TableSpec {
    what: "video",
    doc: "Adaptive video. The client requests the next chunk when the last one is complete and the buffer has space for it; the \
          request travels to the sender on the reverse path. The encoding is the best one whose rate is at most `safety` times \
          the estimated throughput, or else the lowest. Playback begins with the first complete chunk and stalls while the \
          buffer is empty.",
    groups: &[keys! {
        /// Rates at which each chunk is encoded.
        ladder: fixed(
            Type::Quantities(Quantity::Plain(&units::RATE)),
            Need::Optional("100, 250, 500 kbit/s, 1, 2.5, 4.5 Mbit/s"),
        ),
        /// Largest rate of the ladder that is used, because the screen shows no better encoding (2.5 Mbit/s: a phone,
        /// 720p).
        max_rate: field(RATE, Need::Default("2.5 Mbit/s")),
        /// Playing time of a chunk.
        chunk: field(DURATION, Need::Default("5 s")),
        /// Capacity of the buffer in playing time; at least one chunk.
        buffer: field(DURATION, Need::Default("30 s")),
        /// Share of the estimated throughput that an encoding may need.
        safety: field(Type::Fraction, Need::Default("0.8")),
        /// Weight of the newest chunk's throughput in the estimate, which is an exponentially weighted moving average.
        weight: field(Type::Fraction, Need::Default("0.3")),
        /// The estimate before the first chunk.
        first_estimate: field(RATE, Need::Optional("0.4 times the lowest rate on the first path")),
    }],
};

/// The default ladder of a video, in bit/s.
pub(crate) const VIDEO_LADDER_BPS: [u64; 6] =
    [100_000, 250_000, 500_000, 1_000_000, 2_500_000, 4_500_000];

/// Keys of TCP and MPTCP flows that SCTP flows also have.
pub(crate) const SCTP_KEYS: [&str; 2] = ["rcv_buffer", "mss"];

/// A subflow of an MPTCP flow, or a destination of an SCTP association.
pub(crate) static SUBFLOW: TableSpec = TableSpec {
    what: "subflow",
    doc: "A subflow. The first one opens the connection at the flow's start; the others join when it is established.",
    groups: &[keys! {
        /// Name in traces and reports.
        name: fixed(Type::Name, Need::Optional("`sf1`, `sf2`, ...")),
        /// Links from the sender to the receiver.
        path: fixed(Type::Names, Need::Required),
        /// Links that the ACKs take from the receiver to the sender.
        reverse: fixed(Type::Names, Need::Optional("the same links in reverse")),
        /// Earliest time at which the subflow opens; not for the first one.
        start: field(LONG_DURATION, Need::Optional("as soon as the connection is established")),
        /// Time at which the subflow is removed; its data in flight is sent again on the others.
        stop: field(LONG_DURATION, Need::Optional("it is not removed")),
        /// Whether the subflow is used only while no other one is usable.
        backup: field(Type::Bool, Need::Default("false")),
        /// Changes of the priority (MP_PRIO) in time order, e.g. `[{ at = "5 s", backup = true }]`.
        priority: fixed(Type::Tables(&PRIORITY), Need::Optional("the priority is always that of `backup`")),
    }],
};

/// An entry of a subflow's `priority`.
pub(crate) static PRIORITY: TableSpec = TableSpec {
    what: "change of priority",
    doc: "The subflow becomes a backup or a regular one, which the ends tell each other with MP_PRIO (RFC 8684 section 3.3.8). The option itself is \
          not simulated: the sender of the data changes the priority.",
    groups: &[keys! {
        /// Time of the change since the start of the run.
        at: field(LONG_DURATION, Need::Required),
        /// `true` for a backup, `false` for a regular subflow.
        backup: field(Type::Bool, Need::Required),
    }],
};
