//! Headers of the packets of TCP and MPTCP, on which the size of a packet and the room for SACK blocks depend.

use crate::run::TcpFlow;

/// IP (20), TCP (20) and timestamp (12; RFC 7323 section 3.2) bytes.
pub const TCP_HEADER_BYTES: u16 = 52;
/// Room for TCP options beside timestamps.
const OPTION_BYTES: u16 = 40 - 12;
/// Two bytes of padding, kind and length of the SACK option, and each of its blocks (RFC 2018 section 3).
const SACK_BYTES: u16 = 4;
const SACK_BLOCK_BYTES: u16 = 8;

/// The widths of the numbers in the DSS option of MPTCP (RFC 8684 section 3.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Dss {
    /// 32 bits everywhere, as in the out-of-tree kernel.
    #[default]
    Short,
    /// Upstream Linux maps data with 64-bit numbers, acknowledges them with 64 bits, and puts an acknowledgement of 32
    /// bits on data packets of a connection that receives nothing.
    Linux,
}

impl Dss {
    /// The resolved scenario has the name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Short => "short",
            Self::Linux => "linux",
        }
    }

    /// Bytes of the option, padded, on a data packet: 4 of header, DATA_ACK, data sequence number, 6 of mapping.
    #[must_use]
    pub fn data_bytes(self) -> u16 {
        match self {
            Self::Short => 20,
            Self::Linux => 24,
        }
    }

    /// Bytes of the option on a pure ACK: 4 of header and DATA_ACK.
    fn ack_bytes(self) -> u16 {
        match self {
            Self::Short => 8,
            Self::Linux => 12,
        }
    }
}

impl TcpFlow {
    /// Bytes of the headers of a data packet.
    #[must_use]
    pub fn data_header_bytes(&self) -> u16 {
        TCP_HEADER_BYTES + self.dss().map_or(0, Dss::data_bytes)
    }

    /// Bytes of an ACK without SACK blocks.
    #[must_use]
    pub fn ack_bytes(&self) -> u16 {
        TCP_HEADER_BYTES + self.dss().map_or(0, Dss::ack_bytes)
    }

    /// SACK blocks that fit into an ACK.
    #[must_use]
    pub fn sack_blocks(&self) -> u8 {
        let room = OPTION_BYTES - self.dss().map_or(0, Dss::ack_bytes) - SACK_BYTES;
        // At most 3.
        (room / SACK_BLOCK_BYTES) as u8
    }

    fn dss(&self) -> Option<Dss> {
        self.mptcp.then_some(self.options.dss)
    }
}
