//! Reads a file that a user named, which may be anything: a device that never ends, or a pipe into which nobody writes.

use std::fs::{self, File};
use std::io::Read as _;
use std::path::Path;

/// The bytes of an ordinary file of at most `most` bytes; otherwise what is wrong with it.
pub(crate) fn read(path: &Path, most: u64) -> Result<Vec<u8>, String> {
    let found = fs::metadata(path).map_err(|e| e.to_string())?;
    if found.is_dir() {
        return Err("a directory".into());
    }
    // To open a pipe already waits for its other end.
    if !found.is_file() {
        return Err("a device, a pipe or a socket, not an ordinary file".into());
    }
    if found.len() > most {
        return Err(too_many(found.len(), most));
    }
    // It may have grown meanwhile, or be a file of the kernel, which tells no size.
    read_any(path, most)
}

/// The same for a file of any kind, such as a pipe from which a shell passes on what a program prints.
pub(crate) fn read_any(path: &Path, most: u64) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    File::open(path)
        .and_then(|file| file.take(most + 1).read_to_end(&mut bytes))
        .map_err(|e| e.to_string())?;
    let size = bytes.len() as u64;
    if size > most {
        return Err(too_many(size, most));
    }
    Ok(bytes)
}

fn too_many(size: u64, most: u64) -> String {
    format!("{size} bytes are too many: at most {most}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_ordinary_files_of_a_bounded_size_are_read() {
        let said = |path: &str, most| read(Path::new(path), most).unwrap_err();
        assert!(said("/dev/zero", 10).starts_with("a device"));
        assert!(said("/dev", 10).starts_with("a directory"));
        // It has a size of 0 and some content.
        assert!(said("/proc/self/status", 10).ends_with("bytes are too many: at most 10"));
        assert_eq!(
            read_any(Path::new("/dev/zero"), 10).unwrap_err(),
            "11 bytes are too many: at most 10"
        );
        let own = concat!(env!("CARGO_MANIFEST_DIR"), "/src/lib.rs");
        let size = fs::metadata(own).unwrap().len();
        assert_eq!(read(Path::new(own), size).unwrap().len() as u64, size);
        assert!(said(own, size - 1).starts_with(&format!("{size} bytes are too many")));
    }
}
