//! Space set aside on the disk, so that what was measured can still be written when the disk is full: Parquet files are
//! of no use without their ends.

use super::error::TraceError;
use rustix::fs::{FallocateFlags, fallocate};
use rustix::io::Errno;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Name of the file that holds the space.
pub(super) const NAME: &str = "spare";

/// Room for a run and the ends of all files: the trace of a run of five minutes has about 1 MB.
const BYTES: u64 = 16 << 20;

/// A file of a trace's directory that nobody reads.
#[derive(Debug)]
pub(super) struct Spare {
    path: PathBuf,
    used: AtomicBool,
}

impl Spare {
    /// Sets the space aside.
    ///
    /// # Errors
    /// [`TraceError::Io`] if the disk does not have it.
    pub(super) fn create(dir: &Path) -> Result<Arc<Self>, TraceError> {
        let path = dir.join(NAME);
        let file = File::create(&path).map_err(TraceError::io("create", &path))?;
        match fallocate(&file, FallocateFlags::empty(), 0, BYTES) {
            // A file system that promises nothing: a full disk then costs the run, as it would without this.
            Ok(()) | Err(Errno::OPNOTSUPP) => {}
            Err(errno) => return Err(TraceError::io("set 16 MB aside in", dir)(errno.into())),
        }
        let used = AtomicBool::new(false);
        Ok(Arc::new(Self { path, used }))
    }

    /// Gives the space back; true the first time.
    fn release(&self) -> bool {
        !self.used.swap(true, Ordering::Relaxed) && fs::remove_file(&self.path).is_ok()
    }

    /// Whether the disk has been full.
    pub(super) fn is_used(&self) -> bool {
        self.used.load(Ordering::Relaxed)
    }

    /// The trace is complete: the file must not be part of it.
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

/// A writer that takes the spare space when the disk is full.
#[derive(Debug)]
pub(super) struct Sparing<W> {
    inner: W,
    spare: Option<Arc<Spare>>,
}

impl<W> Sparing<W> {
    pub(super) fn new(inner: W, spare: Option<&Arc<Spare>>) -> Self {
        let spare = spare.cloned();
        Self { inner, spare }
    }

    fn release(&self) -> bool {
        self.spare.as_ref().is_some_and(|spare| spare.release())
    }
}

impl<W: Write> Write for Sparing<W> {
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

    /// A disk that is full as long as the space is set aside.
    struct Disk {
        spare: PathBuf,
        written: Vec<u8>,
    }

    impl Write for Disk {
        fn write(&mut self, data: &[u8]) -> io::Result<usize> {
            if self.spare.exists() {
                return Err(ErrorKind::StorageFull.into());
            }
            self.written.write(data)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_full_disk_takes_what_was_set_aside_for_it() {
        let dir = tempfile::tempdir().expect("a directory");
        let spare = Spare::create(dir.path()).expect("space");
        let path = dir.path().join(NAME);
        assert_eq!(fs::metadata(&path).expect("a file").len(), BYTES);
        let disk = Disk {
            spare: path.clone(),
            written: Vec::new(),
        };
        let mut file = Sparing::new(disk, Some(&spare));
        assert!(!spare.is_used());
        file.write_all(b"measured").expect("room");
        assert_eq!(file.inner.written, b"measured");
        assert!(spare.is_used() && !path.exists());
        spare.remove().expect("nothing to do");
    }

    #[test]
    fn what_is_not_about_space_is_told_as_it_is() {
        let dir = tempfile::tempdir().expect("a directory");
        let spare = Spare::create(dir.path()).expect("space");
        let read_only = File::open(dir.path().join(NAME)).expect("a file");
        let mut file = Sparing::new(read_only, Some(&spare));
        assert!(file.write_all(b"measured").is_err());
        assert!(!spare.is_used());
        spare.remove().expect("the file is there");
        assert!(!dir.path().join(NAME).exists());
    }

    #[test]
    fn space_that_is_used_up_is_told() {
        let dir = tempfile::tempdir().expect("a directory");
        let spare = Spare::create(dir.path()).expect("space");
        let full = File::options()
            .write(true)
            .open("/dev/full")
            .expect("a device");
        let mut file = Sparing::new(full, Some(&spare));
        let error = file.write_all(b"measured").expect_err("no room");
        assert_eq!(error.kind(), ErrorKind::StorageFull);
        assert!(spare.is_used());
    }
}
