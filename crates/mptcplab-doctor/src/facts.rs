//! What this machine says about itself. Reading is here, judging is in `checks`.

use super::probe::{self, Trial};
use mptcplab_bpf::registered::{Holder, Registered, registered};
use mptcplab_bpf::system::{capabilities_in, parse_version, release, suffices};
use mptcplab_net::Namespace;
use mptcplab_net::mptcp::{self, PathManager};
use nix::net::if_::if_indextoname;
use nix::sys::statfs::{BPF_FS_MAGIC, statfs};
use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::Duration;

const BTF: &str = "/sys/kernel/btf/vmlinux";
/// Where the BPF file system belongs.
pub(super) const BPFFS: &str = "/sys/fs/bpf";
/// A type of this name, with the structure's name behind it, is in BTF for every structure that eBPF may fill.
const STRUCT_OPS: &[u8] = b"\0bpf_struct_ops_";
/// Time over which the load of the processors is measured.
const WATCHED: Duration = Duration::from_millis(200);

/// Kernel settings that the checks look at, all in the network namespace of the doctor.
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

/// One address for MPTCP that the host was told of (`ip mptcp endpoint`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Endpoint {
    pub(super) address: std::net::IpAddr,
    pub(super) id: u8,
    /// Names as `ip mptcp endpoint` prints them.
    pub(super) flags: Vec<&'static str>,
    pub(super) device: Option<String>,
}

/// The kernel's path manager in this namespace.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct PathManagement {
    /// Subflows beyond the first that a connection may have.
    pub(super) subflows: u32,
    /// Addresses that a connection accepts from its peer.
    pub(super) add_addr_accepted: u32,
    pub(super) endpoints: Vec<Endpoint>,
}

/// A congestion control made of eBPF.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Loaded {
    /// Kernel-visible name.
    pub(super) name: String,
    /// Sockets that use it, of all network namespaces.
    pub(super) sockets: u64,
    /// What keeps it there, for people.
    pub(super) held: &'static str,
    /// Nothing keeps it there, and nothing takes it away: left over on a kernel before 6.4.
    pub(super) leftover: bool,
}

/// `iperf3` as installed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Iperf3 {
    pub(super) version: String,
    /// Whether it opens MPTCP sockets by itself.
    pub(super) mptcp: bool,
}

/// Processors, and how busy they are.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Processors {
    pub(super) count: usize,
    /// Part of the time that they were idle just now, 0 to 1.
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
    /// Structures that eBPF may fill, as BTF names them; `None` without BTF.
    pub(super) struct_ops: Option<Vec<String>>,
    /// Effective capabilities, a bit each.
    pub(super) capabilities: u64,
    /// Whether a congestion control could be loaded and taken away again; `None` if it was not tried.
    pub(super) load: Option<Result<(), String>>,
    pub(super) trial: Trial,
    pub(super) tun_node: bool,
    /// Whether a BPF file system, which `cc load --pin` needs, is at its place.
    pub(super) bpffs: bool,
    /// `None` if the kernel does not answer.
    pub(super) paths: Option<PathManagement>,
    /// Congestion controls made of eBPF; `None` where this process may not ask.
    pub(super) loaded: Option<Vec<Loaded>>,
    pub(super) clang: Option<String>,
    pub(super) iperf3: Option<Iperf3>,
    pub(super) mptcpize: bool,
    pub(super) processors: Processors,
}

impl Facts {
    /// Look at this machine, which takes about a fifth of a second. Where that is allowed one algorithm is loaded and
    /// taken away again.
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
            load: None,
            trial: probe::trial().unwrap_or_default(),
            tun_node: Path::new("/dev/net/tun").exists(),
            bpffs: statfs(BPFFS).is_ok_and(|found| found.filesystem_type() == BPF_FS_MAGIC),
            paths: path_management().ok(),
            loaded: registered()
                .ok()
                .map(|found| found.iter().map(loaded).collect()),
            clang: clang(),
            iperf3: iperf3(),
            mptcpize: in_path("mptcpize").is_some(),
            processors: processors(),
        };
        if facts.may_load() {
            facts.load = Some(load());
        }
        facts
    }

    /// A kernel setting; `None` if the kernel has none of that name.
    pub(super) fn sysctl(&self, name: &str) -> Option<&str> {
        self.sysctls.get(name).map(String::as_str)
    }

    /// The words of a kernel setting that is a list.
    pub(super) fn words(&self, name: &str) -> Vec<&str> {
        self.sysctl(name).unwrap_or("").split_whitespace().collect()
    }

    /// A whole-number setting.
    pub(super) fn number(&self, name: &str) -> Option<u64> {
        self.sysctl(name)?.parse().ok()
    }

    /// Major and minor version of the kernel.
    pub(super) fn version(&self) -> Option<(u32, u32)> {
        parse_version(&self.release)
    }

    /// Whether congestion control and tracing may be loaded.
    pub(super) fn may_load(&self) -> bool {
        suffices(self.capabilities)
    }

    /// Whether this process has capability number `bit`.
    pub(super) fn may(&self, bit: u32) -> bool {
        self.capabilities >> bit & 1 == 1
    }
}

/// Numbers of capabilities, of `linux/capability.h`.
pub(super) mod capability {
    pub(crate) use mptcplab_bpf::system::{CAP_BPF as BPF, CAP_PERFMON as PERFMON};

    pub(crate) const NET_ADMIN: u32 = 12;
}

/// Load the smallest algorithm under a name of this process's own, and take it away again.
fn load() -> Result<(), String> {
    let reno = mptcplab_cc::find("reno").ok_or("this build has no reno")?;
    let options = mptcplab_bpf::Options::named(format!("mpl_doc_{}", std::process::id()));
    mptcplab_bpf::load(reno, &options)
        .map(drop)
        .map_err(|error| error.to_string())
}

fn loaded(found: &Registered) -> Loaded {
    let held = match found.holder {
        Holder::Pin(_) => "pinned",
        Holder::Processes(_) => "held by a process",
        Holder::Nobody => "held by nobody",
        Holder::Unknown => "held by what cannot be seen",
    };
    Loaded {
        name: found.name.clone(),
        sockets: found.sockets,
        held,
        leftover: found.holder == Holder::Nobody,
    }
}

/// Limits and IPv4 endpoints of the namespace that this process is in.
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
    let device = |index| {
        if_indextoname(index).map_or_else(
            |_| format!("device {index}"),
            |name| name.to_string_lossy().into_owned(),
        )
    };
    Endpoint {
        address: found.ip.into(),
        id: found.id.unwrap_or(0),
        flags: flags
            .iter()
            .filter(|(_, set)| *set)
            .map(|(name, _)| *name)
            .collect(),
        device: found.ifindex.map(device),
    }
}

fn read(path: &str) -> Option<String> {
    Some(fs::read_to_string(path).ok()?.trim().to_owned())
}

/// `net.mptcp.enabled` lies in `/proc/sys/net/mptcp/enabled`.
fn sysctl(name: &str) -> Option<String> {
    let text = read(&format!("/proc/sys/{}", name.replace('.', "/")))?;
    Some(text.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// Names of structures in BTF's table of strings that eBPF may fill. Some more names begin so; they are functions
/// and do no harm, because only the two structures that matter are ever looked for.
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

/// The program of that name that a shell would run.
fn in_path(program: &str) -> Option<PathBuf> {
    if program.contains('/') {
        return Some(PathBuf::from(program)).filter(|path| path.is_file());
    }
    env::split_paths(&env::var_os("PATH")?)
        .map(|directory| directory.join(program))
        .find(|path| path.is_file())
}

/// What a program prints, if it is there and runs.
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
    let text = output("iperf3", "--version")?;
    Some(Iperf3 {
        version: text
            .split_whitespace()
            .nth(1)
            .unwrap_or("of unknown version")
            .to_owned(),
        mptcp: output("iperf3", "--help").is_some_and(|help| help.contains("--mptcp")),
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

/// Idle and all time of all processors since boot, in clock ticks.
fn ticks() -> (u64, u64) {
    let stat = read("/proc/stat").unwrap_or_default();
    let numbers: Vec<u64> = stat
        .lines()
        .next()
        .unwrap_or_default()
        .split_whitespace()
        .filter_map(|word| word.parse().ok())
        .collect();
    // user, nice, system, idle, iowait; time of guests is in user already, so the last two are left out.
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
