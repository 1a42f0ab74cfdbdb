//! The sender of one TCP or subflow: how it sends, and the fast path of an ACK in order.
//!
//! Where Linux differs from the RFCs, this follows Linux.

use super::rate_sample::RateSampler;
use super::rtt::RttEstimator;
use super::scoreboard::Scoreboard;
use super::segments::{Segment, Segments, flag};
use super::state::{
    ClassicRecovery, CwndUsage, Lifecycle, MptcpState, Pacing, Phase, Recovery,
    RetransmissionTimer, SendJitter, SmallSegments, TsoGroup,
};
use crate::net::event::{NEVER, TimerKind};
use crate::net::packet::{Header, Kind, Packet, tick};
use crate::net::{WINDOW_UPDATE, World};
use crate::stream::receive_window::MeasuredRtts;
use mptcplab_cc::{AckSample, CaEvent, CaState, Conn as CcTable, Sock};
use mptcplab_model::link::rng::Rng;
use mptcplab_prefetch::{prefetch, prefetch_between};
use mptcplab_scenario::LossRecovery;
use mptcplab_trace::EventKind;

/// Infinite slow start threshold, as in Linux.
pub(crate) const INFINITE_SSTHRESH: u32 = 0x7fff_ffff;

/// Constants of a sender, from the scenario.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SenderConfig {
    pub(crate) mptcp: bool,
    /// Bytes of the IP header, TCP header, timestamps and DSS option of a data packet.
    pub(crate) data_header: u16,
    /// The same for a pure ACK; packets of the handshake add their options to it.
    pub(crate) ack_header: u16,
    pub(crate) initial_cwnd: u32,
    pub(crate) ecn: bool,
    pub(crate) recovery: LossRecovery,
    pub(crate) pacing: bool,
    pub(crate) slow_start_after_idle: bool,
    /// Delay of a data packet before it is sent: what is the same for all, and the largest that is drawn.
    pub(crate) host_delay_ns: u64,
    pub(crate) send_jitter_ns: u64,
    /// Either of them is not 0.
    pub(crate) holds_back: bool,
    /// Segments leave in groups, see `tso.rs`.
    pub(crate) tso: bool,
    /// See `nagle.rs`.
    pub(crate) nagle: bool,
    /// How often the first timeout of a SYN repeats before it doubles.
    pub(crate) linear_syn_timeouts: u32,
}

/// Cumulative counters of the trace.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct SenderCounters {
    pub(crate) sent: u64,
    pub(crate) retransmitted: u64,
    pub(crate) acked: u64,
    pub(crate) lost: u64,
    pub(crate) loss_events: u64,
    pub(crate) ecn_events: u64,
    pub(crate) rto_count: u64,
    pub(crate) rto_wait_ns: u64,
    pub(crate) undo_count: u64,
}

impl SenderCounters {
    pub(crate) fn add(&mut self, other: &Self) {
        self.sent += other.sent;
        self.retransmitted += other.retransmitted;
        self.acked += other.acked;
        self.lost += other.lost;
        self.loss_events += other.loss_events;
        self.ecn_events += other.ecn_events;
        self.rto_count += other.rto_count;
        self.rto_wait_ns += other.rto_wait_ns;
        self.undo_count += other.undo_count;
    }
}

/// Segments until the one after which pacing begins (`tcp_update_skb_after_send`).
const FIRST_PACED: u64 = 10;

/// The sender of one TCP, or of one subflow.
// In this order: what all ACKs need, what is in use while segments are missing, and the rest; see `prefetch`.
#[repr(C)]
pub(crate) struct Sender {
    /// The congestion control's view of the subflow. `sock.tp` is this sender's own state: its sequence numbers, windows
    /// and packet counts have the names of Linux' `struct tcp_sock`.
    pub(crate) sock: Sock,
    pub(crate) segments: Segments,
    /// Index of the subflow's route, and of all its timers.
    pub(crate) id: u32,
    /// First link of the path.
    pub(crate) entry: u32,
    /// Layer-2 bytes per packet on the last link, for the wire throughput.
    pub(crate) overhead_bytes: u32,
    pub(crate) phase: Phase,
    /// See [`find_plain`](Self::find_plain).
    is_plain: bool,
    /// The algorithm has the hook `pkts_acked`.
    wants_pkts_acked: bool,
    /// The algorithm has the hook `cwnd_event`.
    wants_cwnd_event: bool,
    /// The next data packet tells the receiver that the window was reduced.
    pub(crate) announce_cwr: bool,
    pub(crate) config: SenderConfig,
    pub(crate) rtt: RttEstimator,
    pub(crate) rtx: RetransmissionTimer,
    pub(crate) usage: CwndUsage,
    pub(crate) last_sent_ns: u64,
    pub(crate) recovery: Recovery,
    pub(crate) count: SenderCounters,
    pub(crate) scoreboard: Scoreboard,
    pub(crate) mptcp: MptcpState,
    pub(crate) tso: TsoGroup,
    pub(crate) small: SmallSegments,
    pub(crate) pacing: Pacing,
    /// For algorithms that control their own rate.
    pub(crate) rates: Option<Box<RateSampler>>,
    /// For Tahoe, Reno and NewReno.
    pub(crate) classic: ClassicRecovery,
    pub(crate) lifecycle: Lifecycle,
    pub(crate) jitter: SendJitter,
}

impl Sender {
    pub(crate) fn new(sock: Sock, id: u32, backup: bool, config: SenderConfig, rng: Rng) -> Self {
        let algorithm = sock.algorithm();
        let rates = algorithm
            .has_cong_control()
            .then(|| Box::new(RateSampler::new()));
        let mut recovery = Recovery::new(config.recovery);
        recovery.scoreboard_in_use = rates.is_some();
        Self {
            wants_pkts_acked: algorithm.has_pkts_acked(),
            wants_cwnd_event: algorithm.has_cwnd_event(),
            sock,
            config,
            id,
            entry: u32::MAX,
            overhead_bytes: 0,
            phase: Phase::Closed,
            is_plain: false,
            lifecycle: Lifecycle::default(),
            mptcp: MptcpState {
                backup,
                ..MptcpState::default()
            },
            segments: Segments::new(),
            scoreboard: Scoreboard::new(),
            recovery,
            classic: ClassicRecovery::default(),
            rtt: RttEstimator::new(),
            rates,
            rtx: RetransmissionTimer::default(),
            usage: CwndUsage::default(),
            tso: TsoGroup::default(),
            small: SmallSegments::default(),
            pacing: Pacing::default(),
            jitter: SendJitter::new(rng),
            announce_cwr: false,
            last_sent_ns: 0,
            count: SenderCounters::default(),
        }
    }

    /// Record an event of this subflow.
    pub(crate) fn log(&self, cx: &mut World, kind: EventKind, value: impl Into<u64>) {
        cx.rec.event(cx.now, kind, self.id, value.into());
    }

    /// Packets believed to be in the network.
    #[inline]
    pub(crate) fn inflight(&self) -> u32 {
        let tp = &self.sock.tp;
        tp.packets_out - (tp.sacked_out + tp.lost_out) + tp.retrans_out
    }

    /// Whether the congestion window has room for another packet.
    #[inline]
    pub(crate) fn has_room(&self) -> bool {
        self.inflight() < self.sock.tp.snd_cwnd
    }

    /// Whether new data may be given to this subflow at all.
    #[inline]
    pub(crate) fn is_usable(&self) -> bool {
        self.phase == Phase::Established && !self.mptcp.failed
    }

    #[inline]
    pub(crate) fn state(&self) -> CaState {
        self.recovery.state
    }

    /// Whether ACKs and new segments take the shortest path: nothing that only some senders have needs to be looked at.
    #[inline(always)]
    pub(crate) fn is_plain(&self) -> bool {
        self.is_plain
    }

    /// Find out whether the sender [is plain](Self::is_plain): established, neither failed nor paced, without groups and ECN, and
    /// not waiting for its connection's first ACK.
    pub(crate) fn find_plain(&mut self) {
        self.is_plain = self.phase == Phase::Established
            && !self.mptcp.failed
            && !self.mptcp.unconfirmed
            && !self.pacing.enabled
            && !self.config.tso
            && !self.config.ecn;
    }

    /// Note that the subflow counts as failed, or works again.
    pub(crate) fn set_failed(&mut self, failed: bool) {
        self.mptcp.failed = failed;
        self.find_plain();
    }

    /// Note whether the connection, which this subflow opened, waits for its first segment to be acknowledged.
    pub(crate) fn set_unconfirmed(&mut self, unconfirmed: bool) {
        self.mptcp.unconfirmed = unconfirmed;
        self.find_plain();
    }

    /// Have what all ACKs need fetched into the cache.
    #[inline(always)]
    pub(crate) fn prefetch(&self) {
        prefetch_between(&self.sock, &self.scoreboard.dsacks);
    }

    /// The same for [`measured_rtts`](Self::measured_rtts), which a limited receive buffer needs.
    #[inline(always)]
    pub(crate) fn prefetch_rtts(&self) {
        prefetch(&self.sock.tp.srtt_us);
        prefetch(&self.rtt.latest_us);
        prefetch(&self.rtt.count);
    }

    /// The same for what is in use while segments are missing, once that has arrived.
    #[inline(always)]
    pub(crate) fn prefetch_recovery(&self) {
        if !self.recovery.allows_fast_path() {
            prefetch_between(&self.scoreboard.dsacks, &self.tso);
        }
    }

    /// The same for the segments.
    #[inline(always)]
    pub(crate) fn prefetch_segments(&self) {
        prefetch(self.segments.get(self.sock.tp.snd_una));
        prefetch(self.segments.get(self.sock.tp.snd_nxt));
        if !self.recovery.allows_fast_path() {
            self.scoreboard.prefetch();
        }
    }

    /// Handle an ACK; the connection sends new data afterwards. Returns whether the ACK took the fast path and changed nothing
    /// that the connection has to check. `PLAIN`: the sender [is plain](Self::is_plain).
    #[inline(always)]
    pub(crate) fn on_ack<const PLAIN: bool>(
        &mut self,
        cx: &mut World,
        cc: &mut CcTable,
        packet: Packet,
    ) -> bool {
        let tp = &mut self.sock.tp;
        tp.tcp_mstamp = cx.now / 1000;
        let (una, ack) = (tp.snd_una, packet.seq());
        // ECN is not plain.
        let echo = !PLAIN && packet.echo();
        if packet.sack() == 0 && ack > una && self.recovery.allows_fast_path() && !echo {
            debug_assert!(!packet.echo() && !self.recovery.frto_hold && self.rates.is_none());
            self.ack_in_order::<PLAIN>(cx, cc, ack, ack - una);
            // A subflow may have failed as stale, without a timeout.
            return PLAIN || !self.mptcp.failed;
        }
        self.on_other_ack(cx, cc, packet);
        false
    }

    #[inline(never)]
    fn on_other_ack(&mut self, cx: &mut World, cc: &mut CcTable, mut packet: Packet) {
        let (una, ack) = (self.sock.tp.snd_una, packet.seq());
        if packet.sack() == WINDOW_UPDATE {
            if ack <= una {
                return;
            }
            // The ACKs before it were lost.
            packet.clear_sack();
        }
        if ack >= una && self.config.recovery == LossRecovery::Sack {
            self.ack_with_recovery(cx, cc, &packet);
        } else if ack >= una {
            self.classic_ack(cx, cc, &packet);
        } else if packet.sack() != 0 {
            // Older than the latest ACK: it brings nothing new.
            cx.net.sacks.release(packet.sack());
        }
    }

    /// The fast path: nothing lost, nothing out of order, nothing retransmitted.
    #[inline(always)]
    fn ack_in_order<const PLAIN: bool>(
        &mut self,
        cx: &mut World,
        cc: &mut CcTable,
        ack: u32,
        newly: u32,
    ) {
        let una = self.sock.tp.snd_una;
        let first_sent = self.segments.get(una).sent_ns;
        let last_sent = self.segments.get(ack - 1).sent_ns;
        let prior_inflight = self.sock.tp.packets_out;
        let prior_ssthresh = self.sock.tp.snd_ssthresh;
        let tp = &mut self.sock.tp;
        tp.snd_una = ack;
        tp.packets_out -= newly;
        tp.delivered += newly;
        self.count.acked += u64::from(newly);
        self.rtt.sample(tp, cx.now - first_sent, cx.now - last_sent);
        self.age_app_limited();
        self.scoreboard
            .rack_advance_in_order(last_sent, ack, cx.now);
        self.note_progress(cx.now);
        self.rearm_timer(cx);
        if self.wants_pkts_acked {
            self.report_acked(cc, newly, Some(cx.now - last_sent), prior_inflight);
        }
        self.sock.cong_avoid(cc, ack, newly);
        if self.sock.tp.snd_ssthresh != prior_ssthresh {
            self.note_threshold(cx, prior_ssthresh);
        }
        if !PLAIN {
            self.update_pacing_rate();
        }
    }

    /// The algorithm changed ssthresh on an ACK. If that ended slow start (HyStart, Vegas), record it.
    #[inline(never)]
    fn note_threshold(&self, cx: &mut World, before: u32) {
        let tp = &self.sock.tp;
        if tp.snd_cwnd < before && tp.snd_cwnd >= tp.snd_ssthresh {
            self.log(cx, EventKind::SlowStartExit, tp.snd_ssthresh);
        }
    }

    #[inline]
    pub(crate) fn note_progress(&mut self, now: u64) {
        self.rtx.progress_ns = now;
        self.rtx.backoff = 0;
        self.rtx.retransmits = 0;
    }

    /// Call the algorithm's hook `pkts_acked`, if it has one.
    pub(crate) fn report_acked(
        &mut self,
        cc: &mut CcTable,
        acked: u32,
        rtt_ns: Option<u64>,
        prior_inflight: u32,
    ) {
        if self.wants_pkts_acked {
            let rtt_us = rtt_ns.map_or(-1, |ns| ((ns / 1000) as i32).max(1));
            self.sock.pkts_acked(
                cc,
                &AckSample {
                    pkts_acked: acked,
                    rtt_us,
                    in_flight: prior_inflight,
                },
            );
        }
    }

    /// Linux' default pacing rate: 200 % of cwnd per srtt in slow start, 120 % later.
    #[inline]
    pub(crate) fn update_pacing_rate(&mut self) {
        if self.pacing.enabled {
            self.compute_pacing_rate();
        }
    }

    fn compute_pacing_rate(&mut self) {
        if self.rates.is_none() && self.sock.tp.srtt_us > 0 {
            self.sock.tp.sk_pacing_rate = self.default_pacing_rate();
        }
    }

    pub(crate) fn measured_rtts(&self) -> MeasuredRtts {
        MeasuredRtts {
            srtt_us: self.sock.tp.srtt_us,
            latest_us: self.rtt.latest_us,
            count: self.rtt.count as u32,
        }
    }

    /// The smoothed round-trip time; 0 before the first sample.
    pub(crate) fn srtt_ns(&self) -> u64 {
        u64::from(self.sock.tp.srtt_us) * 1000 / 8 // of eighths of a microsecond
    }

    /// The rate in bytes/s that Linux computes for every socket, paced or not; 0 before the first RTT sample.
    pub(crate) fn default_pacing_rate(&self) -> u64 {
        let tp = &self.sock.tp;
        let percent: u64 = if tp.snd_cwnd < tp.snd_ssthresh / 2 {
            200
        } else {
            120
        };
        // window < 2^21 packets * 2^14 bytes, so the product stays below 2^59; srtt_us counts eighths.
        let window = u64::from(tp.snd_cwnd.max(tp.packets_out)) * u64::from(tp.mss_cache);
        (window * percent * 80_000)
            .checked_div(u64::from(tp.srtt_us))
            .unwrap_or(0)
    }

    /// Whether pacing forbids to send now; arms the release timer if so.
    #[inline]
    pub(crate) fn is_paced_out(&mut self, cx: &mut World) -> bool {
        if !self.pacing.enabled || self.sock.tp.sk_pacing_rate == 0 {
            return false;
        }
        // A group leaves as one buffer, and the next one waits for all of it.
        if cx.now >= self.pacing.next_ns || self.is_within_group(cx.now) {
            return false;
        }
        self.pacing.blocked = true;
        cx.timers.set(
            &mut self.pacing.timer,
            self.pacing.next_ns,
            TimerKind::Pace,
            self.id,
        );
        true
    }

    fn note_paced(&mut self, now: u64, len: u16) {
        let rate = self.sock.tp.sk_pacing_rate;
        if self.pacing.enabled && rate > 0 && self.count.sent >= FIRST_PACED {
            // Linux' pacing counts payload.
            let bytes = u64::from(len - self.config.data_header);
            self.pacing.next_ns = now.max(self.pacing.next_ns) + bytes * 1_000_000_000 / rate;
        }
    }

    /// Send a new segment with this data sequence number and payload. `PLAIN`: the sender [is plain](Self::is_plain).
    #[inline(always)]
    pub(crate) fn send_new<const PLAIN: bool>(
        &mut self,
        cx: &mut World,
        cc: &mut CcTable,
        dsn: u32,
        payload: u16,
    ) {
        let len = payload + self.config.data_header;
        if self.sock.tp.packets_out == 0 {
            self.before_first_packet(cx.now, cc);
        }
        let tp = &mut self.sock.tp;
        let (una, seq) = (tp.snd_una, tp.snd_nxt);
        tp.snd_nxt = seq + 1;
        tp.packets_out += 1;
        self.segments.put(
            una,
            seq,
            Segment {
                sent_ns: cx.now,
                dsn,
                len,
                flags: 0,
            },
        );
        if !self.recovery.allows_fast_path() {
            self.note_new(cx.now, seq);
        }
        let (ecn, pushes) = if PLAIN {
            (false, false)
        } else {
            (self.config.ecn, self.consume_from_group())
        };
        self.transmit::<PLAIN>(cx, seq, dsn, len, (ecn, pushes));
        // The probe waits longer for a single segment than for two.
        if self.sock.tp.packets_out <= 2 || self.rtx.armed_ns != cx.now {
            self.rearm_after_send(cx);
        }
    }

    /// A new segment counts for a rate sample and for a reduction.
    #[inline(never)]
    fn note_new(&mut self, now: u64, seq: u32) {
        let idle = self.sock.tp.packets_out == 1;
        self.note_sent(now, seq, idle);
        if self.recovery.in_reduction() {
            self.recovery.prr_out += 1;
        }
    }

    /// After an idle period: validate the window (RFC 2861) and call the algorithm's hook.
    fn before_first_packet(&mut self, now: u64, cc: &mut CcTable) {
        let idle = now - self.last_sent_ns;
        if self.config.slow_start_after_idle
            && self.rates.is_none()
            && self.count.sent > 0
            && idle > self.rtt.rto_ns()
        {
            self.restart_after_idle(now, idle, cc);
        }
        if self.wants_cwnd_event {
            self.sock.tp.tcp_mstamp = now / 1000;
            self.sock.tp.lsndtime_us = self.last_sent_ns / 1000;
            self.sock.cwnd_event(cc, CaEvent::TxStart);
        }
    }

    fn restart_after_idle(&mut self, now: u64, mut idle: u64, cc: &mut CcTable) {
        self.sock.tp.tcp_mstamp = now / 1000;
        if self.wants_cwnd_event {
            self.sock.cwnd_event(cc, CaEvent::CwndRestart);
        }
        self.sock.tp.snd_ssthresh = self.current_ssthresh();
        let restart = self.config.initial_cwnd.min(self.sock.tp.snd_cwnd);
        let mut cwnd = self.sock.tp.snd_cwnd;
        while idle > self.rtt.rto_ns() && cwnd > restart {
            idle -= self.rtt.rto_ns();
            cwnd >>= 1;
        }
        self.sock.tp.snd_cwnd = cwnd.max(restart);
        self.sock.publish(cc);
        self.usage.stamp_ns = now;
        self.usage.used_pkts = 0;
    }

    /// The threshold to restore after an idle period and after an undo: at least 3/4 of the window (Linux
    /// `tcp_current_ssthresh`).
    pub(crate) fn current_ssthresh(&self) -> u32 {
        let tp = &self.sock.tp;
        if self.recovery.in_reduction() {
            tp.snd_ssthresh
        } else {
            tp.snd_ssthresh.max((tp.snd_cwnd >> 1) + (tp.snd_cwnd >> 2))
        }
    }

    /// Put a data packet on the path (first or repeated transmission).
    #[inline(always)]
    pub(crate) fn transmit<const PLAIN: bool>(
        &mut self,
        cx: &mut World,
        seq: u32,
        dsn: u32,
        len: u16,
        (ecn, pushes): (bool, bool),
    ) {
        let header = Header {
            seq,
            dsn,
            ts: tick(cx.now),
            wnd: u16::from(pushes),
            ..Header::default()
        };
        let mut packet = Packet::new(Kind::Data, self.id, len, header);
        if ecn {
            packet.set_ecn_capable();
            if std::mem::take(&mut self.announce_cwr) {
                packet.set_echo();
            }
        }
        self.count.sent += 1;
        self.last_sent_ns = cx.now;
        if !PLAIN {
            self.note_paced(cx.now, len);
        }
        self.put_on_path(cx, packet);
    }

    #[inline(always)]
    pub(crate) fn put_on_path(&mut self, cx: &mut World, packet: Packet) {
        if !self.config.holds_back {
            cx.net.send_on(self.entry as usize, cx.now, packet);
        } else {
            let [a, b, c] = packet.words();
            self.hold(cx, a, b, c);
        }
    }

    /// Whether packets leave later than they are sent, by a time that is known then.
    pub(crate) fn holds_back(&self) -> bool {
        self.config.holds_back
    }

    /// Delay a packet by what hosts take and by a random time, which breaks phase effects, keeping order. It comes in registers: if it
    /// were passed in memory, the compiler would build it there in any case, and a link that takes it at once would wait for the
    /// stores.
    #[inline(never)]
    fn hold(&mut self, cx: &mut World, a: u64, b: u64, c: u64) {
        let packet = Packet::from_words(a, b, c);
        let jitter = &mut self.jitter;
        let ready = cx.now + self.config.host_delay_ns;
        let drawn = jitter.rng.below(self.config.send_jitter_ns + 1);
        let release = jitter.last_ns.max(ready + drawn);
        let is_later = release > jitter.last_ns;
        jitter.last_ns = release;
        if jitter.is_sent_ahead {
            jitter.releases += u64::from(is_later && release <= cx.net.end_ns());
            cx.net.send_ahead(cx.now, release, packet);
            return;
        }
        jitter.held.push_back((release, packet));
        let first = jitter.held[0].0;
        cx.timers
            .set(&mut jitter.timer, first, TimerKind::SendJitter, self.id);
    }

    /// The subflow has ended: stop its timers and drop the packets that jitter has held back.
    pub(crate) fn stop_sending(&mut self) {
        self.lifecycle.timer.deadline = NEVER;
        self.jitter.held.clear();
    }

    /// The timer came up, unless it was turned off or moved: release the packets whose jitter is over.
    pub(crate) fn release_jittered(&mut self, cx: &mut World) {
        let jitter = &mut self.jitter;
        let mut next = NEVER;
        while let Some(&(release, packet)) = jitter.held.front() {
            if release > cx.now {
                next = release;
                break;
            }
            jitter.held.pop_front();
            cx.net.send_on(self.entry as usize, cx.now, packet);
        }
        cx.timers.rearm_jitter(&mut jitter.timer, self.id, next);
    }

    /// Called after the connection has sent on this subflow, or after an ACK on it. `writer_waits`: see
    /// [`validate_cwnd`](Self::validate_cwnd).
    #[inline]
    pub(crate) fn validate_after_push(&mut self, now: u64, cc: &mut CcTable, writer_waits: bool) {
        if self.phase == Phase::Established
            && (self.last_sent_ns == now || !self.has_room() || self.tso.deferred)
        {
            let limited = !self.has_room() || self.tso.deferred;
            self.validate_cwnd(now, cc, limited, writer_waits);
        }
    }

    /// After an attempt to send, note whether the window limits the sender (Linux `tcp_cwnd_validate`). `writer_waits`: the
    /// application has data for which the send buffer has no room, so that it does not limit the sender.
    #[inline(always)]
    pub(crate) fn validate_cwnd(
        &mut self,
        now: u64,
        cc: &mut CcTable,
        limited: bool,
        writer_waits: bool,
    ) {
        debug_assert_eq!(limited, !self.has_room() || self.tso.deferred);
        let tp = &mut self.sock.tp;
        // A full window, which most are, needs none of the other conditions.
        if limited
            || tp.snd_una >= self.usage.round_end
            || (!tp.is_cwnd_limited && tp.packets_out > tp.max_packets_out)
        {
            tp.is_cwnd_limited = limited;
            tp.max_packets_out = tp.packets_out;
            self.usage.round_end = tp.snd_nxt;
        }
        if limited
            || tp.is_cwnd_limited
            || (tp.snd_cwnd < tp.snd_ssthresh && tp.snd_cwnd < 2 * tp.max_packets_out)
        {
            self.usage.used_pkts = 0;
            self.usage.stamp_ns = now;
        } else {
            self.not_limited(now, cc, writer_waits);
        }
    }

    /// RFC 2861: a window that was not full for a retransmission timeout is set halfway to its use, unless the application
    /// waits for room in the send buffer (Linux `tcp_cwnd_application_limited` with `SOCK_NOSPACE`). Every ACK that
    /// brings something new starts the time anew (`tcp_cong_avoid`, `tcp_end_cwnd_reduction`).
    fn not_limited(&mut self, now: u64, cc: &mut CcTable, writer_waits: bool) {
        self.usage.used_pkts = self.usage.used_pkts.max(self.sock.tp.packets_out);
        let since_ns = self.usage.stamp_ns.max(self.rtx.progress_ns);
        if !self.config.slow_start_after_idle
            || now - since_ns < self.rtt.rto_ns()
            || self.rates.is_some()
        {
            return;
        }
        self.usage.stamp_ns = now;
        if self.recovery.state != CaState::Open || writer_waits {
            return;
        }
        let used = self.usage.used_pkts.max(self.config.initial_cwnd);
        if used < self.sock.tp.snd_cwnd {
            self.sock.tp.snd_ssthresh = self.current_ssthresh();
            self.sock.tp.snd_cwnd = (self.sock.tp.snd_cwnd + used) >> 1;
            self.sock.publish(cc);
        }
        self.usage.used_pkts = 0;
    }

    /// The oldest data sequence numbers in flight here that are not below `una`, at most `most`. They are marked as
    /// reinjected.
    pub(crate) fn hand_over_sent(&mut self, una: u32, most: usize) -> Vec<u32> {
        let mut out = Vec::new();
        for seq in self.sock.tp.snd_una..self.sock.tp.snd_nxt {
            if out.len() == most {
                break;
            }
            let segment = self.segments.get_mut(seq);
            if segment.dsn >= una && segment.flags & (flag::SACKED | flag::REINJECTED) == 0 {
                segment.flags |= flag::REINJECTED;
                out.push(segment.dsn);
            }
        }
        out
    }

    /// Data sequence numbers that are marked lost here and are not below `una`. They are marked as reinjected.
    pub(crate) fn hand_over_lost(&mut self, una: u32) -> Vec<u32> {
        let mut out = Vec::new();
        for seq in self.sock.tp.snd_una..self.sock.tp.snd_nxt {
            let segment = self.segments.get_mut(seq);
            let state = segment.flags & (flag::LOST | flag::SACKED | flag::REINJECTED);
            if segment.dsn >= una && state == flag::LOST {
                segment.flags |= flag::REINJECTED;
                out.push(segment.dsn);
            }
        }
        out
    }

    /// Whether a data sequence number is in flight here.
    pub(crate) fn carries(&self, dsn: u32) -> bool {
        let (una, nxt) = (self.sock.tp.snd_una, self.sock.tp.snd_nxt);
        if self.mptcp.out_of_order {
            return (una..nxt).any(|seq| self.segments.get(seq).dsn == dsn);
        }
        let (mut low, mut high) = (una, nxt);
        while low < high {
            let middle = low + (high - low) / 2;
            if self.segments.get(middle).dsn < dsn {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low < nxt && self.segments.get(low).dsn == dsn
    }

    /// There is nothing to send although the window has room: rate samples are application-limited until the packets in
    /// flight are delivered.
    pub(crate) fn note_app_limited(&mut self) {
        let inflight = self.inflight();
        let tp = &mut self.sock.tp;
        if inflight < tp.snd_cwnd && tp.lost_out <= tp.retrans_out {
            tp.app_limited = tp.delivered.wrapping_add(inflight).max(1);
        }
    }

    /// The delivery that ends an application-limited period.
    #[inline]
    pub(crate) fn age_app_limited(&mut self) {
        let tp = &mut self.sock.tp;
        if tp.app_limited != 0 && tp.delivered > tp.app_limited {
            tp.app_limited = 0;
        }
    }

    /// Tell the rate sampler that segment `seq` is sent; `idle` if nothing was in flight before it.
    #[inline]
    pub(crate) fn note_sent(&mut self, now_ns: u64, seq: u32, idle: bool) {
        if let Some(rates) = &mut self.rates {
            rates.on_sent(&self.sock.tp, now_ns / 1000, seq, idle);
        }
    }

    /// Tell the rate sampler that segment `seq` with these scoreboard flags was delivered.
    #[inline]
    pub(crate) fn note_delivered(&mut self, seq: u32, sent_ns: u64, flags: u8) {
        if let Some(rates) = &mut self.rates {
            rates.on_delivered(seq, sent_ns / 1000, flags & flag::EVER != 0);
        }
    }
}
