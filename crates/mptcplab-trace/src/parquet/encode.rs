//! One run as rows that are ready to be written: compressed where they fill a row group of their own.

use super::batch::{record_batches, run_batch, run_number_schema, schemas};
use super::error::TraceError;
use super::purpose::Purpose;
use super::writer::FILES;
use crate::run_table::RunRecord;
use crate::schema::Tables;
use arrow_array::{RecordBatch, UInt32Array};
use arrow_select::concat::concat_batches;
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

/// The most rows of a row group. Readers hold whole groups in memory, and skip those of other times.
pub(super) const MOST_ROWS_PER_GROUP: usize = 1 << 16;

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
    pub fn encode(&self, record: RunRecord, tables: &Tables) -> Result<EncodedRun, TraceError> {
        let mut run = self.start(record.clone());
        run.write(tables)?;
        run.finish(&record)
    }

    /// Encodes one run piece by piece while it goes on. Only the id and the names of `record` matter at this point.
    #[must_use]
    pub fn start(&self, record: RunRecord) -> RunEncoder<'_> {
        let tables = FILES[1..].iter().map(|_| Growing::default()).collect();
        RunEncoder {
            encoder: self,
            record,
            tables,
        }
    }
}

/// A run that is being encoded, in however many pieces it arrives.
pub struct RunEncoder<'a> {
    encoder: &'a Encoder,
    record: RunRecord,
    /// All tables but `run`.
    tables: Vec<Growing>,
}

/// The rows of a table so far.
#[derive(Default)]
struct Growing {
    rows: usize,
    /// Rows that are not compressed, as long as they are few.
    few: Vec<RecordBatch>,
    /// Full row groups, and the one that grows, once there are many rows.
    groups: Vec<Group>,
    open: Option<OpenGroup>,
}

/// A row group that grows.
struct OpenGroup {
    rows: usize,
    /// Of all columns but the first.
    writers: Vec<ArrowColumnWriter>,
}

impl Growing {
    fn push(
        &mut self,
        factory: &ArrowRowGroupWriterFactory,
        batch: RecordBatch,
    ) -> ParquetResult<()> {
        self.rows += batch.num_rows();
        self.few.push(batch);
        if self.rows < ROWS_PER_GROUP {
            return Ok(());
        }
        for batch in std::mem::take(&mut self.few) {
            self.compress(factory, &batch)?;
        }
        Ok(())
    }

    /// Adds rows to row groups. Where these end does not depend on the pieces in which the rows arrive.
    fn compress(
        &mut self,
        factory: &ArrowRowGroupWriterFactory,
        batch: &RecordBatch,
    ) -> ParquetResult<()> {
        let mut done = 0;
        while done < batch.num_rows() {
            let open = match &mut self.open {
                Some(open) => open,
                None => self.open.insert(OpenGroup {
                    rows: 0,
                    writers: column_writers(factory)?.split_off(1),
                }),
            };
            let rows = (MOST_ROWS_PER_GROUP - open.rows).min(batch.num_rows() - done);
            write_columns(&mut open.writers, &batch.slice(done, rows), 1)?;
            open.rows += rows;
            done += rows;
            if open.rows == MOST_ROWS_PER_GROUP {
                self.close_group()?;
            }
        }
        Ok(())
    }

    fn close_group(&mut self) -> ParquetResult<()> {
        let Some(open) = self.open.take() else {
            return Ok(());
        };
        let chunks = open
            .writers
            .into_iter()
            .map(|writer| writer.close().map(|chunk| Chunk::New(Box::new(chunk))));
        self.groups.push(Group {
            rows: open.rows,
            chunks: chunks.collect::<ParquetResult<_>>()?,
        });
        Ok(())
    }

    fn finish(mut self) -> ParquetResult<Rows> {
        self.close_group()?;
        if !self.groups.is_empty() {
            return Ok(Rows::Groups(self.groups));
        }
        Ok(match self.few.first().map(RecordBatch::schema) {
            None => Rows::None,
            Some(schema) => Rows::Few(concat_batches(&schema, &self.few)?),
        })
    }
}

impl RunEncoder<'_> {
    /// Encodes the next rows.
    ///
    /// # Errors
    /// [`TraceError::NoName`] for an index without a name, [`TraceError::Parquet`] if the library fails.
    pub fn write(&mut self, tables: &Tables) -> Result<(), TraceError> {
        let [_, sampled @ ..] = record_batches(&self.record, tables)?;
        for (i, batch) in sampled.into_iter().enumerate() {
            if batch.num_rows() > 0 {
                self.tables[i]
                    .push(&self.encoder.tables[i + 1], batch)
                    .map_err(TraceError::parquet(FILES[i + 1].as_ref()))?;
            }
        }
        Ok(())
    }

    /// Ends the run; `record` is its final row in the `run` table.
    ///
    /// # Errors
    /// [`TraceError::Parquet`] if the library fails.
    pub fn finish(self, record: &RunRecord) -> Result<EncodedRun, TraceError> {
        let tables = std::iter::zip(self.tables, &FILES[1..])
            .map(|(table, file)| table.finish().map_err(TraceError::parquet(file.as_ref())))
            .collect::<Result<_, _>>()?;
        Ok(EncodedRun {
            run: record.run,
            row: run_batch(std::slice::from_ref(record)),
            tables,
        })
    }
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
    let chunks = writers
        .into_iter()
        .map(|writer| writer.close().map(|chunk| Chunk::New(Box::new(chunk))));
    chunks.collect()
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
