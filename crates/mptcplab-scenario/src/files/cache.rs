//! Finds and reads the files that a scenario names, each once for a whole sweep.

use super::{bounded, mahimahi, schedule};
use crate::document::{Item, Res};
use crate::error::Diagnostic;
use mptcplab_model::link::{Change, DeliveryTrace};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Largest file.
const MAX_FILE_BYTES: u64 = 256 << 20;
/// Placeholder of the repetition's number in file names.
const REP: &str = "{rep}";

/// Where the files that a scenario names are found.
#[derive(Debug, Clone, Copy)]
pub enum FileSource<'a> {
    /// There are none: naming a file is an error.
    Nowhere,
    /// Relative to a directory.
    Directory(&'a Path),
    /// In memory, for programs without a file system: the text of each file under the name that the scenario uses.
    Texts(&'a BTreeMap<String, String>),
}

/// The files of a scenario, with the ones read so far.
pub(crate) struct Files<'a> {
    source: FileSource<'a>,
    /// The repetition whose files are read, from 0.
    pub(crate) rep: u64,
    /// Whether the name of a file depended on `rep`.
    pub(crate) differ_by_rep: bool,
    traces: BTreeMap<String, DeliveryTrace>,
    schedules: BTreeMap<String, Vec<Change>>,
}

impl<'a> Files<'a> {
    pub(crate) fn new(source: FileSource<'a>) -> Self {
        Self {
            source,
            rep: 0,
            differ_by_rep: false,
            traces: BTreeMap::new(),
            schedules: BTreeMap::new(),
        }
    }

    /// A packet-delivery trace.
    pub(crate) fn trace(&mut self, item: &Item<'_>) -> Res<DeliveryTrace> {
        let name = self.name(item)?;
        if let Some(trace) = self.traces.get(&name) {
            return Ok(trace.clone());
        }
        let text = self.read(item, &name)?;
        let trace = mahimahi::parse(&name, &text).map_err(|wrong| {
            self.malformed(item, &name, "a Mahimahi trace", wrong, mahimahi::HINT)
        })?;
        self.traces.insert(name, trace.clone());
        Ok(trace)
    }

    /// A table of link changes.
    pub(crate) fn schedule(&mut self, item: &Item<'_>) -> Res<Vec<Change>> {
        let name = self.name(item)?;
        if let Some(changes) = self.schedules.get(&name) {
            return Ok(changes.clone());
        }
        let text = self.read(item, &name)?;
        let changes = schedule::parse(&text).map_err(|wrong| {
            self.malformed(item, &name, "a table of changes", wrong, schedule::HINT)
        })?;
        self.schedules.insert(name, changes.clone());
        Ok(changes)
    }

    /// The names of all files read so far, relative to the scenario file, sorted.
    pub(crate) fn names(self) -> Vec<String> {
        let names: BTreeSet<String> = self
            .traces
            .into_keys()
            .chain(self.schedules.into_keys())
            .collect();
        names.into_iter().collect()
    }

    fn name(&mut self, item: &Item<'_>) -> Res<String> {
        let written = item.text()?;
        self.differ_by_rep |= written.contains(REP);
        Ok(written.replace(REP, &self.rep.to_string()))
    }

    fn read(&self, item: &Item<'_>, name: &str) -> Res<String> {
        let (text, hint) = match self.source {
            FileSource::Nowhere => {
                return Err(item
                    .wrong("cannot be read: the scenario is not in a file")
                    .hint("trace files are found relative to the scenario file"));
            }
            FileSource::Directory(dir) => (
                read(&dir.join(name)),
                "the path is relative to the scenario file".to_owned(),
            ),
            FileSource::Texts(texts) => (
                texts.get(name).cloned().ok_or("no such file".to_owned()),
                format!("the files here are: {}", known(texts)),
            ),
        };
        // Some editors begin a text with a byte-order mark.
        let text = text.map(|text| match text.strip_prefix('\u{feff}') {
            Some(rest) => rest.to_owned(),
            None => text,
        });
        text.map_err(|why| {
            item.wrong(format!("cannot be read: {}: {why}", self.place(name)))
                .hint(hint)
        })
    }

    /// The file as messages name it.
    fn place(&self, name: &str) -> String {
        match self.source {
            FileSource::Directory(dir) => dir.join(name).display().to_string(),
            FileSource::Nowhere | FileSource::Texts(_) => name.to_owned(),
        }
    }

    fn malformed(
        &self,
        item: &Item<'_>,
        name: &str,
        what: &str,
        (line, why): (usize, String),
        hint: &str,
    ) -> Diagnostic {
        item.wrong(format!("is not {what}: {}:{line}: {why}", self.place(name)))
            .hint(hint)
    }
}

fn known(texts: &BTreeMap<String, String>) -> String {
    let names: Vec<&str> = texts.keys().map(String::as_str).collect();
    match names[..] {
        [] => "none".to_owned(),
        _ => names.join(", "),
    }
}

fn read(path: &Path) -> Result<String, String> {
    let bytes = bounded::read(path, MAX_FILE_BYTES)?;
    String::from_utf8(bytes).map_err(|_| "not UTF-8 text".into())
}
