//! Outstanding chunks, sent and not acknowledged, in one TSN space over all destinations.
//!
//! Every destination has its packets in the order of sending, those sent once and those sent again apart. The oldest of
//! each is what Iyengar, Amer and Stewart (2006, section 3.2) call pseudo-cumack and rtx-pseudo-cumack: where one of them
//! is acknowledged, the destination has made progress, although the cumulative ACK may be held up by another one (CUC).
//!
//! Windows and timers are elsewhere.

use super::missing_reports::{MISSING_REPORTS, NewlyAcked};
use std::collections::{BTreeSet, VecDeque};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    InFlight,
    /// To be sent again.
    Marked,
    Acked,
}

#[derive(Debug, Clone, Copy)]
struct Chunk {
    state: State,
    /// Number of its last transmission, over all destinations.
    order: u64,
    sent_ns: u64,
    destination: u8,
    /// It was sent more than once.
    is_retransmission: bool,
    /// It was fast retransmitted: only a timeout sends it once more (RFC 9260 section 7.2.4).
    fast_retransmitted: bool,
    missing: u8,
    payload: u16,
}

/// A transmission, by its number and TSN. It is obsolete once its chunk was acknowledged or sent again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Sent {
    order: u64,
    tsn: u32,
}

/// The packets of one destination, oldest first.
#[derive(Debug, Default)]
struct Queues {
    original: VecDeque<Sent>,
    retransmitted: VecDeque<Sent>,
    /// Payload and number of those that are still in flight.
    payload: u64,
    packets: u32,
}

/// The news of a SACK for one destination.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Progress {
    /// Packets and payload newly acknowledged.
    pub(crate) packets: u32,
    pub(crate) payload: u64,
    pub(crate) acked: Option<NewlyAcked>,
    /// Its pseudo-cumack or rtx-pseudo-cumack was acknowledged.
    pub(crate) advanced: bool,
    /// Its lowest outstanding TSN was acknowledged.
    pub(crate) lowest: bool,
    /// The latest of them that was sent only once: number of its transmission, and when that was.
    pub(crate) timed: Option<(u64, u64)>,
}

/// A chunk to put on the wire.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Transmission {
    pub(crate) tsn: u32,
    pub(crate) payload: u16,
    /// Where it was sent before.
    pub(crate) previous: usize,
}

pub(crate) struct Outstanding {
    /// Lowest TSN that is not acknowledged cumulatively; chunk i of `chunks` has TSN `first + i`.
    first: u32,
    chunks: VecDeque<Chunk>,
    queues: Vec<Queues>,
    /// TSNs to be sent again.
    marked: BTreeSet<u32>,
    orders: u64,
    /// Payload that was sent and is not acknowledged, to be sent again or not.
    unacked: u64,
}

impl Outstanding {
    pub(crate) fn new(destinations: usize) -> Self {
        Self {
            first: 0,
            chunks: VecDeque::new(),
            queues: (0..destinations).map(|_| Queues::default()).collect(),
            marked: BTreeSet::new(),
            orders: 0,
            unacked: 0,
        }
    }

    /// Lowest TSN that is not acknowledged cumulatively.
    pub(crate) fn first(&self) -> u32 {
        self.first
    }

    /// Next new TSN.
    pub(crate) fn next(&self) -> u32 {
        self.first + self.chunks.len() as u32
    }

    /// Payload sent and not acknowledged.
    pub(crate) fn unacked_bytes(&self) -> u64 {
        self.unacked
    }

    /// Packets in flight to a destination, and their payload.
    pub(crate) fn in_flight(&self, destination: usize) -> (u32, u64) {
        let queues = &self.queues[destination];
        (queues.packets, queues.payload)
    }

    /// Number of the last transmission.
    pub(crate) fn last_order(&self) -> u64 {
        self.orders
    }

    /// Lowest TSN to be sent again.
    pub(crate) fn first_marked(&self) -> Option<Transmission> {
        let tsn = *self.marked.first()?;
        let chunk = self.chunk(tsn);
        Some(Transmission {
            tsn,
            payload: chunk.payload,
            previous: usize::from(chunk.destination),
        })
    }

    /// A new chunk is sent; returns its TSN.
    pub(crate) fn send_new(&mut self, destination: usize, payload: u16, now: u64) -> u32 {
        let tsn = self.next();
        self.orders += 1;
        let order = self.orders;
        self.chunks.push_back(Chunk {
            state: State::InFlight,
            order,
            sent_ns: now,
            destination: destination as u8,
            is_retransmission: false,
            fast_retransmitted: false,
            missing: 0,
            payload,
        });
        self.unacked += u64::from(payload);
        let queues = self.add_to_flight(destination, payload);
        queues.original.push_back(Sent { order, tsn });
        tsn
    }

    /// A marked chunk is sent again. Returns whether it is now the lowest TSN in flight to its destination.
    pub(crate) fn retransmit(&mut self, tsn: u32, destination: usize, now: u64) -> bool {
        self.marked.remove(&tsn);
        let lowest = self.lowest(destination).is_none_or(|first| tsn < first);
        self.orders += 1;
        let order = self.orders;
        let chunk = self.chunk_mut(tsn);
        chunk.state = State::InFlight;
        chunk.order = order;
        chunk.sent_ns = now;
        chunk.destination = destination as u8;
        chunk.is_retransmission = true;
        chunk.missing = 0;
        let payload = chunk.payload;
        let queues = self.add_to_flight(destination, payload);
        queues.retransmitted.push_back(Sent { order, tsn });
        lowest
    }

    /// Take in a SACK: everything before `next` and in `blocks` has arrived. The answer has an entry per destination.
    pub(crate) fn on_sack(
        &mut self,
        next: u32,
        blocks: &[(u32, u32)],
        progress: &mut Vec<Progress>,
    ) {
        progress.clear();
        progress.resize(self.queues.len(), Progress::default());
        let oldest_before: Vec<[Option<Sent>; 2]> =
            (0..self.queues.len()).map(|d| self.oldest(d)).collect();
        // A SACK says nothing of what was not sent.
        let end = self.next();
        for tsn in self.first..next.min(end) {
            self.acknowledge(tsn, progress);
        }
        for &(from, to) in blocks {
            for tsn in from.max(next)..to.min(end) {
                self.acknowledge(tsn, progress);
            }
        }
        for (progress, oldest_before) in progress.iter_mut().zip(&oldest_before) {
            let arrived = |sent: &Sent| self.chunk(sent.tsn).state == State::Acked;
            progress.advanced = oldest_before.iter().flatten().any(arrived);
            let lowest = oldest_before.iter().flatten().min_by_key(|sent| sent.tsn);
            progress.lowest = lowest.is_some_and(arrived);
        }
        while self.first < next.min(end) {
            self.chunks.pop_front();
            self.first += 1;
        }
    }

    fn acknowledge(&mut self, tsn: u32, progress: &mut [Progress]) {
        let chunk = *self.chunk(tsn);
        match chunk.state {
            State::Acked => return,
            State::Marked => {
                self.marked.remove(&tsn);
            }
            State::InFlight => self.remove_from_flight(&chunk),
        }
        self.chunk_mut(tsn).state = State::Acked;
        self.unacked -= u64::from(chunk.payload);
        let progress = &mut progress[usize::from(chunk.destination)];
        progress.packets += 1;
        progress.payload += u64::from(chunk.payload);
        let seen = progress.acked.get_or_insert(NewlyAcked {
            oldest: chunk.order,
            newest: chunk.order,
        });
        seen.oldest = seen.oldest.min(chunk.order);
        seen.newest = seen.newest.max(chunk.order);
        if !chunk.is_retransmission && progress.timed.is_none_or(|(order, _)| order < chunk.order) {
            progress.timed = Some((chunk.order, chunk.sent_ns));
        }
    }

    /// Count missing reports against what was sent to a destination before `until`; `reports` says how many, by the
    /// number of the transmission. Marks what has enough of them; returns how many packets.
    pub(crate) fn report_missing(
        &mut self,
        destination: usize,
        until: u64,
        reports: impl Fn(u64) -> u32,
    ) -> u32 {
        self.oldest(destination);
        let earlier = |sent: &&Sent| sent.order < until;
        let queues = &self.queues[destination];
        let (original, retransmitted) = (queues.original.iter(), queues.retransmitted.iter());
        let suspects: Vec<Sent> = original
            .take_while(earlier)
            .chain(retransmitted.take_while(earlier))
            .copied()
            .collect();
        let mut lost = Vec::new();
        for sent in suspects {
            if !self.is_in_flight(sent) {
                continue;
            }
            let chunk = self.chunk_mut(sent.tsn);
            let reports = reports(sent.order).min(u32::from(u8::MAX)) as u8;
            chunk.missing = chunk.missing.saturating_add(reports);
            if u32::from(chunk.missing) >= MISSING_REPORTS && !chunk.fast_retransmitted {
                chunk.fast_retransmitted = true;
                lost.push(sent.tsn);
            }
        }
        for &tsn in &lost {
            self.mark(tsn);
        }
        lost.len() as u32
    }

    /// Mark all that is in flight to a destination (T3-rtx expired there); returns how many packets.
    pub(crate) fn mark_all(&mut self, destination: usize) -> u32 {
        let queues = &mut self.queues[destination];
        let sent: Vec<Sent> = queues
            .original
            .drain(..)
            .chain(queues.retransmitted.drain(..))
            .collect();
        let lost: Vec<Sent> = sent.into_iter().filter(|s| self.is_in_flight(*s)).collect();
        for sent in &lost {
            self.mark(sent.tsn);
        }
        lost.len() as u32
    }

    fn mark(&mut self, tsn: u32) {
        let chunk = *self.chunk(tsn);
        self.remove_from_flight(&chunk);
        self.chunk_mut(tsn).state = State::Marked;
        self.marked.insert(tsn);
    }

    /// Oldest packets in flight to a destination: of those sent once and of those sent again.
    fn oldest(&mut self, destination: usize) -> [Option<Sent>; 2] {
        let mut queues = std::mem::take(&mut self.queues[destination]);
        for queue in [&mut queues.original, &mut queues.retransmitted] {
            while queue.front().is_some_and(|sent| !self.is_in_flight(*sent)) {
                queue.pop_front();
            }
        }
        let oldest = [
            queues.original.front().copied(),
            queues.retransmitted.front().copied(),
        ];
        self.queues[destination] = queues;
        oldest
    }

    /// Number of the oldest transmission in flight to a destination.
    pub(crate) fn oldest_order(&mut self, destination: usize) -> Option<u64> {
        self.oldest(destination)
            .iter()
            .flatten()
            .map(|sent| sent.order)
            .min()
    }

    fn lowest(&mut self, destination: usize) -> Option<u32> {
        self.oldest(destination)
            .iter()
            .flatten()
            .map(|sent| sent.tsn)
            .min()
    }

    fn is_in_flight(&self, sent: Sent) -> bool {
        sent.tsn >= self.first && {
            let chunk = self.chunk(sent.tsn);
            chunk.state == State::InFlight && chunk.order == sent.order
        }
    }

    fn add_to_flight(&mut self, destination: usize, payload: u16) -> &mut Queues {
        let queues = &mut self.queues[destination];
        queues.packets += 1;
        queues.payload += u64::from(payload);
        queues
    }

    fn remove_from_flight(&mut self, chunk: &Chunk) {
        let queues = &mut self.queues[usize::from(chunk.destination)];
        queues.packets -= 1;
        queues.payload -= u64::from(chunk.payload);
    }

    fn chunk(&self, tsn: u32) -> &Chunk {
        &self.chunks[(tsn - self.first) as usize]
    }

    fn chunk_mut(&mut self, tsn: u32) -> &mut Chunk {
        &mut self.chunks[(tsn - self.first) as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::super::missing_reports::{SackInfo, reports};
    use super::*;

    const FAST: usize = 0;
    const SLOW: usize = 1;
    const PAYLOAD: u16 = 1000;

    fn sent_to(destinations: &[usize]) -> Outstanding {
        let mut all = Outstanding::new(2);
        for (tsn, d) in destinations.iter().enumerate() {
            assert_eq!(all.send_new(*d, PAYLOAD, 10 * tsn as u64), tsn as u32);
        }
        all
    }

    fn sack(all: &mut Outstanding, next: u32, blocks: &[(u32, u32)]) -> Vec<Progress> {
        let mut progress = Vec::new();
        all.on_sack(next, blocks, &mut progress);
        progress
    }

    /// Missing reports of a SACK as SFR counts them; returns the losses by destination.
    fn lost(all: &mut Outstanding, progress: &[Progress], packets: u32) -> Vec<u32> {
        let mixed = progress.iter().filter(|p| p.packets > 0).count() > 1;
        let info = SackInfo { mixed, packets };
        let of = |(d, p): (usize, &Progress)| match p.acked {
            None => 0,
            Some(acked) => all.report_missing(d, acked.newest, |order| reports(order, acked, info)),
        };
        progress.iter().enumerate().map(of).collect()
    }

    #[test]
    fn a_faster_path_that_overtakes_reports_nothing_missing() {
        // TSN 0 is still on its slow way when eight packets have come over the fast one.
        let mut all = sent_to(&[SLOW, FAST, FAST, FAST, FAST, FAST, FAST, FAST, FAST]);
        let mut unsplit = 0;
        for end in [3, 5, 7, 9] {
            let progress = sack(&mut all, 0, &[(1, end)]);
            // RFC 9260 without the split: every SACK for a higher TSN is a report against TSN 0.
            unsplit += u32::from(
                progress
                    .iter()
                    .any(|p| p.acked.is_some_and(|a| a.newest > 1)),
            );
            assert_eq!(lost(&mut all, &progress, 2), [0, 0]);
        }
        assert!(
            unsplit >= MISSING_REPORTS,
            "it would have been a spurious loss"
        );
        assert_eq!(all.first_marked().map(|t| t.tsn), None);
        assert_eq!(all.in_flight(SLOW), (1, 1000));
    }

    #[test]
    fn a_loss_on_a_path_is_found_by_its_own_packets() {
        let mut all = sent_to(&[FAST, SLOW, SLOW, SLOW, SLOW, FAST]);
        // TSN 1 is missing; 2 and 3, then 4, came over its path.
        let progress = sack(&mut all, 1, &[(2, 4)]);
        assert_eq!(
            lost(&mut all, &progress, 2),
            [0, 0],
            "a mixed SACK counts once"
        );
        let progress = sack(&mut all, 1, &[(2, 5)]);
        assert_eq!(
            lost(&mut all, &progress, 2),
            [0, 1],
            "two packets of the path count twice"
        );
        let again = all.first_marked().expect("TSN 1 is to be sent again");
        assert_eq!((again.tsn, again.previous), (1, SLOW));
        // It is not reported missing by what left before it, and fast retransmitted once only.
        all.retransmit(1, FAST, 99);
        let progress = sack(&mut all, 1, &[(2, 6)]);
        assert_eq!(lost(&mut all, &progress, 2), [0, 0]);
        for tsn in 6..16 {
            all.send_new(FAST, PAYLOAD, 100);
            let progress = sack(&mut all, 1, &[(2, tsn + 1)]);
            assert_eq!(lost(&mut all, &progress, 2), [0, 0]);
        }
        assert_eq!(all.mark_all(FAST), 1, "the timer may");
        assert_eq!((all.in_flight(FAST), all.in_flight(SLOW)), ((0, 0), (0, 0)));
        assert_eq!(all.unacked_bytes(), 1000);
        sack(&mut all, 16, &[]);
        assert_eq!(
            (
                all.first(),
                all.unacked_bytes(),
                all.first_marked().is_none()
            ),
            (16, 0, true)
        );
    }

    #[test]
    fn each_path_has_a_pseudo_cumulative_ack_for_data_and_one_for_retransmissions() {
        let mut all = sent_to(&[SLOW, FAST, SLOW, FAST, FAST]);
        let advanced = |p: &[Progress]| p.iter().map(|p| p.advanced).collect::<Vec<_>>();
        // The cumulative ACK stands at 0, but the fast path's lowest TSN, 1, has come.
        let progress = sack(&mut all, 0, &[(1, 2)]);
        assert_eq!(advanced(&progress), [true, false]);
        assert_eq!(
            (
                progress[FAST].packets,
                progress[FAST].payload,
                progress[FAST].lowest
            ),
            (1, 1000, true)
        );
        assert_eq!(progress[FAST].timed, Some((2, 10)));
        // 4 has come, 3 has not: no progress on the fast path. 2 without 0: none on the slow one.
        let progress = sack(&mut all, 0, &[(1, 3), (4, 5)]);
        assert_eq!(advanced(&progress), [false, false]);
        assert_eq!((progress[FAST].packets, progress[SLOW].packets), (1, 1));
        // 0 goes over the fast path now, whose lowest new TSN, 3, is still missing.
        assert_eq!(all.mark_all(SLOW), 1);
        assert!(all.retransmit(0, FAST, 70), "0 is its lowest TSN now");
        let progress = sack(&mut all, 3, &[(4, 5)]);
        assert_eq!(advanced(&progress), [true, false]);
        assert_eq!(
            progress[FAST].timed, None,
            "a retransmission measures no RTT"
        );
        assert_eq!(all.oldest_order(FAST), Some(4));
        assert_eq!(all.oldest_order(SLOW), None);
    }
}
