//! What the user typed to start this program, for the commands in its remedies.

use std::env;
use std::path::Path;

/// The command that starts the program for whoever has it without the Python package.
const PROGRAM: &str = "mptcplab-kernel";
/// The command of the package, which starts the program under this name.
const PACKAGE: &str = "mptcplab";

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
}
