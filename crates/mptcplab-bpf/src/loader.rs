//! One algorithm of `algorithms/` as a congestion control of the running kernel.

use crate::error::LoadError;
use crate::record::Recorder;
use crate::setting::{CONFIG, Setting, content, table_entries};
use crate::{libbpf, runtime, system};
use libbpf_rs::{Link, MapCore, MapMut, Object, ObjectBuilder, OpenMapMut, OpenObject};
use mptcplab_cc::Algorithm;
use std::os::fd::{AsFd, AsRawFd};
use std::path::Path;

/// How an algorithm is loaded.
#[derive(Debug, Clone)]
pub struct Options {
    /// Name in the kernel, at most 15 bytes; global to the machine.
    pub kernel_name: String,
    /// Raw values of parameters; all others have their defaults.
    pub params: Vec<(String, u64)>,
    /// Congestion avoidance counts ACKs instead of acknowledged packets.
    pub growth_per_ack: bool,
    /// Connections that can be coupled at a time; further ones run uncoupled and are counted ([`Loaded::unplaced`]).
    pub connections: u32,
    /// Pace every socket at the kernel's default gains, even if the algorithm does not ask for it.
    pub pacing: bool,
    /// Record every call of a hook ([`Loaded::records`]). This is slow and meant for tests.
    pub record: bool,
}

impl Options {
    /// The defaults under this name, with room for 4096 connections.
    pub fn named(kernel_name: impl Into<String>) -> Self {
        Self {
            kernel_name: kernel_name.into(),
            params: Vec::new(),
            growth_per_ack: false,
            connections: 4096,
            pacing: false,
            record: false,
        }
    }
}

/// A congestion control in the kernel. Dropping this unregisters it, unless it was pinned; sockets that use it keep it
/// until they close.
#[derive(Debug)]
pub struct Loaded {
    // Dropped before the object: on kernels without links, detaching uses the object's map.
    link: Link,
    object: Object,
    kernel_name: String,
    recorder: Option<Recorder>,
}

/// The members of `struct tcp_congestion_ops` in bpf/glue.c: (member's offset, program).
const PROGRAMS: [(usize, &str); 11] = [
    (0, "cc_init"),
    (8, "cc_release"),
    (16, "cc_ssthresh"),
    (24, "cc_cong_avoid"),
    (32, "cc_set_state"),
    (40, "cc_cwnd_event"),
    (48, "cc_tx_start"),
    (56, "cc_pkts_acked"),
    (64, "cc_undo_cwnd"),
    (CONTROL_OFFSET, "cc_control"),
    (CONTROL_OLD_OFFSET, "cc_control_old"),
];
const CONTROL_OFFSET: usize = 72;
const CONTROL_OLD_OFFSET: usize = 80;
const FLAGS_OFFSET: usize = 88;
const NAME_OFFSET: usize = FLAGS_OFFSET + 4;
/// TCP_CA_NAME_MAX, with its NUL.
const NAME_BYTES: usize = 16;

/// The objects of every algorithm: (name, object, object in record mode).
fn objects() -> &'static [(&'static str, &'static [u8], &'static [u8])] {
    &include!(concat!(env!("OUT_DIR"), "/algorithms.rs"))
}

/// Loads an algorithm into the kernel under the name that `options` gives.
///
/// # Errors
/// [`LoadError`]: missing privileges or BTF, an old kernel, a name that is taken, a bad parameter, or a refusal by the
/// kernel. After an error nothing is left in the kernel.
pub fn load(algorithm: &'static Algorithm, options: &Options) -> Result<Loaded, LoadError> {
    check_name(&options.kernel_name)?;
    let setting = Setting::of(algorithm, options)?;
    system::check()?;
    let what = format!("{} as {}", algorithm.name(), options.kernel_name);
    if is_registered(&options.kernel_name) {
        return Err(LoadError::NameTaken {
            name: options.kernel_name.clone(),
        });
    }
    let mut object = libbpf::with_log(&what, || {
        let mut open =
            ObjectBuilder::default().open_memory(object_of(algorithm, options.record))?;
        prepare(&mut open, algorithm, options, &setting)?;
        open.load()
    })?;
    let link = libbpf::with_log(&what, || {
        named_mut(&mut object, "cc_ops")?.attach_struct_ops()
    })
    .map_err(|error| {
        // Another process may have taken the name after the check above.
        if is_registered(&options.kernel_name) {
            LoadError::NameTaken {
                name: options.kernel_name.clone(),
            }
        } else {
            error
        }
    })?;
    let recorder = options
        .record
        .then(|| libbpf::with_log(&what, || Recorder::new(&object)))
        .transpose()?;
    Ok(Loaded {
        link,
        object,
        kernel_name: options.kernel_name.clone(),
        recorder,
    })
}

impl Loaded {
    /// The name for TCP_CONGESTION.
    pub fn kernel_name(&self) -> &str {
        &self.kernel_name
    }

    /// Keeps it in the kernel after this process ends, until the file at `path` on a bpffs is removed. The file at `setting`
    /// says how it was loaded.
    ///
    /// # Errors
    /// [`LoadError::Kernel`], also where the kernel has no links to pin (before 6.4; use [`Self::leave_registered`] there).
    pub(crate) fn pin(&mut self, path: &Path, setting: &Path) -> Result<(), LoadError> {
        let what = format!("the pin {}", path.display());
        libbpf::with_log(&what, || {
            self.object
                .maps_mut()
                .find(|map| map.name().to_string_lossy().ends_with(CONFIG))
                .ok_or_else(|| libbpf::missing_map(CONFIG))?
                .pin(setting)?;
            self.link.pin(path)
        })
    }

    /// Leaves it registered after this process ends, on kernels without links. Deleting its map unregisters it
    /// ([`crate::registered::Registered::unregister`]).
    pub fn leave_registered(mut self) {
        self.link.disconnect();
    }

    /// Number of sockets that found no place in the table and run uncoupled: it was full, or their connection had
    /// [`mptcplab_cc::MAX_SUBFLOWS`] others.
    pub fn unplaced(&self) -> u64 {
        self.counter(0)
    }

    /// The records since the last call, in the order of the ring buffer.
    ///
    /// # Panics
    /// If the algorithm was not loaded with [`Options::record`].
    pub fn records(&mut self) -> Vec<mptcplab_cc::replay::Record> {
        self.recorder
            .as_mut()
            .expect("loaded with Options::record")
            .drain()
    }

    /// Number of calls that were not recorded because the ring buffer was full.
    pub fn unrecorded(&self) -> u64 {
        self.counter(1)
    }

    /// How often the algorithm wanted a subflow to become a backup, which no hook can do in the kernel.
    pub fn backups_wanted(&self) -> u64 {
        self.word(".bss.backups", 0)
    }

    /// The n-th counter of bpf/glue.c's .bss.
    fn counter(&self, index: usize) -> u64 {
        self.word(".bss", index)
    }

    /// The n-th word of the section's map.
    fn word(&self, section: &str, index: usize) -> u64 {
        let bss = self
            .object
            .maps()
            .find(|map| map.name().to_string_lossy().ends_with(section));
        bss.and_then(|map| content(&map))
            .and_then(|bytes| {
                Some(u64::from_ne_bytes(
                    bytes.get(8 * index..8 * index + 8)?.try_into().ok()?,
                ))
            })
            .unwrap_or(0)
    }

    /// The kernel's statistics of each program.
    pub fn programs(&self) -> Vec<ProgramInfo> {
        self.object
            .progs()
            .filter_map(|program| program_info(&program))
            .collect()
    }
}

/// Statistics of one loaded program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProgramInfo {
    /// Name, such as `cc_cong_avoid`.
    pub name: String,
    /// Total run time in ns while the kernel's run-time statistics were enabled.
    pub run_time_ns: u64,
    /// Number of runs in that time.
    pub runs: u64,
    /// Instructions that the verifier followed; it gives up at a million.
    pub verified_instructions: u32,
}

fn program_info(program: &libbpf_rs::Program<'_>) -> Option<ProgramInfo> {
    // SAFETY: an all-zero bpf_prog_info is valid: it asks for no arrays.
    let mut info: libbpf_sys::bpf_prog_info = unsafe { std::mem::zeroed() };
    let mut length = u32::try_from(size_of_val(&info)).ok()?;
    // SAFETY: the descriptor is the program's, and `info` has `length` bytes.
    let result = unsafe {
        libbpf_sys::bpf_obj_get_info_by_fd(
            program.as_fd().as_raw_fd(),
            (&raw mut info).cast(),
            &raw mut length,
        )
    };
    (result == 0).then(|| ProgramInfo {
        name: program.name().to_string_lossy().into_owned(),
        run_time_ns: info.run_time_ns,
        runs: info.run_cnt,
        verified_instructions: info.verified_insns,
    })
}

/// What a connection takes at least, as a table is at most half full. It takes less than twice as much.
pub const MIN_BYTES_PER_CONNECTION: u64 = 2 * ENTRY_BYTES;
/// `struct cc_entry` of algorithms/cc_bpf.h.
const ENTRY_BYTES: u64 = 600;

/// The largest [`Options::connections`] that counts.
pub(crate) const MAX_CONNECTIONS: u32 = 1 << 20;

pub(crate) fn object_of(algorithm: &Algorithm, record: bool) -> &'static [u8] {
    if let (false, Some(object)) = (record, runtime::object(algorithm.name())) {
        return object;
    }
    // Invariant: both builds read the same folder.
    let found = objects()
        .iter()
        .find(|(name, ..)| *name == algorithm.name());
    let (_, plain, recording) =
        found.unwrap_or_else(|| panic!("no object of {}", algorithm.name()));
    if record { recording } else { plain }
}

fn check_name(name: &str) -> Result<(), LoadError> {
    let fits = (1..NAME_BYTES).contains(&name.len());
    let plain = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b'-';
    if fits && name.bytes().all(plain) {
        Ok(())
    } else {
        Err(LoadError::BadName {
            name: name.to_owned(),
        })
    }
}

/// Whether the kernel has a congestion control of this name.
pub fn is_registered(name: &str) -> bool {
    std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control")
        .is_ok_and(|list| list.split_whitespace().any(|known| known == name))
}

fn prepare(
    open: &mut OpenObject,
    algorithm: &Algorithm,
    options: &Options,
    setting: &Setting,
) -> libbpf_rs::Result<()> {
    let entries = table_entries(options.connections);
    for mut map in open.maps_mut() {
        let name = map.name().to_string_lossy().into_owned();
        match name.as_str() {
            "cc_ops" => set_operations(&mut map, algorithm, &options.kernel_name)?,
            "cc_entries" => map.set_max_entries(entries)?,
            "cc_calls" => map.set_max_entries(entries * mptcplab_cc::MAX_SUBFLOWS as u32)?,
            name if name.ends_with(CONFIG) => map.set_initial_value(&setting.bytes())?,
            _ => {}
        }
    }
    for mut program in open.progs_mut() {
        let name = program.name().to_string_lossy().into_owned();
        program.set_autoload(uses_program(algorithm, &name));
    }
    Ok(())
}

/// Fills in name and flags, and clears the pointers to programs that the algorithm or the kernel does not have.
fn set_operations(
    map: &mut OpenMapMut<'_>,
    algorithm: &Algorithm,
    name: &str,
) -> libbpf_rs::Result<()> {
    if !system::has_struct_ops_links() {
        map.set_map_flags(0)?;
    }
    // Invariant: libbpf keeps the initial value of every struct_ops map.
    let value = map.initial_value_mut().unwrap_or_default();
    value[NAME_OFFSET..NAME_OFFSET + name.len()].copy_from_slice(name.as_bytes());
    for (offset, program) in PROGRAMS {
        if !uses_program(algorithm, program) {
            value[offset..offset + 8].fill(0);
        }
    }
    // The kernel has one member for both variants of the program.
    if uses_program(algorithm, "cc_control_old") {
        value.copy_within(CONTROL_OLD_OFFSET..CONTROL_OLD_OFFSET + 8, CONTROL_OFFSET);
        value[CONTROL_OLD_OFFSET..CONTROL_OLD_OFFSET + 8].fill(0);
    }
    Ok(())
}

fn uses_program(algorithm: &Algorithm, program: &str) -> bool {
    match program {
        // Coupled algorithms read the state of the other subflows.
        "cc_set_state" => algorithm.has_set_state() || algorithm.coupled(),
        "cc_cwnd_event" => algorithm.has_cwnd_event(),
        "cc_tx_start" => algorithm.has_cwnd_event() && kernel_has_tx_start(),
        "cc_pkts_acked" => algorithm.has_pkts_acked(),
        "cc_cong_avoid" => !algorithm.has_cong_control(),
        "cc_control" => algorithm.has_cong_control() && control_takes_ack(),
        "cc_control_old" => algorithm.has_cong_control() && !control_takes_ack(),
        _ => true,
    }
}

/// Whether the kernel's `tcp_congestion_ops` has a separate operation for the start of transmission (since 7.2).
fn kernel_has_tx_start() -> bool {
    use libbpf_rs::btf::{Btf, types::Struct};
    use std::sync::OnceLock;
    static KNOWN: OnceLock<bool> = OnceLock::new();
    *KNOWN.get_or_init(|| {
        Btf::from_vmlinux().is_ok_and(|btf| {
            btf.type_by_name::<Struct<'_>>("tcp_congestion_ops")
                .is_some_and(|ops| {
                    ops.iter()
                        .any(|m| m.name.is_some_and(|n| n == "cwnd_event_tx_start"))
                })
        })
    })
}

/// Whether the kernel's `cong_control` has four parameters instead of two (since 6.10).
fn control_takes_ack() -> bool {
    use libbpf_rs::btf::{
        Btf, ReferencesType,
        types::{FuncProto, Ptr, Struct},
    };
    use std::sync::OnceLock;
    static KNOWN: OnceLock<bool> = OnceLock::new();
    *KNOWN.get_or_init(|| {
        let parameters = |btf: &Btf<'_>| -> Option<usize> {
            let ops = btf.type_by_name::<Struct<'_>>("tcp_congestion_ops")?;
            let member = ops
                .iter()
                .find(|m| m.name.is_some_and(|n| n == "cong_control"))?;
            let pointer = btf.type_by_id::<Ptr<'_>>(member.ty)?;
            let function = btf.type_by_id::<FuncProto<'_>>(pointer.referenced_type_id())?;
            Some(function.iter().count())
        };
        Btf::from_vmlinux().is_ok_and(|btf| parameters(&btf) == Some(4))
    })
}

fn named_mut<'a>(object: &'a mut Object, name: &str) -> libbpf_rs::Result<MapMut<'a>> {
    object
        .maps_mut()
        .find(|map| map.name() == name)
        .ok_or_else(|| libbpf::missing_map(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// With 4096 entries for 4096 connections, 38 subflows of 3500 connections ran uncoupled.
    #[test]
    fn a_table_is_at_most_half_full() {
        for (connections, entries) in [(0, 2), (1, 2), (3, 8), (4096, 8192), (4097, 16_384)] {
            assert_eq!(table_entries(connections), entries, "{connections}");
        }
        assert_eq!(table_entries(u32::MAX), 1 << 21);
    }

    /// The help said 1200 bytes, which is the least.
    #[test]
    fn a_connection_takes_once_to_twice_the_least() {
        let reno = mptcplab_cc::find("reno").unwrap();
        let mut open = ObjectBuilder::default()
            .open_memory(object_of(reno, false))
            .unwrap();
        let entries = open.maps_mut().find(|map| map.name() == "cc_entries");
        assert_eq!(u64::from(entries.unwrap().value_size()), ENTRY_BYTES);
        let table_bytes = |connections| u64::from(table_entries(connections)) * ENTRY_BYTES;
        for (connections, bytes) in [(1, 1200), (4096, 4_915_200), (4097, 9_830_400)] {
            assert_eq!(table_bytes(connections), bytes, "{connections}");
        }
        // 4097 connections: 16384 entries of 600 bytes, which is 2399.4 bytes for each.
        for connections in 1..=4097 {
            let least = MIN_BYTES_PER_CONNECTION * u64::from(connections);
            assert!((least..2 * least).contains(&table_bytes(connections)));
        }
    }
}
