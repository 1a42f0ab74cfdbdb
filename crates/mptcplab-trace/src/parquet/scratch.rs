//! Runs of a sweep whose trace is read as soon as it is complete, and not kept.

use super::encode::{EncodedRun, Encoder};
use super::error::TraceError;
use super::writer::TraceWriter;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

/// One trace of all runs, which may finish in any order.
pub struct ScratchRuns {
    writer: TraceWriter,
    /// Finished before others that come before them.
    waiting: BTreeMap<u32, EncodedRun>,
    next: u32,
}

impl ScratchRuns {
    /// Starts a trace that will appear as `dir`; the runs have the numbers from 0.
    ///
    /// # Errors
    /// As [`TraceWriter::create`].
    pub fn create(dir: &Path) -> Result<Self, TraceError> {
        Ok(Self {
            writer: TraceWriter::create_scratch(dir)?,
            waiting: BTreeMap::new(),
            next: 0,
        })
    }

    /// The encoder that turns runs into what [`ScratchRuns::push`] takes.
    #[must_use]
    pub fn encoder(&self) -> Arc<Encoder> {
        self.writer.encoder()
    }

    /// Takes a run.
    ///
    /// # Errors
    /// As [`TraceWriter::append`].
    pub fn push(&mut self, run: EncodedRun) -> Result<(), TraceError> {
        self.waiting.insert(run.run(), run);
        while let Some(run) = self.waiting.remove(&self.next) {
            self.writer.append(run)?;
            self.next += 1;
        }
        Ok(())
    }

    /// Completes the trace.
    ///
    /// # Errors
    /// As [`TraceWriter::finish`].
    pub fn finish(self) -> Result<(), TraceError> {
        self.writer.finish().map(drop)
    }
}
