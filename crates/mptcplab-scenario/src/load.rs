//! All stages from a file to its runs: every combination of axis values, times repetitions.

use crate::check::{Axis, check};
use crate::document::{Overrides, Value, overrides, parse_document};
use crate::error::{Diagnostic, Error, Origin};
use crate::files::{FileSource, Files, bounded};
use crate::names::check_name;
use crate::resolve;
use crate::run::{Run, Sweep};
use std::path::Path;

/// Largest scenario file.
const MAX_TEXT_BYTES: usize = 1 << 20;
/// Largest number of runs of a sweep.
const MAX_RUNS: u64 = 100_000;
/// Largest product of runs and their nodes, links, changes, flows and subflows. A resolved sweep of this size takes about
/// 1 GB of memory.
const MAX_OBJECTS: u64 = 1_000_000;

/// Reads a scenario file and the files that it names, and expands its sweep.
///
/// # Errors
/// Every error of the file, with its place and what would be right.
pub fn load(path: &Path, overrides: &Overrides) -> Result<Sweep, Error> {
    let name = path.display().to_string();
    let refuse = |message: String, hint: &str| {
        Error::new(
            &name,
            vec![Diagnostic::new(Origin::Nowhere, "", message).hint(hint)],
        )
    };
    let bytes = bounded::read_any(path, MAX_TEXT_BYTES as u64).map_err(|e| {
        refuse(
            format!("cannot be read: {e}"),
            "give the path of a scenario file, or the name of one that `mptcplab scenarios` lists",
        )
    })?;
    let text = String::from_utf8(bytes).map_err(|_| {
        refuse(
            "not UTF-8 text".into(),
            "a scenario is a TOML file in UTF-8",
        )
    })?;
    parse(&text, &name, path.parent(), overrides)
}

/// Expands the text of a scenario. `file_name` is used in messages and for the scenario's default name. Files that the
/// scenario names are read from `base_dir`, and refused if there is none.
///
/// # Errors
/// As [`load`]. No text makes it panic.
pub fn parse(
    text: &str,
    file_name: &str,
    base_dir: Option<&Path>,
    overrides: &Overrides,
) -> Result<Sweep, Error> {
    let files = base_dir.map_or(FileSource::Nowhere, FileSource::Directory);
    parse_with(text, file_name, files, overrides)
}

/// Expands the text of a scenario as [`parse`] does, with files from any source.
///
/// # Errors
/// As [`load`]. No text makes it panic.
pub fn parse_with(
    text: &str,
    file_name: &str,
    files: FileSource<'_>,
    overrides: &Overrides,
) -> Result<Sweep, Error> {
    let fail = |diagnostics| Error::new(file_name, diagnostics);
    if text.len() > MAX_TEXT_BYTES {
        let message = format!("{} bytes of text", text.len());
        return Err(fail(vec![
            Diagnostic::new(Origin::Nowhere, "", message)
                .hint("a scenario has at most 1 MiB; use count for many equal links and flows"),
        ]));
    }
    let mut root = parse_document(text).map_err(fail)?;
    overrides::apply(&mut root, overrides).map_err(|e| fail(vec![e]))?;
    let axes = check(&root).map_err(fail)?;
    let mut files = Files::new(files);
    let runs = expand(&root, &axes, &mut files).map_err(|e| fail(vec![e]))?;
    let written = |key: &str| root.get(key).and_then(Value::as_text).map(str::to_string);
    let name = written("name").unwrap_or_else(|| stem(file_name));
    Ok(Sweep {
        title: written("title").unwrap_or_else(|| name.clone()),
        name,
        source: written("source").unwrap_or_default(),
        text: text.to_string(),
        runs,
        axes: axes
            .iter()
            .map(|a| (a.path.clone(), a.values.iter().map(Value::label).collect()))
            .collect(),
        files: files.names(),
    })
}

/// The first axis changes slowest, repetitions fastest.
fn expand(root: &Value, axes: &[Axis], files: &mut Files<'_>) -> Result<Vec<Run>, Diagnostic> {
    let repetitions = resolve::repetitions(root)?;
    let combinations = axes
        .iter()
        .try_fold(1u64, |n, axis| n.checked_mul(axis.values.len() as u64));
    let total = combinations
        .and_then(|n| n.checked_mul(repetitions))
        .filter(|&n| n <= MAX_RUNS);
    let (Some(combinations), Some(total)) = (combinations, total) else {
        let sizes: Vec<String> = axes
            .iter()
            .map(|a| format!("{} ({})", a.path, a.values.len()))
            .collect();
        let message = format!(
            "more than {MAX_RUNS} runs: {} x {repetitions} repetitions",
            sizes.join(" x ")
        );
        return Err(Diagnostic::new(Origin::Nowhere, "", message)
            .hint("shorten an axis or lower repetitions"));
    };
    let mut runs: Vec<Run> = Vec::new();
    for combination in 0..combinations {
        files.rep = 0;
        files.differ_by_rep = false;
        let (mut run, objects) = resolve_combination(root, axes, combination, files)?;
        if total.saturating_mul(objects) > MAX_OBJECTS {
            let message = format!(
                "{total} runs of {objects} nodes, links, flows and subflows are too many at once"
            );
            return Err(Diagnostic::new(Origin::Nowhere, "", message).hint(format!(
                "at most {MAX_OBJECTS} in all; split the sweep over several files"
            )));
        }
        for rep in 0..repetitions {
            if rep > 0 && files.differ_by_rep {
                files.rep = rep;
                run = resolve_combination(root, axes, combination, files)?.0;
            }
            // Invariant: both fit, because there are at most MAX_RUNS runs.
            run.id = u32::try_from(runs.len()).unwrap_or(u32::MAX);
            run.rep = u32::try_from(rep).unwrap_or(u32::MAX);
            runs.push(run.clone());
        }
    }
    Ok(runs)
}

/// The run of one combination of axis values, and the number of objects that it consists of.
fn resolve_combination(
    root: &Value,
    axes: &[Axis],
    combination: u64,
    files: &mut Files<'_>,
) -> Result<(Run, u64), Diagnostic> {
    let mut document = root.clone();
    let mut rest = combination;
    let mut chosen = Vec::with_capacity(axes.len());
    for axis in axes.iter().rev() {
        let size = axis.values.len() as u64;
        // The index is below the length of the axis.
        let value = &axis.values[(rest % size) as usize];
        rest /= size;
        set(&mut document, &axis.path, value);
        chosen.push((axis.path.clone(), value.label()));
    }
    chosen.reverse();
    let mut run = resolve::run(&document, files)?;
    run.axes = chosen;
    let changes: usize = run.links.iter().map(|l| l.config.schedule.len()).sum();
    let subflows: usize = run.flows.iter().map(|f| f.subflows().len()).sum();
    let objects = run.nodes.len() + run.links.len() + changes + run.flows.len() + subflows;
    Ok((run, objects as u64))
}

fn set(document: &mut Value, path: &str, value: &Value) {
    let mut here = document;
    for part in path.split('.') {
        match here.child_mut(part) {
            Some(child) => here = child,
            // Unreachable: the axis was found at this path, and names have no dots.
            None => return,
        }
    }
    *here = value.clone();
}

/// The stem of the file's name as a valid scenario name.
fn stem(file_name: &str) -> String {
    let stem = Path::new(file_name)
        .file_stem()
        .map(|s| s.to_string_lossy().into_owned())
        .unwrap_or_default();
    let kept = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let letters = stem.chars().map(|c| if kept(c) { c } else { '-' });
    let clean: String = letters.take(64).collect();
    let clean = clean.trim_matches('-');
    match check_name(clean) {
        Ok(()) => clean.to_string(),
        Err(_) => "scenario".to_string(),
    }
}
