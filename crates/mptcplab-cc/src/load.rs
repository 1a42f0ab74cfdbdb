//! Algorithms that are compiled and loaded while the program runs: one C file against the headers of this build.

use crate::ffi::RawAlgorithm;
use crate::registry::{self, Algorithm, Source};
use mptcplab_build::Sources;
use mptcplab_build::declarations::{NATIVE_FLAGS, check_declarations};
use mptcplab_build::header::Header;
use std::env;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicU32, Ordering};

/// `cc.h` and every other header of the folder of algorithms, with their texts.
const HEADERS: &[(&str, &str)] = &include!(concat!(env!("OUT_DIR"), "/headers.rs"));

/// An algorithm that could not be loaded.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The file's name cannot be an algorithm's.
    #[error(
        "{place}: {name:?} cannot be an algorithm's name\n\nhint: use lower-case letters, digits and '-', such as \
         my-rule.c; the file's name is the algorithm's"
    )]
    Name { place: String, name: String },
    /// An algorithm of the build has this name.
    #[error("{place}: {name} is an algorithm of this build\n\nhint: give the file another name")]
    BuiltIn { place: String, name: String },
    /// A declaration of the contract is missing or wrong.
    #[error("{place}: {message}\n\nhint: {hint}")]
    Declaration {
        place: String,
        message: String,
        hint: &'static str,
    },
    /// The kernel would not register an algorithm without this hook.
    #[error(
        "{place}: CC_REGISTER has no {hook}\n\nhint: `cc_reno_*` of cc.h are the functions of Reno"
    )]
    Hook { place: String, hook: &'static str },
    /// There is no compiler.
    #[error(
        "{place} cannot be compiled: {compiler}: {source}\n\nhint: install a C compiler (Debian packages gcc and \
         libc6-dev), or name one with the environment variable CC"
    )]
    NoCompiler {
        place: String,
        compiler: String,
        source: io::Error,
    },
    /// The compiler refuses the file; warnings count as errors, as in the build.
    #[error("{place} does not compile\n\n{messages}")]
    Compile { place: String, messages: String },
    /// The temporary directory cannot be used.
    #[error("{}: {source}\n\nhint: name a directory that can be written with TMPDIR", path.display())]
    Directory { path: PathBuf, source: io::Error },
    /// The digest of the sources cannot be made.
    #[error(
        "{place}: {source}\n\nhint: an algorithm includes cc.h or other headers of algorithms/, and no others"
    )]
    Include {
        place: String,
        source: mptcplab_build::Error,
    },
    /// The compiled file cannot be loaded.
    #[error("{place}: {source}")]
    Link {
        place: String,
        source: libloading::Error,
    },
}

/// Compiles the text of an algorithm's C file and registers it, in place of an earlier one of this name.
///
/// `place` is the file's path in messages. The code runs in this process, as the algorithms of the build do: load only what
/// you trust. Memory of a replaced algorithm is not freed, because a run may still use it.
///
/// # Errors
/// Every [`LoadError`]; nothing is registered then.
pub fn load(name: &str, text: &str, place: &str) -> Result<&'static Algorithm, LoadError> {
    let (build, digest) = checked(name, text, place)?;
    let library = build.compile(name, text, place)?;
    register(name, (text, place), digest, &library)
}

/// Compiles the text of an algorithm's C file to the file `library`, which a process of the same build can load with
/// [`load_library`] where there is no compiler.
///
/// # Errors
/// Every [`LoadError`].
pub fn compile_library(
    name: &str,
    text: &str,
    place: &str,
    library: &Path,
) -> Result<(), LoadError> {
    let (build, _) = checked(name, text, place)?;
    fs::copy(build.compile(name, text, place)?, library)
        .map(drop)
        .map_err(|source| LoadError::Directory {
            path: library.to_owned(),
            source,
        })
}

/// Registers the algorithm that [`compile_library`] has made of this text, as [`load`] does.
///
/// # Errors
/// Every [`LoadError`] apart from those of the compiler.
pub fn load_library(
    name: &str,
    text: &str,
    place: &str,
    library: &Path,
) -> Result<&'static Algorithm, LoadError> {
    let (_build, digest) = checked(name, text, place)?;
    register(name, (text, place), digest, library)
}

/// A directory for the build of a file that declares what it has to declare, and the digest of its sources.
fn checked(name: &str, text: &str, place: &str) -> Result<(BuildDirectory, String), LoadError> {
    check_name(name, place)?;
    check_declarations(name, text).map_err(|flaw| LoadError::Declaration {
        place: place.to_owned(),
        message: flaw.message,
        hint: flaw.hint,
    })?;
    let build = BuildDirectory::create(name, text)?;
    let digest = build.digest(name, place)?;
    Ok((build, digest))
}

/// Registers what a shared library has.
fn register(
    name: &str,
    (text, place): (&str, &str),
    digest: String,
    library: &Path,
) -> Result<&'static Algorithm, LoadError> {
    let raw = open(library, name, place)?;
    #[cfg(target_os = "linux")]
    crate::crash::watch(raw.cast(), place);
    // SAFETY: `open` found the object, which stays loaded.
    if let Some(hook) = unsafe { (*raw).ops.missing() } {
        let place = place.to_owned();
        return Err(LoadError::Hook { place, hook });
    }
    let header = Header::parse(text);
    let algorithm = Algorithm::new(Source {
        name: name.to_owned().leak(),
        title: header.title.leak(),
        sections: leak_sections(header.sections),
        incomplete: header.incomplete.map(|text| &*text.leak()),
        source: digest.leak(),
        file: Some((place.to_owned().leak(), text.to_owned().leak())),
        raw,
    });
    Ok(registry::add(algorithm))
}

fn check_name(name: &str, place: &str) -> Result<(), LoadError> {
    let is_allowed = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    if !name.starts_with(|c: char| c.is_ascii_lowercase()) || !name.bytes().all(is_allowed) {
        return Err(LoadError::Name {
            place: place.to_owned(),
            name: name.to_owned(),
        });
    }
    if registry::algorithms().iter().any(|a| a.name() == name) {
        return Err(LoadError::BuiltIn {
            place: place.to_owned(),
            name: name.to_owned(),
        });
    }
    Ok(())
}

fn leak_sections(sections: Vec<(String, String)>) -> &'static [(&'static str, &'static str)] {
    let sections: Vec<(&str, &str)> = sections
        .into_iter()
        .map(|(heading, text)| (&*heading.leak(), &*text.leak()))
        .collect();
    sections.leak()
}

/// A private temporary directory with the headers and the algorithm's file, removed in the end.
#[derive(Debug)]
pub struct BuildDirectory(PathBuf);

impl BuildDirectory {
    /// Writes the headers of this build and `<name>.c`.
    ///
    /// # Errors
    /// [`LoadError::Directory`].
    pub fn create(name: &str, text: &str) -> Result<Self, LoadError> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = env::temp_dir().join(format!("mptcplab-cc-{}-{number}", std::process::id()));
        let fail = |source| LoadError::Directory {
            path: path.clone(),
            source,
        };
        // A directory that exists is somebody else's, and an error.
        DirBuilder::new().mode(0o700).create(&path).map_err(fail)?;
        let directory = Self(path.clone());
        for (header, contents) in HEADERS {
            fs::write(path.join(header), contents).map_err(fail)?;
        }
        fs::write(path.join(format!("{name}.c")), text).map_err(fail)?;
        Ok(directory)
    }

    /// Where the files are.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// As for an algorithm of the build: the file and the headers that it reaches.
    fn digest(&self, name: &str, place: &str) -> Result<String, LoadError> {
        let mut sources = Sources::new();
        sources
            .add_c(&self.0, &format!("{name}.c"))
            .map_err(|source| LoadError::Include {
                place: place.to_owned(),
                source,
            })?;
        Ok(sources.digest())
    }

    /// The shared library.
    fn compile(&self, name: &str, text: &str, place: &str) -> Result<PathBuf, LoadError> {
        let library = self.0.join(format!("{name}.so"));
        // The compiler's messages name the file that the person wrote.
        let numbered = self.0.join("numbered.c");
        let line = format!("#line 1 {place:?}\n{text}");
        fs::write(&numbered, line).map_err(|source| LoadError::Directory {
            path: self.0.clone(),
            source,
        })?;
        let compiler = env::var("CC").unwrap_or_else(|_| "cc".into());
        let output = run_compiler(&compiler, &numbered, &library).map_err(|source| {
            LoadError::NoCompiler {
                place: place.to_owned(),
                compiler,
                source,
            }
        })?;
        if output.status.success() {
            return Ok(library);
        }
        let directory = format!("{}/", self.0.display());
        let messages = String::from_utf8_lossy(&output.stderr).replace(&directory, "");
        let mut messages = messages.trim_end().to_owned();
        if ["SSE register", "floating-point"]
            .iter()
            .any(|words| messages.contains(words))
        {
            messages += "\n\nhint: the kernel has no floating point: compute with integers (cc_mul, cc_div)";
        }
        Err(LoadError::Compile {
            place: place.to_owned(),
            messages,
        })
    }
}

impl Drop for BuildDirectory {
    fn drop(&mut self) {
        // What cannot be removed is in the system's temporary directory, which is emptied anyway.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Floating point is an error, as in the kernel, on processors whose compilers have this flag.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
const WITHOUT_FLOATS: &[&str] = &["-mgeneral-regs-only"];
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
const WITHOUT_FLOATS: &[&str] = &[];

fn run_compiler(compiler: &str, source: &Path, library: &Path) -> io::Result<Output> {
    Command::new(compiler)
        .args(NATIVE_FLAGS)
        .args(WITHOUT_FLOATS)
        // A function that is nowhere defined is an error now and not when the library is loaded.
        .args(["-O3", "-fPIC", "-shared", "-Wl,-z,defs", "-o"])
        .arg(library)
        .arg(source)
        .env("LC_ALL", "C")
        .output()
}

/// The registered object of a shared library, which stays loaded until the process ends.
fn open(library: &Path, name: &str, place: &str) -> Result<*const RawAlgorithm, LoadError> {
    let fail = |source| LoadError::Link {
        place: place.to_owned(),
        source,
    };
    let symbol = format!("cc_algorithm_{}", name.replace('-', "_"));
    // SAFETY: the library was compiled here from an algorithm's file, which has no initialisers of its own unless the person
    // who wrote it wants them; running this person's code is the purpose.
    let library = unsafe { libloading::Library::new(library) }.map_err(fail)?;
    // SAFETY: CC_REGISTER defines the symbol as an object of this type, with the headers that this build was made with.
    let raw = unsafe { library.get::<*const RawAlgorithm>(symbol.as_bytes()) }.map_err(fail)?;
    let raw = *raw;
    std::mem::forget(library);
    Ok(raw)
}
