//! Compiles `bpf/*.bpf.c` and every `algorithms/*.c` to eBPF objects, and lists them for `include_bytes!`.
//!
//! `MPTCPLAB_CLANG` names another compiler than `clang`.

use std::env;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, exit};

fn main() {
    println!("cargo::rerun-if-env-changed=MPTCPLAB_CLANG");
    println!("cargo::rerun-if-changed=bpf");
    let programs = c_files(Path::new("bpf"), ".bpf.c");
    let mut list = String::from("[\n");
    for source in &programs {
        let name = stem(source, ".bpf.c");
        let object = out_dir().join(format!("{name}.bpf.o"));
        compile(source, &object, &[]);
        let _ = writeln!(
            list,
            "    ({name:?}, include_bytes!({:?})),",
            object.display()
        );
    }
    list.push_str("]\n");
    write(&out_dir().join("programs.rs"), &list);
    algorithms();
}

/// Every algorithm twice: as it is used, and with the record of every call.
fn algorithms() {
    let folder = algorithms_dir();
    println!("cargo::rerun-if-env-changed=MPTCPLAB_ALGORITHMS_DIR");
    println!("cargo::rerun-if-changed={}", folder.display());
    let mut list = String::from("[\n");
    for source in c_files(&folder, ".c") {
        println!("cargo::rerun-if-changed={}", source.display());
        let name = stem(&source, ".c");
        let define = format!("-DCC_ALGORITHM=\"{}\"", source.display());
        let include = format!("-I{}", folder.display());
        let build = |object: &str, more: &[&str]| -> PathBuf {
            let object = out_dir().join(format!("{name}.{object}.bpf.o"));
            let flags = [&[define.as_str(), include.as_str()], more].concat();
            compile(Path::new("bpf/glue.c"), &object, &flags);
            object
        };
        let (plain, record) = (build("cc", &[]), build("record", &["-DCC_RECORD"]));
        let _ = writeln!(
            list,
            "    ({name:?}, include_bytes!({:?}), include_bytes!({:?})),",
            plain.display(),
            record.display()
        );
    }
    list.push_str("]\n");
    write(&out_dir().join("algorithms.rs"), &list);
}

fn algorithms_dir() -> PathBuf {
    if let Some(dir) = env::var_os("MPTCPLAB_ALGORITHMS_DIR") {
        return PathBuf::from(dir);
    }
    let dir = Path::new("../../algorithms");
    // Without the detour, since error messages and the compiler's show it.
    dir.canonicalize().unwrap_or(dir.to_owned())
}

fn fail(what: &str, hint: &str) -> ! {
    eprintln!("error: {what}\n\nhint: {hint}");
    exit(2)
}

fn out_dir() -> PathBuf {
    PathBuf::from(env::var_os("OUT_DIR").unwrap_or_else(|| fail("OUT_DIR is not set", "run cargo")))
}

fn write(path: &Path, text: &str) {
    fs::write(path, text).unwrap_or_else(|e| {
        fail(
            &format!("cannot write {}: {e}", path.display()),
            "check OUT_DIR",
        )
    });
}

/// Files of `dir` whose name ends with `suffix`, sorted.
fn c_files(dir: &Path, suffix: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).unwrap_or_else(|e| {
        fail(
            &format!("cannot read {}: {e}", dir.display()),
            "the source tree is not whole",
        )
    });
    let mut files: Vec<PathBuf> = entries
        .filter_map(|e| e.ok().map(|e| e.path()))
        .filter(|p| p.to_string_lossy().ends_with(suffix))
        .collect();
    files.sort();
    files
}

fn stem(path: &Path, suffix: &str) -> String {
    let name = path
        .file_name()
        .map(|n| n.to_string_lossy().into_owned())
        .unwrap_or_default();
    name.strip_suffix(suffix).unwrap_or(&name).to_owned()
}

/// One C file to one object. `-mcpu=v3` because the verifier refuses code for v1 and v2 that it accepts for v3.
fn compile(source: &Path, object: &Path, more: &[&str]) {
    let clang = env::var("MPTCPLAB_CLANG").unwrap_or_else(|_| "clang".into());
    let mut command = Command::new(&clang);
    command
        .args([
            "-target",
            "bpf",
            "-mcpu=v3",
            "-O2",
            "-g",
            "-std=gnu11",
            "-Wall",
            "-Wextra",
            "-Werror",
        ])
        .args([
            "-Wno-unused-parameter",
            "-fno-strict-aliasing",
            "-I",
            "bpf",
            "-I",
            "../../algorithms",
        ])
        // The headers of libbpf include the kernel's for the host's architecture.
        .args([
            "-idirafter",
            &format!("/usr/include/{}-linux-gnu", env::consts::ARCH),
        ])
        .args(more)
        .arg("-c")
        .arg(source)
        .arg("-o")
        .arg(object);
    match command.status() {
        Ok(status) if status.success() => {}
        Ok(status) => fail(
            &format!("{clang} on {}: {status}", source.display()),
            "the cause is above",
        ),
        Err(e) => fail(
            &format!("cannot run {clang}: {e}"),
            "eBPF needs clang: apt-get install clang libbpf-dev libelf-dev zlib1g-dev",
        ),
    }
}
