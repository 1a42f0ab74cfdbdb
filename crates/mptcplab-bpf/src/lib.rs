//! Congestion control and tracing in eBPF.
//!
//! The build compiles every `algorithms/*.c` to an object and embeds it ([`loader`]), and other files are compiled at run time
//! ([`runtime`]); one object serves all kernels from 6.1 up. Loading needs CAP_BPF and CAP_PERFMON.

mod error;
mod libbpf;
pub mod loader;
pub mod record;
pub mod registered;
pub mod runtime;
mod setting;
pub mod system;
pub mod tracer;

pub use error::LoadError;
pub use loader::{Loaded, Options, ProgramInfo, load};
pub use setting::Setting;

/// The object of `bpf/<name>.bpf.c`.
///
/// # Panics
/// If there is no such file.
pub fn program(name: &str) -> &'static [u8] {
    let programs: &[(&str, &[u8])] = &include!(concat!(env!("OUT_DIR"), "/programs.rs"));
    let found = programs.iter().find(|(known, _)| *known == name);
    found.unwrap_or_else(|| panic!("no bpf/{name}.bpf.c")).1
}
