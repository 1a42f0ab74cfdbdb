//! What the two ends of a lasting connection say to each other: the request or message that is due, and those that are under
//! way. Sends nothing itself: the engine moves the connection's two directions.

use crate::net::World;
use crate::net::event::NEVER;
use crate::net::record::since;
use mptcplab_model::link::rng::Rng;
use mptcplab_model::traffic::{Request, RequestKind, RequestSchedule, Requests};
use mptcplab_trace::RequestRow;
use std::collections::VecDeque;

/// The requests or messages of a flow.
pub(crate) struct Dialogue {
    flow: u32,
    kind: RequestKind,
    /// With the flow's stop as its end; begun when the connection is established.
    schedule: Schedule,
    /// The request that is sent next.
    due: Option<Request>,
    /// Requests whose responses are not complete, in order.
    open: VecDeque<Request>,
    /// How many of them have been answered.
    answered: usize,
    /// The connection in the direction from the flow's receiver to its sender, if anything goes there.
    pub(crate) back: Option<u32>,
    /// Delay of the first path, which the last packet of the handshake takes.
    delay_ns: u64,
}

enum Schedule {
    Waits(Requests, Rng),
    /// The connection is established, and the end that sends first knows it then.
    Begins(Requests, Rng, u64),
    Runs(RequestSchedule),
}

/// Where a request is on its way.
pub(crate) enum Step {
    /// It has arrived: this many bytes are the answer.
    Answer(u64),
    /// Its response, or the message itself, is complete.
    Complete,
}

impl Dialogue {
    pub(crate) fn new(flow: u32, requests: Requests, rng: Rng, delay_ns: u64) -> Self {
        Self {
            flow,
            kind: requests.kind,
            schedule: Schedule::Waits(requests, rng),
            due: None,
            open: VecDeque::new(),
            answered: 0,
            back: None,
            delay_ns,
        }
    }

    /// The connection is established at the flow's sender. Returns when the end that sends first knows it.
    pub(super) fn on_open(&mut self, now: u64) -> u64 {
        let begins_ns = match self.kind {
            RequestKind::Requests => now + self.delay_ns,
            RequestKind::Messages => now,
        };
        if let Schedule::Waits(requests, rng) = &self.schedule {
            self.schedule = Schedule::Begins(requests.clone(), rng.clone(), begins_ns);
        }
        begins_ns
    }

    /// Begin to send requests if it is time; returns whether it has begun now.
    pub(crate) fn begin(&mut self, now: u64, stop_ns: u64) -> bool {
        let Schedule::Begins(requests, rng, at) = &self.schedule else {
            return false;
        };
        if *at > now {
            return false;
        }
        let mut schedule = RequestSchedule::new(requests.clone(), rng.clone(), now, stop_ns);
        self.due = schedule.first();
        self.schedule = Schedule::Runs(schedule);
        true
    }

    /// A request that is due; in an open loop the one after it is planned.
    pub(crate) fn take_due(&mut self, now: u64) -> Option<Request> {
        let request = self.due.take_if(|due| due.at_ns <= now)?;
        if let Schedule::Runs(schedule) = &mut self.schedule {
            if !schedule.is_closed_loop() {
                self.due = schedule.after(request.at_ns);
            }
        }
        self.open.push_back(request);
        Some(request)
    }

    /// When the next request is sent, as far as that is known.
    pub(crate) fn next_ns(&self) -> u64 {
        match &self.schedule {
            Schedule::Begins(_, _, at) => *at,
            Schedule::Waits(..) | Schedule::Runs(_) => self.due.map_or(NEVER, |due| due.at_ns),
        }
    }

    /// The direction in which requests travel, as an index of a connection: `main` is that from the flow's sender.
    pub(crate) fn asking(&self, main: usize) -> usize {
        match (self.kind, self.back) {
            (RequestKind::Requests, Some(back)) => back as usize,
            _ => main,
        }
    }

    /// The other direction, if anything goes there.
    pub(crate) fn answering(&self, main: usize) -> Option<usize> {
        let back = self.back? as usize;
        Some(match self.kind {
            RequestKind::Requests => main,
            RequestKind::Messages => back,
        })
    }

    /// The next message in the direction `leg` is complete.
    pub(crate) fn on_message(&mut self, main: usize, leg: usize) -> Step {
        if self.answering(main).is_none_or(|answers| answers == leg) {
            return Step::Complete;
        }
        let bytes = self.open.get(self.answered).and_then(|r| r.answer_bytes);
        self.answered += 1;
        // A direction for answers exists only if every request has one.
        Step::Answer(bytes.unwrap_or(1))
    }

    /// The oldest request is complete.
    pub(crate) fn complete(&mut self, cx: &mut World, first_byte_ns: u64) {
        if let Some(request) = self.open.pop_front() {
            self.answered = self.answered.saturating_sub(1);
            self.record(cx, &request, first_byte_ns, cx.now);
        }
        match &mut self.schedule {
            Schedule::Runs(schedule) if schedule.is_closed_loop() => {
                self.due = schedule.after(cx.now);
            }
            _ => {}
        }
    }

    /// The run is over. `first_byte_ns`: when the first byte came of the i-th message that is not complete in the direction in
    /// which requests are completed.
    pub(crate) fn record_unfinished(&self, cx: &mut World, first_byte_ns: impl Fn(usize) -> u64) {
        for (i, request) in self.open.iter().enumerate() {
            self.record(cx, request, first_byte_ns(i), NEVER);
        }
    }

    fn record(&self, cx: &mut World, request: &Request, first_byte_ns: u64, done_ns: u64) {
        cx.rec.tables.request.push(RequestRow {
            t_ns: request.at_ns,
            flow: self.flow,
            request: request.index,
            request_bytes: request.bytes,
            response_bytes: request.answer_bytes.unwrap_or(0),
            first_byte_ns: since(first_byte_ns, request.at_ns),
            completion_ns: since(done_ns, request.at_ns),
        });
    }
}
