//! `struct tcp_info`, with the fields that the running kernel has.
//!
//! The structure grows at its end: 232 bytes on Linux 6.1, 248 on 6.12, 280 on 7.2. Fields that every supported kernel
//! (6.1 and newer) has are plain; younger ones are `None` where the kernel's structure is shorter. Source:
//! include/uapi/linux/tcp.h.

use std::fmt;

use crate::netlink::{u16_at, u32_at, u64_at};

/// What Linux 6.1 gives; a shorter structure comes from a kernel that is not supported.
const LEAST_BYTES: usize = 232;
/// `tcpi_rto` and the like when nothing is known: snd_ssthresh before the first loss.
const INFINITE_SSTHRESH: u32 = 0x7fff_ffff;

/// A TCP socket's state (RFC 9293 section 3.3.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TcpState {
    Established,
    SynSent,
    SynReceived,
    FinWait1,
    FinWait2,
    TimeWait,
    Close,
    CloseWait,
    LastAck,
    Listen,
    Closing,
    /// A request that waits for the handshake's last segment.
    NewSynReceived,
    /// A state that this crate does not know, by the kernel's number.
    Unknown(u8),
}

/// The kernel's view of one TCP socket, in the kernel's units.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TcpInfo {
    pub state: TcpState,
    /// Congestion state: 0 open, 1 disorder, 2 CWR, 3 recovery, 4 loss.
    pub ca_state: u8,
    /// Timeouts in a row without an acknowledgement.
    pub retransmits: u8,
    /// Zero-window and keep-alive probes without an answer.
    pub probes: u8,
    /// How often the timeout has been doubled.
    pub backoff: u8,
    /// Negotiated options: 1 timestamps, 2 SACK, 4 window scaling, 8 ECN, 16 ECN seen.
    pub options: u8,
    /// The shift of windows received.
    pub snd_wscale: u8,
    /// The shift of windows sent.
    pub rcv_wscale: u8,
    /// Whether the delivery rate was measured while the application had too little to send.
    pub delivery_rate_app_limited: bool,
    /// Retransmission timeout, in microseconds.
    pub rto_us: u32,
    /// Delayed-acknowledgement timeout, in microseconds.
    pub ato_us: u32,
    /// Payload of a full segment sent, in bytes.
    pub snd_mss_bytes: u32,
    /// Payload of segments received, an estimate in bytes.
    pub rcv_mss_bytes: u32,
    /// Packets sent and not yet acknowledged.
    pub unacked_pkts: u32,
    /// Of these, acknowledged selectively.
    pub sacked_pkts: u32,
    /// Of these, thought lost.
    pub lost_pkts: u32,
    /// Of these, retransmitted and not yet acknowledged.
    pub retrans_pkts: u32,
    /// Milliseconds since data were sent.
    pub last_data_sent_ms: u32,
    /// Milliseconds since data arrived.
    pub last_data_recv_ms: u32,
    /// Milliseconds since an acknowledgement arrived.
    pub last_ack_recv_ms: u32,
    /// Path MTU, in bytes.
    pub pmtu_bytes: u32,
    /// The receive window's slow-start threshold, in bytes.
    pub rcv_ssthresh_bytes: u32,
    /// Smoothed round-trip time, in microseconds.
    pub rtt_us: u32,
    /// Mean deviation of the round-trip time, in microseconds.
    pub rttvar_us: u32,
    /// Slow-start threshold, in packets; [`TcpInfo::has_ssthresh`] tells whether it was ever set.
    pub snd_ssthresh_pkts: u32,
    /// Congestion window, in packets.
    pub snd_cwnd_pkts: u32,
    /// Segment size announced to the peer, in bytes.
    pub advmss_bytes: u32,
    /// Reordering that is tolerated, in packets.
    pub reordering_pkts: u32,
    /// Round-trip time as the receiver estimates it, in microseconds.
    pub rcv_rtt_us: u32,
    /// Receive buffer that auto-tuning aims at, in bytes.
    pub rcv_space_bytes: u32,
    /// Retransmissions, timeouts included, in packets.
    pub total_retrans_pkts: u32,
    /// Pacing rate, in bytes per second; `u64::MAX` without one.
    pub pacing_rate_bytes_per_s: u64,
    /// Upper limit of the pacing rate, in bytes per second; `u64::MAX` without one.
    pub max_pacing_rate_bytes_per_s: u64,
    /// Payload acknowledged, in bytes.
    pub bytes_acked: u64,
    /// Payload received in order, in bytes.
    pub bytes_received: u64,
    /// Segments sent, retransmissions and bare acknowledgements included.
    pub segs_out: u32,
    pub segs_in: u32,
    /// Payload written and not yet sent, in bytes.
    pub notsent_bytes: u32,
    /// Minimum round-trip time of the last minutes, in microseconds; `u32::MAX` before the first sample.
    pub min_rtt_us: u32,
    /// Segments received with payload.
    pub data_segs_in: u32,
    /// Segments sent with payload, retransmissions included.
    pub data_segs_out: u32,
    /// Last sample of the delivery rate, in bytes per second.
    pub delivery_rate_bytes_per_s: u64,
    /// Time during which data were in flight or waiting, in microseconds.
    pub busy_time_us: u64,
    /// Of this, time limited by the peer's window, in microseconds.
    pub rwnd_limited_us: u64,
    /// Of this, time limited by the send buffer, in microseconds.
    pub sndbuf_limited_us: u64,
    /// Packets delivered to the peer, spurious retransmissions included.
    pub delivered_pkts: u32,
    /// Of these, packets reported as marked by ECN.
    pub delivered_ce_pkts: u32,
    /// Payload sent, retransmissions included, in bytes.
    pub bytes_sent: u64,
    /// Payload retransmitted, in bytes.
    pub bytes_retrans: u64,
    /// Duplicate-SACK blocks received.
    pub dsack_dups: u32,
    /// Reordering events seen.
    pub reord_seen: u32,
    /// Packets received out of order.
    pub rcv_ooopack: u32,
    /// The peer's window, in bytes.
    pub snd_wnd_bytes: u32,
    /// The window announced to the peer, in bytes. Linux 6.2.
    pub rcv_wnd_bytes: Option<u32>,
    /// Route choices after timeouts. Linux 6.2.
    pub rehash: Option<u32>,
    pub total_rto: Option<u16>,
    /// Recoveries from timeouts. Linux 6.7.
    pub total_rto_recoveries: Option<u16>,
    /// Time in such recoveries, in milliseconds. Linux 6.7.
    pub total_rto_time_ms: Option<u32>,
}

impl TcpInfo {
    /// Decodes as many bytes as the kernel returned; `None` where they are fewer than on Linux 6.1.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        if bytes.len() < LEAST_BYTES {
            return None;
        }
        let (u32_, u64_) = (|at| u32_at(bytes, at), |at| u64_at(bytes, at));
        Some(Self {
            state: TcpState::from(bytes[0]),
            ca_state: bytes[1],
            retransmits: bytes[2],
            probes: bytes[3],
            backoff: bytes[4],
            options: bytes[5],
            snd_wscale: bytes[6] & 0xf,
            rcv_wscale: bytes[6] >> 4,
            delivery_rate_app_limited: bytes[7] & 1 == 1,
            rto_us: u32_(8)?,
            ato_us: u32_(12)?,
            snd_mss_bytes: u32_(16)?,
            rcv_mss_bytes: u32_(20)?,
            unacked_pkts: u32_(24)?,
            sacked_pkts: u32_(28)?,
            lost_pkts: u32_(32)?,
            retrans_pkts: u32_(36)?,
            // 40 is fackets, unused since Linux 4.15.
            last_data_sent_ms: u32_(44)?,
            // 48 is last_ack_sent, never filled.
            last_data_recv_ms: u32_(52)?,
            last_ack_recv_ms: u32_(56)?,
            pmtu_bytes: u32_(60)?,
            rcv_ssthresh_bytes: u32_(64)?,
            rtt_us: u32_(68)?,
            rttvar_us: u32_(72)?,
            snd_ssthresh_pkts: u32_(76)?,
            snd_cwnd_pkts: u32_(80)?,
            advmss_bytes: u32_(84)?,
            reordering_pkts: u32_(88)?,
            rcv_rtt_us: u32_(92)?,
            rcv_space_bytes: u32_(96)?,
            total_retrans_pkts: u32_(100)?,
            pacing_rate_bytes_per_s: u64_(104)?,
            max_pacing_rate_bytes_per_s: u64_(112)?,
            bytes_acked: u64_(120)?,
            bytes_received: u64_(128)?,
            segs_out: u32_(136)?,
            segs_in: u32_(140)?,
            notsent_bytes: u32_(144)?,
            min_rtt_us: u32_(148)?,
            data_segs_in: u32_(152)?,
            data_segs_out: u32_(156)?,
            delivery_rate_bytes_per_s: u64_(160)?,
            busy_time_us: u64_(168)?,
            rwnd_limited_us: u64_(176)?,
            sndbuf_limited_us: u64_(184)?,
            delivered_pkts: u32_(192)?,
            delivered_ce_pkts: u32_(196)?,
            bytes_sent: u64_(200)?,
            bytes_retrans: u64_(208)?,
            dsack_dups: u32_(216)?,
            reord_seen: u32_(220)?,
            rcv_ooopack: u32_(224)?,
            snd_wnd_bytes: u32_(228)?,
            rcv_wnd_bytes: u32_(232),
            rehash: u32_(236),
            total_rto: u16_at(bytes, 240),
            total_rto_recoveries: u16_at(bytes, 242),
            total_rto_time_ms: u32_(244),
        })
    }

    /// Whether a loss or a route ever set the slow-start threshold.
    #[must_use]
    pub fn has_ssthresh(&self) -> bool {
        self.snd_ssthresh_pkts < INFINITE_SSTHRESH
    }

    /// Packets in flight as the kernel counts them.
    #[must_use]
    pub fn inflight_pkts(&self) -> u32 {
        (self.unacked_pkts + self.retrans_pkts).saturating_sub(self.sacked_pkts + self.lost_pkts)
    }
}

impl From<u8> for TcpState {
    fn from(number: u8) -> Self {
        match number {
            1 => Self::Established,
            2 => Self::SynSent,
            3 => Self::SynReceived,
            4 => Self::FinWait1,
            5 => Self::FinWait2,
            6 => Self::TimeWait,
            7 => Self::Close,
            8 => Self::CloseWait,
            9 => Self::LastAck,
            10 => Self::Listen,
            11 => Self::Closing,
            12 => Self::NewSynReceived,
            other => Self::Unknown(other),
        }
    }
}

impl fmt::Display for TcpState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Established => "established",
            Self::SynSent => "syn-sent",
            Self::SynReceived | Self::NewSynReceived => "syn-received",
            Self::FinWait1 => "fin-wait-1",
            Self::FinWait2 => "fin-wait-2",
            Self::TimeWait => "time-wait",
            Self::Close => "closed",
            Self::CloseWait => "close-wait",
            Self::LastAck => "last-ack",
            Self::Listen => "listening",
            Self::Closing => "closing",
            Self::Unknown(number) => return write!(f, "state {number}"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every byte differs from its neighbours, so that a wrong offset shows.
    fn bytes(length: usize) -> Vec<u8> {
        (0..length).map(|at| at as u8).collect()
    }

    #[test]
    fn fields_lie_where_the_kernels_header_puts_them() {
        let info = TcpInfo::decode(&bytes(280)).unwrap();
        assert_eq!(
            (info.state, info.ca_state, info.backoff),
            (TcpState::Unknown(0), 1, 4)
        );
        assert_eq!(
            (
                info.snd_wscale,
                info.rcv_wscale,
                info.delivery_rate_app_limited
            ),
            (6, 0, true)
        );
        assert_eq!(info.rto_us, u32::from_ne_bytes([8, 9, 10, 11]));
        assert_eq!(info.rtt_us, u32::from_ne_bytes([68, 69, 70, 71]));
        assert_eq!(info.snd_cwnd_pkts, u32::from_ne_bytes([80, 81, 82, 83]));
        assert_eq!(
            info.bytes_acked,
            u64::from_ne_bytes([120, 121, 122, 123, 124, 125, 126, 127])
        );
        assert_eq!(
            info.delivered_pkts,
            u32::from_ne_bytes([192, 193, 194, 195])
        );
        assert_eq!(info.snd_wnd_bytes, u32::from_ne_bytes([228, 229, 230, 231]));
        assert_eq!(
            info.total_rto_recoveries,
            Some(u16::from_ne_bytes([242, 243]))
        );
        assert_eq!(
            info.total_rto_time_ms,
            Some(u32::from_ne_bytes([244, 245, 246, 247]))
        );
    }

    #[test]
    fn what_an_older_kernel_does_not_give_is_none() {
        let of_6_1 = TcpInfo::decode(&bytes(232)).unwrap();
        assert_eq!(
            (of_6_1.rcv_wnd_bytes, of_6_1.rehash, of_6_1.total_rto),
            (None, None, None)
        );
        let of_6_2 = TcpInfo::decode(&bytes(240)).unwrap();
        assert!(of_6_2.rcv_wnd_bytes.is_some() && of_6_2.rehash.is_some());
        assert_eq!((of_6_2.total_rto, of_6_2.total_rto_time_ms), (None, None));
        assert_eq!(TcpInfo::decode(&bytes(231)), None);
    }

    #[test]
    fn packets_in_flight_are_those_sent_less_those_that_left() {
        let mut info = TcpInfo::decode(&bytes(280)).unwrap();
        (
            info.unacked_pkts,
            info.retrans_pkts,
            info.sacked_pkts,
            info.lost_pkts,
        ) = (50, 3, 7, 11);
        assert_eq!(info.inflight_pkts(), 35);
    }
}
