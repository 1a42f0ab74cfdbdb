//! Requests and messages on one connection that lasts. The end that asks writes requests or messages at their times; the other
//! end answers what it has read completely. Both ends write without waiting, so that neither stops to read.

use super::context::Context;
use super::stream::{
    BUFFER_BYTES, PATIENCE, StreamReader, is_first_segment_acknowledged, is_not_ready, next_bytes,
};
use super::transfers::ready;
use mptcplab_model::traffic::{Request, RequestKind, RequestSchedule, Requests};
use mptcplab_scenario::TcpFlow;
use mptcplab_trace::EventKind;
use nix::poll::PollFlags;
use std::collections::VecDeque;
use std::io::{Error, ErrorKind, Result, Write as _};
use std::net::TcpStream;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Where in the flow's pattern the data begin that go from the flow's receiver to its sender, so that mixed-up directions are
/// detected: a prime.
const BACK_PLACE: u64 = 524_287;
/// Pause between two checks whether the first segment has been acknowledged.
const CHECK: Duration = Duration::from_millis(1);

/// The end at the flow's sender, until the run ends.
pub(super) fn at_sender(
    context: &Context,
    tcp: &TcpFlow,
    stream: &TcpStream,
    requests: &Requests,
) -> Result<()> {
    let mut end = End::new(context, tcp, stream, [0, BACK_PLACE]);
    end.reports_stop = context.flow.stop_ns.is_some();
    match requests.kind {
        RequestKind::Requests => answer(&mut end),
        RequestKind::Messages => ask(&mut end, requests),
    }
}

/// The end at the flow's receiver, until the run ends.
pub(super) fn at_receiver(
    context: &Context,
    tcp: &TcpFlow,
    stream: &TcpStream,
    requests: &Requests,
) -> Result<()> {
    let mut end = End::new(context, tcp, stream, [BACK_PLACE, 0]);
    end.receives_flow = true;
    match requests.kind {
        RequestKind::Requests => ask(&mut end, requests),
        RequestKind::Messages => answer(&mut end),
    }
}

/// One end of the connection: what it still has to write, and what it has read.
struct End<'a> {
    context: &'a Context,
    tcp: &'a TcpFlow,
    stream: &'a TcpStream,
    reader: StreamReader,
    buffer: Vec<u8>,
    /// Where in the flow's pattern the data begin that this end writes.
    place: u64,
    written: u64,
    /// First byte after everything that this end has to write.
    end: u64,
    first_is_acknowledged: bool,
    /// This end reads the data that count as the flow's.
    receives_flow: bool,
    /// This end reports the flow's stop, and has not yet.
    reports_stop: bool,
}

impl<'a> End<'a> {
    fn new(
        context: &'a Context,
        tcp: &'a TcpFlow,
        stream: &'a TcpStream,
        [place, reads]: [u64; 2],
    ) -> Self {
        Self {
            context,
            tcp,
            stream,
            reader: StreamReader::new(reads),
            buffer: vec![0; BUFFER_BYTES],
            place,
            written: 0,
            end: 0,
            first_is_acknowledged: !tcp.mptcp,
            receives_flow: false,
            reports_stop: false,
        }
    }

    fn now_ns(&self) -> u64 {
        self.context.shared.clock.now_ns()
    }

    /// Whether the run goes on. Reports the flow's stop when it is time.
    fn goes_on(&mut self) -> bool {
        let stop_ns = self.context.stop_ns;
        if self.reports_stop && self.now_ns() >= stop_ns {
            self.reports_stop = false;
            let reporter = &self.context.reporter;
            reporter.event(self.now_ns(), EventKind::FlowStopped, self.context.index, 0);
        }
        !self.context.shared.is_stopped()
    }

    /// Whether something may be written now. Like every connection, this one waits until its first segment is acknowledged.
    fn may_write(&mut self) -> bool {
        if self.written > 0 && !self.first_is_acknowledged {
            self.first_is_acknowledged = is_first_segment_acknowledged(self.stream);
        }
        self.written < self.end && (self.written == 0 || self.first_is_acknowledged)
    }

    /// Writes and reads what is possible at once; returns whether anything was read.
    fn exchange(&mut self) -> Result<bool> {
        while self.may_write() {
            let left = self.end - self.written;
            let place = self.place + self.written;
            let data = next_bytes(self.context, self.tcp, self.written, place, left);
            let mut stream = self.stream;
            match stream.write(data) {
                Ok(written) => self.written += written as u64,
                Err(error) if is_not_ready(&error) => break,
                Err(error) => return Err(error),
            }
        }
        let before = self.reader.position;
        if !self
            .reader
            .read(self.context, self.stream, &mut self.buffer)?
        {
            return Ok(false);
        }
        if self.receives_flow {
            let state = &self.context.state;
            if before == 0 {
                let reporter = &self.context.reporter;
                reporter.event(self.now_ns(), EventKind::FirstByte, self.context.index, 0);
            }
            state
                .delivered
                .store(self.reader.position, Ordering::Release);
        }
        Ok(true)
    }

    /// Waits until something can be read or written, or until a time of the run.
    fn wait(&mut self, until_ns: u64) -> Result<()> {
        let mut most = PATIENCE.min(self.context.shared.until(until_ns));
        let mut flags = PollFlags::POLLIN;
        if self.may_write() {
            flags |= PollFlags::POLLOUT;
        } else if self.written < self.end {
            most = most.min(CHECK);
        }
        ready(&[(self.stream, flags)], most).map(drop)
    }

    fn complete(&self, request: u32, now_ns: u64) {
        if now_ns > self.context.end_ns {
            return;
        }
        if let Some(row) = self.context.state.requests.complete(request, now_ns) {
            self.context.reporter.request(row);
        }
    }

    /// More was read than was written at the other end.
    fn excess(&self) -> Error {
        let what = format!(
            "{} bytes were received, which is more than was asked for",
            self.reader.position
        );
        Error::new(ErrorKind::InvalidData, what)
    }
}

/// The end that sends requests or messages first.
fn ask(end: &mut End<'_>, requests: &Requests) -> Result<()> {
    let context = end.context;
    let mut schedule = RequestSchedule::new(
        requests.clone(),
        context.rng.clone(),
        end.now_ns(),
        context.stop_ns,
    );
    let mut due = schedule.first();
    // Requests that are to be answered, and where the first one's answer begins.
    let (mut asked, mut begin): (VecDeque<Request>, u64) = (VecDeque::new(), 0);
    while end.goes_on() {
        while let Some(request) = due.take_if(|due| due.at_ns <= end.now_ns()) {
            let late_ns = end.now_ns() - request.at_ns;
            context.state.late_ns.fetch_max(late_ns, Ordering::Relaxed);
            context.state.requests.add(context.index, request);
            end.end += request.bytes;
            if request.answer_bytes.is_some() {
                asked.push_back(request);
            }
            if !schedule.is_closed_loop() {
                due = schedule.after(request.at_ns);
            }
        }
        if !end.exchange()? {
            let next_ns = due.map_or(u64::MAX, |due| due.at_ns);
            end.wait(next_ns.min(context.end_ns))?;
            continue;
        }
        let now = end.now_ns();
        while begin < end.reader.position {
            let Some(request) = asked.front().copied() else {
                return Err(end.excess());
            };
            context.state.requests.note_first_byte(request.index, now);
            let next = begin + request.answer_bytes.unwrap_or(0);
            if next > end.reader.position {
                break;
            }
            begin = next;
            asked.pop_front();
            end.complete(request.index, now);
            if schedule.is_closed_loop() {
                due = schedule.after(now);
            }
        }
    }
    Ok(())
}

/// The end that answers, or to which messages are just delivered.
fn answer(end: &mut End<'_>) -> Result<()> {
    let requests = &end.context.state.requests;
    // Where the request begins that is read next.
    let mut begin = 0;
    while end.goes_on() {
        if !end.exchange()? {
            end.wait(end.context.end_ns)?;
            continue;
        }
        let now = end.now_ns();
        while begin < end.reader.position {
            let Some(request) = requests.next_unread() else {
                return Err(end.excess());
            };
            if request.answer_bytes.is_none() {
                requests.note_first_byte(request.index, now);
            }
            if begin + request.bytes > end.reader.position {
                break;
            }
            begin += request.bytes;
            requests.note_read();
            match request.answer_bytes {
                Some(bytes) => end.end += bytes,
                None => end.complete(request.index, now),
            }
        }
    }
    Ok(())
}
