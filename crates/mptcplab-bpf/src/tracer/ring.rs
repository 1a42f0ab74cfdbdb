//! The reader of a BPF ring buffer: it passes on all records without waiting and without copying.
//!
//! Layout and protocol are the kernel's (Documentation/bpf/ringbuf.rst): a page with the consumer's position, a page with
//! the producer's, then the data, mapped twice in a row so that a record never wraps.

use super::{Sample, TracerError};
use libbpf_rs::MapHandle;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

/// Length bits of a record's header: being written, and dropped by its writer.
const BUSY: u32 = 1 << 31;
const DISCARDED: u32 = 1 << 30;
const HEADER_BYTES: usize = 8;

/// A memory mapping that is removed when it is dropped.
#[derive(Debug)]
struct Mapping {
    start: NonNull<u8>,
    bytes: usize,
}

impl Mapping {
    fn new(map: BorrowedFd<'_>, offset: usize, bytes: usize, protection: i32) -> io::Result<Self> {
        // SAFETY: a fresh mapping of a file that we own; the kernel chooses the place.
        let start = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                bytes,
                protection,
                libc::MAP_SHARED,
                map.as_raw_fd(),
                offset as libc::off_t,
            )
        };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        NonNull::new(start.cast())
            .map(|start| Self { start, bytes })
            .ok_or_else(|| io::Error::other("mapped at address 0"))
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: exactly what mmap returned, unmapped once.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}

// SAFETY: the memory belongs to the process, not to a thread; the positions are accessed atomically.
unsafe impl Send for Mapping {}
// SAFETY: shared references read nothing that they could race on; draining takes `&mut`.
unsafe impl Sync for Mapping {}

/// One ring buffer with records of one type.
#[derive(Debug)]
pub(super) struct Ring {
    consumer: Mapping,
    producer: Mapping,
    page: usize,
    mask: usize,
}

impl Ring {
    /// Maps the ring buffer `map`, whose size is `bytes`.
    pub(super) fn new(map: &MapHandle, bytes: usize) -> Result<Self, TracerError> {
        let page = page_bytes();
        let failed = |source| TracerError::RingMap { bytes, source };
        let fd = map.as_fd();
        let writable = libc::PROT_READ | libc::PROT_WRITE;
        Ok(Self {
            consumer: Mapping::new(fd, 0, page, writable).map_err(failed)?,
            producer: Mapping::new(fd, page, page + 2 * bytes, libc::PROT_READ).map_err(failed)?,
            page,
            mask: bytes - 1,
        })
    }

    fn consumer_position(&self) -> &AtomicUsize {
        // SAFETY: the first page of the mapping begins with the position, aligned to the page.
        unsafe { self.consumer.start.cast().as_ref() }
    }

    fn producer_position(&self) -> &AtomicUsize {
        // SAFETY: as above; only loaded, since the page is read-only.
        unsafe { self.producer.start.cast().as_ref() }
    }

    /// Header of the record at `position`: its length and state.
    fn header(&self, position: usize) -> &AtomicU32 {
        let offset = self.page + (position & self.mask);
        // SAFETY: within the data, since the offset is masked; records begin at multiples of 8.
        unsafe { self.producer.start.add(offset).cast().as_ref() }
    }

    /// Passes every complete record to the callback and then frees its space. Returns the number of records.
    pub(super) fn drain(&mut self, each: &mut dyn FnMut(&Sample)) -> usize {
        let mut position = self.consumer_position().load(Ordering::Relaxed);
        let end = self.producer_position().load(Ordering::Acquire);
        let mut count = 0;
        while position < end {
            let header = self.header(position).load(Ordering::Acquire);
            if header & BUSY != 0 {
                break;
            }
            let bytes = (header & !DISCARDED) as usize;
            if header & DISCARDED == 0 && bytes == size_of::<Sample>() {
                each(self.record(position));
                count += 1;
            }
            position += (HEADER_BYTES + bytes).next_multiple_of(8);
            self.consumer_position().store(position, Ordering::Release);
        }
        count
    }

    fn record(&self, position: usize) -> &Sample {
        let offset = self.page + (position & self.mask) + HEADER_BYTES;
        // SAFETY: the header says that a whole record lies here; the data is mapped twice, so it does not wrap. It is
        // aligned to 8, plain integers for which every bit pattern is valid, and the kernel does not write it again
        // before the consumer's position passes it.
        unsafe { self.producer.start.add(offset).cast().as_ref() }
    }
}

/// Size of a memory page.
pub(super) fn page_bytes() -> usize {
    // SAFETY: only asks for a constant.
    let bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    usize::try_from(bytes).unwrap_or(4096)
}
