//! Hand-made IP packets with right checksums.

use std::net::{Ipv4Addr, Ipv6Addr};

/// Protocol numbers.
pub const TCP: u8 = 6;
/// See [`TCP`].
pub const UDP: u8 = 17;

/// ECN field: capable of it, as a sender sets it.
pub const ECT0: u8 = 2;
/// ECN field: congestion experienced.
pub const CE: u8 = 3;

/// An IPv4 packet with this payload.
pub fn ipv4(
    source: Ipv4Addr,
    destination: Ipv4Addr,
    protocol: u8,
    ecn: u8,
    payload: &[u8],
) -> Vec<u8> {
    let mut packet = vec![0x45, ecn, 0, 0, 0x12, 0x34, 0x40, 0, 64, protocol, 0, 0];
    packet.extend(source.octets());
    packet.extend(destination.octets());
    let length = u16::try_from(20 + payload.len()).expect("an IP packet");
    packet[2..4].copy_from_slice(&length.to_be_bytes());
    let checksum = !sum(&packet);
    packet[10..12].copy_from_slice(&checksum.to_be_bytes());
    packet.extend(payload);
    packet
}

/// An IPv6 packet with this payload, which begins with a header of type `next_header`.
pub fn ipv6(
    source: Ipv6Addr,
    destination: Ipv6Addr,
    next_header: u8,
    ecn: u8,
    payload: &[u8],
) -> Vec<u8> {
    let length = u16::try_from(payload.len()).expect("an IP packet");
    // Traffic class: DSCP 46 and the ECN field; flow label 0x12345.
    let class = 46 << 2 | ecn;
    let mut packet = vec![0x60 | class >> 4, class << 4 | 1, 0x23, 0x45];
    packet.extend(length.to_be_bytes());
    packet.extend([next_header, 64]);
    packet.extend(source.octets());
    packet.extend(destination.octets());
    packet.extend(payload);
    packet
}

/// A UDP datagram; its checksum is 0, which means none.
pub fn udp(source_port: u16, destination_port: u16, data: &[u8]) -> Vec<u8> {
    let length = u16::try_from(8 + data.len()).expect("a UDP datagram");
    let words = [source_port, destination_port, length, 0];
    let mut datagram: Vec<u8> = words.iter().flat_map(|word| word.to_be_bytes()).collect();
    datagram.extend(data);
    datagram
}

/// A TCP segment with 12 bytes of options; its checksum is not filled in.
pub fn tcp(source_port: u16, destination_port: u16, data: &[u8]) -> Vec<u8> {
    let mut segment = vec![0; 32];
    segment[0..2].copy_from_slice(&source_port.to_be_bytes());
    segment[2..4].copy_from_slice(&destination_port.to_be_bytes());
    segment[12] = 8 << 4;
    segment.extend(data);
    segment
}

/// Whether an IPv4 header's checksum is right (RFC 1071).
pub fn header_checksum_is_right(packet: &[u8]) -> bool {
    sum(&packet[..20]) == 0xffff
}

/// One's complement sum of 16-bit words.
fn sum(bytes: &[u8]) -> u16 {
    let words = bytes
        .chunks(2)
        .map(|word| u32::from(u16::from_be_bytes([word[0], word[1]])));
    let mut sum: u32 = words.sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}
