//! The top level of a scenario.

use super::declaration::{DURATION, LONG_DURATION, Need, TableSpec, Type, field, fixed};
use super::flow::{FLOW, TCP};
use super::link::LINK;

const MAX_REPETITIONS: u64 = 100_000;

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
        field("duration", LONG_DURATION, Need::Required, "Simulated time."),
        field(
            "warmup",
            LONG_DURATION,
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
            "Congestion control of all flows without a `cc` of their own. `kernel:NAME` is the kernel's own algorithm of that name (kernel engine only).",
        ),
        field(
            "scheduler",
            Type::Scheduler,
            Need::Optional(
                "the engine's own: minrtt in the simulator, linger on the kernel engine",
            ),
            "Packet scheduler of all MPTCP flows without a `scheduler` of their own. The kernel engine has only the kernel's own, linger.",
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
