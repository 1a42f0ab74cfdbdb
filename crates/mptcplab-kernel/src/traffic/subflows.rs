//! Opens a connection's further subflows in their order and at their times, removes those that end, and notices
//! those that never come or go on their own.

use super::{Connection, Context, Life};
use mptcplab_net::mptcp::{self, LocalAddress, PathManager, Subflow as Found};
use mptcplab_net::{NetError, TcpState};
use mptcplab_scenario::{Subflow, TcpFlow};
use mptcplab_trace::EventKind;
use std::net::{SocketAddrV4, TcpStream};
use std::sync::Arc;

/// While something is going on, and otherwise.
const BUSY_NS: u64 = 1_000_000;
const QUIET_NS: u64 = 50_000_000;
/// A subflow that has not joined after this long never will: four SYNs, at 0, 1, 3 and 7 s.
const JOIN_NS: u64 = 15_000_000_000;

/// The further subflows of one connection.
pub(super) struct Manager<'a> {
    context: &'a Context,
    subflows: &'a [Subflow],
    paths: &'a PathManager,
    connection: Arc<Connection>,
    token: u32,
    /// Its number, if it carries one of many transfers, of which the trace has no events.
    transfer: Option<u32>,
    /// When each was asked for.
    asked_ns: Vec<Option<u64>>,
    /// Whether the kernel was told that it is a backup.
    backups: Vec<bool>,
}

/// The thread of a connection's subflows.
pub(crate) fn manage(context: &Context, tcp: &TcpFlow, paths: &PathManager) {
    if !is_there(context) {
        return;
    }
    let connection = &context.state.connection;
    let result =
        Manager::new(context, tcp, paths, connection, None).and_then(|mut manager| manager.run());
    match result {
        Err(error) if !context.shared.is_stopped() => {
            context
                .notes
                .spoils(format!("flow {}: {error}", context.flow.name));
        }
        _ => {}
    }
}

/// Waits for the flow's connection; false if the run is over before.
fn is_there(context: &Context) -> bool {
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

impl<'a> Manager<'a> {
    /// For a connection that is there.
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
            asked_ns: vec![None; tcp.subflows.len()],
            backups: vec![false; tcp.subflows.len()],
        };
        manager.token = mptcp::info(manager.stream())?.token;
        Ok(manager)
    }

    fn stream(&self) -> &TcpStream {
        let stream = self.connection.sender.get();
        stream.unwrap_or_else(|| unreachable!("a manager is made for a connection that is there"))
    }

    fn run(&mut self) -> Result<(), NetError> {
        loop {
            let next = self.look(self.context.shared.clock.now_ns())?;
            if !self.context.shared.sleep_until(next) {
                return self.unfinished();
            }
        }
    }

    /// Does what is due; says when to look again.
    pub(super) fn look(&mut self, now: u64) -> Result<u64, NetError> {
        let found = mptcp::full_info(self.stream())?.subflows;
        for index in 0..self.subflows.len() {
            self.step(index, now, &found)?;
        }
        let pause = if self.is_busy() { BUSY_NS } else { QUIET_NS };
        Ok(now.saturating_add(pause).min(self.next_ns(now)))
    }

    fn is_busy(&self) -> bool {
        (0..self.subflows.len()).any(|index| match self.connection.life(index) {
            Life::Handshake => true,
            Life::Closed => self.asked_ns[index].is_some(),
            Life::Open | Life::Removed => false,
        })
    }

    /// The next time at which the scenario opens, removes or ranks a subflow.
    fn next_ns(&self, now: u64) -> u64 {
        let times = self.subflows.iter().flat_map(|s| {
            let ranked = s.priorities.iter().map(|change| change.at_ns);
            ranked.chain(s.start_ns).chain(s.stop_ns)
        });
        times.filter(|&at| at > now).min().unwrap_or(u64::MAX)
    }

    fn step(&mut self, index: usize, now: u64, found: &[Found]) -> Result<(), NetError> {
        let source = self.context.plan.subflows[index].source;
        let here = found.iter().find(|one| *one.local.ip() == source);
        let subflow = &self.subflows[index];
        let due = |at: Option<u64>| at.is_some_and(|at| at <= now);
        match (self.connection.life(index), here) {
            (Life::Closed, _) if due(subflow.stop_ns) => {
                self.connection.set_life(index, Life::Removed)
            }
            (Life::Closed, _) if subflow.start_ns.is_none() || due(subflow.start_ns) => {
                self.open(index, now)?
            }
            (Life::Handshake, Some(one)) if one.tcp.state == TcpState::Established => {
                self.connection.opened(index, &one.tcp);
                if self.transfer.is_none() {
                    self.context.notes.opened();
                }
            }
            (Life::Handshake, _)
                if self.asked_ns[index].is_some_and(|asked| now > asked + JOIN_NS) =>
            {
                let why = format!(
                    "did not join within {} s of being opened",
                    JOIN_NS / 1_000_000_000
                );
                self.spoils(index, &why);
                self.connection.set_life(index, Life::Removed);
            }
            (Life::Open, Some(one)) if due(subflow.stop_ns) => self.remove(index, now, one)?,
            (Life::Open, Some(one)) if self.backups[index] != is_backup(subflow, now) => {
                self.rank(index, now, one)?
            }
            (Life::Open, None) => {
                self.connection.set_life(index, Life::Removed);
                self.event(now, EventKind::SubflowRemoved, index, 0);
                self.spoils(index, "went away on its own");
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
        let first_try = *self.asked_ns[index].get_or_insert(now);
        match self.paths.subflow_create(
            self.token,
            local,
            SocketAddrV4::new(ends.destination, self.context.plan.port),
        ) {
            Ok(()) => self.connection.set_life(index, Life::Handshake),
            // The connection takes no further subflow before its peer has acknowledged data.
            Err(error) if error.errno() == Some(libc::ENOTCONN) && now < first_try + JOIN_NS => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Makes it a backup or a regular one.
    fn rank(&mut self, index: usize, now: u64, found: &Found) -> Result<(), NetError> {
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

    /// A subflow that is still on its way when the run ends never carried data.
    fn unfinished(&self) -> Result<(), NetError> {
        for index in 0..self.subflows.len() {
            let life = self.connection.life(index);
            if life == Life::Handshake || (life == Life::Closed && self.asked_ns[index].is_some()) {
                self.spoils(index, "had not joined when the run ended");
            }
        }
        Ok(())
    }

    fn event(&self, now: u64, kind: EventKind, index: usize, value: u64) {
        if self.transfer.is_none() {
            let subflow = (self.context.index, index);
            self.context.notes.subflow_event(now, kind, subflow, value);
        }
    }

    fn spoils(&self, index: usize, why: &str) {
        let (flow, subflow) = (&self.context.flow.name, &self.subflows[index].name);
        let ends = self.context.plan.subflows[index];
        let transfer = self.transfer.map(|number| format!("transfer {number}: "));
        let reason = format!(
            "flow {flow}: {}subflow {subflow} ({} to {}) {why}",
            transfer.unwrap_or_default(),
            ends.source,
            ends.destination
        );
        self.context.notes.spoils(reason);
    }
}

/// What the scenario says that a subflow is at this time.
fn is_backup(subflow: &Subflow, now: u64) -> bool {
    let before = subflow
        .priorities
        .iter()
        .rev()
        .find(|change| change.at_ns <= now);
    before.map_or(subflow.backup, |change| change.backup)
}
