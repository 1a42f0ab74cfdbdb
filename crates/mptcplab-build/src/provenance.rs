//! The provenance of a build: revision, compiler and a digest of the engine's sources, as environment variables of the
//! compiler. The `build` column of every trace shows them, and stored results are compared by the digest.

use crate::digest::{Error, Sources, dependencies};
use crate::script::fail;
use std::env;
use std::path::Path;
use std::process::Command;

/// The engine's sources, relative to the root of the repository.
const SOURCES: [&str; 3] = ["crates", "algorithms", "Cargo.lock"];

/// The crate of the Python bindings, and the files beside the library crates that decide a run's results: the versions
/// and options of the build, and the code that runs a sweep.
const BINDINGS: &str = "mptcplab-py";
const SWEEP_FILES: [&str; 4] = [
    "Cargo.toml",
    "Cargo.lock",
    "crates/mptcplab-py/Cargo.toml",
    "crates/mptcplab-py/src/sweep.rs",
];

/// Sets `MPTCPLAB_REVISION`, `_RUSTC`, `_TARGET`, `_PROFILE`, `_BUILD` and `_ENGINE` for the crate whose build script calls it.
pub fn emit() {
    // Read at run time, because the repository may have moved since this program was compiled.
    let root = Path::new(&cargo_says("CARGO_MANIFEST_DIR")).join("../..");
    let git = |args: &[&str]| output(Command::new("git").arg("-C").arg(&root).args(args));
    let revision = revision(&git).unwrap_or_else(|| "no git".into());
    let rustc = env::var("RUSTC").unwrap_or_else(|_| "rustc".into());
    let rustc = output(Command::new(rustc).arg("--version")).unwrap_or_else(|| "rustc ?".into());
    let (target, profile) = (cargo_says("TARGET"), cargo_says("PROFILE"));
    set("REVISION", &revision);
    set("RUSTC", &rustc);
    set("TARGET", &target);
    set("PROFILE", &profile);
    // The column `build` of the trace, alike in every engine.
    set("BUILD", &[revision, rustc, target, profile].join(", "));
    let engine = engine(&root).unwrap_or_else(|e| {
        fail(
            &format!("the simulator's sources: {e}"),
            "build in a complete copy of the repository",
        )
    });
    set("ENGINE", &engine.digest());

    for path in SOURCES.iter().chain(&["Cargo.toml"]) {
        println!("cargo::rerun-if-changed={}", root.join(path).display());
    }
    // Every commit and checkout writes this file. Outside a repository it does not exist, and nothing is watched.
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

/// All sources that determine the numbers of a simulated run, apart from its scenario, its seed and the algorithm files.
fn engine(root: &Path) -> Result<Sources, Error> {
    let mut engine = Sources::new();
    for name in dependencies(root, BINDINGS)? {
        engine.add_crate(root, &name)?;
    }
    for file in SWEEP_FILES {
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

/// The last commit that changed the engine's sources, with `-dirty` if there are uncommitted changes.
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
