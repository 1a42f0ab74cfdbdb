//! TCP segments over IPv4 as bytes (RFC 791, RFC 9293), with the options of the scripts: SACK and timestamps.

use std::net::Ipv4Addr;

pub(crate) const SYN: u8 = 0x02;
pub(crate) const PSH: u8 = 0x08;
pub(crate) const ACK: u8 = 0x10;
pub(crate) const ECE: u8 = 0x40;
pub(crate) const CWR: u8 = 0x80;

/// The ECN field of IP: capable, and marked (RFC 3168).
pub(crate) const CAPABLE: u8 = 2;
pub(crate) const MARKED: u8 = 3;

/// Shift of the windows that the peer announces. A segment of 1448 bytes is a multiple of 8.
pub(crate) const WINDOW_SHIFT: u8 = 3;
const MSS_BYTES: u16 = 1460;
const TCP: u8 = 6;
const IP_BYTES: usize = 20;
const TCP_BYTES: usize = 20;

/// Where a segment comes from and goes to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Route {
    pub(crate) from: (Ipv4Addr, u16),
    pub(crate) to: (Ipv4Addr, u16),
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Segment {
    pub(crate) seq: u32,
    pub(crate) ack: u32,
    pub(crate) flags: u8,
    pub(crate) window: u16,
    /// Own and echoed timestamp.
    pub(crate) stamps: (u32, u32),
    pub(crate) sack: Vec<(u32, u32)>,
    pub(crate) window_shift: Option<u8>,
    pub(crate) payload_bytes: usize,
    /// The ECN field of IP.
    pub(crate) ecn: u8,
    /// TCP port of the sender.
    pub(crate) port: u16,
}

impl Segment {
    /// A packet of IP with complete checksums; the payload is zeros.
    pub(crate) fn bytes(&self, route: Route) -> Vec<u8> {
        let options = self.options();
        let header_bytes = TCP_BYTES + options.len();
        let mut tcp = Vec::with_capacity(header_bytes + self.payload_bytes);
        tcp.extend(route.from.1.to_be_bytes());
        tcp.extend(route.to.1.to_be_bytes());
        tcp.extend(self.seq.to_be_bytes());
        tcp.extend(self.ack.to_be_bytes());
        tcp.extend([((header_bytes / 4) as u8) << 4, self.flags]);
        tcp.extend(self.window.to_be_bytes());
        // Checksum, below, and the urgent pointer.
        tcp.extend([0; 4]);
        tcp.extend(options);
        tcp.resize(header_bytes + self.payload_bytes, 0);
        let mut pseudo = Vec::new();
        pseudo.extend(route.from.0.octets());
        pseudo.extend(route.to.0.octets());
        pseudo.extend([0, TCP]);
        pseudo.extend((tcp.len() as u16).to_be_bytes());
        let sum = checksum(&[&pseudo, &tcp]);
        tcp[16..18].copy_from_slice(&sum.to_be_bytes());
        let mut ip = vec![0x45, self.ecn];
        ip.extend(((IP_BYTES + tcp.len()) as u16).to_be_bytes());
        // Identification, don't fragment, time to live, protocol, checksum.
        ip.extend([0, 0, 0x40, 0, 64, TCP, 0, 0]);
        ip.extend(route.from.0.octets());
        ip.extend(route.to.0.octets());
        let sum = checksum(&[&ip]);
        ip[10..12].copy_from_slice(&sum.to_be_bytes());
        ip.extend(tcp);
        ip
    }

    /// The options, in an order in which each part fills words of four bytes.
    fn options(&self) -> Vec<u8> {
        let mut options = vec![1, 1];
        if self.flags & SYN != 0 {
            options = vec![1, 3, 3, WINDOW_SHIFT, 2, 4];
            options.extend(MSS_BYTES.to_be_bytes());
            options.extend([4, 2]);
        }
        options.extend([8, 10]);
        options.extend(self.stamps.0.to_be_bytes());
        options.extend(self.stamps.1.to_be_bytes());
        if !self.sack.is_empty() {
            options.extend([1, 1, 5, (2 + 8 * self.sack.len()) as u8]);
            for (start, end) in &self.sack {
                options.extend(start.to_be_bytes());
                options.extend(end.to_be_bytes());
            }
        }
        options
    }

    /// A packet that the kernel sent; `None` if it is no TCP over IPv4.
    pub(crate) fn parse(packet: &[u8]) -> Option<Self> {
        let ip_bytes = usize::from(packet.first()? & 0xf) * 4;
        if packet[0] >> 4 != 4 || *packet.get(9)? != TCP {
            return None;
        }
        let tcp = packet.get(ip_bytes..)?;
        let u16_at = |at: usize| Some(u16::from_be_bytes(tcp.get(at..at + 2)?.try_into().ok()?));
        let header_bytes = usize::from(*tcp.get(12)? >> 4) * 4;
        let mut segment = Self {
            port: u16_at(0)?,
            seq: u32_at(tcp, 4)?,
            ack: u32_at(tcp, 8)?,
            flags: *tcp.get(13)?,
            window: u16_at(14)?,
            payload_bytes: tcp.len().checked_sub(header_bytes)?,
            ecn: packet[1] & 3,
            ..Self::default()
        };
        segment.read_options(tcp.get(TCP_BYTES..header_bytes)?)?;
        Some(segment)
    }

    fn read_options(&mut self, mut options: &[u8]) -> Option<()> {
        while let Some((&kind, rest)) = options.split_first() {
            match kind {
                0 => break,
                1 => options = rest,
                _ => {
                    let (option, rest) = options.split_at_checked(usize::from(*rest.first()?))?;
                    match kind {
                        3 => self.window_shift = Some(*option.get(2)?),
                        5 => {
                            let blocks = option.get(2..)?.chunks_exact(8);
                            let block = |b: &[u8]| Some((u32_at(b, 0)?, u32_at(b, 4)?));
                            self.sack = blocks.map(block).collect::<Option<_>>()?;
                        }
                        8 => self.stamps = (u32_at(option, 2)?, u32_at(option, 6)?),
                        _ => {}
                    }
                    options = rest;
                }
            }
        }
        Some(())
    }
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

/// The Internet checksum (RFC 1071) of parts of an even length, except for the last.
fn checksum(parts: &[&[u8]]) -> u16 {
    let mut sum = 0_u32;
    for part in parts {
        for pair in part.chunks(2) {
            sum += u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0));
        }
    }
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_segment_that_is_written_can_be_read_and_its_checksums_are_right() {
        let route = Route {
            from: (Ipv4Addr::new(10, 1, 0, 7), 4001),
            to: (Ipv4Addr::new(10, 1, 0, 9), 5002),
        };
        let segment = Segment {
            seq: 0xfedc_0001,
            ack: 77,
            flags: ACK | ECE,
            window: 1234,
            stamps: (8, 9),
            sack: vec![(100, 200), (300, 450)],
            window_shift: None,
            payload_bytes: 5,
            ecn: MARKED,
            port: 4001,
        };
        let bytes = segment.bytes(route);
        assert_eq!(Segment::parse(&bytes), Some(segment.clone()));
        assert_eq!(checksum(&[&bytes[..IP_BYTES]]), 0);
        let length = ((bytes.len() - IP_BYTES) as u16).to_be_bytes();
        let pseudo = [&bytes[12..20], &[0, TCP], &length].concat();
        assert_eq!(checksum(&[&pseudo, &bytes[IP_BYTES..]]), 0);
        let syn = Segment {
            flags: SYN,
            window_shift: Some(WINDOW_SHIFT),
            sack: Vec::new(),
            ..segment.clone()
        };
        assert_eq!(Segment::parse(&syn.bytes(route)), Some(syn.clone()));
        assert!(
            [&syn, &segment]
                .iter()
                .all(|one| one.options().len() % 4 == 0)
        );
        assert_eq!(Segment::parse(&bytes[..30]), None);
    }
}
