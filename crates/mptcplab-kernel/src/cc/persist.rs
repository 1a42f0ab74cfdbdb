//! `cc persist`: a systemd unit that loads algorithms at boot.

use super::options::LoadOptions;
use super::{algorithm, algorithms, kernel_name};
use crate::compiled;
use crate::failure::Failure;
use mptcplab_bpf::loader::is_registered;
use mptcplab_bpf::registered::PIN_FOLDER;
use mptcplab_doctor::{command, errln, out, outln, trust};
use serde_json::json;
use std::env;
use std::fs::{self, OpenOptions, Permissions};
use std::io::Write as _;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{self, Path, PathBuf};
use std::process::Command;

const UNIT: &str = "mptcplab-cc.service";
/// The unit, with `@PROGRAM@`, `@OPTIONS@` (of `cc load`) and `@NAMES@`. Packages install it with their own.
const TEMPLATE: &str = include_str!("mptcplab-cc.service.in");
const FOLDER: &str = "/etc/systemd/system";
/// Whatever the caller's umask is: root executes what the unit says.
const MODE: u32 = 0o644;

/// Load algorithms at every boot with the systemd unit mptcplab-cc.service.
///
/// A second call replaces the first one's unit. The algorithms of the unit are loaded as `cc load --pin` loads them.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    #[arg(
        value_name = "NAME",
        help = compiled::known_names_help(),
        required_unless_present = "remove",
        conflicts_with = "remove"
    )]
    names: Vec<String>,
    #[command(flatten)]
    options: LoadOptions,
    /// Print the unit and change nothing.
    #[arg(long, conflicts_with = "remove")]
    print: bool,
    /// Remove the unit. Loaded algorithms stay until `cc unload` or the next boot.
    #[arg(long, conflicts_with_all = ["params", "profile", "connections"])]
    remove: bool,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

pub(super) fn main(arguments: &Arguments) -> Result<u8, Failure> {
    let path = Path::new(FOLDER).join(UNIT);
    if arguments.remove {
        return remove(&path, arguments.json);
    }
    let chosen = algorithms(&arguments.names)?;
    let names: Vec<&str> = chosen.iter().map(|a| a.name()).collect();
    let plan = arguments.options.plan(&chosen)?;
    let options = arguments.options.arguments(&plan);
    let program = program()?;
    let unit = unit(&program, &names, &options)?;
    if arguments.print && arguments.json {
        return Err(
            Failure::new("--print prints the unit, which is no JSON: --json")
                .hint("leave one of them out"),
        );
    }
    if arguments.print {
        out!("{unit}");
        return Ok(0);
    }
    needs_systemd()?;
    require_protected(&program)?;
    let former = fs::read_to_string(&path).unwrap_or_default();
    install(&path, unit.as_bytes(), || {
        systemctl(&["daemon-reload"])?;
        systemctl(&["enable", UNIT])
    })?;
    warn_of_former(&former, &names, &path);
    if arguments.json {
        outln!("{}", json!({ "unit": path, "names": names }));
    } else {
        outln!(
            "wrote and enabled {}; to load the algorithms now: systemctl start {UNIT}",
            path.display()
        );
    }
    Ok(0)
}

/// The path of this program as it was called: a link that names the installed version stays one.
fn program() -> Result<PathBuf, Failure> {
    let real = env::current_exe()
        .map_err(|error| Failure::new(format!("cannot find the file of this program: {error}")))?;
    let called = env::args_os().next().map(PathBuf::from);
    let called = called
        .filter(|path| path.components().count() > 1)
        .and_then(|path| path::absolute(path).ok())
        .filter(|path| fs::canonicalize(path).is_ok_and(|found| found == real));
    Ok(called.unwrap_or(real))
}

/// Root runs the program at every boot, so nobody else may be able to replace it.
fn require_protected(program: &Path) -> Result<(), Failure> {
    trust::protected_file(program).map_err(|why| {
        Failure::new(format!(
            "root would run at every boot what others can replace: {why}"
        ))
        .hint(format!(
            "install -m 0755 {} /usr/local/sbin/mptcplab-kernel, and call that",
            program.display()
        ))
    })
}

/// The text of the unit. Names and options need no quoting.
fn unit(program: &Path, names: &[&str], options: &[String]) -> Result<String, Failure> {
    Ok(TEMPLATE
        .replace("@PROGRAM@", &quoted(program)?)
        .replace("@OPTIONS@", &options.join(" "))
        .replace("@NAMES@", &names.join(" ")))
}

/// Quotes a path for a command line in a unit and escapes specifiers and variables.
fn quoted(path: &Path) -> Result<String, Failure> {
    let text = path
        .to_str()
        .filter(|text| !text.contains(['\n', '\r']))
        .ok_or_else(|| {
            Failure::new(format!(
                "the path of this program cannot be used in a unit: {}",
                path.display()
            ))
            .hint("install it at a path without control characters")
        })?;
    let escaped = text
        .replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('%', "%%")
        .replace('$', "$$");
    Ok(format!("\"{escaped}\""))
}

fn needs_systemd() -> Result<(), Failure> {
    if Path::new("/run/systemd/system").is_dir() {
        return Ok(());
    }
    Err(Failure::new("this system does not run systemd")
        .hint(format!("make its init system run `{} cc load --pin NAME...` at boot, after the file system of {PIN_FOLDER} is mounted", command::name())))
}

/// Writes the unit and enables it. If that fails, the former unit is there again, or none.
fn install(
    path: &Path,
    text: &[u8],
    enable: impl FnOnce() -> Result<(), Failure>,
) -> Result<(), Failure> {
    not_a_link(path)?;
    let former = fs::read(path).ok();
    write(path, text)?;
    enable().inspect_err(|_| {
        let _ = match former {
            Some(former) => write(path, &former),
            None => fs::remove_file(path).map_err(|error| Failure::new(error.to_string())),
        };
    })
}

/// A link is what an operator made of the unit: to /dev/null by `systemctl mask`, so that nothing starts it.
fn not_a_link(path: &Path) -> Result<(), Failure> {
    let Ok(target) = fs::read_link(path) else {
        return Ok(());
    };
    if target == Path::new("/dev/null") {
        return Err(Failure::new(format!("{} is masked", path.display()))
            .hint(format!("if it may run again: systemctl unmask {UNIT}")));
    }
    Err(Failure::new(format!(
        "{} is a link to {}",
        path.display(),
        target.display()
    ))
    .hint("this command changes only a unit that it wrote itself: remove the link first"))
}

/// Writes the file completely or not at all.
fn write(path: &Path, text: &[u8]) -> Result<(), Failure> {
    let partial: PathBuf = path.with_extension("service.partial");
    // What is there under this name is not written to: it may be a link.
    let _ = fs::remove_file(&partial);
    let written = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(MODE)
        .open(&partial)
        .and_then(|mut file| {
            file.set_permissions(Permissions::from_mode(MODE))?;
            file.write_all(text)?;
            // After a loss of power an empty file would have the name.
            file.sync_all()
        })
        .and_then(|()| fs::rename(&partial, path));
    written.map_err(|error| {
        let _ = fs::remove_file(&partial);
        Failure::new(format!("cannot write {}: {error}", path.display())).hint("this needs root")
    })
}

/// The algorithms that a unit loads.
fn names_in(unit: &str) -> Vec<&str> {
    let start = unit
        .lines()
        .find_map(|line| line.strip_prefix("ExecStart="));
    let words = start.and_then(|line| line.split_once(" cc load "));
    let words = words.map_or("", |(_, words)| words).split_whitespace();
    words.filter(|word| !word.starts_with("--")).collect()
}

/// Names what the replaced unit leaves behind: algorithms that it loaded, and the operator's additions, which may name them.
fn warn_of_former(former: &str, names: &[&str], path: &Path) {
    let replaced = names_in(former);
    let dropped: Vec<&str> = replaced
        .iter()
        .copied()
        .filter(|name| !names.contains(name))
        .collect();
    let still: Vec<&str> = dropped
        .iter()
        .copied()
        .filter(|name| algorithm(name).is_ok_and(|found| is_registered(&kernel_name(found))))
        .collect();
    if !still.is_empty() {
        errln!(
            "warning: the former unit loaded {names}, which stays until the next boot or: {program} cc unload {names}",
            names = still.join(" "),
            program = command::name()
        );
    }
    let additions = path.with_extension("service.d");
    if !dropped.is_empty() && additions.is_dir() {
        errln!(
            "warning: {} still applies, and may name {}: systemctl edit {UNIT}",
            additions.display(),
            dropped.join(", ")
        );
    }
}

fn remove(path: &Path, as_json: bool) -> Result<u8, Failure> {
    if fs::symlink_metadata(path).is_err() {
        return Err(Failure::new(format!("there is no {}", path.display())));
    }
    needs_systemd()?;
    not_a_link(path)?;
    systemctl(&["disable", UNIT])?;
    fs::remove_file(path).map_err(|error| {
        Failure::new(format!("cannot remove {}: {error}", path.display())).hint("this needs root")
    })?;
    systemctl(&["daemon-reload"])?;
    if as_json {
        outln!("{}", json!({ "removed": path }));
    } else {
        outln!("removed {}", path.display());
    }
    Ok(0)
}

fn systemctl(words: &[&str]) -> Result<(), Failure> {
    let what = format!("systemctl {}", words.join(" "));
    let output = Command::new("systemctl")
        .args(words)
        .output()
        .map_err(|error| Failure::new(format!("{what}: {error}")))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(Failure::new(format!("{what}: {}", said.trim())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::sched::{CloneFlags, unshare};
    use nix::sys::stat::Mode;
    use std::os::unix::fs::symlink;
    use std::thread;

    #[test]
    fn the_unit_loads_exactly_what_was_named() {
        let unit = unit(
            Path::new("/opt/my tools/100%/mptcplab-kernel"),
            &["olia", "lia"],
            &[
                "--profile=linux-pre4".to_owned(),
                "--connections=7".to_owned(),
            ],
        )
        .unwrap();
        let start = unit
            .lines()
            .find(|line| line.starts_with("ExecStart="))
            .unwrap();
        assert_eq!(
            start,
            "ExecStart=\"/opt/my tools/100%%/mptcplab-kernel\" cc load --pin --profile=linux-pre4 --connections=7 olia lia"
        );
        assert!(
            unit.contains("ExecStop=+\"/opt/my tools/100%%/mptcplab-kernel\" cc unload olia lia\n")
        );
    }

    #[test]
    fn the_names_in_a_unit_are_those_that_it_loads() {
        let options = ["--profile=rfc".to_owned(), "--connections=7".to_owned()];
        let unit = unit(Path::new("/opt/x cc y/lab"), &["olia", "lia"], &options).unwrap();
        assert_eq!(names_in(&unit), ["olia", "lia"]);
        assert!(names_in("").is_empty());
    }

    #[test]
    fn no_placeholder_is_left_in_the_unit() {
        let unit = unit(Path::new("/opt/mptcplab-kernel"), &["olia"], &[]).unwrap();
        let settings = unit
            .lines()
            .filter(|line| !line.starts_with("SystemCallFilter="));
        assert!(!settings.collect::<String>().contains('@'), "{unit}");
    }

    /// With systemd's defaults, a service that cloud-init puts between `network-pre.target` and `sysinit.target` closed a
    /// circle, and systemd left that service out at boot.
    #[test]
    fn the_unit_does_not_wait_for_what_waits_for_the_network() {
        let unit = unit(Path::new("/opt/mptcplab-kernel"), &["olia"], &[]).unwrap();
        assert!(unit.contains("\nDefaultDependencies=no\n"));
        assert!(unit.contains("\nBefore=network-pre.target shutdown.target\n"));
        assert!(unit.contains("\nConflicts=shutdown.target\n"));
    }

    #[test]
    fn a_unit_that_cannot_be_enabled_leaves_the_former_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(UNIT);
        let refuse = || Err(Failure::new("masked"));
        assert!(install(&path, b"first", refuse).is_err());
        assert!(!path.exists());
        install(&path, b"second", || Ok(())).unwrap();
        assert!(install(&path, b"third", refuse).is_err());
        assert_eq!(fs::read_to_string(&path).unwrap(), "second");
    }

    #[test]
    fn a_masked_unit_stays_masked() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(UNIT);
        symlink("/dev/null", &path).unwrap();
        let error = install(&path, b"first", || Ok(())).unwrap_err().to_string();
        assert!(error.contains("is masked"), "{error}");
        assert!(error.contains("systemctl unmask"), "{error}");
        assert_eq!(fs::read_link(&path).unwrap(), Path::new("/dev/null"));
    }

    /// With the umask 0, everybody could write what root executes at boot.
    #[test]
    fn nobody_else_can_write_the_unit_whatever_the_umask() {
        for umask in [0o000, 0o077] {
            let mode = thread::spawn(move || {
                // The umask is of this thread alone from here on.
                unshare(CloneFlags::CLONE_FS).unwrap();
                nix::sys::stat::umask(Mode::from_bits_truncate(umask));
                let folder = tempfile::tempdir().unwrap();
                let path = folder.path().join(UNIT);
                write(&path, b"x").unwrap();
                fs::metadata(&path).unwrap().permissions().mode() & 0o7777
            });
            assert_eq!(mode.join().unwrap(), 0o644, "{umask:03o}");
        }
    }

    #[test]
    fn nothing_half_written_stays() {
        let folder = tempfile::tempdir().unwrap();
        let missing = folder.path().join("no-such-folder").join(UNIT);
        assert!(write(&missing, b"x").is_err());
        let there = folder.path().join(UNIT);
        write(&there, b"x").unwrap();
        let names: Vec<_> = fs::read_dir(folder.path())
            .unwrap()
            .map(|e| e.unwrap().file_name())
            .collect();
        assert_eq!(names, [UNIT]);
    }
}
