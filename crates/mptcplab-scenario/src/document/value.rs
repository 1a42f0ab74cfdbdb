//! A TOML document as a tree of values that know where they were written.

use crate::error::{Diagnostic, Origin, shorten};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// A value with its place.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Value {
    pub(crate) kind: Kind,
    pub(crate) origin: Origin,
}

/// A TOML value. Dates are represented only so that messages can name them.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Kind {
    Text(String),
    /// The value if it fits, and the digits as written.
    Int(Option<i64>, String),
    Float(f64, String),
    Bool(bool),
    Date(String),
    List(Vec<Value>),
    Table(Vec<Entry>),
}

/// A key of a table with its value.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Entry {
    pub(crate) key: String,
    pub(crate) key_origin: Origin,
    pub(crate) value: Value,
}

impl Value {
    pub(crate) fn text(text: impl Into<String>, origin: Origin) -> Self {
        Self {
            kind: Kind::Text(text.into()),
            origin,
        }
    }

    pub(crate) fn as_table(&self) -> Option<&[Entry]> {
        match &self.kind {
            Kind::Table(entries) => Some(entries),
            _ => None,
        }
    }

    pub(crate) fn as_list(&self) -> Option<&[Self]> {
        match &self.kind {
            Kind::List(items) => Some(items),
            _ => None,
        }
    }

    pub(crate) fn as_text(&self) -> Option<&str> {
        match &self.kind {
            Kind::Text(text) => Some(text),
            _ => None,
        }
    }

    pub(crate) fn get(&self, key: &str) -> Option<&Self> {
        Some(&self.as_table()?.iter().find(|e| e.key == key)?.value)
    }

    /// The element named by a key or, in a list, by its index.
    pub(crate) fn child_mut(&mut self, key: &str) -> Option<&mut Self> {
        match &mut self.kind {
            Kind::Table(entries) => Some(&mut entries.iter_mut().find(|e| e.key == key)?.value),
            Kind::List(items) => items.get_mut(key.parse::<usize>().ok()?),
            _ => None,
        }
    }

    /// The value as messages show it: `"10 Mbps"`, `5`, `a table`.
    pub(crate) fn quoted(&self) -> String {
        match &self.kind {
            Kind::Text(text) => format!("\"{}\"", shorten(text)),
            Kind::List(_) => "a list".into(),
            Kind::Table(_) => "a table".into(),
            _ => self.label(),
        }
    }

    /// The value as an axis label: text without quotes.
    pub(crate) fn label(&self) -> String {
        match &self.kind {
            Kind::Text(text) => text.clone(),
            Kind::Int(_, text) | Kind::Float(_, text) | Kind::Date(text) => shorten(text),
            Kind::Bool(b) => b.to_string(),
            Kind::List(items) => {
                let items: Vec<_> = items.iter().map(Self::label).collect();
                format!("[{}]", items.join(", "))
            }
            Kind::Table(entries) => {
                let named = entries.iter().find(|e| e.key == "name");
                let rest: Vec<_> = entries
                    .iter()
                    .filter(|e| e.key != "name")
                    .map(|e| format!("{}={}", e.key, e.value.label()))
                    .collect();
                let name = named.map(|e| e.value.label()).unwrap_or_default();
                match rest.is_empty() {
                    true => name,
                    false => format!("{name}({})", rest.join(", ")),
                }
            }
        }
    }
}

/// Parses the text of a file.
pub(crate) fn parse_document(text: &str) -> Result<Value, Vec<Diagnostic>> {
    let lines = Lines::new(text);
    let (table, errors) = DeTable::parse_recoverable(text);
    if errors.is_empty() {
        return Ok(convert_table(table.get_ref(), Origin::Nowhere, &|at| {
            lines.origin(at)
        }));
    }
    // After a broken line the parser reports spurious errors, so only the first one is shown.
    Err(errors
        .iter()
        .take(1)
        .map(|e| syntax_error(e, &lines))
        .collect())
}

/// Parses the value of an override: TOML if possible, otherwise text.
pub(crate) fn parse_override(text: &str) -> Value {
    match DeValue::parse(text.trim()) {
        Ok(value) if !matches!(value.get_ref(), DeValue::Datetime(_)) => {
            convert(value.get_ref(), Origin::CommandLine, &|_| {
                Origin::CommandLine
            })
        }
        _ => Value::text(text.trim(), Origin::CommandLine),
    }
}

/// Beginnings of the parser's messages about a list.
const LIST_ERRORS: [&str; 3] = [
    "unclosed array,",
    "missing comma between array elements",
    "extra comma in array",
];

fn syntax_error(error: &toml::de::Error, lines: &Lines<'_>) -> Diagnostic {
    let span = error.span().unwrap_or(0..0);
    let origin = lines.origin(span.start);
    let written = lines.text.get(span).unwrap_or_default().trim();
    let message = match written.is_empty() {
        true => format!("not TOML: {}", error.message()),
        false => format!("not TOML: {}: {}", error.message(), shorten(written)),
    };
    let diagnostic = Diagnostic::new(origin, "", message);
    match error.message() {
        "duplicate key" => {
            diagnostic.hint("every name in a table is used once; rename or remove one of them")
        }
        message if message.starts_with("invalid unquoted key") => diagnostic
            .hint("a key, or a part of one between dots, consists of the letters A to Z and a to z, digits, - and _"),
        message if LIST_ERRORS.iter().any(|start| message.starts_with(start)) => diagnostic.hint(
            "a list is written [\"a\", \"b\"]: text in quotes, commas between values, and ] at the end",
        ),
        _ => diagnostic.hint(
            "a value is text in quotes (\"10 ms\"), a number, true or false, a list or a table",
        ),
    }
}

fn convert(value: &DeValue<'_>, origin: Origin, place: &dyn Fn(usize) -> Origin) -> Value {
    let kind = match value {
        DeValue::String(text) => Kind::Text(text.to_string()),
        DeValue::Integer(int) => Kind::Int(
            i64::from_str_radix(int.as_str(), int.radix()).ok(),
            int.to_string(),
        ),
        DeValue::Float(float) => Kind::Float(
            float.as_str().parse().unwrap_or(f64::NAN),
            float.to_string(),
        ),
        DeValue::Boolean(b) => Kind::Bool(*b),
        DeValue::Datetime(date) => Kind::Date(date.to_string()),
        DeValue::Array(items) => Kind::List(
            items
                .iter()
                .map(|item| convert_spanned(item, place))
                .collect(),
        ),
        DeValue::Table(table) => return convert_table(table, origin, place),
    };
    Value { kind, origin }
}

fn convert_spanned(value: &Spanned<DeValue<'_>>, place: &dyn Fn(usize) -> Origin) -> Value {
    convert(value.get_ref(), place(value.span().start), place)
}

fn convert_table(table: &DeTable<'_>, origin: Origin, place: &dyn Fn(usize) -> Origin) -> Value {
    let entries = table
        .iter()
        .map(|(key, value)| Entry {
            key: key.get_ref().to_string(),
            key_origin: place(key.span().start),
            value: convert_spanned(value, place),
        })
        .collect();
    Value {
        kind: Kind::Table(entries),
        origin,
    }
}

/// Converts byte offsets to lines and columns.
struct Lines<'a> {
    text: &'a str,
    starts: Vec<usize>,
}

impl<'a> Lines<'a> {
    fn new(text: &'a str) -> Self {
        let after_newlines = text.match_indices('\n').map(|(at, _)| at + 1);
        Self {
            text,
            starts: std::iter::once(0).chain(after_newlines).collect(),
        }
    }

    fn origin(&self, offset: usize) -> Origin {
        let index = self
            .starts
            .partition_point(|&start| start <= offset)
            .saturating_sub(1);
        let line = self
            .text
            .get(self.starts[index]..offset)
            .unwrap_or_default();
        Origin::File {
            line: u32::try_from(index + 1).unwrap_or(u32::MAX),
            column: u32::try_from(columns(line) + 1).unwrap_or(u32::MAX),
        }
    }
}

/// Number of characters before a value. In very long lines bytes are counted instead, because counting characters for each
/// value would take quadratic time.
fn columns(line: &str) -> usize {
    match line.len() {
        0..1000 => line.chars().count(),
        bytes => bytes,
    }
}
