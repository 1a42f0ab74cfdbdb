//! What the first process of a Linux system does before anything else can run, as far as a job needs it.

use super::failed;
use crate::failure::Failure;
use nix::errno::Errno;
use nix::kmod::{ModuleInitFlags, finit_module};
use nix::mount::{MsFlags, mount};
use nix::sys::socket::{AddressFamily, SockFlag, SockType, socket};
use std::fs::{self, File};
use std::os::fd::AsRawFd as _;

/// (type, directory), in the order in which they are mounted.
const FILE_SYSTEMS: [(&str, &str); 9] = [
    ("proc", "/proc"),
    ("sysfs", "/sys"),
    ("devtmpfs", "/dev"),
    ("tmpfs", "/tmp"),
    ("tmpfs", "/run"),
    ("tmpfs", "/job"),
    ("tmpfs", "/out"),
    ("bpf", "/sys/fs/bpf"),
    ("tracefs", "/sys/kernel/tracing"),
];
/// Files with the modules to insert, named so that their order is that of their names.
const MODULES: &str = "/modules";

pub(super) fn mount_all() -> Result<(), Failure> {
    for (kind, directory) in FILE_SYSTEMS {
        let wrong =
            |error: std::io::Error| failed(&format!("mounting {directory} ({kind})"), &error);
        // A kernel file system provides the directory for another one; if it does not, mounting says so.
        if !matches!(kind, "bpf" | "tracefs") {
            fs::create_dir_all(directory).map_err(wrong)?;
        }
        let options = if kind == "tmpfs" {
            Some("size=75%")
        } else {
            None
        };
        match mount(Some(kind), directory, Some(kind), MsFlags::empty(), options) {
            // The kernel mounts it itself with CONFIG_DEVTMPFS_MOUNT.
            Err(Errno::EBUSY) if kind == "devtmpfs" => {}
            result => result.map_err(|errno| wrong(errno.into()))?,
        }
    }
    Ok(())
}

pub(super) fn insert_modules() -> Result<(), Failure> {
    let entries = match fs::read_dir(MODULES) {
        Ok(entries) => entries,
        // All are built in.
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(failed(MODULES, &error)),
    };
    let mut paths = entries
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| failed(MODULES, &error))?;
    paths.sort();
    for path in paths {
        let wrong = |error: std::io::Error| failed(&format!("module {}", path.display()), &error);
        let file = File::open(&path).map_err(wrong)?;
        match finit_module(&file, c"", ModuleInitFlags::empty()) {
            Err(Errno::EEXIST) => {}
            result => result.map_err(|errno| wrong(errno.into()))?,
        }
        // The memory of the machine is that of the jobs.
        fs::remove_file(&path).map_err(wrong)?;
    }
    Ok(())
}

/// Switches on the loopback device of the first network namespace.
pub(super) fn loopback_up() -> Result<(), Failure> {
    let wrong = |errno: Errno| Failure::new(format!("loopback device: {errno}"));
    let any = socket(
        AddressFamily::Inet,
        SockType::Datagram,
        SockFlag::SOCK_CLOEXEC,
        None,
    )
    .map_err(wrong)?;
    // SAFETY: all zeros are a valid value of this C structure.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(c"lo".to_bytes()) {
        *to = *from as libc::c_char;
    }
    request.ifr_ifru.ifru_flags = libc::IFF_UP as libc::c_short;
    // SAFETY: the kernel reads the structure during the call only.
    let result =
        unsafe { libc::ioctl(any.as_raw_fd(), libc::SIOCSIFFLAGS as _, &raw const request) };
    Errno::result(result).map(drop).map_err(wrong)
}

/// The part of the machine's memory at which TCP begins to save it, in sixteenths. Linux takes one of what is free: 28 of
/// 512 MiB, which one MPTCP connection can reach with what waits behind a gap and what its sender keeps. Its receive
/// window then no longer opens (`tcp_under_memory_pressure`), which computers with a usual memory do not see.
const TCP_MEMORY_SIXTEENTHS: u64 = 5;

pub(super) fn leave_memory_to_tcp() -> Result<(), Failure> {
    const SETTING: &str = "/proc/sys/net/ipv4/tcp_mem";
    let wrong = |error: std::io::Error| failed(SETTING, &error);
    let before = fs::read_to_string(SETTING).map_err(wrong)?;
    let pages = before
        .split_whitespace()
        .map(|pages| Ok((pages.parse::<u64>()? * TCP_MEMORY_SIXTEENTHS).to_string()))
        .collect::<Result<Vec<_>, std::num::ParseIntError>>()
        .map_err(|error| Failure::new(format!("{SETTING}: {before:?}: {error}")))?;
    fs::write(SETTING, pages.join(" ")).map_err(wrong)
}

/// RNDADDENTROPY's argument (linux/random.h, `struct rand_pool_info`).
#[repr(C)]
struct Entropy {
    bits: libc::c_int,
    bytes: libc::c_int,
    content: [u8; 32],
}

nix::ioctl_write_ptr_bad!(
    add_entropy,
    nix::request_code_write!(b'R', 0x03, 2 * size_of::<libc::c_int>()),
    Entropy
);
nix::ioctl_none!(reseed, b'R', 0x07);

/// Makes the kernel's random numbers follow from a seed: everything that they depend on otherwise is the same in every
/// machine that continues from one snapshot.
pub(super) fn seed(seed: [u8; 8]) -> Result<(), Failure> {
    const DEVICE: &str = "/dev/urandom";
    let device = File::options()
        .write(true)
        .open(DEVICE)
        .map_err(|error| failed(DEVICE, &error))?;
    let mut entropy = Entropy {
        bits: 256,
        bytes: 32,
        content: [0; 32],
    };
    entropy.content[..seed.len()].copy_from_slice(&seed);
    let wrong = |errno: Errno| Failure::new(format!("{DEVICE}: {errno}"));
    // SAFETY: the kernel reads the structure during the call only, and only as many bytes as it says.
    unsafe { add_entropy(device.as_raw_fd(), &raw const entropy) }.map_err(wrong)?;
    // SAFETY: has no argument.
    unsafe { reseed(device.as_raw_fd()) }.map_err(wrong)?;
    Ok(())
}
