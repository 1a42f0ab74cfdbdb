//! Delivery-rate samples, as Linux' `tcp_rate.c` takes them (draft-cheng-iccrg-delivery-rate-estimation-00).
//!
//! Only subflows whose algorithm controls its own rate have a [`RateSampler`].

use crate::stream::seq_ring::SeqRing;
use mptcplab_cc::{RateSample, TcpSock};

/// State at the time when a segment was sent; the latest transmission counts.
#[derive(Debug, Clone, Copy, Default)]
struct Sent {
    /// Time of the delivery before it, µs.
    delivered_us: u64,
    /// Begin of its flight: when the packet was sent that the delivery before it acknowledged, µs.
    first_us: u64,
    /// Packets delivered until then.
    delivered: u32,
    app_limited: bool,
}

/// The sampler of one subflow.
#[derive(Debug)]
pub(crate) struct RateSampler {
    sent: SeqRing<Sent>,
    /// Time of the latest delivery, µs.
    delivered_us: u64,
    /// When the packet was sent that was delivered then, µs.
    first_us: u64,
    /// The sample of the ACK that is being processed.
    latest: Option<LatestDelivered>,
}

/// The latest sent packet that an ACK delivers: the sample's interval ends with it.
#[derive(Debug, Clone, Copy)]
struct LatestDelivered {
    sent: Sent,
    at: (u64, u32),
    is_retrans: bool,
    /// Time in which the sample's packets were sent, µs.
    snd_interval_us: u64,
}

/// Facts of an ACK that the sender passes to the sampler.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AckInfo {
    pub(crate) delivered: u32,
    pub(crate) losses: u32,
    pub(crate) prior_in_flight: u32,
    pub(crate) rtt_us: Option<u64>,
    /// It acknowledges a single segment, which is not a full one.
    pub(crate) single_short_segment: bool,
}

impl RateSampler {
    pub(crate) fn new() -> Self {
        Self {
            sent: SeqRing::new(),
            delivered_us: 0,
            first_us: 0,
            latest: None,
        }
    }

    /// Segment `seq` goes out, `idle` if nothing was in flight before it.
    pub(crate) fn on_sent(&mut self, tp: &TcpSock, now_us: u64, seq: u32, idle: bool) {
        if idle {
            self.first_us = now_us;
            self.delivered_us = now_us;
        }
        let sent = Sent {
            delivered_us: self.delivered_us,
            first_us: self.first_us,
            delivered: tp.delivered,
            app_limited: tp.app_limited != 0,
        };
        self.sent.put(tp.snd_una, seq, sent);
    }

    /// Segment `seq`, last sent at `sent_us`, turned out to be delivered, by SACK or else by the cumulative ACK.
    pub(crate) fn on_delivered(&mut self, seq: u32, sent_us: u64, is_retrans: bool) {
        let sent = *self.sent.get(seq);
        let at = (sent_us, seq);
        if self.latest.is_none_or(|latest| at > latest.at) {
            self.first_us = sent_us;
            self.latest = Some(LatestDelivered {
                sent,
                at,
                is_retrans,
                snd_interval_us: sent_us - sent.first_us,
            });
        }
    }

    /// The sample of an ACK, after all that it delivered.
    pub(crate) fn sample(&mut self, tp: &TcpSock, ack: AckInfo) -> RateSample {
        if ack.delivered > 0 {
            self.delivered_us = tp.tcp_mstamp;
        }
        let mut sample = RateSample {
            delivered: -1,
            interval_us: -1,
            rtt_us: ack.rtt_us.map_or(-1, |us| us.max(1) as i64),
            losses: ack.losses as i32,
            acked_sacked: ack.delivered,
            prior_in_flight: ack.prior_in_flight,
            ..RateSample::default()
        };
        let Some(latest) = self.latest.take() else {
            return sample;
        };
        let rcv_interval_us = tp.tcp_mstamp - latest.sent.delivered_us;
        let interval_us = latest.snd_interval_us.max(rcv_interval_us);
        sample.prior_mstamp = latest.sent.delivered_us;
        sample.prior_delivered = latest.sent.delivered;
        sample.is_app_limited = latest.sent.app_limited;
        sample.is_retrans = latest.is_retrans;
        sample.delivered = tp.delivered.wrapping_sub(latest.sent.delivered) as i32;
        sample.snd_interval_us = latest.snd_interval_us as u32;
        sample.rcv_interval_us = rcv_interval_us as u32;
        // The receiver had nothing else to acknowledge for a whole round trip: it probably waited for more.
        sample.is_ack_delayed = ack.single_short_segment && sample.delivered == 1;
        // Shorter than a round trip: the ACK of a copy that was not needed, or compressed ACKs.
        if interval_us >= u64::from(tp.min_rtt_us) {
            sample.interval_us = interval_us as i64;
        }
        sample
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ack(delivered: u32) -> AckInfo {
        AckInfo {
            delivered,
            losses: 0,
            prior_in_flight: 7,
            rtt_us: Some(10_000),
            single_short_segment: false,
        }
    }

    /// Four packets, 1 ms apart, through a link that passes one per 2 ms, 10 ms RTT: the ACKs tell the link's rate.
    #[test]
    fn the_slower_of_sending_and_delivering_is_the_rate() {
        let mut tp = TcpSock {
            min_rtt_us: 10_000,
            ..TcpSock::default()
        };
        let mut sampler = RateSampler::new();
        for seq in 0..4u32 {
            let now_us = 1_000 + 1_000 * u64::from(seq);
            sampler.on_sent(&tp, now_us, seq, seq == 0);
        }
        let mut rates = Vec::new();
        for seq in 0..4u32 {
            tp.tcp_mstamp = 11_000 + 2_000 * u64::from(seq);
            tp.delivered += 1;
            tp.snd_una += 1;
            sampler.on_delivered(seq, 1_000 + 1_000 * u64::from(seq), false);
            let sample = sampler.sample(&tp, ack(1));
            rates.push((sample.delivered, sample.interval_us, sample.prior_delivered));
        }
        // All four were sent before anything was delivered: since 1 ms, 1 to 4 packets in 10 to 16 ms.
        assert_eq!(
            rates,
            [
                (1, 10_000, 0),
                (2, 12_000, 0),
                (3, 14_000, 0),
                (4, 16_000, 0)
            ]
        );
        // The next flight begins at the last delivery: three packets in a burst, acknowledged 3 ms apart.
        for seq in 4..7u32 {
            sampler.on_sent(&tp, 17_000, seq, false);
        }
        for (i, seq) in (4..7u32).enumerate() {
            tp.tcp_mstamp = 27_000 + 3_000 * i as u64;
            tp.delivered += 1;
            sampler.on_delivered(seq, 17_000, false);
            let sample = sampler.sample(&tp, ack(1));
            assert_eq!(
                (sample.prior_delivered, sample.delivered, sample.interval_us),
                (4, i as i32 + 1, 13_000.max(10_000 + 3_000 * i as i64)),
                "the send side counts from packet 3, sent at 4 ms"
            );
        }
    }

    #[test]
    fn intervals_shorter_than_a_round_trip_are_no_samples() {
        let mut tp = TcpSock {
            min_rtt_us: 10_000,
            ..TcpSock::default()
        };
        let mut sampler = RateSampler::new();
        sampler.on_sent(&tp, 5_000, 0, true);
        tp.tcp_mstamp = 14_999;
        tp.delivered = 1;
        sampler.on_delivered(0, 5_000, true);
        let sample = sampler.sample(&tp, ack(1));
        assert_eq!((sample.interval_us, sample.is_retrans), (-1, true));
        // And an ACK that delivers nothing has none at all.
        let none = sampler.sample(&tp, ack(0));
        assert_eq!(
            (none.delivered, none.interval_us, none.acked_sacked),
            (-1, -1, 0)
        );
    }

    #[test]
    fn the_latest_sent_of_the_delivered_decides() {
        let mut tp = TcpSock {
            min_rtt_us: 1_000,
            app_limited: 3,
            ..TcpSock::default()
        };
        let mut sampler = RateSampler::new();
        sampler.on_sent(&tp, 1_000, 0, true);
        tp.app_limited = 0;
        sampler.on_sent(&tp, 2_000, 1, false);
        tp.tcp_mstamp = 9_000;
        tp.delivered = 1;
        sampler.on_delivered(1, 2_000, false);
        let sacked = sampler.sample(&tp, ack(1));
        assert!(!sacked.is_app_limited);
        // The cumulative ACK of both brings the first one, which was sent while application-limited.
        tp.tcp_mstamp = 12_000;
        tp.delivered = 2;
        sampler.on_delivered(0, 1_000, false);
        let late = sampler.sample(&tp, ack(1));
        assert!(late.is_app_limited);
        assert_eq!((late.delivered, late.interval_us), (2, 11_000));
    }
}
