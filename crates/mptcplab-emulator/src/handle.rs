//! The owner's side: start, sample, stop.

use crate::engine::Engine;
use crate::{Error, Report, Scheduling, Setup, sys};
use mptcplab_model::link::LinkStats;
use nix::sys::eventfd::{EfdFlags, EventFd};
use serde::{Deserialize, Serialize};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;

/// Counters at one moment, all cumulative but for `changes` and the links' gauges and maxima.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Sample {
    /// When, on the run's clock.
    pub t_ns: u64,
    /// Each link.
    pub links: Vec<LinkStats>,
    /// Each address pair.
    pub pairs: Vec<PairStats>,
    /// Changes of links since the previous sample, in the order in which they took effect.
    pub changes: Vec<LinkChange>,
    /// Released packets so far that their destination's device did not take.
    pub write_failed_pkts: u64,
    /// Largest lateness of a release since the previous sample.
    pub lateness_max_ns: u64,
}

/// Data packets of one address pair so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct PairStats {
    /// Data packets that arrived at the pair's first link, before its losses.
    pub sent_pkts: u64,
    /// Data packets that its last link delivered.
    pub rx_pkts: u64,
    /// Their bytes with the last link's layer-2 overhead.
    pub rx_wire_bytes: u64,
    /// Their TCP or UDP payload.
    pub rx_payload_bytes: u64,
}

/// A link changed by its schedule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkChange {
    /// Index of the link.
    pub link: usize,
    /// Index of the change in the link's schedule.
    pub change: usize,
    /// When it took effect: the schedule's time.
    pub at_ns: u64,
}

/// What the thread is asked to do.
pub(crate) enum Command {
    /// Fill the sample, whose vectors have room, and send it back.
    Sample(Box<Sample>, SyncSender<Box<Sample>>),
    LookAtScheduling(SyncSender<Scheduling>),
    Stop,
    #[cfg(test)]
    Panic,
}

/// The thread's end of the command queue: `bell` is readable when there are commands.
pub(crate) struct Inbox {
    pub(crate) bell: Arc<EventFd>,
    pub(crate) commands: Receiver<Command>,
}

/// A running emulator. Dropping it stops it.
#[derive(Debug)]
pub struct Emulator {
    bell: Arc<EventFd>,
    commands: Sender<Command>,
    /// Why the thread ended, if that was an error.
    fault: Arc<OnceLock<Error>>,
    thread: Option<JoinHandle<Option<Report>>>,
    thread_id: i32,
    scheduling: Scheduling,
    counts: [usize; 2],
}

/// Give an emulator's thread real-time priority, from any process with CAP_SYS_NICE: for an emulator that has been
/// refused it, in a user namespace for example. [`Emulator::look_at_scheduling`] makes the emulator notice.
pub fn grant_real_time(thread_id: i32, priority: u8) -> Result<(), Error> {
    sys::set_real_time(thread_id, priority)
        .map_err(Error::system("give the emulator real-time priority"))
}

/// Start the emulator's thread; when this returns, it reads packets. Errors name the link, port or pair of the set-up
/// that does not fit, or the port whose descriptor cannot be used.
pub fn start(setup: Setup) -> Result<Emulator, Error> {
    let bell = EventFd::from_flags(EfdFlags::EFD_NONBLOCK | EfdFlags::EFD_CLOEXEC);
    let bell = Arc::new(bell.map_err(Error::system("make an eventfd"))?);
    let (commands, receiver) = channel();
    let inbox = Inbox {
        bell: Arc::clone(&bell),
        commands: receiver,
    };
    let counts = [setup.links.len(), setup.pairs.len()];
    let fault = Arc::new(OnceLock::new());
    let thread_fault = Arc::clone(&fault);
    let (ready, started) = sync_channel(1);
    let thread = std::thread::Builder::new()
        .name("emulator".to_owned())
        .spawn(move || run(setup, inbox, &ready, &thread_fault))
        .map_err(|error| Error::System {
            action: "start a thread",
            errno: error
                .raw_os_error()
                .map_or(nix::errno::Errno::EAGAIN, nix::errno::Errno::from_raw),
        })?;
    let mut emulator = Emulator {
        bell,
        commands,
        fault,
        thread: Some(thread),
        thread_id: 0,
        scheduling: Scheduling::Normal { refused: None },
        counts,
    };
    match started.recv() {
        Ok((thread_id, scheduling)) => {
            (emulator.thread_id, emulator.scheduling) = (thread_id, scheduling)
        }
        Err(_) => return Err(emulator.end().err().unwrap_or(Error::Stopped)),
    }
    Ok(emulator)
}

/// The thread: `None` after an error, which is in `fault` before anybody can see that the thread has ended.
fn run(
    setup: Setup,
    inbox: Inbox,
    ready: &SyncSender<(i32, Scheduling)>,
    fault: &OnceLock<Error>,
) -> Option<Report> {
    let result = catch_unwind(AssertUnwindSafe(|| {
        let mut engine = Engine::new(setup, &inbox)?;
        // The receiver waits for this.
        let _ = ready.send((sys::thread_id(), engine.scheduling().clone()));
        engine.run(&inbox)?;
        Ok(engine.report())
    }));
    let result = result.unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
        let message = text.or_else(|| panic.downcast_ref::<String>().cloned());
        Err(Error::Panicked {
            message: message.unwrap_or_else(|| "without a message".to_owned()),
        })
    });
    let report = result.map_err(|error| fault.set(error)).ok();
    drop(inbox);
    report
}

impl Emulator {
    /// The thread's number in the system, for [`grant_real_time`].
    pub fn thread_id(&self) -> i32 {
        self.thread_id
    }

    /// How the thread is scheduled now, after somebody changed it. The emulator spins before releases from now on if it
    /// has real-time priority, and only then; the report tells the latest state.
    pub fn look_at_scheduling(&mut self) -> Result<&Scheduling, Error> {
        let (reply, answer) = sync_channel(1);
        self.command(Command::LookAtScheduling(reply))?;
        self.scheduling = answer.recv().map_err(|_| self.reason())?;
        Ok(&self.scheduling)
    }

    /// How the thread is scheduled, as far as it knows.
    pub fn scheduling(&self) -> &Scheduling {
        &self.scheduling
    }

    /// Why the emulator ended on its own, if it did. Costs next to nothing.
    pub fn fault(&self) -> Option<&Error> {
        self.fault.get()
    }

    /// The counters now. Waits for the thread, which answers between two packets.
    pub fn sample(&self) -> Result<Sample, Error> {
        let [links, pairs] = self.counts;
        let empty = Box::new(Sample {
            links: Vec::with_capacity(links),
            pairs: Vec::with_capacity(pairs),
            ..Sample::default()
        });
        let (reply, answer) = sync_channel(1);
        self.command(Command::Sample(empty, reply))?;
        answer
            .recv()
            .map(|sample| *sample)
            .map_err(|_| self.reason())
    }

    /// Stop, without waiting for packets that are on links.
    pub fn stop(mut self) -> Result<Report, Error> {
        self.end()
    }

    fn end(&mut self) -> Result<Report, Error> {
        let Some(thread) = self.thread.take() else {
            return Err(Error::Stopped);
        };
        // Fails if the thread has ended.
        let _ = self.command(Command::Stop);
        let report = thread.join().ok().flatten();
        report.ok_or_else(|| self.reason())
    }

    fn command(&self, command: Command) -> Result<(), Error> {
        self.commands.send(command).map_err(|_| self.reason())?;
        // Fails only if 2^64 commands wait: then the bell rings already.
        let _ = self.bell.write(1);
        Ok(())
    }

    fn reason(&self) -> Error {
        self.fault.get().cloned().unwrap_or(Error::Stopped)
    }
}

impl Drop for Emulator {
    fn drop(&mut self) {
        let _ = self.end();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Clock, Options};

    #[test]
    fn a_panic_ends_it_with_its_message() {
        let emulator = start(Setup {
            clock: Clock::starting_now(),
            ports: Vec::new(),
            links: Vec::new(),
            pairs: Vec::new(),
            options: Options {
                priority: None,
                ..Options::default()
            },
        })
        .expect("an emulator without links");
        assert_eq!(emulator.sample().expect("a sample").links, []);
        assert_eq!(emulator.fault(), None);
        emulator.command(Command::Panic).expect("it runs");
        let panicked = Error::Panicked {
            message: "as the test wants".to_owned(),
        };
        // The command may be obeyed before or after the question.
        assert_eq!(emulator.sample(), Err(panicked.clone()));
        assert_eq!(emulator.sample(), Err(panicked.clone()));
        assert_eq!(emulator.fault(), Some(&panicked));
        assert_eq!(emulator.stop(), Err(panicked));
    }
}
