//! What takes the place of this module in a program for another processor: the engine vm emulates x86-64 only.

use crate::failure::Failure;

/// Refuses.
pub(crate) fn main() -> Result<u8, Failure> {
    Err(Failure::new(format!(
        "`guest` is for the machines of the engine vm, which emulates x86-64 only, and this program is for {}",
        std::env::consts::ARCH
    ))
    .hint("the simulator and the kernel engine run on this machine: mptcplab run X.toml --engine kernel"))
}
