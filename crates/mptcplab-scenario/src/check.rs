//! Compares a document with the declared format: every key is known and every value has its type. Lists where one value
//! is expected are the sweep's axes.

use crate::document::{Entry, Item, Kind, Table, Value, example};
use crate::error::{Diagnostic, join, nearest, shorten, suggest};
use crate::format::{Field, Need, TableSpec, Type};
use crate::names::{NAME_HINT, check_name};
use crate::registry::{algorithm, scheduler};
use crate::strayed::strayed;

/// A sweep axis: a key with several values.
#[derive(Debug, Clone)]
pub(crate) struct Axis {
    pub(crate) path: String,
    pub(crate) values: Vec<Value>,
}

/// Checks the document against the declarations; returns the axes in file order.
pub(crate) fn check(root: &Value) -> Result<Vec<Axis>, Vec<Diagnostic>> {
    let mut checker = Checker {
        errors: Vec::new(),
        axes: Vec::new(),
        inside_axis: false,
    };
    checker.table(&Table::root(root));
    match checker.errors.is_empty() {
        true => Ok(checker.axes),
        false => Err(checker.errors),
    }
}

/// After this many errors the rest of the file is not checked.
const MAX_ERRORS: usize = 100;
/// Largest number of values of an axis.
const MAX_AXIS: usize = 1000;

struct Checker {
    errors: Vec<Diagnostic>,
    axes: Vec<Axis>,
    inside_axis: bool,
}

impl Checker {
    fn table(&mut self, table: &Table<'_>) {
        let mut misspelt = Vec::new();
        for entry in table.entries {
            if self.errors.len() >= MAX_ERRORS {
                return;
            }
            match table.spec.field(&entry.key) {
                Some(field) => self.field(field, &Item::new(&table.path, entry)),
                None => {
                    misspelt.extend(nearest(&entry.key, table.spec.fields().map(|f| f.key)));
                    self.errors.push(unknown_key(table, entry));
                }
            }
        }
        for field in table.spec.fields() {
            let required = matches!(field.need, Need::Required) && table.get(field.key).is_none();
            if required && !misspelt.contains(&field.key) {
                self.errors.push(table.missing(field.key));
            }
        }
    }

    fn field(&mut self, field: &Field, item: &Item<'_>) {
        match item.value.as_list() {
            Some(values) if !takes_list(&field.ty) => match field.sweep {
                true => self.axis(&field.ty, item, values),
                false => self.errors.push(match field.ty {
                    Type::Map(_) | Type::Table(_) => mismatch(&field.ty, item),
                    _ => no_axis(field, item),
                }),
            },
            _ => self.value(&field.ty, item),
        }
    }

    fn axis(&mut self, ty: &Type, item: &Item<'_>, values: &[Value]) {
        if self.inside_axis {
            self.errors.push(
                item.error("a list inside a value of a sweep axis")
                    .hint("write every combination as a value of its own"),
            );
            return;
        }
        if values.is_empty() {
            self.errors.push(
                item.error("an empty list: a sweep axis needs values")
                    .hint(format!("write {}", example(ty))),
            );
            return;
        }
        if values.len() > MAX_AXIS {
            let error = item.error(format!("{} values in a sweep axis", values.len()));
            self.errors.push(error.hint(format!("at most {MAX_AXIS}")));
            return;
        }
        for (i, value) in values.iter().enumerate() {
            if values[..i].iter().any(|earlier| earlier.kind == value.kind) {
                let twice = Diagnostic::new(
                    value.origin,
                    &item.path,
                    format!("{} is in the list twice", value.quoted()),
                );
                self.errors
                    .push(twice.hint("every value of a sweep axis is there once"));
                return;
            }
        }
        self.inside_axis = true;
        for value in values {
            self.value(ty, &Item::element(value, item.path.clone()));
        }
        self.inside_axis = false;
        self.axes.push(Axis {
            path: item.path.clone(),
            values: values.to_vec(),
        });
    }

    fn value(&mut self, ty: &Type, item: &Item<'_>) {
        match ty {
            Type::Table(spec) => self.in_table(spec, item),
            Type::Map(spec) => self.map(spec, item),
            Type::Tables(spec) => match item.list() {
                Ok(items) => items.iter().for_each(|item| self.in_table(spec, item)),
                Err(_) => self.errors.push(mismatch(ty, item)),
            },
            Type::Algorithm => self.registered(item, |item| algorithm::resolve(item).err()),
            Type::Scheduler => self.registered(item, |item| scheduler::resolve(item).err()),
            Type::OneOf(types) => self.one_of(types, ty, item),
            _ => self.errors.extend(scalar(ty, item).err()),
        }
    }

    fn in_table(&mut self, spec: &'static TableSpec, item: &Item<'_>) {
        match item.table(spec) {
            Ok(table) => self.table(&table),
            Err(error) => self
                .errors
                .push(error.hint(format!("write {{ {} }}", keys_example(spec)))),
        }
    }

    fn map(&mut self, spec: &'static TableSpec, item: &Item<'_>) {
        let Some(entries) = item.value.as_table() else {
            self.errors.push(mismatch(&Type::Map(spec), item));
            return;
        };
        if entries.is_empty() {
            self.errors.push(
                item.error(format!("no {} in it", spec.what))
                    .hint(format!("add a table [{}.NAME]", item.path)),
            );
        }
        for entry in entries {
            let named = Item::new(&item.path, entry);
            if let Err(why) = check_name(&entry.key) {
                let error = Diagnostic::new(
                    entry.key_origin,
                    &named.path,
                    format!("\"{}\" is not a name: {why}", shorten(&entry.key)),
                );
                self.errors.push(error.hint(NAME_HINT));
            }
            self.in_table(spec, &named);
        }
    }

    /// An algorithm or a scheduler. `wrong` asks the registry about a value without axes.
    fn registered(&mut self, item: &Item<'_>, wrong: fn(&Item<'_>) -> Option<Diagnostic>) {
        if let Some(entries) = item.value.as_table() {
            // A parameter may be an axis; the registry checks each of its values separately.
            for entry in entries.iter().filter(|e| e.key != "name") {
                if let Some(values) = entry.value.as_list() {
                    let parameter = Item::new(&item.path, entry);
                    self.parameter_axis(item, &parameter, values, wrong);
                    return;
                }
            }
        }
        self.errors.extend(wrong(item));
    }

    fn parameter_axis(
        &mut self,
        whole: &Item<'_>,
        parameter: &Item<'_>,
        values: &[Value],
        wrong: fn(&Item<'_>) -> Option<Diagnostic>,
    ) {
        // Any scalar passes here; the substitution below checks each value against the algorithm's declaration.
        let before = self.errors.len();
        self.axis(&Type::OneOf(&[]), parameter, values);
        if self.errors.len() > before {
            return;
        }
        let key = parameter.path.rsplit('.').next().unwrap_or_default();
        for value in values {
            let mut substituted = whole.clone();
            if let Some(slot) = substituted.value.to_mut().child_mut(key) {
                *slot = value.clone();
            }
            self.registered(&substituted, wrong);
        }
    }

    fn one_of(&mut self, types: &[Type], whole: &Type, item: &Item<'_>) {
        if types.is_empty() {
            return;
        }
        if item.is_table() {
            for ty in types {
                if let Type::Table(spec) = ty {
                    return self.in_table(spec, item);
                }
            }
        }
        let mut first = None;
        for ty in types.iter().filter(|ty| !matches!(ty, Type::Table(_))) {
            match scalar(ty, item) {
                Ok(()) => return,
                Err(error) => first = first.or(Some(error)),
            }
        }
        let near = item
            .value
            .as_text()
            .and_then(|text| nearest(text, words(types)));
        self.errors.push(match (near, first) {
            (Some(near), Some(error)) => error.hint(format!("did you mean \"{near}\"?")),
            (None, Some(error)) => or_a_table(error, types),
            (_, None) => mismatch(whole, item),
        });
    }
}

/// The hint to a wrong choice where a table may stand as well.
fn or_a_table(error: Diagnostic, types: &[Type]) -> Diagnostic {
    let table = types.iter().find_map(inner_table);
    match (table, &error.hint) {
        (Some(spec), Some(hint)) if hint.starts_with("choices: ") => {
            let hint = format!("{hint}; or a table: {{ {} }}", keys_example(spec));
            error.hint(hint)
        }
        _ => error,
    }
}

fn takes_list(ty: &Type) -> bool {
    matches!(
        ty,
        Type::Names | Type::Quantities(_) | Type::Paths | Type::Tables(_)
    )
}

fn unknown_key(table: &Table<'_>, entry: &Entry) -> Diagnostic {
    let hint = strayed(&entry.key, table.spec, entry.key_origin);
    let hint = hint.or_else(|| of_an_inner_table(&entry.key, table.spec));
    let hint = hint.or_else(|| {
        let keys = table.spec.fields().map(|f| f.key);
        suggest(&entry.key, keys, &format!("keys of {}", table.spec.one()))
    });
    Diagnostic::new(
        entry.key_origin,
        join(&table.path, &shorten(&entry.key)),
        format!("unknown key \"{}\"", shorten(&entry.key)),
    )
    .maybe_hint(hint)
}

/// For a key that belongs in a table inside this one: `size` of a flow is a key of its `traffic`.
fn of_an_inner_table(key: &str, spec: &TableSpec) -> Option<String> {
    spec.fields().find_map(|outer| {
        let inner = inner_table(&outer.ty)?.field(key)?;
        let written = format!("{} = {{ {key} = {} }}", outer.key, example(&inner.ty));
        Some(format!(
            "\"{key}\" is a key of {}: write {written}",
            outer.key
        ))
    })
}

fn inner_table(ty: &Type) -> Option<&'static TableSpec> {
    match ty {
        Type::Table(spec) => Some(spec),
        Type::OneOf(types) => types.iter().find_map(inner_table),
        _ => None,
    }
}

fn no_axis(field: &Field, item: &Item<'_>) -> Diagnostic {
    let hint = match field.key {
        "repetitions" | "seed" => {
            "one number; repetitions = 10 makes ten runs with different random numbers".into()
        }
        _ => format!(
            "write one value, e.g. {} = {}",
            field.key,
            example(&field.ty)
        ),
    };
    item.error(format!("a list, but {} cannot be a sweep axis", field.key))
        .hint(hint)
}

fn keys_example(spec: &TableSpec) -> String {
    let required = spec.fields().filter(|f| matches!(f.need, Need::Required));
    let mut shown: Vec<_> = required.collect();
    if shown.is_empty() {
        shown.extend(spec.fields().next());
    }
    let keys = shown
        .iter()
        .map(|f| format!("{} = {}", f.key, example(&f.ty)));
    keys.collect::<Vec<_>>().join(", ")
}

fn words(types: &[Type]) -> impl Iterator<Item = &'static str> {
    let choices = types.iter().map(|ty| match ty {
        Type::Choice(words) => *words,
        _ => &[],
    });
    choices.flatten().map(|(word, _)| *word)
}

/// Checks a value that is not a table.
fn scalar(ty: &Type, item: &Item<'_>) -> Result<(), Diagnostic> {
    match (ty, &item.value.kind) {
        (Type::Text, Kind::Text(_)) | (Type::Bool, Kind::Bool(_)) => Ok(()),
        (Type::Name, Kind::Text(name)) => check_name(&name.replace("{}", "1"))
            .map_err(|why| item.wrong(format!("is not a name: {why}")).hint(NAME_HINT)),
        (Type::Int { min, max }, Kind::Int(int, _)) => {
            match int
                .and_then(|i| u64::try_from(i).ok())
                .is_some_and(|i| (*min..=*max).contains(&i))
            {
                true => Ok(()),
                false => Err(item
                    .wrong("is out of range")
                    .hint(format!("a whole number from {min} to {max}"))),
            }
        }
        (Type::Fraction, Kind::Float(..) | Kind::Int(..)) => number(item, 0.0, 1.0),
        (Type::Number { above, most }, Kind::Float(..) | Kind::Int(..)) => {
            number(item, *above, *most)
        }
        (Type::Quantities(quantity), Kind::List(values)) => values.iter().try_for_each(|value| {
            let element = Item::element(value, item.path.clone());
            scalar(&Type::Quantity(*quantity), &element)
        }),
        (Type::Quantity(quantity), Kind::Text(text)) => {
            quantity
                .check(text)
                .map_err(|e| match text.starts_with('-') {
                    true => item.wrong("is negative").hint(e.hint),
                    false => item.unit_error(e),
                })
        }
        (Type::Quantity(quantity), Kind::Int(_, number) | Kind::Float(_, number)) => Err(item
            .wrong(format!("is not {}: it has no unit", quantity.what()))
            .hint(format!("write {}", quantity.for_bare_number(number)))),
        (Type::Choice(words), Kind::Text(text)) => match words.iter().any(|(word, _)| word == text)
        {
            true => Ok(()),
            false => Err(item.wrong("is not one of the choices").maybe_hint(suggest(
                text,
                words.iter().map(|(word, _)| *word),
                "choices",
            ))),
        },
        (Type::Names, Kind::List(names)) => names_list(names, item),
        (Type::Paths, Kind::List(paths)) => paths_list(paths, item),
        _ => Err(mismatch(ty, item)),
    }
}

fn number(item: &Item<'_>, above: f64, most: f64) -> Result<(), Diagnostic> {
    match item.number() {
        Ok(f) if f > above && f <= most => Ok(()),
        _ => Err(item
            .wrong("is out of range")
            .hint(format!("more than {above}, at most {most}"))),
    }
}

fn names_list(names: &[Value], item: &Item<'_>) -> Result<(), Diagnostic> {
    match names.iter().find(|name| name.as_text().is_none()) {
        None => Ok(()),
        Some(wrong) => {
            let is_path = item.path.ends_with(".path") && wrong.as_list().is_some();
            let hint = match is_path {
                true => {
                    "one path is a list of links; several are paths = [[\"A\"], [\"B\"]]".into()
                }
                false => format!("write {}", example(&Type::Names)),
            };
            let message = format!("{} is not a name", wrong.quoted());
            Err(Diagnostic::new(wrong.origin, &item.path, message).hint(hint))
        }
    }
}

fn paths_list(paths: &[Value], item: &Item<'_>) -> Result<(), Diagnostic> {
    for path in paths {
        match path.as_list() {
            Some(names) => names_list(names, item)?,
            None => {
                return Err(Diagnostic::new(
                    path.origin,
                    &item.path,
                    format!("{} is not a path", path.quoted()),
                )
                .hint(format!(
                    "a path is a list of links: write {} = {}",
                    item.path.rsplit('.').next().unwrap_or_default(),
                    example(&Type::Paths)
                )));
            }
        }
    }
    Ok(())
}

fn mismatch(ty: &Type, item: &Item<'_>) -> Diagnostic {
    let what = match ty {
        Type::Text => "text in quotes",
        Type::Name => "a name in quotes",
        Type::Bool => "true or false",
        Type::Int { .. } => "a whole number",
        Type::Fraction | Type::Number { .. } => "a number",
        Type::Quantity(quantity) => quantity.what(),
        Type::Choice(_) => "one of the choices",
        Type::Names => "a list of names",
        Type::Quantities(_) => "a list",
        Type::Paths => "a list of paths",
        Type::Table(_) | Type::Map(_) => "a table",
        Type::Tables(_) => "a list of tables",
        Type::Algorithm => "an algorithm",
        Type::Scheduler => "a scheduler",
        Type::OneOf(_) => "a value of the right kind",
    };
    let hint = match ty {
        Type::Choice(words) => format!(
            "choices: {}",
            words
                .iter()
                .map(|(w, _)| format!("\"{w}\""))
                .collect::<Vec<_>>()
                .join(", ")
        ),
        Type::Map(_) => format!("write tables [{}.NAME]", item.path),
        Type::Bool => "write true or false, without quotes".to_string(),
        Type::Int { .. } => format!("write a whole number without quotes, e.g. {}", example(ty)),
        Type::Table(spec) => format!("write {{ {} }}", keys_example(spec)),
        Type::Tables(spec) => format!("write [{{ {} }}]", keys_example(spec)),
        _ => format!("write {}", example(ty)),
    };
    item.wrong(format!("is not {what}")).hint(hint)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Origin;
    use crate::format::SCENARIO;

    fn tables(spec: &'static TableSpec, found: &mut Vec<&'static TableSpec>) {
        fn of_type(ty: &'static Type, found: &mut Vec<&'static TableSpec>) {
            match ty {
                Type::Table(spec) | Type::Tables(spec) | Type::Map(spec) => tables(spec, found),
                Type::OneOf(types) => types.iter().for_each(|ty| of_type(ty, found)),
                _ => {}
            }
        }
        if !found.iter().any(|known| known.what == spec.what) {
            found.push(spec);
            spec.fields().for_each(|field| of_type(&field.ty, found));
        }
    }

    #[test]
    fn every_declared_default_is_a_value_that_a_file_could_have() {
        let mut specs = Vec::new();
        tables(&SCENARIO, &mut specs);
        let mut defaults = 0;
        for spec in specs {
            let table = Table::empty(spec, String::new(), Origin::Nowhere);
            for field in spec.fields().filter(|f| matches!(f.need, Need::Default(_))) {
                let mut checker = Checker {
                    errors: Vec::new(),
                    axes: Vec::new(),
                    inside_axis: false,
                };
                checker.field(field, &table.item(field.key).expect("a default"));
                assert!(
                    checker.errors.is_empty(),
                    "{}.{}: {:?}",
                    spec.what,
                    field.key,
                    checker.errors
                );
                defaults += 1;
            }
        }
        assert!(defaults > 20, "{defaults}");
    }

    #[test]
    fn no_table_declares_a_key_twice() {
        let mut specs = Vec::new();
        tables(&SCENARIO, &mut specs);
        for spec in specs {
            let keys: Vec<_> = spec.fields().map(|f| f.key).collect();
            let distinct: std::collections::BTreeSet<_> = keys.iter().collect();
            assert_eq!(keys.len(), distinct.len(), "{}: {keys:?}", spec.what);
        }
    }
}
