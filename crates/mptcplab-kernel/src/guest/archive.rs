//! Named byte strings one after another, as the mailbox carries them in both directions: the length of the name (4 bytes)
//! and of the content (8 bytes), both little-endian, then both.

use super::failed;
use crate::failure::Failure;
use std::fs;
use std::path::Path;

const LENGTHS: usize = 12;

/// An archive to be written.
#[derive(Debug, Default)]
pub(super) struct Archive(Vec<u8>);

impl Archive {
    pub(super) fn add(&mut self, name: &str, content: &[u8]) {
        self.0.extend((name.len() as u32).to_le_bytes());
        self.0.extend((content.len() as u64).to_le_bytes());
        self.0.extend(name.as_bytes());
        self.0.extend(content);
    }

    /// Adds all files below a directory, in the order of their names.
    pub(super) fn add_tree(&mut self, name: &str, directory: &Path) -> Result<(), Failure> {
        let wrong = |error| failed(&directory.display().to_string(), &error);
        let mut entries = fs::read_dir(directory)
            .and_then(Iterator::collect::<Result<Vec<_>, _>>)
            .map_err(wrong)?;
        entries.sort_by_key(fs::DirEntry::file_name);
        for entry in entries {
            let path = entry.path();
            let inner = format!("{name}/{}", entry.file_name().to_string_lossy());
            if entry.file_type().map_err(wrong)?.is_dir() {
                self.add_tree(&inner, &path)?;
            } else {
                self.add(&inner, &fs::read(&path).map_err(wrong)?);
            }
        }
        Ok(())
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.0
    }
}

/// The entries of an archive: name and content.
pub(super) fn entries(mut bytes: &[u8]) -> Result<Vec<(&str, &[u8])>, Failure> {
    let cut = || Failure::new("job: the archive ends too early");
    let mut found = Vec::new();
    while !bytes.is_empty() {
        let (lengths, rest) = bytes.split_at_checked(LENGTHS).ok_or_else(cut)?;
        let (mut name, mut content) = ([0; 4], [0; 8]);
        name.copy_from_slice(&lengths[..4]);
        content.copy_from_slice(&lengths[4..]);
        let (name, rest) = rest
            .split_at_checked(u32::from_le_bytes(name) as usize)
            .ok_or_else(cut)?;
        let (content, rest) = rest
            .split_at_checked(u64::from_le_bytes(content) as usize)
            .ok_or_else(cut)?;
        let name = std::str::from_utf8(name)
            .map_err(|error| Failure::new(format!("job: name of a file: {error}")))?;
        found.push((name, content));
        bytes = rest;
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_read_back() {
        let mut archive = Archive::default();
        archive.add("seed", &[1, 2]);
        archive.add("job/empty", &[]);
        let found = entries(archive.bytes()).unwrap();
        assert_eq!(found, [("seed", &[1, 2][..]), ("job/empty", &[][..])]);
    }

    #[test]
    fn a_cut_archive_is_an_error() {
        let mut archive = Archive::default();
        archive.add("seed", &[1, 2]);
        for length in 1..archive.bytes().len() {
            assert!(entries(&archive.bytes()[..length]).is_err(), "{length}");
        }
    }
}
