//! Checksums of a trace's tables: a bit that a disk or a copy has changed must not become another result.

use super::error::TraceError;
use super::writer::{FILES, OPTIONAL};
use sha2::{Digest as _, Sha256};
use std::fs::File;
use std::io::{self, Write as _};
use std::path::Path;

/// Beside the tables: the SHA-256 of each, by the name of its file.
pub(super) const NAME: &str = "checksums.json";

/// Writes the checksums of the tables in a directory, and waits until all of it is on the disk.
pub(super) fn write(dir: &Path) -> Result<(), TraceError> {
    let mut sums = serde_json::Map::new();
    for name in FILES {
        let path = dir.join(name);
        if name == FILES[OPTIONAL] && !path.exists() {
            continue;
        }
        let sum = || -> io::Result<String> {
            let mut file = File::open(&path)?;
            let mut hash = Hash(Sha256::new());
            io::copy(&mut file, &mut hash)?;
            file.sync_data()?;
            let hex = hash
                .0
                .finalize()
                .iter()
                .map(|byte| format!("{byte:02x}"))
                .collect();
            Ok(hex)
        };
        let sum = sum().map_err(TraceError::io("read", &path))?;
        sums.insert(name.to_owned(), sum.into());
    }
    let path = dir.join(NAME);
    let text = serde_json::Value::Object(sums).to_string();
    let write = || -> io::Result<()> {
        let mut file = File::create(&path)?;
        file.write_all(text.as_bytes())?;
        file.sync_data()
    };
    write().map_err(TraceError::io("write", &path))
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
