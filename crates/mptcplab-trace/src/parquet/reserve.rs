//! Space reserved on the disk, so that what was measured can still be written when the disk is full. Parquet files cannot
//! be read without their footers.

use super::error::TraceError;
use rustix::fs::{FallocateFlags, fallocate};
use rustix::io::Errno;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Name of the file that occupies the space.
pub(super) const NAME: &str = "reserve";

/// Enough for a run and the footers of all files: the trace of a run of five minutes has about 1 MB.
const BYTES: u64 = 16 << 20;

/// A file in a trace's directory that only occupies space.
#[derive(Debug)]
pub(super) struct DiskReserve {
    path: PathBuf,
    used: AtomicBool,
}

impl DiskReserve {
    /// Reserves the space.
    ///
    /// # Errors
    /// [`TraceError::Io`] if the disk does not have it.
    pub(super) fn create(dir: &Path) -> Result<Arc<Self>, TraceError> {
        let path = dir.join(NAME);
        let file = File::create(&path).map_err(TraceError::io("create", &path))?;
        match fallocate(&file, FallocateFlags::empty(), 0, BYTES) {
            // This file system reserves nothing: a full disk then loses the run, as it would without a reserve.
            Ok(()) | Err(Errno::OPNOTSUPP) => {}
            Err(errno) => return Err(TraceError::io("set 16 MB aside in", dir)(errno.into())),
        }
        let used = AtomicBool::new(false);
        Ok(Arc::new(Self { path, used }))
    }

    /// Frees the space; true the first time.
    fn release(&self) -> bool {
        !self.used.swap(true, Ordering::Relaxed) && fs::remove_file(&self.path).is_ok()
    }

    /// Whether the disk has been full.
    pub(super) fn is_used(&self) -> bool {
        self.used.load(Ordering::Relaxed)
    }

    /// Removes the file, which must not be part of a complete trace.
    ///
    /// # Errors
    /// [`TraceError::Io`].
    pub(super) fn remove(&self) -> Result<(), TraceError> {
        if self.is_used() {
            return Ok(());
        }
        fs::remove_file(&self.path).map_err(TraceError::io("remove", &self.path))
    }
}

/// A writer that frees the reserve when the disk is full, and goes on.
#[derive(Debug)]
pub(super) struct ReservingWriter<W> {
    inner: W,
    reserve: Option<Arc<DiskReserve>>,
}

impl<W> ReservingWriter<W> {
    pub(super) fn new(inner: W, reserve: Option<&Arc<DiskReserve>>) -> Self {
        let reserve = reserve.cloned();
        Self { inner, reserve }
    }

    fn release(&self) -> bool {
        self.reserve
            .as_ref()
            .is_some_and(|reserve| reserve.release())
    }
}

impl<W: Write> Write for ReservingWriter<W> {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        let result = self.inner.write(data);
        let is_full = |error: &io::Error| {
            matches!(
                error.kind(),
                ErrorKind::StorageFull | ErrorKind::QuotaExceeded
            )
        };
        if result.as_ref().is_err_and(is_full) && self.release() {
            return self.inner.write(data);
        }
        result
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A disk that is full as long as the space is reserved.
    struct Disk {
        reserve: PathBuf,
        written: Vec<u8>,
    }

    impl Write for Disk {
        fn write(&mut self, data: &[u8]) -> io::Result<usize> {
            if self.reserve.exists() {
                return Err(ErrorKind::StorageFull.into());
            }
            self.written.write(data)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_full_disk_uses_the_reserve() {
        let dir = tempfile::tempdir().expect("a directory");
        let reserve = DiskReserve::create(dir.path()).expect("space");
        let path = dir.path().join(NAME);
        assert_eq!(fs::metadata(&path).expect("a file").len(), BYTES);
        let disk = Disk {
            reserve: path.clone(),
            written: Vec::new(),
        };
        let mut file = ReservingWriter::new(disk, Some(&reserve));
        assert!(!reserve.is_used());
        file.write_all(b"measured").expect("room");
        assert_eq!(file.inner.written, b"measured");
        assert!(reserve.is_used() && !path.exists());
        reserve.remove().expect("nothing to do");
    }

    #[test]
    fn other_errors_are_passed_on_and_leave_the_reserve() {
        let dir = tempfile::tempdir().expect("a directory");
        let reserve = DiskReserve::create(dir.path()).expect("space");
        let read_only = File::open(dir.path().join(NAME)).expect("a file");
        let mut file = ReservingWriter::new(read_only, Some(&reserve));
        assert!(file.write_all(b"measured").is_err());
        assert!(!reserve.is_used());
        reserve.remove().expect("the file is there");
        assert!(!dir.path().join(NAME).exists());
    }

    #[test]
    fn a_reserve_that_is_used_up_is_an_error() {
        let dir = tempfile::tempdir().expect("a directory");
        let reserve = DiskReserve::create(dir.path()).expect("space");
        let full = File::options()
            .write(true)
            .open("/dev/full")
            .expect("a device");
        let mut file = ReservingWriter::new(full, Some(&reserve));
        let error = file.write_all(b"measured").expect_err("no room");
        assert_eq!(error.kind(), ErrorKind::StorageFull);
        assert!(reserve.is_used());
    }
}
