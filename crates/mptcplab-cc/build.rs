//! Compiles every `algorithms/*.c` and writes the registry from the folder's content.
//!
//! The folder is the only list of algorithms: a file is found, compiled and registered because it is there.
//! `MPTCPLAB_ALGORITHMS_DIR` names another folder (it needs its own `cc.h`).

use mptcplab_build::Sources;
use mptcplab_build::declarations::{NATIVE_FLAGS, check_declarations};
use mptcplab_build::header::Header;
use mptcplab_build::script::{algorithm_files, algorithms_dir, fail, out_dir, write};
use std::env;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

fn main() {
    let dir = algorithms_dir();
    println!("cargo::rerun-if-changed=native");
    let sources = algorithm_files(&dir);
    let mut registry = String::from("[\n");
    for source in &sources {
        let stem = stem(source);
        let text = read(source);
        let header = Header::parse(&text);
        check_declarations(&stem, &text).unwrap_or_else(|flaw| {
            fail(
                &format!("{}: {}", source.display(), flaw.message),
                flaw.hint,
            )
        });
        let _ = writeln!(
            registry,
            "    Source {{ name: {stem:?}, title: {:?}, sections: &{:?}, incomplete: {:?}, source: {:?}, file: None, raw: {{ unsafe extern \"C\" {{ \
             #[link_name = \"cc_algorithm_{}\"] static RAW: ffi::RawAlgorithm; }} &raw const RAW }} }},",
            header.title,
            header.sections,
            header.incomplete,
            digest(&dir, source),
            stem.replace('-', "_"),
        );
    }
    registry.push_str("]\n");
    write(&out_dir().join("registry.rs"), &registry);
    write(&out_dir().join("headers.rs"), &headers(&dir));
    compile(&dir, &sources);
}

/// The name of the algorithm.
fn stem(source: &Path) -> String {
    mptcplab_build::script::stem(source, ".c")
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|e| {
        fail(
            &format!("cannot read {}: {e}", path.display()),
            "check the file's permissions",
        )
    })
}

/// The contract and the headers that algorithms share, for files that are compiled at run time.
fn headers(dir: &Path) -> String {
    let mut list = String::from("[\n");
    for header in mptcplab_build::script::files(dir, ".h", "an algorithm includes cc.h") {
        let name = header.file_name().unwrap_or_default().to_string_lossy();
        let _ = writeln!(list, "    ({name:?}, include_str!({header:?})),");
    }
    list.push_str("]\n");
    list
}

/// Digest of the file and of every header of the folder that it reaches.
fn digest(dir: &Path, source: &Path) -> String {
    // Named after the algorithm, whose letters were checked.
    let name = format!("{}.c", stem(source));
    let mut sources = Sources::new();
    sources.add_c(dir, &name).unwrap_or_else(|e| {
        fail(
            &e.to_string(),
            "an algorithm includes headers of its own folder, as algorithms/template.c does",
        )
    });
    sources.digest()
}

fn compile(dir: &Path, sources: &[PathBuf]) {
    let mut build = cc::Build::new();
    build
        .include(dir)
        .files(sources)
        .file("native/glue.c")
        .opt_level(3)
        .warnings(false);
    // There are no system headers for WebAssembly.
    if env::var("CARGO_CFG_TARGET_FAMILY").as_deref() == Ok("wasm") {
        build.include("native/wasm");
    }
    for flag in NATIVE_FLAGS {
        build.flag(flag);
    }
    // gcc clears small structures with `rep stos`, which takes longer to start than the rest of a hook.
    build.flag_if_supported("-mmemset-strategy=unrolled_loop:-1:noalign");
    // Debug and test builds stop on any overflow, undefined behaviour or broken range.
    if env::var("PROFILE").as_deref() == Ok("debug") {
        build.define("CC_CHECKED", None);
        build.flag_if_supported("-fsanitize=undefined");
        build.flag_if_supported("-fsanitize-undefined-trap-on-error");
    }
    build.compile("mptcplab_algorithms");
}
