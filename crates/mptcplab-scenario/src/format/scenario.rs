//! Declaration of the top level of a scenario.

use super::declaration::{DURATION, LONG_DURATION, Need, TableSpec, Type, field, fixed, int};
use super::flow::{FLOW, TCP};
use super::link::LINK;

const MAX_REPETITIONS: u64 = 100_000;

const PROFILES: Type = Type::Choice(&[
    (
        "rfc",
        "one ACK per segment, growth per acknowledged segment (as in papers' formulas and ns-2)",
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
            "Name of the scenario and of its results directory.",
        ),
        fixed(
            "title",
            Type::Text,
            Need::Optional("the name"),
            "A description of one line.",
        ),
        fixed(
            "source",
            Type::Text,
            Need::Optional("empty"),
            "Source of the scenario, such as a paper and a section.",
        ),
        field("duration", LONG_DURATION, Need::Required, "Simulated time."),
        field(
            "warmup",
            LONG_DURATION,
            Need::Default("0 s"),
            "Time at the start of the run that metrics ignore.",
        ),
        fixed(
            "repetitions",
            int(1, MAX_REPETITIONS),
            Need::Default("1"),
            "Number of runs of each combination of axis values, each with its own random numbers. Repetition i of every combination sees the same random numbers.",
        ),
        fixed(
            "seed",
            int(0, i64::MAX as u64),
            Need::Default("1"),
            "Seed of all random numbers.",
        ),
        fixed(
            "sample",
            Type::OneOf(&[
                DURATION,
                Type::Choice(&[(
                    "off",
                    "only at the start, at the end of the warm-up and at the end",
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
            Need::Optional("each flow has its own"),
            "Congestion control of all flows without a `cc` of their own. `kernel:NAME` is the kernel's own algorithm of that name (only with the kernel engine).",
        ),
        field(
            "scheduler",
            Type::Scheduler,
            Need::Optional(
                "the default of the engine: minrtt in the simulator, linger in the kernel engine",
            ),
            "Packet scheduler of all MPTCP flows without a `scheduler` of their own. The kernel engine only supports linger, the kernel's own scheduler.",
        ),
        fixed(
            "nodes",
            Type::Names,
            Need::Optional("all nodes that links name"),
            "Names of the nodes. If the key is present, a link that names another node is an error.",
        ),
        fixed(
            "tcp",
            Type::Table(&TCP),
            Need::Optional("no common settings"),
            "Common settings of TCP and MPTCP flows; a flow may override each of them.",
        ),
        fixed(
            "links",
            Type::Map(&LINK),
            Need::Required,
            "The links, each a table `[links.NAME]`.",
        ),
        fixed(
            "flows",
            Type::Map(&FLOW),
            Need::Required,
            "The flows, each a table `[flows.NAME]`.",
        ),
    ]],
};
