//! The types of declarations: tables and keys, with their value types and defaults.

use crate::units::{self, Quantity};

/// A table of the format.
#[derive(Debug)]
pub(crate) struct TableSpec {
    /// The kind of thing that it describes, for headings and messages: "link".
    pub(crate) what: &'static str,
    pub(crate) doc: &'static str,
    /// Groups of keys. Several tables may share a group.
    pub(crate) groups: &'static [&'static [Field]],
}

/// Kinds of tables of which there is no "one".
const UNCOUNTED: [&str; 4] = ["TCP settings", "queue management", "reordering", "traffic"];

impl TableSpec {
    /// One of its kind: "a link", "an alternating load", "traffic".
    pub(crate) fn one(&self) -> String {
        let article = match self.what {
            what if UNCOUNTED.contains(&what) => return what.into(),
            what if what.starts_with(['a', 'e', 'i', 'o', 'u']) => "an",
            _ => "a",
        };
        format!("{article} {}", self.what)
    }

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

/// Whether a key has to be present, and what holds without it.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Need {
    Required,
    /// A description of what holds without it.
    Optional(&'static str),
    /// The default, as it would be written.
    Default(&'static str),
}

/// The type of a value.
#[derive(Debug)]
pub(crate) enum Type {
    Text,
    /// The name of a scenario, node, link, flow or subflow.
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
    /// One of these words, each given with its meaning.
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
    /// A packet scheduler, written in the same way.
    Scheduler,
    OneOf(&'static [Self]),
}

pub(super) const DURATION: Type = Type::Quantity(Quantity::Plain(&units::DURATION));

pub(super) const LONG_DURATION: Type = Type::Quantity(Quantity::Plain(&units::LONG_DURATION));

pub(super) const RATE: Type = Type::Quantity(Quantity::Plain(&units::RATE));

pub(super) const SIZE: Type = Type::Quantity(Quantity::Plain(&units::SIZE));

pub(super) const PACKETS: Type = Type::Quantity(Quantity::Plain(&units::PACKETS));

pub(super) const PERCENT: Type = Type::Quantity(Quantity::Percent);

pub(super) const SPAN: Type = Type::Quantity(Quantity::Span(&units::DURATION));
pub(super) const LONG_SPAN: Type = Type::Quantity(Quantity::Span(&units::LONG_DURATION));

pub(super) const PERIOD: Type = Type::Quantity(Quantity::Period);

pub(super) const ARRIVALS: Type = Type::Quantity(Quantity::Plain(&units::ARRIVALS));

pub(super) const fn int(min: u64, max: u64) -> Type {
    Type::Int { min, max }
}

pub(super) const fn number(above: f64, most: f64) -> Type {
    Type::Number { above, most }
}

/// Keys of a table, each declared as `key: field(type, need)`, or as `key: fixed(type, need)` if a list of values makes no
/// sweep axis. The doc comment of a key is its text in the reference page and in the JSON Schema.
macro_rules! keys {
    ($($(#[doc = $doc:literal])+ $key:ident: $kind:ident($ty:expr, $need:expr $(,)?),)*) => {
        &[$($kind(stringify!($key), $ty, $need, concat!($($doc),+).trim_ascii())),*]
    };
}
pub(super) use keys;

/// A key whose value may be a sweep axis.
pub(super) const fn field(key: &'static str, ty: Type, need: Need, doc: &'static str) -> Field {
    Field {
        key,
        ty,
        need,
        sweep: true,
        doc,
    }
}

/// A key with one value for all runs.
pub(super) const fn fixed(key: &'static str, ty: Type, need: Need, doc: &'static str) -> Field {
    Field {
        sweep: false,
        ..field(key, ty, need, doc)
    }
}

/// Largest number of copies of a link or flow.
pub(super) const MAX_COPIES: u64 = 10_000;
