//! One subflow's congestion control: a socket under an algorithm, and the algorithm's hooks as methods.

use crate::ffi::{self, Table};
use crate::registry::{Algorithm, FieldSpec, ParamError};
use crate::tcp::{AckSample, CaEvent, CaState, RateSample, TcpSock};
use std::ffi::c_int;

/// Most parameters of one algorithm.
pub const MAX_PARAMS: usize = ffi::MAX_PARAMS;
/// Most subflows of one connection that can be coupled.
pub const MAX_SUBFLOWS: usize = ffi::MAX_SUBFLOWS;

/// The table that the subflows of one connection share, allocated when a coupled algorithm is initialised.
#[derive(Debug, Clone, Default)]
pub struct Conn {
    table: Option<Box<Table>>,
}

impl Conn {
    /// A connection without subflows.
    pub fn new() -> Self {
        Self::default()
    }

    fn table(&mut self) -> &mut Table {
        self.table.get_or_insert_default()
    }
}

/// One subflow: its TCP state under one algorithm.
///
/// This is the C side's `struct sock`; the engine works on `tp` directly.
#[repr(C)]
#[derive(Debug, Clone)]
pub struct Sock {
    /// The sender's TCP state.
    pub tp: TcpSock,
    pub(crate) state: [u64; ffi::STATE_WORDS],
    pub(crate) credit_q40: i64,
    inverse_q40: u64,
    credit_cwnd: u32,
    inverse_cwnd: u32,
    pub(crate) conn: *mut Table,
    raw_algorithm: *const ffi::RawAlgorithm,
    pub(crate) params: [u32; ffi::MAX_PARAMS],
    pub(crate) slot: u8,
    growth_per_ack: u8,
    backups_wanted: u8,
    /// Where the C side has nothing: whether the algorithm is coupled, which every call asks.
    is_coupled: bool,
    algorithm: &'static Algorithm,
}

// SAFETY: the pointers lead to immutable statics (`raw_algorithm`) and to the table of the `Conn` that every
// coupled call passes and sets anew (`conn`); a stale `conn` is never read, so moving a Sock moves no shared state.
unsafe impl Send for Sock {}
// SAFETY: `&Sock` gives no access through the pointers but to immutable statics.
unsafe impl Sync for Sock {}

impl Sock {
    /// A subflow under `algorithm` with raw parameter values; the rest of the parameters have their defaults.
    /// `growth_per_ack` counts one packet per ACK in congestion avoidance instead of the packets acknowledged.
    ///
    /// # Errors
    /// [`ParamError`] for a parameter that does not exist or a value out of its range.
    pub fn new(
        algorithm: &'static Algorithm,
        params: &[(String, u64)],
        growth_per_ack: bool,
    ) -> Result<Self, ParamError> {
        let values = algorithm.raw_params(params)?;
        Ok(Self {
            tp: TcpSock::default(),
            state: [0; ffi::STATE_WORDS],
            credit_q40: 0,
            inverse_q40: 0,
            credit_cwnd: 0,
            inverse_cwnd: 0,
            conn: std::ptr::null_mut(),
            raw_algorithm: algorithm.raw,
            params: values,
            slot: 0,
            growth_per_ack: u8::from(growth_per_ack),
            backups_wanted: 0,
            is_coupled: algorithm.coupled(),
            algorithm,
        })
    }

    /// The algorithm that this subflow runs.
    #[inline]
    pub fn algorithm(&self) -> &'static Algorithm {
        self.algorithm
    }

    /// The subflow is established: it takes `slot` of the connection's table (below [`MAX_SUBFLOWS`]) and starts usable.
    pub fn init(&mut self, conn: &mut Conn, slot: u32) {
        assert!(
            (slot as usize) < MAX_SUBFLOWS,
            "slot {slot} of {MAX_SUBFLOWS}"
        );
        self.slot = slot as u8;
        self.state = [0; ffi::STATE_WORDS];
        self.credit_cwnd = 0;
        if self.is_coupled {
            let table = conn.table();
            table.n_slots = table.n_slots.max(slot + 1);
            table.slot[slot as usize] = ffi::Slot {
                usable: 1,
                ..ffi::Slot::default()
            };
        }
        if let Some(hook) = self.algorithm.raw.ops.init {
            self.enter(conn);
            // SAFETY: as for every hook, see `enter`.
            unsafe { hook(self.raw()) };
        }
        self.publish(conn);
    }

    /// The subflow is closed: it leaves the table.
    pub fn release(&mut self, conn: &mut Conn) {
        if let Some(hook) = self.algorithm.raw.ops.release {
            self.enter(conn);
            // SAFETY: as for every hook, see `enter`.
            unsafe { hook(self.raw()) };
        }
        if self.is_coupled {
            conn.table().slot[usize::from(self.slot)] = ffi::Slot::default();
        }
    }

    /// Whether the subflow may carry data: only then does it belong to the coupling set.
    pub fn set_usable(&mut self, conn: &mut Conn, usable: bool) {
        if self.is_coupled {
            conn.table().slot[usize::from(self.slot)].usable = u8::from(usable);
        }
    }

    /// An ACK arrived while the window may grow: `ack` is the new `snd_una`, `acked` the packets newly (s)acked.
    #[inline]
    pub fn cong_avoid(&mut self, conn: &mut Conn, ack: u32, acked: u32) {
        let Some(hook) = self.algorithm.raw.ops.cong_avoid else {
            return;
        };
        self.enter(conn);
        // SAFETY: as for every hook, see `enter`.
        unsafe { hook(self.raw(), ack, acked) };
        if self.is_coupled {
            // SAFETY: `self` is a valid socket whose table pointer was set above.
            unsafe { ffi::mptcplab_cc_publish(self.raw()) };
        }
    }

    /// A congestion event: the new slow start threshold, packets. Called once per recovery episode or first RTO.
    #[inline]
    pub fn ssthresh(&mut self, conn: &mut Conn) -> u32 {
        let Some(hook) = self.algorithm.raw.ops.ssthresh else {
            return self.tp.snd_ssthresh;
        };
        self.enter(conn);
        // SAFETY: as for every hook, see `enter`.
        let ssthresh = unsafe { hook(self.raw()) };
        self.publish(conn);
        ssthresh
    }

    /// The recovery state changes to `state`: the hook runs (still seeing the old `ca_state`, as in Linux), then
    /// `ca_state` is set and the subflow's slot follows.
    #[inline]
    pub fn set_state(&mut self, conn: &mut Conn, state: CaState) {
        if let Some(hook) = self.algorithm.raw.ops.set_state {
            self.enter(conn);
            // SAFETY: as for every hook, see `enter`.
            unsafe { hook(self.raw(), state as u8) };
        }
        self.tp.ca_state = state as u8;
        self.publish(conn);
    }

    /// An event other than an ACK or a change of state.
    #[inline]
    pub fn cwnd_event(&mut self, conn: &mut Conn, event: CaEvent) {
        if let Some(hook) = self.algorithm.raw.ops.cwnd_event {
            self.enter(conn);
            // SAFETY: as for every hook, see `enter`.
            unsafe { hook(self.raw(), event as c_int) };
            self.publish(conn);
        }
    }

    /// Packets were acknowledged, in any state; before [`Self::cong_avoid`] of the same ACK.
    #[inline]
    pub fn pkts_acked(&mut self, conn: &mut Conn, sample: &AckSample) {
        if let Some(hook) = self.algorithm.raw.ops.pkts_acked {
            self.enter(conn);
            // SAFETY: as for every hook, see `enter`; the sample is a valid `struct ack_sample`.
            unsafe { hook(self.raw(), sample) };
            self.publish(conn);
        }
    }

    /// The reduction was spurious: the window to return to, packets.
    #[inline]
    pub fn undo_cwnd(&mut self, conn: &mut Conn) -> u32 {
        let Some(hook) = self.algorithm.raw.ops.undo_cwnd else {
            return self.tp.snd_cwnd.max(self.tp.prior_cwnd);
        };
        self.enter(conn);
        // SAFETY: as for every hook, see `enter`.
        let cwnd = unsafe { hook(self.raw()) };
        self.publish(conn);
        cwnd
    }

    /// The whole ACK of a rate-based algorithm (see [`Algorithm::has_cong_control`]).
    #[inline]
    pub fn cong_control(&mut self, conn: &mut Conn, ack: u32, flag: u32, rs: &RateSample) {
        if let Some(hook) = self.algorithm.raw.ops.cong_control {
            self.enter(conn);
            // SAFETY: as for every hook, see `enter`; the sample is a valid `struct rate_sample`.
            unsafe { hook(self.raw(), ack, flag as c_int, rs) };
            self.publish(conn);
        }
    }

    /// The slots of the subflows that the algorithm has asked to become backups since the last call: bit i is slot i.
    #[inline]
    pub fn take_backups_wanted(&mut self) -> u8 {
        std::mem::take(&mut self.backups_wanted)
    }

    /// Publishes the subflow's slot; needed only after the engine itself changed `snd_cwnd`, `snd_ssthresh` or
    /// `srtt_us` outside a hook and wants the siblings to see it before this subflow's next hook.
    #[inline]
    pub fn publish(&mut self, conn: &mut Conn) {
        if self.is_coupled {
            self.conn = conn.table();
            // SAFETY: `self` is a valid socket whose table pointer was just set.
            unsafe { ffi::mptcplab_cc_publish(self.raw()) };
        }
    }

    /// The window in packets that the earned fraction of a packet belongs to, and the fraction, Q40.
    pub(crate) fn raw_credit(&self) -> (u32, i64) {
        (self.credit_cwnd, self.credit_q40)
    }

    pub(crate) fn set_credit(&mut self, cwnd: u32, credit_q40: i64) {
        (self.credit_cwnd, self.credit_q40) = (cwnd, credit_q40);
    }

    /// Fraction of a packet on top of `snd_cwnd` that the algorithm has earned, packets.
    pub fn credit(&self) -> f64 {
        // SAFETY: reads the socket only.
        let credit = unsafe { ffi::mptcplab_cc_credit_q40(std::ptr::from_ref(self).cast()) };
        credit as f64 / (1u64 << 40) as f64
    }

    /// Window with its fraction, packets.
    pub fn window(&self) -> f64 {
        f64::from(self.tp.snd_cwnd) + self.credit()
    }

    /// A member of the algorithm's state by name, in its declared unit.
    pub fn field(&self, name: &str) -> Option<f64> {
        let spec = self.algorithm.fields().iter().find(|f| f.name == name)?;
        let raw = self.state_bytes(spec);
        Some(raw as f64 * spec.num as f64 / spec.den as f64)
    }

    /// Sets a member of the algorithm's state by name, rounded to its resolution; false if there is none.
    pub fn set_field(&mut self, conn: &mut Conn, name: &str, value: f64) -> bool {
        let Some(spec) = self.algorithm.fields().iter().find(|f| f.name == name) else {
            return false;
        };
        let raw = (value * spec.den as f64 / spec.num as f64).round() as u64;
        for (i, byte) in raw.to_le_bytes().into_iter().take(spec.size).enumerate() {
            let at = spec.offset + i;
            let shift = (at % 8) * 8;
            let word = &mut self.state[at / 8];
            *word = (*word & !(0xff << shift)) | u64::from(byte) << shift;
        }
        self.publish(conn);
        true
    }

    fn state_bytes(&self, spec: &FieldSpec) -> u64 {
        (0..spec.size).fold(0, |raw, i| {
            let at = spec.offset + i;
            let byte = self.state[at / 8] >> ((at % 8) * 8) & 0xff;
            raw | byte << (i * 8)
        })
    }

    /// The C side's view of this socket.
    #[inline]
    pub(crate) fn raw(&mut self) -> *mut ffi::RawSock {
        std::ptr::from_mut(self).cast()
    }

    /// Prepares a hook call. After it, and until the hook returns, `self` is a valid `struct sock`: its parameters
    /// were checked in `new`, and for a coupled algorithm `conn` points to the caller's table, borrowed for the call.
    #[inline]
    fn enter(&mut self, conn: &mut Conn) {
        if self.is_coupled {
            self.conn = conn.table();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::mem::{offset_of, size_of};

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
            size_of::<ffi::Table>(),
            size_of::<ffi::Slot>(),
            offset_of!(ffi::Slot, words),
            size_of::<ffi::RawAlgorithm>(),
            offset_of!(ffi::RawAlgorithm, ops),
            size_of::<ffi::RawParam>(),
            size_of::<ffi::RawField>(),
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
