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
/// Name and object of what was compiled so far; the last one of a name counts.
static OBJECTS: Mutex<Vec<(&str, &[u8])>> = Mutex::new(Vec::new());

/// Compiles the text of an algorithm's C file, which [`mptcplab_cc::load`] has registered, so that [`crate::load`] finds its
/// object. There is none for record mode.
///
/// # Errors
/// [`LoadError`]: no clang, a file that it refuses, or a directory that cannot be used.
pub fn compile(algorithm: &Algorithm, text: &str, place: &str) -> Result<(), LoadError> {
    let name = algorithm.name();
    let directory = BuildDirectory::create(name, text)?;
    let (glue, object) = (
        directory.path().join("glue.c"),
        directory.path().join("object.o"),
    );
    let failed = |error: std::io::Error| LoadError::Compile {
        place: place.to_owned(),
        messages: error.to_string(),
    };
    fs::write(&glue, GLUE).map_err(failed)?;
    let clang = env::var("MPTCPLAB_CLANG").unwrap_or_else(|_| "clang".into());
    let output = run(&clang, directory.path(), name, &glue, &object).map_err(|error| {
        LoadError::NoClang {
            place: place.to_owned(),
            clang: clang.clone(),
            error: error.to_string(),
        }
    })?;
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
    let bytes = fs::read(&object).map_err(failed)?;
    let mut objects = OBJECTS.lock().unwrap_or_else(PoisonError::into_inner);
    objects.push((name, bytes.leak()));
    Ok(())
}

/// The object of an algorithm that was compiled here.
pub(crate) fn object(name: &str) -> Option<&'static [u8]> {
    let objects = OBJECTS.lock().unwrap_or_else(PoisonError::into_inner);
    let found = objects.iter().rev().find(|(known, _)| *known == name);
    found.map(|(_, object)| *object)
}

fn run(
    clang: &str,
    folder: &Path,
    name: &str,
    source: &Path,
    object: &Path,
) -> std::io::Result<Output> {
    Command::new(clang)
        .args(BPF_FLAGS)
        .arg(format!(
            "-DCC_ALGORITHM=\"{}\"",
            folder.join(format!("{name}.c")).display()
        ))
        .arg("-I")
        .arg(folder)
        .arg("-idirafter")
        .arg(format!("/usr/include/{}-linux-gnu", env::consts::ARCH))
        .arg("-c")
        .arg(source)
        .arg("-o")
        .arg(object)
        .env("LC_ALL", "C")
        .output()
}
