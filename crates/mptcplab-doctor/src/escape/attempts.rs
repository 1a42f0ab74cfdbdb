//! The attempts. Each is a system call that fails for want of permission in the sandbox, and otherwise succeeds without an
//! effect or fails because its arguments make no sense.

use super::Group;
use std::ffi::{CStr, CString};
use std::fs;
use std::net::{Ipv4Addr, SocketAddrV4, TcpStream};
use std::ptr::null;
use std::time::Duration;

/// What there is outside.
#[derive(Debug, Clone, Copy)]
pub(super) struct Outside {
    pub(super) process: i32,
    pub(super) port: u16,
}

/// What a call returned: an error number, or `Ok` if it succeeded.
type Outcome = Result<(), i32>;
type Attempt = (&'static str, Outcome);

/// How a call is refused: it may not be made, does not exist here, or there is nothing that it could reach.
const REFUSALS: [i32; 4] = [libc::EPERM, libc::EACCES, libc::ENOSYS, libc::EROFS];
const NOTHING_THERE: [i32; 3] = [libc::ENOENT, libc::ESRCH, libc::ENETUNREACH];
const BPF_MAP_CREATE: i64 = 0;
const KEYCTL_GET_KEYRING_ID: i64 = 0;
const SYSLOG_READ_ALL: i64 = 3;
const OPEN_TREE_CLONE: i64 = 1;
/// Of `linux/capability.h`.
const CAP_SYS_MODULE: libc::c_ulong = 16;
const CONNECT: Duration = Duration::from_millis(500);

/// Makes all attempts, in this order.
pub(super) fn all(outside: Outside) -> Vec<Group> {
    vec![
        group("files of the host", files(outside.process)),
        group("settings of the kernel", settings()),
        group("kernel modules", modules()),
        group("mounts", mounts()),
        group("other processes", processes(outside.process)),
        group(
            "eBPF and tracing",
            [
                ("bpf", call(libc::SYS_bpf, [BPF_MAP_CREATE, 0, 0, 0])),
                ("perf_event_open", call(libc::SYS_perf_event_open, [0; 4])),
                ("userfaultfd", call(libc::SYS_userfaultfd, [0; 4])),
                ("io_uring_setup", call(libc::SYS_io_uring_setup, [0; 4])),
            ],
        ),
        group(
            "keys of the kernel",
            [
                (
                    "keyctl",
                    call(libc::SYS_keyctl, [KEYCTL_GET_KEYRING_ID, -3, 0, 0]),
                ),
                ("add_key", call(libc::SYS_add_key, [0; 4])),
                ("request_key", call(libc::SYS_request_key, [0; 4])),
            ],
        ),
        group("devices", devices()),
        group("more privileges", privileges()),
        group("other namespaces", namespaces(outside.process)),
        group("the host's network", [("connect", connect(outside.port))]),
        group(
            "the machine",
            [
                ("reboot", call(libc::SYS_reboot, [0; 4])),
                ("settimeofday", call(libc::SYS_settimeofday, [0; 4])),
                ("swapoff", path_call(libc::SYS_swapoff, c"/proc", 0)),
            ],
        ),
    ]
}

fn group(name: &str, attempts: impl IntoIterator<Item = Attempt>) -> Group {
    let mut group = Group {
        name: name.to_owned(),
        attempts: 0,
        reached: Vec::new(),
    };
    for (what, outcome) in attempts {
        group.attempts += 1;
        let is_refused =
            outcome.is_err_and(|errno| REFUSALS.contains(&errno) || NOTHING_THERE.contains(&errno));
        if !is_refused {
            group.reached.push(what.to_owned());
        }
    }
    group
}

fn files(process: i32) -> [Attempt; 5] {
    let through_proc = format!("/proc/{process}/root/etc/passwd");
    [
        ("read /etc/passwd", open("/etc/passwd", libc::O_RDONLY)),
        ("write /etc/passwd", open("/etc/passwd", libc::O_WRONLY)),
        ("/proc/PID/root", open(&through_proc, libc::O_RDONLY)),
        (
            "make a file in /",
            open("/", libc::O_TMPFILE | libc::O_WRONLY),
        ),
        (
            "open_by_handle_at",
            call(libc::SYS_open_by_handle_at, [-1, 0, 0, 0]),
        ),
    ]
}

fn settings() -> [Attempt; 5] {
    [
        "/proc/sys/kernel/core_pattern",
        "/proc/sys/vm/drop_caches",
        "/proc/sys/fs/protected_symlinks",
        "/proc/sysrq-trigger",
        "/sys/kernel/mm/transparent_hugepage/enabled",
    ]
    .map(|path| (path, open(path, libc::O_WRONLY)))
}

fn modules() -> [Attempt; 4] {
    [
        ("init_module", call(libc::SYS_init_module, [0; 4])),
        ("finit_module", call(libc::SYS_finit_module, [-1, 0, 0, 0])),
        (
            "delete_module",
            absent(path_call(
                libc::SYS_delete_module,
                c"no-such-module-of-ours",
                0,
            )),
        ),
        ("kexec_load", call(libc::SYS_kexec_load, [0, -1, 0, 0])),
    ]
}

/// A call that found nothing under a name got past the question whether it may look.
fn absent(outcome: Outcome) -> Outcome {
    outcome.map_err(|errno| {
        if errno == libc::ENOENT {
            libc::EINVAL
        } else {
            errno
        }
    })
}

fn mounts() -> [Attempt; 7] {
    let root = c"/".as_ptr() as i64;
    let kind = c"no-such-type".as_ptr() as i64;
    [
        ("mount", call(libc::SYS_mount, [0, root, kind, 0])),
        (
            "umount2",
            path_call(libc::SYS_umount2, c"/proc/self/status", 0),
        ),
        ("pivot_root", call(libc::SYS_pivot_root, [root, root, 0, 0])),
        ("chroot", path_call(libc::SYS_chroot, c"/", 0)),
        ("fsopen", path_call(libc::SYS_fsopen, c"tmpfs", 0)),
        (
            "open_tree",
            call(
                libc::SYS_open_tree,
                [i64::from(libc::AT_FDCWD), root, OPEN_TREE_CLONE, 0],
            ),
        ),
        (
            "move_mount",
            call(libc::SYS_move_mount, [-1, root, -1, root]),
        ),
    ]
}

fn processes(process: i32) -> [Attempt; 7] {
    let number = i64::from(process);
    let seize = i64::from(libc::PTRACE_SEIZE);
    [
        ("ptrace", call(libc::SYS_ptrace, [seize, number, 0, 0])),
        (
            "process_vm_readv",
            call(libc::SYS_process_vm_readv, [number, 0, 0, 0]),
        ),
        (
            "/proc/PID/mem",
            open(&format!("/proc/{process}/mem"), libc::O_RDONLY),
        ),
        (
            "/proc/PID/environ",
            open(&format!("/proc/{process}/environ"), libc::O_RDONLY),
        ),
        (
            "sched_setscheduler",
            call(libc::SYS_sched_setscheduler, [number, 0, zero(), 0]),
        ),
        ("kill", call(libc::SYS_kill, [number, 0, 0, 0])),
        ("pidfd_open", call(libc::SYS_pidfd_open, [number, 0, 0, 0])),
    ]
}

fn devices() -> [Attempt; 4] {
    let place = c"/tmp/no-such-device-of-ours".as_ptr() as i64;
    let block = i64::from(libc::S_IFMT);
    [
        ("/dev/mem", open("/dev/mem", libc::O_RDONLY)),
        ("/dev/kmsg", open("/dev/kmsg", libc::O_WRONLY)),
        (
            "mknod",
            call(
                libc::SYS_mknodat,
                [i64::from(libc::AT_FDCWD), place, block, 0],
            ),
        ),
        (
            "syslog",
            call(libc::SYS_syslog, [SYSLOG_READ_ALL, zero(), 0, 0]),
        ),
    ]
}

fn namespaces(process: i32) -> [Attempt; 6] {
    let flag = |flag: libc::c_int| [i64::from(flag), 0, 0, 0];
    [
        ("clone(user)", clone_user()),
        (
            "unshare(user)",
            call(libc::SYS_unshare, flag(libc::CLONE_NEWUSER)),
        ),
        (
            "unshare(mount)",
            call(libc::SYS_unshare, flag(libc::CLONE_NEWNS)),
        ),
        (
            "unshare(process)",
            call(libc::SYS_unshare, flag(libc::CLONE_NEWPID)),
        ),
        ("clone3", call(libc::SYS_clone3, [0; 4])),
        (
            "/proc/PID/ns/net",
            open(&format!("/proc/{process}/ns/net"), libc::O_RDONLY),
        ),
    ]
}

fn privileges() -> [Attempt; 5] {
    let held = |what: bool| if what { Ok(()) } else { Err(libc::EPERM) };
    // SAFETY: these options take a number and return one.
    let (bounding, no_new) = unsafe {
        (
            libc::prctl(libc::PR_CAPBSET_READ, CAP_SYS_MODULE),
            libc::prctl(libc::PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0),
        )
    };
    [
        ("capset", call(libc::SYS_capset, [0; 4])),
        ("setresuid", call(libc::SYS_setresuid, [-1, -1, -1, 0])),
        ("the bounding set", held(bounding != 0)),
        ("programs with more privileges", held(no_new != 1)),
        ("user 0 of the host", held(is_root_outside())),
    ]
}

/// Whether user 0 of this namespace is user 0 of the one around it.
fn is_root_outside() -> bool {
    let map = fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
    map.split_whitespace().nth(1) == Some("0")
}

fn connect(port: u16) -> Outcome {
    let address = SocketAddrV4::new(Ipv4Addr::LOCALHOST, port);
    TcpStream::connect_timeout(&address.into(), CONNECT)
        .map(drop)
        .map_err(|error| error.raw_os_error().unwrap_or(libc::ETIMEDOUT))
}

fn open(path: &str, flags: libc::c_int) -> Outcome {
    let Ok(path) = CString::new(path) else {
        return Err(libc::EINVAL);
    };
    // SAFETY: `path` is a C string; the descriptor is closed again.
    let file = unsafe { libc::open(path.as_ptr(), flags | libc::O_CLOEXEC, 0o600) };
    if file < 0 {
        return Err(nix::errno::Errno::last_raw());
    }
    // SAFETY: it was opened above and is used nowhere else.
    unsafe { libc::close(file) };
    Ok(())
}

fn path_call(number: libc::c_long, path: &CStr, flags: i64) -> Outcome {
    call(number, [path.as_ptr() as i64, flags, 0, 0])
}

fn call(number: libc::c_long, [one, two, three, four]: [i64; 4]) -> Outcome {
    // SAFETY: every pointer among the arguments is null, or to a C string or a zero that lives long enough; what a
    // call returns in case of success is of no use and vanishes with the process.
    let result = unsafe { libc::syscall(number, one, two, three, four, 0, 0) };
    if result < 0 {
        Err(nix::errno::Errno::last_raw())
    } else {
        Ok(())
    }
}

/// The address of some zeros: an empty structure.
fn zero() -> i64 {
    static ZERO: [u64; 8] = [0; 8];
    (&raw const ZERO) as i64
}

fn clone_user() -> Outcome {
    let flags = i64::from(libc::CLONE_NEWUSER | libc::SIGCHLD);
    // SAFETY: without a stack it acts as fork(2), and the child ends at once.
    match unsafe { libc::syscall(libc::SYS_clone, flags, null::<u8>(), 0, 0, 0) } {
        0 => unsafe { libc::_exit(0) },
        child if child > 0 => Ok(()),
        _ => Err(nix::errno::Errno::last_raw()),
    }
}
