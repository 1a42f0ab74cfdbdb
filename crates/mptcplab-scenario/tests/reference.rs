//! The reference page and the JSON Schema agree with the parser.

use mptcplab_scenario::{Overrides, json_schema, parse, reference_page};
use serde_json::Value;

#[test]
fn the_example_of_the_reference_page_is_a_scenario() {
    let page = reference_page();
    let (_, rest) = page.split_once("```toml\n").expect("an example");
    let (example, _) = rest.split_once("```").expect("its end");
    let sweep = parse(example, "example.toml", None, &Overrides::default())
        .unwrap_or_else(|e| panic!("error: {e}"));
    assert_eq!(sweep.runs.len(), 20);
}

#[test]
fn every_link_of_the_reference_page_has_its_heading() {
    let page = reference_page();
    let anchor = |heading: &str| -> String {
        let lowercase = heading.to_lowercase();
        let anchor = lowercase
            .chars()
            .filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
        anchor.collect::<String>().replace(' ', "-")
    };
    let headings: Vec<String> = page
        .lines()
        .filter_map(|line| line.strip_prefix("## "))
        .map(anchor)
        .collect();
    let mut links = 0;
    for part in page.split("](#").skip(1) {
        let (target, _) = part.split_once(')').expect("a closed link");
        assert!(
            headings.iter().any(|h| h == target),
            "{target} is not in {headings:?}"
        );
        links += 1;
    }
    assert!(links > 8, "{links}");
}

#[test]
fn the_schema_knows_every_key_of_the_shipped_scenarios() {
    let schema = json_schema();
    for folder in ["../../scenarios", "../../scenarios/bench"] {
        for entry in std::fs::read_dir(folder).expect("a folder of scenarios") {
            let path = entry.expect("a readable folder").path();
            if path.extension().is_some_and(|e| e == "toml") {
                let text = std::fs::read_to_string(&path).expect("a text file");
                let document: toml::Table = text.parse().expect("a TOML file");
                known(
                    &toml::Value::Table(document),
                    &schema,
                    &path.display().to_string(),
                );
            }
        }
    }
}

/// Descends into tables that have exactly one schema.
fn known(value: &toml::Value, schema: &Value, at: &str) {
    let Some(table) = value.as_table() else {
        return;
    };
    for (key, value) in table {
        let at = format!("{at}: {key}");
        match schema.get("properties") {
            Some(properties) => known(
                value,
                properties
                    .get(key)
                    .unwrap_or_else(|| panic!("{at} is not in the schema")),
                &at,
            ),
            None => {
                let inner = schema
                    .get("additionalProperties")
                    .filter(|inner| inner.is_object());
                if let Some(inner) = inner {
                    known(value, inner, &at);
                }
            }
        }
    }
}
