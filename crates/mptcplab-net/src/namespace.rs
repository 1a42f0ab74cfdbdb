//! A network namespace without a name in the file system: it exists as long as a descriptor, a socket or a device of it.
//!
//! Nothing has to be cleaned up, even after SIGKILL. A new thread enters it for each task, so that the caller's own thread
//! never changes its namespace by accident. Source: network_namespaces(7).

use std::fmt::Display;
use std::fs::{self, File};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::MetadataExt;
use std::panic::resume_unwind;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use netlink_packet_route::RouteNetlinkMessage;
use netlink_sys::protocols::NETLINK_ROUTE;
use nix::sched::{CloneFlags, setns, unshare};

use crate::netlink::Netlink;
use crate::{NetError, Result, diag, sockopt};

const THREAD_NAMESPACE: &str = "/proc/thread-self/ns/net";
const IPV6_SWITCHES: [&str; 2] = [
    "net.ipv6.conf.all.disable_ipv6",
    "net.ipv6.conf.default.disable_ipv6",
];

/// An anonymous network namespace. Clones share it; it is removed with its last clone, socket and device.
#[derive(Debug, Clone)]
pub struct Namespace {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    name: String,
    file: File,
    cookie: u64,
    inode: u64,
    route: Mutex<Netlink>,
    /// Opened when it is first needed, because not every kernel has it.
    diag: Mutex<Option<Netlink>>,
}

impl Namespace {
    /// Makes a namespace with `lo` up and IPv6 off. `name` is for messages and thread names only.
    ///
    /// # Errors
    ///
    /// [`NetError::Kernel`], in particular without CAP_SYS_ADMIN in the caller's user namespace.
    pub fn new(name: &str) -> Result<Self> {
        let what = format!("make the network namespace {name}");
        let namespace = in_thread(name, || {
            unshare(CloneFlags::CLONE_NEWNET).map_err(|errno| {
                NetError::kernel(&what, errno)
                    .with_hint("run as root, or enter a user namespace first")
            })?;
            Self::of_thread(name)
        })??;
        namespace.disable_ipv6()?;
        namespace.set_link_up(crate::LOOPBACK_IFINDEX, true)?;
        Ok(namespace)
    }

    /// The namespace of the calling thread, unchanged; for queries about the host.
    ///
    /// # Errors
    ///
    /// [`NetError::Kernel`] when /proc is missing or sockets are forbidden.
    pub fn current() -> Result<Self> {
        Self::of_thread("current")
    }

    fn of_thread(name: &str) -> Result<Self> {
        let file = File::open(THREAD_NAMESPACE)
            .map_err(|error| NetError::kernel(format!("open {THREAD_NAMESPACE}"), error))?;
        let inode = thread_inode()?;
        let route = Netlink::open(NETLINK_ROUTE, "links, addresses and routes")?;
        let cookie = sockopt::namespace_cookie(route.as_raw())?;
        let inner = Inner {
            name: name.into(),
            file,
            cookie,
            inode,
            route: Mutex::new(route),
            diag: Mutex::new(None),
        };
        Ok(Self {
            inner: Arc::new(inner),
        })
    }

    fn disable_ipv6(&self) -> Result<()> {
        for key in IPV6_SWITCHES {
            if path_of(key).exists() {
                self.sysctl(key, 1)?;
            }
        }
        Ok(())
    }

    /// The name given to [`Namespace::new`].
    #[must_use]
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// The kernel's cookie of this namespace (SO_NETNS_COOKIE), never reused; BPF programs see the same number.
    #[must_use]
    pub fn cookie(&self) -> u64 {
        self.inner.cookie
    }

    /// The inode of the namespace's file, as in the target of `/proc/PID/ns/net`.
    #[must_use]
    pub fn inode(&self) -> u64 {
        self.inner.inode
    }

    /// Moves the calling thread into this namespace, for good.
    ///
    /// # Errors
    ///
    /// [`NetError::Kernel`] without CAP_SYS_ADMIN over the namespace, unless the thread is in it already.
    pub fn enter(&self) -> Result<()> {
        // An unprivileged process may not even enter the namespace in which it already is, such as the host's.
        if thread_inode()? == self.inode() {
            return Ok(());
        }
        setns(&self.inner.file, CloneFlags::CLONE_NEWNET).map_err(|errno| {
            NetError::kernel(
                format!("enter the network namespace {}", self.name()),
                errno,
            )
        })
    }

    /// Runs `task` on a thread inside the namespace and waits for it. Sockets that it opens stay in the namespace.
    ///
    /// A panic of the task is resumed in the caller.
    ///
    /// # Errors
    ///
    /// [`NetError::Kernel`] when no thread can be started or it cannot enter; then the task has not run.
    pub fn run<R: Send>(&self, task: impl FnOnce() -> R + Send) -> Result<R> {
        in_thread(self.name(), || {
            self.enter()?;
            Ok(task())
        })?
    }

    /// Starts `task` on a named thread inside the namespace. The thread has entered when this returns.
    ///
    /// # Errors
    ///
    /// [`NetError::Kernel`] when no thread can be started or it cannot enter; then the task does not run.
    pub fn spawn<R: Send + 'static>(
        &self,
        thread_name: &str,
        task: impl FnOnce() -> R + Send + 'static,
    ) -> Result<JoinHandle<R>> {
        // A thread starts in the namespace of the thread that starts it.
        self.run(|| {
            thread::Builder::new()
                .name(thread_name.replace('\0', ""))
                .spawn(task)
        })?
        .map_err(|error| NetError::kernel(format!("start the thread {thread_name}"), error))
    }

    /// Writes a sysctl of this namespace, such as `net.ipv4.ip_forward`.
    ///
    /// `net.ipv4.tcp_congestion_control` is refused, because a kernel that refuses the algorithm leaks a reference to it (at
    /// least up to 7.2); use [`crate::socket::set_congestion`].
    ///
    /// # Errors
    ///
    /// [`NetError::Kernel`] naming key and value; [`NetError::Invalid`] for a key outside `net.` or the one above.
    pub fn sysctl(&self, key: &str, value: impl Display) -> Result<()> {
        check_key(key)?;
        if key == "net.ipv4.tcp_congestion_control" {
            let expected = "a refused default leaks the algorithm in the kernel; set TCP_CONGESTION per socket instead";
            return Err(NetError::invalid("sysctl", key, expected));
        }
        let value = value.to_string();
        self.run(|| fs::write(path_of(key), &value))?
            .map_err(|error| {
                NetError::kernel(
                    format!("set the sysctl {key}={value} in {}", self.name()),
                    error,
                )
            })
    }

    /// Reads a sysctl of this namespace, without the newline.
    ///
    /// # Errors
    ///
    /// [`NetError::Kernel`] naming the key; [`NetError::Invalid`] for a key outside `net.`.
    pub fn read_sysctl(&self, key: &str) -> Result<String> {
        check_key(key)?;
        let text = self
            .run(|| fs::read_to_string(path_of(key)))?
            .map_err(|error| {
                NetError::kernel(format!("read the sysctl {key} in {}", self.name()), error)
            })?;
        Ok(text.trim_end().into())
    }

    /// One request about links, addresses or routes of this namespace.
    pub(crate) fn route_request(
        &self,
        what: &str,
        message: RouteNetlinkMessage,
        flags: u16,
    ) -> Result<Vec<RouteNetlinkMessage>> {
        // A panic while the lock was held leaves at most unread answers, which have another sequence number.
        let mut route = self
            .inner
            .route
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        route.request(&format!("{what} in {}", self.name()), message, flags)
    }
}

impl Namespace {
    /// Queries this namespace's sockets. Only the first query needs a thread inside the namespace.
    pub(crate) fn diag_request<T>(&self, ask: impl FnOnce(&mut Netlink) -> Result<T>) -> Result<T> {
        let mut slot = self
            .inner
            .diag
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        match &mut *slot {
            Some(netlink) => ask(netlink),
            empty => ask(empty.insert(self.run(diag::open)??)),
        }
    }
}

impl AsFd for Namespace {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.inner.file.as_fd()
    }
}

/// The inode of the calling thread's namespace.
fn thread_inode() -> Result<u64> {
    let metadata = fs::metadata(THREAD_NAMESPACE);
    Ok(metadata
        .map_err(|error| NetError::kernel(format!("stat {THREAD_NAMESPACE}"), error))?
        .ino())
}

/// Runs `task` on a new thread, so that a change of the thread's namespace ends with it.
fn in_thread<R: Send>(name: &str, task: impl FnOnce() -> R + Send) -> Result<R> {
    thread::scope(|scope| {
        let handle = thread::Builder::new()
            .name(name.replace('\0', ""))
            .spawn_scoped(scope, task)
            .map_err(|error| NetError::kernel(format!("start a thread for {name}"), error))?;
        Ok(handle.join().unwrap_or_else(|panic| resume_unwind(panic)))
    })
}

fn check_key(key: &str) -> Result<()> {
    let is_plain = key
        .split('.')
        .all(|part| !part.is_empty() && !part.contains('/'));
    if key.starts_with("net.") && is_plain {
        return Ok(());
    }
    Err(NetError::invalid(
        "sysctl",
        key,
        "a network namespace has keys such as net.ipv4.ip_forward only",
    ))
}

fn path_of(key: &str) -> PathBuf {
    PathBuf::from("/proc/sys").join(key.replace('.', "/"))
}
