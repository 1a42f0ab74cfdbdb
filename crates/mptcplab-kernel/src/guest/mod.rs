//! The first process of a virtual machine: boots the machine, lets the host take its snapshot, and runs one job. The job may
//! prepare the machine for another one; then the host takes a second snapshot in between.
//!
//! The other side is `python/mptcplab/engines/vm`. Everything from the host comes through the mailbox, memory that both
//! share, and is read between two instructions of the machine: nothing here depends on when the host does something.

mod archive;
mod job;
mod mailbox;
mod ports;
mod program;
mod system;
mod warm_up;

use crate::failure::Failure;
use archive::Archive;
use job::Job;
use mailbox::Mailbox;
use mptcplab_doctor::errln;
use nix::time::{ClockId, clock_gettime};
use program::Program;
use std::fs;
use std::path::Path;
use std::time::Duration;

const JOB: &str = "/job";
const OUT: &str = "/out";
/// The machine's time for what goes on in the background before a snapshot, such as processes that have just been started
/// and certificates that are verified. Idle time costs nothing.
const SETTLE: Duration = Duration::from_secs(20);

/// Runs the machine; does not return, because the kernel panics when its first process ends.
pub(crate) fn main() -> Result<u8, Failure> {
    if std::process::id() != 1 {
        return Err(Failure::new(
            "`guest` is the first process of a virtual machine, and this is none",
        )
        .hint("to run a scenario in a virtual machine: mptcplab run X.toml --engine vm"));
    }
    match machine() {
        Ok(()) => ports::exit(ports::DONE),
        Err(failure) => {
            errln!("error: {failure}");
            ports::exit(ports::FAILED)
        }
    }
}

fn machine() -> Result<(), Failure> {
    system::mount_all()?;
    system::insert_modules()?;
    system::loopback_up()?;
    system::leave_memory_to_tcp()?;
    let mut mailbox = Mailbox::open()?;
    fs::create_dir_all(OUT).map_err(|error| failed(OUT, &error))?;
    warm_up::run()?;
    let (mut start, job) = next_job(&mut mailbox)?;
    let mut program = Program::start(&job)?;
    if job.prepares && program.waits()? {
        std::thread::sleep(SETTLE);
        let (again, job) = next_job(&mut mailbox)?;
        start = again;
        program.run(&job)?;
    }
    let (code, stderr) = program.follow(&mut mailbox)?;
    let end = Reading::now()?;
    let mut result = Archive::default();
    result.add("code", code.to_string().as_bytes());
    result.add(
        "virtual_ns",
        (end.time_ns - start.time_ns).to_string().as_bytes(),
    );
    result.add(
        "busy_ns",
        (end.busy_ns - start.busy_ns).to_string().as_bytes(),
    );
    result.add("stderr", &stderr);
    result.add_tree("out", Path::new(OUT))?;
    mailbox.finish(result.bytes())
}

/// Stops until the host lets the machine continue with a job. It keeps a snapshot of the machine as it is here, from which
/// every such job continues.
fn next_job(mailbox: &mut Mailbox) -> Result<(Reading, Job), Failure> {
    // What is printed tells the host that the machine did not stop because of a panic.
    mailbox.print(b"\n")?;
    mailbox.forget_printed();
    ports::stop()?;
    let start = Reading::now()?;
    let job = Job::read(&mailbox.job()?)?;
    system::seed(job.seed)?;
    Ok((start, job))
}

/// The machine's time since it started, and for how much of it the processor ran a process.
///
/// /proc/uptime of Linux 7.3 says too much about the time without work: all of it in a run that was busy for 5 %.
struct Reading {
    time_ns: u64,
    busy_ns: u64,
}

impl Reading {
    fn now() -> Result<Self, Failure> {
        let time = clock_gettime(ClockId::CLOCK_BOOTTIME)
            .map_err(|errno| Failure::new(format!("clock: {errno}")))?;
        Ok(Self {
            time_ns: time.tv_sec() as u64 * 1_000_000_000 + time.tv_nsec() as u64,
            busy_ns: busy_ns()?,
        })
    }
}

/// The seventh number of the processor's line (Documentation/scheduler/sched-stats.rst of Linux).
fn busy_ns() -> Result<u64, Failure> {
    const STATISTICS: &str = "/proc/schedstat";
    let text = fs::read_to_string(STATISTICS).map_err(|error| failed(STATISTICS, &error))?;
    text.lines()
        .find_map(|line| line.strip_prefix("cpu0 "))
        .and_then(|numbers| numbers.split_whitespace().nth(6)?.parse().ok())
        .ok_or_else(|| Failure::new(format!("{STATISTICS}: no time of cpu0: {text:?}")))
}

/// An error of the machine itself; there is nothing that its user could do.
fn failed(what: &str, error: &std::io::Error) -> Failure {
    Failure::new(format!("{what}: {error}"))
}
