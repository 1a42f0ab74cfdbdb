//! Joins traces to one, as if one process had written all their runs.

use super::error::TraceError;
use super::writer::{FILES, RUNS_PER_GROUP, TraceWriter};
use arrow_array::cast::AsArray as _;
use arrow_array::types::UInt32Type;
use arrow_array::{ArrayRef, RecordBatch, StringArray, UInt32Array};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::errors::{ParquetError, Result as ParquetResult};
use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A trace that becomes part of another one.
#[derive(Debug, Clone)]
pub struct Part {
    /// The directory of the trace.
    pub dir: PathBuf,
    /// Texts that replace those of the `run` table, by column.
    pub texts: BTreeMap<String, String>,
}

/// The new number of each run of a part.
type Numbers = BTreeMap<u32, u32>;

/// Writes the runs of all parts to one trace in the order of the parts, and numbers them from 0. The parts stay as they
/// are.
///
/// # Errors
/// [`TraceError::Read`] for a part that is not a trace, or a column that does not exist; the errors of a [`TraceWriter`].
pub fn merge(parts: &[Part], out: &Path) -> Result<(), TraceError> {
    let mut writer = TraceWriter::create(out)?;
    let mut numbers: Vec<Numbers> = Vec::new();
    let mut rows = Vec::new();
    let mut next = 0;
    for part in parts {
        let path = part.dir.join(FILES[0]);
        let mut own = Numbers::new();
        each_group(&path, &mut |batches| {
            for batch in &batches {
                for &old in batch.column(0).as_primitive::<UInt32Type>().values() {
                    own.insert(old, next);
                    next += 1;
                }
                let batch =
                    renumbered(batch, &own).and_then(|batch| with_texts(&batch, &part.texts));
                let batch = batch.map_err(TraceError::read(&path))?;
                rows.extend((0..batch.num_rows()).map(|row| batch.slice(row, 1)));
            }
            Ok(())
        })?;
        numbers.push(own);
    }
    for group in rows.chunks(RUNS_PER_GROUP) {
        writer.append_rows(0, group)?;
    }
    for (part, numbers) in std::iter::zip(parts, &numbers) {
        for (index, name) in FILES.iter().enumerate().skip(1) {
            let path = part.dir.join(name);
            each_group(&path, &mut |batches| {
                let batches = batches.iter().map(|batch| renumbered(batch, numbers));
                let batches: ParquetResult<Vec<RecordBatch>> = batches.collect();
                writer.append_rows(index, &batches.map_err(TraceError::read(&path))?)
            })?;
        }
    }
    writer.finish()
}

/// Calls `take` with the rows of each row group of a file.
fn each_group(
    path: &Path,
    take: &mut dyn FnMut(Vec<RecordBatch>) -> Result<(), TraceError>,
) -> Result<(), TraceError> {
    let open = || File::open(path).map_err(TraceError::io("read", path));
    let builder =
        |file| ParquetRecordBatchReaderBuilder::try_new(file).map_err(TraceError::read(path));
    let groups = builder(open()?)?.metadata().num_row_groups();
    for group in 0..groups {
        let reader = builder(open()?)?.with_row_groups(vec![group]).build();
        let batches: Result<Vec<RecordBatch>, _> =
            reader.map_err(TraceError::read(path))?.collect();
        take(batches.map_err(|error| TraceError::read(path)(error.into()))?)?;
    }
    Ok(())
}

/// The rows with the new numbers of their runs, which are the first column of every table.
fn renumbered(batch: &RecordBatch, numbers: &Numbers) -> ParquetResult<RecordBatch> {
    let old = batch.column(0).as_primitive::<UInt32Type>();
    let new = old.values().iter().map(|run| {
        let unknown = || ParquetError::General(format!("run {run} is not in the run table"));
        numbers.get(run).copied().ok_or_else(unknown)
    });
    let new: UInt32Array = new.collect::<ParquetResult<Vec<u32>>>()?.into();
    with_column(batch, 0, Arc::new(new))
}

/// The rows with other texts in some columns.
fn with_texts(batch: &RecordBatch, texts: &BTreeMap<String, String>) -> ParquetResult<RecordBatch> {
    texts.iter().try_fold(batch.clone(), |batch, (name, text)| {
        let index = batch.schema().index_of(name)?;
        let column = StringArray::from(vec![text.as_str(); batch.num_rows()]);
        with_column(&batch, index, Arc::new(column))
    })
}

fn with_column(batch: &RecordBatch, index: usize, column: ArrayRef) -> ParquetResult<RecordBatch> {
    let mut columns = batch.columns().to_vec();
    columns[index] = column;
    Ok(RecordBatch::try_new(batch.schema(), columns)?)
}
