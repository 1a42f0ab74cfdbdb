//! Every network namespace of the machine that a process is in, or that has a name.
//!
//! Namespaces that exist only as an open file or a socket of a process are not found.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::thread;

use nix::sched::{CloneFlags, setns};

use crate::{NetError, Result};

/// What there is in one of them.
#[derive(Debug)]
pub struct InNamespace<R> {
    /// Which one it is: its first process or its name.
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
    let mut processes: Vec<u32> = fs::read_dir("/proc")
        .map_err(|error| NetError::kernel("read /proc", error))?
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .collect();
    processes.sort_unstable();
    let of_process = |process: u32| {
        let name = fs::read_to_string(format!("/proc/{process}/comm")).unwrap_or_default();
        let place = format!("process {process} ({})", name.trim_end());
        (place, format!("/proc/{process}/ns/net"))
    };
    let named = named().into_iter().map(|place| (place.clone(), place));
    let mut found = BTreeMap::new();
    let mut closed = Vec::new();
    for (place, path) in processes.into_iter().map(of_process).chain(named) {
        match File::open(path).and_then(|file| Ok((file.metadata()?.ino(), file))) {
            Ok((inode, file)) => {
                found.entry(inode).or_insert((place, file));
            }
            Err(error) if error.kind() == ErrorKind::PermissionDenied => closed.push(InNamespace {
                result: Err(refused(&place, error)),
                place,
            }),
            // The process has ended, or is ending.
            Err(_) => {}
        }
    }
    Ok((found, closed))
}

/// Where network namespaces are mounted, such as `/run/netns/client`: the fifth column of proc_pid_mountinfo(5); the fourth
/// is the kernel's name of the namespace.
fn named() -> Vec<String> {
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let place = |line: &str| {
        let mut words = line.split(' ').skip(3);
        let is_network = words.next()?.starts_with("net:[");
        is_network.then(|| words.next().map(str::to_owned))?
    };
    mounts.lines().filter_map(place).collect()
}

fn refused(label: &str, error: impl Into<std::io::Error>) -> NetError {
    NetError::kernel(format!("enter the network namespace of {label}"), error)
        .with_hint("this needs root")
}
