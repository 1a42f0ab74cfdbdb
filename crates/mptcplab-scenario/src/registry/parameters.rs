//! Names with parameters: `name`, `name(parameter=value)`, or a table with the name and the parameters.

use crate::document::{Item, Kind, Res, Value};
use crate::error::{Diagnostic, join, shorten, suggest};
use mptcplab_cc::ParamSpec;

/// Wording of messages.
pub(crate) struct Form {
    /// The kind with its article: "an algorithm".
    pub(crate) one: &'static str,
    /// The reason why a table needs a name.
    pub(crate) which: &'static str,
    /// Examples of the three notations.
    pub(crate) name: &'static str,
    pub(crate) call: &'static str,
    pub(crate) table: &'static str,
}

/// A name with parameters as it was written.
pub(crate) struct Written {
    pub(crate) name: String,
    /// The value that has the name, for its place.
    pub(crate) name_value: Value,
    pub(crate) parameters: Vec<(String, Value)>,
}

/// Parses all three notations.
pub(crate) fn read(item: &Item<'_>, form: &Form) -> Res<Written> {
    let foreign = |value: &Value| {
        let message = format!("{} is not {}", value.quoted(), form.one);
        Diagnostic::new(value.origin, &item.path, message)
            .hint(format!("write {} or {}", form.name, form.table))
    };
    match &item.value.kind {
        Kind::Text(text) => {
            let (name, parameters) = split_call(text, item, form)?;
            Ok(Written {
                name,
                name_value: item.value.clone().into_owned(),
                parameters,
            })
        }
        Kind::Table(entries) => {
            let Some(named) = entries.iter().find(|e| e.key == "name") else {
                let key = join(&item.path, "name");
                let message = format!("missing: {}", form.which);
                return Err(Diagnostic::new(item.key_origin, key, message)
                    .hint(format!("write {}", form.table)));
            };
            let rest = entries.iter().filter(|e| e.key != "name");
            let name = named.value.as_text().ok_or_else(|| foreign(&named.value))?;
            Ok(Written {
                name: name.to_string(),
                name_value: named.value.clone(),
                parameters: rest.map(|e| (e.key.clone(), e.value.clone())).collect(),
            })
        }
        _ => Err(foreign(&item.value)),
    }
}

/// `ewtcp(weight=fair)` to name and parameters.
fn split_call(text: &str, item: &Item<'_>, form: &Form) -> Res<(String, Vec<(String, Value)>)> {
    let (name, given) = call(text).ok_or_else(|| {
        item.wrong(format!("is not {} with parameters", form.one))
            .hint(format!("write {}", form.call))
    })?;
    let parameters = given.into_iter().map(|(key, value)| {
        let value = Value::text(value, item.value.origin);
        (key.to_string(), value)
    });
    Ok((name.to_string(), parameters.collect()))
}

/// The name and the parameters in `ewtcp(weight=fair)`; none for what is no such text.
pub(crate) fn call(text: &str) -> Option<(&str, Vec<(&str, &str)>)> {
    let Some((name, rest)) = text.split_once('(') else {
        return Some((text, Vec::new()));
    };
    let inside = rest.trim_end().strip_suffix(')')?;
    let pairs = inside.split(',').map(|part| {
        let (key, value) = part.split_once('=')?;
        Some((key.trim(), value.trim()))
    });
    Some((name.trim(), pairs.collect::<Option<_>>()?))
}

/// Raw values of the written parameters, checked against `specs`, the parameters that `name` declares.
pub(crate) fn check(
    item: &Item<'_>,
    name: &str,
    specs: &[ParamSpec],
    written: Vec<(String, Value)>,
) -> Res<Vec<(String, u64)>> {
    let mut params: Vec<(String, u64)> = Vec::with_capacity(written.len());
    for (key, value) in written {
        let wrong =
            |message: String| Diagnostic::new(value.origin, join(&item.path, &key), message);
        if params.iter().any(|(earlier, _)| *earlier == key) {
            return Err(wrong("given twice".into()).hint("keep one of them"));
        }
        let Some(spec) = specs.iter().find(|p| p.name == key) else {
            let known = specs.iter().map(|p| p.name);
            let hint = suggest(&key, known, &format!("parameters of {name}"));
            return Err(
                wrong(format!("{name} has no parameter \"{}\"", shorten(&key)))
                    .hint(format!("{name} has no parameters"))
                    .maybe_hint(hint),
            );
        };
        let text = match value.kind {
            Kind::Text(_) | Kind::Int(..) | Kind::Float(..) | Kind::Bool(_) => value.label(),
            _ => {
                return Err(
                    wrong(format!("{} is not a value of a parameter", value.quoted()))
                        .hint(spec.wanted()),
                );
            }
        };
        let raw = spec
            .parse(&text)
            .ok_or_else(|| wrong(format!("{} does not fit", value.quoted())).hint(spec.wanted()))?;
        params.push((key, raw));
    }
    Ok(params)
}
