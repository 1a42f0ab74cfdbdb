//! Changes that a caller makes to a scenario without editing the file.

use super::value::{Entry, Kind, Value, parse_override};
use crate::error::{Diagnostic, Origin, join, suggest};
use crate::format::{SCENARIO, TableSpec, Type};

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
    if let Some(names) = &overrides.cc {
        put(root, "cc", words(names))?;
    }
    if let Some(names) = &overrides.profile {
        put(root, "profile", words(names))?;
    }
    if let Some(reps) = overrides.reps {
        put(root, "repetitions", int(u64::from(reps)))?;
    }
    if let Some(seed) = overrides.seed {
        put(root, "seed", int(seed))?;
    }
    if let Some(duration) = &overrides.duration {
        put(
            root,
            "duration",
            Value::text(duration.trim(), Origin::CommandLine),
        )?;
    }
    for (path, value) in &overrides.set {
        if value.trim().is_empty() {
            remove(root, path.trim())?;
        } else {
            put(root, path, parse_override(value))?;
        }
    }
    Ok(())
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
        [word] => Value::text(word.trim(), Origin::CommandLine),
        _ => Value {
            kind: Kind::List(
                words
                    .iter()
                    .map(|w| Value::text(w.trim(), Origin::CommandLine))
                    .collect(),
            ),
            origin: Origin::CommandLine,
        },
    }
}

fn int(value: u64) -> Value {
    Value {
        kind: Kind::Int(i64::try_from(value).ok(), value.to_string()),
        origin: Origin::CommandLine,
    }
}

fn put(root: &mut Value, path: &str, value: Value) -> Result<(), Diagnostic> {
    let mut here = root;
    let mut done = String::new();
    let mut spec: Option<&'static TableSpec> = Some(&SCENARIO);
    let mut parts = path.trim().split('.').peekable();
    while let Some(part) = parts.next() {
        let last = parts.peek().is_none();
        let full = join(&done, part);
        if here.child_mut(part).is_none() {
            let missing = missing_child(here, part, &full, spec, last)?;
            let Kind::Table(entries) = &mut here.kind else {
                return Err(unknown(here, part, &full, spec));
            };
            entries.push(missing);
        }
        spec = spec.and_then(|s| child_spec(s, part));
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
        Type::OneOf(types) => types.iter().find_map(|ty| match ty {
            Type::Table(spec) => Some(*spec),
            _ => None,
        }),
        _ => None,
    }
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
    let kind = if last {
        Kind::Text(String::new())
    } else {
        Kind::Table(Vec::new())
    };
    Ok(Entry {
        key: part.to_string(),
        key_origin: Origin::CommandLine,
        value: Value {
            kind,
            origin: Origin::CommandLine,
        },
    })
}

fn unknown(here: &Value, part: &str, full: &str, spec: Option<&'static TableSpec>) -> Diagnostic {
    let present: Vec<&str> = here
        .as_table()
        .unwrap_or_default()
        .iter()
        .map(|e| e.key.as_str())
        .collect();
    let declared: Vec<&str> = spec
        .map(|s| s.fields().map(|f| f.key).collect())
        .unwrap_or_default();
    let candidates = if declared.is_empty() {
        present
    } else {
        declared
    };
    Diagnostic::new(Origin::CommandLine, full, format!("no such key \"{part}\""))
        .hint("write a key path such as links.NAME.queue")
        .maybe_hint(suggest(part, candidates, "there are"))
}
