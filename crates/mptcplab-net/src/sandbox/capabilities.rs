//! Gives up every capability, or every one but those for the process's own network namespaces.

use std::io;

use rustix::thread::{
    CapabilitiesSecureBits, CapabilitySet, CapabilitySets, clear_ambient_capability_set,
    remove_capability_from_bounding_set, set_capabilities, set_capabilities_secure_bits,
    set_no_new_privs,
};

use crate::{NetError, Result};

/// Devices, addresses, routes and MPTCP, and to make and enter network namespaces.
const KEPT: CapabilitySet = CapabilitySet::NET_ADMIN.union(CapabilitySet::SYS_ADMIN);
/// Capabilities are numbered from 0; the kernel has no more than this.
const MOST: u32 = 64;

/// Reduces the sets of the calling thread, and makes sure that no program that it starts gets more: being user 0 of a user
/// namespace gives nothing any more.
pub(super) fn reduce() -> Result<()> {
    set_no_new_privs(true).map_err(failed)?;
    let bits = CapabilitiesSecureBits::NO_ROOT
        | CapabilitiesSecureBits::NO_ROOT_LOCKED
        | CapabilitiesSecureBits::NO_CAP_AMBIENT_RAISE
        | CapabilitiesSecureBits::NO_CAP_AMBIENT_RAISE_LOCKED;
    set_capabilities_secure_bits(bits).map_err(failed)?;
    clear_ambient_capability_set().map_err(failed)?;
    for number in 0..MOST {
        let one = CapabilitySet::from_bits_retain(1 << number);
        if KEPT.contains(one) {
            continue;
        }
        match remove_capability_from_bounding_set(one) {
            // This kernel has no capability with that number.
            Err(rustix::io::Errno::INVAL) => break,
            result => result.map_err(failed)?,
        }
    }
    keep(KEPT)
}

/// Gives up all capabilities of the calling thread, such as those that it has by its program file.
///
/// # Errors
///
/// [`NetError::Kernel`] when the kernel refuses.
pub fn give_up() -> Result<()> {
    set_no_new_privs(true).map_err(failed)?;
    clear_ambient_capability_set().map_err(failed)?;
    keep(CapabilitySet::empty())
}

fn keep(kept: CapabilitySet) -> Result<()> {
    let sets = CapabilitySets {
        effective: kept,
        permitted: kept,
        inheritable: CapabilitySet::empty(),
    };
    set_capabilities(None, sets).map_err(failed)
}

fn failed(errno: rustix::io::Errno) -> NetError {
    NetError::kernel("give up capabilities", io::Error::from(errno))
}
