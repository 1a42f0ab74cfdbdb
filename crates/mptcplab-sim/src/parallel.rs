//! Simulates the parts of a run on several threads. The caller gets the same rows in the same order as from one thread.
//!
//! Threads take the parts in their order. The calling thread passes on the rows of one part after the other; those of later
//! parts wait, but no more than [`MOST_WAITING_ROWS`]: then their threads wait for the parts before.

use crate::control::{Caller, Control, Receiver, SimError, Sink};
use crate::engine::partition::Part;
use crate::{Outcome, PartOutcome, simulate_part};
use mptcplab_scenario::Run;
use mptcplab_trace::Tables;
use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

/// Rows that wait for parts before them; of 30 to 170 bytes each.
const MOST_WAITING_ROWS: usize = 1 << 19;

/// Messages of the part whose turn it is that wait for the caller.
const MOST_MESSAGES: usize = 8;

/// Threads that simulate one run.
#[derive(Debug, Clone, Copy)]
pub struct Threads {
    /// How many, beside the calling one, which only passes on the rows.
    pub count: usize,
    /// Calls a function; the error is the message of a panic.
    pub catch: fn(&mut dyn FnMut()) -> Result<(), String>,
}

enum Message {
    Rows(Tables),
    End(Result<PartOutcome, SimError>),
}

/// What waits for the caller.
#[derive(Default)]
struct Waiting {
    /// The part whose rows the caller takes.
    turn: usize,
    messages: BTreeMap<usize, VecDeque<Message>>,
    rows: usize,
    panicked: Option<String>,
}

#[derive(Default)]
struct Queue {
    waiting: Mutex<Waiting>,
    changed: Condvar,
    /// Nobody takes messages any more.
    stopped: AtomicBool,
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        // Whoever panicked did so elsewhere: these functions do not.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&self, waiting: MutexGuard<'a, Waiting>) -> MutexGuard<'a, Waiting> {
        let woken = self.changed.wait(waiting);
        woken.unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a message of a part once there is room for it. Returns whether the run goes on.
    fn send(&self, part: usize, message: Message) -> bool {
        let rows = match &message {
            Message::Rows(tables) => tables.len(),
            Message::End(_) => 0,
        };
        let mut waiting = self.lock();
        while rows > 0 && !self.is_stopped() && waiting.is_full_for(part) {
            waiting = self.wait(waiting);
        }
        waiting.rows += rows;
        waiting.messages.entry(part).or_default().push_back(message);
        self.changed.notify_all();
        !self.is_stopped()
    }

    /// Takes the next message of the part whose turn it is.
    fn receive(&self) -> Result<Message, SimError> {
        let mut waiting = self.lock();
        loop {
            if let Some(message) = waiting.panicked.take() {
                return Err(SimError::Panicked(message));
            }
            let turn = waiting.turn;
            let messages = waiting.messages.get_mut(&turn);
            if let Some(message) = messages.and_then(VecDeque::pop_front) {
                match &message {
                    Message::Rows(tables) => waiting.rows -= tables.len(),
                    Message::End(_) => {
                        waiting.messages.remove(&turn);
                        waiting.turn += 1;
                    }
                }
                self.changed.notify_all();
                return Ok(message);
            }
            waiting = self.wait(waiting);
        }
    }

    fn stop(&self) {
        // Locked, so that nobody is between looking at it and waiting.
        let _waiting = self.lock();
        self.stopped.store(true, Ordering::Relaxed);
        self.changed.notify_all();
    }

    fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }

    fn note_panic(&self, message: String) {
        self.lock().panicked = Some(message);
        self.stop();
    }
}

/// Stops the threads when the caller leaves, even by a panic of its own.
struct Stop<'a>(&'a Queue);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.stop();
    }
}

impl Waiting {
    fn is_full_for(&self, part: usize) -> bool {
        if part == self.turn {
            let messages = self.messages.get(&part).map_or(0, VecDeque::len);
            messages >= MOST_MESSAGES
        } else {
            self.rows >= MOST_WAITING_ROWS
        }
    }
}

/// Simulates all parts of a run; the rest as [`simulate_streaming`](crate::simulate_streaming).
pub(crate) fn simulate(
    run: &Run,
    parts: &[Part],
    control: &Control,
    threads: Threads,
    sink: &mut dyn FnMut(&mut Tables) -> bool,
) -> Result<Outcome, SimError> {
    let (queue, next) = (Queue::default(), AtomicUsize::new(0));
    let work = || {
        loop {
            let part = next.fetch_add(1, Ordering::Relaxed);
            if part >= parts.len() || !simulate_next(run, parts, part, control, &queue) {
                return;
            }
        }
    };
    thread::scope(|scope| {
        for _ in 0..threads.count.min(parts.len()) {
            scope.spawn(|| {
                if let Err(message) = (threads.catch)(&mut || work()) {
                    queue.note_panic(message);
                }
            });
        }
        let _stop = Stop(&queue);
        collect(run, parts, &queue, sink)
    })
}

/// Returns whether the run goes on.
fn simulate_next(run: &Run, parts: &[Part], part: usize, control: &Control, queue: &Queue) -> bool {
    let send = |tables: &mut Tables| queue.send(part, Message::Rows(std::mem::take(tables)));
    let mut take = send;
    let mut caller = Caller {
        control,
        share: parts.len() as u64,
        receiver: Receiver::Sink(Sink::new(&mut take)),
        abandoned: Some(&queue.stopped),
    };
    let mut outcome = simulate_part(run, &parts[part], Tables::default(), &mut caller);
    let mut left = match &mut outcome {
        Ok(outcome) => std::mem::take(&mut outcome.tables),
        Err(_) => Tables::default(),
    };
    (left.is_empty() || send(&mut left)) && queue.send(part, Message::End(outcome))
}

fn collect(
    run: &Run,
    parts: &[Part],
    queue: &Queue,
    take: &mut dyn FnMut(&mut Tables) -> bool,
) -> Result<Outcome, SimError> {
    let mut outcome = Outcome::of(run, Tables::default());
    let mut sink = Sink::new(take);
    let mut ended = 0;
    while ended < parts.len() {
        match queue.receive()? {
            Message::Rows(mut rows) => {
                outcome.tables.append(&mut rows);
                if !sink.offer(&mut outcome.tables) {
                    return Err(SimError::Cancelled);
                }
            }
            Message::End(part) => {
                outcome.add(part?);
                ended += 1;
            }
        }
    }
    Ok(outcome)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::tests::rows;
    use std::time::Duration;

    #[test]
    fn the_end_of_a_part_needs_no_room() {
        let queue = Queue::default();
        queue.lock().rows = MOST_WAITING_ROWS;
        assert!(queue.send(1, Message::End(Err(SimError::Cancelled))));
    }

    #[test]
    fn the_threads_stop_when_the_caller_leaves() {
        let queue = Queue::default();
        drop(Stop(&queue));
        assert!(!queue.send(0, Message::End(Err(SimError::Cancelled))));
    }

    #[test]
    fn later_parts_wait_when_there_are_many_rows_and_the_first_when_there_are_many_messages() {
        let mut waiting = Waiting {
            turn: 3,
            rows: MOST_WAITING_ROWS - 1,
            ..Waiting::default()
        };
        assert!(!waiting.is_full_for(4));
        waiting.rows += 1;
        assert!(waiting.is_full_for(4) && !waiting.is_full_for(3));
        let messages = (0..MOST_MESSAGES).map(|_| Message::Rows(Tables::default()));
        waiting.messages.insert(3, messages.collect());
        assert!(waiting.is_full_for(3));
    }

    #[test]
    fn a_part_that_waits_for_room_goes_on_at_its_turn_or_when_the_caller_leaves() {
        for is_its_turn in [true, false] {
            let queue = Queue::default();
            queue.lock().rows = MOST_WAITING_ROWS;
            let tables = rows(1);
            thread::scope(|scope| {
                let sending = scope.spawn(|| queue.send(1, Message::Rows(tables)));
                thread::sleep(Duration::from_millis(30));
                assert!(!sending.is_finished());
                if is_its_turn {
                    queue.send(0, Message::End(Err(SimError::Cancelled)));
                    assert!(matches!(queue.receive(), Ok(Message::End(Err(_)))));
                } else {
                    queue.stop();
                }
                assert_eq!(sending.join().expect("no panic"), is_its_turn);
            });
        }
    }
}
