//! Algorithms that are not in the build: `compile` makes of C files what `run --algorithms` loads, in another process or
//! machine, which needs no compiler.
//!
//! A directory has three files of each algorithm: the text (`mine.c`), the native library (`mine.so`), which says what the
//! algorithm's parameters are and which hooks it has, and the eBPF object (`mine.o`).

use crate::failure::Failure;
use mptcplab_bpf::runtime;
use mptcplab_cc::Algorithm;
use serde_json::json;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Arguments of `compile`.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// C file, whose stem is the algorithm's name.
    file: PathBuf,
    /// The file's path in messages.
    #[arg(long)]
    place: Option<String>,
    /// Directory for what is compiled.
    #[arg(long)]
    out: PathBuf,
}

const HINT: &str =
    "algorithms of the build can be loaded; the engines sim and vm take C files without privileges";

/// Whether this program can load the libraries that C files are compiled to: one that is linked without libraries cannot.
const LOADS_FILES: bool = cfg!(not(target_feature = "crt-static"));

/// The help of the names that `cc load` takes.
pub(crate) fn names_help() -> String {
    names_help_of(LOADS_FILES)
}

fn names_help_of(loads_files: bool) -> String {
    let known = known_names_help();
    if loads_files {
        format!("{known}; or paths of C files, which are compiled: use only files that you trust")
    } else {
        known
    }
}

/// The help of the names of algorithms. Whoever has the program without libraries does not have `mptcplab algorithms`.
pub(crate) fn known_names_help() -> String {
    let names: Vec<&str> = mptcplab_cc::algorithms()
        .iter()
        .map(Algorithm::name)
        .collect();
    format!("Names of algorithms: {}", names.join(", "))
}

/// Fails where the native half of a C file must not or cannot run in this process.
fn require_loadable() -> Result<(), Failure> {
    require_libraries()?;
    if has_capabilities_of_file() {
        return Err(Failure::new(
            "C files cannot be loaded with the capabilities of the program file, which their code would have",
        )
        .hint(format!("run the command as root; {HINT}")));
    }
    Ok(())
}

/// Whether whoever may execute the program file has its capabilities.
fn has_capabilities_of_file() -> bool {
    // SAFETY: reads a number that the kernel gave this process; getauxval(3) has no other effect.
    unsafe { libc::getauxval(libc::AT_SECURE) != 0 }
}

fn require_libraries() -> Result<(), Failure> {
    if !LOADS_FILES {
        return Err(Failure::new(
            "this program was linked without libraries, and cannot load those that C files are compiled to",
        )
        .hint(format!("use the program that `make setup` builds; {HINT}")));
    }
    Ok(())
}

/// Compiles a C file for runs; prints the compiler of the eBPF object as JSON.
pub(crate) fn main(arguments: &Arguments) -> Result<u8, Failure> {
    let source = Source::read(&arguments.file, arguments.place.as_deref())?;
    let (text, place) = (&source.text, &source.place);
    let file = |suffix: &str| arguments.out.join(format!("{}.{suffix}", source.name));
    fs::create_dir_all(&arguments.out).map_err(|error| failed(&arguments.out, &error))?;
    mptcplab_cc::compile_library(&source.name, text, place, &file("so"))?;
    let object = runtime::compile(&source.name, text, place)?;
    fs::write(file("o"), object).map_err(|error| failed(&file("o"), &error))?;
    fs::write(file("c"), text).map_err(|error| failed(&file("c"), &error))?;
    let line = json!({ "compiler": runtime::compiler(place)? });
    mptcplab_doctor::outln!("{line}");
    Ok(0)
}

/// Compiles a C file and registers its algorithm in this process.
pub(crate) fn compile_here(file: &Path) -> Result<&'static Algorithm, Failure> {
    require_loadable()?;
    let Source { name, text, place } = Source::read(file, None)?;
    let algorithm = mptcplab_cc::load(&name, &text, &place)?;
    runtime::add(algorithm, runtime::compile(&name, &text, &place)?);
    Ok(algorithm)
}

/// Registers all algorithms of a directory, with their eBPF objects.
pub(crate) fn load(directory: &Path) -> Result<(), Failure> {
    require_loadable()?;
    for file in files(directory)? {
        let algorithm = load_library(&file)?;
        let object = file.with_extension("o");
        let bytes = fs::read(&object).map_err(|error| failed(&object, &error))?;
        runtime::add(algorithm, bytes);
    }
    Ok(())
}

/// The same without the objects, and without capabilities of the program file: for a process that needs none from then on.
pub(crate) fn load_declarations_without_capabilities(directory: &Path) -> Result<(), Failure> {
    require_libraries()?;
    if has_capabilities_of_file() {
        mptcplab_net::sandbox::capabilities::give_up()?;
    }
    load_all_declarations(directory)
}

/// The same without the objects: for a process that only has to know what the algorithms are.
pub(crate) fn load_declarations(directory: &Path) -> Result<(), Failure> {
    require_loadable()?;
    load_all_declarations(directory)
}

fn load_all_declarations(directory: &Path) -> Result<(), Failure> {
    files(directory)?
        .iter()
        .try_for_each(|file| load_library(file).map(drop))
}

fn load_library(file: &Path) -> Result<&'static Algorithm, Failure> {
    let Source { name, text, place } = Source::read(file, None)?;
    let library = file.with_extension("so");
    Ok(mptcplab_cc::load_library(&name, &text, &place, &library)?)
}

/// The C files of a directory, in the order of their names.
fn files(directory: &Path) -> Result<Vec<PathBuf>, Failure> {
    let entries = fs::read_dir(directory).and_then(Iterator::collect::<io::Result<Vec<_>>>);
    let mut files: Vec<PathBuf> = entries
        .map_err(|error| failed(directory, &error))?
        .iter()
        .map(fs::DirEntry::path)
        .filter(|path| path.extension().is_some_and(|extension| extension == "c"))
        .collect();
    files.sort();
    Ok(files)
}

/// An algorithm's C file.
struct Source {
    name: String,
    text: String,
    /// The file's path in messages.
    place: String,
}

impl Source {
    fn read(file: &Path, place: Option<&str>) -> Result<Self, Failure> {
        let text = fs::read_to_string(file).map_err(|error| {
            failed(file, &error)
                .hint("give the path of a C file such as algorithms/template-coupled.c")
        })?;
        let stem = file.file_stem().unwrap_or_default();
        Ok(Self {
            name: stem.to_string_lossy().into_owned(),
            text,
            place: place.map_or_else(|| file.display().to_string(), str::to_owned),
        })
    }
}

fn failed(path: &Path, error: &io::Error) -> Failure {
    Failure::new(format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The help and the man page of the packages promised C files, which their program refuses.
    #[test]
    fn only_a_program_that_loads_c_files_offers_them() {
        assert!(names_help_of(true).contains("C files"));
        assert!(!names_help_of(false).contains("C files"));
        // The help of `cc persist` named a command that the packages do not have.
        for help in [names_help_of(true), known_names_help()] {
            assert!(
                help.contains(", olia, ") && !help.contains("mptcplab algorithms"),
                "{help}"
            );
        }
        assert_eq!(
            require_libraries().is_ok(),
            names_help().contains("C files")
        );
    }
}
