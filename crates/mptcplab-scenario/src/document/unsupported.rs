//! Errors for settings that an engine does not support.

use super::overrides::{self, Overrides};
use super::value::{Value, parse_document};
use crate::error::{Diagnostic, Origin};

/// An error that names the place of an unsupported setting. It names the first of `keys` that the file or an override
/// sets, or the first key if none is set.
#[must_use]
pub fn unsupported_setting(
    (file, text, changed): (&str, &str, &Overrides),
    keys: &[String],
    message: impl Into<String>,
    hint: Option<String>,
) -> Diagnostic {
    let found = document(text, changed).and_then(|root| {
        let written = keys.iter().find_map(|key| Some((key, origin(&root, key)?)));
        written.map(|(key, origin)| (key.clone(), origin))
    });
    let (key, origin) = found.unwrap_or_else(|| {
        let key = keys.first().cloned().unwrap_or_default();
        (key, Origin::Nowhere)
    });
    let mut diagnostic = Diagnostic::new(origin, key, message).maybe_hint(hint);
    diagnostic.file = file.to_string();
    diagnostic
}

fn document(text: &str, changed: &Overrides) -> Option<Value> {
    let mut root = parse_document(text).ok()?;
    overrides::apply(&mut root, changed).ok()?;
    Some(root)
}

/// The place of the value at a key path. A table has no place of its own, so for tables it is that of the key.
fn origin(root: &Value, key: &str) -> Option<Origin> {
    let mut here = root;
    let mut place = Origin::Nowhere;
    for part in key.split('.') {
        let entry = here.as_table()?.iter().find(|e| e.key == part)?;
        here = &entry.value;
        place = match here.as_table() {
            Some(_) => entry.key_origin,
            None => here.origin,
        };
    }
    Some(place)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "duration = \"1 s\"\nscheduler = \"minrtt\"\n\n[flows.a]\necn = true\n";

    fn place(keys: &[&str], changed: &Overrides) -> String {
        let keys: Vec<String> = keys.iter().map(|k| (*k).to_string()).collect();
        unsupported_setting(("f.toml", TEXT, changed), &keys, "no", None).to_string()
    }

    #[test]
    fn the_first_key_that_is_written_gives_the_line() {
        let none = Overrides::default();
        assert_eq!(
            place(&["flows.a.scheduler", "scheduler"], &none),
            "f.toml:2:13: scheduler: no"
        );
        assert_eq!(
            place(&["flows.a.ecn"], &none),
            "f.toml:5:7: flows.a.ecn: no"
        );
        assert_eq!(
            place(&["flows.a.pacing", "flows.a"], &none),
            "f.toml:4:8: flows.a: no"
        );
        assert_eq!(
            place(&["flows.b.pacing", "tcp.pacing"], &none),
            "f.toml: flows.b.pacing: no"
        );
    }

    #[test]
    fn an_override_is_no_line_of_the_file() {
        let changed = Overrides {
            set: vec![("scheduler".into(), "roundrobin".into())],
            ..Overrides::default()
        };
        assert_eq!(
            place(&["scheduler"], &changed),
            "command line: scheduler: no"
        );
    }

    #[test]
    fn overrides_are_an_object_of_known_keys() {
        let changed = Overrides::from_json(r#"{"reps": 2, "set": [["scheduler", "linger"]]}"#);
        let changed = changed.expect("valid");
        assert_eq!(
            (changed.reps, changed.set[0].1.as_str()),
            (Some(2), "linger")
        );
        let error = Overrides::from_json(r#"{"rep": 2}"#).expect_err("misspelt");
        assert!(error.contains("unknown field `rep`"), "{error}");
    }
}
