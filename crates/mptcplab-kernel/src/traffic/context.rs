//! The state that the threads of a flow share, and how a flow begins and stops.

use super::connection::SubflowState;
use super::payload_pattern::PayloadPattern;
use super::state::{FlowState, Reporter, Shared};
use crate::plan::{FlowPlan, Plan};
use mptcplab_model::link::rng::Rng;
use mptcplab_model::traffic;
use mptcplab_scenario::{Flow, Run, TcpFlow};
use mptcplab_trace::{EventKind, NOT_MEASURED, RequestRow, TransferRow};
use std::sync::Arc;

/// A flow and everything that its threads need.
#[derive(Debug, Clone)]
pub(crate) struct Context {
    pub(crate) index: usize,
    pub(crate) flow: Flow,
    pub(crate) plan: FlowPlan,
    /// Kernel-visible name of its algorithm; empty for UDP.
    pub(crate) algorithm: String,
    /// When it starts; drawn from its random stream if the scenario says so.
    pub(crate) start_ns: u64,
    /// When its application stops sending.
    pub(crate) stop_ns: u64,
    /// When the run ends.
    pub(crate) end_ns: u64,
    /// Its own random stream, after the start was drawn from it.
    pub(crate) rng: Rng,
    pub(crate) pattern: Arc<PayloadPattern>,
    pub(crate) state: Arc<FlowState>,
    pub(crate) shared: Arc<Shared>,
    pub(crate) reporter: Reporter,
}

impl Context {
    /// Whether the flow has one connection. Otherwise every transfer has one, or it is UDP.
    pub(crate) fn has_one_connection(&self) -> bool {
        !self.flow.subflows().is_empty() && !self.plan.connection_per_transfer
    }

    /// Waits for the start of the flow and reports it. Returns its time, or `None` if the flow does not start in this run.
    pub(super) fn begin(&self) -> Option<u64> {
        if self.start_ns >= self.stop_ns || !self.shared.sleep_until(self.start_ns) {
            return None;
        }
        let now_ns = self.shared.clock.now_ns();
        self.reporter
            .event(now_ns, EventKind::FlowStarted, self.index, 0);
        Some(now_ns)
    }

    /// Reports that the last byte of a transfer has arrived, unless it arrived after the end of the run.
    pub(super) fn complete(
        &self,
        tcp: &TcpFlow,
        transfer: u32,
        now_ns: u64,
        stall_ns: Option<u64>,
    ) {
        if now_ns > self.end_ns {
            return;
        }
        if let Some(pending) = self.state.pending.remove(transfer) {
            let row = pending.row(tcp, self.index, transfer);
            self.reporter.transfer(TransferRow {
                completion_ns: now_ns.saturating_sub(row.t_ns),
                stall_ns: stall_ns.unwrap_or(NOT_MEASURED),
                ..row
            });
        }
    }

    /// The rows of the transfers that were not complete at the end of the run.
    pub(crate) fn unfinished(&self) -> Vec<TransferRow> {
        let Some(tcp) = crate::plan::tcp(&self.flow) else {
            return Vec::new();
        };
        let left = self.state.pending.take();
        let rows = left
            .iter()
            .map(|(&transfer, pending)| pending.row(tcp, self.index, transfer));
        rows.collect()
    }

    /// Whether the flow's only connection was still being opened at a time, a second or more after the flow's start: its
    /// first SYN was lost, and it has carried no data.
    pub(crate) fn is_unconnected(&self, at_ns: u64) -> bool {
        const TIMEOUT_NS: u64 = 1_000_000_000;
        // UDP has no connection.
        !self.flow.subflows().is_empty()
            && at_ns >= self.start_ns.saturating_add(TIMEOUT_NS)
            && self.state.connection.state(0) == SubflowState::Handshake
    }

    /// The rows of the requests and messages that were not complete at the end of the run.
    pub(crate) fn open_requests(&self) -> Vec<RequestRow> {
        self.state.requests.take()
    }

    /// Waits for the time at which the application stops and reports it, if the scenario has one.
    pub(super) fn stop(&self) {
        if self.flow.stop_ns.is_some() && self.shared.sleep_until(self.stop_ns) {
            let now_ns = self.shared.clock.now_ns();
            self.reporter
                .event(now_ns, EventKind::FlowStopped, self.index, 0);
        }
    }
}

/// Makes the contexts of all flows.
pub(crate) fn contexts(
    run: &Run,
    plan: &Plan,
    algorithms: &[String],
    shared: &Arc<Shared>,
    reporter: &Reporter,
) -> Vec<Context> {
    let context = |(index, flow): (usize, &Flow)| {
        // The simulator draws from the same stream in the same order.
        let mut rng = Rng::new(run.seed, run.rep, "flow", &flow.name);
        let start_ns = traffic::start(flow.start, &mut rng);
        let algorithm = plan.flows[index]
            .algorithm
            .and_then(|a| algorithms.get(a))
            .cloned();
        Context {
            index,
            flow: flow.clone(),
            plan: plan.flows[index].clone(),
            algorithm: algorithm.unwrap_or_default(),
            start_ns,
            stop_ns: flow.stop_ns.unwrap_or(u64::MAX).min(run.duration_ns),
            end_ns: run.duration_ns,
            rng,
            pattern: Arc::new(PayloadPattern::new(&flow.name)),
            state: Arc::new(FlowState::new(flow)),
            shared: Arc::clone(shared),
            reporter: reporter.clone(),
        }
    };
    run.flows.iter().enumerate().map(context).collect()
}
