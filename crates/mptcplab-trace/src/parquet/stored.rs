//! Runs of a trace on disk, one at a time, so that they can become part of another trace.

use super::batch::schemas;
use super::encode::{Chunk, EncodedRun, Group, ROWS_PER_GROUP, Rows};
use super::error::TraceError;
use super::writer::FILES;
use arrow_array::cast::AsArray as _;
use arrow_array::types::UInt32Type;
use arrow_array::{ArrayRef, RecordBatch, StringArray, UInt32Array};
use arrow_schema::{DataType, Field, SchemaRef};
use arrow_select::concat::concat_batches;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder,
};
use parquet::column::writer::ColumnCloseResult;
use parquet::errors::{ParquetError, Result as ParquetResult};
use parquet::file::metadata::RowGroupMetaData;
use parquet::file::statistics::Statistics;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs::File;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Rows that are decoded at once; more come in several batches, as the number may be damaged.
const MOST_ROWS: usize = 1 << 20;

/// A directory with the tables of runs.
pub(super) struct StoredTrace {
    dir: PathBuf,
    /// The `run` table, in order.
    rows: Vec<RecordBatch>,
    /// All other tables, in the order of [`FILES`]; `None` for one that the trace does not have.
    tables: Vec<Option<StoredTable>>,
}

impl StoredTrace {
    /// Opens a trace, of this or a former layout.
    pub(super) fn open(dir: &Path) -> Result<Self, TraceError> {
        let path = dir.join(FILES[0]);
        let schema = schemas()[0].1.clone();
        let mut table = StoredTable::open(&path)?
            .ok_or_else(|| TraceError::read(&path)(ParquetError::General("no such file".into())))?;
        let mut rows = Vec::new();
        for group in 0..table.metadata.metadata().num_row_groups() {
            let batch = table.decode(group).map_err(TraceError::read(&path))?;
            rows.push(of_this_version(&path, &batch, &schema)?);
        }
        let tables = std::iter::zip(FILES, schemas()).skip(1);
        let tables = tables.map(|(name, (_, schema))| {
            let path = dir.join(name);
            let table = StoredTable::open(&path)?;
            if let Some(table) = &table {
                require_columns(&path, table.metadata.schema(), &schema)?;
            }
            Ok(table)
        });
        Ok(Self {
            dir: dir.to_owned(),
            rows,
            tables: tables.collect::<Result<_, TraceError>>()?,
        })
    }

    /// A run under the number `new`, with other texts in some columns of the `run` table.
    pub(super) fn run(
        &mut self,
        run: u32,
        new: u32,
        texts: &BTreeMap<String, String>,
    ) -> Result<EncodedRun, TraceError> {
        let path = self.dir.join(FILES[0]);
        let row = self.rows.iter().find_map(|batch| {
            let at = numbers(batch).binary_search(&run).ok()?;
            Some(batch.slice(at, 1))
        });
        let row = row.ok_or_else(|| {
            TraceError::read(&path)(ParquetError::General(format!("there is no run {run}")))
        })?;
        let row = renumbered(&row, new)
            .and_then(|row| with_texts(&row, texts))
            .and_then(|row| with_place(&row, new))
            .map_err(TraceError::read(&path))?;
        let tables = self.tables.iter_mut().zip(&FILES[1..]);
        let tables = tables.map(|(table, name)| match table {
            None => Ok(Rows::None),
            Some(table) => table
                .rows(run, new)
                .map_err(TraceError::read(&self.dir.join(name))),
        });
        Ok(EncodedRun {
            run: new,
            row,
            tables: tables.collect::<Result<_, _>>()?,
        })
    }
}

/// A table other than `run`. Its rows are sorted by run, and those of a run are in one row group or several.
struct StoredTable {
    file: Arc<File>,
    metadata: ArrowReaderMetadata,
    /// The first and the last run of every row group.
    runs: Vec<(u32, u32)>,
    /// The row group that was decoded last.
    decoded: Option<(usize, RecordBatch)>,
}

impl StoredTable {
    fn open(path: &Path) -> Result<Option<Self>, TraceError> {
        let file = match File::open(path) {
            Ok(file) => Arc::new(file),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(TraceError::io("read", path)(error)),
        };
        let metadata = undamaged(|| ArrowReaderMetadata::load(&*file, options()))
            .map_err(TraceError::read(path))?;
        let runs = metadata.metadata().row_groups().iter().map(first_and_last);
        let runs = runs
            .collect::<ParquetResult<_>>()
            .map_err(TraceError::read(path))?;
        Ok(Some(Self {
            file,
            metadata,
            runs,
            decoded: None,
        }))
    }

    /// The rows of a run under a new number.
    fn rows(&mut self, run: u32, new: u32) -> ParquetResult<Rows> {
        let begin = self.runs.partition_point(|(_, last)| *last < run);
        let end = self.runs.partition_point(|(first, _)| *first <= run);
        if begin >= end {
            return Ok(Rows::None);
        }
        let groups = begin..end;
        let rows: i64 = groups.clone().map(|group| self.rows_in(group)).sum();
        let is_own = |group| self.runs[group] == (run, run) && self.is_whole(group);
        if rows >= ROWS_PER_GROUP as i64 && groups.clone().all(is_own) {
            return Ok(Rows::Groups(
                groups.map(|group| self.group(group)).collect(),
            ));
        }
        let mut batches = Vec::new();
        for group in groups {
            let batch = self.decode(group)?;
            let numbers = numbers(&batch);
            let begin = numbers.partition_point(|number| *number < run);
            let end = numbers.partition_point(|number| *number <= run);
            batches.push(batch.slice(begin, end - begin));
        }
        let batch = concat_batches(self.metadata.schema(), &batches)?;
        match batch.num_rows() {
            0 => Ok(Rows::None),
            _ => renumbered(&batch, new).map(Rows::Few),
        }
    }

    fn rows_in(&self, group: usize) -> i64 {
        self.metadata.metadata().row_group(group).num_rows()
    }

    /// Whether all columns have a value in every row.
    fn is_whole(&self, group: usize) -> bool {
        let metadata = self.metadata.metadata().row_group(group);
        let columns = metadata.columns().iter();
        columns
            .map(|column| column.num_values())
            .all(|values| values == metadata.num_rows())
    }

    /// The columns of a row group as they are on disk, without the first.
    fn group(&self, group: usize) -> Group {
        let metadata = self.metadata.metadata().row_group(group);
        let rows = metadata.num_rows();
        let chunk = |column: &parquet::file::metadata::ColumnChunkMetaData| {
            let close = ColumnCloseResult {
                bytes_written: column.compressed_size() as u64,
                rows_written: rows as u64,
                metadata: column.clone(),
                bloom_filter: None,
                column_index: None,
                offset_index: None,
            };
            Chunk::Stored(Arc::clone(&self.file), Box::new(close))
        };
        Group {
            rows: rows as usize,
            chunks: metadata.columns().iter().skip(1).map(chunk).collect(),
        }
    }

    /// All rows of a row group.
    fn decode(&mut self, group: usize) -> ParquetResult<RecordBatch> {
        if let Some((_, batch)) = self.decoded.as_ref().filter(|(at, _)| *at == group) {
            return Ok(batch.clone());
        }
        let rows = self.metadata.metadata().row_group(group).num_rows();
        let file = self.file.try_clone()?;
        let reader =
            ParquetRecordBatchReaderBuilder::new_with_metadata(file, self.metadata.clone())
                .with_row_groups(vec![group])
                .with_batch_size(usize::try_from(rows).map_or(1, |rows| rows.clamp(1, MOST_ROWS)))
                .build()?;
        let batches = undamaged(|| Ok(reader.collect::<Result<Vec<_>, _>>()?))?;
        let batch = concat_batches(self.metadata.schema(), &batches)?;
        self.decoded = Some((group, batch.clone()));
        Ok(batch)
    }
}

/// Reads something of a file. The reader of Parquet panics about some damaged ones.
fn undamaged<T>(read: impl FnOnce() -> ParquetResult<T>) -> ParquetResult<T> {
    let damaged = |_| Err(ParquetError::General("the file is damaged".into()));
    catch_unwind(AssertUnwindSafe(read)).unwrap_or_else(damaged)
}

/// Metadata as they are, so that a column that is copied has the same.
fn options() -> ArrowReaderOptions {
    ArrowReaderOptions::new().with_encoding_stats_as_mask(false)
}

/// The first column of every table.
fn numbers(batch: &RecordBatch) -> &[u32] {
    batch.column(0).as_primitive::<UInt32Type>().values()
}

/// The first and the last run of a row group.
fn first_and_last(group: &RowGroupMetaData) -> ParquetResult<(u32, u32)> {
    let runs = match group.column(0).statistics() {
        Some(Statistics::Int32(runs)) => runs.min_opt().zip(runs.max_opt()),
        _ => None,
    };
    let unknown = || ParquetError::General("a row group does not say whose rows it has".into());
    let (first, last) = runs.ok_or_else(unknown)?;
    Ok((*first as u32, *last as u32))
}

/// Rows of the `run` table with the columns of this version. Texts that a former version did not write are empty.
fn of_this_version(
    path: &Path,
    batch: &RecordBatch,
    schema: &SchemaRef,
) -> Result<RecordBatch, TraceError> {
    let column = |field: &Arc<Field>| match batch.column_by_name(field.name()) {
        Some(column) if column.data_type() == field.data_type() => Ok(Arc::clone(column)),
        None if *field.data_type() == DataType::Utf8 => {
            Ok(Arc::new(StringArray::from(vec![""; batch.num_rows()])) as ArrayRef)
        }
        _ => Err(TraceError::OtherColumns {
            path: path.to_owned(),
            column: field.name().clone(),
        }),
    };
    let columns = schema.fields().iter().map(column);
    RecordBatch::try_new(Arc::clone(schema), columns.collect::<Result<_, _>>()?)
        .map_err(|error| TraceError::read(path)(error.into()))
}

/// Refuses a table of another version, whose columns are others.
fn require_columns(path: &Path, found: &SchemaRef, expected: &SchemaRef) -> Result<(), TraceError> {
    let columns = |schema: &SchemaRef| {
        let column = |field: &Arc<Field>| {
            (
                field.name().clone(),
                field.data_type().clone(),
                field.is_nullable(),
            )
        };
        schema.fields().iter().map(column).collect::<Vec<_>>()
    };
    let (found, expected) = (columns(found), columns(expected));
    let differs = |one: &[(String, _, _)], other: &[(String, _, _)]| {
        let column = one.iter().find(|column| !other.contains(column));
        column.map(|(name, _, _)| name.clone())
    };
    match differs(&expected, &found).or_else(|| differs(&found, &expected)) {
        Some(column) => Err(TraceError::OtherColumns {
            path: path.to_owned(),
            column,
        }),
        None => Ok(()),
    }
}

/// The rows with another number of their run, which is the first column of every table.
fn renumbered(batch: &RecordBatch, run: u32) -> ParquetResult<RecordBatch> {
    let numbers = UInt32Array::from_value(run, batch.num_rows());
    with_column(batch, 0, Arc::new(numbers))
}

/// The rows with other texts in some columns.
fn with_texts(batch: &RecordBatch, texts: &BTreeMap<String, String>) -> ParquetResult<RecordBatch> {
    texts.iter().try_fold(batch.clone(), |batch, (name, text)| {
        let index = batch.schema().index_of(name)?;
        let column = StringArray::from(vec![text.as_str(); batch.num_rows()]);
        with_column(&batch, index, Arc::new(column))
    })
}

/// The row with the run's number and axes in its resolved scenario as well, which names them.
fn with_place(row: &RecordBatch, run: u32) -> ParquetResult<RecordBatch> {
    let text = |column: &str| {
        let column = row.column_by_name(column)?.as_string_opt::<i32>()?;
        serde_json::from_str(column.value(0)).ok()
    };
    let (Some(Value::Object(mut resolved)), Some(axes)) = (text("resolved"), text("axes")) else {
        return Ok(row.clone());
    };
    resolved.insert("run".into(), run.into());
    resolved.insert("axes".into(), axes);
    let resolved = Value::Object(resolved).to_string();
    with_texts(row, &[("resolved".to_owned(), resolved)].into())
}

fn with_column(batch: &RecordBatch, index: usize, column: ArrayRef) -> ParquetResult<RecordBatch> {
    let mut columns = batch.columns().to_vec();
    columns[index] = column;
    Ok(RecordBatch::try_new(batch.schema(), columns)?)
}
