//! The kinds of chunks, and the bytes that surround their payload.

/// IP (20), SCTP common header (12) and DATA chunk header (16).
pub(crate) const DATA_HEADER_BYTES: u16 = 48;

/// The chunk of a packet, in its window field, which SCTP has no other use for. Data and requests travel forward.
pub(crate) mod kind {
    pub(crate) const DATA: u16 = 0;
    pub(crate) const SACK: u16 = 1;
    pub(crate) const INIT: u16 = 2;
    pub(crate) const INIT_ACK: u16 = 3;
    pub(crate) const COOKIE_ECHO: u16 = 4;
    pub(crate) const COOKIE_ACK: u16 = 5;
}
