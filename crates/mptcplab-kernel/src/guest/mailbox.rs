//! The memory that the machine shares with the host. `python/mptcplab/engines/vm/mailbox.py` is the other side and has
//! the same numbers.
//!
//! Three areas, each of which begins with the number of bytes that follow (8 bytes, little-endian): the job, what the
//! program prints, and the result. The length of the result is written last.

use crate::failure::Failure;
use nix::sys::mman::{MapFlags, ProtFlags, mmap};
use std::fs::OpenOptions;
use std::num::NonZeroUsize;
use std::ptr::NonNull;
use std::sync::atomic::{Ordering, fence};

/// The physical address: above everything else in the machine.
const ADDRESS: i64 = 1 << 32;
const MIB: usize = 1 << 20;
const SIZE: usize = 320 * MIB;
const JOB: (usize, usize) = (0, 32 * MIB);
const PRINTED: (usize, usize) = (32 * MIB, 32 * MIB);
const RESULT: (usize, usize) = (64 * MIB, 256 * MIB);
/// Bytes of an area's length.
const LENGTH: usize = 8;

/// The mailbox, mapped into this process, which is the only one in the machine that knows it.
pub(super) struct Mailbox {
    memory: NonNull<u8>,
    printed: usize,
}

impl Mailbox {
    pub(super) fn open() -> Result<Self, Failure> {
        let wrong = |error: std::io::Error| {
            Failure::new(format!("mailbox: /dev/mem: {error}"))
                .hint("the kernel needs CONFIG_DEVMEM and must not be locked down")
        };
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .open("/dev/mem")
            .map_err(wrong)?;
        let size = NonZeroUsize::new(SIZE).unwrap_or(NonZeroUsize::MIN);
        let protection = ProtFlags::PROT_READ | ProtFlags::PROT_WRITE;
        // SAFETY: the kernel chooses the address, and the command line of the machine keeps the kernel from using this
        // part of the memory itself. It stays mapped until the machine ends.
        let memory = unsafe { mmap(None, size, protection, MapFlags::MAP_SHARED, &file, ADDRESS) };
        Ok(Self {
            memory: memory.map_err(|errno| wrong(errno.into()))?.cast(),
            printed: 0,
        })
    }

    /// The job that the host put there.
    pub(super) fn job(&self) -> Result<Vec<u8>, Failure> {
        let mut length = [0; LENGTH];
        self.read(JOB.0, &mut length);
        let length = u64::from_le_bytes(length) as usize;
        if length == 0 || length > JOB.1 - LENGTH {
            return Err(Failure::new(format!("mailbox: a job of {length} bytes")));
        }
        let mut bytes = vec![0; length];
        self.read(JOB.0 + LENGTH, &mut bytes);
        Ok(bytes)
    }

    /// Passes on what the program printed.
    pub(super) fn print(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        if bytes.len() > PRINTED.1 - LENGTH - self.printed {
            return Err(too_much("the program's output", PRINTED.1));
        }
        self.write(PRINTED.0 + LENGTH + self.printed, bytes);
        self.printed += bytes.len();
        self.publish(PRINTED.0, self.printed);
        Ok(())
    }

    /// Begins again with an empty mailbox, which the next machine has.
    pub(super) fn forget_printed(&mut self) {
        self.printed = 0;
    }

    /// Delivers the result.
    pub(super) fn finish(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        if bytes.len() > RESULT.1 - LENGTH {
            return Err(too_much("the result", RESULT.1));
        }
        self.write(RESULT.0 + LENGTH, bytes);
        self.publish(RESULT.0, bytes.len());
        Ok(())
    }

    /// Writes the length of an area after its content.
    fn publish(&mut self, offset: usize, length: usize) {
        fence(Ordering::Release);
        self.write(offset, &(length as u64).to_le_bytes());
    }

    fn read(&self, offset: usize, to: &mut [u8]) {
        debug_assert!(offset + to.len() <= SIZE);
        // SAFETY: the callers stay within their areas, and while the machine runs, the host does not write to them.
        unsafe {
            std::ptr::copy_nonoverlapping(
                self.memory.as_ptr().add(offset),
                to.as_mut_ptr(),
                to.len(),
            );
        }
    }

    fn write(&mut self, offset: usize, from: &[u8]) {
        debug_assert!(offset + from.len() <= SIZE);
        // SAFETY: the callers stay within their areas.
        unsafe {
            std::ptr::copy_nonoverlapping(
                from.as_ptr(),
                self.memory.as_ptr().add(offset),
                from.len(),
            );
        }
    }
}

fn too_much(what: &str, limit: usize) -> Failure {
    Failure::new(format!("mailbox: {what} has more than {} MiB", limit / MIB))
        .hint("a shorter duration or a longer sample interval makes the trace smaller")
}
