//! The order of the simulator's folders, as `src/lib.rs` describes it: an import never runs upwards, and files of one folder
//! do not import each other in a cycle.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// From the bottom to the top.
const ORDER: [&str; 7] = ["net", "stream", "tcp", "mptcp", "sctp", "app", "engine"];

/// The files and folders that every file imports, with files as `folder::module`.
fn imports() -> BTreeMap<String, BTreeSet<String>> {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut all = BTreeMap::new();
    for folder in ORDER {
        for entry in fs::read_dir(src.join(folder)).unwrap() {
            let path = entry.unwrap().path();
            assert!(
                path.is_file(),
                "{} lies deeper than one folder",
                path.display()
            );
            let module = path.file_stem().unwrap().to_str().unwrap().to_owned();
            let text = fs::read_to_string(&path).unwrap();
            let (code, _tests) = text.split_once("#[cfg(test)]").unwrap_or((&text, ""));
            let lines = code.lines().map(str::trim_start);
            let paths = lines.filter_map(|line| {
                let line = line.strip_prefix("pub(crate) ").unwrap_or(line);
                let path = line.strip_prefix("use ")?;
                let path = path.trim_start_matches("crate::");
                Some(match path.strip_prefix("super::") {
                    Some(sibling) => format!("{folder}::{sibling}"),
                    None => path.to_owned(),
                })
            });
            let imported = paths.filter(|p| ORDER.iter().any(|f| p.starts_with(&format!("{f}::"))));
            let names = imported.map(|path| {
                let module = |c: char| !(c.is_ascii_lowercase() || c == '_' || c == ':');
                let path = path.split(module).next().unwrap_or_default();
                let parts: Vec<&str> = path.split("::").filter(|p| !p.is_empty()).collect();
                parts[..parts.len().min(2)].join("::")
            });
            all.insert(format!("{folder}::{module}"), names.collect());
        }
    }
    all
}

fn floor(module: &str) -> usize {
    let folder = module.split("::").next().unwrap();
    ORDER.iter().position(|f| *f == folder).unwrap()
}

#[test]
fn no_folder_imports_one_above_it() {
    let imports = imports();
    let count = imports.values().map(BTreeSet::len).sum::<usize>();
    assert!(count > 100, "only {count} imports were read");
    for (module, imported) in &imports {
        for other in imported {
            assert!(
                floor(other) <= floor(module),
                "{module} imports {other}, which lies above it"
            );
        }
    }
}

#[test]
fn no_files_of_a_folder_import_each_other_in_a_circle() {
    let mut left = imports();
    // Remove every file that imports none of the remaining ones, until there is no such file. Files that remain are in a
    // cycle or import one.
    loop {
        let ready: Vec<String> = left
            .iter()
            .filter(|(_, imported)| !imported.iter().any(|i| left.contains_key(i)))
            .map(|(module, _)| module.clone())
            .collect();
        if ready.is_empty() {
            break;
        }
        for module in ready {
            left.remove(&module);
        }
    }
    assert!(left.is_empty(), "in a circle, or above one: {left:#?}");
}
