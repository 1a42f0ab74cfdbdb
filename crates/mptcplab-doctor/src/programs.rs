//! The programs that the kernel engine can start as the traffic of a run.

use crate::trust::{Distrust, protected_file};
use std::path::{Path, PathBuf};

/// Where they are looked for: never in `PATH`, which an ordinary user may have set.
pub const FOLDERS: [&str; 3] = ["/usr/local/bin", "/usr/bin", "/bin"];

/// The absolute path of a program, links resolved; `None` if it is not installed.
///
/// # Errors
/// Somebody else than root and this user could change the program.
pub fn find(name: &str) -> Result<Option<PathBuf>, Distrust> {
    let paths = FOLDERS.iter().map(|folder| Path::new(folder).join(name));
    let Some(real) = paths
        .filter_map(|path| path.canonicalize().ok())
        .find(|path| path.is_file())
    else {
        return Ok(None);
    };
    protected_file(&real)?;
    Ok(Some(real))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_found_where_only_root_can_put_it() {
        let found = find("env").unwrap().unwrap();
        assert!(
            found.is_absolute() && found.starts_with("/usr"),
            "{found:?}"
        );
        assert_eq!(find("no-such-program-of-ours").unwrap(), None);
    }
}
