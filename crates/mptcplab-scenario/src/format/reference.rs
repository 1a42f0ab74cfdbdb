//! The reference page of the scenario format, generated from the declarations.

use super::declaration::{Field, Need, TableSpec, Type};
use super::scenario::SCENARIO;
use crate::error::join;
use crate::units::{self, Quantity};
use std::fmt::Write;

/// The reference page in Markdown.
pub fn reference_page() -> String {
    let mut out = String::from(INTRODUCTION);
    out.push_str(&unit_table());
    out.push_str(SWEEPS);
    section(&mut out, &SCENARIO, "Top level", "");
    let mut seen: Vec<&'static str> = Vec::new();
    nested(&mut out, &SCENARIO, "", &mut seen);
    out
}

const INTRODUCTION: &str = "\
# The scenario format

<!-- Generated from crates/mptcplab-scenario by `mptcplab docs`; do not edit. -->

A scenario is a TOML file that describes a network, the flows on it, and the duration and the number of runs. The parser
is strict: an unknown key, a wrong unit or a path whose links do not join is an error. The message names file, line, key
and value, and says what would be right. `mptcplab check FILE` prints the meaning of a file.

```toml
duration = \"60 s\"
warmup = \"5 s\"
repetitions = 10
cc = [\"lia\", \"olia\"]            # a list is a sweep axis: there are runs with each value

[links.wifi]
from = \"server\"
to = \"phone\"
rate = \"20 Mbit/s\"
delay = \"10 ms\"
loss = \"0.1 %\"
queue = \"1 BDP\"

[links.lte]
from = \"server\"
to = \"phone\"
rate = \"10 Mbit/s\"
delay = \"25 ms\"

[flows.download]
paths = [[\"wifi\"], [\"lte\"]]     # one list of links per subflow; X~ is the reverse of X
```

Links are directed. Each link `X` has a reverse direction `X~` with the same rate and delay, a queue of 1000 packets and
no random loss; the key `reverse` changes that. ACKs take the reverse of the path of their data, unless a subflow has
another `reverse` path.

";

const SWEEPS: &str = "\
## Sweeps

A list where one value is expected is a sweep axis, named by its key path (`cc`, `links.wifi.queue`,
`flows.download.cc.weight`). The runs are all combinations of the values of all axes, times `repetitions`. The first axis
of the file changes slowest, repetitions change fastest. Repetition i of every combination sees the same random numbers on
each link and in each flow. Keys whose value is always a list (`nodes`, `path`, `paths`, `subflows`, `schedule`, `levels`,
`ladder`) are not axes.

## Many links and flows of one kind

`count = 100` in `[links.neck]` makes the links `neck-1` ... `neck-100`. `{}` in `from` and `to` is the number of the copy,
so that `from = \"s-{}\"` gives each link its own node. `count` in a flow makes the flows `NAME-1` ... `NAME-n`. `\"neck-{}\"`
in a path is the copy of `neck` with the flow's number, modulo the number of copies: with 100 links and 1000 flows, ten
flows share each link.

";

fn unit_table() -> String {
    let mut out = String::from(
        "## Numbers with units\n\nEvery quantity is text with a unit; a number without a unit is an error. Units are case-sensitive: `Mbit/s` is \
         10^6 bit/s, `MB/s` is 10^6 byte/s, `MiB` is 2^20 byte.\n\n| kind | units | example |\n|---|---|---|\n",
    );
    for dimension in [
        &units::RATE,
        &units::DURATION,
        &units::SIZE,
        &units::PACKETS,
        &units::ARRIVALS,
    ] {
        let names: Vec<String> = dimension.units().map(|unit| format!("`{unit}`")).collect();
        let _ = writeln!(
            out,
            "| {} | {} | `\"{}\"` |",
            dimension.what,
            names.join(" "),
            dimension.example
        );
    }
    for quantity in [
        Quantity::Percent,
        Quantity::Queue,
        Quantity::Span(&units::LONG_DURATION),
        Quantity::Period,
    ] {
        let _ = writeln!(
            out,
            "| {} | | {} |",
            quantity.what(),
            code(&quantity.examples())
        );
    }
    out.push('\n');
    out
}

/// Formats quoted examples as code.
fn code(examples: &str) -> String {
    let parts = examples.split('"').enumerate();
    parts
        .map(|(i, part)| match i % 2 {
            0 => part.to_string(),
            _ => format!("`\"{part}\"`"),
        })
        .collect()
}

fn section(out: &mut String, spec: &'static TableSpec, title: &str, path: &str) {
    let _ = writeln!(out, "## {title}\n");
    if !path.is_empty() {
        let _ = writeln!(out, "`{path}`\n");
    }
    if !spec.doc.is_empty() {
        let _ = writeln!(out, "{}\n", spec.doc);
    }
    out.push_str("| key | value | default | meaning |\n|---|---|---|---|\n");
    for field in spec.fields() {
        let axis = if field.sweep { "" } else { " *" };
        let _ = writeln!(
            out,
            "| `{}`{axis} | {} | {} | {} |",
            field.key,
            kind(&field.ty, &join(path, field.key)),
            without(field),
            words(field)
        );
    }
    out.push_str("\n`*`: cannot be a sweep axis. A list of values for any other key is one.\n\n");
}

/// The sections of all tables under a table, each once.
fn nested(out: &mut String, spec: &'static TableSpec, path: &str, seen: &mut Vec<&'static str>) {
    for field in spec.fields() {
        for (inner, suffix) in tables(&field.ty) {
            if seen.contains(&inner.what) {
                continue;
            }
            seen.push(inner.what);
            let path = format!("{}{suffix}", join(path, field.key));
            section(out, inner, &heading(inner), &path);
            nested(out, inner, &path, seen);
        }
    }
}

/// The heading of a table. It has no path, because a table may occur in several places.
fn heading(spec: &TableSpec) -> String {
    let mut name = spec.what.to_string();
    if let Some(first) = name.get_mut(..1) {
        first.make_ascii_uppercase();
    }
    name
}

fn tables(ty: &'static Type) -> Vec<(&'static TableSpec, &'static str)> {
    match ty {
        Type::Table(spec) => vec![(*spec, "")],
        Type::Tables(spec) => vec![(*spec, "[]")],
        Type::Map(spec) => vec![(*spec, ".NAME")],
        Type::OneOf(types) => types.iter().flat_map(tables).collect(),
        _ => Vec::new(),
    }
}

fn kind(ty: &'static Type, path: &str) -> String {
    match ty {
        Type::Text => "text".into(),
        Type::Name => "a name".into(),
        Type::Bool => "`true` or `false`".into(),
        Type::Int { min, max } => match max {
            &m if m >= i64::MAX as u64 => format!("a whole number from {min}"),
            _ => format!("a whole number, {min} to {max}"),
        },
        Type::Fraction => "a number, more than 0, at most 1".into(),
        Type::Number { above, most } => format!("a number, more than {above}, at most {most}"),
        Type::Quantity(quantity) => quantity.what().into(),
        Type::Choice(words) => words
            .iter()
            .map(|(word, _)| format!("`\"{word}\"`"))
            .collect::<Vec<_>>()
            .join(", "),
        Type::Names => "a list of names".into(),
        Type::Quantities(quantity) => format!("a list, each {}", quantity.what()),
        Type::Paths => "a list of paths".into(),
        Type::Table(spec) => format!("a table, {}", link(spec)),
        Type::Tables(spec) => format!("a list of tables, {}", link(spec)),
        Type::Map(spec) => format!("tables `[{path}.NAME]`, {}", link(spec)),
        Type::Algorithm => "an algorithm (`mptcplab algorithms`)".into(),
        Type::Scheduler => "a scheduler (`mptcplab schedulers`)".into(),
        Type::OneOf(types) => types
            .iter()
            .map(|ty| kind(ty, path))
            .collect::<Vec<_>>()
            .join(", or "),
    }
}

/// A link to the section of a table. Its anchor is that of the heading, as Markdown renderers generate it.
fn link(spec: &TableSpec) -> String {
    let heading = heading(spec).to_lowercase();
    let letters = heading.chars();
    let anchor: String = letters
        .filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'))
        .collect();
    format!("[{}](#{})", spec.what, anchor.replace(' ', "-"))
}

fn without(field: &Field) -> String {
    match field.need {
        Need::Required => "required".into(),
        Need::Optional(text) => text.to_string(),
        Need::Default(text) => match field.ty {
            Type::Bool | Type::Int { .. } | Type::Fraction | Type::Number { .. } => {
                format!("`{text}`")
            }
            _ => format!("`\"{text}\"`"),
        },
    }
}

/// The meaning of a key and of each word that it may have as its value.
fn words(field: &'static Field) -> String {
    fn choices(ty: &'static Type) -> Vec<String> {
        match ty {
            Type::Choice(words) => words
                .iter()
                .map(|(word, doc)| format!("`\"{word}\"`: {doc}"))
                .collect(),
            Type::OneOf(types) => types.iter().flat_map(choices).collect(),
            _ => Vec::new(),
        }
    }
    let choices = choices(&field.ty);
    match choices.is_empty() {
        true => field.doc.to_string(),
        false => format!("{} {}.", field.doc, choices.join("; ")),
    }
}
