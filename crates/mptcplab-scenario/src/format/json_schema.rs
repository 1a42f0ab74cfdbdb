//! The JSON Schema of scenario files, for editors, generated from the declarations. Only the parser checks what depends on
//! the whole file, such as whether links join to paths.

use super::declaration::{Field, Need, TableSpec, Type};
use super::scenario::SCENARIO;
use crate::units::Quantity;
use serde_json::{Map, Value, json};

/// The JSON Schema (draft 2020-12) of scenario files.
pub fn json_schema() -> Value {
    let mut schema = table(&SCENARIO);
    if let Value::Object(root) = &mut schema {
        root.insert(
            "$schema".into(),
            json!("https://json-schema.org/draft/2020-12/schema"),
        );
        root.insert("title".into(), json!("mptcplab scenario"));
    }
    schema
}

fn table(spec: &'static TableSpec) -> Value {
    let properties: Map<_, _> = spec
        .fields()
        .map(|f| (f.key.to_string(), field(f)))
        .collect();
    let required = spec
        .fields()
        .filter(|f| matches!(f.need, Need::Required))
        .map(|f| f.key);
    json!({
        "type": "object",
        "description": spec.doc,
        "properties": properties,
        "required": required.collect::<Vec<_>>(),
        "additionalProperties": false,
    })
}

fn field(field: &'static Field) -> Value {
    let one = value(&field.ty);
    let mut schema = match field.sweep {
        // A list of values is a sweep axis.
        true => {
            json!({ "anyOf": [one, { "type": "array", "items": one, "minItems": 1, "uniqueItems": true }] })
        }
        false => one,
    };
    if let Value::Object(map) = &mut schema {
        map.insert("description".into(), json!(field.doc));
        if let Need::Default(text) = field.need {
            map.insert("default".into(), default(&field.ty, text));
        }
    }
    schema
}

fn default(ty: &Type, text: &str) -> Value {
    match ty {
        // Declared defaults of these types are TOML literals that are also valid JSON.
        Type::Bool | Type::Int { .. } | Type::Fraction | Type::Number { .. } => {
            serde_json::from_str(text).unwrap_or(Value::Null)
        }
        _ => json!(text),
    }
}

fn value(ty: &'static Type) -> Value {
    match ty {
        Type::Text => json!({ "type": "string" }),
        Type::Name => name(),
        Type::Bool => json!({ "type": "boolean" }),
        Type::Int { min, max } => json!({ "type": "integer", "minimum": min, "maximum": max }),
        Type::Fraction => json!({ "type": "number", "exclusiveMinimum": 0, "maximum": 1 }),
        Type::Number { above, most } => {
            json!({ "type": "number", "exclusiveMinimum": above, "maximum": most })
        }
        Type::Quantity(quantity) => self::quantity(*quantity),
        Type::Quantities(quantity) => {
            json!({ "type": "array", "items": self::quantity(*quantity), "minItems": 1 })
        }
        Type::Choice(words) => {
            json!({ "enum": words.iter().map(|(word, _)| *word).collect::<Vec<_>>() })
        }
        Type::Names => names(),
        Type::Paths => json!({ "type": "array", "items": names(), "minItems": 1 }),
        Type::Table(spec) => table(spec),
        Type::Tables(spec) => json!({ "type": "array", "items": table(spec) }),
        Type::Map(spec) => json!({
            "type": "object",
            "propertyNames": name(),
            "additionalProperties": table(spec),
            "minProperties": 1,
        }),
        Type::Algorithm => algorithm(),
        Type::Scheduler => scheduler(),
        Type::OneOf(types) => json!({ "anyOf": types.iter().map(value).collect::<Vec<_>>() }),
    }
}

fn quantity(quantity: Quantity) -> Value {
    json!({ "type": "string", "pattern": format!("^{}$", quantity.pattern()), "examples": [quantity.examples()] })
}

/// A name. `{}` stands for the number of a copy where there is a `count`.
fn name() -> Value {
    json!({ "type": "string", "pattern": "^[A-Za-z0-9]([A-Za-z0-9_-]|\\{\\})*$", "maxLength": 64 })
}

fn names() -> Value {
    json!({ "type": "array", "items": { "type": "string" }, "minItems": 1 })
}

/// An algorithm of this build, or one of the kernel's own.
fn algorithm() -> Value {
    let all = mptcplab_cc::algorithms();
    let kernels = json!({ "type": "string", "pattern": "^kernel:[a-z0-9_-]{1,15}$" });
    named(all.iter().map(|a| (a.name(), a.params())), Some(kernels))
}

fn scheduler() -> Value {
    let all = mptcplab_model::sched::declarations();
    named(all.iter().map(|d| (d.name, d.params.as_slice())), None)
}

/// A known name, a name with parameters in brackets, a table with the name and its parameters, or `more`.
fn named<'a>(
    all: impl Iterator<Item = (&'a str, &'a [mptcplab_cc::ParamSpec])> + Clone,
    more: Option<Value>,
) -> Value {
    let names: Vec<&str> = all.clone().map(|(name, _)| name).collect();
    let tables = all.map(|(name, params)| {
        let mut properties = Map::new();
        properties.insert("name".into(), json!({ "const": name }));
        for spec in params {
            properties.insert(spec.name.into(), parameter(spec));
        }
        json!({ "type": "object", "properties": properties, "required": ["name"], "additionalProperties": false })
    });
    let call = format!("^({})\\(.+\\)$", names.join("|"));
    let words = [
        json!({ "enum": names }),
        json!({ "type": "string", "pattern": call }),
    ];
    let all = words.into_iter().chain(more).chain(tables);
    json!({ "anyOf": all.collect::<Vec<_>>() })
}

fn parameter(spec: &mptcplab_cc::ParamSpec) -> Value {
    let names: Vec<&str> = spec.values.iter().map(|(name, _)| *name).collect();
    let number = json!({ "type": ["number", "string"] });
    let one = match (names.as_slice(), spec.has_numbers()) {
        ([], _) => number,
        // Booleans may be written as such.
        (["false", "true"], false) => json!({ "enum": [false, true, "false", "true"] }),
        (names, false) => json!({ "enum": names }),
        (names, true) => json!({ "anyOf": [{ "enum": names }, number] }),
    };
    json!({
        "description": spec.doc,
        "default": spec.format(spec.default),
        "anyOf": [one, { "type": "array", "items": one, "minItems": 1, "uniqueItems": true }],
    })
}
