//! `cc load`: loads all of the named algorithms or none.

use super::options::{LoadOptions, Planned};
use super::{algorithms, list, require_writable_pins};
use crate::compiled;
use crate::failure::Failure;
use mptcplab_bpf::loader::is_registered;
use mptcplab_bpf::registered::{
    self, PIN_FOLDER, Pin, SETTING_FOLDER, pin_of, registered, remove_pin,
};
use mptcplab_bpf::{Loaded, Setting, load, system};
use mptcplab_doctor::defaults::{self, Defaults};
use mptcplab_doctor::{bpffs, command, errln, outln, trust};
use nix::sys::signal::{SigSet, Signal};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::Path;

/// Load algorithms as `lab_<name>`: all of them or none.
///
/// Without --pin the command keeps running, and the algorithms are unloaded when it ends. Sockets that use one keep it until
/// they close.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    #[arg(required = true, value_name = "NAME", help = compiled::names_help())]
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
    let mut plan = arguments.options.plan(&chosen)?;
    system::check()?;
    let mut already = Vec::new();
    if arguments.pin {
        prepare_folders()?;
        let mut missing = Vec::new();
        for planned in plan {
            let name = planned.1.kernel_name.clone();
            match pin_of(&name) {
                Some(Pin::Registered(Some(setting))) if setting.is_of(planned.0, &planned.1) => {
                    already.push(name);
                }
                Some(Pin::Registered(setting)) => return Err(taken(&planned, setting.as_ref())),
                Some(Pin::Detached) => {
                    remove_pin(&name).map_err(|error| {
                        Failure::new(format!("cannot remove the pin of {name}: {error}"))
                    })?;
                    missing.push(planned);
                }
                None => missing.push(planned),
            }
        }
        plan = missing;
    }
    warn_of_former_defaults(&plan);
    // Block signals before anything is loaded, so that none can interrupt the loading.
    let ends = block_signals();
    let mut loaded = Vec::new();
    for (algorithm, options) in &plan {
        // After an error the algorithms loaded so far are dropped and thereby unloaded.
        loaded.push(load(algorithm, options)?);
    }
    if arguments.pin {
        let names = pin(loaded)?;
        if !arguments.json && !already.is_empty() {
            outln!("already loaded: {}", already.join(", "));
        }
        // Scripts find all names that they asked for.
        let names = if arguments.json {
            [already, names].concat()
        } else {
            names
        };
        if arguments.json || !names.is_empty() {
            print_names(&names, arguments.json, true);
        }
        return Ok(0);
    }
    let names: Vec<String> = loaded.iter().map(|l| l.kernel_name().to_owned()).collect();
    print_names(&names, arguments.json, false);
    if !arguments.json {
        let what = if names.len() == 1 {
            "it stays"
        } else {
            "they stay"
        };
        outln!("{what} loaded until this command ends (Ctrl-C)");
    }
    let _ = ends.wait();
    warn_at_end(&loaded);
    Ok(0)
}

/// What is pinned under the name is something else.
fn taken((algorithm, options): &Planned, setting: Option<&Setting>) -> Failure {
    let what = match setting {
        None => "is pinned, and how it was loaded cannot be read",
        Some(setting) if setting.has_program_of(algorithm) => "is pinned with other options",
        Some(_) => "is pinned, but another program: that of another version, or of another file",
    };
    Failure::new(format!("{} {what}", options.kernel_name)).hint(format!(
        "to replace it: {program} cc unload {name}, and load it again; subflows from before and after are not coupled \
         with each other",
        program = command::name(),
        name = options.kernel_name
    ))
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

fn prepare_folders() -> Result<(), Failure> {
    let folder = Path::new(PIN_FOLDER);
    let mount = Path::new(bpffs::MOUNT);
    if bpffs::state() == bpffs::State::Absent {
        return Err(Failure::new(format!(
            "no BPF file system is mounted at {}",
            mount.display()
        ))
        .hint(bpffs::mount()));
    }
    require_writable_pins()?;
    if is_another(mount, Path::new("/proc/1/root")) {
        errln!(
            "warning: {} is mounted in this mount namespace only, such as that of `ip netns exec`: the algorithms are \
             unloaded when its last process ends, and `cc list` elsewhere does not see what holds them; run this outside",
            mount.display()
        );
    }
    private_folder(folder, mount)?;
    private_folder(Path::new(SETTING_FOLDER), mount)
}

fn private_folder(folder: &Path, mount: &Path) -> Result<(), Failure> {
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

/// Whether the file system is another one than that at this path below the root of the first process. A mount namespace
/// alone says nothing: systemd gives the unit of `cc persist` one of its own, with the file system of the host.
fn is_another(mount: &Path, root_of_first: &Path) -> bool {
    let device = |path: &Path| fs::metadata(path).map(|found| found.dev()).ok();
    let of_first = root_of_first.join(mount.strip_prefix("/").unwrap_or(mount));
    matches!((device(mount), device(&of_first)), (Some(here), Some(first)) if here != first)
}

/// Pins all algorithms or none: after an error the pins made so far are removed.
fn pin(loaded: Vec<Loaded>) -> Result<Vec<String>, Failure> {
    let mut names: Vec<String> = Vec::new();
    for mut one in loaded {
        if !system::has_struct_ops_links() {
            names.push(one.kernel_name().to_owned());
            one.leave_registered();
            continue;
        }
        if let Err(error) = registered::pin(&mut one) {
            for name in names {
                let _ = remove_pin(&name);
            }
            return Err(error.into());
        }
        names.push(one.kernel_name().to_owned());
    }
    Ok(names)
}

fn block_signals() -> SigSet {
    let mut ends = SigSet::empty();
    for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP] {
        // One that is ignored, as nohup does with SIGHUP, would be waited for if it were blocked.
        if !is_ignored(signal) {
            ends.add(signal);
        }
    }
    let _ = ends.thread_block();
    ends
}

fn is_ignored(signal: Signal) -> bool {
    // SAFETY: an all-zero sigaction is valid.
    let mut now: libc::sigaction = unsafe { std::mem::zeroed() };
    // SAFETY: without a new action this only writes the present one, to a valid place.
    let result = unsafe { libc::sigaction(signal as i32, std::ptr::null(), &raw mut now) };
    result == 0 && now.sa_sigaction == libc::SIG_IGN
}

fn print_names(names: &[String], as_json: bool, pinned: bool) {
    let how = if pinned { "pinned" } else { "loaded" };
    if as_json {
        let rows: Vec<Value> = names.iter().map(|name| json!({"name": name})).collect();
        outln!("{}", json!({ how: rows }));
    } else {
        outln!("{how}: {}", names.join(", "));
        // As a default, an algorithm would outlive this command, in no list.
        let default = match pinned {
            true => format!(", or {}", defaults::set("", &names[0])),
            false => String::new(),
        };
        outln!("use: setsockopt(TCP_CONGESTION) with that name{default}");
    }
}

/// A namespace whose default was loaded before goes on using that one, although the new one has the same name.
fn warn_of_former_defaults(plan: &[Planned]) {
    let Ok(defaults) = Defaults::read() else {
        return;
    };
    for (_, options) in plan {
        let name = &options.kernel_name;
        let places = defaults.places(name);
        if let (Some(first), false) = (places.first(), is_registered(name)) {
            errln!(
                "warning: {name} of an earlier load is still the default of {}: set it again, so that new sockets use \
                 this one: {}",
                places.join(", "),
                defaults::set(first, name)
            );
        }
    }
}

/// What goes on after this command has ended: uncoupled subflows, and sockets and defaults that keep an algorithm.
fn warn_at_end(loaded: &[Loaded]) {
    let defaults = Defaults::read().unwrap_or_default();
    // With the privileges to load alone, one may not list.
    let all = registered().unwrap_or_else(|error| {
        let why = error.to_string();
        let why = why.lines().next().unwrap_or_default();
        errln!("warning: whether sockets keep an algorithm is not known: {why}");
        Vec::new()
    });
    for one in loaded {
        let name = one.kernel_name();
        if let Some(what) = list::uncoupled(one.unplaced()) {
            errln!("warning: {name}: {what}");
        }
        let places = defaults.places(name);
        if !places.is_empty() {
            errln!(
                "warning: {name} remains the default congestion control of {}, and new sockets there go on using it, \
                 although no list shows it; set another default: {}",
                places.join(", "),
                defaults::set_another(&places)
            );
        }
        let registered = all.iter().find(|known| known.name == name).cloned();
        let users = registered.and_then(|mut known| {
            known.sockets = defaults.sockets(name, known.sockets);
            list::users(&known)
        });
        if let Some(users) = users {
            errln!("warning: {name}: {users}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What was pinned under `ip netns exec` was unloaded at once, without a word.
    #[test]
    fn a_file_system_of_this_mount_namespace_alone_is_noticed() {
        let root = tempfile::tempdir().unwrap();
        let mount = Path::new("/proc");
        assert!(!is_another(mount, root.path()), "it cannot be looked at");
        fs::create_dir(root.path().join("proc")).unwrap();
        assert!(is_another(mount, root.path()));
        assert!(!is_another(mount, Path::new("/")));
    }
}
