//! FQ-CoDel (RFC 8290): deficit round robin over hashed flow queues, new flows first, CoDel on each.

use crate::link::Packet;
use crate::link::codel::{AqmCounters, Codel, Params};
use crate::link::fifo::{Fifo, QueuedPacket};
use crate::link::rng::mix;
use std::collections::VecDeque;

/// One hash bucket.
#[derive(Debug)]
struct Bucket<P> {
    fifo: Fifo<P>,
    codel: Codel,
    /// Bytes that it may still send in this round.
    credit: i64,
    /// Whether it is in one of the two lists.
    listed: bool,
}

/// All flow queues of a link.
#[derive(Debug)]
pub(crate) struct FqCodel<P> {
    buckets: Vec<Bucket<P>>,
    new: VecDeque<u32>,
    old: VecDeque<u32>,
    quantum: i64,
    seed: u64,
    params: Params,
    packets: usize,
    bytes: u64,
}

impl<P: Packet> FqCodel<P> {
    /// `seed` perturbs the hash, so that other links put other flows together.
    pub(crate) fn new(flows: u32, quantum_bytes: u32, params: Params, seed: u64) -> Self {
        let bucket = |_| Bucket {
            fifo: Fifo::new(),
            codel: Codel::default(),
            credit: 0,
            listed: false,
        };
        Self {
            buckets: (0..flows.max(1)).map(bucket).collect(),
            new: VecDeque::new(),
            old: VecDeque::new(),
            quantum: i64::from(quantum_bytes.max(1)),
            seed,
            params,
            packets: 0,
            bytes: 0,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.packets
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Append to the flow's queue; a queue that was not active becomes a new flow (RFC 8290 section 4.1).
    pub(crate) fn push(&mut self, waiting: QueuedPacket<P>) -> u32 {
        let index = self.bucket_of(waiting.packet.flow_hash());
        self.packets += 1;
        self.bytes += u64::from(waiting.bytes);
        let bucket = &mut self.buckets[index as usize];
        bucket.fifo.push(waiting);
        if !bucket.listed {
            bucket.listed = true;
            bucket.credit = self.quantum;
            self.new.push_back(index);
        }
        index
    }

    /// Take the head of the queue with most bytes to drop it (RFC 8290 section 4.1.2), and say whether that was the last
    /// packet of the bucket `of`.
    pub(crate) fn pop_from_fattest(&mut self, of: u32) -> Option<(P, bool)> {
        let fattest = self.fattest()?;
        let bucket = &mut self.buckets[fattest as usize];
        let head = bucket.fifo.pop()?;
        self.packets -= 1;
        self.bytes -= u64::from(head.bytes);
        Some((head.packet, fattest == of && bucket.fifo.len() == 0))
    }

    /// The next packet to send (RFC 8290 section 4.2).
    pub(crate) fn pop(
        &mut self,
        now: u64,
        aqm_counters: &mut AqmCounters<P>,
    ) -> Option<QueuedPacket<P>> {
        loop {
            let from_new = !self.new.is_empty();
            let list = if from_new {
                &mut self.new
            } else {
                &mut self.old
            };
            let index = *list.front()?;
            let bucket = &mut self.buckets[index as usize];
            if bucket.credit <= 0 {
                bucket.credit += self.quantum;
                list.pop_front();
                self.old.push_back(index);
                continue;
            }
            let before = (bucket.fifo.len(), bucket.fifo.bytes());
            let head = bucket
                .codel
                .dequeue(&mut bucket.fifo, now, &self.params, aqm_counters);
            self.packets -= before.0 - bucket.fifo.len();
            self.bytes -= before.1 - bucket.fifo.bytes();
            if let Some(waiting) = head {
                bucket.credit -= i64::from(waiting.bytes);
                return Some(waiting);
            }
            list.pop_front();
            if from_new {
                // Otherwise a flow that sends a packet now and then would always be new.
                self.old.push_back(index);
            } else {
                bucket.listed = false;
            }
        }
    }

    fn bucket_of(&self, flow_hash: u64) -> u32 {
        let hash = mix(flow_hash ^ self.seed) >> 32;
        // hash < 2^32, so the quotient is below the number of buckets.
        ((hash * self.buckets.len() as u64) >> 32) as u32
    }

    /// The active queue with most bytes; the first in service order among equals.
    fn fattest(&self) -> Option<u32> {
        let bytes = |&index: &u32| self.buckets[index as usize].fifo.bytes();
        self.new
            .iter()
            .chain(&self.old)
            .copied()
            .reduce(|best, other| {
                if bytes(&other) > bytes(&best) {
                    other
                } else {
                    best
                }
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link::tests::{Parcel, parcel};

    fn flows(quantum: u32) -> FqCodel<Parcel> {
        let params = Params {
            target_ns: 5,
            interval_ns: 100,
            ecn: false,
        };
        FqCodel::new(64, quantum, params, 0)
    }

    fn push(queue: &mut FqCodel<Parcel>, flow: u32, bytes: u32) {
        let packet = Parcel {
            flow,
            ..parcel(0, bytes)
        };
        queue.push(QueuedPacket {
            packet,
            bytes,
            arrived_ns: 0,
        });
    }

    /// The flows of the next packets.
    fn pops(queue: &mut FqCodel<Parcel>, count: usize) -> Vec<u32> {
        let mut aqm_counters = AqmCounters::new();
        (0..count)
            .map_while(|_| queue.pop(0, &mut aqm_counters))
            .map(|w| w.packet.flow)
            .collect()
    }

    #[test]
    fn each_round_gives_a_quantum_and_debts_are_remembered() {
        let mut queue = flows(300);
        for _ in 0..12 {
            push(&mut queue, 1, 100);
        }
        for _ in 0..6 {
            push(&mut queue, 2, 250);
        }
        // Flow 1 sends three packets per round. Flow 2 has 300, 50, -200; then 100, -150; 150, -100; 200, -50; 250.
        assert_eq!(
            pops(&mut queue, 99),
            [1, 1, 1, 2, 2, 1, 1, 1, 2, 1, 1, 1, 2, 1, 1, 1, 2, 2]
        );
        assert_eq!((queue.len(), queue.bytes()), (0, 0));
    }

    #[test]
    fn new_flows_go_first_and_become_old_when_empty() {
        let mut queue = flows(1500);
        for _ in 0..30 {
            push(&mut queue, 1, 500);
        }
        // After its first quantum flow 1 is old.
        assert_eq!(pops(&mut queue, 4), [1, 1, 1, 1]);
        push(&mut queue, 2, 100);
        assert_eq!(pops(&mut queue, 2), [2, 1], "the new flow first");
        // Flow 2 has been found empty and is old now: its next packet waits for the rest of flow 1's quantum.
        push(&mut queue, 2, 100);
        assert_eq!(pops(&mut queue, 2), [1, 2]);
        assert!(queue.new.is_empty());
    }

    #[test]
    fn buckets_are_spread_and_depend_on_the_seed() {
        let spread = |seed| {
            let mut queue = flows(300);
            queue.seed = seed;
            (0..64)
                .map(|flow| queue.bucket_of(flow))
                .collect::<Vec<_>>()
        };
        let mut used = spread(1);
        assert_ne!(used, spread(2));
        used.sort_unstable();
        used.dedup();
        // 64 balls in 64 bins fill 1 - 1/e of them: 40.
        assert!(
            (32..48).contains(&used.len()) && used.iter().all(|b| *b < 64),
            "{}",
            used.len()
        );
    }
}
