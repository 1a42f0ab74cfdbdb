//! Records what the extension was built from: for the `build` column of every trace, and for stored results.

use mptcplab_digest::{Error, Sources, dependencies};
use std::env;
use std::path::Path;
use std::process::{Command, exit};

/// What the engine is made of, relative to the root of the repository.
const SOURCES: [&str; 3] = ["crates", "algorithms", "Cargo.lock"];

/// The simulator's frame, and versions and options of all that it is compiled from.
const BINDINGS: &str = "mptcplab-py";
const FRAME: [&str; 5] = [
    "Cargo.toml",
    "Cargo.lock",
    "crates/mptcplab-py/Cargo.toml",
    "crates/mptcplab-py/src/record.rs",
    "crates/mptcplab-py/src/sweep.rs",
];

fn main() {
    // Asked when it runs: the repository may lie elsewhere than where this program was compiled.
    let root = Path::new(&cargo_says("CARGO_MANIFEST_DIR")).join("../..");
    let git = |args: &[&str]| output(Command::new("git").arg("-C").arg(&root).args(args));
    set(
        "REVISION",
        &revision(&git).unwrap_or_else(|| "no git".into()),
    );
    let rustc = env::var("RUSTC").unwrap_or_else(|_| "rustc".into());
    set(
        "RUSTC",
        output(Command::new(rustc).arg("--version"))
            .as_deref()
            .unwrap_or("rustc ?"),
    );
    set("TARGET", &cargo_says("TARGET"));
    set("PROFILE", &cargo_says("PROFILE"));
    let engine = engine(&root).unwrap_or_else(|e| {
        eprintln!(
            "error: the simulator's sources: {e}\n\nhint: build in a complete copy of the repository"
        );
        exit(2)
    });
    set("ENGINE", &engine.digest());

    for path in SOURCES.iter().chain(&["Cargo.toml"]) {
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

/// What decides the numbers of a simulated run beside its scenario, its seed and the algorithms' files: the crates that
/// the bindings are made of, what runs a sweep, and how all of it is compiled.
fn engine(root: &Path) -> Result<Sources, Error> {
    let mut engine = Sources::new();
    for name in dependencies(root, BINDINGS)? {
        engine.add_crate(root, &name)?;
    }
    for file in FRAME {
        engine.add_file(root, file)?;
    }
    for key in ["PROFILE", "OPT_LEVEL"] {
        engine.add(key, cargo_says(key).as_bytes());
    }
    Ok(engine)
}

/// A variable that Cargo always sets for a build script.
fn cargo_says(key: &str) -> String {
    env::var(key).unwrap_or_default()
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
