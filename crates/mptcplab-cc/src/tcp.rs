//! The TCP state that hooks see and the samples that they get, as `algorithms/cc_types.h` lays them out.

/// `snd_ssthresh` before the first loss (Linux' TCP_INFINITE_SSTHRESH).
pub const INFINITE_SSTHRESH: u32 = 0x7fff_ffff;

/// TCP state of one subflow, under the kernel's names.
///
/// The engine owns and updates it; hooks read all of it and write `snd_cwnd`, `snd_ssthresh` and the pacing fields.
/// Sequence numbers count packets.
#[repr(C)]
#[derive(Debug, Clone)]
pub struct TcpSock {
    /// Time of the event being processed, µs.
    pub tcp_mstamp: u64,
    /// Last time data was sent, µs.
    pub lsndtime_us: u64,
    /// Pacing rate, bytes/s.
    pub sk_pacing_rate: u64,
    /// Congestion window, packets, at least 1.
    pub snd_cwnd: u32,
    /// Slow start threshold, packets.
    pub snd_ssthresh: u32,
    /// The kernel's linear increase counter, packets. Algorithms here keep a finer credit instead.
    pub snd_cwnd_cnt: u32,
    /// Upper limit of the window, packets.
    pub snd_cwnd_clamp: u32,
    /// Window before the last reduction, packets (for undo).
    pub prior_cwnd: u32,
    /// ssthresh before the last reduction, packets (for undo).
    pub prior_ssthresh: u32,
    /// Smoothed RTT, µs << 3; 0 before the first sample.
    pub srtt_us: u32,
    /// RTT mean deviation, µs << 2.
    pub mdev_us: u32,
    /// RTT variation that the RTO uses, µs << 2.
    pub rttvar_us: u32,
    /// Windowed minimum RTT, µs; `u32::MAX` before the first sample.
    pub min_rtt_us: u32,
    /// Packets sent and not cumulatively acknowledged.
    pub packets_out: u32,
    /// Of these, selectively acknowledged.
    pub sacked_out: u32,
    /// Of these, marked lost.
    pub lost_out: u32,
    /// Retransmissions in flight.
    pub retrans_out: u32,
    /// Most packets in flight in the last round.
    pub max_packets_out: u32,
    /// First unacknowledged packet.
    pub snd_una: u32,
    /// Next packet to send.
    pub snd_nxt: u32,
    /// Payload bytes of a full segment.
    pub mss_cache: u32,
    /// Packets delivered, in total.
    pub delivered: u32,
    /// Packets marked lost, in total.
    pub lost: u32,
    /// 0, or application-limited until `delivered` reaches this.
    pub app_limited: u32,
    /// 0 when the sender is not paced.
    pub sk_pacing_status: u32,
    /// The window was full when it was last used.
    pub is_cwnd_limited: bool,
    /// Recovery state, a [`CaState`] as a number.
    pub ca_state: u8,
}

impl Default for TcpSock {
    fn default() -> Self {
        Self {
            tcp_mstamp: 0,
            lsndtime_us: 0,
            sk_pacing_rate: 0,
            snd_cwnd: 10,
            snd_ssthresh: INFINITE_SSTHRESH,
            snd_cwnd_cnt: 0,
            snd_cwnd_clamp: u32::MAX,
            prior_cwnd: 0,
            prior_ssthresh: 0,
            srtt_us: 0,
            mdev_us: 0,
            rttvar_us: 0,
            min_rtt_us: u32::MAX,
            packets_out: 0,
            sacked_out: 0,
            lost_out: 0,
            retrans_out: 0,
            max_packets_out: 0,
            snd_una: 0,
            snd_nxt: 0,
            mss_cache: 1448,
            delivered: 0,
            lost: 0,
            app_limited: 0,
            sk_pacing_status: 0,
            is_cwnd_limited: false,
            ca_state: CaState::Open as u8,
        }
    }
}

/// Recovery state of a sender (Linux' `tcp_ca_state`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum CaState {
    /// Nothing unusual.
    Open = 0,
    /// Duplicate ACKs or SACKs, no loss decided.
    Disorder = 1,
    /// Window reduction after an ECN echo.
    Cwr = 2,
    /// Fast recovery.
    Recovery = 3,
    /// After a retransmission timeout.
    Loss = 4,
}

/// An event that the hook `cwnd_event` is called for (Linux' `tcp_ca_event`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(i32)]
pub enum CaEvent {
    /// First transmit with nothing in flight.
    TxStart = 0,
    /// The window was reduced after an idle period.
    CwndRestart = 1,
    /// End of a window reduction.
    CompleteCwr = 2,
    Loss = 3,
    /// ECN: packet without congestion mark.
    EcnNoCe = 4,
    /// ECN: packet with congestion mark.
    EcnIsCe = 5,
}

/// What one ACK says about the packets it acknowledges.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AckSample {
    /// Packets newly acknowledged.
    pub pkts_acked: u32,
    /// RTT sample, µs; negative when there is none.
    pub rtt_us: i32,
    /// Packets in flight when the newest acknowledged one was sent.
    pub in_flight: u32,
}

/// Delivery rate sample of one ACK (Linux' `rate_sample`).
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RateSample {
    /// When the sample's interval began, µs.
    pub prior_mstamp: u64,
    /// Packets delivered when it began.
    pub prior_delivered: u32,
    /// Packets delivered over the interval; negative: no sample.
    pub delivered: i32,
    /// Length of the interval, µs.
    pub interval_us: i64,
    /// Send side of the interval, µs.
    pub snd_interval_us: u32,
    /// ACK side of the interval, µs.
    pub rcv_interval_us: u32,
    /// RTT of the newest acknowledged packet, µs; negative: none.
    pub rtt_us: i64,
    /// Packets that this ACK marked lost.
    pub losses: i32,
    /// Packets newly (s)acked by this ACK.
    pub acked_sacked: u32,
    /// Packets in flight before this ACK.
    pub prior_in_flight: u32,
    /// The sample was taken while application-limited.
    pub is_app_limited: bool,
    /// The sample's packet had been retransmitted.
    pub is_retrans: bool,
    /// The ACK was probably delayed.
    pub is_ack_delayed: bool,
}
