//! Makes the trace of a sweep from runs that other traces have, with the bytes of a sweep that was never interrupted.

use mptcplab_scenario::Sweep;
use mptcplab_trace::parquet::{Part, TraceError, merge};
use mptcplab_trace::texts_of_sweep;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Writes the runs of `sweep` to `out`; `kept` says in which trace each is, and under which number. What a run is called
/// depends on the sweep that it is part of now.
pub(crate) fn assemble(
    sweep: &Sweep,
    kept: &BTreeMap<u32, (PathBuf, u32)>,
    out: &Path,
) -> Result<(), TraceError> {
    let parts = sweep.runs.iter().filter_map(|run| {
        let (dir, number) = kept.get(&run.id)?;
        let texts = texts_of_sweep(sweep, run).map(|(column, text)| (column.to_owned(), text));
        Some(Part {
            dir: dir.clone(),
            run: *number,
            texts: texts.into(),
        })
    });
    merge(parts, out)
}
