//! `cc load`: loads all of the named algorithms or none.

use super::options::LoadOptions;
use super::{algorithms, plural};
use crate::compiled;
use crate::failure::Failure;
use mptcplab_bpf::registered::PIN_FOLDER;
use mptcplab_bpf::{Loaded, load, system};
use mptcplab_doctor::{errln, outln, trust};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::statfs::{BPF_FS_MAGIC, statfs};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// Load algorithms as `lab_<name>`: all of them or none.
///
/// Without --pin the command keeps running, and the algorithms are unloaded when it ends. Sockets that use one keep it until
/// they close.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Names of algorithms, as listed by `mptcplab algorithms`, or paths of C files, which are compiled: use only files that
    /// you trust.
    #[arg(required = true, value_name = "NAME")]
    names: Vec<String>,
    #[command(flatten)]
    options: LoadOptions,
    /// Return at once; the algorithms stay loaded until `cc unload` or the next boot.
    #[arg(long)]
    pin: bool,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

pub(super) fn main(arguments: &Arguments) -> Result<u8, Failure> {
    let names = with_files(&arguments.names)?;
    let chosen = algorithms(&names)?;
    let plan = arguments.options.plan(&chosen)?;
    system::check()?;
    if arguments.pin {
        prepare_folder()?;
    }
    // Block signals before anything is loaded, so that none can interrupt the loading.
    let ends = block_signals();
    let mut loaded = Vec::new();
    for (algorithm, options) in &plan {
        // After an error the algorithms loaded so far are dropped and thereby unloaded.
        loaded.push(load(algorithm, options)?);
    }
    if arguments.pin {
        let names = pin(loaded)?;
        print_names(&names, arguments.json, "pinned");
        return Ok(0);
    }
    let names: Vec<String> = loaded.iter().map(|l| l.kernel_name().to_owned()).collect();
    print_names(&names, arguments.json, "loaded");
    if !arguments.json {
        outln!("they stay loaded until this command ends (Ctrl-C)");
    }
    let _ = ends.wait();
    warn_of_unplaced(&loaded);
    Ok(0)
}

/// The names, with those of compiled files in place of their paths.
fn with_files(names: &[String]) -> Result<Vec<String>, Failure> {
    names
        .iter()
        .map(|name| match Path::new(name).extension() {
            Some(extension) if extension == "c" => {
                Ok(compiled::compile_here(Path::new(name))?.name().to_owned())
            }
            _ => Ok(name.clone()),
        })
        .collect()
}

fn prepare_folder() -> Result<(), Failure> {
    let folder = Path::new(PIN_FOLDER);
    let mount = folder.parent().unwrap_or(folder);
    let is_bpffs = statfs(mount).is_ok_and(|found| found.filesystem_type() == BPF_FS_MAGIC);
    if !is_bpffs {
        return Err(Failure::new(format!(
            "no BPF file system is mounted at {}",
            mount.display()
        ))
        .hint(format!("mount -t bpf -o mode=0700 bpf {}", mount.display())));
    }
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)
        .map_err(|error| Failure::new(format!("cannot create {}: {error}", folder.display())))?;
    // Somebody else may have made it before: whoever owns it could unload or replace the algorithms.
    trust::private_folder(folder).map_err(|why| {
        Failure::new(format!(
            "cannot rely on the folder of pinned algorithms: {why}"
        ))
        .hint(format!(
            "find out who made it, then: rm -r {}; chmod 700 {}",
            folder.display(),
            mount.display()
        ))
    })
}

/// Pins all algorithms or none: after an error the pins made so far are removed.
fn pin(loaded: Vec<Loaded>) -> Result<Vec<String>, Failure> {
    let mut pinned: Vec<PathBuf> = Vec::new();
    let mut names = Vec::new();
    for mut one in loaded {
        names.push(one.kernel_name().to_owned());
        if !system::has_struct_ops_links() {
            one.leave_registered();
            continue;
        }
        let path = Path::new(PIN_FOLDER).join(one.kernel_name());
        if let Err(error) = one.pin(&path) {
            for path in pinned {
                let _ = fs::remove_file(path);
            }
            return Err(error.into());
        }
        pinned.push(path);
    }
    Ok(names)
}

fn block_signals() -> SigSet {
    let mut ends = SigSet::empty();
    for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP] {
        ends.add(signal);
    }
    let _ = ends.thread_block();
    ends
}

fn print_names(names: &[String], as_json: bool, how: &str) {
    if as_json {
        let rows: Vec<Value> = names.iter().map(|name| json!({"name": name})).collect();
        outln!("{}", json!({ how: rows }));
    } else {
        outln!("{how}: {}", names.join(", "));
        outln!(
            "use: setsockopt(TCP_CONGESTION) with that name, or sysctl -w net.ipv4.tcp_congestion_control={}",
            names[0]
        );
    }
}

fn warn_of_unplaced(loaded: &[Loaded]) {
    for one in loaded.iter().filter(|one| one.unplaced() > 0) {
        errln!(
            "warning: {}: {} found its table full and ran uncoupled; use a larger --connections",
            one.kernel_name(),
            plural(one.unplaced(), "subflow")
        );
    }
}
