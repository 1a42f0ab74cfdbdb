//! Assigns addresses: one source and one destination per subflow, unique in the run.

use mptcplab_scenario::Run;
use std::net::Ipv4Addr;

/// The addresses of a subflow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Endpoints {
    pub(crate) source: Ipv4Addr,
    pub(crate) destination: Ipv4Addr,
}

/// Most subflows of a run: their addresses are 10.1.0.1 to 10.1.255.250, and the same in 10.2.
pub(super) const MAX_ADDRESSES: usize = 256 * HOSTS;
/// The last byte of an address is between 1 and this number.
const HOSTS: usize = 250;

/// The addresses of every subflow of every flow, assigned in file order.
pub(super) fn assign(run: &Run) -> Vec<Vec<Endpoints>> {
    let mut next = 0;
    run.flows
        .iter()
        .map(|flow| {
            let count = super::paths(flow).len();
            let mine = (next..next + count).map(endpoints).collect();
            next += count;
            mine
        })
        .collect()
}

fn endpoints(index: usize) -> Endpoints {
    // Both fit a byte: `unsupported_settings` bounds the number of subflows.
    let (high, low) = ((index / HOSTS) as u8, (index % HOSTS) as u8 + 1);
    Endpoints {
        source: Ipv4Addr::new(10, 1, high, low),
        destination: Ipv4Addr::new(10, 2, high, low),
    }
}
