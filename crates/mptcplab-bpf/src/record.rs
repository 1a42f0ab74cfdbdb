//! Reads the records of an algorithm that was loaded in record mode.

use libbpf_rs::{MapCore, Object, RingBuffer, RingBufferBuilder};
use mptcplab_cc::replay::Record;
use std::sync::mpsc::{Receiver, channel};

/// The reader of one algorithm's ring buffer.
pub(crate) struct Recorder {
    ring: RingBuffer<'static>,
    records: Receiver<Record>,
}

impl std::fmt::Debug for Recorder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Recorder").finish_non_exhaustive()
    }
}

impl Recorder {
    pub(crate) fn new(object: &Object) -> libbpf_rs::Result<Self> {
        let map = object
            .maps()
            .find(|map| map.name() == "cc_records")
            .ok_or_else(|| crate::libbpf::missing_map("cc_records"))?;
        let (sender, records) = channel();
        let mut builder = RingBufferBuilder::new();
        builder.add(&map, move |bytes| {
            // Invariant: C and Rust agree on the size; both assert it at compile time.
            if let Some(record) = Record::from_bytes(bytes) {
                // The receiver lives as long as the ring.
                let _ = sender.send(record);
            }
            0
        })?;
        let ring = builder.build()?;
        Ok(Self { ring, records })
    }

    /// The records since the last call.
    pub(crate) fn drain(&mut self) -> Vec<Record> {
        let _ = self.ring.consume_raw();
        self.records.try_iter().collect()
    }
}
