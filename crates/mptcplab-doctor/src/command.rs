//! What the user typed to start this program, for the commands in its remedies.

use std::env;
use std::path::{self, Path};

/// The command that starts the program for whoever has it without the Python package.
const PROGRAM: &str = "mptcplab-kernel";
/// The command of the package, which starts the program under this name.
pub(crate) const PACKAGE: &str = "mptcplab";

/// The command by which this process was started.
pub fn name() -> &'static str {
    env::args_os()
        .next()
        .map_or(PROGRAM, |zeroth| called(Path::new(&zeroth)))
}

fn called(zeroth: &Path) -> &'static str {
    if zeroth.file_name().is_some_and(|name| name == PACKAGE) {
        PACKAGE
    } else {
        PROGRAM
    }
}

/// The beginning of a command of this program that needs root.
pub(crate) fn as_root() -> String {
    let zeroth = env::args_os().next().unwrap_or_default();
    format!("sudo {}", for_sudo(Path::new(&zeroth)))
}

/// The command that runs a scenario as root; the package has another `run` than the program.
pub(crate) fn run_as_root() -> String {
    let root = as_root();
    if name() == PACKAGE {
        format!("{root} run SCENARIO --engine kernel")
    } else {
        format!("{root} run --scenario SCENARIO --out DIRECTORY")
    }
}

/// The whole path of what was called by a path: the PATH of sudo has neither this directory nor a Python environment.
fn for_sudo(zeroth: &Path) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._+-".contains(c);
    Some(zeroth)
        .filter(|path| path.components().count() > 1)
        .and_then(|path| path::absolute(path).ok())
        .and_then(|path| path.to_str().map(str::to_owned))
        .filter(|path| path.chars().all(is_plain))
        .unwrap_or_else(|| called(zeroth).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remedies_name_what_the_user_typed() {
        assert_eq!(called(Path::new("mptcplab")), "mptcplab");
        assert_eq!(
            called(Path::new("/usr/bin/mptcplab-kernel")),
            "mptcplab-kernel"
        );
        assert_eq!(
            called(Path::new("/root/.venv/bin/program")),
            "mptcplab-kernel"
        );
    }

    #[test]
    fn sudo_gets_the_whole_path_of_what_was_called_by_a_path() {
        let of = |zeroth: &str| for_sudo(Path::new(zeroth));
        assert_eq!(of("mptcplab-kernel"), "mptcplab-kernel");
        assert_eq!(of("mptcplab"), "mptcplab");
        assert_eq!(of("/opt/env/bin/mptcplab"), "/opt/env/bin/mptcplab");
        let here = env::current_dir().unwrap().join("bin/mptcplab-kernel");
        assert_eq!(of("bin/mptcplab-kernel"), here.to_str().unwrap());
        // What a shell would split or expand is left to PATH.
        assert_eq!(of("/opt/my tools/mptcplab-kernel"), "mptcplab-kernel");
    }
}
