//! The C side's types, as `algorithms/cc_native.h` lays them out.

use crate::tcp::{AckSample, RateSample};
use std::ffi::{c_char, c_int};

pub(crate) const MAX_SUBFLOWS: usize = 8;
pub(crate) const MAX_PARAMS: usize = 8;
pub(crate) const STATE_WORDS: usize = 10;
const SHARED_WORDS: usize = 4;

/// One subflow as its siblings see it.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Slot {
    pub(crate) window_rtt: u64,
    pub(crate) ssthresh: u32,
    pub(crate) min_rtt_us: u32,
    pub(crate) state: u8,
    pub(crate) usable: u8,
    pub(crate) reserved: [u8; 6],
    pub(crate) words: [u64; SHARED_WORDS],
}

/// The table of one connection.
#[repr(C)]
#[derive(Debug, Clone, Default)]
pub(crate) struct Table {
    pub(crate) n_slots: u32,
    pub(crate) reserved: u32,
    pub(crate) slot: [Slot; MAX_SUBFLOWS],
}

#[repr(C)]
#[derive(Debug)]
pub(crate) struct RawParam {
    pub(crate) name: *const c_char,
    pub(crate) initial: f64,
    pub(crate) min: f64,
    pub(crate) max: f64,
    pub(crate) scale: u32,
    pub(crate) names: *const c_char,
    pub(crate) help: *const c_char,
}

#[repr(C)]
#[derive(Debug)]
pub(crate) struct RawField {
    pub(crate) name: *const c_char,
    pub(crate) offset: u32,
    pub(crate) size: u32,
    pub(crate) num: u64,
    pub(crate) den: u64,
    pub(crate) unit: *const c_char,
}

/// `struct sock`, whose Rust side is [`crate::Sock`].
#[repr(C)]
#[derive(Debug)]
pub(crate) struct RawSock {
    opaque: [u8; 0],
}

type Hook = unsafe extern "C" fn(*mut RawSock);

#[repr(C)]
#[derive(Debug)]
pub(crate) struct Ops {
    pub(crate) init: Option<Hook>,
    pub(crate) release: Option<Hook>,
    pub(crate) ssthresh: Option<unsafe extern "C" fn(*mut RawSock) -> u32>,
    pub(crate) cong_avoid: Option<unsafe extern "C" fn(*mut RawSock, u32, u32)>,
    pub(crate) set_state: Option<unsafe extern "C" fn(*mut RawSock, u8)>,
    pub(crate) cwnd_event: Option<unsafe extern "C" fn(*mut RawSock, c_int)>,
    pub(crate) pkts_acked: Option<unsafe extern "C" fn(*mut RawSock, *const AckSample)>,
    pub(crate) undo_cwnd: Option<unsafe extern "C" fn(*mut RawSock) -> u32>,
    pub(crate) cong_control:
        Option<unsafe extern "C" fn(*mut RawSock, u32, c_int, *const RateSample)>,
}

impl Ops {
    /// The first hook that Linux demands (`tcp_validate_congestion_control`) and that is not there.
    pub(crate) fn missing(&self) -> Option<&'static str> {
        let grows = self.cong_avoid.is_some() || self.cong_control.is_some();
        let demanded = [
            (self.ssthresh.is_some(), ".ssthresh"),
            (self.undo_cwnd.is_some(), ".undo_cwnd"),
            (grows, ".cong_avoid or .cong_control"),
        ];
        demanded.iter().find(|(is_there, _)| !is_there).map(|d| d.1)
    }
}

#[repr(C)]
#[derive(Debug)]
pub(crate) struct RawAlgorithm {
    pub(crate) name: *const c_char,
    pub(crate) coupled: u32,
    pub(crate) shared_words: u32,
    pub(crate) params: *const RawParam,
    pub(crate) fields: *const RawField,
    pub(crate) ops: Ops,
}

// SAFETY: the C side's descriptors are immutable and live for the whole program.
unsafe impl Sync for RawAlgorithm {}

unsafe extern "C" {
    pub(crate) fn mptcplab_cc_publish(sk: *const RawSock);
    pub(crate) fn mptcplab_cc_credit_q40(sk: *const RawSock) -> i64;
}

/// Called by checked builds of the algorithms when a stated range is broken.
///
/// Ends the process: there is no state to go on from, and unwinding must not cross C frames.
#[unsafe(no_mangle)]
extern "C" fn mptcplab_cc_assert_failed(
    expr: *const c_char,
    file: *const c_char,
    line: c_int,
) -> ! {
    // SAFETY: both strings are literals of the C file.
    let (expr, file) = unsafe {
        (
            std::ffi::CStr::from_ptr(expr),
            std::ffi::CStr::from_ptr(file),
        )
    };
    eprintln!(
        "error: algorithm broke a stated range: {} at {}:{line}",
        expr.to_string_lossy(),
        file.to_string_lossy()
    );
    std::process::abort()
}

#[cfg(test)]
mod tests {
    #[test]
    fn debug_builds_check_every_range() {
        unsafe extern "C" {
            static mptcplab_cc_checked: u32;
        }
        // SAFETY: an immutable u32 of the C side.
        let checked = unsafe { mptcplab_cc_checked };
        assert_eq!(checked == 1, cfg!(debug_assertions));
    }
}
