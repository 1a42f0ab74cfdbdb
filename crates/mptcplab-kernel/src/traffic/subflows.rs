//! Opens a connection's further subflows in their order and at their times, removes those that end, and notices
//! those that never come or go on their own.

use super::{Context, Life};
use mptcplab_net::mptcp::{self, LocalAddress, PathManager, Subflow as Found};
use mptcplab_net::{NetError, TcpState};
use mptcplab_scenario::{Subflow, TcpFlow};
use mptcplab_trace::EventKind;
use std::net::{SocketAddrV4, TcpStream};

/// While something is going on, and otherwise.
const BUSY_NS: u64 = 1_000_000;
const QUIET_NS: u64 = 50_000_000;
/// A subflow that has not joined after this long never will: four SYNs, at 0, 1, 3 and 7 s.
const JOIN_NS: u64 = 15_000_000_000;

struct Manager<'a> {
    context: &'a Context,
    subflows: &'a [Subflow],
    paths: &'a PathManager,
    stream: &'a TcpStream,
    token: u32,
    /// When each was asked for.
    asked_ns: Vec<Option<u64>>,
    /// Whether the kernel was told that it is a backup.
    backups: Vec<bool>,
}

/// The thread of a connection's subflows.
pub(crate) fn manage(context: &Context, tcp: &TcpFlow, paths: &PathManager) {
    let Some(stream) = connection(context) else {
        return;
    };
    let result = mptcp::info(stream).and_then(|info| {
        let mut manager = Manager {
            context,
            subflows: &tcp.subflows,
            paths,
            stream,
            token: info.token,
            asked_ns: vec![None; tcp.subflows.len()],
            backups: vec![false; tcp.subflows.len()],
        };
        manager.run()
    });
    match result {
        Err(error) if !context.shared.is_stopped() => {
            context
                .notes
                .spoils(format!("flow {}: {error}", context.flow.name));
        }
        _ => {}
    }
}

/// Waits for the connection; none if the run is over before.
fn connection(context: &Context) -> Option<&TcpStream> {
    loop {
        let now = context.shared.clock.now_ns();
        if let Some(stream) = context.state.sender.get() {
            return Some(stream);
        }
        if !context
            .shared
            .sleep_until(now.max(context.start_ns) + BUSY_NS)
        {
            return None;
        }
    }
}

impl Manager<'_> {
    fn run(&mut self) -> Result<(), NetError> {
        loop {
            let now = self.context.shared.clock.now_ns();
            let found = mptcp::full_info(self.stream)?.subflows;
            for index in 0..self.subflows.len() {
                self.step(index, now, &found)?;
            }
            let pause = if self.is_busy() { BUSY_NS } else { QUIET_NS };
            if !self
                .context
                .shared
                .sleep_until(now.saturating_add(pause).min(self.next_ns(now)))
            {
                return self.unfinished();
            }
        }
    }

    fn is_busy(&self) -> bool {
        (0..self.subflows.len()).any(|index| match self.context.state.life(index) {
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
        match (self.context.state.life(index), here) {
            (Life::Closed, _) if due(subflow.stop_ns) => {
                self.context.state.set_life(index, Life::Removed)
            }
            (Life::Closed, _) if subflow.start_ns.is_none() || due(subflow.start_ns) => {
                self.open(index, now)?
            }
            (Life::Handshake, Some(one)) if one.tcp.state == TcpState::Established => {
                self.context.state.set_life(index, Life::Open);
                self.context.notes.opened();
            }
            (Life::Handshake, _)
                if self.asked_ns[index].is_some_and(|asked| now > asked + JOIN_NS) =>
            {
                let why = format!(
                    "did not join within {} s of being opened",
                    JOIN_NS / 1_000_000_000
                );
                self.spoils(index, &why);
                self.context.state.set_life(index, Life::Removed);
            }
            (Life::Open, Some(one)) if due(subflow.stop_ns) => self.remove(index, now, one)?,
            (Life::Open, Some(one)) if self.backups[index] != is_backup(subflow, now) => {
                self.rank(index, now, one)?
            }
            (Life::Open, None) => {
                self.context.state.set_life(index, Life::Removed);
                self.context.notes.subflow_event(
                    now,
                    EventKind::SubflowRemoved,
                    (self.context.index, index),
                    0,
                );
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
            Ok(()) => self.context.state.set_life(index, Life::Handshake),
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
        self.context.notes.subflow_event(
            now,
            EventKind::PriorityChanged,
            (self.context.index, index),
            backup.into(),
        );
        Ok(())
    }

    fn remove(&self, index: usize, now: u64, found: &Found) -> Result<(), NetError> {
        self.context.state.set_life(index, Life::Removed);
        self.paths
            .subflow_destroy(self.token, found.local, found.remote)?;
        self.context.notes.subflow_event(
            now,
            EventKind::SubflowRemoved,
            (self.context.index, index),
            0,
        );
        Ok(())
    }

    /// A subflow that is still on its way when the run ends never carried data.
    fn unfinished(&self) -> Result<(), NetError> {
        for index in 0..self.subflows.len() {
            let life = self.context.state.life(index);
            if life == Life::Handshake || (life == Life::Closed && self.asked_ns[index].is_some()) {
                self.spoils(index, "had not joined when the run ended");
            }
        }
        Ok(())
    }

    fn spoils(&self, index: usize, why: &str) {
        let (flow, subflow) = (&self.context.flow.name, &self.subflows[index].name);
        let ends = self.context.plan.subflows[index];
        let reason = format!(
            "flow {flow}: subflow {subflow} ({} to {}) {why}",
            ends.source, ends.destination
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
