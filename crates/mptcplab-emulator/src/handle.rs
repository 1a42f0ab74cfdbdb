//! The interface for the emulator's owner: start, sample, stop.

use crate::command::{Command, Inbox};
use crate::engine::Engine;
use crate::error::Error;
use crate::report::{Report, Scheduling};
use crate::sample::Sample;
use crate::setup::Setup;
use crate::sys;
use nix::sys::eventfd::{EfdFlags, EventFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Sender, SyncSender, channel, sync_channel};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;

/// A running emulator. Dropping it stops it.
#[derive(Debug)]
pub struct Emulator {
    wakeup: Arc<EventFd>,
    commands: Sender<Command>,
    /// Why the thread ended, if that was an error.
    fault: Arc<OnceLock<Error>>,
    thread: Option<JoinHandle<Option<Report>>>,
    thread_id: i32,
    scheduling: Scheduling,
    counts: [usize; 2],
}

/// Gives an emulator's thread real-time priority. A process with CAP_SYS_NICE can do this for an emulator that may not do
/// it itself, for example because it is in a user namespace. [`Emulator::refresh_scheduling`] makes the emulator notice.
pub fn grant_real_time(thread_id: i32, priority: u8) -> Result<(), Error> {
    sys::set_real_time(thread_id, priority)
        .map_err(Error::system("give the emulator real-time priority"))
}

/// Starts the emulator's thread; when this returns, the thread reads packets. Errors name the link, port or pair of the
/// set-up that does not fit, or the port whose descriptor cannot be used.
pub fn start(setup: Setup) -> Result<Emulator, Error> {
    let wakeup = EventFd::from_flags(EfdFlags::EFD_NONBLOCK | EfdFlags::EFD_CLOEXEC);
    let wakeup = Arc::new(wakeup.map_err(Error::system("make an eventfd"))?);
    let (commands, receiver) = channel();
    let inbox = Inbox {
        wakeup: Arc::clone(&wakeup),
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
        wakeup,
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

/// The body of the thread. Returns `None` after an error, which is stored in `fault` before the thread can be seen to end.
fn run(
    setup: Setup,
    inbox: Inbox,
    ready: &SyncSender<(i32, Scheduling)>,
    fault: &OnceLock<Error>,
) -> Option<Report> {
    let result = catch_unwind(AssertUnwindSafe(|| {
        let mut engine = Engine::new(setup, &inbox)?;
        // The receiver is waiting for this message.
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
    /// The thread's id in the system, for [`grant_real_time`].
    pub fn thread_id(&self) -> i32 {
        self.thread_id
    }

    /// Reads again how the thread is scheduled, after another process may have changed it. The emulator spins before
    /// releases only while it has real-time priority; the report contains the latest state.
    pub fn refresh_scheduling(&mut self) -> Result<&Scheduling, Error> {
        let (reply, answer) = sync_channel(1);
        self.command(Command::RefreshScheduling(reply))?;
        self.scheduling = answer.recv().map_err(|_| self.reason())?;
        Ok(&self.scheduling)
    }

    /// How the thread was scheduled when that was last read.
    pub fn scheduling(&self) -> &Scheduling {
        &self.scheduling
    }

    /// Why the emulator ended on its own, if it did. This is a cheap check.
    pub fn fault(&self) -> Option<&Error> {
        self.fault.get()
    }

    /// The current counters. Waits for the thread, which answers between two packets.
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

    /// Stops the emulator without waiting for packets that are on links.
    pub fn stop(mut self) -> Result<Report, Error> {
        self.end()
    }

    fn end(&mut self) -> Result<Report, Error> {
        let Some(thread) = self.thread.take() else {
            return Err(Error::Stopped);
        };
        // This fails if the thread has already ended.
        let _ = self.command(Command::Stop);
        let report = thread.join().ok().flatten();
        report.ok_or_else(|| self.reason())
    }

    fn command(&self, command: Command) -> Result<(), Error> {
        self.commands.send(command).map_err(|_| self.reason())?;
        // This fails only if the eventfd's counter is full, in which case it is readable already.
        let _ = self.wakeup.write(1);
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
    use crate::clock::Clock;
    use crate::setup::Options;

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
        // The command may be handled before or after the request for a sample.
        assert_eq!(emulator.sample(), Err(panicked.clone()));
        assert_eq!(emulator.sample(), Err(panicked.clone()));
        assert_eq!(emulator.fault(), Some(&panicked));
        assert_eq!(emulator.stop(), Err(panicked));
    }
}
