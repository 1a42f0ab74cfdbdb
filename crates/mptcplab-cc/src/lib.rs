//! Congestion control algorithms: the C files of `algorithms/`, compiled natively behind a safe interface.
//!
//! [`algorithms`] lists them, [`Sock`] is one subflow under one of them, [`Conn`] what the subflows of a connection
//! share. The hooks are Linux' own and are called in Linux' order: on an ACK [`Sock::pkts_acked`], then
//! [`Sock::cong_avoid`] if the window may grow; on a congestion event [`Sock::ssthresh`], then [`Sock::set_state`].
//!
//! `unsafe` code is used only where Rust calls C.

#[cfg(target_os = "linux")]
mod crash;
mod ffi;
// A program for a browser has no compiler at hand and cannot load libraries.
#[cfg(not(target_family = "wasm"))]
mod load;
mod registry;
pub mod replay;
mod sock;
mod tcp;
pub mod vectors;

#[cfg(target_os = "linux")]
pub use crash::EndlessLoopWatch;
#[cfg(not(target_family = "wasm"))]
pub use load::{BuildDirectory, LoadError, compile_library, load, load_library};
pub use registry::{
    Algorithm, FieldSpec, OLDEST_KERNEL, ParamError, ParamSpec, added, algorithms, find,
};
pub use sock::{Conn, MAX_PARAMS, MAX_SUBFLOWS, Sock};
pub use tcp::{AckSample, CaEvent, CaState, INFINITE_SSTHRESH, RateSample, TcpSock};
