//! The sender's record of every segment in flight.

use crate::stream::seq_ring::SeqRing;

/// Scoreboard flags of a segment, as in Linux' `sacked` byte.
pub(crate) mod flag {
    /// Selectively acknowledged.
    pub(crate) const SACKED: u8 = 1;
    /// Considered lost.
    pub(crate) const LOST: u8 = 2;
    /// A retransmission of it is in flight.
    pub(crate) const RETRANS: u8 = 4;
    /// Was retransmitted at least once (its RTT is ambiguous).
    pub(crate) const EVER: u8 = 8;
    /// Its data were handed to another subflow.
    pub(crate) const REINJECTED: u8 = 16;
    /// RACK found it lost, and looks at it no more until it is sent again, not even after an undo (Linux takes it off
    /// `tsorted_sent_queue`).
    pub(crate) const FOUND: u8 = 32;
}

/// One segment in flight.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Segment {
    /// Time of its latest transmission.
    pub(crate) sent_ns: u64,
    /// Data sequence number it carries.
    pub(crate) dsn: u32,
    /// Bytes of its IP packet.
    pub(crate) len: u16,
    /// See [`flag`].
    pub(crate) flags: u8,
}

/// The segments in flight.
pub(crate) type Segments = SeqRing<Segment>;
