//! Congestion control algorithms: the C files of `algorithms/`, compiled natively behind a safe interface.
//!
//! [`algorithms`] lists them, [`Sock`] is one subflow under one of them, [`Conn`] what the subflows of a connection
//! share. The hooks are Linux' own and are called in Linux' order: on an ACK [`Sock::pkts_acked`], then
//! [`Sock::cong_avoid`] if the window may grow; on a congestion event [`Sock::ssthresh`], then [`Sock::set_state`].
//!
//! `unsafe` code is where it crosses into C.

mod ffi;
mod registry;
pub mod replay;
mod sock;
pub mod vectors;

pub use registry::{Algorithm, FieldSpec, OLDEST_KERNEL, ParamError, ParamSpec, algorithms, find};
pub use sock::{
    AckSample, CaEvent, CaState, Conn, INFINITE_SSTHRESH, MAX_PARAMS, MAX_SUBFLOWS, RateSample,
    Sock, TcpSock,
};
