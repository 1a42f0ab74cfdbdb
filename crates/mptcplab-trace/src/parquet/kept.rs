//! Runs that are finished before the sweep is: small complete traces in one directory, numbered in the order in which they
//! were written, so that nothing is lost if the process ends.

use super::encode::{EncodedRun, Encoder};
use super::error::TraceError;
use super::purpose::Purpose;
use super::writer::TraceWriter;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Finished runs wait at most this long in memory. Writing them costs some milliseconds each time.
const WRITE_EVERY: Duration = Duration::from_secs(1);
/// And if they occupy more than this, no longer.
const MOST_BYTES: usize = 16 << 20;

/// A directory of finished runs.
pub struct KeptRuns {
    dir: PathBuf,
    waiting: Vec<EncodedRun>,
    bytes: usize,
    written: Instant,
    encoder: Arc<Encoder>,
}

impl KeptRuns {
    /// Adds to the directory, which is created if it does not exist.
    ///
    /// # Errors
    /// [`TraceError::Io`].
    pub fn open(dir: &Path) -> Result<Self, TraceError> {
        fs::create_dir_all(dir).map_err(TraceError::io("create", dir))?;
        Ok(Self {
            dir: dir.to_owned(),
            waiting: Vec::new(),
            bytes: 0,
            written: Instant::now(),
            encoder: Arc::new(Encoder::new(Purpose::Keep)?),
        })
    }

    /// The encoder that turns runs into what [`KeptRuns::push`] takes.
    #[must_use]
    pub fn encoder(&self) -> Arc<Encoder> {
        Arc::clone(&self.encoder)
    }

    /// Takes a run, and writes all that wait if it is time.
    ///
    /// # Errors
    /// As [`KeptRuns::write`].
    pub fn push(&mut self, run: EncodedRun) -> Result<(), TraceError> {
        self.bytes += run.bytes();
        self.waiting.push(run);
        self.write_if_due()
    }

    /// Writes the runs that wait if it is time.
    ///
    /// # Errors
    /// As [`KeptRuns::write`].
    pub fn write_if_due(&mut self) -> Result<(), TraceError> {
        if self.bytes > MOST_BYTES || self.written.elapsed() >= WRITE_EVERY {
            return self.write();
        }
        Ok(())
    }

    /// Writes the runs that wait, as a trace that survives the process and a power failure.
    ///
    /// # Errors
    /// What the file system says.
    pub fn write(&mut self) -> Result<(), TraceError> {
        self.written = Instant::now();
        if self.waiting.is_empty() {
            return Ok(());
        }
        let mut runs = std::mem::take(&mut self.waiting);
        self.bytes = 0;
        runs.sort_by_key(EncodedRun::run);
        let mut writer = TraceWriter::create(&next_kept(&self.dir)?)?;
        for run in runs {
            writer.append(run)?;
        }
        writer.finish()?;
        Ok(())
    }
}

/// The path of the next trace in a directory of finished runs.
///
/// # Errors
/// [`TraceError::Io`].
pub fn next_kept(dir: &Path) -> Result<PathBuf, TraceError> {
    let mut next = 1;
    for entry in dir.read_dir().map_err(TraceError::io("read", dir))? {
        let name = entry.map_err(TraceError::io("read", dir))?.file_name();
        let number = name.to_str().and_then(|name| name.parse::<u32>().ok());
        next = next.max(number.map_or(0, |number| number + 1));
    }
    Ok(dir.join(format!("{next:06}")))
}
