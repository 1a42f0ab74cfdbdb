//! The scenario format, declared once: the parser, the JSON Schema and the documentation are made from these tables.

mod flow;
mod link;
mod scenario;

use crate::units::{self, Dimension, UnitError};
pub(crate) use flow::{
    ARRIVAL_LEVELS, DEFAULT_UDP_PACKET_BYTES, FLOW, LEVEL, PRIORITY, SCTP_KEYS, SIZE_LAW, SUBFLOW,
    TCP, TCP_FIELDS, TRAFFIC, UDP_FIELDS, VIDEO, VIDEO_LADDER_BPS,
};
pub(crate) use link::{
    AQM, CHANGE, CODEL_FIELDS, DEFAULT_OVERHEAD_BYTES, FQ_FIELDS, GILBERT_ELLIOTT, LINK,
    RED_FIELDS, REORDER, REVERSE, TRACE_OVERHEAD_BYTES,
};
pub(crate) use scenario::SCENARIO;

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
    /// A plain number above `above`, at most `most`.
    Number {
        above: f64,
        most: f64,
    },
    Quantity(Quantity),
    /// One of these words; each with its meaning.
    Choice(&'static [(&'static str, &'static str)]),
    /// A list of names.
    Names,
    /// A list of quantities of one kind.
    Quantities(Quantity),
    /// A list of paths; a path is a list of link names.
    Paths,
    Table(&'static TableSpec),
    /// A list of tables.
    Tables(&'static TableSpec),
    /// A table whose keys are names given by the user.
    Map(&'static TableSpec),
    /// An algorithm: its name, or a table of `name` and parameters.
    Algorithm,
    /// A packet scheduler, written the same way.
    Scheduler,
    OneOf(&'static [Self]),
}

/// Text with a unit.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Quantity {
    Plain(&'static Dimension),
    Percent,
    Queue,
    Span,
    /// A span that may be exponential.
    Period,
}

impl Quantity {
    pub(crate) fn what(self) -> &'static str {
        match self {
            Self::Plain(d) => d.what,
            Self::Percent => "a percentage",
            Self::Queue => "a queue size",
            Self::Span => "a duration or a random span",
            Self::Period => "a duration or a random period",
        }
    }

    pub(crate) fn examples(self) -> String {
        match self {
            Self::Plain(d) => format!("\"{}\"", d.example),
            Self::Percent => format!("\"{}\"", units::PERCENT_EXAMPLE),
            Self::Queue => units::QUEUE_EXAMPLES.to_string(),
            Self::Span => format!("\"1 s\" or \"{}\"", units::UNIFORM_EXAMPLE),
            Self::Period => format!(
                "\"1 s\", \"{}\" or \"{}\"",
                units::UNIFORM_EXAMPLE,
                units::EXPONENTIAL_EXAMPLE
            ),
        }
    }

    /// What to write for a number without its unit.
    pub(crate) fn for_bare_number(self, number: &str) -> String {
        match self {
            Self::Plain(d) => format!("\"{}\"", d.with_unit(number)),
            Self::Percent => format!("\"{}\"", units::percent_for_bare_number(number)),
            Self::Queue | Self::Span | Self::Period => self.examples(),
        }
    }

    pub(crate) fn check(self, text: &str) -> Result<(), UnitError> {
        match self {
            Self::Plain(d) => d.parse(text).map(drop),
            Self::Percent => units::percent(text).map(drop),
            Self::Queue => units::queue(text).map(drop),
            Self::Span => units::span(text).map(drop),
            Self::Period => units::period(text).map(drop),
        }
    }

    pub(crate) fn pattern(self) -> String {
        match self {
            Self::Plain(d) => d.pattern(),
            Self::Percent => units::percent_pattern(),
            Self::Queue => units::queue_pattern(),
            Self::Span => units::span_pattern(),
            Self::Period => units::period_pattern(),
        }
    }
}

const DURATION: Type = Type::Quantity(Quantity::Plain(&units::DURATION));
const LONG_DURATION: Type = Type::Quantity(Quantity::Plain(&units::LONG_DURATION));
const RATE: Type = Type::Quantity(Quantity::Plain(&units::RATE));
const SIZE: Type = Type::Quantity(Quantity::Plain(&units::SIZE));
const PACKETS: Type = Type::Quantity(Quantity::Plain(&units::PACKETS));
const PERCENT: Type = Type::Quantity(Quantity::Percent);
const SPAN: Type = Type::Quantity(Quantity::Span);
const PERIOD: Type = Type::Quantity(Quantity::Period);
const ARRIVALS: Type = Type::Quantity(Quantity::Plain(&units::ARRIVALS));

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

/// Copies of a link or flow made by `count`.
const MAX_COPIES: u64 = 10_000;
