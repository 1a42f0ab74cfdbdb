//! Errors of the tracer, with advice for the operator.

use crate::error::LoadError;
use std::io;

/// Why the tracer could not be loaded or read.
#[derive(Debug, thiserror::Error)]
pub enum TracerError {
    /// The machine or the caller's privileges do not allow eBPF, or the kernel refused the programs.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// The kernel lacks a tracepoint.
    #[error(
        "this kernel has no tracepoint {name}\n\nhint: tracing needs Linux 6.1 or newer, built with tracepoints"
    )]
    Tracepoint { name: &'static str },
    /// The size of the ring buffer is invalid.
    #[error(
        "size of the tracer's ring buffer: {bytes} bytes\n\nhint: it must be a power of two from one page to 1 GiB"
    )]
    RingSize { bytes: usize },
    /// The ring buffer could not be mapped into memory.
    #[error("cannot map the tracer's ring buffer of {bytes} bytes: {source}")]
    RingMap {
        /// Size of the ring.
        bytes: usize,
        source: io::Error,
    },
    /// The kernel does not measure run times for this process.
    #[error(
        "cannot measure the run time of eBPF programs: {source}\n\nhint: it needs CAP_SYS_ADMIN; trace without run_stats"
    )]
    RunTime { source: io::Error },
    /// An operation on one of the tracer's maps failed.
    #[error("cannot {what}: {source}")]
    Map {
        what: &'static str,
        source: libbpf_rs::Error,
    },
    /// `bpf/tracer.h` and `src/tracer/sample.rs` disagree: the build is inconsistent.
    #[error(
        "the tracer's object does not fit this program: {what} is {found} bytes\n\nhint: rebuild it"
    )]
    Layout {
        what: &'static str,
        /// Its size in the object; 0 if it is not there.
        found: usize,
    },
}

impl TracerError {
    pub(super) fn map(what: &'static str, source: libbpf_rs::Error) -> Self {
        Self::Map { what, source }
    }
}
