//! The two devices of the machine that only this process uses, by their I/O ports: one that stops the machine and one
//! that ends it. `python/mptcplab/engines/vm/qemu.py` adds them.

use crate::failure::Failure;
use std::fs::OpenOptions;
use std::os::unix::fs::FileExt as _;

/// QEMU's `pvpanic` stops the machine at the instruction that writes to it (`-action panic=pause`).
const STOP: (u64, u8) = (0x505, 1);
/// QEMU's `isa-debug-exit` ends the emulator with the exit code `value * 2 + 1`.
const EXIT: u64 = 0xf4;
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
        eprintln!("error: {failure}");
    }
    // The emulator has ended, or it has no such device and reports a panic of the kernel.
    std::process::exit(1)
}

fn write(port: u64, value: u8) -> Result<(), Failure> {
    OpenOptions::new()
        .write(true)
        .open("/dev/port")
        .and_then(|ports| ports.write_all_at(&[value], port))
        .map_err(|error| {
            Failure::new(format!("I/O port {port:#x}: {error}"))
                .hint("the kernel needs CONFIG_DEVPORT and must not be locked down")
        })
}
