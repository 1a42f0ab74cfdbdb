//! Compiles every `algorithms/*.c` and writes the registry from the folder's content.
//!
//! The folder is the only list of algorithms: a file is found, compiled and registered because it is there.
//! `MPTCPLAB_ALGORITHMS_DIR` names another folder (it needs its own `cc.h`).

use mptcplab_build::Sources;
use mptcplab_build::script::{algorithm_files, algorithms_dir, fail, out_dir, write};
use std::env;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

/// The part of a file's header comment that the registry contains.
struct Header {
    title: String,
    sections: Vec<(String, String)>,
}

/// Headings of a complete header comment, in this order.
const HEADINGS: [&str; 9] = [
    "Idea",
    "Equations",
    "States",
    "Parameters' source",
    "Deviations",
    "On one path",
    "Good at",
    "Bad at",
    "Reference",
];

fn main() {
    let dir = algorithms_dir();
    println!("cargo::rerun-if-changed=native/glue.c");
    let sources = algorithm_files(&dir);
    let mut registry = String::from("[\n");
    for source in &sources {
        let stem = stem(source);
        let text = read(source);
        let header = parse_header(source, &text);
        check_registration(source, &text);
        let _ = writeln!(
            registry,
            "    Entry {{ name: {stem:?}, title: {:?}, sections: &{:?}, source: {:?}, raw: {{ unsafe extern \"C\" {{ \
             #[link_name = \"cc_algorithm_{}\"] static RAW: ffi::RawAlgorithm; }} &raw const RAW }} }},",
            header.title,
            header.sections,
            digest(&dir, source),
            stem.replace('-', "_"),
        );
    }
    registry.push_str("]\n");
    write(&out_dir().join("registry.rs"), &registry);
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

/// The first block comment: a title line, then headings "Name: text", continued by indented lines.
///
/// A draft need not have them all: what is missing is a warning here, and an error in the tests.
fn parse_header(path: &Path, text: &str) -> Header {
    let comment = text
        .split_once("/*")
        .and_then(|(_, rest)| rest.split_once("*/"))
        .map_or("", |(comment, _)| comment);
    let mut title = String::new();
    let mut sections: Vec<(String, String)> = Vec::new();
    for line in comment.lines() {
        let line = line.trim_start().strip_prefix('*').unwrap_or(line);
        let heading = line
            .strip_prefix(' ')
            .and_then(|l| l.split_once(':'))
            .filter(|(h, _)| HEADINGS.contains(h));
        if let Some((name, rest)) = heading {
            sections.push((name.to_owned(), rest.trim().to_owned()));
        } else if let Some((_, body)) = sections.last_mut() {
            body.push('\n');
            body.push_str(
                line.strip_prefix("   ")
                    .unwrap_or(line.trim_start())
                    .trim_end(),
            );
        } else if title.is_empty() {
            title = line.trim().to_owned();
        }
    }
    for (_, body) in &mut sections {
        *body = body.trim().to_owned();
    }
    let found: Vec<&str> = sections.iter().map(|(h, _)| h.as_str()).collect();
    if title.is_empty() || found != HEADINGS {
        let missing = HEADINGS.iter().filter(|h| !found.contains(h));
        let missing: Vec<String> = missing.map(|h| format!("{h}:")).collect();
        println!(
            "cargo::warning={}: the header comment is not complete, as the tests require it; missing: {}; \
             in this order: a title line, {}",
            path.display(),
            missing.join(" "),
            HEADINGS.map(|h| format!("{h}:")).join(" ")
        );
    }
    let title = match title.split_once(": ") {
        Some((_, rest)) => rest.to_owned(),
        None if title.is_empty() => "(no title)".to_owned(),
        None => title,
    };
    Header { title, sections }
}

/// The object that the registry refers to must exist: a shared library links without it and cannot be loaded.
fn check_registration(path: &Path, text: &str) {
    let wanted = stem(path).replace('-', "_");
    let coupling =
        ["CC_UNCOUPLED", "CC_COUPLED", "CC_SHARED"].map(|kind| format!("{kind}({wanted}"));
    if !coupling
        .iter()
        .any(|declaration| text.contains(declaration))
    {
        fail(
            &format!(
                "{}: none of {}",
                path.display(),
                coupling.map(|c| c + "...)").join(", ")
            ),
            "say whether the algorithm sees its siblings, as algorithms/template-coupled.c does",
        );
    }
    let found: Vec<&str> = text
        .split("CC_REGISTER(")
        .skip(1)
        .filter_map(|rest| rest.split([',', ')']).next())
        .map(str::trim)
        .collect();
    let line = format!("CC_REGISTER({wanted}, ...)");
    match found[..] {
        [name] if name == wanted => {}
        [] => fail(
            &format!("{}: no {line}", path.display()),
            "end the file as algorithms/template.c ends",
        ),
        [name] => fail(
            &format!(
                "{}: CC_REGISTER({name}, ...), wanted {line}",
                path.display()
            ),
            "the file's name is the algorithm's; in C '-' is '_'",
        ),
        _ => fail(
            &format!(
                "{}: {} times CC_REGISTER, wanted once",
                path.display(),
                found.len()
            ),
            "one file is one algorithm; what differs can be a parameter (CC_PARAMS)",
        ),
    }
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
        .std("gnu11")
        .opt_level(3)
        .warnings(true)
        .extra_warnings(true)
        .warnings_into_errors(true)
        // Hooks have the kernel's signatures, and state words are read as the algorithm's struct, as in the kernel.
        .flag("-Wno-unused-parameter")
        .flag("-fno-strict-aliasing");
    // Debug and test builds stop on any overflow, undefined behaviour or broken range.
    if env::var("PROFILE").as_deref() == Ok("debug") {
        build.define("CC_CHECKED", None);
        build.flag_if_supported("-fsanitize=undefined");
        build.flag_if_supported("-fsanitize-undefined-trap-on-error");
    }
    build.compile("mptcplab_algorithms");
}
