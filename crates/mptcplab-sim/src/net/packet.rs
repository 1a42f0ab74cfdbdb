//! The simulated packet: 24 bytes, passed by value, so that a link's ring holds 32 bytes per packet.
//!
//! Sequence numbers count segments, not bytes: every segment is one packet and, except for the last one of a
//! transfer, full. Headers are accounted in `len`.

use mptcplab_model::link::Packet as LinkPacket;

/// Type of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Kind {
    /// Data segment, forward.
    Data = 0,
    /// Acknowledgement, reverse.
    Ack = 1,
    /// SYN, forward.
    Syn = 2,
    /// SYN/ACK, reverse.
    SynAck = 3,
    /// Third packet of the handshake of an MP_JOIN, forward.
    JoinAck = 4,
    /// Fourth packet, which makes a joined subflow usable, reverse.
    JoinDone = 5,
    /// UDP datagram or SCTP packet, forward.
    Other = 6,
    /// SCTP packet, reverse.
    OtherBack = 7,
}

const SUBFLOW_BITS: u32 = 20;
const HOP_SHIFT: u32 = SUBFLOW_BITS;
const HOP_ONE: u32 = 1 << HOP_SHIFT;
const HOP_MASK: u32 = 0x3f << HOP_SHIFT;
const KIND_SHIFT: u32 = 26;
const ECT: u32 = 1 << 29;
const CE: u32 = 1 << 30;
/// On an ACK: ECN echo. On data: CWR, the sender has reduced.
const ECHO: u32 = 1 << 31;

/// Most subflows and UDP streams of one connected part of a topology.
pub(crate) const MAX_SUBFLOWS: usize = 1 << SUBFLOW_BITS;
/// Most links of a path.
pub(crate) const MAX_HOPS: usize = 0x3f;
/// Advertised window that means "no limit".
pub(crate) const WINDOW_UNLIMITED: u16 = u16::MAX;

/// Three words, so that a packet stays in registers until it is stored in a link's ring. If it were assembled in memory from
/// its fields, every copy would wait for the stores.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Packet {
    /// Low half: subflow (20 bits), hop (6), kind (3), ECT, CE, echo. High half: segment number.
    route_seq: u64,
    /// Low half: data sequence number. High half: timestamp.
    dsn_ts: u64,
    /// SACK handle (32 bits), length (16), window (16).
    rest: u64,
}

/// The fields that the transport sets.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Header {
    /// Data: segment number. ACK: next segment expected.
    pub(crate) seq: u32,
    /// Data: data sequence number. ACK: next data sequence number expected.
    pub(crate) dsn: u32,
    /// Timestamp option: the sender's clock on data, its echo on ACKs, in ticks of [`tick`].
    pub(crate) ts: u32,
    /// ACK: handle of the SACK blocks, 0 for none.
    pub(crate) sack: u32,
    /// ACK: advertised receive window in segments, scaled by the connection's shift. Data: 1 with PSH.
    pub(crate) wnd: u16,
}

impl Packet {
    /// A packet of `len` IP bytes at the start of its path.
    #[inline]
    pub(crate) fn new(kind: Kind, subflow: u32, len: u16, h: Header) -> Self {
        let meta = subflow | (kind as u32) << KIND_SHIFT;
        Self {
            route_seq: u64::from(meta) | u64::from(h.seq) << 32,
            dsn_ts: u64::from(h.dsn) | u64::from(h.ts) << 32,
            rest: u64::from(h.sack) | u64::from(len) << 32 | u64::from(h.wnd) << 48,
        }
    }

    /// The words, to pass a packet in registers.
    #[inline]
    pub(crate) fn words(self) -> [u64; 3] {
        [self.route_seq, self.dsn_ts, self.rest]
    }

    /// The packet with these words.
    #[inline]
    pub(crate) fn from_words(route_seq: u64, dsn_ts: u64, rest: u64) -> Self {
        Self {
            route_seq,
            dsn_ts,
            rest,
        }
    }

    #[inline]
    fn meta(&self) -> u32 {
        self.route_seq as u32
    }

    #[inline]
    pub(crate) fn seq(&self) -> u32 {
        (self.route_seq >> 32) as u32
    }

    #[inline]
    pub(crate) fn dsn(&self) -> u32 {
        self.dsn_ts as u32
    }

    #[inline]
    pub(crate) fn ts(&self) -> u32 {
        (self.dsn_ts >> 32) as u32
    }

    #[inline]
    pub(crate) fn sack(&self) -> u32 {
        self.rest as u32
    }

    pub(crate) fn clear_sack(&mut self) {
        self.rest &= !u64::from(u32::MAX);
    }

    /// Bytes of the IP packet.
    #[inline]
    pub(crate) fn len(&self) -> u16 {
        (self.rest >> 32) as u16
    }

    #[inline]
    pub(crate) fn wnd(&self) -> u16 {
        (self.rest >> 48) as u16
    }

    /// Whether a data packet carries PSH.
    #[inline]
    pub(crate) fn pushes(&self) -> bool {
        self.wnd() != 0
    }

    #[inline]
    pub(crate) fn subflow(&self) -> usize {
        (self.meta() & (HOP_ONE - 1)) as usize
    }

    #[inline]
    pub(crate) fn hop(&self) -> usize {
        ((self.meta() & HOP_MASK) >> HOP_SHIFT) as usize
    }

    #[inline]
    pub(crate) fn advance_hop(&mut self) {
        self.route_seq += u64::from(HOP_ONE);
    }

    #[inline]
    pub(crate) fn kind(&self) -> Kind {
        match (self.meta() >> KIND_SHIFT) & 7 {
            0 => Kind::Data,
            1 => Kind::Ack,
            2 => Kind::Syn,
            3 => Kind::SynAck,
            4 => Kind::JoinAck,
            5 => Kind::JoinDone,
            6 => Kind::Other,
            _ => Kind::OtherBack,
        }
    }

    /// Whether the packet travels from the data sender to the data receiver.
    #[inline]
    pub(crate) fn is_forward(&self) -> bool {
        // Odd kinds travel back.
        self.meta() & (1 << KIND_SHIFT) == 0
    }

    #[inline]
    pub(crate) fn set_ecn_capable(&mut self) {
        self.route_seq |= u64::from(ECT);
    }

    #[inline]
    pub(crate) fn is_ce(&self) -> bool {
        self.meta() & CE != 0
    }

    /// Whether the packet carries a congestion mark, an echo or the answer to one.
    #[inline]
    pub(crate) fn has_ecn_news(&self) -> bool {
        self.meta() & (CE | ECHO) != 0
    }

    #[inline]
    pub(crate) fn set_echo(&mut self) {
        self.route_seq |= u64::from(ECHO);
    }

    #[inline]
    pub(crate) fn echo(&self) -> bool {
        self.meta() & ECHO != 0
    }
}

impl LinkPacket for Packet {
    #[inline]
    fn ip_bytes(&self) -> u32 {
        u32::from(self.len())
    }
    #[inline]
    fn is_ecn_capable(&self) -> bool {
        self.meta() & ECT != 0
    }
    #[inline]
    fn mark_ce(&mut self) {
        self.route_seq |= u64::from(CE);
    }
    #[inline]
    fn flow_hash(&self) -> u64 {
        u64::from(self.meta() & (HOP_ONE - 1)) | u64::from(self.is_forward()) << 32
    }
}

/// A tick of the timestamp clock: a millisecond, Linux' default granularity.
const TICK_NS: u64 = 1_000_000;

/// The timestamp clock.
#[inline]
pub(crate) fn tick(now_ns: u64) -> u32 {
    (now_ns / TICK_NS) as u32
}

/// Time since an echoed timestamp, in ns: a number of ticks, at least one (`tcp_rtt_tsopt_us`).
pub(crate) fn ticks_since(now_ns: u64, echo: u32) -> u64 {
    u64::from(tick(now_ns).wrapping_sub(echo)).max(1) * TICK_NS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_do_not_overlap() {
        let mut p = Packet::new(
            Kind::JoinDone,
            (MAX_SUBFLOWS - 1) as u32,
            1500,
            Header::default(),
        );
        for _ in 0..MAX_HOPS {
            p.advance_hop();
        }
        p.set_echo();
        assert_eq!(
            (p.kind(), p.subflow(), p.hop()),
            (Kind::JoinDone, MAX_SUBFLOWS - 1, MAX_HOPS)
        );
        assert!(p.echo() && !p.is_ce() && !p.is_ecn_capable() && !p.is_forward());
        assert_eq!(size_of::<Packet>(), 24);
    }
    #[test]
    fn every_kind_comes_back_with_its_direction() {
        let kinds = [
            (Kind::Data, true),
            (Kind::Ack, false),
            (Kind::Syn, true),
            (Kind::SynAck, false),
            (Kind::JoinAck, true),
            (Kind::JoinDone, false),
            (Kind::Other, true),
            (Kind::OtherBack, false),
        ];
        for (kind, is_forward) in kinds {
            let p = Packet::new(kind, 5, 60, Header::default());
            assert_eq!((p.kind(), p.is_forward()), (kind, is_forward));
        }
    }

    #[test]
    fn a_flow_is_a_subflow_in_one_direction() {
        let hash = |kind, subflow, hops| {
            let mut p = Packet::new(kind, subflow, 1500, Header::default());
            (0..hops).for_each(|_| p.advance_hop());
            p.flow_hash()
        };
        let data = hash(Kind::Data, 5, 0);
        assert_eq!(data, hash(Kind::Data, 5, 3));
        assert_eq!(data, hash(Kind::Syn, 5, 0));
        assert_ne!(data, hash(Kind::Ack, 5, 0));
        let mut all: Vec<u64> = (0..64)
            .chain([MAX_SUBFLOWS as u32 - 1])
            .flat_map(|subflow| [hash(Kind::Data, subflow, 1), hash(Kind::Ack, subflow, 1)])
            .collect();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), 2 * 65);
    }
}
