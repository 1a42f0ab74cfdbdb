//! A directory of Parquet files that appears complete or not at all.

use super::batch::schemas;
use super::checksums;
use super::encode::{
    Chunk, EncodedRun, Encoder, ROWS_PER_GROUP, Rows, encode_rows, encode_run_numbers,
};
use super::error::TraceError;
use super::purpose::Purpose;
use super::reserve::{self, DiskReserve, ReservingWriter};
use arrow_array::RecordBatch;
use parquet::arrow::ArrowWriter;
use parquet::errors::Result as ParquetResult;
use parquet::file::writer::SerializedFileWriter;
use rustix::fs::{FlockOperation, flock};
use std::fs::{self, File};
use std::io::BufWriter;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Files of a trace directory, in the order of [`schemas`]. The last one exists only if it has rows.
pub const FILES: [&str; 7] = [
    "run.parquet",
    "flow.parquet",
    "subflow.parquet",
    "link.parquet",
    "event.parquet",
    "transfer.parquet",
    "request.parquet",
];

/// Position in [`FILES`] of the file that exists only if it has rows, so that traces without such traffic do not change.
pub(super) const OPTIONAL: usize = FILES.len() - 1;

/// Runs per row group of the `run` table, whose rows hold whole scenarios.
const RUNS_PER_GROUP: usize = 256;

/// Writes `<dir>.partial` and renames it to `dir` at the end. If it is dropped before [`TraceWriter::finish`], it
/// removes what it wrote.
pub struct TraceWriter {
    dir: PathBuf,
    purpose: Purpose,
    partial: Partial,
    reserve: Option<Arc<DiskReserve>>,
    encoder: Arc<Encoder>,
    files: Vec<SerializedFileWriter<BufWriter<ReservingWriter<File>>>>,
    /// Rows of every table that wait for others to share a row group with.
    waiting: Vec<Waiting>,
    last_run: Option<u32>,
}

/// Rows of several runs, in the order of the runs.
#[derive(Default)]
struct Waiting {
    rows: usize,
    batches: Vec<RecordBatch>,
}

impl TraceWriter {
    /// Starts a trace that will appear as `dir`, which must not exist or must be empty.
    ///
    /// # Errors
    /// [`TraceError::Exists`], [`TraceError::Busy`], or what the file system says.
    pub fn create(dir: &Path) -> Result<Self, TraceError> {
        Self::start(dir, Purpose::Keep, false)
    }

    /// The same for runs that cannot be repeated exactly: space is reserved, so that nothing that was measured is lost if
    /// the disk fills up meanwhile. [`TraceWriter::is_disk_full`] says when to stop.
    ///
    /// # Errors
    /// As [`TraceWriter::create`], and [`TraceError::Io`] if the disk does not have 16 MB.
    pub fn create_with_reserve(dir: &Path) -> Result<Self, TraceError> {
        Self::start(dir, Purpose::Keep, true)
    }

    /// The same for a trace that is read once by the process that writes it: neither small nor on the disk in the end, and
    /// without checksums.
    ///
    /// # Errors
    /// As [`TraceWriter::create`].
    pub fn create_scratch(dir: &Path) -> Result<Self, TraceError> {
        Self::start(dir, Purpose::Scratch, false)
    }

    fn start(dir: &Path, purpose: Purpose, with_reserve: bool) -> Result<Self, TraceError> {
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
        for (name, (_, schema)) in std::iter::zip(FILES, schemas()) {
            let path = partial.path.join(name);
            let file = File::create(&path).map_err(TraceError::io("create", &path))?;
            let file = BufWriter::new(ReservingWriter::new(file, reserve.as_ref()));
            let properties = purpose.properties(&schema);
            let (file, _) = ArrowWriter::try_new(file, schema, Some(properties))
                .and_then(ArrowWriter::into_serialized_writer)
                .map_err(TraceError::parquet(&path))?;
            files.push(file);
        }
        let encoder = Arc::new(Encoder::new(purpose)?);
        Ok(Self {
            dir: dir.to_owned(),
            purpose,
            partial,
            reserve,
            encoder,
            files,
            waiting: FILES.iter().map(|_| Waiting::default()).collect(),
            last_run: None,
        })
    }

    /// The encoder that turns runs into what [`TraceWriter::append`] takes.
    #[must_use]
    pub fn encoder(&self) -> Arc<Encoder> {
        Arc::clone(&self.encoder)
    }

    /// Appends a run; ids must increase.
    ///
    /// # Errors
    /// [`TraceError::Order`], or what the file system says.
    pub fn append(&mut self, encoded: EncodedRun) -> Result<(), TraceError> {
        let EncodedRun { run, row, tables } = encoded;
        if let Some(last) = self.last_run.filter(|last| *last >= run) {
            return Err(TraceError::Order { run, last });
        }
        self.last_run = Some(run);
        for (index, rows) in (1..).zip(tables) {
            match rows {
                Rows::None => {}
                Rows::Few(batch) => self.wait(index, batch, ROWS_PER_GROUP)?,
                Rows::Groups(groups) => {
                    self.write_waiting(index)?;
                    for group in groups {
                        let factory = &self.encoder.tables[index];
                        let numbers = encode_run_numbers(factory, run, group.rows);
                        let numbers = numbers.map_err(TraceError::parquet(&self.path(index)))?;
                        let chunks = std::iter::once(numbers).chain(group.chunks);
                        self.append_group(index, chunks)?;
                    }
                }
            }
        }
        self.wait(0, row, RUNS_PER_GROUP)
    }

    /// Lets rows wait for others to share a row group with, until there are `enough`.
    fn wait(&mut self, index: usize, batch: RecordBatch, enough: usize) -> Result<(), TraceError> {
        let waiting = &mut self.waiting[index];
        waiting.rows += batch.num_rows();
        waiting.batches.push(batch);
        if waiting.rows < enough {
            return Ok(());
        }
        self.write_waiting(index)
    }

    /// Writes the rows of a table that wait, if there are any.
    fn write_waiting(&mut self, index: usize) -> Result<(), TraceError> {
        let Waiting { rows, batches } = std::mem::take(&mut self.waiting[index]);
        if rows == 0 {
            return Ok(());
        }
        let chunks = encode_rows(&self.encoder.tables[index], &batches)
            .map_err(TraceError::parquet(&self.path(index)))?;
        self.append_group(index, chunks)
    }

    fn append_group(
        &mut self,
        index: usize,
        chunks: impl IntoIterator<Item = Chunk>,
    ) -> Result<(), TraceError> {
        let path = self.path(index);
        let file = &mut self.files[index];
        let append = || {
            let mut group = file.next_row_group()?;
            for chunk in chunks {
                match chunk {
                    Chunk::New(chunk) => chunk.append_to_row_group(&mut group)?,
                    Chunk::Stored(file, close) => group.append_column(&*file, *close)?,
                }
            }
            group.close().map(drop)
        };
        let appended: ParquetResult<()> = append();
        appended.map_err(TraceError::parquet(&path))
    }

    fn path(&self, index: usize) -> PathBuf {
        self.partial.path.join(FILES[index])
    }

    /// Completes the files and gives the directory its name; if the trace is to be kept, only when it has checksums and all
    /// of it is on the disk. Returns whether the disk was full and the reserve has been used: there is no room for a further run.
    ///
    /// # Errors
    /// What the file system says; in that case nothing is left behind.
    pub fn finish(mut self) -> Result<bool, TraceError> {
        self.complete()?;
        if self.purpose == Purpose::Keep {
            checksums::write(&self.partial.path)?;
        }
        self.partial.rename(&self.dir)?;
        Ok(self
            .reserve
            .as_ref()
            .is_some_and(|reserve| reserve.is_used()))
    }

    fn complete(&mut self) -> Result<(), TraceError> {
        for index in 0..FILES.len() {
            self.write_waiting(index)?;
        }
        let files = std::iter::zip(FILES, std::mem::take(&mut self.files));
        for (index, (name, mut file)) in files.enumerate() {
            let path = self.partial.path.join(name);
            let is_empty = file.flushed_row_groups().is_empty();
            file.finish().map_err(TraceError::parquet(&path))?;
            if index == OPTIONAL && is_empty {
                fs::remove_file(&path).map_err(TraceError::io("remove", &path))?;
            }
        }
        match &self.reserve {
            Some(reserve) => reserve.remove(),
            None => Ok(()),
        }
    }
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
        require_own(&path)?;
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

/// Refuses a directory that was there before and that another user made, or a link to another directory: what is written
/// there could be read and changed by others, and what is removed from there could be theirs.
fn require_own(partial: &Path) -> Result<(), TraceError> {
    let found = fs::symlink_metadata(partial).map_err(TraceError::io("read", partial))?;
    let refused = |why: String| {
        Err(TraceError::NotOurs {
            dir: partial.to_owned(),
            why,
        })
    };
    if !found.is_dir() {
        return refused("is not a directory, but would be used for unfinished results".into());
    }
    let us = rustix::process::geteuid().as_raw();
    if found.uid() != us {
        return refused(format!(
            "was made by user {}, and this is user {us}",
            found.uid()
        ));
    }
    Ok(())
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
                .chain([&reserve::NAME, &checksums::NAME])
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
