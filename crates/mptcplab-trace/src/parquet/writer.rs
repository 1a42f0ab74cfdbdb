//! A directory of Parquet files that appears complete or not at all.

use super::batch::{record_batches, run_batch, schemas};
use super::error::TraceError;
use super::reserve::{self, DiskReserve, ReservingWriter};
use crate::run_table::RunRecord;
use crate::schema::Tables;
use arrow_array::RecordBatch;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_writer::{
    ArrowColumnChunk, ArrowColumnWriter, ArrowRowGroupWriterFactory, compute_leaves,
};
use parquet::basic::{Compression, Encoding};
use parquet::errors::Result as ParquetResult;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::ColumnPath;
use rustix::fs::{FlockOperation, flock};
use std::fs::{self, File};
use std::io::{BufWriter, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Files of a trace directory, in the order of [`schemas`].
pub const FILES: [&str; 6] = [
    "run.parquet",
    "flow.parquet",
    "subflow.parquet",
    "link.parquet",
    "event.parquet",
    "transfer.parquet",
];

/// Runs per row group of the `run` table, whose rows hold whole scenarios.
pub(super) const RUNS_PER_GROUP: usize = 256;

/// Encodes and compresses runs; shared by the threads that simulate.
#[derive(Debug)]
pub struct Encoder {
    tables: Vec<ArrowRowGroupWriterFactory>,
}

/// A finished run, compressed, waiting for its turn to be written.
pub struct EncodedRun {
    record: RunRecord,
    /// Column chunks of flow, subflow, link, event, transfer; `None` for a table without rows.
    tables: Vec<Option<Vec<ArrowColumnChunk>>>,
}

impl Encoder {
    /// Encodes one run. A pure function of its arguments.
    ///
    /// # Errors
    /// [`TraceError::NoName`] for an index without a name, [`TraceError::Parquet`] if the library fails.
    pub fn encode(&self, record: RunRecord, tables: &Tables) -> Result<EncodedRun, TraceError> {
        let mut run = self.start(record.clone());
        run.write(tables)?;
        run.finish(record)
    }

    /// Encodes one run piece by piece while it goes on. Only the id and the names of `record` matter at this point.
    #[must_use]
    pub fn start(&self, record: RunRecord) -> RunEncoder<'_> {
        RunEncoder {
            encoder: self,
            record,
            writers: [const { None }; 5],
        }
    }
}

/// A run that is being encoded. Each table becomes one row group, in however many pieces it arrives.
pub struct RunEncoder<'a> {
    encoder: &'a Encoder,
    record: RunRecord,
    /// Column writers of flow, subflow, link, event, transfer, once the table has rows.
    writers: [Option<Vec<ArrowColumnWriter>>; 5],
}

impl RunEncoder<'_> {
    /// Encodes the next rows.
    ///
    /// # Errors
    /// [`TraceError::NoName`] for an index without a name, [`TraceError::Parquet`] if the library fails.
    pub fn write(&mut self, tables: &Tables) -> Result<(), TraceError> {
        let [_, sampled @ ..] = record_batches(&self.record, tables)?;
        for (i, batch) in sampled.iter().enumerate().filter(|(_, b)| b.num_rows() > 0) {
            let factory = &self.encoder.tables[i + 1];
            write_rows(factory, &mut self.writers[i], batch)
                .map_err(TraceError::parquet(FILES[i + 1].as_ref()))?;
        }
        Ok(())
    }

    /// Ends the run; `record` is its final row in the `run` table.
    ///
    /// # Errors
    /// [`TraceError::Parquet`] if the library fails.
    pub fn finish(self, record: RunRecord) -> Result<EncodedRun, TraceError> {
        let tables = std::iter::zip(self.writers, &FILES[1..])
            .map(|(writers, file)| {
                let close = |writers: Vec<ArrowColumnWriter>| {
                    let chunks = writers.into_iter().map(ArrowColumnWriter::close);
                    chunks.collect::<ParquetResult<Vec<_>>>()
                };
                let chunks = writers.map(close).transpose();
                chunks.map_err(TraceError::parquet(file.as_ref()))
            })
            .collect::<Result<_, _>>()?;
        Ok(EncodedRun { record, tables })
    }
}

fn write_rows(
    factory: &ArrowRowGroupWriterFactory,
    writers: &mut Option<Vec<ArrowColumnWriter>>,
    batch: &RecordBatch,
) -> ParquetResult<()> {
    let writers = match writers {
        Some(writers) => writers,
        // The row group's index only matters to encryption, which is not used.
        None => writers.insert(factory.create_column_writers(0)?),
    };
    let schema = batch.schema();
    let columns = std::iter::zip(schema.fields(), batch.columns());
    for (writer, (field, array)) in std::iter::zip(writers, columns) {
        for leaf in compute_leaves(field, array)? {
            writer.write(&leaf)?;
        }
    }
    Ok(())
}

fn encode_rows(
    factory: &ArrowRowGroupWriterFactory,
    batches: &[RecordBatch],
) -> ParquetResult<Option<Vec<ArrowColumnChunk>>> {
    let mut writers = None;
    for batch in batches.iter().filter(|batch| batch.num_rows() > 0) {
        write_rows(factory, &mut writers, batch)?;
    }
    let close = |writers: Vec<ArrowColumnWriter>| {
        let chunks = writers.into_iter().map(ArrowColumnWriter::close);
        chunks.collect::<ParquetResult<Vec<_>>>()
    };
    writers.map(close).transpose()
}

/// Writes `<dir>.partial` and renames it to `dir` at the end. If it is dropped before [`TraceWriter::finish`], it
/// removes what it wrote.
pub struct TraceWriter {
    dir: PathBuf,
    partial: Partial,
    reserve: Option<Arc<DiskReserve>>,
    encoder: Arc<Encoder>,
    files: Vec<SerializedFileWriter<BufWriter<ReservingWriter<File>>>>,
    /// Rows of the `run` table that are not written yet.
    pending: Vec<RunRecord>,
    last_run: Option<u32>,
}

impl TraceWriter {
    /// Starts a trace that will appear as `dir`, which must not exist or must be empty.
    ///
    /// # Errors
    /// [`TraceError::Exists`], [`TraceError::Busy`], or what the file system says.
    pub fn create(dir: &Path) -> Result<Self, TraceError> {
        Self::start(dir, false)
    }

    /// The same for runs that cannot be repeated exactly: space is reserved, so that nothing that was measured is lost if
    /// the disk fills up meanwhile. [`TraceWriter::is_disk_full`] says when to stop.
    ///
    /// # Errors
    /// As [`TraceWriter::create`], and [`TraceError::Io`] if the disk does not have 16 MB.
    pub fn create_with_reserve(dir: &Path) -> Result<Self, TraceError> {
        Self::start(dir, true)
    }

    fn start(dir: &Path, with_reserve: bool) -> Result<Self, TraceError> {
        if dir.exists()
            && dir
                .read_dir()
                .map_err(TraceError::io("read", dir))?
                .next()
                .is_some()
        {
            return Err(TraceError::Exists(dir.to_owned()));
        }
        let partial = Partial::create(dir)?;
        let reserve = with_reserve
            .then(|| DiskReserve::create(&partial.path))
            .transpose()?;
        let mut files = Vec::new();
        let mut tables = Vec::new();
        for (name, (_, schema)) in std::iter::zip(FILES, schemas()) {
            let path = partial.path.join(name);
            let file = File::create(&path).map_err(TraceError::io("create", &path))?;
            let file = BufWriter::new(ReservingWriter::new(file, reserve.as_ref()));
            let properties = properties(&schema);
            let (file, factory) = ArrowWriter::try_new(file, schema, Some(properties))
                .and_then(ArrowWriter::into_serialized_writer)
                .map_err(TraceError::parquet(&path))?;
            files.push(file);
            tables.push(factory);
        }
        let encoder = Arc::new(Encoder { tables });
        Ok(Self {
            dir: dir.to_owned(),
            partial,
            reserve,
            encoder,
            files,
            pending: Vec::new(),
            last_run: None,
        })
    }

    /// The encoder that turns runs into what [`TraceWriter::append`] takes.
    #[must_use]
    pub fn encoder(&self) -> Arc<Encoder> {
        Arc::clone(&self.encoder)
    }

    /// Whether the disk was full and the reserve has been freed: there is no room for a further run.
    #[must_use]
    pub fn is_disk_full(&self) -> bool {
        self.reserve
            .as_ref()
            .is_some_and(|reserve| reserve.is_used())
    }

    /// Appends a run; ids must increase.
    ///
    /// # Errors
    /// [`TraceError::Order`], or what the file system says.
    pub fn append(&mut self, run: EncodedRun) -> Result<(), TraceError> {
        let EncodedRun { record, tables } = run;
        if let Some(last) = self.last_run.filter(|last| *last >= record.run) {
            return Err(TraceError::Order {
                run: record.run,
                last,
            });
        }
        self.last_run = Some(record.run);
        for (index, chunks) in (1..).zip(tables) {
            if let Some(chunks) = chunks {
                self.append_group(index, chunks)?;
            }
        }
        if self.reserve.is_some() {
            self.flush_files()?;
        }
        self.pending.push(record);
        if self.pending.len() == RUNS_PER_GROUP {
            self.flush_runs()
        } else {
            Ok(())
        }
    }

    /// Writes buffered data to the disk, so that a full disk is noticed now.
    fn flush_files(&mut self) -> Result<(), TraceError> {
        for (name, file) in std::iter::zip(FILES, &mut self.files) {
            let path = self.partial.path.join(name);
            file.inner_mut()
                .flush()
                .map_err(TraceError::io("write", &path))?;
        }
        Ok(())
    }

    fn flush_runs(&mut self) -> Result<(), TraceError> {
        let batch = run_batch(&std::mem::take(&mut self.pending));
        self.append_rows(0, &[batch])
    }

    /// Appends rows to a file as a row group; nothing if there are none.
    pub(super) fn append_rows(
        &mut self,
        index: usize,
        batches: &[RecordBatch],
    ) -> Result<(), TraceError> {
        let chunks = encode_rows(&self.encoder.tables[index], batches)
            .map_err(TraceError::parquet(&self.partial.path.join(FILES[index])))?;
        chunks.map_or(Ok(()), |chunks| self.append_group(index, chunks))
    }

    fn append_group(
        &mut self,
        index: usize,
        chunks: Vec<ArrowColumnChunk>,
    ) -> Result<(), TraceError> {
        let file = &mut self.files[index];
        let append = || {
            let mut group = file.next_row_group()?;
            for chunk in chunks {
                chunk.append_to_row_group(&mut group)?;
            }
            group.close().map(drop)
        };
        append().map_err(TraceError::parquet(&self.partial.path.join(FILES[index])))
    }

    /// Completes the files and gives the directory its name.
    ///
    /// # Errors
    /// What the file system says; in that case nothing is left behind.
    pub fn finish(mut self) -> Result<(), TraceError> {
        self.flush_runs()?;
        for (name, mut file) in std::iter::zip(FILES, std::mem::take(&mut self.files)) {
            file.finish()
                .map_err(TraceError::parquet(&self.partial.path.join(name)))?;
        }
        if let Some(reserve) = &self.reserve {
            reserve.remove()?;
        }
        self.partial.rename(&self.dir)
    }
}

/// Settings of one file, chosen for speed by `benches/write.rs`: delta encoding suits counters and gauges
/// alike and leaves little for a compressor; a dictionary only pays where few values repeat.
fn properties(schema: &arrow_schema::Schema) -> WriterProperties {
    let mut properties = WriterProperties::builder()
        .set_created_by(concat!("mptcplab ", env!("CARGO_PKG_VERSION")).into())
        .set_compression(Compression::LZ4_RAW)
        .set_dictionary_enabled(false)
        .set_statistics_enabled(EnabledStatistics::None)
        .set_offset_index_disabled(true);
    for field in schema.fields() {
        let path = ColumnPath::from(field.name().as_str());
        let data_type = field.data_type();
        properties = if data_type.is_integer() {
            properties.set_column_encoding(path.clone(), Encoding::DELTA_BINARY_PACKED)
        } else {
            properties.set_column_dictionary_enabled(path.clone(), true)
        };
        // Readers skip row groups by these two.
        if matches!(field.name().as_str(), "run" | "t_ns") {
            properties = properties.set_column_statistics_enabled(path, EnabledStatistics::Chunk);
        }
    }
    properties.build()
}

/// The directory of unfinished files; removed when dropped, unless renamed.
struct Partial {
    path: PathBuf,
    /// Open directory that holds the lock against a second writer.
    lock: File,
}

impl Partial {
    fn create(dir: &Path) -> Result<Self, TraceError> {
        let mut name = dir.file_name().unwrap_or(dir.as_os_str()).to_owned();
        name.push(".partial");
        let path = dir.with_file_name(name);
        fs::create_dir_all(&path).map_err(TraceError::io("create", &path))?;
        let lock = File::open(&path).map_err(TraceError::io("open", &path))?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive)
            .map_err(|_| TraceError::Busy(dir.to_owned()))?;
        // A writer that finished in between has renamed the directory that is now locked.
        let locked = lock
            .metadata()
            .map_err(TraceError::io("read", &path))?
            .ino();
        if fs::metadata(&path).map(|now| now.ino()).ok() != Some(locked) {
            return Err(TraceError::Busy(dir.to_owned()));
        }
        remove_stale(&path)?;
        Ok(Self { path, lock })
    }

    fn rename(self, dir: &Path) -> Result<(), TraceError> {
        fs::rename(&self.path, dir).map_err(TraceError::io("create", dir))?;
        // The name is gone, so the removal on drop finds nothing.
        drop(self);
        Ok(())
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        let ours = self.lock.metadata().ok().map(|m| m.ino());
        if ours.is_some() && fs::metadata(&self.path).ok().map(|m| m.ino()) == ours {
            // An error cannot be handled here, and the next run cleans up.
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}

/// Removes the files of a run that was killed, but nothing that is not part of a trace.
fn remove_stale(partial: &Path) -> Result<(), TraceError> {
    for entry in partial
        .read_dir()
        .map_err(TraceError::io("read", partial))?
    {
        let file = entry.map_err(TraceError::io("read", partial))?.path();
        let ours = file.file_name().is_some_and(|name| {
            FILES
                .iter()
                .chain([&reserve::NAME])
                .any(|known| name == *known)
        });
        if !ours {
            return Err(TraceError::Foreign {
                dir: partial.to_owned(),
                file,
            });
        }
        fs::remove_file(&file).map_err(TraceError::io("remove", &file))?;
    }
    Ok(())
}
