//! A queue of waiting packets with their arrival times.

use std::collections::VecDeque;

/// A packet that waits for its service.
#[derive(Debug)]
pub(crate) struct QueuedPacket<P> {
    pub(crate) packet: P,
    /// Layer-2 length.
    pub(crate) bytes: u32,
    pub(crate) arrived_ns: u64,
}

/// First in, first out.
#[derive(Debug)]
pub(crate) struct Fifo<P> {
    packets: VecDeque<QueuedPacket<P>>,
    bytes: u64,
}

impl<P> Fifo<P> {
    pub(crate) fn new() -> Self {
        Self {
            packets: VecDeque::new(),
            bytes: 0,
        }
    }

    pub(crate) fn push(&mut self, waiting: QueuedPacket<P>) {
        self.bytes += u64::from(waiting.bytes);
        self.packets.push_back(waiting);
    }

    pub(crate) fn pop(&mut self) -> Option<QueuedPacket<P>> {
        let waiting = self.packets.pop_front()?;
        self.bytes -= u64::from(waiting.bytes);
        Some(waiting)
    }

    pub(crate) fn len(&self) -> usize {
        self.packets.len()
    }

    /// Layer-2 bytes of all waiting packets.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }
}
