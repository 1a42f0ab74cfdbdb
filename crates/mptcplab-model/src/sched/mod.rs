//! MPTCP packet schedulers: which there are ([`declarations`]), and their decisions as functions of what they can see of
//! the subflows ([`Path`]).
//!
//! An engine implements [`Path`] for its own subflows and keeps the little state that a scheduler has; the test vectors
//! implement it for numbers from a file. Nothing here sends, waits or knows the time. Arithmetic is in integers and exact: where a
//! rule compares quotients, both sides are multiplied out. The one exception says why.

mod blest;
mod cmtrr;
mod declare;
mod delayvar;
mod ecf;
mod linger;
mod minrtt;
mod path;
mod redundant;
mod repair;
mod roundrobin;
pub mod vectors;

pub use blest::{Lambda, SrttRange, Window, blest};
pub use cmtrr::next_destination;
pub use declare::{Choice, Declaration, Kind, MAX_PARAMS, declarations, find};
pub use delayvar::{delayvar, delayvar_order, is_stable};
pub use ecf::ecf;
pub use linger::{BURST_BYTES, Queue, linger};
pub use minrtt::{lowest_rtt, minrtt, minrtt_again};
pub use path::{INFINITE_SSTHRESH, Path, fastest, only_backups};
pub use redundant::redundant;
pub use repair::{may_resend, must_slow_down, slowed_down};
pub use roundrobin::roundrobin;

/// Most subflows of a connection.
pub const MAX_SUBFLOWS: usize = mptcplab_cc::MAX_SUBFLOWS;

/// A list of at most one entry per subflow, kept in place: decisions are made for every packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Few<T> {
    items: [T; MAX_SUBFLOWS],
    len: usize,
}

impl<T: Copy + Default> Few<T> {
    fn new() -> Self {
        Self {
            items: [T::default(); MAX_SUBFLOWS],
            len: 0,
        }
    }

    fn push(&mut self, item: T) {
        self.items[self.len] = item;
        self.len += 1;
    }
}

impl<T> std::ops::Deref for Few<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.items[..self.len]
    }
}
