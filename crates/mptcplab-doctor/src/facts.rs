//! Collects facts about this machine; `checks` judges them.

use super::defaults::Defaults;
use super::probe::{self, ProbeResults};
use super::{bpffs, escape, programs};
use mptcplab_bpf::registered::{Holder, Registered, registered};
use mptcplab_bpf::system::{capabilities_in, in_user_namespace, parse_version, release, suffices};
use mptcplab_net::Namespace;
use mptcplab_net::mptcp::{self, PathManager};
use nix::net::if_::if_indextoname;
use nix::unistd::geteuid;
use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::Duration;

const BTF: &str = "/sys/kernel/btf/vmlinux";
/// BTF contains a type with this prefix, followed by the structure's name, for every structure that eBPF can implement.
const STRUCT_OPS: &[u8] = b"\0bpf_struct_ops_";
/// Time during which the idle time of the processors is measured.
const WATCHED: Duration = Duration::from_millis(200);

/// The sysctls that the checks use, read in the network namespace of the doctor.
const SYSCTLS: &[&str] = &[
    "kernel.apparmor_restrict_unprivileged_userns",
    "kernel.unprivileged_userns_clone",
    "net.ipv4.tcp_allowed_congestion_control",
    "net.ipv4.tcp_available_congestion_control",
    "net.ipv4.tcp_congestion_control",
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_wmem",
    "net.mptcp.available_path_managers",
    "net.mptcp.available_schedulers",
    "net.mptcp.enabled",
    "net.mptcp.path_manager",
    "net.mptcp.pm_type",
    "net.mptcp.scheduler",
    "user.max_net_namespaces",
    "user.max_user_namespaces",
];

/// An MPTCP endpoint of the host (`ip mptcp endpoint`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Endpoint {
    pub(super) address: std::net::IpAddr,
    pub(super) id: u8,
    /// Names of the flags, as `ip mptcp endpoint` prints them.
    pub(super) flags: Vec<&'static str>,
    pub(super) device: Option<String>,
}

/// The state of the kernel's path manager in this namespace.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct PathManagement {
    /// Subflows beyond the first that a connection may have.
    pub(super) subflows: u32,
    /// Addresses that a connection accepts from its peer.
    pub(super) add_addr_accepted: u32,
    pub(super) endpoints: Vec<Endpoint>,
}

/// A registered eBPF congestion control.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Loaded {
    pub(super) name: String,
    /// Sockets that use it in all network namespaces.
    pub(super) sockets: u64,
    /// The same with the namespaces whose default it is.
    pub(super) users: u64,
    /// Subflows that found no place in its table and ran uncoupled, since it was loaded.
    pub(super) uncoupled: u64,
    /// What keeps it registered, as text.
    pub(super) held: &'static str,
    /// Whether nothing holds it: a leftover on a kernel before 6.4.
    pub(super) leftover: bool,
}

/// The installed `iperf3`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Iperf3 {
    pub(super) version: String,
    /// Whether it can open MPTCP sockets by itself.
    pub(super) mptcp: bool,
}

/// Processors, and how busy they are.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Processors {
    pub(super) count: usize,
    /// Share of time in which they were idle while it was measured, 0 to 1.
    pub(super) idle: f64,
    /// Load average of the last minute.
    pub(super) load: f64,
}

/// Everything that the checks judge.
#[derive(Debug, Clone, Default)]
pub(super) struct Facts {
    /// `uname -r`.
    pub(super) release: String,
    pub(super) sysctls: BTreeMap<&'static str, String>,
    /// Names of the structures that eBPF can implement; `None` without BTF.
    pub(super) struct_ops: Option<Vec<String>>,
    pub(super) is_root: bool,
    /// Effective capabilities as a bit set.
    pub(super) capabilities: u64,
    /// Whether they are those of a user namespace, which do not count for eBPF.
    pub(super) in_user_namespace: bool,
    /// Whether a congestion control could be loaded and unloaded; `None` if that was not tried.
    pub(super) load: Option<Result<(), String>>,
    pub(super) probe: ProbeResults,
    /// The attempts to get out of a run's sandbox, or why none could be made.
    pub(super) escape: Option<Result<Vec<escape::Group>, String>>,
    pub(super) tun_node: bool,
    pub(super) bpffs: bpffs::State,
    /// `None` if the kernel does not answer.
    pub(super) paths: Option<PathManagement>,
    /// Registered eBPF congestion controls; `None` if this process may not list them.
    pub(super) loaded: Option<Vec<Loaded>>,
    pub(super) clang: Option<String>,
    pub(super) iperf3: Option<Iperf3>,
    pub(super) mptcpize: bool,
    pub(super) processors: Processors,
}

impl Facts {
    /// Collects the facts, which takes about a fifth of a second. If the privileges suffice, one algorithm is loaded and
    /// unloaded.
    pub(super) fn collect() -> Self {
        let capabilities = capabilities_in(&read("/proc/self/status").unwrap_or_default());
        let mut facts = Self {
            release: release(),
            sysctls: SYSCTLS
                .iter()
                .filter_map(|name| Some((*name, sysctl(name)?)))
                .collect(),
            struct_ops: fs::read(BTF).ok().map(|btf| struct_ops_in(&btf)),
            capabilities,
            in_user_namespace: in_user_namespace(),
            load: None,
            probe: probe::run().unwrap_or_default(),
            escape: Some(escape::attempt()),
            is_root: geteuid().is_root(),
            tun_node: Path::new("/dev/net/tun").exists(),
            bpffs: bpffs::state(),
            paths: path_management().ok(),
            loaded: loaded_algorithms(),
            clang: clang(),
            iperf3: iperf3(),
            mptcpize: programs::find("mptcpize").is_ok_and(|found| found.is_some()),
            processors: processors(),
        };
        if facts.may_load() {
            facts.load = Some(load());
        }
        facts
    }

    /// The value of a sysctl; `None` if the kernel does not have it.
    pub(super) fn sysctl(&self, name: &str) -> Option<&str> {
        self.sysctls.get(name).map(String::as_str)
    }

    /// The words of a sysctl that is a list.
    pub(super) fn words(&self, name: &str) -> Vec<&str> {
        self.sysctl(name).unwrap_or("").split_whitespace().collect()
    }

    /// The value of a sysctl that is a number.
    pub(super) fn number(&self, name: &str) -> Option<u64> {
        self.sysctl(name)?.parse().ok()
    }

    /// Major and minor version of the kernel.
    pub(super) fn version(&self) -> Option<(u32, u32)> {
        parse_version(&self.release)
    }

    /// Whether this process may load congestion control and tracing.
    pub(super) fn may_load(&self) -> bool {
        suffices(self.capabilities) && !self.in_user_namespace
    }

    /// Whether this process has capability number `bit`.
    pub(super) fn may(&self, bit: u32) -> bool {
        self.capabilities >> bit & 1 == 1
    }
}

/// Numbers of capabilities (`linux/capability.h`).
pub(super) mod capability {
    pub(crate) use mptcplab_bpf::system::{CAP_BPF as BPF, CAP_PERFMON as PERFMON};

    pub(crate) const NET_ADMIN: u32 = 12;
}

/// Loads the smallest algorithm under a unique name, and unloads it.
fn load() -> Result<(), String> {
    let reno = mptcplab_cc::find("reno").ok_or("this build has no reno")?;
    let options = mptcplab_bpf::Options::named(format!("mpl_doc_{}", std::process::id()));
    mptcplab_bpf::load(reno, &options)
        .map(drop)
        .map_err(|error| error.to_string())
}

/// Registered eBPF congestion controls; `None` if this process may not list them.
pub(super) fn loaded_algorithms() -> Option<Vec<Loaded>> {
    let found = registered().ok()?;
    let defaults = Defaults::read().unwrap_or_default();
    Some(found.iter().map(|one| loaded(one, &defaults)).collect())
}

fn loaded(found: &Registered, defaults: &Defaults) -> Loaded {
    let held = match found.holder {
        Holder::Pin(_) => "pinned",
        Holder::Processes(_) => "held by a process",
        Holder::Nobody => "held by nobody",
        Holder::Unknown => "held by an unseen process, or pinned in another mount namespace",
    };
    Loaded {
        name: found.name.clone(),
        users: found.sockets,
        sockets: defaults.sockets(&found.name, found.sockets),
        uncoupled: found.uncoupled.unwrap_or(0),
        held,
        leftover: found.holder == Holder::Nobody,
    }
}

/// Limits and endpoints of the network namespace of this process.
fn path_management() -> mptcplab_net::Result<PathManagement> {
    let manager = PathManager::new(&Namespace::current()?)?;
    let limits = manager.limits()?;
    Ok(PathManagement {
        subflows: limits.subflows,
        add_addr_accepted: limits.add_addr_accepted,
        endpoints: manager.endpoints()?.iter().map(endpoint).collect(),
    })
}

fn endpoint(found: &mptcp::Endpoint) -> Endpoint {
    let flags = [
        ("signal", found.signal),
        ("subflow", found.subflow),
        ("backup", found.backup),
        ("fullmesh", found.fullmesh),
    ];
    Endpoint {
        address: found.ip,
        id: found.id.unwrap_or(0),
        flags: flags
            .into_iter()
            .filter_map(|(name, set)| set.then_some(name))
            .collect(),
        device: found.ifindex.map(device),
    }
}

fn device(index: u32) -> String {
    if_indextoname(index).map_or_else(
        |_| format!("device {index}"),
        |name| name.to_string_lossy().into_owned(),
    )
}

fn read(path: &str) -> Option<String> {
    Some(fs::read_to_string(path).ok()?.trim().to_owned())
}

/// Reads a sysctl: `net.mptcp.enabled` is `/proc/sys/net/mptcp/enabled`.
fn sysctl(name: &str) -> Option<String> {
    let text = read(&format!("/proc/sys/{}", name.replace('.', "/")))?;
    Some(text.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// Finds the names of structures that eBPF can implement in BTF's table of strings. Some functions have the same prefix; they
/// do no harm, because only two names are ever looked up.
fn struct_ops_in(btf: &[u8]) -> Vec<String> {
    let mut names = Vec::new();
    let mut rest = btf;
    while let Some(at) = rest
        .windows(STRUCT_OPS.len())
        .position(|window| window == STRUCT_OPS)
    {
        rest = &rest[at + STRUCT_OPS.len()..];
        let end = rest
            .iter()
            .position(|byte| *byte == 0)
            .unwrap_or(rest.len());
        names.push(String::from_utf8_lossy(&rest[..end]).into_owned());
    }
    names
}

/// The path of the program that a shell would run.
fn in_path(program: &str) -> Option<PathBuf> {
    if program.contains('/') {
        return Some(PathBuf::from(program)).filter(|path| path.is_file());
    }
    env::split_paths(&env::var_os("PATH")?)
        .map(|directory| directory.join(program))
        .find(|path| path.is_file())
}

/// The output of a program, if it is installed and runs.
fn output(program: &str, argument: &str) -> Option<String> {
    let path = in_path(program)?;
    let output = Command::new(path).arg(argument).output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    Some(text + &String::from_utf8_lossy(&output.stderr))
}

fn clang() -> Option<String> {
    let name = env::var("MPTCPLAB_CLANG").unwrap_or_else(|_| "clang".into());
    let text = output(&name, "--version")?;
    Some(text.lines().next().unwrap_or_default().trim().to_owned())
}

fn iperf3() -> Option<Iperf3> {
    let path = programs::find("iperf3").ok().flatten()?;
    let path = path.to_str()?;
    let text = output(path, "--version")?;
    Some(Iperf3 {
        version: text
            .split_whitespace()
            .nth(1)
            .unwrap_or("of unknown version")
            .to_owned(),
        mptcp: output(path, "--help").is_some_and(|help| help.contains("--mptcp")),
    })
}

fn processors() -> Processors {
    let before = ticks();
    thread::sleep(WATCHED);
    let (idle, all) = ticks();
    let (idle, all) = (idle.saturating_sub(before.0), all.saturating_sub(before.1));
    Processors {
        count: thread::available_parallelism().map_or(1, usize::from),
        idle: if all == 0 {
            1.0
        } else {
            idle as f64 / all as f64
        },
        load: read("/proc/loadavg")
            .and_then(|text| text.split_whitespace().next()?.parse().ok())
            .unwrap_or(0.0),
    }
}

/// Idle time and total time of all processors since boot, in clock ticks.
fn ticks() -> (u64, u64) {
    let stat = read("/proc/stat").unwrap_or_default();
    let numbers: Vec<u64> = stat
        .lines()
        .next()
        .unwrap_or_default()
        .split_whitespace()
        .filter_map(|word| word.parse().ok())
        .collect();
    // user, nice, system, idle, iowait, ...; the last two are time of guests, which user and nice already include.
    let idle = numbers.get(3).copied().unwrap_or(0) + numbers.get(4).copied().unwrap_or(0);
    (idle, numbers.iter().take(8).sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn structures_for_ebpf_are_found_by_their_whole_name() {
        let btf = b"\0tcp_sock\0bpf_struct_ops_tcp_congestion_ops\0my_bpf_struct_ops_no\0bpf_struct_ops_x";
        assert_eq!(struct_ops_in(btf), ["tcp_congestion_ops", "x"]);
        assert!(struct_ops_in(b"").is_empty());
    }

    #[test]
    fn effective_capabilities_are_read_not_the_permitted_ones() {
        let status = "Name:\tx\nCapPrm:\tffffffffffffffff\nCapEff:\t0000008000001000\n";
        let facts = Facts {
            capabilities: capabilities_in(status),
            ..Facts::default()
        };
        assert!(facts.may(12) && facts.may(39));
        assert!(!facts.may(21) && !facts.may(38));
        assert_eq!(capabilities_in("CapEff:\tzz\n"), 0);
    }

    #[test]
    fn this_machine_can_be_looked_at() {
        let facts = Facts::collect();
        assert!(facts.version().is_some(), "{:?}", facts.release);
        assert!(facts.sysctl("net.ipv4.tcp_rmem").is_some());
        assert!(facts.processors.count > 0);
        assert!((0.0..=1.0).contains(&facts.processors.idle));
        assert_eq!(facts.words("net.ipv4.tcp_rmem").len(), 3);
    }

    #[test]
    fn a_program_is_found_as_a_shell_finds_it() {
        assert!(in_path("sh").is_some());
        assert!(in_path("/bin/sh").is_some());
        assert!(in_path("no-such-program-of-ours").is_none());
        assert!(in_path("/bin/no-such-program-of-ours").is_none());
    }
}
