//! Typed access to the tables of a document. Defaults come from the format's declarations.

use super::value::{Entry, Kind, Value};
use crate::error::{Diagnostic, Origin, join};
use crate::format::{Field, Need, SCENARIO, TableSpec, Type};
use crate::units::{self, UnitError};
use mptcplab_model::traffic::DurationDistribution;
use std::borrow::Cow;

pub(crate) type Res<T> = Result<T, Diagnostic>;

/// A table with its declaration and place.
#[derive(Debug, Clone)]
pub(crate) struct Table<'a> {
    pub(crate) spec: &'static TableSpec,
    pub(crate) entries: &'a [Entry],
    pub(crate) path: String,
    pub(crate) origin: Origin,
}

impl<'a> Table<'a> {
    /// The whole scenario.
    pub(crate) fn root(document: &'a Value) -> Self {
        Self {
            spec: &SCENARIO,
            entries: document.as_table().unwrap_or_default(),
            path: String::new(),
            origin: document.origin,
        }
    }

    /// A table that the file does not have, so that every key has its default.
    pub(crate) fn empty(spec: &'static TableSpec, path: String, origin: Origin) -> Self {
        Self {
            spec,
            entries: &[],
            path,
            origin,
        }
    }

    /// The value as written.
    pub(crate) fn get(&self, key: &str) -> Option<Item<'a>> {
        debug_assert!(self.spec.field(key).is_some(), "{key} is not declared");
        let entry = self.entries.iter().find(|e| e.key == key)?;
        Some(Item::new(&self.path, entry))
    }

    /// The value as written, or the declared default.
    pub(crate) fn item(&self, key: &str) -> Res<Item<'a>> {
        if let Some(item) = self.get(key) {
            return Ok(item);
        }
        match self.spec.field(key).and_then(default_value) {
            Some(value) => Ok(Item {
                value: Cow::Owned(value),
                key_origin: self.origin,
                path: join(&self.path, key),
            }),
            None => Err(self.missing(key)),
        }
    }

    /// The value as written, converted by `read`.
    pub(crate) fn optional<T>(
        &self,
        key: &str,
        read: impl FnOnce(&Item<'a>) -> Res<T>,
    ) -> Res<Option<T>> {
        self.get(key).map(|item| read(&item)).transpose()
    }

    pub(crate) fn missing(&self, key: &str) -> Diagnostic {
        let hint = self.spec.field(key).map(|f| match f.ty {
            Type::Map(_) => format!("add a table [{key}.NAME]"),
            _ => format!("add {key} = {}", example(&f.ty)),
        });
        Diagnostic::new(
            self.origin,
            join(&self.path, key),
            format!("missing: {} needs it", self.spec.one()),
        )
        .maybe_hint(hint)
    }

    /// An error at the place of a key.
    pub(crate) fn key_error(&self, entry: &Entry, message: impl Into<String>) -> Diagnostic {
        Diagnostic::new(entry.key_origin, join(&self.path, &entry.key), message)
    }

    /// An error about a key of this table, or about the table where the key is not written.
    pub(crate) fn error(&self, key: &str, message: impl Into<String>) -> Diagnostic {
        let entry = self.entries.iter().find(|e| e.key == key);
        Diagnostic::new(
            entry.map_or(self.origin, |e| e.value.origin),
            join(&self.path, key),
            message,
        )
    }
}

/// A value with its key path.
#[derive(Debug, Clone)]
pub(crate) struct Item<'a> {
    pub(crate) value: Cow<'a, Value>,
    pub(crate) key_origin: Origin,
    pub(crate) path: String,
}

impl<'a> Item<'a> {
    /// The value of an entry of the table at `path`.
    pub(crate) fn new(path: &str, entry: &'a Entry) -> Self {
        Self {
            value: Cow::Borrowed(&entry.value),
            key_origin: entry.key_origin,
            path: join(path, &entry.key),
        }
    }

    /// An element of a list, with the key path `path`.
    pub(crate) fn element(value: &'a Value, path: String) -> Self {
        Self {
            value: Cow::Borrowed(value),
            key_origin: value.origin,
            path,
        }
    }

    pub(crate) fn error(&self, message: impl Into<String>) -> Diagnostic {
        Diagnostic::new(self.value.origin, &self.path, message)
    }

    /// An error that begins with the value: `"7 Mbps" is not a rate`.
    pub(crate) fn wrong(&self, why: impl std::fmt::Display) -> Diagnostic {
        self.error(format!("{} {why}", self.value.quoted()))
    }

    pub(crate) fn text(&self) -> Res<&str> {
        self.value
            .as_text()
            .ok_or_else(|| self.wrong("is not text"))
    }

    pub(crate) fn boolean(&self) -> Res<bool> {
        match self.value.kind {
            Kind::Bool(b) => Ok(b),
            _ => Err(self.wrong("is neither true nor false")),
        }
    }

    pub(crate) fn int(&self) -> Res<u64> {
        match self.value.kind {
            Kind::Int(Some(i), _) if i >= 0 => Ok(i.unsigned_abs()),
            _ => Err(self.wrong("is not a whole number")),
        }
    }

    /// A plain number, whole or not.
    pub(crate) fn number(&self) -> Res<f64> {
        match &self.value.kind {
            Kind::Float(f, _) => Ok(*f),
            Kind::Int(Some(i), _) => Ok(*i as f64),
            _ => Err(self.wrong("is not a number")),
        }
    }

    pub(crate) fn arrivals(&self) -> Res<u64> {
        self.quantity(|text| units::ARRIVALS.parse(text))
    }

    /// A span that may be exponential, too.
    pub(crate) fn period(&self) -> Res<DurationDistribution> {
        self.quantity(units::period)
    }

    pub(crate) fn duration(&self) -> Res<u64> {
        self.quantity(|text| units::DURATION.parse(text))
    }

    pub(crate) fn rate(&self) -> Res<u64> {
        self.quantity(|text| units::RATE.parse(text))
    }

    pub(crate) fn size(&self) -> Res<u64> {
        self.quantity(|text| units::SIZE.parse(text))
    }

    /// A size in bytes within a range.
    pub(crate) fn size_in(&self, range: std::ops::RangeInclusive<u32>) -> Res<u32> {
        let bytes = self.size()?;
        u32::try_from(bytes)
            .ok()
            .filter(|b| range.contains(b))
            .ok_or_else(|| {
                self.wrong("is out of range").hint(format!(
                    "between \"{} bytes\" and \"{} bytes\"",
                    range.start(),
                    range.end()
                ))
            })
    }

    pub(crate) fn packets(&self) -> Res<u32> {
        let packets = self.quantity(|text| units::PACKETS.parse(text))?;
        u32::try_from(packets).map_err(|_| self.error("too many packets"))
    }

    pub(crate) fn percent(&self) -> Res<f64> {
        self.quantity(units::percent)
    }

    /// The two ends in nanoseconds, equal for a fixed span.
    pub(crate) fn span(&self) -> Res<(u64, u64)> {
        self.quantity(units::span)
    }

    pub(crate) fn queue(&self) -> Res<units::QueueSize> {
        self.quantity(units::queue)
    }

    fn quantity<T>(&self, parse: impl FnOnce(&str) -> Result<T, UnitError>) -> Res<T> {
        parse(self.text()?).map_err(|e| self.unit_error(e))
    }

    pub(crate) fn unit_error(&self, e: UnitError) -> Diagnostic {
        self.error(e.message).hint(e.hint)
    }

    /// Whether the value is this word.
    pub(crate) fn is(&self, word: &str) -> bool {
        self.value.as_text() == Some(word)
    }

    /// The value as a table with this declaration.
    pub(crate) fn table(&'a self, spec: &'static TableSpec) -> Res<Table<'a>> {
        match self.value.as_table() {
            Some(entries) => Ok(Table {
                spec,
                entries,
                path: self.path.clone(),
                origin: self.key_origin,
            }),
            None => Err(self.wrong("is not a table")),
        }
    }

    pub(crate) fn is_table(&self) -> bool {
        self.value.as_table().is_some()
    }

    /// The entries of a table whose keys are names given by the user.
    pub(crate) fn entries(&self) -> impl Iterator<Item = (&str, Item<'_>)> {
        let entries = self.value.as_table().unwrap_or_default().iter();
        entries.map(|entry| (entry.key.as_str(), Item::new(&self.path, entry)))
    }

    /// The elements of a list.
    pub(crate) fn list(&self) -> Res<Vec<Item<'_>>> {
        let items = self.value.as_list();
        let items = items.ok_or_else(|| self.wrong("is not a list"))?;
        Ok(items
            .iter()
            .enumerate()
            .map(|(i, value)| Item::element(value, join(&self.path, &i.to_string())))
            .collect())
    }
}

fn default_value(field: &Field) -> Option<Value> {
    let Need::Default(text) = field.need else {
        return None;
    };
    let kind = match field.ty {
        Type::Bool => Kind::Bool(text == "true"),
        Type::Int { .. } => Kind::Int(text.parse().ok(), text.into()),
        Type::Fraction | Type::Number { .. } => Kind::Float(text.parse().ok()?, text.into()),
        _ => Kind::Text(text.into()),
    };
    Some(Value {
        kind,
        origin: Origin::Nowhere,
    })
}

/// An example of a type, for hints.
pub(crate) fn example(ty: &Type) -> String {
    match ty {
        Type::Text => "\"text\"".into(),
        Type::Name => "\"name\"".into(),
        Type::Bool => "true".into(),
        Type::Int { min, .. } => min.max(&1).to_string(),
        Type::Fraction => "0.002".into(),
        Type::Number { most, .. } => format!("{most:.1}"),
        Type::Quantity(q) => q.examples(),
        Type::Choice(words) => words
            .first()
            .map_or(String::new(), |(w, _)| format!("\"{w}\"")),
        Type::Names => "[\"name\", \"name\"]".into(),
        Type::Quantities(q) => format!("[{}]", q.examples()),
        Type::Paths => "[[\"link\", \"link\"], [\"link\"]]".into(),
        Type::Algorithm => "\"reno\"".into(),
        Type::Scheduler => "\"minrtt\"".into(),
        Type::Table(_) | Type::Map(_) => "{ ... }".into(),
        Type::Tables(_) => "[{ ... }]".into(),
        Type::OneOf(types) => types.first().map_or(String::new(), example),
    }
}
