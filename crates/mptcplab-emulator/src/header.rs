//! Parsing of IP headers, and ECN marking: RFC 791, RFC 8200, RFC 3168.

use std::net::IpAddr;

const TCP: u8 = 6;
const UDP: u8 = 17;
/// IPv6 extension headers that are passed over (RFC 8200 section 4): hop-by-hop, routing, destination options.
const PASSED_OVER: [u8; 3] = [0, 43, 60];
const FRAGMENT: u8 = 44;
/// Length of an IPv6 header.
const IPV6_BYTES: usize = 40;
/// ECN field: congestion experienced.
const CE: u8 = 3;

/// Source and destination; IPv4 addresses as IPv4-mapped IPv6 addresses (`::ffff:a.b.c.d`).
pub(crate) type Addresses = (u128, u128);

/// The parsed headers of one packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) addresses: Addresses,
    /// Hash of addresses, protocol and ports; of addresses and protocol for fragments.
    pub(crate) flow_hash: u64,
    /// TCP or UDP payload, if the packet carries application data: TCP with payload, and UDP.
    pub(crate) data_bytes: Option<u32>,
}

/// The IP payload and its protocol.
struct Transport<'a> {
    protocol: u8,
    /// Does not begin at the start of the transport header.
    is_later_fragment: bool,
    is_fragment: bool,
    bytes: &'a [u8],
}

/// The address as a key of the table of pairs.
pub(crate) fn address_key(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(v4) => u128::from(v4.to_ipv6_mapped()),
        IpAddr::V6(v6) => u128::from(v6),
    }
}

/// Parses a packet; `None` if it is not one whole IP packet.
pub(crate) fn parse(packet: &[u8]) -> Option<Header> {
    let (addresses, transport) = match packet.first()? >> 4 {
        4 => parse_v4(packet)?,
        6 => parse_v6(packet)?,
        _ => return None,
    };
    Some(Header {
        addresses,
        flow_hash: transport.flow_hash(addresses),
        data_bytes: transport.data_bytes(),
    })
}

fn parse_v4(packet: &[u8]) -> Option<(Addresses, Transport<'_>)> {
    let header_bytes = usize::from(packet[0] & 15) * 4;
    if header_bytes < 20
        || packet.len() < header_bytes
        || usize::from(word(packet, 2)?) != packet.len()
    {
        return None;
    }
    let address = |at| Some((0xffff << 32) | u128::from(u32::from_be_bytes(array(packet, at)?)));
    // "More fragments" and the offset in units of 8 bytes.
    let (more, offset) = (packet[6] & 0x20 != 0, word(packet, 6)? & 0x1fff);
    let transport = Transport {
        protocol: packet[9],
        is_later_fragment: offset != 0,
        is_fragment: more || offset != 0,
        bytes: &packet[header_bytes..],
    };
    Some(((address(12)?, address(16)?), transport))
}

fn parse_v6(packet: &[u8]) -> Option<(Addresses, Transport<'_>)> {
    if IPV6_BYTES + usize::from(word(packet, 4)?) != packet.len() {
        return None;
    }
    let address = |at| Some(u128::from_be_bytes(array(packet, at)?));
    let addresses = (address(8)?, address(24)?);
    let mut transport = Transport {
        protocol: packet[6],
        is_later_fragment: false,
        is_fragment: false,
        bytes: &packet[IPV6_BYTES..],
    };
    // Each step takes at least 8 bytes.
    while transport.pass_extension()? {}
    Some((addresses, transport))
}

impl Transport<'_> {
    /// Skips one IPv6 extension header; `Some(false)` if there is none, `None` if it is truncated.
    fn pass_extension(&mut self) -> Option<bool> {
        let bytes = match self.protocol {
            _ if self.is_later_fragment => return Some(false),
            FRAGMENT => {
                self.is_later_fragment = word(self.bytes, 2)? >> 3 != 0;
                self.is_fragment = true;
                8
            }
            protocol if PASSED_OVER.contains(&protocol) => {
                (usize::from(*self.bytes.get(1)?) + 1) * 8
            }
            _ => return Some(false),
        };
        self.protocol = self.bytes[0];
        self.bytes = self.bytes.get(bytes..)?;
        Some(true)
    }

    fn data_bytes(&self) -> Option<u32> {
        let header_bytes = match self.protocol {
            _ if self.is_later_fragment => 0,
            TCP => usize::from(self.bytes.get(12)? >> 4) * 4,
            UDP => 8,
            _ => 0,
        };
        let data_bytes = self.bytes.len().checked_sub(header_bytes)?;
        let is_data = self.protocol == UDP || self.protocol == TCP && data_bytes > 0;
        // At most 65,535 bytes.
        is_data.then_some(data_bytes as u32)
    }

    fn flow_hash(&self, (source, destination): Addresses) -> u64 {
        let has_ports = matches!(self.protocol, TCP | UDP) && !self.is_fragment;
        let ports = array(self.bytes, 0)
            .filter(|_| has_ports)
            .map_or(0, u32::from_be_bytes);
        [
            source as u64,
            (source >> 64) as u64,
            destination as u64,
            (destination >> 64) as u64,
            u64::from(ports) << 8 | u64::from(self.protocol),
        ]
        .into_iter()
        .fold(0, mix)
    }
}

/// Adds a word to a hash: the finaliser of SplitMix64 (Steele, Lea & Flood 2014) on a sum that depends on the order.
fn mix(hash: u64, word: u64) -> u64 {
    let mut x = hash
        .rotate_left(23)
        .wrapping_add(word)
        .wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// Whether the ECN field says ECT(0), ECT(1) or CE. The packet must be one that [`parse`] accepts.
pub(crate) fn is_ecn_capable(packet: &[u8]) -> bool {
    match packet[0] >> 4 {
        4 => packet[1] & 3 != 0,
        // The traffic class lies across two bytes; its lower half is the upper half of the second.
        _ => packet[1] & 0x30 != 0,
    }
}

/// Sets the ECN field to CE. The packet must be one that [`parse`] accepts.
pub(crate) fn mark_ce(packet: &mut [u8]) {
    if packet[0] >> 4 == 6 {
        packet[1] |= CE << 4;
        return;
    }
    let before = u16::from_be_bytes([packet[0], packet[1]]);
    packet[1] |= CE;
    let after = u16::from_be_bytes([packet[0], packet[1]]);
    let checksum = u16::from_be_bytes([packet[10], packet[11]]);
    packet[10..12].copy_from_slice(&updated(checksum, before, after).to_be_bytes());
}

/// An internet checksum after one word under it changed (RFC 1624, equation 3): HC' = ~(~HC + ~m + m').
fn updated(checksum: u16, before: u16, after: u16) -> u16 {
    let sum = u32::from(!checksum) + u32::from(!before) + u32::from(after);
    let once = (sum & 0xffff) + (sum >> 16);
    !((once & 0xffff) + (once >> 16)) as u16
}

fn word(bytes: &[u8], at: usize) -> Option<u16> {
    array(bytes, at).map(u16::from_be_bytes)
}

fn array<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..at + N)?.try_into().ok()
}

#[cfg(test)]
mod tests;
