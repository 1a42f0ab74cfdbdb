//! Requests and messages over one connection: when they are sent, how large they are, and how large their answers are.

use super::config::{RequestTimes, Requests};
use super::draw;
use super::transfers::arrival;
use crate::link::rng::Rng;

/// A request or message to come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request {
    /// Number in its flow, from 0.
    pub index: u32,
    /// When it is sent.
    pub at_ns: u64,
    /// Its application bytes.
    pub bytes: u64,
    /// Those of the answer; `None` for a message without one.
    pub answer_bytes: Option<u64>,
}

/// The requests or messages of a flow, in order: of each the time is drawn, then the size, then that of the answer.
#[derive(Debug, Clone)]
pub struct RequestSchedule {
    requests: Requests,
    rng: Rng,
    start_ns: u64,
    stop_ns: u64,
    next: u32,
}

impl RequestSchedule {
    /// From `start_ns`, when the sending end knows that the connection is established, and no more from `stop_ns` on. `rng`: the
    /// flow's stream after its start was drawn.
    pub fn new(requests: Requests, rng: Rng, start_ns: u64, stop_ns: u64) -> Self {
        Self {
            requests,
            rng,
            start_ns,
            stop_ns,
            next: 0,
        }
    }

    /// Whether a request waits for the response to the one before.
    pub fn is_closed_loop(&self) -> bool {
        matches!(self.requests.times, RequestTimes::Think(_))
    }

    /// The first one.
    pub fn first(&mut self) -> Option<Request> {
        match self.requests.times {
            RequestTimes::Poisson { .. } => self.after(self.start_ns),
            RequestTimes::Think(_) | RequestTimes::Interval(_) => self.make(self.start_ns),
        }
    }

    /// The one after this time: that of the one before, or of its response where one waits for the other.
    pub fn after(&mut self, from_ns: u64) -> Option<Request> {
        let Requests { times, count, .. } = &self.requests;
        if count.is_some_and(|most| u64::from(self.next) >= most) {
            return None;
        }
        let at_ns = match times {
            RequestTimes::Think(pause) => {
                from_ns.saturating_add(draw::duration(*pause, &mut self.rng))
            }
            // Two at one time would be one after the other all the same.
            RequestTimes::Interval(interval) => {
                from_ns.saturating_add(draw::duration(*interval, &mut self.rng).max(1))
            }
            RequestTimes::Poisson { levels } => {
                let work = draw::exponential(&mut self.rng);
                arrival(levels, self.start_ns, from_ns, work)
            }
        };
        self.make(at_ns)
    }

    fn make(&mut self, at_ns: u64) -> Option<Request> {
        if at_ns >= self.stop_ns {
            return None;
        }
        let index = self.next;
        self.next += 1;
        let bytes = draw::size(self.requests.size, &mut self.rng);
        let answer = self.requests.answer;
        Some(Request {
            index,
            at_ns,
            bytes,
            answer_bytes: answer.map(|size| draw::size(size, &mut self.rng)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::traffic::config::{
        ArrivalRate, DurationDistribution, RequestKind, SizeDistribution,
    };

    const S: u64 = 1_000_000_000;

    fn rng() -> Rng {
        Rng::new(3, 1, "flow", "rpc")
    }

    fn schedule(times: RequestTimes, count: Option<u64>) -> RequestSchedule {
        let requests = Requests {
            kind: RequestKind::Requests,
            size: SizeDistribution::Fixed { bytes: 300 },
            answer: Some(SizeDistribution::Fixed { bytes: 7_000 }),
            times,
            count,
            bound_ns: None,
        };
        RequestSchedule::new(requests, rng(), 5 * S, 100 * S)
    }

    #[test]
    fn a_request_waits_for_the_response_before_and_the_think_time() {
        let mut one = schedule(
            RequestTimes::Think(DurationDistribution::Fixed(2 * S)),
            Some(3),
        );
        assert!(one.is_closed_loop());
        let first = Request {
            index: 0,
            at_ns: 5 * S,
            bytes: 300,
            answer_bytes: Some(7_000),
        };
        assert_eq!(one.first(), Some(first));
        assert_eq!(
            one.after(9 * S).map(|r| (r.index, r.at_ns)),
            Some((1, 11 * S))
        );
        assert_eq!(one.clone().after(98 * S), None);
        assert_eq!(one.after(20 * S).map(|r| r.index), Some(2));
        assert_eq!(one.after(30 * S), None);
    }

    #[test]
    fn messages_at_an_interval_do_not_wait() {
        let mut one = schedule(
            RequestTimes::Interval(DurationDistribution::Fixed(30 * S)),
            None,
        );
        assert!(!one.is_closed_loop());
        let mut times = Vec::new();
        let mut next = one.first();
        while let Some(message) = next {
            times.push(message.at_ns / S);
            next = one.after(message.at_ns);
        }
        assert_eq!(times, [5, 35, 65, 95]);
    }

    #[test]
    fn time_then_size_then_answer_are_drawn_from_the_flow_s_stream() {
        let levels = vec![ArrivalRate {
            per_1000_min: 60_000,
            lasts_ns: u64::MAX,
        }];
        let (size, answer) = (
            SizeDistribution::Exponential {
                mean_bytes: 400,
                max_bytes: 9_000,
            },
            SizeDistribution::Exponential {
                mean_bytes: 50_000,
                max_bytes: 900_000,
            },
        );
        let requests = Requests {
            size,
            answer: Some(answer),
            ..schedule(RequestTimes::Poisson { levels }, None).requests
        };
        let mut one = RequestSchedule::new(requests, rng(), 5 * S, 100 * S);
        let mut expected = rng();
        let (mut at_ns, mut next) = (5 * S, one.first());
        for index in 0..3 {
            // One a second: the exponential draw is the wait in seconds.
            at_ns += (draw::exponential(&mut expected) * 1e9) as u64;
            let wanted = Request {
                index,
                at_ns,
                bytes: draw::size(size, &mut expected),
                answer_bytes: Some(draw::size(answer, &mut expected)),
            };
            let found = next.expect("before the stop");
            assert!(found.at_ns.abs_diff(at_ns) <= 1, "{found:?}");
            at_ns = found.at_ns;
            assert_eq!(found, Request { at_ns, ..wanted });
            next = one.after(at_ns);
        }
    }
}
