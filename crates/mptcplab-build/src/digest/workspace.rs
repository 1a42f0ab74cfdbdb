//! The sources and the dependencies of the crates of this workspace.

use super::{Error, Sources, read_text};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// The crates of the workspace have this prefix in their names, which are also their directories in `crates/`.
const PREFIX: &str = "mptcplab-";
const CRATES: &str = "crates";

/// Extensions of the files that compilers read.
const EXTENSIONS: [&str; 3] = ["rs", "c", "h"];

/// Directories of separate programs, which do not affect the library.
const SEPARATE: [&str; 3] = ["benches", "examples", "tests"];

impl Sources {
    /// Adds `Cargo.toml` and all Rust and C sources of a crate in `root/crates`, but not its `tests/`, `benches/` and
    /// `examples/`.
    ///
    /// # Errors
    /// [`Error::Read`] for a file that cannot be read, [`Error::Name`] for a file name that is not UTF-8.
    pub fn add_crate(&mut self, root: &Path, name: &str) -> Result<(), Error> {
        let dir = format!("{CRATES}/{name}");
        self.add_file(root, &format!("{dir}/Cargo.toml"))?;
        for (entry, is_dir) in entries(root, &dir)? {
            let separate = is_dir && SEPARATE.contains(&entry.as_str());
            if !separate {
                self.add_tree(root, &format!("{dir}/{entry}"), is_dir)?;
            }
        }
        Ok(())
    }

    fn add_tree(&mut self, root: &Path, name: &str, is_dir: bool) -> Result<(), Error> {
        if is_dir {
            for (entry, is_dir) in entries(root, name)? {
                self.add_tree(root, &format!("{name}/{entry}"), is_dir)?;
            }
        } else if EXTENSIONS.iter().any(|e| name.ends_with(&format!(".{e}"))) {
            self.add_file(root, name)?;
        }
        Ok(())
    }
}

/// The crates of the workspace that a crate depends on, directly or indirectly.
///
/// They are read from the section `[dependencies]` of each manifest, one dependency per line.
///
/// # Errors
/// [`Error::Read`] and [`Error::NotText`] for a manifest that cannot be read.
pub fn dependencies(root: &Path, name: &str) -> Result<BTreeSet<String>, Error> {
    let mut found = BTreeSet::new();
    let mut open = vec![name.to_owned()];
    while let Some(krate) = open.pop() {
        let manifest = read_text(&root.join(CRATES).join(krate).join("Cargo.toml"))?;
        let new = direct(&manifest).filter(|name| found.insert(name.clone()));
        open.extend(new.collect::<Vec<_>>());
    }
    Ok(found)
}

/// The crates of the workspace in a manifest's `[dependencies]`.
fn direct(manifest: &str) -> impl Iterator<Item = String> {
    let section = manifest
        .lines()
        .skip_while(|line| line.trim() != "[dependencies]")
        .skip(1)
        .take_while(|line| !line.starts_with('['));
    section
        .filter_map(|line| line.split(['.', '=', ' ']).next())
        .filter(|key| key.starts_with(PREFIX))
        .map(str::to_owned)
}

/// Name of every entry of `root/dir`, and whether it is a directory.
fn entries(root: &Path, dir: &str) -> Result<Vec<(String, bool)>, Error> {
    let path = root.join(dir);
    let failed = |source| Error::Read {
        path: path.clone(),
        source,
    };
    let mut found = Vec::new();
    for entry in fs::read_dir(&path).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        let name = path.file_name().and_then(|name| name.to_str());
        let name = name.ok_or_else(|| Error::Name { path: path.clone() })?;
        found.push((name.to_owned(), path.is_dir()));
    }
    Ok(found)
}
