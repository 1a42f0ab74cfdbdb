//! The C side's types, as `algorithms/cc_native.h` lays them out.

use crate::sock::Sock;
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

type Hook = unsafe extern "C" fn(*mut Sock);

#[repr(C)]
#[derive(Debug)]
pub(crate) struct Ops {
    pub(crate) init: Option<Hook>,
    pub(crate) release: Option<Hook>,
    pub(crate) ssthresh: Option<unsafe extern "C" fn(*mut Sock) -> u32>,
    pub(crate) cong_avoid: Option<unsafe extern "C" fn(*mut Sock, u32, u32)>,
    pub(crate) set_state: Option<unsafe extern "C" fn(*mut Sock, u8)>,
    pub(crate) cwnd_event: Option<unsafe extern "C" fn(*mut Sock, c_int)>,
    pub(crate) pkts_acked: Option<unsafe extern "C" fn(*mut Sock, *const crate::AckSample)>,
    pub(crate) undo_cwnd: Option<unsafe extern "C" fn(*mut Sock) -> u32>,
    pub(crate) cong_control:
        Option<unsafe extern "C" fn(*mut Sock, u32, c_int, *const crate::RateSample)>,
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

#[expect(
    improper_ctypes,
    reason = "C sees the reference in Sock as an opaque pointer"
)]
unsafe extern "C" {
    pub(crate) fn mptcplab_cc_publish(sk: *const Sock);
    pub(crate) fn mptcplab_cc_credit_q40(sk: *const Sock) -> i64;
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
    use super::*;
    use crate::{AckSample, RateSample, TcpSock};
    use std::mem::{offset_of, size_of};

    #[test]
    fn debug_builds_check_every_range() {
        unsafe extern "C" {
            static mptcplab_cc_checked: u32;
        }
        // SAFETY: an immutable u32 of the C side.
        let checked = unsafe { mptcplab_cc_checked };
        assert_eq!(checked == 1, cfg!(debug_assertions));
    }

    #[test]
    fn rust_and_c_agree_on_every_layout() {
        let rust = [
            size_of::<TcpSock>(),
            offset_of!(TcpSock, snd_cwnd),
            offset_of!(TcpSock, srtt_us),
            offset_of!(TcpSock, snd_nxt),
            offset_of!(TcpSock, sk_pacing_status),
            offset_of!(TcpSock, is_cwnd_limited),
            offset_of!(TcpSock, ca_state),
            size_of::<Sock>(),
            offset_of!(Sock, state),
            offset_of!(Sock, credit_q40),
            offset_of!(Sock, conn),
            offset_of!(Sock, params),
            offset_of!(Sock, slot),
            size_of::<Table>(),
            size_of::<Slot>(),
            offset_of!(Slot, words),
            size_of::<RawAlgorithm>(),
            offset_of!(RawAlgorithm, ops),
            size_of::<RawParam>(),
            size_of::<RawField>(),
            size_of::<AckSample>(),
            size_of::<RateSample>(),
            offset_of!(RateSample, is_ack_delayed),
        ]
        .map(|n| n as u64);
        unsafe extern "C" {
            static mptcplab_cc_layout: [u64; 23];
        }
        // SAFETY: the C array has exactly these entries.
        assert_eq!(rust, unsafe { mptcplab_cc_layout });
    }
}
