//! Declaration of the top level of a scenario.

use super::declaration::{DURATION, LONG_DURATION, Need, TableSpec, Type, field, fixed, int, keys};
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
    groups: &[keys! {
        /// Name of the scenario and of its results directory.
        name: fixed(
            Type::Name,
            Need::Optional(
                "the file's name without `.toml`; `-` stands for what is no ASCII letter, digit or `_`, and `scenario` \
                 for a name without any"
            )
        ),
        /// A description of one line.
        title: fixed(Type::Text, Need::Optional("the name")),
        /// Source of the scenario, such as a paper and a section.
        source: fixed(Type::Text, Need::Optional("empty")),
        /// Simulated time.
        duration: field(LONG_DURATION, Need::Required),
        /// Time at the start of the run that metrics ignore.
        warmup: field(LONG_DURATION, Need::Default("0 s")),
        /// Number of runs of each combination of axis values, each with its own random numbers. Repetition i of every
        /// combination sees the same random numbers.
        repetitions: fixed(int(1, MAX_REPETITIONS), Need::Default("1")),
        /// Seed of all random numbers.
        seed: fixed(int(0, i64::MAX as u64), Need::Default("1")),
        /// Interval of the samples in the trace.
        sample: fixed(
            Type::OneOf(&[
                DURATION,
                Type::Choice(&[("off", "only at the start, at the end of the warm-up and at the end")]),
            ]),
            Need::Default("10 ms"),
        ),
        /// Whether the table `subflow` of the trace also has a row for every ACK.
        per_ack: fixed(Type::Bool, Need::Default("false")),
        /// How ACKs are sent and counted.
        profile: field(PROFILES, Need::Default("linux-acked")),
        /// Congestion control of all flows without a `cc` of their own. `kernel:NAME` is the kernel's own algorithm of
        /// that name (only with the kernel engine).
        cc: field(Type::Algorithm, Need::Optional("each flow has its own")),
        /// Packet scheduler of all MPTCP flows without a `scheduler` of their own. The kernel engine only supports
        /// linger, the kernel's own scheduler.
        scheduler: field(
            Type::Scheduler,
            Need::Optional("the default of the engine: minrtt in the simulator, linger in the kernel engine"),
        ),
        /// Names of the nodes. If the key is present, a link that names another node is an error.
        nodes: fixed(Type::Names, Need::Optional("all nodes that links name")),
        /// Common settings of TCP and MPTCP flows; a flow may override each of them.
        tcp: fixed(Type::Table(&TCP), Need::Optional("no common settings")),
        /// The links, each a table `[links.NAME]`.
        links: fixed(Type::Map(&LINK), Need::Required),
        /// The flows, each a table `[flows.NAME]`.
        flows: fixed(Type::Map(&FLOW), Need::Required),
    }],
};
