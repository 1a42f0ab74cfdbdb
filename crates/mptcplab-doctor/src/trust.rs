//! Who else could change a file or a folder that root is about to rely on.

use nix::unistd::Uid;
use std::ffi::OsString;
use std::fmt;
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Write permission of the group and of all others.
const OTHERS_WRITE: u32 = 0o022;
/// In a folder with this bit, only the owner of a file may rename or remove it.
const STICKY: u32 = 0o1000;

/// As many as Linux follows.
const MOST_LINKS: usize = 40;

/// Why a path is not to be relied on.
#[derive(Debug)]
pub struct Distrust {
    path: PathBuf,
    reason: String,
}

impl fmt::Display for Distrust {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.path.display(), self.reason)
    }
}

/// Checks that a folder is one, not a link to one, and that only this user can change its contents.
///
/// # Errors
/// The first path that somebody else could change.
pub fn private_folder(path: &Path) -> Result<(), Distrust> {
    let found = metadata(path, fs::symlink_metadata)?;
    if !found.is_dir() {
        return Err(distrust(path, "is not a folder"));
    }
    changed_by_us_alone(path, &found, 0)?;
    // Who may rename the folder could put another one in its place.
    let parent = path.parent().unwrap_or(path);
    changed_by_us_alone(parent, &metadata(parent, fs::metadata)?, STICKY)
}

/// Checks that only root and this user can change the file that an absolute path leads to: the file itself, and all folders
/// and links on the way to it.
///
/// # Errors
/// The first path that somebody else could change.
pub fn protected_file(path: &Path) -> Result<(), Distrust> {
    // The nearest one is the best to name.
    for (part, found) in on_the_way(path)?.iter().rev() {
        changed_by_us_alone(part, found, 0)?;
    }
    Ok(())
}

/// Every folder that an absolute path leads through, and what it leads to. Links are followed, and are not among them: nobody
/// else can have made one where its folder is protected.
fn on_the_way(path: &Path) -> Result<Vec<(PathBuf, Metadata)>, Distrust> {
    let mut passed = Vec::new();
    let mut links = 0;
    let mut at = PathBuf::new();
    let mut left = parts(path);
    while let Some(part) = left.pop() {
        if part == ".." {
            at.pop();
            continue;
        }
        let next = at.join(part);
        let found = metadata(&next, fs::symlink_metadata)?;
        if found.is_symlink() {
            links += 1;
            if links > MOST_LINKS {
                return Err(distrust(path, "has too many links on the way"));
            }
            left.extend(parts(&metadata(&next, fs::read_link)?));
        } else {
            at.clone_from(&next);
            passed.push((next, found));
        }
    }
    Ok(passed)
}

/// The parts of a path, the last one first.
fn parts(path: &Path) -> Vec<OsString> {
    let mut parts: Vec<_> = path.iter().map(OsString::from).collect();
    parts.reverse();
    parts
}

/// `harmless` is a bit of the mode with which write permission of others does not matter.
fn changed_by_us_alone(path: &Path, found: &Metadata, harmless: u32) -> Result<(), Distrust> {
    let owner = Uid::from_raw(found.uid());
    if !owner.is_root() && owner != Uid::effective() {
        return Err(distrust(path, format!("belongs to user {owner}")));
    }
    if found.mode() & OTHERS_WRITE != 0 && found.mode() & harmless == 0 {
        let mode = found.mode() & 0o7777;
        return Err(distrust(
            path,
            format!("can be changed by others (mode {mode:04o})"),
        ));
    }
    Ok(())
}

fn metadata<T>(path: &Path, read: fn(PathBuf) -> io::Result<T>) -> Result<T, Distrust> {
    read(path.to_owned()).map_err(|error| distrust(path, format!("cannot be examined: {error}")))
}

fn distrust(path: &Path, reason: impl Into<String>) -> Distrust {
    Distrust {
        path: path.to_owned(),
        reason: reason.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, chown, symlink};

    /// A folder `one/two` that only its owner can change, below a temporary one.
    fn folders() -> (tempfile::TempDir, PathBuf) {
        let top = tempfile::tempdir().unwrap();
        let inner = top.path().join("one/two");
        fs::create_dir_all(&inner).unwrap();
        (top, inner)
    }

    fn set_mode(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn a_folder_of_ones_own_is_trusted_and_a_link_to_it_is_not() {
        let (top, inner) = folders();
        private_folder(&inner).unwrap();
        let link = top.path().join("link");
        symlink(&inner, &link).unwrap();
        assert!(
            private_folder(&link)
                .unwrap_err()
                .to_string()
                .ends_with("is not a folder")
        );
    }

    #[test]
    fn a_folder_that_others_can_write_to_is_refused_with_its_mode() {
        let (_top, inner) = folders();
        for mode in [0o777, 0o1777, 0o720] {
            set_mode(&inner, mode);
            let said = private_folder(&inner).unwrap_err().to_string();
            assert!(
                said.ends_with(&format!("can be changed by others (mode {mode:04o})")),
                "{said}"
            );
        }
    }

    /// Others may make entries in a sticky folder, but cannot replace ours.
    #[test]
    fn the_folder_above_may_be_writable_only_if_it_is_sticky() {
        let (_top, inner) = folders();
        let above = inner.parent().unwrap();
        set_mode(above, 0o1777);
        private_folder(&inner).unwrap();
        set_mode(above, 0o777);
        let said = private_folder(&inner).unwrap_err().to_string();
        assert!(
            said.contains("one can be changed by others (mode 0777)"),
            "{said}"
        );
    }

    #[test]
    fn what_belongs_to_another_user_is_refused() {
        if !Uid::effective().is_root() {
            eprintln!("SKIPPED, NOT TESTED: this needs root");
            return;
        }
        let (_top, inner) = folders();
        chown(&inner, Some(65534), None).unwrap();
        let said = private_folder(&inner).unwrap_err().to_string();
        assert!(said.ends_with("two belongs to user 65534"), "{said}");
    }

    #[test]
    fn a_program_is_as_safe_as_the_folders_above_it() {
        let (_top, inner) = folders();
        let program = inner.join("program");
        fs::write(&program, "").unwrap();
        set_mode(&program, 0o755);
        // The temporary folder of most systems is open to everybody.
        let said = protected_file(Path::new("/tmp")).unwrap_err().to_string();
        assert_eq!(said, "/tmp can be changed by others (mode 1777)");
        set_mode(&program, 0o775);
        let said = protected_file(&program).unwrap_err().to_string();
        assert!(
            said.ends_with("program can be changed by others (mode 0775)"),
            "{said}"
        );
        set_mode(&program, 0o755);
        set_mode(&inner, 0o757);
        let said = protected_file(&program).unwrap_err().to_string();
        assert!(
            said.ends_with("two can be changed by others (mode 0757)"),
            "{said}"
        );
        protected_file(Path::new("/usr/bin/env")).unwrap();
    }

    /// The folders of the first and the last link are not those of the links between them.
    #[test]
    fn a_program_is_as_safe_as_every_folder_on_the_way_to_it() {
        let (top, inner) = folders();
        let top = fs::canonicalize(top.path()).unwrap();
        for name in ["between", "beyond"] {
            fs::create_dir(top.join(name)).unwrap();
        }
        fs::write(top.join("beyond/program"), "").unwrap();
        symlink("../../between/second", inner.join("first")).unwrap();
        symlink(top.join("beyond"), top.join("between/folder")).unwrap();
        symlink("folder/program", top.join("between/second")).unwrap();
        let passed = on_the_way(&top.join("one/two/first")).unwrap();
        let below =
            |(part, _): &(PathBuf, Metadata)| Some(part.strip_prefix(&top).ok()?.to_owned());
        let seen: Vec<PathBuf> = passed.iter().filter_map(below).collect();
        let expected = [
            "",
            "one",
            "one/two",
            "between",
            "",
            "beyond",
            "beyond/program",
        ];
        assert_eq!(seen, expected.map(PathBuf::from));

        symlink("again", top.join("again")).unwrap();
        let said = on_the_way(&top.join("again")).unwrap_err();
        assert!(said.to_string().ends_with("has too many links on the way"));
    }
}
