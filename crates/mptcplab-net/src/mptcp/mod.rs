//! MPTCP's kernel interfaces: the path manager, its events, and the counters of connections and subflows.

mod events;
mod info;
mod path_manager;

pub use events::{Event, EventKind, Events};
pub use info::{FullInfo, MptcpInfo, Subflow, full_info, info, tcp_info};
pub use path_manager::{Endpoint, Limits, LocalAddress, PathManager};

/// The protocol number of MPTCP sockets, `IPPROTO_MPTCP`.
pub const IPPROTO_MPTCP: i32 = 262;
