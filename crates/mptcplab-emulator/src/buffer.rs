//! A pool of packet buffers, so that moving a packet allocates nothing.

use crate::header::{self, Header};
use mptcplab_model::link::Packet;
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// Initial size of a buffer: more than an Ethernet MTU.
const INITIAL_BYTES: usize = 2048;
/// Buffers allocated at the start, so that the first packets cause no page faults.
const INITIAL_BUFFERS: usize = 1024;

/// The free buffers.
#[derive(Debug)]
pub(crate) struct Pool {
    free: RefCell<Vec<Box<[u8]>>>,
    /// Size of a buffer; it grows to fit the largest packet.
    bytes: Cell<usize>,
}

/// An IP packet and the parsed values of its headers. Its memory returns to the pool when it is dropped.
#[derive(Debug)]
pub(crate) struct Buffer {
    memory: Box<[u8]>,
    len: u32,
    /// Its position among the packets that entered its link, from 0.
    pub(crate) number: u64,
    /// Index of its address pair, if that is one of the set-up.
    pub(crate) pair: Option<u32>,
    /// TCP or UDP payload, if it is a data packet.
    pub(crate) data_bytes: Option<u32>,
    flow_hash: u64,
    pool: Rc<Pool>,
}

impl Pool {
    pub(crate) fn new() -> Rc<Self> {
        // Filling with something else than 0 makes the kernel map the pages.
        let buffer = || vec![0xaa; INITIAL_BYTES].into_boxed_slice();
        let mut free: Vec<_> = std::iter::repeat_with(buffer)
            .take(INITIAL_BUFFERS)
            .collect();
        free.reserve(15 * INITIAL_BUFFERS);
        Rc::new(Self {
            free: RefCell::new(free),
            bytes: Cell::new(INITIAL_BYTES),
        })
    }

    /// Memory for a packet, with its old content.
    pub(crate) fn take(&self) -> Box<[u8]> {
        let free = self.free.borrow_mut().pop();
        free.unwrap_or_else(|| vec![0; self.bytes.get()].into_boxed_slice())
    }

    /// Memory of at least `bytes` bytes. From now on all buffers have this size; smaller ones are not used again.
    pub(crate) fn take_larger(&self, bytes: usize) -> Box<[u8]> {
        if bytes > self.bytes.get() {
            self.bytes.set(bytes.next_power_of_two());
            self.free.borrow_mut().clear();
        }
        self.take()
    }

    pub(crate) fn give(&self, memory: Box<[u8]>) {
        if memory.len() >= self.bytes.get() {
            self.free.borrow_mut().push(memory);
        }
    }
}

impl Buffer {
    /// The packet in the first `len` bytes of `memory`.
    pub(crate) fn new(
        memory: Box<[u8]>,
        len: usize,
        header: &Header,
        pair: Option<u32>,
        pool: &Rc<Pool>,
    ) -> Self {
        Self {
            memory,
            // An IP packet has at most 65,575 bytes.
            len: len as u32,
            number: 0,
            pair,
            data_bytes: header.data_bytes,
            flow_hash: header.flow_hash,
            pool: Rc::clone(pool),
        }
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.memory[..self.len as usize]
    }
}

impl Packet for Buffer {
    fn ip_bytes(&self) -> u32 {
        self.len
    }

    fn is_ecn_capable(&self) -> bool {
        header::is_ecn_capable(&self.memory)
    }

    fn mark_ce(&mut self) {
        header::mark_ce(&mut self.memory);
    }

    fn flow_hash(&self) -> u64 {
        self.flow_hash
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        self.pool.give(std::mem::take(&mut self.memory));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn buffer(pool: &Rc<Pool>, memory: Box<[u8]>) -> Buffer {
        let header = Header {
            addresses: (1, 2),
            flow_hash: 7,
            data_bytes: None,
        };
        Buffer::new(memory, 20, &header, None, pool)
    }

    #[test]
    fn memory_is_used_again() {
        let pool = Pool::new();
        let memory = pool.take();
        let address = memory.as_ptr();
        drop(buffer(&pool, memory));
        let again = pool.take();
        assert_eq!(again.as_ptr(), address);
    }

    #[test]
    fn larger_packets_make_all_memory_larger() {
        let pool = Pool::new();
        let early = buffer(&pool, pool.take());
        assert_eq!(pool.take_larger(9001).len(), 16_384);
        drop(early);
        assert_eq!(pool.take().len(), 16_384, "the small one is gone");
        assert_eq!(pool.take_larger(9001).len(), 16_384);
    }
}
