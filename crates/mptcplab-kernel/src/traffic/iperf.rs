//! iperf3 as the application of bulk TCP and MPTCP flows.
//!
//! iperf3 runs inside the flow's namespaces. The engine duplicates the descriptor of its data connection
//! (pidfd_getfd(2)), so that subflows, samples and read-back work as with the engine's own sender. iperf3 uses a control
//! connection before it sends data, so the data begin some round trips later. Their content is not checked, and the
//! delivered bytes are those that the kernel has received in order.

use super::connection::SubflowState;
use super::context::Context;
use crate::failure::Failure;
use crate::protocol::Programs;
use mptcplab_doctor::programs;
use mptcplab_net::{mptcp, socket};
use mptcplab_scenario::TcpFlow;
use nix::sys::prctl;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use rustix::process::{PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open};
use socket2::{Domain, SockRef};
use std::io::{self, Read as _};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::Ordering;

/// Advice with the names of Debian packages.
const PACKAGE: &str = "install the package iperf3, or leave --traffic iperf3 out";
const MPTCP_PACKAGE: &str =
    "install the package mptcpize, or iperf3 3.19 or newer, or leave --traffic iperf3 out";
/// Interval at which the program is checked.
const PAUSE_NS: u64 = 5_000_000;
/// iperf3 has a control connection and a data connection.
const CONNECTIONS: usize = 2;
/// Duration given to iperf3: longer than any run, because the engine ends it.
const SECONDS: &str = "86400";

/// How iperf3 can be started on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Iperf3 {
    iperf3: PathBuf,
    mptcp: Mptcp,
}

/// How it can be made to use MPTCP.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Mptcp {
    /// With its option `--mptcp`.
    Native,
    /// With `mptcpize run iperf3`, where this is mptcpize.
    Mptcpize(PathBuf),
    /// Not at all.
    No,
}

impl Programs {
    /// Finds the installed programs.
    pub(crate) fn find() -> Result<Self, Failure> {
        let find = |name| {
            programs::find(name).map_err(|why| {
                Failure::new(format!("{name} cannot be relied on: {why}"))
                    .hint("only root may be able to change it and the folders that it is in")
            })
        };
        let folders = programs::FOLDERS.join(", ");
        let none =
            || Failure::new(format!("cannot run iperf3: it is not in {folders}")).hint(PACKAGE);
        Ok(Self {
            iperf3: find("iperf3")?.ok_or_else(none)?,
            mptcpize: find("mptcpize")?,
        })
    }
}

impl Iperf3 {
    /// Finds out what the installed one can do. It is an error if MPTCP is needed and it does not support that.
    pub(crate) fn detect(programs: Programs, needs_mptcp: bool) -> Result<Self, Failure> {
        let Programs { iperf3, mptcpize } = programs;
        let help = Command::new(&iperf3).arg("--help").output();
        let help = help.map_err(|error| {
            Failure::new(format!("cannot run {}: {error}", iperf3.display())).hint(PACKAGE)
        })?;
        let text = [help.stdout, help.stderr].concat();
        let is_native = String::from_utf8_lossy(&text).contains("--mptcp");
        let mptcp = match mptcpize {
            _ if is_native => Mptcp::Native,
            Some(mptcpize) => Mptcp::Mptcpize(mptcpize),
            None if needs_mptcp => {
                let message = "this iperf3 does not support MPTCP, and mptcpize is not installed";
                return Err(Failure::new(message).hint(MPTCP_PACKAGE));
            }
            None => Mptcp::No,
        };
        Ok(Self { iperf3, mptcp })
    }

    fn command(&self, is_mptcp: bool) -> Command {
        let mut command = match &self.mptcp {
            Mptcp::Mptcpize(mptcpize) if is_mptcp => {
                let mut command = Command::new(mptcpize);
                command.arg("run").arg(&self.iperf3);
                command
            }
            _ => Command::new(&self.iperf3),
        };
        if is_mptcp && self.mptcp == Mptcp::Native {
            command.arg("--mptcp");
        }
        command
            .env_clear()
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        // SAFETY: between fork and exec only a system call is made, and no memory is allocated.
        unsafe {
            command.pre_exec(|| Ok(prctl::set_pdeathsig(Signal::SIGKILL)?));
        }
        command
    }
}

/// A running iperf3. It is killed when this is dropped or the thread that started it ends.
struct Program {
    child: Child,
}

impl Drop for Program {
    fn drop(&mut self) {
        // It may already have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The receiving thread of a flow.
pub(crate) fn receive(context: &Context, tcp: &TcpFlow, iperf3: &Iperf3) {
    context.state.counts.store(false, Ordering::Release);
    let mut command = iperf3.command(tcp.mptcp);
    command.args([
        "--version4",
        "--server",
        "--one-off",
        "--port",
        &context.plan.port.to_string(),
    ]);
    let result = start(command).and_then(|mut program| {
        let port = context.plan.port;
        let is_mine = |local: SocketAddr, _: SocketAddr| local.port() == port;
        let Some(stream) = data_connection(context, &mut program, is_mine)? else {
            return Ok(());
        };
        context.state.receiver.get_or_init(|| stream);
        watch(context, &mut program, u64::MAX)
    });
    report(context, "iperf3's server", result);
}

/// The sending thread of a flow.
pub(crate) fn send(context: &Context, tcp: &TcpFlow, iperf3: &Iperf3) {
    if context.begin().is_none() {
        return;
    }
    context
        .state
        .connection
        .set_state(0, SubflowState::Handshake);
    let ends = context.plan.subflows[0];
    let mut command = iperf3.command(tcp.mptcp);
    command.args([
        "--version4",
        "--client",
        &ends.destination.to_string(),
        "--port",
        &context.plan.port.to_string(),
    ]);
    command.args([
        "--bind",
        &ends.source.to_string(),
        "--congestion",
        &context.algorithm,
        "--time",
        SECONDS,
    ]);
    if !tcp.waits_to_fill_segments() {
        command.arg("--no-delay");
    }
    let result = start(command).and_then(|mut program| {
        let port = context.plan.port;
        let is_mine = |_: SocketAddr, remote: SocketAddr| remote.port() == port;
        let Some(stream) = data_connection(context, &mut program, is_mine)? else {
            return Ok(());
        };
        // iperf3 sets it too, but only some time after it has connected.
        socket::set_congestion(&stream, &context.algorithm).map_err(io::Error::other)?;
        if tcp.mptcp {
            if let Err(error) = mptcp::info(&stream) {
                context.reporter.invalidate(format!(
                    "flow {} does not use MPTCP: {error}",
                    context.flow.name
                ));
            }
        }
        context.state.connection.set_state(0, SubflowState::Open);
        context.state.connection.sender.get_or_init(|| stream);
        context.reporter.opened();
        watch(context, &mut program, context.stop_ns)?;
        if context.flow.stop_ns.is_some() && !context.shared.is_stopped() {
            // A stopped process writes nothing more, but its connection stays open.
            kill(Pid::from_raw(program.child.id() as i32), Signal::SIGSTOP)?;
            context.stop();
            watch(context, &mut program, u64::MAX)?;
        }
        Ok(())
    });
    report(context, "iperf3's client", result);
}

fn report(context: &Context, what: &str, result: io::Result<()>) {
    match result {
        Err(error) if !context.shared.is_stopped() => {
            context
                .reporter
                .end_run(format!("flow {}: {what}: {error}", context.flow.name));
        }
        _ => {}
    }
}

fn start(mut command: Command) -> io::Result<Program> {
    Ok(Program {
        child: command.spawn()?,
    })
}

/// Waits until a time or the end of the run. Fails if the program ends before.
fn watch(context: &Context, program: &mut Program, until_ns: u64) -> io::Result<()> {
    loop {
        program.check()?;
        let now = context.shared.clock.now_ns();
        if now >= until_ns
            || !context
                .shared
                .sleep_until((now + 10 * PAUSE_NS).min(until_ns))
        {
            return Ok(());
        }
    }
}

/// Waits for the program's data connection and duplicates it. `None` if the run ends before.
fn data_connection(
    context: &Context,
    program: &mut Program,
    is_mine: impl Fn(SocketAddr, SocketAddr) -> bool,
) -> io::Result<Option<TcpStream>> {
    loop {
        let mut found = program.connections(&is_mine);
        if found.len() == CONNECTIONS {
            // Descriptors are numbered in the order of opening, so the second connection carries the data.
            let stream = found.pop();
            if let Some(stream) = &stream {
                socket::set_reset_on_close(stream).map_err(io::Error::other)?;
            }
            return Ok(stream);
        }
        program.check()?;
        if !context
            .shared
            .sleep_until(context.shared.clock.now_ns() + PAUSE_NS)
        {
            return Ok(None);
        }
    }
}

impl Program {
    /// Fails with the program's error output if it has ended.
    fn check(&mut self) -> io::Result<()> {
        let Some(status) = self.child.try_wait()? else {
            return Ok(());
        };
        let mut said = String::new();
        if let Some(stderr) = &mut self.child.stderr {
            stderr.read_to_string(&mut said)?;
        }
        Err(io::Error::other(format!(
            "it ended ({status}): {}",
            said.trim()
        )))
    }

    /// Duplicates of the descriptors of its connections, in the order in which they were opened.
    fn connections(&self, is_mine: &impl Fn(SocketAddr, SocketAddr) -> bool) -> Vec<TcpStream> {
        let Some(process) = rustix::process::Pid::from_raw(self.child.id() as i32) else {
            return Vec::new();
        };
        let Ok(process_fd) = pidfd_open(process, PidfdFlags::empty()) else {
            return Vec::new();
        };
        let mut numbers: Vec<i32> = std::fs::read_dir(format!("/proc/{}/fd", self.child.id()))
            .into_iter()
            .flatten()
            .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
            .collect();
        numbers.sort_unstable();
        let duplicate =
            |number: i32| pidfd_getfd(&process_fd, number, PidfdGetfdFlags::empty()).ok();
        numbers
            .into_iter()
            .filter_map(duplicate)
            .filter_map(|fd| connected(fd, is_mine))
            .collect()
    }
}

/// The descriptor as a stream, if it is a connection of the flow.
fn connected(fd: OwnedFd, is_mine: &impl Fn(SocketAddr, SocketAddr) -> bool) -> Option<TcpStream> {
    let is_ipv4 = SockRef::from(&fd)
        .domain()
        .is_ok_and(|domain| domain == Domain::IPV4 || domain == Domain::IPV6);
    let stream = TcpStream::from(fd);
    let (local, remote) = (stream.local_addr().ok()?, stream.peer_addr().ok()?);
    (is_ipv4 && is_mine(local, remote)).then_some(stream)
}
