//! The tracer's record, with the layout of `bpf/tracer.h`, and its interpretation.

use crate::system::jiffy_ns;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::OnceLock;

/// Bits of `flags`: enum trc_flag.
mod flag {
    pub(super) const NEW_RTT: u32 = 1 << 0;
    pub(super) const LOSS_EVENT: u32 = 1 << 1;
    pub(super) const RECOVERY_ENDED: u32 = 1 << 2;
    pub(super) const RTO: u32 = 1 << 3;
    pub(super) const ECN_EVENT: u32 = 1 << 4;
    pub(super) const LOCAL_EVENT: u32 = 1 << 5;
    pub(super) const UNDO: u32 = 1 << 6;
    pub(super) const TLP_SENT: u32 = 1 << 7;
    pub(super) const ESTABLISHED: u32 = 1 << 8;
    pub(super) const CLOSED: u32 = 1 << 9;
    pub(super) const MPTCP: u32 = 1 << 10;
    pub(super) const PARTIAL: u32 = 1 << 11;
    pub(super) const UNSEEN_ACKS: u32 = 1 << 12;
}

/// Bytes of the kernel's private part of a socket's entry: struct trc_memory.
const MEMORY_BYTES: usize = 64;
/// Bytes of a socket's entry: struct trc_socket.
pub(super) const SOCKET_BYTES: usize = size_of::<Sample>() + MEMORY_BYTES;

/// Longest retransmission timeout, Linux's `TCP_RTO_MAX`.
const RTO_MAX_US: u32 = 120_000_000;
/// Timeout before the first RTT sample (RFC 6298 2.1).
const RTO_INITIAL_US: u32 = 1_000_000;
/// Values of the kernel's `sk_state`.
const TCP_ESTABLISHED: u8 = 1;
const TCP_SYN_SENT: u8 = 2;
const TCP_SYN_RECV: u8 = 3;
const TCP_CLOSE: u8 = 7;

/// One end of a TCP connection: the other end is another socket, with `local` and `remote` exchanged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SocketKey {
    /// Cookie of its network namespace (`SO_NETNS_COOKIE`).
    pub cookie: u64,
    pub local: SocketAddrV4,
    pub remote: SocketAddrV4,
}

impl SocketKey {
    /// As the kernel side has it: struct trc_key.
    pub(super) fn to_bytes(self) -> [u8; 24] {
        let mut bytes = [0; 24];
        bytes[..8].copy_from_slice(&self.cookie.to_ne_bytes());
        bytes[8..12].copy_from_slice(&self.local.ip().octets());
        bytes[12..16].copy_from_slice(&self.remote.ip().octets());
        bytes[16..18].copy_from_slice(&self.local.port().to_ne_bytes());
        bytes[18..20].copy_from_slice(&self.remote.port().to_ne_bytes());
        bytes
    }
}

/// Which tracepoint wrote a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SampleKind {
    /// A segment arrived while data was outstanding; the record shows the socket before it was processed.
    Ack,
    /// A segment was retransmitted.
    Retransmit,
    /// The congestion state changes, as seen before it does.
    CaState {
        /// `tcp_ca_state` that is left: 0 open, 1 disorder, 2 cwr, 3 recovery, 4 loss.
        from: u8,
        /// `tcp_ca_state` that is entered.
        to: u8,
    },
    /// The connection's state changes.
    TcpState {
        /// `sk_state` that is left.
        from: u8,
        /// `sk_state` that is entered.
        to: u8,
    },
}

/// An event in a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// The handshake is over; value: its duration in ns, 0 if the other end began it.
    Established,
    /// The socket closed; value: 0.
    Closed,
    /// A reduction because of loss began; value: ssthresh in packets.
    LossEvent,
    /// Fast recovery or loss recovery ended; value: cwnd in packets.
    RecoveryEnded,
    /// A retransmission timeout fired; value: backoff exponent.
    Rto,
    /// A reduction because of an ECN echo; value: ssthresh in packets.
    EcnEvent,
    /// A reduction because a queue of this host was full; value: ssthresh in packets.
    LocalEvent,
    /// A reduction was undone; value: cwnd in packets.
    Undo,
    /// A tail loss probe was sent since the last record of this socket; value: 0.
    TlpSent,
}

/// Cumulative since the handshake; counted in the kernel, so that they are complete in every record.
///
/// The same meaning as in the simulator: the columns of the trace's table `subflow`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    /// Sum of all RTT samples, the handshake's included, in microseconds.
    pub rtt_sum_us: u64,
    /// Number of RTT samples.
    pub rtt_count: u64,
    /// Entries into fast recovery from outside a reduction, and losses repaired by a tail loss probe.
    pub loss_events: u64,
    /// Reductions because of ECN.
    pub ecn_events: u64,
    /// Reductions because a queue of this host was full; the simulator has none.
    pub local_events: u64,
    /// Retransmission timeouts after the handshake.
    pub rto_count: u64,
    /// Sum over timeouts of the time since the last ACK that advanced, in nanoseconds.
    pub rto_wait_ns: u64,
    /// Reductions undone as spurious.
    pub undo_count: u64,
    /// Tail loss probes sent.
    pub tlp_count: u64,
    /// Segments that arrived while data was outstanding.
    pub acks: u64,
}

/// struct trc_key.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
struct RawKey {
    cookie: u64,
    local_addr: [u8; 4],
    remote_addr: [u8; 4],
    local_port: u16,
    remote_port: u16,
    zero: u32,
}

/// State of a socket at one moment.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Sample {
    /// When, on CLOCK_MONOTONIC, in nanoseconds.
    pub t_ns: u64,
    key: RawKey,
    kind: u8,
    /// Congestion state: 0 open, 1 disorder, 2 cwr, 3 recovery, 4 loss.
    pub ca_state: u8,
    /// The kernel's `sk_state`: 1 established, 7 closed.
    pub tcp_state: u8,
    from: u8,
    flags: u32,
    /// Local token of the MPTCP connection; 0 for plain TCP and until it is known.
    pub token: u32,
    /// The kernel's number of the subflow in its connection, from 1; 0 for plain TCP and on kernels without it.
    pub subflow_id: u32,
    /// MPTCP address ID of the local address.
    pub local_id: u8,
    /// MPTCP address ID of the remote address.
    pub remote_id: u8,
    /// Timeouts in a row.
    pub retransmits: u8,
    /// Exponent of the timeout's backoff.
    pub backoff: u8,
    pacing_status: u32,
    /// Congestion window in packets.
    pub cwnd_pkts: u32,
    settled_cwnd: u32,
    /// Congestion window before the last reduction, in packets.
    pub prior_cwnd_pkts: u32,
    /// Slow start threshold in packets; 2147483647 is infinite.
    pub ssthresh_pkts: u32,
    /// Smoothed RTT in microseconds; 0 before the first sample.
    pub srtt_us: u32,
    /// Latest RTT sample in microseconds; see [`Sample::has_new_rtt`].
    pub rtt_us: u32,
    /// Minimum RTT of the filter window in microseconds; 0 before the first sample.
    pub min_rtt_us: u32,
    /// Mean deviation of the RTT in microseconds.
    pub mdev_us: u32,
    /// The variance term of the timeout in microseconds, already multiplied by 4.
    pub rttvar_us: u32,
    rto_jiffies: u32,
    /// Packets sent and not yet cumulatively acknowledged.
    pub packets_out: u32,
    /// Of those, selectively acknowledged.
    pub sacked_out: u32,
    /// Of those, considered lost.
    pub lost_out: u32,
    /// Of those, retransmitted and not yet acknowledged.
    pub retrans_out: u32,
    /// Payload bytes of a full segment.
    pub mss_bytes: u32,
    /// The peer's receive window in bytes.
    pub snd_wnd_bytes: u32,
    /// First sequence number that is not acknowledged.
    pub snd_una: u32,
    /// Next sequence number to send.
    pub snd_nxt: u32,
    delivered: u32,
    /// Packets delivered whose ACK echoed congestion, so far.
    pub delivered_ce_pkts: u32,
    /// Packets marked lost so far.
    pub lost_pkts: u32,
    total_retrans: u32,
    /// Data packets sent so far, retransmissions included.
    pub sent_pkts: u32,
    base_delivered: u32,
    base_retrans: u32,
    zero: u32,
    /// Bytes cumulatively acknowledged so far.
    pub acked_bytes: u64,
    pacing_rate: u64,
    /// Duration of the handshake in nanoseconds; 0 if the other end began it or it was not seen.
    pub handshake_ns: u64,
    /// What was counted so far.
    pub counters: Counters,
    cc: [u8; 16],
}

// The build fails here if one of the two declarations changes.
const _: () = assert!(size_of::<Sample>() == 280);

impl Sample {
    /// A record as the tracer's programs write it; `None` if the bytes are not one.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        if bytes.len() != size_of::<Self>() {
            return None;
        }
        // SAFETY: there are as many bytes as a record has, whose integers may have any value; it need not be aligned.
        Some(unsafe { bytes.as_ptr().cast::<Self>().read_unaligned() })
    }

    #[must_use]
    pub fn key(&self) -> SocketKey {
        let k = &self.key;
        SocketKey {
            cookie: k.cookie,
            local: SocketAddrV4::new(Ipv4Addr::from(k.local_addr), k.local_port),
            remote: SocketAddrV4::new(Ipv4Addr::from(k.remote_addr), k.remote_port),
        }
    }

    /// The tracepoint that wrote the record.
    #[must_use]
    pub fn kind(&self) -> SampleKind {
        match self.kind {
            0 => SampleKind::Ack,
            1 => SampleKind::Retransmit,
            2 => SampleKind::CaState {
                from: self.from,
                to: self.ca_state,
            },
            _ => SampleKind::TcpState {
                from: self.from,
                to: self.tcp_state,
            },
        }
    }

    /// The events in the record with their values, in the order in which they happened.
    pub fn events(&self) -> impl Iterator<Item = (Event, u64)> + '_ {
        let ssthresh = u64::from(self.ssthresh_pkts);
        [
            (flag::ESTABLISHED, Event::Established, self.handshake_ns),
            (flag::TLP_SENT, Event::TlpSent, 0),
            (flag::UNDO, Event::Undo, self.cwnd_pkts.into()),
            (
                flag::RECOVERY_ENDED,
                Event::RecoveryEnded,
                self.settled_cwnd.into(),
            ),
            (flag::LOSS_EVENT, Event::LossEvent, ssthresh),
            (flag::ECN_EVENT, Event::EcnEvent, ssthresh),
            (flag::LOCAL_EVENT, Event::LocalEvent, ssthresh),
            (flag::RTO, Event::Rto, self.backoff.into()),
            (flag::CLOSED, Event::Closed, 0),
        ]
        .into_iter()
        .filter(|(bit, ..)| self.flags & bit != 0)
        .map(|(_, event, value)| (event, value))
    }

    /// Whether `rtt_us` was sampled since this socket was last read.
    #[must_use]
    pub fn has_new_rtt(&self) -> bool {
        self.flags & flag::NEW_RTT != 0
    }

    /// Whether the socket is a subflow of an MPTCP connection that did not fall back to TCP.
    #[must_use]
    pub fn is_mptcp(&self) -> bool {
        self.flags & flag::MPTCP != 0
    }

    /// Whether the socket was established before the tracer watched it; its counters then begin when it was first read.
    #[must_use]
    pub fn is_partial(&self) -> bool {
        self.flags & flag::PARTIAL != 0
    }

    /// Whether data was acknowledged after this end closed its direction, where the kernel has no tracepoint: the RTT
    /// counters and `rtt_us` lack those samples. What the kernel counts itself is complete.
    #[must_use]
    pub fn has_unseen_acks(&self) -> bool {
        self.flags & flag::UNSEEN_ACKS != 0
    }

    /// Packets in flight as the sender estimates.
    #[must_use]
    pub fn inflight_pkts(&self) -> u32 {
        self.packets_out
            .wrapping_sub(self.sacked_out.wrapping_add(self.lost_out))
            .wrapping_add(self.retrans_out)
    }

    /// Data packets acknowledged since the handshake, by cumulative ACK or SACK; the FIN counts as one.
    #[must_use]
    pub fn acked_pkts(&self) -> u32 {
        self.delivered.wrapping_sub(self.base_delivered)
    }

    /// Retransmissions since the handshake.
    #[must_use]
    pub fn retx_pkts(&self) -> u32 {
        self.total_retrans.wrapping_sub(self.base_retrans)
    }

    /// The kernel's `tcpi_delivered`, which includes the SYN.
    #[must_use]
    pub fn kernel_delivered(&self) -> u32 {
        self.delivered
    }

    /// The kernel's `tcpi_total_retrans`, which includes the SYN.
    #[must_use]
    pub fn kernel_retrans(&self) -> u32 {
        self.total_retrans
    }

    /// Retransmission timeout without backoff, in microseconds.
    #[must_use]
    pub fn rto_us(&self) -> u32 {
        if self.srtt_us == 0 {
            return RTO_INITIAL_US;
        }
        self.srtt_us.saturating_add(self.rttvar_us).min(RTO_MAX_US)
    }

    /// Retransmission timeout as the kernel will set it next, backoff included, in microseconds.
    #[must_use]
    pub fn armed_rto_us(&self) -> u64 {
        static JIFFY_NS: OnceLock<u64> = OnceLock::new();
        u64::from(self.rto_jiffies) * JIFFY_NS.get_or_init(jiffy_ns) / 1000
    }

    /// Pacing rate in bit/s; 0 when the socket does not pace.
    #[must_use]
    pub fn pacing_bps(&self) -> u64 {
        if self.pacing_status == 0 {
            return 0;
        }
        self.pacing_rate.saturating_mul(8)
    }

    /// State as in the trace's table `subflow`: 0 closed, 1 handshake, 2 and up the congestion state.
    #[must_use]
    pub fn subflow_state(&self) -> u8 {
        match self.tcp_state {
            TCP_CLOSE => 0,
            TCP_SYN_SENT | TCP_SYN_RECV => 1,
            _ => self.ca_state.saturating_add(2),
        }
    }

    /// Whether the connection is established in both directions; only then is every ACK recorded.
    #[must_use]
    pub fn is_established(&self) -> bool {
        self.tcp_state == TCP_ESTABLISHED
    }

    /// Whether the connection is closed.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.tcp_state == TCP_CLOSE
    }

    /// Name of the congestion control that the socket runs.
    #[must_use]
    pub fn congestion_control(&self) -> String {
        let end = self.cc.iter().position(|&b| b == 0);
        String::from_utf8_lossy(&self.cc[..end.unwrap_or(self.cc.len())]).into_owned()
    }
}

/// The record at the start of a socket's entry.
pub(super) fn from_socket(entry: &[u8]) -> Option<Sample> {
    if entry.len() != SOCKET_BYTES {
        return None;
    }
    Sample::from_bytes(entry.get(..size_of::<Sample>())?)
}
