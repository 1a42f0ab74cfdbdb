//! Congestion controls in a scenario: a name, `name(parameter=value)`, or a table of name and parameters.

use crate::error::{Diagnostic, suggest};
use crate::model::CcChoice;
use crate::table::{Item, Res, join};
use crate::value::{Kind, Value};
use mptcplab_cc::Algorithm;

/// The choice, checked against the algorithm's declaration.
pub(crate) fn resolve(item: &Item<'_>) -> Res<CcChoice> {
    match &item.value.kind {
        Kind::Text(text) => {
            let (name, parameters) = split_call(text, item)?;
            check(item, (&name, &item.value), parameters)
        }
        Kind::Table(entries) => {
            let Some(named) = entries.iter().find(|e| e.key == "name") else {
                let key = join(&item.path, "name");
                let error =
                    Diagnostic::new(item.key_origin, key, "missing: it says which algorithm");
                return Err(error.hint("write { name = \"ewtcp\", variant = \"fair\" }"));
            };
            let rest = entries.iter().filter(|e| e.key != "name");
            let parameters = rest.map(|e| (e.key.clone(), e.value.clone()));
            let name = named
                .value
                .as_text()
                .ok_or_else(|| not_an_algorithm(item, &named.value))?;
            check(item, (name, &named.value), parameters.collect())
        }
        _ => Err(not_an_algorithm(item, &item.value)),
    }
}

fn not_an_algorithm(item: &Item<'_>, value: &Value) -> Diagnostic {
    Diagnostic::new(
        value.origin,
        &item.path,
        format!("{} is not an algorithm", value.quoted()),
    )
    .hint("write \"lia\" or { name = \"ewtcp\", variant = \"fair\" }")
}

/// `ewtcp(variant=fair)` to name and parameters.
fn split_call(text: &str, item: &Item<'_>) -> Res<(String, Vec<(String, Value)>)> {
    let Some((name, rest)) = text.split_once('(') else {
        return Ok((text.to_string(), Vec::new()));
    };
    let malformed = || {
        item.error(format!(
            "{} is not an algorithm with parameters",
            item.value.quoted()
        ))
        .hint("write \"ewtcp(variant=fair)\"")
    };
    let inside = rest.trim_end().strip_suffix(')').ok_or_else(malformed)?;
    let mut parameters = Vec::new();
    for part in inside.split(',') {
        let (key, value) = part.split_once('=').ok_or_else(malformed)?;
        parameters.push((
            key.trim().to_string(),
            Value::text(value.trim(), item.value.origin),
        ));
    }
    Ok((name.trim().to_string(), parameters))
}

fn check(
    item: &Item<'_>,
    (name, written): (&str, &Value),
    parameters: Vec<(String, Value)>,
) -> Res<CcChoice> {
    let Some(algorithm) = mptcplab_cc::find(name) else {
        let names = mptcplab_cc::algorithms().iter().map(Algorithm::name);
        let message = format!("no algorithm \"{}\"", crate::value::shorten(name));
        return Err(
            Diagnostic::new(written.origin, &item.path, message).maybe_hint(suggest(
                name,
                names,
                "algorithms",
            )),
        );
    };
    let mut params: Vec<(String, u64)> = Vec::with_capacity(parameters.len());
    for (key, value) in parameters {
        let wrong =
            |message: String| Diagnostic::new(value.origin, join(&item.path, &key), message);
        if params.iter().any(|(earlier, _)| *earlier == key) {
            return Err(wrong("given twice".into()).hint("keep one of them"));
        }
        let Some(spec) = algorithm.params().iter().find(|p| p.name == key) else {
            let known = algorithm.params().iter().map(|p| p.name);
            let hint = suggest(&key, known, &format!("parameters of {name}"));
            return Err(wrong(format!(
                "{name} has no parameter \"{}\"",
                crate::value::shorten(&key)
            ))
            .hint(format!("{name} has no parameters"))
            .maybe_hint(hint));
        };
        let text = match value.kind {
            Kind::Text(_) | Kind::Int(..) | Kind::Float(..) | Kind::Bool(_) => value.label(),
            _ => {
                return Err(
                    wrong(format!("{} is not a value of a parameter", value.quoted()))
                        .hint(wanted(spec)),
                );
            }
        };
        let raw = algorithm
            .parse_param(&key, &text)
            .map_err(|_| wrong(format!("{} does not fit", value.quoted())).hint(wanted(spec)))?;
        params.push((key, raw));
    }
    Ok(CcChoice {
        name: name.to_string(),
        params,
    })
}

/// What a parameter takes.
pub(crate) fn wanted(spec: &mptcplab_cc::ParamSpec) -> String {
    match spec.values.as_slice() {
        [] => format!(
            "a number from {} to {}",
            spec.format(spec.min),
            spec.format(spec.max)
        ),
        names => format!(
            "one of: {}",
            names.iter().map(|(n, _)| *n).collect::<Vec<_>>().join(", ")
        ),
    }
}
