//! The two devices of the machine that only this process uses, by their I/O ports: one that stops the machine and one
//! that ends it. `python/mptcplab/engines/vm/qemu.py` adds them.

use crate::failure::Failure;
use mptcplab_doctor::errln;
use nix::errno::Errno;
use std::arch::asm;

/// QEMU's `pvpanic` stops the machine at the instruction that writes to it (`-action panic=pause`).
const STOP: (u16, u8) = (0x505, 1);
/// QEMU's `isa-debug-exit` ends the emulator with the exit code `value * 2 + 1`.
const EXIT: u16 = 0xf4;
/// Values for [`exit`]: the job's result is in the mailbox, and the machine failed.
pub(super) const DONE: u8 = 0x10;
pub(super) const FAILED: u8 = 0x11;

/// Stops the machine; returns when the host lets it continue.
pub(super) fn stop() -> Result<(), Failure> {
    write(STOP.0, STOP.1)
}

/// Ends the machine.
pub(super) fn exit(value: u8) -> ! {
    if let Err(failure) = write(EXIT, value) {
        errln!("error: {failure}");
    }
    // The emulator has ended, or it has no such device and reports a panic of the kernel.
    std::process::exit(1)
}

fn write(port: u16, value: u8) -> Result<(), Failure> {
    permit(port, true)?;
    // SAFETY: the ports belong to devices of the emulator that only this process uses; they do not touch its memory.
    unsafe { asm!("out dx, al", in("dx") port, in("al") value, options(nostack, preserves_flags)) };
    // The processes that this one starts would inherit it, and the kernel would load it at each of their turns.
    permit(port, false)
}

fn permit(port: u16, on: bool) -> Result<(), Failure> {
    // SAFETY: `ioperm` changes only what this process may do, and only this port.
    let result = unsafe { libc::ioperm(libc::c_ulong::from(port), 1, on.into()) };
    Errno::result(result).map(drop).map_err(|errno| {
        Failure::new(format!("I/O port {port:#x}: {errno}"))
            .hint("the kernel needs CONFIG_X86_IOPL_IOPERM and must not be locked down")
    })
}
