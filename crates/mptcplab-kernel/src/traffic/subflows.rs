//! Opens the further subflows of a connection at their times, removes those that end, and detects those that do not join or
//! close unexpectedly.

use super::connection::{Connection, SubflowState};
use super::context::Context;
use mptcplab_net::mptcp::{self, LocalAddress, PathManager, Subflow as Found};
use mptcplab_net::{NetError, TcpState};
use mptcplab_scenario::{Subflow, TcpFlow};
use mptcplab_trace::EventKind;
use std::net::{SocketAddrV4, TcpStream};
use std::sync::Arc;

/// Interval of checks while a subflow is being opened.
const BUSY_NS: u64 = 1_000_000;
/// Interval of checks otherwise.
const IDLE_NS: u64 = 50_000_000;
/// Time that a subflow has to join. The kernel gives up after 127 s, or 131 s since Linux 6.5.
const JOIN_NS: u64 = 135_000_000_000;

/// The further subflows of one connection.
pub(super) struct SubflowManager<'a> {
    context: &'a Context,
    subflows: &'a [Subflow],
    paths: &'a PathManager,
    connection: Arc<Connection>,
    token: u32,
    /// Number of the transfer that the connection carries, if it is one of several; the trace has no events of those.
    transfer: Option<u32>,
    /// When each subflow was first requested from the kernel.
    requested_ns: Vec<Option<u64>>,
    /// Whether each subflow was last set to be a backup.
    backups: Vec<bool>,
}

/// The thread that manages the subflows of a flow's connection.
pub(crate) fn manage(context: &Context, tcp: &TcpFlow, paths: &PathManager) {
    if !wait_for_connection(context) {
        return;
    }
    let connection = &context.state.connection;
    let result = SubflowManager::new(context, tcp, paths, connection, None)
        .and_then(|mut manager| manager.run());
    match result {
        Err(error) if !context.shared.is_stopped() => {
            context
                .reporter
                .invalidate(format!("flow {}: {error}", context.flow.name));
        }
        _ => {}
    }
}

/// Waits for the flow's connection; returns false if the run ends before.
fn wait_for_connection(context: &Context) -> bool {
    while context.state.connection.sender.get().is_none() {
        let now = context.shared.clock.now_ns();
        if !context
            .shared
            .sleep_until(now.max(context.start_ns) + BUSY_NS)
        {
            return false;
        }
    }
    true
}

impl<'a> SubflowManager<'a> {
    /// The connection must be established.
    pub(super) fn new(
        context: &'a Context,
        tcp: &'a TcpFlow,
        paths: &'a PathManager,
        connection: &Arc<Connection>,
        transfer: Option<u32>,
    ) -> Result<Self, NetError> {
        let mut manager = Self {
            context,
            subflows: &tcp.subflows,
            paths,
            connection: Arc::clone(connection),
            token: 0,
            transfer,
            requested_ns: vec![None; tcp.subflows.len()],
            backups: vec![false; tcp.subflows.len()],
        };
        manager.token = mptcp::info(manager.stream())?.token;
        Ok(manager)
    }

    fn stream(&self) -> &TcpStream {
        let stream = self.connection.sender.get();
        stream.unwrap_or_else(|| unreachable!("a manager is made for an established connection"))
    }

    fn run(&mut self) -> Result<(), NetError> {
        loop {
            let next = self.update(self.context.shared.clock.now_ns())?;
            if !self.context.shared.sleep_until(next) {
                return self.unfinished();
            }
        }
    }

    /// Does what is due; returns when to check again.
    pub(super) fn update(&mut self, now: u64) -> Result<u64, NetError> {
        let found = mptcp::full_info(self.stream())?.subflows;
        for index in 0..self.subflows.len() {
            self.step(index, now, &found)?;
        }
        let pause = if self.is_busy() { BUSY_NS } else { IDLE_NS };
        Ok(now.saturating_add(pause).min(self.next_ns(now)))
    }

    fn is_busy(&self) -> bool {
        (0..self.subflows.len()).any(|index| match self.connection.state(index) {
            SubflowState::Handshake => true,
            SubflowState::Closed => self.requested_ns[index].is_some(),
            SubflowState::Open | SubflowState::Removed => false,
        })
    }

    /// The next time at which the scenario opens or removes a subflow or changes its priority.
    fn next_ns(&self, now: u64) -> u64 {
        let times = self.subflows.iter().flat_map(|s| {
            let changed = s.priorities.iter().map(|change| change.at_ns);
            changed.chain(s.start_ns).chain(s.stop_ns)
        });
        times.filter(|&at| at > now).min().unwrap_or(u64::MAX)
    }

    fn step(&mut self, index: usize, now: u64, found: &[Found]) -> Result<(), NetError> {
        let source = self.context.plan.subflows[index].source;
        let here = found.iter().find(|one| *one.local.ip() == source);
        let subflow = &self.subflows[index];
        let due = |at: Option<u64>| at.is_some_and(|at| at <= now);
        match (self.connection.state(index), here) {
            (SubflowState::Closed, _) if due(subflow.stop_ns) => {
                self.connection.set_state(index, SubflowState::Removed)
            }
            (SubflowState::Closed, _) if subflow.start_ns.is_none() || due(subflow.start_ns) => {
                self.open(index, now)?
            }
            (SubflowState::Handshake, Some(one)) if one.tcp.state == TcpState::Established => {
                self.connection.opened(index, &one.tcp);
                if self.transfer.is_none() {
                    self.context.reporter.opened();
                }
            }
            (SubflowState::Handshake, _)
                if self.requested_ns[index].is_some_and(|asked| now > asked + JOIN_NS) =>
            {
                let why = format!(
                    "did not join within {} s of being opened",
                    JOIN_NS / 1_000_000_000
                );
                self.invalidate(index, &why);
                self.connection.set_state(index, SubflowState::Removed);
            }
            (SubflowState::Open, Some(one)) if due(subflow.stop_ns) => {
                self.remove(index, now, one)?
            }
            (SubflowState::Open, Some(one)) if self.backups[index] != is_backup(subflow, now) => {
                self.set_priority(index, now, one)?
            }
            (SubflowState::Open, None) => {
                self.connection.set_state(index, SubflowState::Removed);
                self.event(now, EventKind::SubflowRemoved, index, 0);
                self.invalidate(index, "closed unexpectedly");
            }
            _ => {}
        }
        Ok(())
    }

    fn open(&mut self, index: usize, now: u64) -> Result<(), NetError> {
        let ends = self.context.plan.subflows[index];
        // At most 8 subflows; each has an address of its own, and the first has number 0.
        let id = u8::try_from(index).unwrap_or(u8::MAX);
        let local = LocalAddress {
            ip: ends.source,
            id,
            ifindex: None,
            backup: is_backup(&self.subflows[index], now),
        };
        self.backups[index] = local.backup;
        let first_try = *self.requested_ns[index].get_or_insert(now);
        match self.paths.subflow_create(
            self.token,
            local,
            SocketAddrV4::new(ends.destination, self.context.plan.port),
        ) {
            Ok(()) => self.connection.set_state(index, SubflowState::Handshake),
            // A connection takes no further subflow before its peer has acknowledged data.
            Err(error) if error.errno() == Some(libc::ENOTCONN) && now < first_try + JOIN_NS => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Makes a subflow a backup or a regular one, as the scenario says.
    fn set_priority(&mut self, index: usize, now: u64, found: &Found) -> Result<(), NetError> {
        let backup = is_backup(&self.subflows[index], now);
        self.paths
            .set_backup(self.token, found.local, found.remote, backup)?;
        self.backups[index] = backup;
        self.event(now, EventKind::PriorityChanged, index, backup.into());
        Ok(())
    }

    fn remove(&self, index: usize, now: u64, found: &Found) -> Result<(), NetError> {
        self.connection.removed(index, &found.tcp);
        self.paths
            .subflow_destroy(self.token, found.local, found.remote)?;
        self.event(now, EventKind::SubflowRemoved, index, 0);
        Ok(())
    }

    /// Reports subflows that are still joining when the run ends, because they carried no data.
    fn unfinished(&self) -> Result<(), NetError> {
        for index in 0..self.subflows.len() {
            let state = self.connection.state(index);
            if state == SubflowState::Handshake
                || (state == SubflowState::Closed && self.requested_ns[index].is_some())
            {
                self.invalidate(index, "had not joined when the run ended");
            }
        }
        Ok(())
    }

    fn event(&self, now: u64, kind: EventKind, index: usize, value: u64) {
        if self.transfer.is_none() {
            let subflow = (self.context.index, index);
            self.context
                .reporter
                .subflow_event(now, kind, subflow, value);
        }
    }

    fn invalidate(&self, index: usize, why: &str) {
        let (flow, subflow) = (&self.context.flow.name, &self.subflows[index].name);
        let ends = self.context.plan.subflows[index];
        let transfer = self.transfer.map(|number| format!("transfer {number}: "));
        let reason = format!(
            "flow {flow}: {}subflow {subflow} ({} to {}) {why}",
            transfer.unwrap_or_default(),
            ends.source,
            ends.destination
        );
        self.context.reporter.invalidate(reason);
    }
}

/// Whether the scenario makes a subflow a backup at this time.
fn is_backup(subflow: &Subflow, now: u64) -> bool {
    let before = subflow
        .priorities
        .iter()
        .rev()
        .find(|change| change.at_ns <= now);
    before.map_or(subflow.backup, |change| change.backup)
}
