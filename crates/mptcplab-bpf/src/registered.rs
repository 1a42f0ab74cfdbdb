//! Lists the eBPF congestion controls that are registered in the running kernel, and what keeps each registered.

use crate::error::LoadError;
use crate::libbpf;
use crate::loader::{Loaded, is_registered};
use crate::setting::{CONFIG, Setting, content};
use libbpf_rs::btf::types::{MemberAttr, Struct};
use libbpf_rs::btf::{Btf, HasSize};
use libbpf_rs::query::{
    LinkInfoIter, LinkTypeInfo, MapInfoIter, ProgInfoIter, ProgInfoQueryOptions,
};
use libbpf_rs::{Link, MapCore, MapHandle, MapType};
use std::collections::HashMap;
use std::fs;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

/// The directory in which `cc load` pins algorithms.
pub const PIN_FOLDER: &str = "/sys/fs/bpf/mptcplab";
/// The directory in which it pins how each of them was loaded, under the same name: whoever may load can read that there.
/// To find it through the pin of the algorithm needs CAP_SYS_ADMIN, which the unit of `cc persist` does not have.
pub const SETTING_FOLDER: &str = "/sys/fs/bpf/mptcplab-settings";
/// Prefix of the kernel-visible names of algorithms that `cc load` loads.
pub const OPERATOR_PREFIX: &str = "lab_";
/// Prefix of the kernel-visible names of algorithms that belong to one run of a scenario.
pub const RUN_PREFIX: &str = "mpl_";

/// The kernel-visible name under which `cc load` loads an algorithm, such as `lab_semicoupled`; the kernel allows at most 15
/// characters.
pub fn operator_name(algorithm: &str) -> String {
    let name = format!("{OPERATOR_PREFIX}{}", algorithm.replace('-', "_"));
    name.chars().take(15).collect()
}

/// An eBPF congestion control.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Registered {
    pub name: String,
    /// Whether it was built by this project.
    pub ours: bool,
    /// Sockets that use it in all network namespaces, as the kernel estimates.
    pub sockets: u64,
    /// Subflows that found no place in its table and ran uncoupled, since it was loaded; `None` if that cannot be read.
    pub uncoupled: Option<u64>,
    /// What keeps it registered.
    pub holder: Holder,
    /// How it was loaded, if this project built it and the configuration can be read.
    pub setting: Option<Setting>,
    map: u32,
}

/// What a file below [`PIN_FOLDER`] does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Pin {
    /// It keeps an algorithm registered, which was loaded like this, if that is known.
    Registered(Option<Setting>),
    /// Nothing: its link was detached, as `bpftool link detach` does.
    Detached,
}

/// The pin under a kernel-visible name. This needs no more privileges than loading.
pub fn pin_of(name: &str) -> Option<Pin> {
    // It complains about a file that is not there.
    libbpf::keep_log();
    let link = Link::open(Path::new(PIN_FOLDER).join(name)).ok()?;
    let info = libbpf_rs::query::LinkInfo::from_fd(link.as_fd()).ok()?;
    match info.info {
        LinkTypeInfo::StructOps(found) if found.map_id == 0 => Some(Pin::Detached),
        LinkTypeInfo::StructOps(_) => Some(Pin::Registered(pinned_setting(name))),
        _ => None,
    }
}

fn pinned_setting(name: &str) -> Option<Setting> {
    let map = MapHandle::from_pinned_path(Path::new(SETTING_FOLDER).join(name)).ok()?;
    Setting::from_bytes(&content(&map)?)
}

/// The names of the pins that do nothing.
pub fn detached_pins() -> Vec<String> {
    let entries = fs::read_dir(PIN_FOLDER).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let mut detached: Vec<String> = names
        .filter(|name| pin_of(name) == Some(Pin::Detached))
        .collect();
    detached.sort_unstable();
    detached
}

/// Pins a loaded algorithm under its name, with its setting. After an error neither is pinned.
///
/// # Errors
/// [`LoadError::Kernel`], also where the kernel has no links to pin (before 6.4; use [`Loaded::leave_registered`] there).
pub fn pin(loaded: &mut Loaded) -> Result<(), LoadError> {
    let name = loaded.kernel_name().to_owned();
    let setting = Path::new(SETTING_FOLDER).join(&name);
    // That of a pin that was removed by hand.
    let _ = fs::remove_file(&setting);
    loaded
        .pin(&Path::new(PIN_FOLDER).join(name), &setting)
        .inspect_err(|_| drop(fs::remove_file(&setting)))
}

/// Removes the pin under a name, and that of its setting.
///
/// # Errors
/// The first of them cannot be removed.
pub fn remove_pin(name: &str) -> std::io::Result<()> {
    fs::remove_file(Path::new(PIN_FOLDER).join(name))?;
    let _ = fs::remove_file(Path::new(SETTING_FOLDER).join(name));
    Ok(())
}

/// What keeps a congestion control registered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Holder {
    /// A file on a bpffs.
    Pin(PathBuf),
    /// Processes: (process id, command line).
    Processes(Vec<(u32, String)>),
    /// Nothing: it stays until it is unregistered. This happens on kernels before 6.4.
    Nobody,
    /// A link whose owner was not found: it is pinned elsewhere, or held by a process that this one may not see.
    Unknown,
}

/// All eBPF congestion controls that are registered now, sorted by name.
///
/// # Errors
/// [`LoadError`]: reading them needs the same privileges as loading.
pub fn registered() -> Result<Vec<Registered>, LoadError> {
    require_listable()?;
    libbpf::with_log("the list of congestion controls", || {
        let offsets = Offsets::read()?;
        let links = links();
        let maps_of = maps_of_programs();
        let pins = pins();
        let holders = holders();
        let mut found: Vec<Registered> = MapInfoIter::default()
            .filter(|map| {
                map.ty == MapType::StructOps
                    && Some(map.btf_vmlinux_value_type_id) == offsets.value_type
            })
            .filter_map(|map| {
                // The map may have been removed in the meantime.
                let value = content(&MapHandle::from_map_id(map.id).ok()?)?;
                let state = u32_at(&value, offsets.state)?;
                let link = links.get(&map.id);
                let in_use = state == STATE_IN_USE || (state == STATE_READY && link.is_some());
                in_use.then_some(())?;
                let holder = match link {
                    None => Holder::Nobody,
                    Some(id) => pins
                        .get(id)
                        .map(|path| Holder::Pin(path.clone()))
                        .or_else(|| holders.get(id).map(|who| Holder::Processes(who.clone())))
                        .unwrap_or(Holder::Unknown),
                };
                let ours = map.name == "cc_ops";
                let program = u32_at(&value, offsets.ssthresh)?;
                let init = u32_at(&value, offsets.init)?;
                Some(Registered {
                    name: text_at(&value, offsets.name)?,
                    ours,
                    setting: maps_of
                        .get(&program)
                        .filter(|_| ours)
                        .and_then(|maps| setting(maps)),
                    uncoupled: maps_of
                        .get(&init)
                        .filter(|_| ours)
                        .and_then(|maps| uncoupled(maps)),
                    // The registration itself counts as one.
                    sockets: u64::from(u32_at(&value, offsets.users)?.saturating_sub(1)),
                    holder,
                    map: map.id,
                })
            })
            .collect();
        found.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(found)
    })
}

/// The iterators below end where the kernel refuses to list anything, as if there were nothing.
fn require_listable() -> Result<(), LoadError> {
    let mut first = 0;
    // SAFETY: the kernel writes one number, which is what the pointer is to.
    let result = unsafe { libbpf_sys::bpf_map_get_next_id(0, &raw mut first) };
    match result {
        error if error == -libc::EPERM => Err(LoadError::ListPrivilege),
        _ => Ok(()),
    }
}

impl Registered {
    /// Unregisters it; sockets that use it keep it until they close. Returns whether the kernel has unregistered it: if
    /// something else holds its link as well, it has not.
    ///
    /// # Errors
    /// [`LoadError::Kernel`], also for one that a process holds: it is unregistered when that process ends.
    pub fn unregister(&self) -> Result<bool, LoadError> {
        let what = format!("the removal of {}", self.name);
        libbpf::with_log(&what, || match &self.holder {
            Holder::Pin(path) => {
                fs::remove_file(path)?;
                let _ = fs::remove_file(Path::new(SETTING_FOLDER).join(&self.name));
                Ok(is_gone_soon(&self.name))
            }
            Holder::Nobody => {
                let map = MapHandle::from_map_id(self.map)?;
                match map.delete(&0u32.to_ne_bytes()) {
                    // Sockets still use it, but new ones cannot.
                    Err(error) if is_in_progress(&error) => Ok(true),
                    result => result.map(|()| true),
                }
            }
            Holder::Processes(_) | Holder::Unknown => {
                Err(std::io::Error::other("another process holds it").into())
            }
        })
    }
}

/// The kernel frees a link some time after its pin was removed; until then nothing can be loaded under the name.
fn is_gone_soon(name: &str) -> bool {
    let end = Instant::now() + UNREGISTERED_WITHIN;
    while is_registered(name) {
        if Instant::now() >= end {
            return false;
        }
        thread::sleep(Duration::from_millis(5));
    }
    true
}

const UNREGISTERED_WITHIN: Duration = Duration::from_secs(2);

/// `enum bpf_struct_ops_state`.
const STATE_IN_USE: u32 = 1;
/// Registered or only prepared, which depends on its link.
const STATE_READY: u32 = 3;

fn is_in_progress(error: &libbpf_rs::Error) -> bool {
    use std::error::Error as _;
    let io = |e: &(dyn std::error::Error + 'static)| {
        e.downcast_ref::<std::io::Error>()
            .and_then(std::io::Error::raw_os_error)
    };
    io(error).or_else(|| error.source().and_then(io)) == Some(libc::EINPROGRESS)
}

/// Offsets in bytes of the members of a registered `tcp_congestion_ops` in its map's value.
struct Offsets {
    value_type: Option<u32>,
    users: usize,
    state: usize,
    name: usize,
    /// The member that contains the id of the program for `ssthresh`, which every congestion control has.
    ssthresh: usize,
    /// The same for the program that counts the subflows without a place.
    init: usize,
}

impl Offsets {
    fn read() -> libbpf_rs::Result<Self> {
        let btf = Btf::from_vmlinux()?;
        let missing = || {
            libbpf_rs::Error::from(std::io::Error::other(
                "no tcp_congestion_ops in the kernel's BTF",
            ))
        };
        let value = btf
            .type_by_name::<Struct<'_>>("bpf_struct_ops_tcp_congestion_ops")
            .ok_or_else(missing)?;
        let ops = btf
            .type_by_name::<Struct<'_>>("tcp_congestion_ops")
            .ok_or_else(missing)?;
        let data = offset(&value, "data").ok_or_else(missing)?;
        // Kernels from 6.9 on have refcnt and state in a struct `common`, in the same places.
        debug_assert!(value.size() > data);
        Ok(Self {
            value_type: Some(value.type_id().into()),
            users: 0,
            state: 4,
            name: data + offset(&ops, "name").ok_or_else(missing)?,
            ssthresh: data + offset(&ops, "ssthresh").ok_or_else(missing)?,
            init: data + offset(&ops, "init").ok_or_else(missing)?,
        })
    }
}

fn offset(of: &Struct<'_>, member: &str) -> Option<usize> {
    let found = of.iter().find(|m| m.name.is_some_and(|n| n == member))?;
    match found.attr {
        MemberAttr::Normal { offset } => Some(offset as usize / 8),
        MemberAttr::BitField { .. } => None,
    }
}

/// What an object was loaded with, found among the maps of one of its programs.
fn setting(maps: &[u32]) -> Option<Setting> {
    Setting::from_bytes(&section(maps, CONFIG)?)
}

/// `cc_unplaced`, the first counter of bpf/glue.c's .bss.
fn uncoupled(maps: &[u32]) -> Option<u64> {
    let bytes = section(maps, ".bss")?;
    Some(u64::from_ne_bytes(bytes.get(..8)?.try_into().ok()?))
}

/// The content of the section among these maps.
fn section(maps: &[u32], name: &str) -> Option<Vec<u8>> {
    let map = maps
        .iter()
        .filter_map(|&id| MapHandle::from_map_id(id).ok())
        .find(|map| map.name().to_string_lossy().ends_with(name))?;
    content(&map)
}

/// Maps of each eBPF program.
fn maps_of_programs() -> HashMap<u32, Vec<u32>> {
    let wanted = ProgInfoQueryOptions::default().include_map_ids(true);
    ProgInfoIter::with_query_opts(wanted)
        .map(|program| (program.id, program.map_ids))
        .collect()
}

/// Link of each struct_ops map.
fn links() -> HashMap<u32, u32> {
    LinkInfoIter::default()
        .filter_map(|link| match link.info {
            LinkTypeInfo::StructOps(info) => Some((info.map_id, link.id)),
            _ => None,
        })
        .collect()
}

/// Pinned links below [`PIN_FOLDER`].
fn pins() -> HashMap<u32, PathBuf> {
    let entries = fs::read_dir(PIN_FOLDER).into_iter().flatten().flatten();
    entries
        .filter_map(|entry| Some((link_id(&entry.path())?, entry.path())))
        .collect()
}

fn link_id(pin: &Path) -> Option<u32> {
    let link = Link::open(pin).ok()?;
    let info = libbpf_rs::query::LinkInfo::from_fd(link.as_fd()).ok()?;
    Some(info.id)
}

/// Processes that hold links open, by link.
fn holders() -> HashMap<u32, Vec<(u32, String)>> {
    let mut found: HashMap<u32, Vec<(u32, String)>> = HashMap::new();
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    for process in processes {
        let Some(pid) = process
            .file_name()
            .to_str()
            .and_then(|name| name.parse().ok())
        else {
            continue;
        };
        if pid == std::process::id() {
            continue;
        }
        let descriptors = fs::read_dir(process.path().join("fdinfo"))
            .into_iter()
            .flatten()
            .flatten();
        for info in descriptors.filter_map(|entry| fs::read_to_string(entry.path()).ok()) {
            let link = info
                .lines()
                .find_map(|line| line.strip_prefix("link_id:")?.trim().parse().ok());
            if let Some(link) = link {
                found
                    .entry(link)
                    .or_default()
                    .push((pid, command_line(pid)));
            }
        }
    }
    found
}

fn command_line(pid: u32) -> String {
    let raw = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let words = raw.split(|&b| b == 0).filter(|word| !word.is_empty());
    let words: Vec<_> = words.map(String::from_utf8_lossy).collect();
    words.join(" ")
}

fn u32_at(value: &[u8], offset: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(
        value.get(offset..offset + 4)?.try_into().ok()?,
    ))
}

/// A NUL-terminated string.
fn text_at(value: &[u8], offset: usize) -> Option<String> {
    let bytes = value.get(offset..)?;
    let end = bytes.iter().take(16).position(|&b| b == 0).unwrap_or(16);
    Some(String::from_utf8_lossy(bytes.get(..end)?).into_owned())
}
