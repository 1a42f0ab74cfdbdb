//! Every network namespace of the machine that a process or a thread is in, that is mounted somewhere, or that a process
//! holds by a descriptor.
//!
//! Namespaces that exist only because a socket or a device of theirs does are not found, because the kernel lists them
//! nowhere: RTM_GETNSID names those alone that have a number in the present namespace, and a number opens none. From a
//! socket of another process one can be opened (SIOCGSKNS), but taking that socket (`pidfd_getfd` in kernel/pid.c) gives
//! it the network classes of this process (`__receive_sock` in net/core/sock.c), and nothing may be changed here.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::ErrorKind;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::thread;

use nix::sched::{CloneFlags, setns};

use crate::{NetError, Result};

/// What there is in one of them.
#[derive(Debug)]
pub struct InNamespace<R> {
    /// Which one it is: its first process, such as `process 7 (sleep)`, or else a path that leads to it.
    pub place: String,
    /// What the task returned, or why this process may not enter.
    pub result: Result<R>,
}

/// Runs `task` on a thread inside each of them. To enter all needs CAP_SYS_ADMIN and CAP_SYS_PTRACE.
///
/// # Errors
///
/// [`NetError::Kernel`] when `/proc` cannot be read.
pub fn in_every_namespace<R: Send>(task: impl Fn() -> R + Sync) -> Result<Vec<InNamespace<R>>> {
    let enter = |file: &File| {
        thread::scope(|scope| {
            scope
                .spawn(|| setns(file, CloneFlags::CLONE_NEWNET).map(|()| task()))
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    };
    let (found, closed) = found()?;
    let entered = found.into_values().map(|(place, file)| InNamespace {
        result: enter(&file).map_err(|errno| refused(&place, errno)),
        place,
    });
    Ok(entered.chain(closed).collect())
}

/// By inode: which it is, and a file with which a thread can enter it. Then those that cannot be opened.
type Found<R> = (BTreeMap<u64, (String, File)>, Vec<InNamespace<R>>);

fn found<R>() -> Result<Found<R>> {
    let processes =
        numbers(Path::new("/proc")).map_err(|error| NetError::kernel("read /proc", error))?;
    let mut search = Search {
        found: BTreeMap::new(),
        closed: Vec::new(),
    };
    for &process in &processes {
        search.of_task(process);
    }
    search.mounted(&processes);
    for &process in &processes {
        search.of_threads(process);
        search.of_descriptors(process);
    }
    Ok((search.found, search.closed))
}

/// The entries of a directory whose names are numbers, in order.
fn numbers(directory: &Path) -> std::io::Result<Vec<u32>> {
    let mut found: Vec<u32> = fs::read_dir(directory)?
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .collect();
    found.sort_unstable();
    Ok(found)
}

struct Search<R> {
    found: BTreeMap<u64, (String, File)>,
    closed: Vec<InNamespace<R>>,
}

impl<R> Search<R> {
    /// That of a process, or of a thread.
    fn of_task(&mut self, task: u32) {
        let name = fs::read_to_string(format!("/proc/{task}/comm")).unwrap_or_default();
        // Every user may give any name to a process, such as one of several lines.
        let name: String = name.trim_end().chars().map(shown).collect();
        let place = format!("process {task} ({name})");
        match self.open(&place, Path::new(&format!("/proc/{task}/ns/net"))) {
            Err(error) if error.kind() == ErrorKind::PermissionDenied => self.refuse(place, error),
            // The process has ended, or is ending.
            Err(_) | Ok(()) => {}
        }
    }

    fn of_threads(&mut self, process: u32) {
        let threads = numbers(Path::new(&format!("/proc/{process}/task"))).unwrap_or_default();
        for thread in threads.into_iter().filter(|&thread| thread != process) {
            if self.is_new(Path::new(&format!("/proc/{thread}/ns/net"))) {
                self.of_task(thread);
            }
        }
    }

    fn of_descriptors(&mut self, process: u32) {
        let folder = PathBuf::from(format!("/proc/{process}/fd"));
        for descriptor in numbers(&folder).unwrap_or_default() {
            let path = folder.join(descriptor.to_string());
            // Only a namespace may be opened: to open something else, such as a device, can have effects.
            if !self.is_new(&path) {
                continue;
            }
            let place = path.display().to_string();
            match self.open(&place, &path) {
                Err(error) if error.kind() != ErrorKind::NotFound => self.refuse(place, error),
                // It was closed.
                Err(_) | Ok(()) => {}
            }
        }
    }

    /// Those that are mounted, such as at `/run/netns/client`, in the mount namespace of this process and of all others.
    fn mounted(&mut self, processes: &[u32]) {
        let mut seen = BTreeSet::new();
        let others = processes.iter().map(|process| format!("/proc/{process}"));
        for process in std::iter::once("/proc/self".to_owned()).chain(others) {
            let namespace = fs::read_link(format!("{process}/ns/mnt"));
            if !namespace.is_ok_and(|namespace| seen.insert(namespace)) {
                continue;
            }
            let info = PathBuf::from(format!("{process}/mountinfo"));
            for path in mounts(&fs::read(&info).unwrap_or_default()) {
                let seen_here = match seen.len() {
                    1 => path.clone(),
                    _ => Path::new(&process)
                        .join("root")
                        .join(path.strip_prefix("/").unwrap_or(&path)),
                };
                let place = seen_here.display().to_string();
                if let Err(error) = self.open(&place, &seen_here) {
                    let is_still_there =
                        mounts(&fs::read(&info).unwrap_or_default()).contains(&path);
                    if is_still_there {
                        self.refuse(place, error);
                    }
                }
            }
        }
    }

    fn open(&mut self, place: &str, path: &Path) -> std::io::Result<()> {
        let file = File::open(path)?;
        let inode = file.metadata()?.ino();
        self.found
            .entry(inode)
            .or_insert_with(|| (place.to_owned(), file));
        Ok(())
    }

    fn refuse(&mut self, place: String, error: std::io::Error) {
        self.closed.push(InNamespace {
            result: Err(refused(&place, error)),
            place,
        });
    }

    /// Whether a link in /proc leads to a network namespace that was not found yet.
    fn is_new(&self, link: &Path) -> bool {
        let target = fs::read_link(link).unwrap_or_default();
        let inode = target.to_str().and_then(|text| {
            let number = text.strip_prefix("net:[")?.strip_suffix(']')?;
            number.parse::<u64>().ok()
        });
        inode.is_some_and(|inode| !self.found.contains_key(&inode))
    }
}

/// A character of a name, without those that begin another line or that a terminal obeys.
fn shown(c: char) -> char {
    if c.is_control() { '?' } else { c }
}

/// Where network namespaces are mounted: the fifth column of proc_pid_mountinfo(5); the fourth is the kernel's name of the
/// namespace.
fn mounts(info: &[u8]) -> Vec<PathBuf> {
    let place = |line: &[u8]| {
        let mut words = line.split(|&byte| byte == b' ').skip(3);
        let is_network = words.next()?.starts_with(b"net:[");
        is_network.then(|| words.next().map(unescaped))?
    };
    info.split(|&byte| byte == b'\n')
        .filter_map(place)
        .collect()
}

/// A path of proc_pid_mountinfo(5), in which blanks, tabs, line feeds and backslashes are octal numbers such as `\040`.
fn unescaped(word: &[u8]) -> PathBuf {
    let mut bytes = Vec::with_capacity(word.len());
    let mut rest = word;
    while let Some((&first, tail)) = rest.split_first() {
        let octal = tail
            .get(..3)
            .filter(|_| first == b'\\')
            .and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 8).ok());
        bytes.push(octal.unwrap_or(first));
        rest = match octal {
            Some(_) => &tail[3..],
            None => tail,
        };
    }
    PathBuf::from(OsString::from_vec(bytes))
}

fn refused(label: &str, error: impl Into<std::io::Error>) -> NetError {
    NetError::kernel(format!("enter the network namespace of {label}"), error)
        .with_hint("this needs root")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Namespace;
    use std::os::unix::ffi::OsStrExt;

    #[test]
    fn a_name_with_a_blank_is_the_name_of_the_file() {
        let info = b"31 24 0:4 net:[4026532200] /run/netns/two\\040words\\134x rw shared:7 - nsfs nsfs rw\n\
            32 24 0:22 / /run/netns rw,nosuid - tmpfs tmpfs rw\n\
            33 24 0:4 net:[4026532300] /run/netns/\xff rw - nsfs nsfs rw\n";
        let found = mounts(info);
        assert_eq!(found[0], Path::new("/run/netns/two words\\x"));
        assert_eq!(found[1].as_os_str().as_bytes(), b"/run/netns/\xff");
        assert_eq!(found.len(), 2);
    }

    /// Its default was in no list, and `cc unload` unloaded what it used.
    #[test]
    fn a_namespace_that_only_a_descriptor_holds_is_found() {
        let Ok(held) = Namespace::new("held") else {
            eprintln!("SKIPPED, this needs root");
            return;
        };
        let inode = || fs::metadata("/proc/thread-self/ns/net").map(|found| found.ino());
        let all = in_every_namespace(inode).unwrap();
        let of_it: Vec<&str> = all
            .iter()
            .filter(|one| matches!(one.result, Ok(Ok(found)) if found == held.inode()))
            .map(|one| one.place.as_str())
            .collect();
        let folder = format!("/proc/{}/fd/", std::process::id());
        assert_eq!(of_it.len(), 1, "{of_it:?}");
        assert!(of_it[0].starts_with(&folder), "{of_it:?}");
    }
}
