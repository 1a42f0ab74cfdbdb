//! One run as rows that are ready to be written: compressed where they fill a row group of their own.

use super::batch::{Names, run_batch, run_number_schema, schemas};
use super::error::TraceError;
use super::purpose::Purpose;
use super::writer::FILES;
use crate::run_table::RunRecord;
use crate::schema::{MOST_ROWS_PER_GROUP, Tables};
use crate::view::TableView;
use arrow_array::{RecordBatch, UInt32Array};
use arrow_schema::SchemaRef;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_writer::{
    ArrowColumnChunk, ArrowColumnWriter, ArrowRowGroupWriterFactory, compute_leaves,
};
use parquet::column::writer::ColumnCloseResult;
use parquet::errors::Result as ParquetResult;
use std::fs::File;
use std::sync::Arc;

/// Rows from which a run has row groups of its own. Smaller tables of several runs share one: the metadata of a group,
/// some kilobytes, would otherwise be more than the data of a short run.
pub(super) const ROWS_PER_GROUP: usize = 16_384;

/// Encodes and compresses runs; shared by the threads that simulate.
#[derive(Debug)]
pub struct Encoder {
    pub(super) tables: Vec<ArrowRowGroupWriterFactory>,
}

/// A finished run, waiting for its turn to be written.
pub struct EncodedRun {
    pub(super) run: u32,
    /// Its row in the `run` table.
    pub(super) row: RecordBatch,
    /// Its rows in all other tables, in the order of [`FILES`].
    pub(super) tables: Vec<Rows>,
}

impl EncodedRun {
    /// The number of the run.
    #[must_use]
    pub fn run(&self) -> u32 {
        self.run
    }

    /// About how much memory it occupies.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let bytes = |rows: &Rows| match rows {
            Rows::None => 0,
            Rows::Few(batch) => batch.get_array_memory_size(),
            Rows::Groups(groups) => groups.iter().map(Group::bytes).sum(),
        };
        self.row.get_array_memory_size() + self.tables.iter().map(bytes).sum::<usize>()
    }
}

/// The rows of a run in one table.
pub(super) enum Rows {
    None,
    /// Fewer than `ROWS_PER_GROUP`, which share a row group with those of other runs.
    Few(RecordBatch),
    /// Row groups without their first column, the number of the run; all but the last have [`MOST_ROWS_PER_GROUP`].
    Groups(Vec<Group>),
}

pub(super) struct Group {
    pub(super) rows: usize,
    pub(super) chunks: Vec<Chunk>,
}

impl Group {
    fn bytes(&self) -> usize {
        self.chunks.iter().map(Chunk::bytes).sum()
    }
}

/// A compressed column of a row group.
pub(super) enum Chunk {
    New(Box<ArrowColumnChunk>),
    /// In the file of another trace.
    Stored(Arc<File>, Box<ColumnCloseResult>),
}

impl Chunk {
    fn bytes(&self) -> usize {
        match self {
            Self::New(chunk) => chunk.close().bytes_written as usize,
            Self::Stored(..) => 0,
        }
    }
}

impl Encoder {
    pub(super) fn new(purpose: Purpose) -> Result<Self, TraceError> {
        let tables = std::iter::zip(FILES, schemas()).map(|(name, (_, schema))| {
            // Only the settings of the file matter, not where it is.
            let properties = purpose.properties(&schema);
            ArrowWriter::try_new(Vec::new(), schema, Some(properties))
                .and_then(ArrowWriter::into_serialized_writer)
                .map(|(_, factory)| factory)
                .map_err(TraceError::parquet(name.as_ref()))
        });
        Ok(Self {
            tables: tables.collect::<Result<_, _>>()?,
        })
    }

    /// Encodes one run. A pure function of its arguments.
    ///
    /// # Errors
    /// [`TraceError::NoName`] for an index without a name, [`TraceError::Parquet`] if the library fails.
    pub fn encode(&self, record: &RunRecord, tables: &Tables) -> Result<EncodedRun, TraceError> {
        self.start(record).finish(record, tables)
    }

    /// Encodes one run while it goes on. Only the id and the names of `record` matter at this point.
    #[must_use]
    pub fn start(&self, record: &RunRecord) -> RunEncoder<'_> {
        RunEncoder {
            encoder: self,
            names: Names::new(record),
            groups: FILES[1..].iter().map(|_| Vec::new()).collect(),
        }
    }
}

/// A run that is being encoded.
pub struct RunEncoder<'a> {
    encoder: &'a Encoder,
    names: Names,
    /// Full row groups of all tables but `run`.
    groups: Vec<Vec<Group>>,
}

impl RunEncoder<'_> {
    /// Encodes the rows that fill row groups, and removes them; the others stay in the tables. Rows are put in order within
    /// their group, so that it does not matter when this is called.
    ///
    /// # Errors
    /// [`TraceError::NoName`] for an index without a name, [`TraceError::Parquet`] if the library fails.
    pub fn write(&mut self, tables: &mut Tables) -> Result<(), TraceError> {
        let counts = tables.row_counts();
        if counts.iter().any(|&rows| rows >= MOST_ROWS_PER_GROUP) {
            let done = self.encode_full_groups(tables)?;
            tables.remove_first(done);
        }
        Ok(())
    }

    /// Ends the run; `record` is its final row in the `run` table, and `tables` have the rows that are not encoded yet.
    ///
    /// # Errors
    /// As [`RunEncoder::write`].
    pub fn finish(mut self, record: &RunRecord, tables: &Tables) -> Result<EncodedRun, TraceError> {
        let done = self.encode_full_groups(tables)?;
        let mut rows = Vec::new();
        for (index, (table, schema)) in encoded_tables(tables).enumerate() {
            let rest = table.slice(done[index]..table.len());
            rows.push(self.end_table(index, &rest, schema)?);
        }
        Ok(EncodedRun {
            run: record.run,
            row: run_batch(std::slice::from_ref(record)),
            tables: rows,
        })
    }

    /// Returns how many rows of each table were encoded.
    fn encode_full_groups(&mut self, tables: &Tables) -> Result<[usize; 6], TraceError> {
        let mut done = [0; 6];
        for (index, (table, schema)) in encoded_tables(tables).enumerate() {
            let full = table.len() / MOST_ROWS_PER_GROUP * MOST_ROWS_PER_GROUP;
            for first in (0..full).step_by(MOST_ROWS_PER_GROUP) {
                let rows = table.slice(first..first + MOST_ROWS_PER_GROUP);
                let batch = self.batch(index, &rows, schema.clone())?;
                let group = self.encode_group(index, &batch)?;
                self.groups[index].push(group);
            }
            done[index] = full;
        }
        Ok(done)
    }

    /// `rest` are the rows after those of full groups.
    fn end_table(
        &mut self,
        index: usize,
        rest: &TableView<'_>,
        schema: SchemaRef,
    ) -> Result<Rows, TraceError> {
        if rest.len() > 0 {
            let batch = self.batch(index, rest, schema)?;
            if self.groups[index].is_empty() && rest.len() < ROWS_PER_GROUP {
                return Ok(Rows::Few(batch));
            }
            let group = self.encode_group(index, &batch)?;
            self.groups[index].push(group);
        }
        let groups = std::mem::take(&mut self.groups[index]);
        Ok(if groups.is_empty() {
            Rows::None
        } else {
            Rows::Groups(groups)
        })
    }

    /// The rows that come after those of full groups as they are on disk.
    fn batch(
        &self,
        index: usize,
        rows: &TableView<'_>,
        schema: SchemaRef,
    ) -> Result<RecordBatch, TraceError> {
        let before = self.groups[index].len() * MOST_ROWS_PER_GROUP;
        let batch = self.names.sampled_batch(rows, schema);
        batch.map_err(|error| error.after_rows(before))
    }

    /// A row group without its first column.
    fn encode_group(&self, index: usize, batch: &RecordBatch) -> Result<Group, TraceError> {
        let factory = &self.encoder.tables[index + 1];
        let chunks = column_writers(factory).and_then(|mut writers| {
            let mut writers = writers.split_off(1);
            write_columns(&mut writers, batch, 1)?;
            close(writers)
        });
        Ok(Group {
            rows: batch.num_rows(),
            chunks: chunks.map_err(TraceError::parquet(FILES[index + 1].as_ref()))?,
        })
    }
}

/// All tables but `run`, with their schemas on disk.
pub(super) fn encoded_tables(tables: &Tables) -> impl Iterator<Item = (TableView<'_>, SchemaRef)> {
    let schemas = schemas().into_iter().skip(1).map(|(_, schema)| schema);
    std::iter::zip(tables.views(), schemas)
}

/// The columns of a row group with the rows of some batches.
pub(super) fn encode_rows(
    factory: &ArrowRowGroupWriterFactory,
    batches: &[RecordBatch],
) -> ParquetResult<Vec<Chunk>> {
    let mut writers = column_writers(factory)?;
    for batch in batches {
        write_columns(&mut writers, batch, 0)?;
    }
    close(writers)
}

/// The first column of a row group in which all rows are those of one run.
pub(super) fn encode_run_numbers(
    factory: &ArrowRowGroupWriterFactory,
    run: u32,
    rows: usize,
) -> ParquetResult<Chunk> {
    let schema = run_number_schema();
    let numbers = UInt32Array::from_value(run, rows);
    let batch = RecordBatch::try_new(schema, vec![Arc::new(numbers)])?;
    let mut writers = column_writers(factory)?;
    writers.truncate(1);
    write_columns(&mut writers, &batch, 0)?;
    // Invariant: `truncate` left exactly one writer, because every table has the column.
    let writer = writers.pop().expect("the column `run`");
    writer.close().map(|chunk| Chunk::New(Box::new(chunk)))
}

fn column_writers(factory: &ArrowRowGroupWriterFactory) -> ParquetResult<Vec<ArrowColumnWriter>> {
    // The row group's index only matters to encryption, which is not used.
    factory.create_column_writers(0)
}

fn close(writers: Vec<ArrowColumnWriter>) -> ParquetResult<Vec<Chunk>> {
    let chunks = writers
        .into_iter()
        .map(|writer| writer.close().map(|chunk| Chunk::New(Box::new(chunk))));
    chunks.collect()
}

/// Writes the columns of a batch from `first` on.
fn write_columns(
    writers: &mut [ArrowColumnWriter],
    batch: &RecordBatch,
    first: usize,
) -> ParquetResult<()> {
    let schema = batch.schema();
    let columns = std::iter::zip(schema.fields(), batch.columns()).skip(first);
    for (writer, (field, array)) in std::iter::zip(writers, columns) {
        for leaf in compute_leaves(field, array)? {
            writer.write(&leaf)?;
        }
    }
    Ok(())
}
