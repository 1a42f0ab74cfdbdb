//! Congestion control algorithms: the C files of `algorithms/`, compiled natively behind a safe interface.
//!
//! [`algorithms`] lists them, [`Sock`] is one subflow under one of them, [`Conn`] what the subflows of a connection
//! share. The hooks are Linux' own and are called in Linux' order: on an ACK [`Sock::pkts_acked`], then
//! [`Sock::cong_avoid`] if the window may grow; on a congestion event [`Sock::ssthresh`], then [`Sock::set_state`].
//!
//! This is the only crate with `unsafe` code: it crosses into C.

mod ffi;
mod registry;
mod sock;
pub mod vectors;

pub use registry::{Algorithm, FieldSpec, ParamError, ParamSpec, algorithms, find};
pub use sock::{
    AckSample, CaEvent, CaState, Conn, INFINITE_SSTHRESH, MAX_SUBFLOWS, RateSample, Sock, TcpSock,
};
