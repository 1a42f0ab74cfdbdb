//! One subflow's congestion control: the TCP state that the hooks see, and the hooks as methods.

use crate::ffi::{self, Table};
use crate::registry::{Algorithm, FieldSpec, ParamError};
use std::ffi::c_int;

/// Most parameters of one algorithm.
pub const MAX_PARAMS: usize = ffi::MAX_PARAMS;
/// Most subflows of one connection that can be coupled.
pub const MAX_SUBFLOWS: usize = ffi::MAX_SUBFLOWS;
/// `snd_ssthresh` before the first loss (Linux' TCP_INFINITE_SSTHRESH).
pub const INFINITE_SSTHRESH: u32 = 0x7fff_ffff;

/// TCP state of one subflow under the kernel's names. The engine owns and updates it; hooks read all of it and
/// write `snd_cwnd`, `snd_ssthresh` and the pacing fields. Sequence numbers count packets.
#[repr(C)]
#[derive(Debug, Clone)]
pub struct TcpSock {
    /// Time of the event being processed, µs.
    pub tcp_mstamp: u64,
    /// Last time data was sent, µs (the idle time that CUBIC's clock leaves out).
    pub lsndtime_us: u64,
    /// Pacing rate, bytes/s.
    pub sk_pacing_rate: u64,
    /// Congestion window, packets, at least 1.
    pub snd_cwnd: u32,
    /// Slow start threshold, packets.
    pub snd_ssthresh: u32,
    /// The kernel's linear increase counter, packets. Algorithms here keep a finer credit instead.
    pub snd_cwnd_cnt: u32,
    /// Upper limit of the window, packets.
    pub snd_cwnd_clamp: u32,
    /// Window before the last reduction, packets (for undo).
    pub prior_cwnd: u32,
    /// ssthresh before the last reduction, packets (for undo).
    pub prior_ssthresh: u32,
    /// Smoothed RTT, µs << 3; 0 before the first sample.
    pub srtt_us: u32,
    /// RTT mean deviation, µs << 2.
    pub mdev_us: u32,
    /// RTT variation that the RTO uses, µs << 2.
    pub rttvar_us: u32,
    /// Windowed minimum RTT, µs; `u32::MAX` before the first sample.
    pub min_rtt_us: u32,
    /// Packets sent and not cumulatively acknowledged.
    pub packets_out: u32,
    /// Of these, selectively acknowledged.
    pub sacked_out: u32,
    /// Of these, marked lost.
    pub lost_out: u32,
    /// Retransmissions in flight.
    pub retrans_out: u32,
    /// Most packets in flight in the last round.
    pub max_packets_out: u32,
    /// First unacknowledged packet.
    pub snd_una: u32,
    /// Next packet to send.
    pub snd_nxt: u32,
    /// Payload bytes of a full segment.
    pub mss_cache: u32,
    /// Packets delivered, in total.
    pub delivered: u32,
    /// Packets marked lost, in total.
    pub lost: u32,
    /// 0, or application-limited until `delivered` reaches this.
    pub app_limited: u32,
    /// 0 when the sender is not paced.
    pub sk_pacing_status: u32,
    /// The window was full when it was last used.
    pub is_cwnd_limited: bool,
    /// Recovery state, a [`CaState`] as a number.
    pub ca_state: u8,
}

impl Default for TcpSock {
    fn default() -> Self {
        Self {
            tcp_mstamp: 0,
            lsndtime_us: 0,
            sk_pacing_rate: 0,
            snd_cwnd: 10,
            snd_ssthresh: INFINITE_SSTHRESH,
            snd_cwnd_cnt: 0,
            snd_cwnd_clamp: u32::MAX,
            prior_cwnd: 0,
            prior_ssthresh: 0,
            srtt_us: 0,
            mdev_us: 0,
            rttvar_us: 0,
            min_rtt_us: u32::MAX,
            packets_out: 0,
            sacked_out: 0,
            lost_out: 0,
            retrans_out: 0,
            max_packets_out: 0,
            snd_una: 0,
            snd_nxt: 0,
            mss_cache: 1448,
            delivered: 0,
            lost: 0,
            app_limited: 0,
            sk_pacing_status: 0,
            is_cwnd_limited: false,
            ca_state: CaState::Open as u8,
        }
    }
}

/// Recovery state of a sender (Linux' `tcp_ca_state`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum CaState {
    /// Nothing unusual.
    Open = 0,
    /// Duplicate ACKs or SACKs, no loss decided.
    Disorder = 1,
    /// Window reduction after an ECN echo.
    Cwr = 2,
    /// Fast recovery.
    Recovery = 3,
    /// After a retransmission timeout.
    Loss = 4,
}

/// Events that an algorithm may want to hear of (Linux' `tcp_ca_event`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(i32)]
pub enum CaEvent {
    /// First transmit with nothing in flight.
    TxStart = 0,
    /// The window was reduced after an idle period.
    CwndRestart = 1,
    /// End of a window reduction.
    CompleteCwr = 2,
    /// Retransmission timeout.
    Loss = 3,
    /// ECN: packet without congestion mark.
    EcnNoCe = 4,
    /// ECN: packet with congestion mark.
    EcnIsCe = 5,
}

/// What one ACK says about the packets it acknowledges.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AckSample {
    /// Packets newly acknowledged.
    pub pkts_acked: u32,
    /// RTT sample, µs; negative when there is none.
    pub rtt_us: i32,
    /// Packets in flight when the newest acknowledged one was sent.
    pub in_flight: u32,
}

/// Delivery rate sample of one ACK (Linux' `rate_sample`).
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RateSample {
    /// When the sample's interval began, µs.
    pub prior_mstamp: u64,
    /// Packets delivered when it began.
    pub prior_delivered: u32,
    /// Packets delivered over the interval; negative: no sample.
    pub delivered: i32,
    /// Length of the interval, µs.
    pub interval_us: i64,
    /// Send side of the interval, µs.
    pub snd_interval_us: u32,
    /// ACK side of the interval, µs.
    pub rcv_interval_us: u32,
    /// RTT of the newest acknowledged packet, µs; negative: none.
    pub rtt_us: i64,
    /// Packets that this ACK marked lost.
    pub losses: i32,
    /// Packets newly (s)acked by this ACK.
    pub acked_sacked: u32,
    /// Packets in flight before this ACK.
    pub prior_in_flight: u32,
    /// The sample was taken while application-limited.
    pub is_app_limited: bool,
    /// The sample's packet had been retransmitted.
    pub is_retrans: bool,
    /// The ACK was probably delayed.
    pub is_ack_delayed: bool,
}

/// What the subflows of one connection share: the table of a coupled algorithm, made when one is initialised.
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
    reno_inc_q40: u64,
    credit_cwnd: u32,
    reno_cwnd: u32,
    pub(crate) conn: *mut Table,
    raw_algorithm: *const ffi::RawAlgorithm,
    pub(crate) params: [u32; ffi::MAX_PARAMS],
    pub(crate) slot: u8,
    growth_per_ack: u8,
    backups_wanted: u8,
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
            reno_inc_q40: 0,
            credit_cwnd: 0,
            reno_cwnd: 0,
            conn: std::ptr::null_mut(),
            raw_algorithm: algorithm.raw,
            params: values,
            slot: 0,
            growth_per_ack: u8::from(growth_per_ack),
            backups_wanted: 0,
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
        if self.algorithm.coupled() {
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
            unsafe { hook(std::ptr::from_mut(self)) };
        }
        self.publish(conn);
    }

    /// The subflow is closed: it leaves the table.
    pub fn release(&mut self, conn: &mut Conn) {
        if let Some(hook) = self.algorithm.raw.ops.release {
            self.enter(conn);
            // SAFETY: as for every hook, see `enter`.
            unsafe { hook(std::ptr::from_mut(self)) };
        }
        if self.algorithm.coupled() {
            conn.table().slot[usize::from(self.slot)] = ffi::Slot::default();
        }
    }

    /// Whether the subflow may carry data: only then does it belong to the coupling set.
    pub fn set_usable(&mut self, conn: &mut Conn, usable: bool) {
        if self.algorithm.coupled() {
            conn.table().slot[usize::from(self.slot)].usable = u8::from(usable);
        }
    }

    /// An ACK arrived while the window may grow: `ack` is the new `snd_una`, `acked` the packets newly (s)acked.
    #[inline]
    pub fn cong_avoid(&mut self, conn: &mut Conn, ack: u32, acked: u32) {
        if let Some(hook) = self.algorithm.raw.ops.cong_avoid {
            self.enter(conn);
            // SAFETY: as for every hook, see `enter`.
            unsafe { hook(std::ptr::from_mut(self), ack, acked) };
            self.publish(conn);
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
        let ssthresh = unsafe { hook(std::ptr::from_mut(self)) };
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
            unsafe { hook(std::ptr::from_mut(self), state as u8) };
        }
        self.tp.ca_state = state as u8;
        self.publish(conn);
    }

    /// Something happened that some algorithms want to know.
    #[inline]
    pub fn cwnd_event(&mut self, conn: &mut Conn, event: CaEvent) {
        if let Some(hook) = self.algorithm.raw.ops.cwnd_event {
            self.enter(conn);
            // SAFETY: as for every hook, see `enter`.
            unsafe { hook(std::ptr::from_mut(self), event as c_int) };
            self.publish(conn);
        }
    }

    /// Packets were acknowledged, in any state; before [`Self::cong_avoid`] of the same ACK.
    #[inline]
    pub fn pkts_acked(&mut self, conn: &mut Conn, sample: &AckSample) {
        if let Some(hook) = self.algorithm.raw.ops.pkts_acked {
            self.enter(conn);
            // SAFETY: as for every hook, see `enter`; the sample is a valid `struct ack_sample`.
            unsafe { hook(std::ptr::from_mut(self), sample) };
            self.publish(conn);
        }
    }

    /// The reduction was a mistake: the window to return to, packets.
    #[inline]
    pub fn undo_cwnd(&mut self, conn: &mut Conn) -> u32 {
        let Some(hook) = self.algorithm.raw.ops.undo_cwnd else {
            return self.tp.snd_cwnd.max(self.tp.prior_cwnd);
        };
        self.enter(conn);
        // SAFETY: as for every hook, see `enter`.
        let cwnd = unsafe { hook(std::ptr::from_mut(self)) };
        self.publish(conn);
        cwnd
    }

    /// The whole ACK of a rate-based algorithm (see [`Algorithm::has_cong_control`]).
    #[inline]
    pub fn cong_control(&mut self, conn: &mut Conn, ack: u32, flag: u32, rs: &RateSample) {
        if let Some(hook) = self.algorithm.raw.ops.cong_control {
            self.enter(conn);
            // SAFETY: as for every hook, see `enter`; the sample is a valid `struct rate_sample`.
            unsafe { hook(std::ptr::from_mut(self), ack, flag as c_int, rs) };
            self.publish(conn);
        }
    }

    /// The slots of the subflows that the algorithm wants to become backups since the last call: bit i is slot i.
    #[inline]
    pub fn take_backups_wanted(&mut self) -> u8 {
        std::mem::take(&mut self.backups_wanted)
    }

    /// Publishes the subflow's slot; needed only after the engine itself changed `snd_cwnd`, `snd_ssthresh` or
    /// `srtt_us` outside a hook and wants the siblings to see it before this subflow's next hook.
    #[inline]
    pub fn publish(&mut self, conn: &mut Conn) {
        if self.algorithm.coupled() {
            self.conn = conn.table();
            // SAFETY: `self` is a valid socket whose table pointer was just set.
            unsafe { ffi::mptcplab_cc_publish(std::ptr::from_ref(self)) };
        }
    }

    /// The fraction of a packet that the hooks keep, Q40, and the window that it belongs to.
    pub(crate) fn kept_credit(&self) -> (u32, i64) {
        (self.credit_cwnd, self.credit_q40)
    }

    pub(crate) fn set_credit(&mut self, cwnd: u32, credit_q40: i64) {
        (self.credit_cwnd, self.credit_q40) = (cwnd, credit_q40);
    }

    /// Fraction of a packet on top of `snd_cwnd` that the algorithm has earned, packets.
    pub fn credit(&self) -> f64 {
        // SAFETY: reads the socket only.
        let credit = unsafe { ffi::mptcplab_cc_credit_q40(std::ptr::from_ref(self)) };
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

    /// Prepares a hook call. After it, and until the hook returns, `self` is a valid `struct sock`: its parameters
    /// were checked in `new`, and for a coupled algorithm `conn` points to the caller's table, borrowed for the call.
    #[inline]
    fn enter(&mut self, conn: &mut Conn) {
        if self.algorithm.coupled() {
            self.conn = conn.table();
        }
    }
}
