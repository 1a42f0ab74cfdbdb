//! Makes a trace from runs of other traces, as if one process had written all of them.

use super::error::TraceError;
use super::stored::StoredTrace;
use super::writer::TraceWriter;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A run of a trace that becomes part of another one.
#[derive(Debug, Clone)]
pub struct Part {
    /// The directory of the trace.
    pub dir: PathBuf,
    /// The number of the run there.
    pub run: u32,
    /// Texts that replace those of the `run` table, by column.
    pub texts: BTreeMap<String, String>,
}

/// Writes runs to one trace in the order of the parts, and numbers them from 0. The parts stay as they are.
///
/// # Errors
/// [`TraceError::Read`] for a part that is not a trace, or a column that does not exist; [`TraceError::OtherColumns`] for a
/// trace of another version; the errors of a [`TraceWriter`].
pub fn merge(parts: impl IntoIterator<Item = Part>, out: &Path) -> Result<(), TraceError> {
    let mut writer = TraceWriter::create(out)?;
    let mut open: BTreeMap<PathBuf, StoredTrace> = BTreeMap::new();
    for (new, part) in (0..).zip(parts) {
        let trace = match open.get_mut(&part.dir) {
            Some(trace) => trace,
            None => {
                // Files are few at a time, and the runs of a directory mostly stand together.
                if open.len() == MOST_OPEN {
                    open.clear();
                }
                let trace = StoredTrace::open(&part.dir)?;
                open.entry(part.dir.clone()).or_insert(trace)
            }
        };
        writer.append(trace.run(part.run, new, &part.texts)?)?;
    }
    writer.finish().map(drop)
}

/// Traces that are open at the same time, each with a file per table.
const MOST_OPEN: usize = 32;
