//! Headers of hand-made packets.

use super::*;
use packet::{CE, ECT0};
use std::net::{Ipv4Addr, Ipv6Addr};

#[allow(dead_code, unreachable_pub)]
#[path = "../../tests/common/packet.rs"]
mod packet;

const A: Ipv4Addr = Ipv4Addr::new(10, 0, 3, 1);
const B: Ipv4Addr = Ipv4Addr::new(10, 255, 0, 2);
const A6: Ipv6Addr = Ipv6Addr::new(0xfd00, 0, 0, 1, 0, 0, 0, 1);
const B6: Ipv6Addr = Ipv6Addr::new(0xfd00, 0, 0, 2, 0, 0, 0, 9);

fn data_bytes(packet: &[u8]) -> Option<u32> {
    parse(packet).expect("an IP packet").data_bytes
}

fn hash(packet: &[u8]) -> u64 {
    parse(packet).expect("an IP packet").flow_hash
}

#[test]
fn data_packets_are_told_from_others_and_their_payload_is_counted() {
    let v4 = |protocol, payload: &[u8]| data_bytes(&packet::ipv4(A, B, protocol, 0, payload));
    assert_eq!(v4(TCP, &packet::tcp(1, 2, &[7; 1436])), Some(1436));
    assert_eq!(v4(TCP, &packet::tcp(1, 2, &[])), None, "a pure ACK");
    assert_eq!(v4(UDP, &packet::udp(1, 2, &[7; 31])), Some(31));
    assert_eq!(v4(UDP, &packet::udp(1, 2, &[])), Some(0));
    assert_eq!(v4(1, &[8, 0, 0, 0, 0, 0, 0, 0]), None, "a ping");
    assert_eq!(v4(TCP, &[0; 7]), None, "no whole TCP header");
    let v6 = |next, payload: &[u8]| data_bytes(&packet::ipv6(A6, B6, next, 0, payload));
    assert_eq!(v6(TCP, &packet::tcp(1, 2, &[7; 5])), Some(5));
    assert_eq!(v6(58, &[143, 0, 0, 0]), None, "an MLD report");
}

#[test]
fn extension_headers_of_ipv6_are_passed_over() {
    // Hop-by-hop of 8 bytes, destination options of 16 bytes, then UDP.
    let mut payload = vec![60, 0, 5, 2, 0, 0, 1, 0];
    payload.extend([17, 1, 1, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    payload.extend(packet::udp(400, 500, &[1; 77]));
    let extended = packet::ipv6(A6, B6, 0, 0, &payload);
    assert_eq!(data_bytes(&extended), Some(77));
    let plain = packet::ipv6(A6, B6, UDP, 0, &packet::udp(400, 500, &[1; 77]));
    assert_eq!(hash(&extended), hash(&plain));
    let cut = packet::ipv6(A6, B6, 0, 0, &[60, 3, 0, 0, 0, 0, 0, 0]);
    assert_eq!(
        parse(&cut),
        None,
        "the extension header is longer than the packet"
    );
}

#[test]
fn fragments_of_a_datagram_belong_to_one_flow() {
    let mut first = packet::ipv4(A, B, UDP, 0, &packet::udp(4, 5, &[1; 1000]));
    first[6] = 0x20;
    let mut second = packet::ipv4(A, B, UDP, 0, &[1; 300]);
    second[6..8].copy_from_slice(&126_u16.to_be_bytes());
    assert_eq!(
        (data_bytes(&first), data_bytes(&second)),
        (Some(1000), Some(300))
    );
    assert_eq!(hash(&first), hash(&second));
    // The same in IPv6: the fragment header, with the offset in its upper 13 bits.
    let mut payload = vec![UDP, 0, 0, 1, 0, 0, 0, 9];
    payload.extend(packet::udp(4, 5, &[1; 1000]));
    let first = packet::ipv6(A6, B6, 44, 0, &payload);
    payload[2..4].copy_from_slice(&(126_u16 << 3).to_be_bytes());
    let second = packet::ipv6(A6, B6, 44, 0, &payload);
    assert_eq!(
        (data_bytes(&first), data_bytes(&second)),
        (Some(1000), Some(1008))
    );
    assert_eq!(hash(&first), hash(&second));
}

#[test]
fn what_is_not_one_whole_packet_is_refused() {
    let whole = packet::ipv4(A, B, UDP, 0, &packet::udp(1, 2, &[3; 40]));
    assert!(parse(&whole).is_some());
    assert_eq!(parse(&whole[..67]), None, "cut off");
    let longer = [&whole[..], &[0]].concat();
    assert_eq!(parse(&longer), None, "too long");
    assert_eq!(parse(&[]), None);
    assert_eq!(parse(&[0x55; 68]), None, "version 5");
    let mut short_header = whole.clone();
    short_header[0] = 0x44;
    assert_eq!(parse(&short_header), None, "a header of 16 bytes");
    let v6 = packet::ipv6(A6, B6, UDP, 0, &packet::udp(1, 2, &[3; 40]));
    assert!(parse(&v6).is_some());
    for length in 0..v6.len() {
        assert_eq!(parse(&v6[..length]), None, "{length}");
    }
}

#[test]
fn flows_differ_by_every_part_of_the_five_tuple() {
    let udp = |ports: (u16, u16)| packet::udp(ports.0, ports.1, &[0; 9]);
    let base = hash(&packet::ipv4(A, B, UDP, 0, &udp((7, 8))));
    let same = packet::ipv4(A, B, UDP, ECT0, &packet::udp(7, 8, &[1; 700]));
    assert_eq!(base, hash(&same));
    for other in [
        packet::ipv4(B, A, UDP, 0, &udp((7, 8))),
        packet::ipv4(A, A, UDP, 0, &udp((7, 8))),
        packet::ipv4(B, B, UDP, 0, &udp((7, 8))),
        packet::ipv4(A, B, UDP, 0, &udp((8, 7))),
        packet::ipv4(A, B, UDP, 0, &udp((7, 9))),
        packet::ipv4(A, B, TCP, 0, &packet::tcp(7, 8, &[])),
        packet::ipv6(A6, B6, UDP, 0, &udp((7, 8))),
    ] {
        assert_ne!(base, hash(&other), "{other:?}");
    }
}

#[test]
fn addresses_are_those_of_the_table() {
    let key = |source: IpAddr, destination: IpAddr| (address_key(source), address_key(destination));
    let v4 = parse(&packet::ipv4(A, B, UDP, 0, &packet::udp(1, 2, &[]))).expect("an IP packet");
    assert_eq!(v4.addresses, key(A.into(), B.into()));
    let v6 = parse(&packet::ipv6(A6, B6, UDP, 0, &packet::udp(1, 2, &[]))).expect("an IP packet");
    assert_eq!(v6.addresses, key(A6.into(), B6.into()));
}

#[test]
fn a_mark_keeps_the_checksum_right_and_the_rest_as_it_was() {
    // All values of the checksum's neighbourhood come up with 65,536 identifications.
    for identification in 0..=u16::MAX {
        for ecn in [1, ECT0, CE] {
            let mut marked = packet::ipv4(A, B, UDP, ecn, &[]);
            marked[4..6].copy_from_slice(&identification.to_be_bytes());
            // The sum changed with the identification: put the difference into the checksum by computing it anew.
            let fresh = with_checksum(&marked);
            let mut marked = fresh.clone();
            mark_ce(&mut marked);
            assert!(
                packet::header_checksum_is_right(&marked),
                "{identification} {ecn}"
            );
            assert_eq!(marked[1], CE);
            assert_eq!((marked[0], &marked[2..10]), (fresh[0], &fresh[2..10]));
            assert_eq!(marked[12..], fresh[12..]);
        }
    }
}

/// The header with its checksum computed anew.
fn with_checksum(header: &[u8]) -> Vec<u8> {
    let mut packet = header.to_vec();
    packet[10..12].fill(0);
    let sum: u32 = packet
        .chunks(2)
        .map(|w| u32::from(u16::from_be_bytes([w[0], w[1]])))
        .sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    let checksum = !((folded & 0xffff) + (folded >> 16)) as u16;
    packet[10..12].copy_from_slice(&checksum.to_be_bytes());
    packet
}

#[test]
fn ipv6_has_its_field_across_two_bytes() {
    for ecn in 0..4 {
        let mut packet = packet::ipv6(A6, B6, UDP, ecn, &packet::udp(1, 2, &[]));
        assert_eq!(is_ecn_capable(&packet), ecn != 0);
        let before = packet.clone();
        mark_ce(&mut packet);
        assert_eq!(packet[1], before[1] | 0x30, "flow label and DSCP stay");
        packet[1] = before[1];
        assert_eq!(packet, before);
    }
    for ecn in 0..4 {
        let packet = packet::ipv4(A, B, UDP, ecn, &packet::udp(1, 2, &[]));
        assert_eq!(is_ecn_capable(&packet), ecn != 0);
    }
}
