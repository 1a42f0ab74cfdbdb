//! Changes that a caller makes to a scenario without editing the file.

use std::collections::BTreeMap;

use super::value::{Entry, Kind, Value, parse_override};
use crate::error::{Diagnostic, Origin, join, list, suggest};
use crate::format::{SCENARIO, TableSpec, Type};
use crate::registry::{algorithm, parameters, scheduler};
use crate::strayed::strayed;

/// Changes to a scenario. Each is checked like the file itself; errors name "command line" as the place.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Overrides {
    /// `cc` of the scenario; several values are a sweep axis. `name(parameter=value)` sets parameters.
    pub cc: Option<Vec<String>>,
    /// `repetitions`.
    pub reps: Option<u32>,
    /// `seed`.
    pub seed: Option<u64>,
    /// `profile`; several values are a sweep axis.
    pub profile: Option<Vec<String>>,
    /// `duration` with its unit.
    pub duration: Option<String>,
    /// Key paths and values, which are TOML or text without quotes (`links.B1.queue`, `1 BDP`). An empty value removes the
    /// key.
    pub set: Vec<(String, String)>,
    /// Files that algorithms in `cc` were compiled from at run time, for records only: the algorithms are registered already.
    pub files: BTreeMap<String, String>,
}

impl Overrides {
    /// Parses a JSON object of the changes: `{"cc": ["lia"], "set": [["links.B1.rate", "5 Mbit/s"]]}`.
    ///
    /// # Errors
    /// A message that names the error and the text.
    pub fn from_json(json: &str) -> Result<Self, String> {
        serde_json::from_str(json).map_err(|error| format!("overrides: {error}: {json}"))
    }
}

/// Applies the overrides. A key that the file does not have is added to its table.
pub(crate) fn apply(root: &mut Value, overrides: &Overrides) -> Result<(), Diagnostic> {
    let short_forms = [
        ("cc", overrides.cc.as_deref().map(words)),
        ("profile", overrides.profile.as_deref().map(words)),
        ("repetitions", overrides.reps.map(|n| int(n.into()))),
        ("seed", overrides.seed.map(int)),
        ("duration", overrides.duration.as_deref().map(word)),
    ];
    for (key, value) in short_forms {
        if let Some(value) = value {
            put(root, key, value)?;
        }
    }
    for (i, (path, value)) in overrides.set.iter().enumerate() {
        let before = overrides.set[..i].iter().map(|(path, _)| path.as_str());
        refuse_to_lose(before, path)?;
        if value.trim().is_empty() {
            remove(root, path.trim())?;
        } else {
            put(root, path, parse_override(value))?;
        }
    }
    Ok(())
}

/// An override may not replace the table in which one before it has set a key: that would be lost.
fn refuse_to_lose<'a>(
    mut before: impl Iterator<Item = &'a str>,
    path: &str,
) -> Result<(), Diagnostic> {
    let path = path.trim();
    let lies_in = |other: &&str| {
        let rest = other.trim().strip_prefix(path);
        rest.is_some_and(|rest| rest.starts_with('.'))
    };
    let Some(lost) = before.find(lies_in) else {
        return Ok(());
    };
    let message = format!("it would be lost, because {path} is set after it");
    let diagnostic = Diagnostic::new(Origin::CommandLine, lost.trim().to_string(), message);
    Err(diagnostic.hint(format!("write it as a part of the value of {path}")))
}

/// Removes a key of the file.
fn remove(root: &mut Value, path: &str) -> Result<(), Diagnostic> {
    let (parent, key) = path.rsplit_once('.').unwrap_or(("", path));
    let table = parent
        .split('.')
        .filter(|part| !part.is_empty())
        .try_fold(root, Value::child_mut);
    if let Some(Kind::Table(entries)) = table.map(|table| &mut table.kind) {
        if let Some(position) = entries.iter().position(|entry| entry.key == key) {
            entries.remove(position);
            return Ok(());
        }
    }
    Err(Diagnostic::new(
        Origin::CommandLine,
        path.to_string(),
        "no such key in the file, so it cannot be taken out",
    )
    .hint("KEY=VALUE sets a key, KEY= takes one out"))
}

/// One word is a value; several are a sweep axis.
fn words(words: &[String]) -> Value {
    match words {
        [one] => word(one),
        _ => value(Kind::List(words.iter().map(|w| word(w)).collect())),
    }
}

fn word(word: &str) -> Value {
    Value::text(word.trim(), Origin::CommandLine)
}

fn int(int: u64) -> Value {
    value(Kind::Int(i64::try_from(int).ok(), int.to_string()))
}

fn value(kind: Kind) -> Value {
    let origin = Origin::CommandLine;
    Value { kind, origin }
}

fn put(root: &mut Value, path: &str, value: Value) -> Result<(), Diagnostic> {
    let mut here = root;
    let mut done = String::new();
    let mut spec: Option<&'static TableSpec> = Some(&SCENARIO);
    let mut place = Place::Table(&SCENARIO);
    let mut parts = path.trim().split('.').peekable();
    while let Some(part) = parts.next() {
        let last = parts.peek().is_none();
        let full = join(&done, part);
        if here.child_mut(part).is_none() {
            place.spell_out(here);
        }
        if here.child_mut(part).is_none() {
            if let Some(hint) = place.parameters_of(here) {
                let message = format!("no such key \"{part}\"");
                return Err(Diagnostic::new(Origin::CommandLine, full, message).hint(hint));
            }
            let missing = missing_child(here, part, &full, spec, last)?;
            let Kind::Table(entries) = &mut here.kind else {
                return Err(unknown(here, part, &full, spec));
            };
            entries.push(missing);
        }
        spec = spec.and_then(|s| child_spec(s, part));
        place = place.child(part);
        let Some(child) = here.child_mut(part) else {
            return Err(Diagnostic::new(Origin::CommandLine, full, "no such key"));
        };
        here = child;
        done = full;
    }
    *here = value;
    Ok(())
}

/// The declaration of the table under a key; for a map of names, the declaration of its tables.
fn child_spec(spec: &'static TableSpec, key: &str) -> Option<&'static TableSpec> {
    match &spec.field(key)?.ty {
        Type::Table(spec) | Type::Tables(spec) => Some(spec),
        Type::OneOf(types) => inner_table(types),
        _ => None,
    }
}

/// What is declared at a place of a scenario.
#[derive(Clone, Copy)]
enum Place {
    Table(&'static TableSpec),
    /// A table whose keys are names.
    Names(&'static TableSpec),
    Value(&'static Type),
    Unknown,
}

impl Place {
    fn child(self, key: &str) -> Self {
        let spec = match self {
            Self::Table(spec) => spec,
            Self::Names(spec) => return Self::Table(spec),
            Self::Value(Type::Tables(spec)) if key.parse::<usize>().is_ok() => {
                return Self::Table(spec);
            }
            // A value of a list, or a key of a table where there may also be a text.
            Self::Value(_) if key.parse::<usize>().is_ok() => return self,
            Self::Value(Type::OneOf(types)) => match inner_table(types) {
                Some(spec) => spec,
                None => return Self::Unknown,
            },
            Self::Value(_) | Self::Unknown => return Self::Unknown,
        };
        match spec.field(key).map(|field| &field.ty) {
            Some(Type::Table(spec)) => Self::Table(spec),
            Some(Type::Map(spec)) => Self::Names(spec),
            Some(ty) => Self::Value(ty),
            None => Self::Unknown,
        }
    }

    /// Writes a name, such as that of an algorithm, as the table that its parameters are keys of. A list of one name is
    /// that name.
    fn spell_out(self, here: &mut Value) {
        let has_calls = matches!(self, Self::Value(Type::Algorithm | Type::Scheduler));
        let is_named = match self {
            Self::Value(Type::OneOf(types)) => {
                inner_table(types).is_some_and(|spec| spec.field("name").is_some())
            }
            _ => has_calls,
        };
        if !is_named {
            return;
        }
        let one = match &here.kind {
            Kind::List(items) => match items.as_slice() {
                [one] => one.clone(),
                _ => return,
            },
            _ => here.clone(),
        };
        let Kind::Text(text) = &one.kind else {
            if matches!(one.kind, Kind::Table(_)) {
                *here = one;
            }
            return;
        };
        let (name, given) = match parameters::call(text) {
            Some(called) if has_calls => called,
            _ => (text.as_str(), Vec::new()),
        };
        let named = std::iter::once(("name", name)).chain(given);
        let entries = named.map(|(key, text)| Entry {
            key: key.to_string(),
            key_origin: one.origin,
            value: Value::text(text, one.origin),
        });
        *here = Value {
            kind: Kind::Table(entries.collect()),
            origin: one.origin,
        };
    }

    /// The hint for a parameter of a list of algorithms or schedulers: each has its own.
    fn parameters_of(self, here: &Value) -> Option<String> {
        let names = here.as_list()?.iter().filter_map(|item| {
            let named = item.get("name").unwrap_or(item).as_text()?;
            Some(parameters::call(named).map_or(named, |(name, _)| name))
        });
        let of_each = |known: fn(&str) -> Vec<&'static str>| -> Vec<String> {
            let mut all: Vec<String> = Vec::new();
            for name in names {
                for parameter in known(name) {
                    let text = format!("{parameter} of {name}");
                    if !all.contains(&text) {
                        all.push(text);
                    }
                }
            }
            all
        };
        let (what, example, all) = match self {
            Self::Value(Type::Algorithm) => (
                "an algorithm",
                "ewtcp(weight=fair)",
                of_each(algorithm::parameters),
            ),
            Self::Value(Type::Scheduler) => (
                "a scheduler",
                "minrtt(penalise=false)",
                of_each(scheduler::parameters),
            ),
            _ => return None,
        };
        if all.is_empty() {
            return Some("none of this list has parameters".to_owned());
        }
        let names: Vec<&str> = all.iter().map(String::as_str).collect();
        let write = format!("write every value as {what} of its own, such as {example}");
        Some(list(&format!("{write}; parameters here"), &names))
    }
}

fn inner_table(types: &'static [Type]) -> Option<&'static TableSpec> {
    types.iter().find_map(|ty| match ty {
        Type::Table(spec) => Some(*spec),
        _ => None,
    })
}

/// A new entry for a declared key. Links and flows cannot be added.
fn missing_child(
    here: &Value,
    part: &str,
    full: &str,
    spec: Option<&'static TableSpec>,
    last: bool,
) -> Result<Entry, Diagnostic> {
    let in_names = full.matches('.').count() == 1
        && (full.starts_with("links.") || full.starts_with("flows."));
    let declared = spec.is_none_or(|s| s.field(part).is_some());
    if part.is_empty() || in_names || !declared || here.as_table().is_none() {
        return Err(unknown(here, part, full, spec));
    }
    Ok(Entry {
        key: part.to_string(),
        key_origin: Origin::CommandLine,
        value: value(match last {
            true => Kind::Text(String::new()),
            false => Kind::Table(Vec::new()),
        }),
    })
}

fn unknown(here: &Value, part: &str, full: &str, spec: Option<&'static TableSpec>) -> Diagnostic {
    let candidates: Vec<&str> = match spec {
        Some(spec) => spec.fields().map(|f| f.key).collect(),
        None => {
            let present = here.as_table().unwrap_or_default();
            present.iter().map(|e| e.key.as_str()).collect()
        }
    };
    let elsewhere = spec.and_then(|spec| strayed(part, spec, Origin::CommandLine));
    Diagnostic::new(Origin::CommandLine, full, format!("no such key \"{part}\""))
        .hint("write a key path such as links.NAME.queue")
        .maybe_hint(elsewhere.or_else(|| suggest(part, candidates, "there are")))
}
