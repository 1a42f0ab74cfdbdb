//! Repeats calls of an algorithm's hooks, recorded in the kernel, on the native build.
//!
//! Both builds come from the same C file, and a hook depends on nothing that is not in the record, so both must leave the
//! same state, bit for bit.

use crate::ffi::{self, Slot, Table};
use crate::registry::Algorithm;
use crate::sock::Sock;
use crate::tcp::{AckSample, RateSample, TcpSock};
use std::ffi::c_int;
use std::mem::{offset_of, size_of};

/// One call, as `algorithms/cc_record.h` lays it out.
#[repr(C)]
#[derive(Debug, Clone)]
pub struct Record {
    /// The connection, as a number of the kernel's.
    pub key: u64,
    op: u32,
    /// The subflow's slot in the connection's table.
    pub slot: u32,
    before: Before,
    after: After,
}

#[repr(C)]
#[derive(Debug, Clone)]
struct Before {
    tp: TcpSock,
    state: [u64; ffi::STATE_WORDS],
    credit_q40: i64,
    credit_cwnd: u32,
    reserved: u32,
    args: [u64; 3],
    rate: RateSample,
    conn: Table,
}

#[repr(C)]
#[derive(Debug, Clone)]
struct After {
    result: u64,
    sk_pacing_rate: u64,
    state: [u64; ffi::STATE_WORDS],
    credit_q40: i64,
    credit_cwnd: u32,
    snd_cwnd: u32,
    snd_ssthresh: u32,
    snd_cwnd_cnt: u32,
    sk_pacing_status: u32,
    reserved: u32,
    slot: Slot,
}

const _: () = assert!(
    size_of::<Record>() == 952,
    "cc_record.h has the same layout"
);

/// The hooks, numbered as in cc_record.h.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[expect(missing_docs, reason = "Linux' names")]
pub enum Op {
    Init,
    Release,
    Ssthresh,
    CongAvoid,
    SetState,
    CwndEvent,
    PktsAcked,
    UndoCwnd,
    CongControl,
}

impl Op {
    /// Every hook in the order of the numbers.
    pub const ALL: [Self; 9] = [
        Self::Init,
        Self::Release,
        Self::Ssthresh,
        Self::CongAvoid,
        Self::SetState,
        Self::CwndEvent,
        Self::PktsAcked,
        Self::UndoCwnd,
        Self::CongControl,
    ];
}

/// The native build and the kernel build did not leave the same state.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{op:?}: {what} is {native} natively and {kernel} in the kernel")]
pub struct Mismatch {
    pub op: Op,
    /// What differs.
    pub what: String,
    /// The native build's value.
    pub native: i128,
    /// The kernel's value.
    pub kernel: i128,
}

impl Record {
    /// A record from the ring buffer's bytes; `None` if they are not one.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        const TP: usize = offset_of!(Record, before) + offset_of!(Before, tp);
        const RATE: usize = offset_of!(Record, before) + offset_of!(Before, rate);
        const BOOLS: [usize; 4] = [
            TP + offset_of!(TcpSock, is_cwnd_limited),
            RATE + offset_of!(RateSample, is_app_limited),
            RATE + offset_of!(RateSample, is_retrans),
            RATE + offset_of!(RateSample, is_ack_delayed),
        ];
        let boolean = |at: &usize| bytes.get(*at).is_some_and(|&b| b <= 1);
        if bytes.len() < size_of::<Self>() || !BOOLS.iter().all(boolean) {
            return None;
        }
        // SAFETY: there are enough bytes, all members are integers, and the bools are 0 or 1.
        let record = unsafe { std::ptr::read_unaligned(bytes.as_ptr().cast::<Self>()) };
        ((record.op as usize) < Op::ALL.len() && (record.slot as usize) < ffi::MAX_SUBFLOWS)
            .then_some(record)
    }

    pub fn op(&self) -> Op {
        Op::ALL[self.op as usize]
    }

    /// The number of subflows in the connection's table, including those that have left.
    pub fn subflows(&self) -> u32 {
        self.before.conn.n_slots
    }

    /// The window in packets, before and after the call.
    pub fn windows(&self) -> (u32, u32) {
        (self.before.tp.snd_cwnd, self.after.snd_cwnd)
    }

    /// Calls the hook natively with the recorded input, and compares everything that it may change.
    ///
    /// `params` and `growth_per_ack` are those that the algorithm was loaded with.
    ///
    /// # Errors
    /// The first [`Mismatch`].
    ///
    /// # Panics
    /// If a parameter does not fit the algorithm.
    pub fn replay(
        &self,
        algorithm: &'static Algorithm,
        params: &[(String, u64)],
        growth_per_ack: bool,
    ) -> Result<(), Mismatch> {
        let mut sock = Sock::new(algorithm, params, growth_per_ack)
            .expect("parameters that the algorithm was loaded with");
        let mut table = self.before.conn.clone();
        sock.tp = self.before.tp.clone();
        sock.state = self.before.state;
        sock.set_credit(self.before.credit_cwnd, self.before.credit_q40);
        sock.slot = self.slot as u8;
        sock.conn = &raw mut table;
        let result = self.call(&mut sock);
        self.compare(&sock, result)?;
        if algorithm.coupled() && !matches!(self.op(), Op::Init | Op::Release) {
            if self.op() == Op::SetState {
                sock.tp.ca_state = self.before.args[0] as u8;
            }
            // SAFETY: a valid socket; its table lives until the end of this function.
            unsafe { ffi::mptcplab_cc_publish(sock.raw()) };
            self.compare_slot(&table.slot[self.slot as usize])?;
        }
        Ok(())
    }

    fn call(&self, sock: &mut Sock) -> u64 {
        let ops = &sock.algorithm().raw.ops;
        let sk = sock.raw();
        let [a, b, c] = self.before.args;
        // SAFETY: `sk` is a valid socket whose table outlives the call; samples are valid structures.
        unsafe {
            match self.op() {
                Op::Init => ops.init.map(|hook| hook(sk)),
                Op::Release => ops.release.map(|hook| hook(sk)),
                Op::Ssthresh => return ops.ssthresh.map_or(0, |hook| u64::from(hook(sk))),
                Op::CongAvoid => ops.cong_avoid.map(|hook| hook(sk, a as u32, b as u32)),
                Op::SetState => ops.set_state.map(|hook| hook(sk, a as u8)),
                Op::CwndEvent => ops.cwnd_event.map(|hook| hook(sk, a as c_int)),
                Op::PktsAcked => {
                    let sample = AckSample {
                        pkts_acked: a as u32,
                        rtt_us: b as i32,
                        in_flight: c as u32,
                    };
                    ops.pkts_acked.map(|hook| hook(sk, &raw const sample))
                }
                Op::CongControl => {
                    let rate = &raw const self.before.rate;
                    ops.cong_control
                        .map(|hook| hook(sk, a as u32, b as c_int, rate))
                }
                Op::UndoCwnd => return ops.undo_cwnd.map_or(0, |hook| u64::from(hook(sk))),
            };
        }
        0
    }

    fn compare(&self, sock: &Sock, result: u64) -> Result<(), Mismatch> {
        let after = &self.after;
        let (cwnd, credit) = sock.raw_credit();
        self.same("the result", result.into(), after.result.into())?;
        self.same("snd_cwnd", sock.tp.snd_cwnd.into(), after.snd_cwnd.into())?;
        self.same(
            "snd_ssthresh",
            sock.tp.snd_ssthresh.into(),
            after.snd_ssthresh.into(),
        )?;
        self.same(
            "snd_cwnd_cnt",
            sock.tp.snd_cwnd_cnt.into(),
            after.snd_cwnd_cnt.into(),
        )?;
        self.same(
            "sk_pacing_rate",
            sock.tp.sk_pacing_rate.into(),
            after.sk_pacing_rate.into(),
        )?;
        self.same(
            "sk_pacing_status",
            sock.tp.sk_pacing_status.into(),
            after.sk_pacing_status.into(),
        )?;
        self.same("the credit", credit.into(), after.credit_q40.into())?;
        self.same("the credit's window", cwnd.into(), after.credit_cwnd.into())?;
        for (i, (native, kernel)) in sock.state.iter().zip(&after.state).enumerate() {
            self.same(
                &format!("state word {i}"),
                (*native).into(),
                (*kernel).into(),
            )?;
        }
        Ok(())
    }

    /// Compares what siblings see, except `usable`, which the engines decide on.
    fn compare_slot(&self, native: &Slot) -> Result<(), Mismatch> {
        let kernel = &self.after.slot;
        self.same(
            "the published window and RTT",
            native.window_rtt.into(),
            kernel.window_rtt.into(),
        )?;
        self.same(
            "the published ssthresh",
            native.ssthresh.into(),
            kernel.ssthresh.into(),
        )?;
        self.same(
            "the published minimum RTT",
            native.min_rtt_us.into(),
            kernel.min_rtt_us.into(),
        )?;
        self.same(
            "the published state",
            native.state.into(),
            kernel.state.into(),
        )?;
        for (i, (native, kernel)) in native.words.iter().zip(&kernel.words).enumerate() {
            self.same(
                &format!("published word {i}"),
                (*native).into(),
                (*kernel).into(),
            )?;
        }
        Ok(())
    }

    fn same(&self, what: &str, native: i128, kernel: i128) -> Result<(), Mismatch> {
        if native == kernel {
            return Ok(());
        }
        Err(Mismatch {
            op: self.op(),
            what: what.to_owned(),
            native,
            kernel,
        })
    }
}
