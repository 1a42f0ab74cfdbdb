//! Side tables for the SACK blocks of packets in flight. Most packets carry none, so the packet itself has no field
//! for them.

use mptcplab_prefetch::prefetch;

/// Most SACK blocks an ACK can carry (three beside timestamps on plain TCP, and one D-SACK among them).
pub(crate) const MAX_BLOCKS: usize = 4;
/// In place of a handle: the ACK answers no segment, it announces a larger window.
pub(crate) const WINDOW_UPDATE: u32 = u32::MAX;

/// The SACK option of one ACK in flight.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct SackBlocks {
    /// Half-open ranges of segment numbers, most recent first.
    pub(crate) blocks: [(u32, u32); MAX_BLOCKS],
    /// How many are valid.
    pub(crate) len: u8,
    /// The first block reports a duplicate (RFC 2883).
    pub(crate) dsack: bool,
}

impl SackBlocks {
    pub(crate) fn as_slice(&self) -> &[(u32, u32)] {
        &self.blocks[..usize::from(self.len)]
    }

    pub(crate) fn push(&mut self, block: (u32, u32)) {
        self.blocks[usize::from(self.len)] = block;
        self.len += 1;
    }
}

/// The SACK options of ACKs in flight.
#[derive(Debug, Default)]
pub(crate) struct SackTable {
    slots: Vec<SackBlocks>,
    free: Vec<u32>,
}

impl SackTable {
    /// An option without blocks, and its handle, which is never 0.
    // The blocks are added in place: a copy of them would wait until they have been written.
    #[inline]
    pub(crate) fn store(&mut self) -> (&mut SackBlocks, u32) {
        let i = self.free.pop().unwrap_or_else(|| {
            self.slots.push(SackBlocks::default());
            self.slots.len() as u32 - 1
        });
        let blocks = &mut self.slots[i as usize];
        (blocks.len, blocks.dsack) = (0, false);
        (blocks, i + 1)
    }

    /// Have an option fetched into the cache; 0 has none.
    #[inline]
    pub(crate) fn prefetch(&self, handle: u32) {
        if let Some(blocks) = self.slots.get((handle as usize).wrapping_sub(1)) {
            prefetch(blocks);
        }
    }

    /// Take an option out of the table.
    pub(crate) fn take(&mut self, handle: u32) -> SackBlocks {
        let i = handle - 1;
        self.free.push(i);
        self.slots[i as usize]
    }

    /// Release the option of a packet that was lost; 0 means none, and neither has a window update one.
    pub(crate) fn release(&mut self, handle: u32) {
        if handle != 0 && handle != WINDOW_UPDATE {
            self.free.push(handle - 1);
        }
    }
}

/// The gap blocks of SCTP's SACKs in flight; a SACK may have as many as fit into a packet.
#[derive(Debug, Default)]
pub(crate) struct GapTable {
    slots: Vec<Vec<(u32, u32)>>,
    free: Vec<u32>,
}

impl GapTable {
    /// Store half-open ranges of TSNs; the handle is never 0.
    pub(crate) fn store(&mut self, blocks: &[(u32, u32)]) -> u32 {
        let handle = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Vec::new());
            self.slots.len() as u32
        });
        self.slots[handle as usize - 1].extend_from_slice(blocks);
        handle
    }

    /// Move the blocks of a SACK that arrived to the end of `out`; 0 has none.
    pub(crate) fn take(&mut self, handle: u32, out: &mut Vec<(u32, u32)>) {
        if handle != 0 {
            out.append(&mut self.slots[handle as usize - 1]);
            self.free.push(handle);
        }
    }

    /// Release the blocks of a SACK that was lost; 0 means none.
    pub(crate) fn release(&mut self, handle: u32) {
        if handle != 0 {
            self.slots[handle as usize - 1].clear();
            self.free.push(handle);
        }
    }
}
