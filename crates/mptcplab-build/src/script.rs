//! Helpers that the build scripts of several crates need.
//!
//! On an error they end the build with a message and a hint, because a build script has no caller that could handle it.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::exit;

/// Environment variable that names another directory of algorithms, with a `cc.h` of its own.
const ALGORITHMS_DIR: &str = "MPTCPLAB_ALGORITHMS_DIR";

/// Ends the build with an error message and a hint.
pub fn fail(what: &str, hint: &str) -> ! {
    eprintln!("error: {what}\n\nhint: {hint}");
    exit(2)
}

/// Cargo's directory for generated files.
pub fn out_dir() -> PathBuf {
    PathBuf::from(env::var_os("OUT_DIR").unwrap_or_else(|| fail("OUT_DIR is not set", "run cargo")))
}

/// Writes a generated file.
pub fn write(path: &Path, text: &str) {
    fs::write(path, text).unwrap_or_else(|e| {
        fail(
            &format!("cannot write {}: {e}", path.display()),
            "check OUT_DIR",
        )
    });
}

/// The directory of algorithms: `algorithms/` of the repository, or the one that `MPTCPLAB_ALGORITHMS_DIR` names. Cargo
/// watches it.
pub fn algorithms_dir() -> PathBuf {
    println!("cargo::rerun-if-env-changed={ALGORITHMS_DIR}");
    let dir = env::var_os(ALGORITHMS_DIR).map_or_else(default_algorithms_dir, PathBuf::from);
    println!("cargo::rerun-if-changed={}", dir.display());
    dir
}

fn default_algorithms_dir() -> PathBuf {
    let manifest = env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default();
    let dir = Path::new(&manifest).join("../../algorithms");
    // Without `..`, because error messages and the compiler's messages show it.
    dir.canonicalize().unwrap_or(dir)
}

/// The algorithm files of a directory, sorted by name. Each C file is an algorithm, and its stem is the algorithm's name.
pub fn algorithm_files(dir: &Path) -> Vec<PathBuf> {
    let files = files(
        dir,
        ".c",
        "set MPTCPLAB_ALGORITHMS_DIR to a folder with cc.h and one .c file per algorithm",
    );
    for file in &files {
        println!("cargo::rerun-if-changed={}", file.display());
        let is_allowed = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
        let stem = stem(file, ".c");
        if stem.is_empty() || !stem.bytes().all(is_allowed) {
            fail(
                &format!("algorithm file name: {}", file.display()),
                "use lower-case letters, digits and '-', such as my-rule.c; the file's name is the algorithm's",
            );
        }
    }
    files
}

/// The files of a directory whose names end with `suffix`, sorted by the rest of their names.
pub fn files(dir: &Path, suffix: &str, hint: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir)
        .unwrap_or_else(|e| fail(&format!("cannot read {}: {e}", dir.display()), hint));
    let mut files: Vec<PathBuf> = entries
        .filter_map(|e| e.ok().map(|e| e.path()))
        .filter(|p| p.to_string_lossy().ends_with(suffix))
        .collect();
    files.sort_by_key(|p| stem(p, suffix));
    files
}

/// A file's name without `suffix`.
pub fn stem(path: &Path, suffix: &str) -> String {
    let name = path
        .file_name()
        .map(|n| n.to_string_lossy().into_owned())
        .unwrap_or_default();
    name.strip_suffix(suffix).unwrap_or(&name).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_sorted_by_stem_so_that_a_hyphen_does_not_come_before_the_dot() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["lia.c", "lia-subset.c", "b.bpf.c", "cc.h"] {
            fs::write(dir.path().join(name), "").unwrap();
        }
        let stems = |suffix| -> Vec<String> {
            let found = files(dir.path(), suffix, "");
            found.iter().map(|p| stem(p, suffix)).collect()
        };
        assert_eq!(stems(".c"), ["b.bpf", "lia", "lia-subset"]);
        assert_eq!(stems(".bpf.c"), ["b"]);
    }
}
