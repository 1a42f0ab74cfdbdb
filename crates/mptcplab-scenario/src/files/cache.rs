//! Finds and reads the files that a scenario names, each once for a whole sweep.

use super::{mahimahi, schedule};
use crate::document::{Item, Res};
use crate::error::Diagnostic;
use mptcplab_model::link::{Change, DeliveryTrace};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Largest file.
const MAX_FILE_BYTES: u64 = 256 << 20;
/// Placeholder of the repetition's number in file names.
const REP: &str = "{rep}";

/// The files of a scenario, with the ones read so far.
pub(crate) struct Files<'a> {
    base_dir: Option<&'a Path>,
    /// The repetition whose files are read, from 0.
    pub(crate) rep: u64,
    /// Whether the name of a file depended on `rep`.
    pub(crate) differ_by_rep: bool,
    traces: BTreeMap<String, DeliveryTrace>,
    schedules: BTreeMap<String, Vec<Change>>,
}

impl<'a> Files<'a> {
    pub(crate) fn new(base_dir: Option<&'a Path>) -> Self {
        Self {
            base_dir,
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
        let Some(base_dir) = self.base_dir else {
            return Err(item
                .wrong("cannot be read: the scenario is not in a file")
                .hint("trace files are found relative to the scenario file"));
        };
        let path = base_dir.join(name);
        read(&path).map_err(|why| {
            item.wrong(format!("cannot be read: {}: {why}", path.display()))
                .hint("the path is relative to the scenario file")
        })
    }

    fn malformed(
        &self,
        item: &Item<'_>,
        name: &str,
        what: &str,
        (line, why): (usize, String),
        hint: &str,
    ) -> Diagnostic {
        let path = self.base_dir.unwrap_or(Path::new("")).join(name);
        item.wrong(format!("is not {what}: {}:{line}: {why}", path.display()))
            .hint(hint)
    }
}

fn read(path: &Path) -> Result<String, String> {
    let size = std::fs::metadata(path).map_err(|e| e.to_string())?.len();
    if size > MAX_FILE_BYTES {
        return Err(format!("{size} bytes are too many"));
    }
    std::fs::read_to_string(path).map_err(|e| e.to_string())
}
