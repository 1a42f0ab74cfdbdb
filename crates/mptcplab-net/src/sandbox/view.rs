//! The files that a shut-in process sees: a file system in memory with `/proc`, the TUN device and copies of the files that
//! it needs, which replaces everything else and is read-only.

use std::env;
use std::ffi::CString;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, OpenOptionsExt, symlink};
use std::path::{Path, PathBuf, absolute};

use nix::errno::Errno;
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sys::stat::{Mode, SFlag, makedev, mknod};
use nix::unistd::{Gid, Uid, chdir, chown, chroot, pivot_root};

use crate::{NetError, Result};

/// Where the new file system is made; every system has this directory.
const BASE: &str = "/tmp";
const TUN: &str = "dev/net/tun";
const TUN_NUMBERS: (u64, u64) = (10, 200);
/// What programs need besides `/usr`, as far as it exists: directories that are links into `/usr` on most systems, where
/// libraries are, and devices.
const PROGRAMS: [&str; 8] = [
    "usr",
    "bin",
    "lib",
    "lib32",
    "lib64",
    "etc/ld.so.cache",
    "dev/null",
    "dev/urandom",
];
const READ_ONLY: u64 = libc::MOUNT_ATTR_RDONLY | libc::MOUNT_ATTR_NOSUID;

/// A file to be copied: its absolute path, open.
type Source = (PathBuf, File);

/// Opens the files, while their original is still there.
pub(super) fn open(files: &[PathBuf]) -> Result<Vec<Source>> {
    let one = |path: &PathBuf| {
        let source = absolute(path).and_then(|full| Ok((full, File::open(path)?)));
        source.map_err(|error| failed(&format!("open {}", path.display()), error))
    };
    files.iter().map(one).collect()
}

/// Replaces all files that this process sees. The process must be in a mount namespace of its own. `user` is who it will
/// be; `None` if it has no privileges on the host.
pub(super) fn replace(sources: Vec<Source>, programs: bool, user: Option<u32>) -> Result<()> {
    let here = env::current_dir().unwrap_or_else(|_| PathBuf::from("/"));
    let none = None::<&str>;
    let private = MsFlags::MS_REC | MsFlags::MS_PRIVATE;
    mount(none, "/", none, private, none).map_err(|errno| failed("separate the mounts", errno))?;
    let old_umask = nix::sys::stat::umask(Mode::from_bits_truncate(0o022));
    memory(BASE, "mode=0755")?;
    process_directory(user)?;
    tun_device(user)?;
    if programs {
        program_directories()?;
    }
    for (path, file) in sources {
        copy(&path, file)?;
    }
    make_directory(&inside(&here))?;
    nix::sys::stat::umask(old_umask);
    // Only this one: `/proc` is where a process sets what concerns itself and its own networks.
    set_attributes(BASE, READ_ONLY, false)?;
    become_root()?;
    chdir(&here).map_err(|errno| failed(&format!("enter {}", here.display()), errno))
}

fn memory(place: &str, options: &str) -> Result<()> {
    let flags = MsFlags::MS_NOSUID;
    mount(Some("mptcplab"), place, Some("tmpfs"), flags, Some(options))
        .map_err(|errno| failed(&format!("mount a tmpfs on {place}"), errno))
}

/// With privileges a new one, in which others' processes are invisible. The kernel gives a process without privileges only
/// the one that is there.
fn process_directory(user: Option<u32>) -> Result<()> {
    let place = inside(Path::new("/proc"));
    make_directory(&place)?;
    if user.is_none() {
        return bind(Path::new("/proc"), &place);
    }
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
    mount(Some("proc"), &place, Some("proc"), flags, Some("hidepid=2"))
        .map_err(|errno| failed("mount /proc", errno))
}

/// With privileges a node of its own, as that of the host may be for root only.
fn tun_device(user: Option<u32>) -> Result<()> {
    let node = Path::new(BASE).join(TUN);
    make_directory(node.parent().unwrap_or(&node))?;
    if let Some(user) = user {
        let mode = Mode::S_IRUSR | Mode::S_IWUSR;
        let device = makedev(TUN_NUMBERS.0, TUN_NUMBERS.1);
        let made = mknod(&node, SFlag::S_IFCHR, mode, device);
        let (user, group) = (Uid::from_raw(user), Gid::from_raw(user));
        // A container may forbid it, and then has a node that it may use.
        if made
            .and_then(|()| chown(&node, Some(user), Some(group)))
            .is_ok()
        {
            return Ok(());
        }
        let _ = fs::remove_file(&node);
    }
    bind_file(&Path::new("/").join(TUN), &node)
}

fn program_directories() -> Result<()> {
    for name in PROGRAMS {
        let (there, here) = (Path::new("/").join(name), Path::new(BASE).join(name));
        let Ok(found) = fs::symlink_metadata(&there) else {
            continue;
        };
        if found.is_symlink() {
            fs::read_link(&there)
                .and_then(|target| symlink(target, &here))
                .map_err(|error| failed(&format!("link {name}"), error))?;
        } else if found.is_dir() {
            make_directory(&here)?;
            bind(&there, &here)?;
            set_attributes(&here, READ_ONLY | libc::MOUNT_ATTR_NODEV, true)?;
        } else if found.is_file() || found.file_type().is_char_device() {
            make_directory(here.parent().unwrap_or(&here))?;
            bind_file(&there, &here)?;
        }
    }
    // Where programs keep temporary files.
    let temporary = inside(Path::new("/tmp"));
    make_directory(&temporary)?;
    memory(&temporary.to_string_lossy(), "mode=1777,size=64m")
}

/// Copies a file to the same path in the new file system. Its mode becomes 0444: whoever can read the original gave it to
/// this process.
fn copy(path: &Path, mut from: File) -> Result<()> {
    let to = inside(path);
    let failed = |error: io::Error| failed(&format!("copy {}", path.display()), error);
    make_directory(to.parent().unwrap_or(&to))?;
    let file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o444)
        .open(&to);
    match file {
        // Two names of one file, or a file of /usr, which is there as it is.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        opened => opened
            .and_then(|mut file| io::copy(&mut from, &mut file))
            .map(drop)
            .map_err(failed),
    }
}

/// Makes the new file system the root, and forgets the old one.
fn become_root() -> Result<()> {
    let failed = |errno: Errno| failed("change the root directory", errno);
    chdir(BASE).map_err(failed)?;
    match pivot_root(".", ".") {
        Ok(()) => umount2(".", MntFlags::MNT_DETACH).map_err(failed),
        // The first file system of a machine, from which it booted, can only be covered. Nothing leads below: the covering
        // mount cannot be removed without privileges over this mount namespace.
        Err(Errno::EINVAL) => mount(Some("."), "/", None::<&str>, MsFlags::MS_MOVE, None::<&str>)
            .and_then(|()| chroot("."))
            .map_err(failed),
        Err(errno) => Err(failed(errno)),
    }
}

fn bind(from: &Path, to: &Path) -> Result<()> {
    let flags = MsFlags::MS_BIND | MsFlags::MS_REC;
    mount(Some(from), to, None::<&str>, flags, None::<&str>)
        .map_err(|errno| failed(&format!("show {}", from.display()), errno))
}

fn bind_file(from: &Path, to: &Path) -> Result<()> {
    File::create(to).map_err(|error| failed(&format!("create {}", to.display()), error))?;
    bind(from, to)
}

/// Sets attributes of a mount, of those below it as well if `all`.
fn set_attributes(place: impl AsRef<Path>, attributes: u64, all: bool) -> Result<()> {
    let place = place.as_ref();
    let what = format!("make {} read-only", place.display());
    let path =
        CString::new(place.as_os_str().as_encoded_bytes()).map_err(|error| failed(&what, error))?;
    let attributes = libc::mount_attr {
        attr_set: attributes,
        attr_clr: 0,
        propagation: 0,
        userns_fd: 0,
    };
    let flags = if all { libc::AT_RECURSIVE } else { 0 };
    // SAFETY: `path` is a C string, and the kernel reads as many bytes of `attributes` as are given.
    let result = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            libc::AT_FDCWD,
            path.as_ptr(),
            flags,
            &raw const attributes,
            size_of::<libc::mount_attr>(),
        )
    };
    Errno::result(result)
        .map(drop)
        .map_err(|errno| failed(&what, errno))
}

/// The place of an absolute path in the new file system.
fn inside(path: &Path) -> PathBuf {
    Path::new(BASE).join(path.strip_prefix("/").unwrap_or(path))
}

/// Makes a directory and those above it, which everybody can read.
fn make_directory(path: &Path) -> Result<()> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o755)
        .create(path)
        .map_err(|error| failed(&format!("create {}", path.display()), error))
}

fn failed(what: &str, error: impl Into<io::Error>) -> NetError {
    NetError::kernel(what, error)
}
