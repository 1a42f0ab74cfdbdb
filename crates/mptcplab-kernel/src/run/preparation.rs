//! What a run needs of the kernel before its network exists. It takes longer than the rest of the set-up, and many runs need
//! the same, so a virtual machine is prepared once for all of them.

use super::algorithms::Algorithms;
use super::lab_handle::LabHandle;
use crate::failure::Failure;
use crate::plan::{AlgorithmPlan, FlowPlan, Plan};
use crate::protocol::Place;
use mptcplab_bpf::tracer::{Tracer, TracerConfig};
use mptcplab_scenario::Run;
use serde::{Deserialize, Serialize};

/// Sockets that the tracer must be able to track per subflow: both ends, with room for handshakes.
const SOCKETS_PER_SUBFLOW: u32 = 8;
/// The same per subflow of a transfer, with room for those that closed since the ring was last read.
const SOCKETS_PER_TRANSFER: u32 = 3;
/// The tracer's table has room for at least so many.
const LEAST_SOCKETS: u32 = 1024;

/// What is loaded for a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Preparation {
    algorithms: Vec<AlgorithmPlan>,
    /// Sockets that the tracer tracks at a time.
    sockets: u32,
    /// Whether the tracer records every ACK.
    every_ack: bool,
}

impl Preparation {
    /// Sizes of tables are powers of two, so that runs of different sizes need the same.
    pub(super) fn of(run: &Run, plan: &Plan) -> Self {
        let rounded = |plan: &AlgorithmPlan| AlgorithmPlan {
            connections: rounded_up(plan.connections),
            ..plan.clone()
        };
        Self {
            algorithms: plan.algorithms.iter().map(rounded).collect(),
            sockets: rounded_up(sockets(plan)),
            every_ack: run.per_ack,
        }
    }
}

/// A kernel that is ready for a run, and the lab that waits for it. Fields are dropped in this order, so that the
/// algorithms are unloaded after the sockets of a lab with its own process closed.
pub(super) struct Prepared {
    pub(super) lab: LabHandle,
    pub(super) tracer: Tracer,
    pub(super) algorithms: Algorithms,
    /// What was asked for.
    pub(super) preparation: Preparation,
}

impl Prepared {
    pub(super) fn make(preparation: Preparation, place: Place) -> Result<Self, Failure> {
        let algorithms = Algorithms::load(&preparation.algorithms)?;
        let config = TracerConfig {
            sockets: preparation.sockets,
            every_ack: preparation.every_ack,
            ..TracerConfig::default()
        };
        Ok(Self {
            tracer: Tracer::start(&config)?,
            lab: LabHandle::start(place)?,
            algorithms,
            preparation,
        })
    }
}

fn rounded_up(size: u32) -> u32 {
    size.checked_next_power_of_two().unwrap_or(u32::MAX)
}

/// Number of sockets that the tracer must be able to track.
fn sockets(plan: &Plan) -> u32 {
    let of_flow = |flow: &FlowPlan| {
        let subflows = u32::try_from(flow.subflows.len()).unwrap_or(u32::MAX);
        SOCKETS_PER_SUBFLOW.saturating_mul(subflows).max(
            SOCKETS_PER_TRANSFER
                .saturating_mul(subflows)
                .saturating_mul(flow.max_connections),
        )
    };
    plan.flows
        .iter()
        .map(of_flow)
        .fold(0, u32::saturating_add)
        .max(LEAST_SOCKETS)
}
