//! Records what the extension was built from, for the `build` column of every trace.

use std::path::Path;
use std::process::Command;

/// What the engine is made of, relative to the root of the repository.
const SOURCES: [&str; 3] = ["crates", "algorithms", "Cargo.lock"];

fn main() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let git = |args: &[&str]| output(Command::new("git").arg("-C").arg(&root).args(args));
    set(
        "REVISION",
        &revision(&git).unwrap_or_else(|| "no git".into()),
    );
    let rustc = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".into());
    set(
        "RUSTC",
        output(Command::new(rustc).arg("--version"))
            .as_deref()
            .unwrap_or("rustc ?"),
    );
    // Cargo always sets these two for a build script.
    set("TARGET", &std::env::var("TARGET").unwrap_or_default());
    set("PROFILE", &std::env::var("PROFILE").unwrap_or_default());

    for path in SOURCES {
        println!("cargo::rerun-if-changed={}", root.join(path).display());
    }
    // Written by every commit and checkout; absent outside a repository, where nothing is watched.
    if let Some(log) = git(&[
        "rev-parse",
        "--path-format=absolute",
        "--git-path",
        "logs/HEAD",
    ]) {
        if Path::new(&log).exists() {
            println!("cargo::rerun-if-changed={log}");
        }
    }
}

/// The last commit that touched the engine's sources, and whether they have changed since.
fn revision(git: &dyn Fn(&[&str]) -> Option<String>) -> Option<String> {
    let with_sources = |args: &[&str]| git(&[args, &["--"], &SOURCES].concat());
    let commit = with_sources(&["log", "-1", "--format=%h"])?;
    let is_clean = with_sources(&["status", "--porcelain"])?.is_empty();
    Some(if is_clean {
        commit
    } else {
        format!("{commit}-dirty")
    })
}

fn set(key: &str, value: &str) {
    println!("cargo::rustc-env=MPTCPLAB_{key}={value}");
}

fn output(command: &mut Command) -> Option<String> {
    let output = command
        .output()
        .ok()
        .filter(|output| output.status.success())?;
    Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
