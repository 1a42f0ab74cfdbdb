//! The fuzz targets: functions that take any bytes and panic only if mptcplab does something wrong with them.
//!
//! | Target | The bytes are | What must hold |
//! |---|---|---|
//! | [`scenario`] | the text of a scenario | refused with place and hint, or valid with runs |
//! | [`overrides`] | the JSON of `--set` and the other options | the same, for a fixed scenario |
//! | [`link_files`] | a packet-delivery trace or a table of changes | the same, for a scenario that names it |
//! | [`vectors`] | a file of test vectors | an error that names the place, or a report |
//! | [`replay_records`] | a recorded call of an algorithm | no record, or one that can be repeated |
//! | [`traces`] | a table of a trace, as Parquet | an error, or a trace that can be read again |
//! | [`simulation`] | choices for a valid scenario | it ends, conserves packets, delivers everything once |
//! | [`tracer`] | a record of the kernel's tracer | every value of it can be read |
//!
//! `tests/replay.rs` runs all of them on stable Rust over `corpus/` and some seconds of mutations of it; `make fuzz` runs
//! them under libFuzzer for as long as wanted.

mod link_files;
pub mod mutate;
mod overrides;
mod records;
mod scenario;
mod simulation;
#[cfg(feature = "kernel")]
mod tracer;
mod traces;
mod vectors;

pub use link_files::link_files;
pub use overrides::overrides;
pub use records::replay_records;
pub use scenario::scenario;
pub use simulation::simulation;
#[cfg(feature = "kernel")]
pub use tracer::tracer;
pub use traces::traces;
pub use vectors::vectors;

/// A fuzz target.
pub type Target = fn(&[u8]);

/// Every target that is built, by name.
pub const TARGETS: &[(&str, Target)] = &[
    ("link_files", link_files),
    ("overrides", overrides),
    ("replay_records", replay_records),
    ("scenario", scenario),
    ("simulation", simulation),
    #[cfg(feature = "kernel")]
    ("tracer", tracer),
    ("traces", traces),
    ("vectors", vectors),
];

/// Makes a program of a target: under cargo-fuzz the fuzzer, and otherwise one that runs it on the files that it is given,
/// such as an input that the fuzzer found.
#[macro_export]
macro_rules! fuzz_with {
    ($target:path) => {
        // libFuzzer's crate ends the process in the hook that reports panics, so even for a panic that is caught, as
        // those of the Parquet reader are. It does the same where a panic reaches it.
        #[cfg(fuzzing)]
        ::libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
            static ONCE: ::std::sync::Once = ::std::sync::Once::new();
            ONCE.call_once(|| drop(::std::panic::take_hook()));
            $target(bytes);
        });

        #[cfg(not(fuzzing))]
        fn main() -> ::std::io::Result<()> {
            for path in ::std::env::args_os().skip(1) {
                $target(&::std::fs::read(path)?);
            }
            Ok(())
        }
    };
}
