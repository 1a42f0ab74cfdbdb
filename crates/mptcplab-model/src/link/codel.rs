//! CoDel (RFC 8289): drops or marks on departure when every packet of an interval waited longer than the target.

use crate::link::Packet;
use crate::link::fifo::{Fifo, QueuedPacket};
use std::collections::VecDeque;

/// Parameters, equal for all queues of a link.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Params {
    pub(crate) target_ns: u64,
    pub(crate) interval_ns: u64,
    /// Mark ECN-capable packets instead of dropping them.
    pub(crate) ecn: bool,
}

impl Params {
    /// Time of the next signal: t + interval / sqrt(count) (RFC 8289 section 5.3), with an integer square root of 16
    /// fractional bits: the relative error is below 2^-16.
    fn control_law(&self, t_ns: u64, count: u32) -> u64 {
        let root_q16 = (u64::from(count.max(1)) << 32).isqrt();
        let step = (u128::from(self.interval_ns) << 16) / u128::from(root_q16);
        // At most the interval, as the root is at least 1.
        t_ns.saturating_add(step as u64)
    }
}

/// Drops and marks by an AQM on departure, of packets that the link had accepted.
#[derive(Debug)]
pub(crate) struct AqmCounters<P> {
    pub(crate) dropped: u64,
    pub(crate) marked: u64,
    /// The dropped packets, oldest first, where the owner wants them back.
    pub(crate) dropped_packets: Option<VecDeque<P>>,
}

impl<P> AqmCounters<P> {
    pub(crate) fn new() -> Self {
        Self {
            dropped: 0,
            marked: 0,
            dropped_packets: None,
        }
    }

    pub(crate) fn drop(&mut self, packet: P) {
        self.dropped += 1;
        if let Some(packets) = &mut self.dropped_packets {
            packets.push_back(packet);
        }
    }
}

/// State of CoDel on one queue; names as in RFC 8289 section 5.
#[derive(Debug, Clone, Default)]
pub(crate) struct Codel {
    first_above_ns: u64,
    drop_next_ns: u64,
    count: u32,
    last_count: u32,
    dropping: bool,
    /// Largest packet seen: a backlog of at most this is not a standing queue.
    max_packet_bytes: u32,
}

impl Codel {
    /// The next packet to send, if any.
    pub(crate) fn dequeue<P: Packet>(
        &mut self,
        fifo: &mut Fifo<P>,
        now: u64,
        params: &Params,
        aqm_counters: &mut AqmCounters<P>,
    ) -> Option<QueuedPacket<P>> {
        let (mut head, mut late) = self.next(fifo, now, params);
        if self.dropping {
            self.dropping = late;
            while self.dropping && now >= self.drop_next_ns {
                self.count = self.count.saturating_add(1);
                let law_from = self.drop_next_ns;
                if signal(&mut head, params, aqm_counters) {
                    self.drop_next_ns = params.control_law(law_from, self.count);
                    break;
                }
                (head, late) = self.next(fifo, now, params);
                self.dropping = late;
                if late {
                    self.drop_next_ns = params.control_law(law_from, self.count);
                }
            }
        } else if late {
            if !signal(&mut head, params, aqm_counters) {
                (head, _) = self.next(fifo, now, params);
            }
            self.enter_dropping(now, params);
        }
        head
    }

    /// Start near the rate that controlled the queue last time, if that was not long ago (RFC 8289 section 5.4).
    fn enter_dropping(&mut self, now: u64, params: &Params) {
        self.dropping = true;
        let delta = self.count.saturating_sub(self.last_count);
        let recent = now.saturating_sub(self.drop_next_ns) < params.interval_ns.saturating_mul(16);
        self.count = if delta > 1 && recent { delta } else { 1 };
        self.drop_next_ns = params.control_law(now, self.count);
        self.last_count = self.count;
    }

    /// The packet at the head, and whether the delay has been above the target for an interval (`dodequeue`).
    fn next<P: Packet>(
        &mut self,
        fifo: &mut Fifo<P>,
        now: u64,
        params: &Params,
    ) -> (Option<QueuedPacket<P>>, bool) {
        let Some(head) = fifo.pop() else {
            self.first_above_ns = 0;
            return (None, false);
        };
        self.max_packet_bytes = self.max_packet_bytes.max(head.bytes);
        let sojourn_ns = now - head.arrived_ns;
        let small = fifo.bytes() <= u64::from(self.max_packet_bytes);
        let mut late = false;
        if sojourn_ns < params.target_ns || small {
            self.first_above_ns = 0;
        } else if self.first_above_ns == 0 {
            self.first_above_ns = now + params.interval_ns;
        } else {
            late = now >= self.first_above_ns;
        }
        (Some(head), late)
    }
}

/// Mark the packet, or take and drop it; whether it was marked.
fn signal<P: Packet>(
    head: &mut Option<QueuedPacket<P>>,
    params: &Params,
    aqm_counters: &mut AqmCounters<P>,
) -> bool {
    match head {
        Some(waiting) if params.ecn && waiting.packet.is_ecn_capable() => {
            waiting.packet.mark_ce();
            aqm_counters.marked += 1;
            true
        }
        _ => {
            if let Some(waiting) = head.take() {
                aqm_counters.drop(waiting.packet);
            }
            false
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::link::tests::parcel;

    /// A target of 5 and an interval of 100: small numbers to follow by hand.
    const SMALL: Params = Params {
        target_ns: 5,
        interval_ns: 100,
        ecn: false,
    };

    /// `count` packets of 100 bytes that arrived at `arrived_ns`.
    fn fill(fifo: &mut Fifo<crate::link::tests::Parcel>, count: u32, arrived_ns: u64) {
        for id in 0..count {
            let (packet, bytes) = (parcel(id, 100), 100);
            fifo.push(QueuedPacket {
                packet,
                bytes,
                arrived_ns,
            });
        }
    }

    #[test]
    fn signals_come_faster_and_resume_where_they_were() {
        // Drops at 110, 210, 280, 337, then the delay is low at 340 and high again from 350 on. Returns count and
        // drop_next after the first drop of the second episode at `again`.
        let second_episode = |again| {
            let (mut codel, mut fifo, mut aqm_counters) =
                (Codel::default(), Fifo::new(), AqmCounters::new());
            fill(&mut fifo, 9, 0);
            let mut dropped = Vec::new();
            for now in [10, 109, 110, 209, 210, 280, 337] {
                assert!(
                    codel
                        .dequeue(&mut fifo, now, &SMALL, &mut aqm_counters)
                        .is_some()
                );
                dropped.push((now, aqm_counters.dropped));
                if aqm_counters.dropped > 3 {
                    break;
                }
                fill(&mut fifo, 2, 0);
            }
            let expected = [
                (10, 0),
                (109, 0),
                (110, 1),
                (209, 1),
                (210, 2),
                (280, 3),
                (337, 4),
            ];
            assert_eq!(dropped, expected);
            // 337 + 100 / sqrt(4)
            assert_eq!((codel.count, codel.drop_next_ns), (4, 387));
            while fifo.pop().is_some() {}
            fill(&mut fifo, 9, 340);
            assert!(
                codel
                    .dequeue(&mut fifo, 340, &SMALL, &mut aqm_counters)
                    .is_some()
            );
            assert!(!codel.dropping);
            for now in [again - 100, again] {
                assert!(
                    codel
                        .dequeue(&mut fifo, now, &SMALL, &mut aqm_counters)
                        .is_some()
                );
            }
            assert_eq!(aqm_counters.dropped, 5);
            (codel.count, codel.drop_next_ns)
        };
        // Three signals were needed after the first: 100 / sqrt(3) = 57.7. Later than 16 intervals it starts again.
        assert_eq!(second_episode(500), (3, 557));
        assert_eq!(second_episode(387 + 1599), (3, 387 + 1599 + 57));
        assert_eq!(second_episode(387 + 1600), (1, 387 + 1600 + 100));
    }

    #[test]
    fn one_packet_behind_is_no_standing_queue() {
        let (mut codel, mut fifo, mut aqm_counters) =
            (Codel::default(), Fifo::new(), AqmCounters::new());
        fill(&mut fifo, 1, 0);
        for now in (0..2000).step_by(50) {
            fill(&mut fifo, 1, 0);
            assert!(
                codel
                    .dequeue(&mut fifo, now, &SMALL, &mut aqm_counters)
                    .is_some()
            );
        }
        assert_eq!(aqm_counters.dropped, 0);
    }

    #[test]
    fn control_law_spaces_signals_by_the_inverse_square_root() {
        let params = Params {
            target_ns: 5_000_000,
            interval_ns: 100_000_000,
            ecn: false,
        };
        let step = |count| params.control_law(7, count) - 7;
        // 100 ms / 1, / 2, / 10; 100 ms / sqrt(2) = 70.7107 ms.
        assert_eq!(
            [step(1), step(4), step(100)],
            [100_000_000, 50_000_000, 10_000_000]
        );
        assert!(step(2).abs_diff(70_710_678) < 2_000, "{}", step(2));
        assert!(step(u32::MAX) > 0);
    }
}
