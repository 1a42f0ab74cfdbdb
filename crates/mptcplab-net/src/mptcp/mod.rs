//! MPTCP's kernel interfaces: who makes subflows, what happens to them, how they fare.

mod events;
mod info;
mod path_manager;

pub use events::{Event, EventKind, Events};
pub use info::{FullInfo, MptcpInfo, Subflow, full_info, info, tcp_info};
pub use path_manager::{Endpoint, Limits, LocalAddress, PathManager};

/// The protocol number of MPTCP sockets, `IPPROTO_MPTCP`.
pub const IPPROTO_MPTCP: i32 = 262;
