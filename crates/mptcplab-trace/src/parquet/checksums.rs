//! Checksums of a trace's tables: a bit that a disk or a copy has changed must not become another result.

use super::error::TraceError;
use super::writer::{FILES, OPTIONAL};
use sha2::{Digest as _, Sha256};
use std::fs::File;
use std::io::{self, BufReader, Write as _};
use std::path::Path;
use std::thread;

/// Beside the tables: the SHA-256 of each, by the name of its file.
pub(super) const NAME: &str = "checksums.json";
/// What is read of a table at a time.
const PIECE_BYTES: usize = 1 << 18;

/// Writes the checksums of the tables in a directory, and waits until all of it is on the disk.
pub(super) fn write(dir: &Path) -> Result<(), TraceError> {
    let there = |name: &&str| *name != FILES[OPTIONAL] || dir.join(name).exists();
    let names: Vec<&str> = FILES.into_iter().filter(there).collect();
    // A disk takes several files in less time than one after the other.
    let sums = thread::scope(|scope| {
        let started: Vec<_> = names
            .iter()
            .map(|name| dir.join(name))
            .map(|path| scope.spawn(move || of_file(&path)))
            .collect();
        // Invariant: nothing in the thread panics.
        let ended = started.into_iter().map(|one| one.join().expect("a sum"));
        ended.collect::<Result<Vec<_>, _>>()
    })?;
    let sums: serde_json::Map<String, serde_json::Value> = std::iter::zip(names, sums)
        .map(|(name, sum)| (name.to_owned(), sum.into()))
        .collect();
    let path = dir.join(NAME);
    let text = serde_json::Value::Object(sums).to_string();
    let write = || -> io::Result<()> {
        let mut file = File::create(&path)?;
        file.write_all(text.as_bytes())?;
        file.sync_data()
    };
    write().map_err(TraceError::io("write", &path))
}

/// The SHA-256 of a file, in hexadecimal digits, when it is on the disk.
fn of_file(path: &Path) -> Result<String, TraceError> {
    let sum = || -> io::Result<String> {
        let mut file = File::open(path)?;
        let mut hash = Hash(Sha256::new());
        io::copy(
            &mut BufReader::with_capacity(PIECE_BYTES, &mut file),
            &mut hash,
        )?;
        file.sync_data()?;
        let digest = hash.0.finalize();
        Ok(digest.iter().map(|byte| format!("{byte:02x}")).collect())
    };
    sum().map_err(TraceError::io("read", path))
}

struct Hash(Sha256);

impl io::Write for Hash {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        self.0.update(data);
        Ok(data.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
