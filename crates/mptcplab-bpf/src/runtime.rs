//! Algorithms that are compiled while the program runs: one C file to an object, as the build makes those of `algorithms/`.

use crate::error::LoadError;
use mptcplab_build::declarations::BPF_FLAGS;
use mptcplab_cc::{Algorithm, BuildDirectory};
use std::env;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::{Mutex, PoisonError};

/// Wraps the hooks of a file in the operations that the kernel calls.
const GLUE: &str = include_str!("../bpf/glue.c");
/// Names of files in the directory of a build; those of algorithms have no capital letters.
const SOURCE: &str = "GLUE.c";
const OBJECT: &str = "OBJECT.o";
/// Name and object of what was compiled so far; the last one of a name counts.
static OBJECTS: Mutex<Vec<(&str, &[u8])>> = Mutex::new(Vec::new());

/// Compiles the text of an algorithm's C file to an object for [`add`]; `place` is the file's path in messages.
///
/// The same compiler makes the same bytes of the same text.
///
/// # Errors
/// [`LoadError`]: no clang, a file that it refuses, or a directory that cannot be used.
pub fn compile(name: &str, text: &str, place: &str) -> Result<Vec<u8>, LoadError> {
    let directory = BuildDirectory::create(name, text)?;
    let failed = |error: std::io::Error| LoadError::Compile {
        place: place.to_owned(),
        messages: error.to_string(),
    };
    fs::write(directory.path().join(SOURCE), GLUE).map_err(failed)?;
    let output = run(directory.path(), name).map_err(|error| no_clang(place, &error))?;
    if !output.status.success() {
        let folder = format!("{}/", directory.path().display());
        let messages = String::from_utf8_lossy(&output.stderr)
            .replace(&format!("{folder}{name}.c"), place)
            .replace(&folder, "");
        return Err(LoadError::Compile {
            place: place.to_owned(),
            messages: messages.trim_end().to_owned(),
        });
    }
    fs::read(directory.path().join(OBJECT)).map_err(failed)
}

/// The first line that the compiler says about itself.
///
/// # Errors
/// [`LoadError::NoClang`]; `place` is the file for which it is needed.
pub fn compiler(place: &str) -> Result<String, LoadError> {
    let asked = Command::new(clang()).arg("--version").output();
    let output = asked.map_err(|error| no_clang(place, &error))?;
    let text = String::from_utf8_lossy(&output.stdout);
    Ok(text.lines().next().unwrap_or_default().to_owned())
}

/// Lets [`crate::load`] find the object of an algorithm that [`mptcplab_cc`] has registered at run time. There is none for
/// record mode.
pub fn add(algorithm: &Algorithm, object: Vec<u8>) {
    let mut objects = OBJECTS.lock().unwrap_or_else(PoisonError::into_inner);
    objects.push((algorithm.name(), object.leak()));
}

/// The object of an algorithm that was compiled here.
pub(crate) fn object(name: &str) -> Option<&'static [u8]> {
    let objects = OBJECTS.lock().unwrap_or_else(PoisonError::into_inner);
    let found = objects.iter().rev().find(|(known, _)| *known == name);
    found.map(|(_, object)| *object)
}

fn clang() -> String {
    env::var("MPTCPLAB_CLANG").unwrap_or_else(|_| "clang".into())
}

fn no_clang(place: &str, error: &std::io::Error) -> LoadError {
    LoadError::NoClang {
        place: place.to_owned(),
        clang: clang(),
        error: error.to_string(),
    }
}

fn run(folder: &Path, name: &str) -> std::io::Result<Output> {
    Command::new(clang())
        .args(BPF_FLAGS)
        .arg(format!(
            "-DCC_ALGORITHM=\"{}\"",
            folder.join(format!("{name}.c")).display()
        ))
        .arg("-I")
        .arg(folder)
        .arg("-idirafter")
        .arg(format!("/usr/include/{}-linux-gnu", env::consts::ARCH))
        // Line information names the sources, and has their text, which clang looks for by that name; it must not depend on
        // where they were for a moment.
        .arg(format!("-ffile-prefix-map={}/=", folder.display()))
        .arg("-fdebug-compilation-dir=.")
        .current_dir(folder)
        .arg("-c")
        .arg(folder.join(SOURCE))
        .arg("-o")
        .arg(folder.join(OBJECT))
        .env("LC_ALL", "C")
        .output()
}
