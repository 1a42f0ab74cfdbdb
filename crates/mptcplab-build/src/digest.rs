//! A digest of source files, so that a stored result can tell whether anything that it depends on has changed.
//!
//! [`Sources`] hashes what it is given and follows what files name themselves: a C file its headers ([`Sources::add_c`]),
//! a crate of the workspace its sources and the crates it depends on ([`Sources::add_crate`], [`dependencies`]).

mod c;
mod error;
mod workspace;

pub use error::Error;
pub use workspace::dependencies;

use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// Named contents: files under their path relative to a root, with `/`, and other inputs of a result.
///
/// Names are unique and sorted, so that the digest depends neither on the order of adding nor on repetition.
#[derive(Debug, Clone, Default)]
pub struct Sources(BTreeMap<String, Vec<u8>>);

impl Sources {
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an input that is not a file, such as a compiler option.
    pub fn add(&mut self, name: &str, contents: &[u8]) {
        self.0.insert(name.to_owned(), contents.to_owned());
    }

    /// Adds the file `root/name` as `name`.
    ///
    /// # Errors
    /// [`Error::Read`] if it cannot be read.
    pub fn add_file(&mut self, root: &Path, name: &str) -> Result<(), Error> {
        self.add(name, &read(&root.join(name))?);
        Ok(())
    }

    /// The names that were added, sorted by their bytes.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// SHA-256 in 64 lower-case hexadecimal digits over every name and its contents, in the order of [`Self::names`].
    ///
    /// Each name and each contents is preceded by its length in bytes, as a little-endian 64-bit number. Otherwise the digest
    /// would not change if a character moved from the end of one to the beginning of the next.
    pub fn digest(&self) -> String {
        let mut hash = Sha256::new();
        for (name, contents) in &self.0 {
            for part in [name.as_bytes(), contents] {
                hash.update((part.len() as u64).to_le_bytes());
                hash.update(part);
            }
        }
        hash.finalize()
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect()
    }
}

fn read(path: &Path) -> Result<Vec<u8>, Error> {
    fs::read(path).map_err(|source| Error::Read {
        path: path.to_owned(),
        source,
    })
}

fn read_text(path: &Path) -> Result<String, Error> {
    String::from_utf8(read(path)?).map_err(|_| Error::NotText {
        path: path.to_owned(),
    })
}
