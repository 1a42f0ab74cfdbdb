//! Compiles `bpf/*.bpf.c` and every `algorithms/*.c` to eBPF objects, and lists them for `include_bytes!`.
//!
//! `MPTCPLAB_CLANG` names another compiler than `clang`.

use mptcplab_build::declarations::BPF_FLAGS;
use mptcplab_build::script::{algorithm_files, algorithms_dir, fail, files, out_dir, stem, write};
use std::env;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-env-changed=MPTCPLAB_CLANG");
    println!("cargo::rerun-if-changed=bpf");
    let programs = files(
        Path::new("bpf"),
        ".bpf.c",
        "build in a complete copy of the repository",
    );
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
    let mut list = String::from("[\n");
    for source in algorithm_files(&folder) {
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

/// The repository, as the paths of the algorithms begin.
fn root() -> PathBuf {
    let folder = algorithms_dir();
    folder.parent().map(Path::to_owned).unwrap_or(folder)
}

/// One C file to one object.
fn compile(source: &Path, object: &Path, more: &[&str]) {
    let clang = env::var("MPTCPLAB_CLANG").unwrap_or_else(|_| "clang".into());
    let mut command = Command::new(&clang);
    command
        .args(BPF_FLAGS)
        .args(["-I", "bpf", "-I", "../../algorithms"])
        // The headers of libbpf include the kernel's for the host's architecture.
        .args([
            "-idirafter",
            &format!("/usr/include/{}-linux-gnu", env::consts::ARCH),
        ])
        // Line information names the sources; it must not depend on where the repository is.
        .arg(format!("-ffile-prefix-map={}/=", root().display()))
        .arg("-fdebug-compilation-dir=.")
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
