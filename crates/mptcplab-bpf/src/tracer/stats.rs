//! Run-time statistics of the tracer's programs.

use super::error::TracerError;
use libbpf_rs::Object;
use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};

/// One program's run time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProgramStats {
    pub name: String,
    /// Time spent in it, in nanoseconds; measuring itself adds some 85 ns per run.
    pub run_time_ns: u64,
    /// How often it ran while run times were measured, unwatched sockets included.
    pub run_count: u64,
    /// How often it was skipped because it interrupted itself on the same processor.
    pub missed: u64,
}

/// Enables the kernel's run-time statistics until it is dropped: the kernel counts while any such descriptor is open.
#[derive(Debug)]
pub(super) struct RunTime {
    _enabled: OwnedFd,
}

impl RunTime {
    pub(super) fn begin() -> Result<Self, TracerError> {
        // SAFETY: takes a constant and returns a descriptor or a negative error.
        let fd = unsafe { libbpf_sys::bpf_enable_stats(libbpf_sys::BPF_STATS_RUN_TIME) };
        if fd < 0 {
            let source = io::Error::from_raw_os_error(-fd);
            return Err(TracerError::RunTime { source });
        }
        // SAFETY: the descriptor was just opened and is owned by nothing else.
        let _enabled = unsafe { OwnedFd::from_raw_fd(fd) };
        Ok(Self { _enabled })
    }
}

/// Reads the statistics of every program.
pub(super) fn read(object: &Object) -> Result<Vec<ProgramStats>, TracerError> {
    object
        .progs()
        .map(|program| {
            let info = info(program.as_fd().as_raw_fd())
                .map_err(|source| TracerError::map("read a program's run time", source))?;
            Ok(ProgramStats {
                name: program.name().to_string_lossy().into_owned(),
                run_time_ns: info.run_time_ns,
                run_count: info.run_cnt,
                missed: info.recursion_misses,
            })
        })
        .collect()
}

fn info(fd: i32) -> libbpf_rs::Result<libbpf_sys::bpf_prog_info> {
    let mut info = libbpf_sys::bpf_prog_info::default();
    let mut bytes = size_of_val(&info) as u32;
    // SAFETY: `info` is as large as `bytes` says, and zero, so the kernel fills in no arrays.
    let status = unsafe { libbpf_sys::bpf_prog_get_info_by_fd(fd, &raw mut info, &raw mut bytes) };
    if status < 0 {
        return Err(libbpf_rs::Error::from_raw_os_error(-status));
    }
    Ok(info)
}
