//! The first process of a virtual machine: prepares the machine, lets the host take its snapshot, and runs one job.
//!
//! The other side is `python/mptcplab/engines/vm`. Everything from the host comes through the mailbox, memory that both
//! share, and is read between two instructions of the machine: nothing here depends on when the host does something.

mod archive;
mod mailbox;
mod ports;
mod system;
mod warm_up;

use crate::failure::Failure;
use archive::Archive;
use mailbox::Mailbox;
use mptcplab_doctor::errln;
use nix::time::{ClockId, clock_gettime};
use std::fs::{self, File};
use std::io::Read as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

const JOB: &str = "/job";
const OUT: &str = "/out";
const STDERR: &str = "/run/stderr";
/// The program that jobs run, unless they name another one of their files.
const PROGRAM: &str = "/bin/mptcplab-kernel";

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
    let mut mailbox = Mailbox::open()?;
    fs::create_dir_all(OUT).map_err(|error| failed(OUT, &error))?;
    warm_up::run()?;
    // The host keeps a snapshot of the machine as it is here, and every job continues from it. What is printed tells it
    // that the machine did not stop because of a panic.
    mailbox.print(b"\n")?;
    mailbox.forget_printed();
    ports::stop()?;
    let start = Reading::now()?;
    let job = Job::read(&mailbox.job()?)?;
    system::seed(job.seed)?;
    let code = run(&job, &mut mailbox)?;
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
    result.add(
        "stderr",
        &fs::read(STDERR).map_err(|error| failed(STDERR, &error))?,
    );
    result.add_tree("out", Path::new(OUT))?;
    mailbox.finish(result.bytes())
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

/// What the host asks for.
struct Job {
    program: String,
    arguments: Vec<String>,
    seed: [u8; 8],
}

impl Job {
    /// Reads the job and writes its files.
    fn read(bytes: &[u8]) -> Result<Self, Failure> {
        let mut job = Self {
            program: PROGRAM.to_owned(),
            arguments: Vec::new(),
            seed: [0; 8],
        };
        fs::create_dir_all(JOB).map_err(|error| failed(JOB, &error))?;
        for (name, content) in archive::entries(bytes)? {
            match name.split_once('/') {
                None if name == "seed" => {
                    job.seed = content.try_into().map_err(|_| {
                        Failure::new(format!("job: a seed of {} bytes", content.len()))
                    })?;
                }
                None if name == "program" => job.program = text(name, content)?.to_owned(),
                None if name == "arguments" => {
                    job.arguments = text(name, content)?
                        .split('\0')
                        .map(str::to_owned)
                        .collect();
                }
                Some(("job", path)) => {
                    let path = Path::new(JOB).join(path);
                    write(&path, content)
                        .map_err(|error| failed(&path.display().to_string(), &error))?;
                }
                _ => return Err(Failure::new(format!("job: unknown entry: {name}"))),
            }
        }
        Ok(job)
    }
}

fn text<'a>(name: &str, content: &'a [u8]) -> Result<&'a str, Failure> {
    std::str::from_utf8(content).map_err(|error| Failure::new(format!("job: {name}: {error}")))
}

/// Every file may be a program.
fn write(path: &Path, content: &[u8]) -> std::io::Result<()> {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    fs::write(path, content)?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o755))
}

/// Runs the program and passes on what it prints; returns its exit code.
fn run(job: &Job, mailbox: &mut Mailbox) -> Result<i32, Failure> {
    let stderr = File::create(STDERR).map_err(|error| failed(STDERR, &error))?;
    let program = &job.program;
    let mut child = Command::new(program)
        .args(&job.arguments)
        .current_dir(JOB)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(stderr)
        .spawn()
        .map_err(|error| failed(program, &error))?;
    if let Some(mut stdout) = child.stdout.take() {
        let mut buffer = vec![0; 65_536];
        loop {
            match stdout.read(&mut buffer) {
                Ok(0) => break,
                Ok(length) => mailbox.print(&buffer[..length])?,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Err(failed("output of the program", &error)),
            }
        }
    }
    let status = child.wait().map_err(|error| failed(program, &error))?;
    // Shells report signals like this.
    let signal = std::os::unix::process::ExitStatusExt::signal(&status);
    Ok(status.code().unwrap_or(128 + signal.unwrap_or(0)))
}

/// An error of the machine itself; there is nothing that its user could do.
fn failed(what: &str, error: &std::io::Error) -> Failure {
    Failure::new(format!("{what}: {error}"))
}
